package outbox_test

import (
	"bytes"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/outbox"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
)

// border are the fields with which the account's own server says that it took a message from
// the domain of its sender.
const border = "Authentication-Results: border.example; dmarc=pass header.from=example.net\n" +
	"Received: from mail.example.net (mail.example.net [203.0.113.5]) by border.example with ESMTPS id 1; Mon, 23 Nov 2026 08:00:00 +0000\n"

// fromBob is a message that is verified in an account that is replying.
const fromBob = border + "From: Bob <bob@example.net>\nTo: ann@example.org, Carol <carol@example.net>\nSubject: Lunch\nDate: Mon, 23 Nov 2026 07:59:00 +0000\nMessage-ID: <1@example.net>\n" +
	"Content-Type: text/plain; charset=utf-8\n\nShall we meet at noon? See https://place.example/Menu?day=1 or ask eva@place.example.\n"

// replying is an account in mode reply that knows Bob and Carol.
func replying(a *mail.Account) {
	a.Mode, a.AllowOut, a.AuthServIDs = mail.Reply, mail.AllowList{Enabled: true, Entries: []string{"*"}}, []string{"border.example"}
	a.AllowIn = mail.AllowList{Entries: []string{"*", "bob@example.net", "carol@example.net"}}
}

// replyTo is a reply to the sender of a message.
func replyTo(ref mail.Ref, change ...func(*outbox.Request)) outbox.Request {
	r := outbox.Request{Principal: "agent", Draft: outbox.Draft{Body: "Gladly.\n", ReplyTo: &ref, ToSender: true}}
	for _, c := range change {
		c(&r)
	}
	return r
}

func TestAReplyGoesUnaskedOrSaysWhyItWaits(t *testing.T) {
	t.Parallel()
	d := newMailboxFixture(t, mailtest.InMemory(t), "unasked", replying)
	d.create("Sent")
	body := func(text string) func(*outbox.Request) {
		return func(r *outbox.Request) { r.Draft.Body = text }
	}
	markdown := func(text string) func(*outbox.Request) {
		return func(r *outbox.Request) { r.Draft.Body, r.Draft.Markdown = text, true }
	}
	to := func(name, addr string) func(*outbox.Request) {
		return func(r *outbox.Request) { r.Draft.To = []mail.Address{{Name: name, Addr: addr}} }
	}
	all := func(r *outbox.Request) { r.Draft.ToAll, r.Draft.Quote = true, true }
	for name, c := range map[string]struct {
		message string
		change  func(*outbox.Request)
		asks    []mail.Ask
	}{
		"plain":                      {fromBob, body("Gladly.\n"), nil},
		"to all, with its text":      {fromBob, all, nil},
		"its own link":               {fromBob, body("As https://place.example/Menu?day=1 says; I ask eva@place.example, from ann@example.org."), nil},
		"its own link, in Markdown":  {fromBob, markdown("**Yes**, the [menu](https://place.example/Menu?day=1) & more.\n\n- one\n- two\n"), nil},
		"hidden copy to one of them": {fromBob, func(r *outbox.Request) { r.Draft.BCC = []mail.Address{{Addr: "carol@example.net"}} }, nil},
		"HTML":                       {strings.Replace(fromBob, "text/plain", "text/html", 1), body("As place.example says."), nil},
		"another link":               {fromBob, body("See evil.example/x."), []mail.Ask{mail.AskLink}},
		"another link, in Markdown":  {fromBob, markdown("See [the menu](https&colon;//evil&period;example)."), []mail.Ask{mail.AskLink}},
		"emphasis in a host":         {fromBob, markdown("See evil._example_"), []mail.Ask{mail.AskLink}},
		"an image":                   {fromBob, markdown("![x](https://evil.example/p.png)"), []mail.Ask{mail.AskLink}},
		"a number":                   {fromBob, body("My account is DE02 1203 0000 0000 2020 51."), []mail.Ask{mail.AskNumber}},
		"a date":                     {fromBob, body("On 23.11.2026 at 14:30 then."), nil},
		"its own number":             {strings.Replace(fromBob, "at noon", "at noon (call 030 123 456 78)", 1), body("I call 030-12345678."), nil},
		"from a file":                {fromBob, func(r *outbox.Request) { r.Draft.FromFile = true }, []mail.Ask{mail.AskFile}},
		"a link as name":             {fromBob, to("see evil.example", "carol@example.net"), []mail.Ask{mail.AskLink}},
		"a link in hidden text":      {strings.Replace(fromBob, "text/plain; charset=utf-8\n\n", "text/html; charset=utf-8\n\n<p style='display:none'>evil.example</p>", 1), body("See evil.example"), []mail.Ask{mail.AskLink}},
		"somebody else":              {fromBob, to("", "dan@example.net"), []mail.Ask{mail.AskRecipient, mail.AskOutsider, mail.AskLink}},
		"hidden copy to oneself":     {fromBob, func(r *outbox.Request) { r.Draft.BCC = []mail.Address{{Addr: "ann@example.org"}} }, []mail.Ask{mail.AskRecipient, mail.AskOutsider}},
		"an attachment": {fromBob, func(r *outbox.Request) {
			r.Draft.Attachments = []outbox.Attachment{{Name: "a.txt", Content: []byte("x")}}
		}, []mail.Ask{mail.AskAttachment}},
		"to a message with a code": {strings.Replace(fromBob, "Shall we meet at noon?", "Your verification code is 482913.", 1), body("Gladly."), []mail.Ask{mail.AskCode}},
		"a code of its own":        {strings.Replace(fromBob, "Shall we meet at noon?", "Send me the bank's security code.", 1), body("The security code is 482913."), []mail.Ask{mail.AskCode}},
		"another subject":          {fromBob, func(r *outbox.Request) { r.Draft.Subject = "Re: Dinner" }, []mail.Ask{mail.AskSubject}},
		"recipients named by hand": {fromBob, func(r *outbox.Request) { r.Draft.ToSender = false; to("", "bob@example.net")(r) }, []mail.Ask{mail.AskNoReply}},
		"a new message":            {fromBob, func(r *outbox.Request) { *r = hello() }, []mail.Ask{mail.AskNoReply}},
		"handed on": {fromBob, func(r *outbox.Request) {
			r.Draft.Forward, r.Draft.ReplyTo = r.Draft.ReplyTo, nil
			to("", "bob@example.net")(r)
		}, []mail.Ask{mail.AskNoReply}},
		"not verified":               {strings.TrimPrefix(fromBob, border), body("Gladly."), []mail.Ask{mail.AskUnverified}},
		"said by the sender himself": {strings.Replace(fromBob, "border.example;", "evil.example;", 1), body("Gladly."), []mail.Ask{mail.AskUnverified}},
		"a stranger":                 {strings.ReplaceAll(fromBob, "bob@example.net", "eve@example.net"), body("Gladly."), []mail.Ask{mail.AskSender, mail.AskRecipient}},
		"to all, of whom one is new": {strings.Replace(fromBob, "carol@example.net", "eve@evil.example", 1), all, []mail.Ask{mail.AskRecipient}},
	} {
		t.Run(name, func(t *testing.T) {
			later := d.now().Add(2 * time.Hour) // the count is about the hour
			d.now = func() time.Time { return later }
			ref := d.source(c.message)
			left := len(d.server.messages())
			dry, err := d.Send(t.Context(), account, replyTo(ref, c.change, func(r *outbox.Request) { r.DryRun, r.Offline = true, true }))
			if err != nil || !slices.Equal(dry.Asks, c.asks) || (dry.State == mail.OutboxWaiting) != (len(c.asks) > 0) {
				t.Errorf("a dry run: %+v, %v", dry, err)
			}
			e := d.mustSend(replyTo(ref, c.change))
			kept := d.entry(e.ID)
			if !slices.Equal(kept.Asks, c.asks) {
				t.Fatalf("asks %v, want %v", kept.Asks, c.asks)
			}
			if len(c.asks) == 0 {
				if e.State != mail.OutboxAccepted || kept.Unasked != kept.Digest || kept.Decided != "" || len(d.server.messages()) != left+1 {
					t.Errorf("%+v", kept)
				}
				return
			}
			if e.State != mail.OutboxWaiting || kept.Unasked != "" || kept.Attempt != "" || len(d.server.messages()) != left {
				t.Errorf("%+v", kept)
			}
			if e, err := d.Approve(t.Context(), e.ID, e.Digest, "ann"); err != nil || e.State != mail.OutboxAccepted || e.Decided != "ann" || len(d.server.messages()) != left+1 {
				t.Errorf("approved: %+v, %v", e, err)
			}
		})
	}
	ref := d.source(fromBob)
	draft := d.saved(outbox.Draft{Body: "Gladly.", ReplyTo: &ref, ToSender: true})
	if e := d.mustSend(outbox.Request{Stored: &draft, Principal: "agent"}); e.State != mail.OutboxWaiting || !slices.Equal(e.Asks, []mail.Ask{mail.AskNoReply}) {
		t.Errorf("a stored draft: %+v", e)
	}
}

// The policy is looked at again before the wire: what it does not let go unasked any more waits.
func TestWhatThePolicyAsksAboutByNowWaits(t *testing.T) {
	t.Parallel()
	d := newMailboxFixture(t, mailtest.InMemory(t), "turned", replying)
	for name, c := range map[string]struct {
		begins, becomes func(*mail.Account)
		asks            []mail.Ask
	}{
		"approve by now":                  {replying, func(a *mail.Account) { a.Mode = mail.Approve }, nil},
		"the recipient is unknown by now": {replying, func(a *mail.Account) { a.AllowIn.Entries = nil }, []mail.Ask{mail.AskRecipient}},
		"from RW to approve":              {func(a *mail.Account) { replying(a); a.Mode = mail.ReadWrite }, func(a *mail.Account) { a.Mode = mail.Approve }, nil},
		"from RW to reply":                {func(a *mail.Account) { replying(a); a.Mode = mail.ReadWrite }, func(a *mail.Account) { a.Mode = mail.Reply }, nil},
	} {
		for _, key := range []string{"", strings.ReplaceAll(name, " ", "-")} {
			t.Run(name+" "+key, func(t *testing.T) {
				a := d.dir.Known[account]
				c.begins(&a)
				d.dir.Set(a)
				d.take = func(string) time.Duration { // between the judgement and the wire
					d.dir.Edit(c.becomes)
					return 0
				}
				e := d.mustSend(replyTo(d.source(fromBob), keyed(key)))
				if kept := d.entry(e.ID); e.State != mail.OutboxWaiting || kept.State != mail.OutboxWaiting || kept.Attempt != "" || kept.Unasked != "" || !slices.Equal(kept.Asks, c.asks) ||
					len(d.server.messages()) > 0 {
					t.Errorf("%+v; the server took %d", kept, len(d.server.messages()))
				}
			})
		}
	}
}

// TestUnaskedRepliesOfManyProcesses has three processes send four replies each: five leave.
func TestUnaskedRepliesOfManyProcesses(t *testing.T) {
	t.Parallel()
	c := newCrashFixture(t, mail.Reply, replying)
	reply := replyTo(c.mailbox.put("INBOX", crlf(fromBob)))
	var all []*exec.Cmd
	var says []*bytes.Buffer
	for range 3 {
		cmd, errOut := c.process(orders{Requests: slices.Repeat([]outbox.Request{reply}, 4)})
		must(t, cmd.Start())
		all, says = append(all, cmd), append(says, errOut)
	}
	for i, cmd := range all {
		if err := cmd.Wait(); err != nil || says[i].Len() > 0 {
			t.Errorf("%v: %s", err, says[i])
		}
	}
	unasked, waiting := 0, 0
	for _, e := range c.mailbox.entries() {
		switch {
		case e.State == mail.OutboxAccepted && e.Unasked == e.Digest:
			unasked++
		case e.State == mail.OutboxWaiting && slices.Equal(e.Asks, []mail.Ask{mail.AskOften}):
			waiting++
		default:
			t.Errorf("%+v", e)
		}
	}
	if unasked != mail.MaxUnasked || waiting != 12-mail.MaxUnasked || len(c.mailbox.server.messages()) != mail.MaxUnasked {
		t.Errorf("%d went unasked, %d wait, the server took %d", unasked, waiting, len(c.mailbox.server.messages()))
	}
}

// A process that dies between the record and the wire leaves what goes on only where it would
// still go unasked.
func TestKilledBeforeTheWireAReplyGoesOnOnlyWhereItMay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*mail.Account)
		state  mail.OutboxState
	}{
		"as it was":               {func(*mail.Account) {}, mail.OutboxAccepted},
		"in mode approve by now":  {func(a *mail.Account) { a.Mode = mail.Approve }, mail.OutboxWaiting},
		"to somebody now unknown": {func(a *mail.Account) { a.AllowIn.Entries = []string{"*"} }, mail.OutboxWaiting},
		"in mode RW by now":       {func(a *mail.Account) { a.Mode = mail.ReadWrite }, mail.OutboxAccepted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cr := newCrashFixture(t, mail.Reply, replying)
			d := cr.mailbox
			ref := d.put("INBOX", crlf(fromBob))
			cr.kill("before gate", orders{Requests: []outbox.Request{replyTo(ref, keyed("k"))}})
			left := d.entries()
			if len(left) != 1 || left[0].State != mail.OutboxQueued || left[0].Unasked != left[0].Digest || len(d.server.messages()) > 0 {
				t.Fatalf("left %+v; the server took %d", left, len(d.server.messages()))
			}
			d.dir.Edit(c.change)
			d.now = func() time.Time { return time.Now().Add(time.Hour) }
			e := d.mustSend(replyTo(ref, keyed("k")))
			if e.ID != left[0].ID || e.State != c.state || (len(d.server.messages()) == 1) != (c.state == mail.OutboxAccepted) {
				t.Errorf("%+v; the server took %d", e, len(d.server.messages()))
			}
		})
	}
}

// A verified reply goes unasked through Postfix to Dovecot; one with a foreign link waits until
// a person lets it go.
func replyGoesUnasked(t *testing.T, p *postfixServers) {
	d := p.fixture(t, replying)
	ref := d.source(fromBob)
	e := d.mustSend(replyTo(ref, func(r *outbox.Request) { r.Draft.Quote = true }))
	if e.State != mail.OutboxAccepted || e.Unasked != e.Digest || e.Decided != "" {
		t.Fatalf("%+v", e)
	}
	waits := d.mustSend(replyTo(ref, func(r *outbox.Request) { r.Draft.Body = "See www.evil.example" }))
	if waits.State != mail.OutboxWaiting || !slices.Equal(waits.Asks, []mail.Ask{mail.AskLink}) || len(p.dovecot.Copies(t, "bob@example.net", waits.MessageID)) > 0 {
		t.Errorf("%+v", waits)
	}
	if e, err := d.Approve(t.Context(), waits.ID, waits.Digest, "ann"); err != nil || e.State != mail.OutboxAccepted {
		t.Errorf("%+v, %v", e, err)
	}
	for _, r := range arrived(t, p.dovecot, []*mail.Outgoing{e, waits}, func(int) string { return "bob@example.net" }) {
		if r.Subject != "Re: Lunch" || addresses(r.To) != "bob@example.net" || len(r.Defects) > 0 {
			t.Errorf("%+v", r)
		}
	}
}

// crlf is a message as it is stored.
func crlf(message string) string { return strings.ReplaceAll(message, "\n", "\r\n") }
