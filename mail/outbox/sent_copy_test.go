package outbox_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/outbox"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
)

// desk is an outbox whose account has a mailbox on a real IMAP server.
type desk struct {
	*office
	box *mailtest.Box
}

func newDesk(t testing.TB, e mailtest.Endpoint, user string, change ...func(*mail.Account)) *desk {
	t.Helper()
	server := newSubmissionServer(t)
	b := mailtest.Open(t, e, user)
	o := newOffice(t, server, func(a *mail.Account) {
		a.IMAP, a.Username, a.SentCopy = b.Dir.Known[account].IMAP, user, mail.SentAuto
		for _, c := range change {
			c(a)
		}
	})
	o.dir.Password = servertest.Password
	return &desk{o, b}
}

// stored is a message as the server has it.
type stored struct {
	uid   uint32
	flags []imap.Flag
	date  time.Time
	raw   string
}

// In returns what a folder holds; nothing where there is no such folder.
func (d *desk) In(folder string) (out []stored) {
	d.t.Helper()
	if _, err := d.box.Admin.Select(d.box.In(folder), &imap.SelectOptions{ReadOnly: true}).Wait(); err != nil {
		return nil
	}
	data, err := d.box.Admin.Fetch(imap.SeqSet{{Start: 1, Stop: 0}}, &imap.FetchOptions{UID: true, Flags: true, InternalDate: true,
		BodySection: []*imap.FetchItemBodySection{{Peek: true}}}).Collect()
	if err != nil {
		return nil // an empty folder
	}
	for _, m := range data {
		out = append(out, stored{uint32(m.UID), m.Flags, m.InternalDate, string(m.FindBodySection(&imap.FetchItemBodySection{Peek: true}))})
	}
	return out
}

func (d *desk) create(folders ...string) {
	d.t.Helper()
	for _, f := range folders {
		if err := d.box.Admin.Create(d.box.In(f), nil).Wait(); err != nil && !strings.Contains(strings.ToLower(err.Error()), "exist") {
			d.t.Fatal(err)
		}
	}
}

func withBCC(r *outbox.Request) { r.Draft.BCC = []mail.Address{{Name: "Dan", Addr: "dan@example.net"}} }

func TestSentCopyIsFiledOnceWithItsBCC(t *testing.T) {
	for _, e := range mailtest.Endpoints(t) {
		t.Run(e.Name, func(t *testing.T) {
			d := newDesk(t, e, "sent")
			d.create("Sent")
			first := d.mustSend(hello(keyed("k"), withBCC))
			if first.State != mail.OutboxAccepted || first.Sent != mail.SentFiled || first.Reason != "" || first.Attempt != "" {
				t.Fatalf("entry %+v", first)
			}
			again := d.mustSend(hello(keyed("k"), withBCC))
			if !again.Replayed || again.Sent != mail.SentFiled {
				t.Errorf("again %+v", again)
			}
			got, wire := d.In("Sent"), d.server.messages()
			if len(got) != 1 || len(wire) != 1 {
				t.Fatalf("%d copies of %d messages", len(got), len(wire))
			}
			if want := "Bcc: Dan <dan@example.net>\r\n" + wire[0].raw; got[0].raw != want {
				t.Errorf("the copy is\n%s\nwant\n%s", got[0].raw, want)
			}
			if !slices.Contains(got[0].flags, imap.FlagSeen) || !got[0].date.Truncate(time.Second).Equal(first.Created.Truncate(time.Second)) {
				t.Errorf("flags %v, date %s, want %s", got[0].flags, got[0].date, first.Created)
			}
			if _, err := d.vault.OutgoingMessage(t.Context(), first.ID); !errors.Is(err, mail.ErrNoOutgoing) {
				t.Errorf("the bytes are still there: %v", err)
			}
		})
	}
}

func TestSentCopyIsNotFiledTwiceAfterALostRecord(t *testing.T) {
	_, e := mailtest.Dovecot(t, servertest.Config{})
	d := newDesk(t, e, "lost")
	store := &failingStore{OutboxStore: d.vault, change: func(o *mail.Outgoing) error {
		if o.Sent == mail.SentFiled {
			return errStore
		}
		return nil
	}}
	boxes := mailbox.New(mailbox.Options{Directory: d.dir})
	defer func() { _ = boxes.Close() }()
	b := outbox.New(outbox.Options{Directory: d.dir, Mailboxes: boxes, Store: store, Now: func() time.Time { return d.now() },
		Key: func(ctx context.Context) ([]byte, error) { return d.vault.Key(ctx, "outbox") }})
	sent, err := b.Send(t.Context(), account, hello(keyed("k")))
	if err != nil || sent.State != mail.OutboxAccepted {
		t.Fatalf("Send = %+v, %v", sent, err)
	}
	if kept := d.entry(sent.ID); kept.State != mail.OutboxAccepted || kept.Sent != mail.SentPending || len(d.In("Sent")) != 1 {
		t.Fatalf("kept %+v with %d copies", kept, len(d.In("Sent")))
	}
	// Whoever has the lease may still be at it; when it is over the copy is found.
	if e := d.mustSend(hello(keyed("k"))); e.Sent != mail.SentPending {
		t.Errorf("while it is held: %+v", e)
	}
	d.now = func() time.Time { return time.Now().Add(time.Hour) }
	if e := d.mustSend(hello(keyed("k"))); e.Sent != mail.SentFiled || len(d.In("Sent")) != 1 || len(d.server.messages()) != 1 {
		t.Errorf("afterwards: %+v with %d copies", e, len(d.In("Sent")))
	}
}

func TestSentCopyThatFailedIsMadeUpFor(t *testing.T) {
	_, e := mailtest.Dovecot(t, servertest.Config{})
	d := newDesk(t, e, "later")
	whole := d.dir.Known[account]
	broken := whole
	broken.IMAP.Port = 1
	d.dir.Set(broken)
	keyedOne := d.mustSend(hello(keyed("k")))
	other := d.mustSend(hello(func(r *outbox.Request) { r.Draft.Subject = "Other" }))
	third := d.mustSend(hello(func(r *outbox.Request) { r.Draft.Subject = "Third" }))
	for _, e := range []*mail.Outgoing{keyedOne, other, third} {
		if e.State != mail.OutboxAccepted || e.Sent != mail.SentFailed || e.Reason == "" || e.Attempt != "" {
			t.Fatalf("entry %+v", e)
		}
	}
	d.dir.Set(whole)
	if e := d.mustSend(hello(keyed("k"))); e.Sent != mail.SentFiled || e.Reason != "" {
		t.Errorf("asked again: %+v", e)
	}
	if e, err := d.Approve(t.Context(), third.ID, third.Digest, "ann"); err != nil || e.Sent != mail.SentFiled {
		t.Errorf("approved again: %+v, %v", e, err)
	}
	// The next message of the account takes the forgotten one along.
	d.mustSend(hello(func(r *outbox.Request) { r.Draft.Subject = "Next" }))
	if e := d.entry(other.ID); e.Sent != mail.SentFiled {
		t.Errorf("the other: %+v", e)
	}
	if copies, sent := len(d.In("Sent")), len(d.server.messages()); copies != 4 || sent != 4 {
		t.Errorf("%d copies of %d messages", copies, sent)
	}
}

func TestSentCopyLeftToProviderOrNotWanted(t *testing.T) {
	_, gmail := mailtest.Dovecot(t, servertest.Config{Capability: "IMAP4rev1 SASL-IR LITERAL+ UIDPLUS SPECIAL-USE X-GM-EXT-1"})
	_, plain := mailtest.Dovecot(t, servertest.Config{})
	pop := func(a *mail.Account) {
		a.Protocol, a.POP3 = mail.POP3, mail.Endpoint{Host: "127.0.0.1", Port: 1, Security: mail.Plaintext}
	}
	for _, c := range []struct {
		name   string
		e      mailtest.Endpoint
		change func(*mail.Account)
		want   mail.SentState
		copies int
	}{
		{"gmail by its capability", gmail, func(*mail.Account) {}, mail.SentProvider, 0},
		{"gmail, always", gmail, func(a *mail.Account) { a.SentCopy = mail.SentAlways }, mail.SentFiled, 1},
		{"default", plain, func(a *mail.Account) { a.SentCopy = "" }, mail.SentFiled, 1},
		{"never", plain, func(a *mail.Account) { a.SentCopy = mail.SentNever }, mail.SentNone, 0},
		{"POP3", plain, pop, mail.SentNone, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t, c.e, "who-"+strings.NewReplacer(" ", "", ",", "").Replace(c.name), c.change)
			sent := d.mustSend(hello(keyed("k")))
			if sent.State != mail.OutboxAccepted || sent.Sent != c.want || len(d.In("Sent")) != c.copies {
				t.Errorf("entry %+v with %d copies", sent, len(d.In("Sent")))
			}
			if _, err := d.vault.OutgoingMessage(t.Context(), sent.ID); !errors.Is(err, mail.ErrNoOutgoing) {
				t.Errorf("the bytes are still there: %v", err)
			}
		})
	}
}

func TestSentFolderIsFoundByUseThenByName(t *testing.T) {
	memory := mailtest.InMemory(t)
	for _, c := range []struct {
		name, want string
		folders    []string
	}{
		{"english", "Sent Items", []string{"Archive", "Sent Items"}},
		{"another language", "Gesendete Elemente", []string{"Entwürfe", "Gesendete Elemente"}},
		{"case", "SENT", []string{"SENT"}},
		{"below INBOX", "INBOX/Sent", []string{"INBOX/Sent"}},
		{"none of these", "", []string{"Not sent", "Archive/Sent"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t, memory, "folders "+c.name)
			d.create(c.folders...)
			sent := d.mustSend(hello())
			if c.want == "" {
				if sent.Sent != mail.SentNone {
					t.Errorf("entry %+v", sent)
				}
				return
			}
			if sent.Sent != mail.SentFiled || len(d.In(c.want)) != 1 {
				t.Errorf("entry %+v with %d copies", sent, len(d.In(c.want)))
			}
		})
	}
	// Dovecot says which folder it is, whatever another is called.
	_, e := mailtest.Dovecot(t, servertest.Config{})
	d := newDesk(t, e, "use")
	d.create("Gesendet")
	if sent := d.mustSend(hello()); sent.Sent != mail.SentFiled || len(d.In("Sent")) != 1 || len(d.In("Gesendet")) != 0 {
		t.Errorf("entry %+v", sent)
	}
}

func TestDraftIsSavedForAPerson(t *testing.T) {
	for _, e := range mailtest.Endpoints(t) {
		t.Run(e.Name, func(t *testing.T) {
			d := newDesk(t, e, "drafts", func(a *mail.Account) { a.AllowOut.Entries = nil })
			d.create("Drafts")
			saved, err := d.SaveDraft(t.Context(), account, outbox.Draft{To: []mail.Address{{Addr: "anybody@example.com"}}, BCC: []mail.Address{{Addr: "dan@example.net"}}, Subject: "Later", Body: "Text"})
			if err != nil {
				t.Fatal(err)
			}
			got := d.In("Drafts")
			if len(got) != 1 || !slices.Contains(got[0].flags, imap.FlagDraft) || !slices.Contains(got[0].flags, imap.FlagSeen) {
				t.Fatalf("drafts %+v", got)
			}
			for _, want := range []string{"Bcc: dan@example.net\r\n", "To: anybody@example.com\r\n", "Message-ID: <" + saved.MessageID + ">\r\n"} {
				if !strings.Contains(got[0].raw, want) {
					t.Errorf("the draft has no %q:\n%s", want, got[0].raw)
				}
			}
			if saved.Folder != d.box.In("Drafts") || saved.Ref.UID != got[0].uid || saved.Size != int64(len(got[0].raw)) {
				t.Errorf("saved %+v", saved)
			}
			if saved.Hidden {
				t.Error("an account that shows everything hides a draft")
			}
			a := d.dir.Known[account]
			a.SubjectPattern, a.AllowIn = "^ticket", mail.AllowList{Enabled: true}
			d.dir.Set(a)
			for subject, hidden := range map[string]bool{"ticket 7": false, "lunch": true} {
				if saved, err := d.SaveDraft(t.Context(), account, outbox.Draft{Subject: subject, Body: "x"}); err != nil || saved.Hidden != hidden {
					t.Errorf("%s: %+v, %v", subject, saved, err)
				}
			}
			d.box.Remove("Drafts", got[0].uid+1, got[0].uid+2)
			if saved, err = d.SaveDraft(t.Context(), account, outbox.Draft{}); err != nil || len(d.In("Drafts")) != 2 {
				t.Errorf("an empty draft: %+v, %v", saved, err)
			}
			if len(d.server.commands()) > 0 || len(d.entries()) > 0 {
				t.Error("a draft went further than its folder")
			}
		})
	}
}

func TestDraftIsRefused(t *testing.T) {
	memory := mailtest.InMemory(t)
	for name, c := range map[string]struct {
		change func(*mail.Account)
		draft  outbox.Draft
		kind   mail.Kind
	}{
		"read-only":       {func(a *mail.Account) { a.Mode = mail.ReadOnly }, outbox.Draft{}, mail.KindReadOnly},
		"no folder":       {nil, outbox.Draft{}, mail.KindNotFound},
		"no address":      {nil, outbox.Draft{To: []mail.Address{{Addr: "bob"}}}, mail.KindInvalid},
		"injection":       {nil, outbox.Draft{Subject: "a\r\nb"}, mail.KindInvalid},
		"another account": {nil, outbox.Draft{ReplyTo: &mail.Ref{Protocol: mail.IMAP, Account: "other", Folder: "INBOX", UID: 1}}, mail.KindInvalid},
		"POP3": {func(a *mail.Account) {
			a.Protocol, a.POP3 = mail.POP3, mail.Endpoint{Host: "127.0.0.1", Port: 1, Security: mail.Plaintext}
		}, outbox.Draft{}, mail.KindUnsupported},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, memory, "refused "+name, func(a *mail.Account) {
				if c.change != nil {
					c.change(a)
				}
			})
			if saved, err := d.SaveDraft(t.Context(), account, c.draft); saved != nil || kind(err) != c.kind {
				t.Errorf("SaveDraft = %+v, %v", saved, err)
			}
		})
	}
}

func TestReplyIsThreadedAndNeedsAVisibleMessage(t *testing.T) {
	for _, e := range mailtest.Endpoints(t) {
		t.Run(e.Name, func(t *testing.T) {
			d := newDesk(t, e, "reply", func(a *mail.Account) { a.AllowIn = mail.AllowList{Enabled: true, Entries: []string{"bob@example.org"}} })
			uids := d.box.Add("INBOX", mailtest.Letter{Subject: "AW: Figures", Extra: "Message-ID: <two@example.org>\r\nReferences: <one@example.org>\r\n", Body: "x\r\n"},
				mailtest.Letter{From: "Eve <eve@example.com>", Subject: "Secret", Extra: "Message-ID: <secret@example.com>\r\n", Body: "x\r\n"})
			reply := func(uid uint32, subject string) outbox.Request {
				return hello(func(r *outbox.Request) {
					ref := d.box.Ref("INBOX", uid)
					r.Draft.ReplyTo, r.Draft.Subject = &ref, subject
				})
			}
			if e := d.mustSend(reply(uids[0], "")); e.Subject != "Re: Figures" {
				t.Errorf("subject %q", e.Subject)
			}
			d.mustSend(reply(uids[0], "Something else"))
			got := d.server.messages()
			if len(got) != 2 {
				t.Fatalf("the server has %d", len(got))
			}
			for i, subject := range []string{"Re: Figures", "Something else"} {
				for _, want := range []string{"Subject: " + subject + "\r\n", "In-Reply-To: <two@example.org>\r\n", "References: <one@example.org> <two@example.org>\r\n"} {
					if !strings.Contains(got[i].raw, want) {
						t.Errorf("no %q in\n%s", want, got[i].raw)
					}
				}
			}
			_, hidden := d.Send(t.Context(), account, reply(uids[1], ""))
			_, missing := d.Send(t.Context(), account, reply(uids[1]+100, ""))
			var h, m *mail.Error
			if !errors.As(hidden, &h) || !errors.As(missing, &m) || h.Kind != mail.KindNotFound || h.Message != m.Message || h.Advice != m.Advice || h.Stage != m.Stage || hidden.Error() != missing.Error() {
				t.Errorf("hidden: %v; missing: %v", hidden, missing)
			}
			if len(d.server.messages()) != 2 || len(d.entries()) != 2 {
				t.Error("something was sent for a message that is not there")
			}
		})
	}
}

// What a reply answers is read and answered once the reply was sent, at once or when a
// person approved it; that this failed is told, and the reply was sent all the same.
func TestWhatAReplyAnswersIsMarked(t *testing.T) {
	for _, e := range mailtest.Endpoints(t) {
		t.Run(e.Name, func(t *testing.T) {
			d := newDesk(t, e, "answered")
			uids := d.box.Add("INBOX", mailtest.Letter{Subject: "one"}, mailtest.Letter{Subject: "two"}, mailtest.Letter{Subject: "three"}, mailtest.Letter{Subject: "four"})
			boxes := mailbox.New(mailbox.Options{Directory: d.dir})
			defer func() { _ = boxes.Close() }()
			page, err := boxes.List(t.Context(), account, mailbox.ListQuery{})
			if err != nil {
				t.Fatal(err)
			}
			reply := func(i int) outbox.Request {
				return hello(func(r *outbox.Request) {
					ref := d.box.Ref("INBOX", uids[i])
					ref.UIDValidity = page.UIDValidity
					r.Draft.ReplyTo = &ref
				})
			}
			marked := func(want ...bool) {
				t.Helper()
				for i, m := range d.In("INBOX") {
					if got := slices.Contains(m.flags, imap.FlagSeen) && slices.Contains(m.flags, imap.FlagAnswered); got != want[i] {
						t.Errorf("message %d has the flags %v", i, m.flags)
					}
				}
			}
			if e := d.mustSend(reply(0)); e.Unmarked != nil {
				t.Errorf("%+v", e.Unmarked)
			}
			dry := reply(1)
			dry.DryRun = true
			if _, err := d.Send(t.Context(), account, dry); err != nil {
				t.Error(err)
			}
			marked(true, false, false, false)

			a := d.dir.Known[account]
			a.Mode = mail.Approve
			d.dir.Set(a)
			waiting, gone := d.mustSend(reply(2)), d.mustSend(reply(3))
			marked(true, false, false, false)
			if e, err := d.Approve(t.Context(), waiting.ID, waiting.Digest, "ann"); err != nil || e.Unmarked != nil {
				t.Errorf("%+v, %v", e, err)
			}
			marked(true, false, true, false)
			d.box.Remove("INBOX", uids[3])
			sent, err := d.Approve(t.Context(), gone.ID, gone.Digest, "ann")
			if err != nil || sent.State != mail.OutboxAccepted || sent.Unmarked == nil || sent.Unmarked.Kind != mail.KindNotFound {
				t.Errorf("%+v, %v", sent, err)
			}
		})
	}
}

func TestReplyByPOP3(t *testing.T) {
	s, e := mailtest.Dovecot(t, servertest.Config{})
	d := newDesk(t, e, "popreply", func(a *mail.Account) {
		a.Protocol, a.POP3 = mail.POP3, mail.Endpoint{Host: s.Host, Port: s.POP3Port, Security: mail.Plaintext}
		a.AllowIn = mail.AllowList{Enabled: true, Entries: []string{"bob@example.org"}}
	})
	d.box.Add("INBOX", mailtest.Letter{Subject: "Figures", Extra: "Message-ID: <one@example.org>\r\n", Body: "x\r\n"},
		mailtest.Letter{From: "Eve <eve@example.com>", Subject: "Secret", Extra: "Message-ID: <secret@example.com>\r\n", Body: "x\r\n"})
	boxes := mailbox.New(mailbox.Options{Directory: d.dir})
	defer func() { _ = boxes.Close() }()
	page, err := boxes.List(t.Context(), account, mailbox.ListQuery{})
	if err != nil || len(page.Messages) != 1 {
		t.Fatalf("List = %+v, %v", page, err)
	}
	ref := page.Messages[0].Ref
	sent := d.mustSend(hello(func(r *outbox.Request) { r.Draft.ReplyTo, r.Draft.Subject = &ref, "" }))
	if sent.Subject != "Re: Figures" || sent.Sent != mail.SentNone || !strings.Contains(d.server.messages()[0].raw, "In-Reply-To: <one@example.org>\r\n") {
		t.Errorf("entry %+v", sent)
	}
	ref.UIDL = "nothing"
	if _, err := d.Send(t.Context(), account, hello(func(r *outbox.Request) { r.Draft.ReplyTo = &ref })); kind(err) != mail.KindNotFound {
		t.Errorf("a missing message: %v", err)
	}
}

func TestAnswerToARepeatedReplyNeedsTheMessageNoLonger(t *testing.T) {
	_, e := mailtest.Dovecot(t, servertest.Config{})
	d := newDesk(t, e, "moved")
	uids := d.box.Add("INBOX", mailtest.Letter{Subject: "Figures", Extra: "Message-ID: <one@example.org>\r\n", Body: "x\r\n"})
	ref := d.box.Ref("INBOX", uids[0])
	request := hello(keyed("k"), func(r *outbox.Request) { r.Draft.ReplyTo = &ref })
	d.mustSend(request)
	d.box.Remove("INBOX", uids...)
	if e := d.mustSend(request); !e.Replayed || e.State != mail.OutboxAccepted || len(d.server.messages()) != 1 {
		t.Errorf("again %+v", e)
	}
}
