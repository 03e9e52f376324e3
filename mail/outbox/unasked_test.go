package outbox_test

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"

	"github.com/postern-mail/postern/internal/testmain"
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
	for _, c := range testmain.Table[struct{ Name, Asks, Old, New, Draft string }](t, "testdata/cases/unasked.txt") {
		asks := slices.DeleteFunc(strings.Split(c.Asks, ","), func(ask string) bool { return ask == "" })
		asked := func(list []mail.Ask) bool { return fmt.Sprint(list) == fmt.Sprint(asks) }
		t.Run(c.Name, func(t *testing.T) {
			change := func(r *outbox.Request) {
				switch c.Name {
				case "a new message":
					*r = hello()
					return
				case "handed on":
					r.Draft.Forward, r.Draft.ReplyTo = r.Draft.ReplyTo, nil
				}
				must(t, json.Unmarshal([]byte(c.Draft), &r.Draft))
			}
			later := d.now().Add(2 * time.Hour) // the count is about the hour
			d.now = func() time.Time { return later }
			ref := d.source(strings.ReplaceAll(fromBob, cmp.Or(c.Old, "\x00"), c.New))
			left := len(d.server.messages())
			dry, err := d.Foresee(t.Context(), account, replyTo(ref, change), true)
			if err != nil || !asked(dry.Asks) || dry.Waits() != (len(asks) > 0) {
				t.Errorf("a dry run: %+v, %v", dry, err)
			}
			e := d.mustSend(replyTo(ref, change))
			kept := d.entry(e.ID)
			if !asked(kept.Asks) {
				t.Fatalf("asks %v, want %v", kept.Asks, asks)
			}
			if len(asks) == 0 {
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
		"from RW to reply":                {func(a *mail.Account) { replying(a); a.Mode = mail.ReadWrite }, func(a *mail.Account) { a.Mode = mail.Reply }, []mail.Ask{mail.AskNoReply}},
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

// What carries a code or a link that logs in waits also in an account that sends unasked. The
// person sees it, the agent does not.
func TestWhatCarriesACodeWaits(t *testing.T) {
	t.Parallel()
	const code, token = "482913", "Zk3x9QpLm2Vt7RbY4nWc"
	coded := "From: Bank " + code + " <no-reply@bank.example>\nTo: ann@example.org\nSubject: " + code + " is your verification code\nMessage-ID: <1@bank.example>\nDate: " + time.Now().Format(time.RFC1123Z) +
		"\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain\n\nYour verification code is " + code + ".\nOr https://bank.example/login?token=" + token +
		"\n--b\nContent-Type: text/plain; name=\"" + code + ".txt\"\nContent-Disposition: attachment; filename=\"" + code + ".txt\"\n\nThe code is " + code + "\n--b--\n"
	honest := strings.NewReplacer(code+" is your verification code", "The invoice", "Your verification code is "+code, "It is 482 913 euros", "login?token="+token, "invoices", code, "invoice").Replace(coded)
	d := newMailboxFixture(t, mailtest.InMemory(t), "codes", func(a *mail.Account) {
		a.Mode, a.AllowOut = mail.ReadWrite, mail.AllowList{Enabled: true, Entries: []string{"*"}}
	})
	d.create("Sent")
	d.create("Drafts")
	to := []mail.Address{{Addr: "bob@example.net"}}
	saved := func(draft outbox.Draft) outbox.Request {
		s, err := d.SaveDraft(t.Context(), account, draft)
		must(t, err)
		return outbox.Request{Principal: "agent", Stored: &s.Ref}
	}
	// Beside such words a code is not found, and among all numbers it would be told.
	const offers, guesses = "Here is our discount code: the order code is 4711, the voucher code 4712, the promo code 4713.", "482911 482912 482914"
	var source string
	asDraft := func(source string) mail.Ref { // of a mail program
		return d.put("Drafts", strings.NewReplacer("no-reply@bank.example", "ann@example.org", "ann@example.org", "bob@example.net", "1@bank", rand.Text()+"@bank", "\n", "\r\n").Replace(source), imap.FlagDraft)
	}
	for name, request := range map[string]func(ref mail.Ref) outbox.Request{
		"answered": func(ref mail.Ref) outbox.Request { return replyTo(ref) },
		"handed on whole": func(ref mail.Ref) outbox.Request {
			return outbox.Request{Principal: "agent", Draft: outbox.Draft{To: to, Forward: &ref, Whole: true, Subject: "Look"}}
		},
		"quoted among other words": func(ref mail.Ref) outbox.Request {
			return replyTo(ref, func(r *outbox.Request) { r.Draft.Quote, r.Draft.Body = true, offers })
		},
		"handed on among other words": func(ref mail.Ref) outbox.Request {
			return outbox.Request{Principal: "agent", Draft: outbox.Draft{To: to, Forward: &ref, Body: offers}}
		},
		"answered among other words": func(ref mail.Ref) outbox.Request {
			return outbox.Request{Principal: "agent", Draft: outbox.Draft{To: to, ReplyTo: &ref, Body: offers}}
		},
		"quoted below every number": func(ref mail.Ref) outbox.Request {
			return replyTo(ref, func(r *outbox.Request) { r.Draft.Quote, r.Draft.Subject, r.Draft.Body = true, guesses, guesses })
		},
		"a person's draft": func(mail.Ref) outbox.Request {
			stored := asDraft(source)
			return outbox.Request{Principal: "agent", Stored: &stored}
		},
		"as a file of it": func(mail.Ref) outbox.Request {
			return saved(outbox.Draft{To: to, Body: "See below.", FromMail: true, Attachments: []outbox.Attachment{{Name: "note.txt", Content: []byte(source)}}})
		},
		"a draft": func(ref mail.Ref) outbox.Request { return saved(outbox.Draft{To: to, Forward: &ref}) },
	} {
		for _, source = range []string{coded, honest} {
			carries := source == coded
			t.Run(fmt.Sprintf("%s %v", name, carries), func(t *testing.T) {
				left := len(d.server.messages())
				if carries && name == "a draft" {
					ref := d.source(source)
					for _, draft := range []outbox.Draft{{Forward: &ref, Body: offers}, {Forward: &ref, Whole: true}, {ReplyTo: &ref, ToSender: true, Quote: true}, {ReplyTo: &ref, Body: offers}} {
						_, err := d.SaveDraft(t.Context(), account, draft)
						if e := mailtest.WantKind(t, err, mail.KindReadOnly); e.Reason != "codes" {
							t.Errorf("%+v", e)
						}
					}
					mailtest.WantKind(t, second(d.AppendToDraft(t.Context(), asDraft(source), outbox.Draft{Body: offers})), mail.KindReadOnly)
					return
				}
				e := d.mustSend(request(d.source(source)))
				kept := d.entry(e.ID)
				if !carries {
					if e.State != mail.OutboxAccepted || len(d.server.messages()) != left+1 {
						t.Errorf("%+v", kept)
					}
					return
				}
				if e.State != mail.OutboxWaiting || !slices.Equal(kept.Asks, []mail.Ask{mail.AskCode}) || len(d.server.messages()) != left {
					t.Fatalf("%+v", kept)
				}
				shown, err := d.Show(t.Context(), e.ID)
				must(t, err)
				if said := fmt.Sprintf("%+v %+v", e, kept); strings.Contains(said, code) || strings.Contains(said, token) {
					t.Errorf("the entry tells it: %s", said)
				}
				if whole := fmt.Sprint(shown.Subject, shown.Body, shown.Files); !strings.Contains(whole, code) && name != "handed on whole" && name != "as a file of it" {
					t.Errorf("a person sees %s", whole)
				}
				shown.Mask()
				if said := fmt.Sprintf("%v %v %s %s %v", shown.Outgoing, shown.To, shown.Body, shown.HTML, shown.Files); strings.Contains(said, code) || strings.Contains(said, token) || shown.Body != "[code hidden]" || strings.Contains(name, "every") && shown.Subject != guesses {
					t.Errorf("the agent sees %s", said)
				}
			})
		}
	}
	// What the agent wrote itself, it knows.
	if e := d.mustSend(outbox.Request{Principal: "agent", Draft: outbox.Draft{To: to, Subject: "Door", Body: "The door code is 4711."}}); e.State != mail.OutboxAccepted {
		t.Errorf("%+v", e)
	}
}
