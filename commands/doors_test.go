package commands_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/commands"
	"github.com/postern-mail/postern/commands/admin"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/outbox"
)

// othersDrafts says of each draft whether somebody else wrote it.
type othersDrafts bool

func (o *othersDrafts) NoteDraft(context.Context, mail.Ref) error { return nil }

func (o *othersDrafts) Drafts(_ context.Context, refs []mail.Ref) ([]mail.DraftOrigin, error) {
	return slices.Repeat([]mail.DraftOrigin{{ByAgent: true, Own: !bool(*o)}}, len(refs)), nil
}

// Whichever way somebody asks what becomes of a command, the answer is the same, and is what then
// happens: 'policy explain', --dry-run, the question in a client, 'outbox show', and approving it.
func TestEveryDoorSaysTheSame(t *testing.T) {
	t.Parallel()
	rows := testmain.Table[struct{ Line, About, RO, Draft, Approve, Reply, RW string }](t, "testdata/cases/doors.txt")
	for _, mode := range []mail.Mode{mail.ReadOnly, mail.Draft, mail.Approve, mail.Reply, mail.ReadWrite} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			b, others := agent(newDemo(t)), new(othersDrafts)
			must(t, b.vault.SetSetting(t.Context(), admin.AskSetting, "on"))
			now := func() time.Time { return at }
			boxes := mailbox.New(mailbox.Options{Directory: b.vault, Drafts: others, Now: now, Journal: journal{b.vault}})
			t.Cleanup(func() { _ = boxes.Close() })
			clock := at
			b.deps.Mailboxes, b.deps.Outbox = boxes, outbox.New(outbox.Options{Directory: b.vault, Mailboxes: boxes, Store: b.vault, Journal: journal{b.vault},
				Key: func(ctx context.Context) ([]byte, error) { return b.vault.Key(ctx, "outbox") },
				Now: func() time.Time { clock = clock.Add(time.Millisecond); return clock }})
			known := []string{"bob@example.net", "carol@example.net"}
			set := func(mode mail.Mode, destroy mail.Destroy, asks *int) {
				must(t, b.vault.UpdateAccount(t.Context(), "demo", func(a *mail.Account) error {
					a.Mode, a.Destroy, a.AuthServIDs, a.AskChanges = mode, destroy, []string{"border.example"}, asks
					a.AllowIn, a.AllowOut = mail.AllowList{Entries: known}, mail.AllowList{Enabled: true, Entries: known}
					return nil
				}, nil))
			}
			for _, row := range rows {
				set(mail.ReadWrite, mail.DestroyOn, nil)
				line := strings.Replace(row.Line, "%", b.about(t, boxes, row.About), 1)
				*others = row.About == "another's draft"
				set(mode, map[bool]mail.Destroy{true: mail.DestroyOff, false: mail.DestroyOn}[row.About == "without the right"], map[bool]*int{true: new(int)}[row.About == "asked about each"])
				want := map[mail.Mode]string{mail.ReadOnly: row.RO, mail.Draft: row.Draft, mail.Approve: row.Approve, mail.Reply: row.Reply, mail.ReadWrite: row.RW}[mode]
				b.doors(t, row.About+": "+line, line, want)
			}
		})
	}
}

// about files what a row is about, and returns its id.
func (b *fixture) about(t *testing.T, boxes *mailbox.Client, kind string) string {
	const head = "Received: from mail.example.net (mail.example.net [203.0.113.5]) by border.example with ESMTPS id 1; Mon, 09 Mar 2026 08:00:00 +0000\r\n" +
		"From: Bob <bob@example.net>\r\nTo: demo@example.org\r\nSubject: Lunch\r\nDate: Mon, 09 Mar 2026 07:59:00 +0000\r\nMessage-ID: <1@example.net>\r\n\r\n"
	verdict, message, text := "pass", head, "Shall we meet at noon?\r\n"
	switch kind {
	case "failed":
		verdict = "fail"
	case "unknown":
		verdict = "none"
	case "stranger":
		message = strings.Replace(head, "bob@example.net", "eve@evil.example", 1)
	case "elsewhere":
		message = "Reply-To: carol@example.net\r\n" + head
	case "code":
		text = "Your verification code is 482913.\r\n"
	case "draft", "another's draft":
		return b.OK(t, "mail draft --to bob@example.net --subject s --body hi").Data["message_id"].(string)
	}
	message = "Authentication-Results: border.example; dmarc=" + verdict + " header.from=example.net\r\n" + message
	placed, err := boxes.File(onBehalfOf(t.Context(), gateway.Principal{Name: mail.PersonPrincipal}), "test", "demo", &mailbox.OwnMessage{Role: "archive", Date: at, Source: []byte(message + text)})
	must(t, err)
	return placed.Ref.String()
}

// doors asks at each door what becomes of a line.
func (b *fixture) doors(t *testing.T, name, line, want string) {
	t.Helper()
	outcome := func(refusal string, waits bool, asks any) string {
		switch {
		case refusal != "":
			return refusal
		case waits:
			return strings.TrimSpace("asks " + strings.Join(reasons(asks), " "))
		}
		return "goes"
	}
	same := func(door, got string) {
		if got != want {
			t.Errorf("%s\n%s says %q, want %q", name, door, got, want)
		}
	}
	e := b.OK(t, "policy explain "+discovery.Quote(line))
	reason, _ := e.Data["reason"].(string)
	same("policy explain", outcome(reason, e.Data["needs_approval"] == true, e.Data["asks"]))
	refused := func(door string, got envelope) {
		if got.Success || fmt.Sprint(e.Data["code"], e.Data["message"], e.Data["hint"]) != fmt.Sprint(got.Error.Code, got.Error.Message, got.Error.Hint) {
			t.Errorf("%s\n%s ends with %+v, and it was explained as %v", name, door, got.Error, e.Data)
		}
	}
	sends := strings.HasPrefix(line, "mail send") || strings.HasPrefix(line, "mail reply") || strings.HasPrefix(line, "mail forward")
	if sends {
		if dry := b.Do(t, line+" --dry-run"); dry.Success {
			same("a dry run", outcome("", dry.Data["needs_approval"] == true, dry.Data["asks"]))
		} else {
			refused("a dry run", dry)
		}
	}
	a, done := asked(t, b, line)
	switch {
	case a.Asked == nil && !done.Success:
		refused("the command", done)
		return
	case a.Asked == nil:
		same("the command", "goes")
		return
	}
	_, id, _ := strings.Cut(a.Asked.Text, "\nOutbox:  ")
	id, _, _ = strings.Cut(id, "\n")
	shown := b.OK(t, "outbox show "+id)
	same("outbox show", outcome("", shown.Data["state"] == "waiting", shown.Data["asks"]))
	if text := strings.ReplaceAll(a.Asked.Text, "\n        > ", ""); !strings.Contains(text, fmt.Sprint("\nWhy:     ", shown.Data["why"], "\n")) {
		t.Errorf("%s\nthe question is %s, and outbox show says %q", name, text, shown.Data["why"])
	}
	b.Principal.Admin = true
	defer func() { b.Principal.Admin = false }()
	decision := func() *outbox.Decision {
		return b.Gateway.Do(t.Context(), gateway.Request{Principal: b.Principal, Line: "outbox show " + id}).Result.(*commands.OutboxShowResult).Decision()
	}
	first := decision()
	if first.Step != outbox.StepSend && first.Step != outbox.StepDelete && first.Step != outbox.StepRun || first.WhyNot != "" || !first.Waits() {
		t.Errorf("%s\nwhat waits may not be approved: %+v", name, first)
	}
	approve := "outbox approve " + id + " --code " + b.code(t, first)
	if got := b.OK(t, approve); got.Data["state"] != "accepted" && got.Data["state"] != "done" {
		t.Errorf("%s\napproved: %v", name, got.Data)
	}
	if again := b.Do(t, approve); decision().Step != outbox.StepNone || again.Error.Message != decision().WhyNot {
		t.Errorf("%s\napproved again: %+v, and outbox show says %v", name, again.Error, decision().WhyNot)
	}
}

// reasons are the conditions that sentences name.
func reasons(sentences any) (names []string) {
	list, _ := sentences.([]any)
	for _, a := range []mail.Ask{mail.AskNoReply, mail.AskUnverified, mail.AskOutsider, mail.AskElsewhere, mail.AskLink, mail.AskCode, mail.AskDraft} {
		if slices.Contains(list, any(a.Sentence())) {
			names = append(names, string(a))
		}
	}
	if len(names) < len(list) {
		names = append(names, fmt.Sprint(list))
	}
	return names
}
