package commands_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/commands"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
)

// compactAnswer is how large an answer with 50 messages may be.
const compactAnswer = 8192

func TestFiftyMessagesOfTheDemoFitInEightKilobytes(t *testing.T) {
	b := newDemo(t)
	for _, line := range []string{"mail list", "mail list --limit 50", "mail list --account demo --folder INBOX --limit 50 --oldest-first"} {
		e := b.ok(t, line)
		if n := len(e.Data["messages"].([]any)); n != 50 || e.size > compactAnswer {
			t.Errorf("%s: %d messages in %d bytes", line, n, e.size)
		}
	}
	full, few := b.ok(t, "mail list --full"), b.ok(t, "mail list --limit 8")
	for i, m := range few.Data["messages"].([]any) {
		short, whole := m.(map[string]any), full.Data["messages"].([]any)[i].(map[string]any)
		if short["subject"] != whole["subject"] || short["from"] != whole["from"] {
			t.Errorf("few messages are cut: %v, whole %v", short, whole)
		}
	}
	if got, want := few.Meta.Untrusted, []string{"messages.from", "messages.subject"}; !slices.Equal(got, want) {
		t.Errorf("untrusted of a compact list: %q", got)
	}
	if !slices.Contains(full.Meta.Untrusted, "messages.to") {
		t.Errorf("untrusted of a full list: %q", full.Meta.Untrusted)
	}
}

func TestLongSubjectsDoNotMakeALongList(t *testing.T) {
	b := newBench(t, nil, work("work", mail.ReadOnly))
	for _, test := range []struct{ subject, sender, n, most int }{
		{20, 0, 50, compactAnswer}, {400, 0, 50, compactAnswer}, {20, 400, 50, compactAnswer}, {4000, 4000, 50, compactAnswer},
		{4000, 4000, 20, compactAnswer}, {4000, 4000, 500, 10 * compactAnswer},
	} {
		b.page = mailbox.Page{Messages: summaries(test.n, test.subject, test.sender)}
		line := fmt.Sprintf("mail list --limit %d", test.n)
		e := b.ok(t, line)
		if n := len(e.Data["messages"].([]any)); n != test.n || e.size > test.most {
			t.Errorf("%+v: %d messages in %d bytes", test, n, e.size)
		}
		first := e.Data["messages"].([]any)[0].(map[string]any)
		if !strings.Contains(first["from"].(string), "ann@example.org") || !strings.HasPrefix(first["subject"].(string), "0 long") {
			t.Errorf("%+v: %v", test, first)
		}
		if first["date"] != "2026-03-09T23:30:00Z" {
			t.Errorf("date of a compact entry: %v", first["date"])
		}
		full := b.ok(t, line+" --full").Data["messages"].([]any)
		whole := full[0].(map[string]any)
		if test.n <= 50 && (whole["subject"] != b.page.Messages[0].Subject || whole["from"] != b.page.Messages[0].From[0].String() || whole["date"] != "2026-03-10T00:30:00+01:00") {
			t.Errorf("%+v: --full cuts: %.80v", test, whole)
		}
		some := b.ok(t, "mail list --limit 3 --fields messages.subject")
		if got := some.Data["messages"].([]any)[0].(map[string]any)["subject"]; got != b.page.Messages[0].Subject {
			t.Errorf("%+v: a field asked for by name is cut: %.80v", test, got)
		}
	}
}

func TestAThreadDoesNotRepeatItsSubject(t *testing.T) {
	b := newBench(t, nil, work("work", mail.ReadOnly))
	b.thread = mailbox.Thread{Folder: "INBOX", UIDValidity: 7, Subject: "Shelves", Messages: []mailbox.ThreadMessage{
		{Summary: mailbox.Summary{Ref: ref(1), Subject: "Shelves"}},
		{Summary: mailbox.Summary{Ref: ref(2), Subject: "Re: shelves"}, Parent: ref(1)},
		{Summary: mailbox.Summary{Ref: ref(3), Subject: "Lamps (was: something else entirely) Shelves"}, Parent: ref(2)}}}
	want := []any{nil, nil, "Lamps (was: something else entirely) Shelves"}
	for i, m := range b.ok(t, "mail thread --uid 2").Data["messages"].([]any) {
		e := m.(map[string]any)
		if e["subject"] != want[i] {
			t.Errorf("%d: %v", i, e)
		}
		if i > 0 && e["parent_message_id"] != ref(uint32(i)).String() {
			t.Errorf("parent of %d: %v", i, e)
		}
	}
	if e := b.ok(t, "mail thread --uid 2 --full").Data["messages"].([]any)[1].(map[string]any); e["subject"] != "Re: shelves" {
		t.Errorf("--full: %v", e)
	}
}

// BenchmarkCompactList is what a list of 50 long messages costs beside the mail
// server and the vault's audit entry.
func BenchmarkCompactList(b *testing.B) {
	for _, line := range []string{"mail list", "mail list --full"} {
		b.Run(line, func(b *testing.B) {
			s := &fakeMailboxes{page: mailbox.Page{Messages: summaries(50, 100, 10)}}
			d := &commands.Deps{Mailboxes: s, Store: oneAccount{}}
			r, err := discovery.NewRegistry(discovery.Info{Name: "postern", Groups: commands.Groups()}, commands.All(d)...)
			if err != nil {
				b.Fatal(err)
			}
			g, err := gateway.New(gateway.Options{Registry: r, Profile: gateway.FullProfile(), Limiter: noLimit{}})
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if a := g.Do(b.Context(), gateway.Request{Principal: gateway.Principal{}, Line: line + " --account work"}); !a.Success() {
					b.Fatalf("%s", a.JSON)
				}
			}
		})
	}
}

type oneAccount struct{ commands.Store }

type noLimit struct{}

func (noLimit) Take(context.Context, string, int, time.Duration) (time.Duration, error) {
	return 0, nil
}
