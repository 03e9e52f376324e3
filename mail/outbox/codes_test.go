package outbox_test

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/outbox"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
)

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
		if err != nil {
			t.Fatal(err)
		}
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
					_, err := d.AppendToDraft(t.Context(), asDraft(source), outbox.Draft{Body: offers})
					mailtest.WantKind(t, err, mail.KindReadOnly)
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
				if err != nil {
					t.Fatal(err)
				}
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
