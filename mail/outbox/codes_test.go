package outbox_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/outbox"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
)

// What carries a code or a link that logs in waits also in an account that sends unasked. The
// person sees it, the agent does not.
func TestWhatCarriesACodeWaits(t *testing.T) {
	const code, token = "482913", "Zk3x9QpLm2Vt7RbY4nWc"
	coded := "From: Bank <no-reply@bank.example>\nTo: ann@example.org\nSubject: " + code + " is your verification code\nMessage-ID: <1@bank.example>\nDate: " + time.Now().Format(time.RFC1123Z) +
		"\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain\n\nYour verification code is " + code + ".\nOr https://bank.example/login?token=" + token +
		"\n--b\nContent-Type: text/plain; name=\"" + code + ".txt\"\nContent-Disposition: attachment; filename=\"" + code + ".txt\"\n\nThe code is " + code + "\n--b--\n"
	honest := strings.NewReplacer(code+" is your verification code", "The invoice", "Your verification code is "+code, "It is 482 913 euros", "login?token="+token, "invoices", code, "invoice").Replace(coded)
	d := newDesk(t, mailtest.InMemory(t), "codes", func(a *mail.Account) {
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
		if strings.Contains(s.Subject, code) {
			t.Errorf("a draft tells %q", s.Subject)
		}
		return outbox.Request{Principal: "agent", Stored: &s.Ref}
	}
	for name, request := range map[string]func(ref mail.Ref) outbox.Request{
		"answered": func(ref mail.Ref) outbox.Request { return replyTo(ref) },
		"quoted": func(ref mail.Ref) outbox.Request {
			return replyTo(ref, func(r *outbox.Request) { r.Draft.Quote = true })
		},
		"answered by id": func(ref mail.Ref) outbox.Request {
			return outbox.Request{Principal: "agent", Draft: outbox.Draft{To: to, Body: "x", ReplyTo: &ref}}
		},
		"handed on": func(ref mail.Ref) outbox.Request {
			return outbox.Request{Principal: "agent", Draft: outbox.Draft{To: to, Forward: &ref}}
		},
		"handed on whole": func(ref mail.Ref) outbox.Request {
			return outbox.Request{Principal: "agent", Draft: outbox.Draft{To: to, Forward: &ref, Whole: true, Subject: "Look"}}
		},
		"a draft": func(ref mail.Ref) outbox.Request { return saved(outbox.Draft{To: to, Forward: &ref}) },
		"a draft with it": func(ref mail.Ref) outbox.Request {
			return saved(outbox.Draft{To: to, Forward: &ref, Whole: true, Subject: "Look"})
		},
		"a draft that quotes": func(ref mail.Ref) outbox.Request {
			return saved(outbox.Draft{ReplyTo: &ref, ToSender: true, Quote: true, Body: "x"})
		},
	} {
		for _, source := range []string{coded, honest} {
			carries := source == coded
			t.Run(fmt.Sprintf("%s %v", name, carries), func(t *testing.T) {
				left := len(d.server.messages())
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
				if whole := fmt.Sprint(shown.Subject, shown.Body, shown.Files); !strings.Contains(whole, code) && name != "handed on whole" && name != "a draft with it" {
					t.Errorf("a person sees %s", whole)
				}
				shown.Mask()
				if said := fmt.Sprintf("%v %s %s %v", shown.Outgoing, shown.Body, shown.HTML, shown.Files); strings.Contains(said, code) || strings.Contains(said, token) {
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
