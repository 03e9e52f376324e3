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

// mailboxFixture is an outbox whose account has a mailbox on a real IMAP server.
type mailboxFixture struct {
	*outboxFixture
	box *mailtest.Box
}

func newMailboxFixture(t testing.TB, e mailtest.Endpoint, user string, change ...func(*mail.Account)) *mailboxFixture {
	t.Helper()
	server := newFakeSubmission(t)
	b := mailtest.Open(t, e, user)
	o := newFixture(t, server, func(a *mail.Account) {
		a.IMAP, a.Username, a.SentCopy = b.Dir.Known[account].IMAP, b.Dir.Known[account].Username, mail.SentAuto
		for _, c := range change {
			c(a)
		}
	})
	o.dir.Password = servertest.Password
	return &mailboxFixture{o, b}
}

// storedMessage is a message as the server has it.
type storedMessage struct {
	uid   uint32
	flags []imap.Flag
	date  time.Time
	raw   string
}

// In returns what a folder holds; nothing where there is no such folder.
func (d *mailboxFixture) In(folder string) (out []storedMessage) {
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
		out = append(out, storedMessage{uint32(m.UID), m.Flags, m.InternalDate, string(m.FindBodySection(&imap.FetchItemBodySection{Peek: true}))})
	}
	return out
}

func (d *mailboxFixture) create(folders ...string) {
	d.t.Helper()
	for _, f := range folders {
		if err := d.box.Admin.Create(d.box.In(f), nil).Wait(); err != nil && !strings.Contains(strings.ToLower(err.Error()), "exist") {
			d.t.Fatal(err)
		}
	}
}

func withBCC(r *outbox.Request) { r.Draft.BCC = []mail.Address{{Name: "Dan", Addr: "dan@example.net"}} }

func TestSentCopyIsFiledOnceWithItsBCC(t *testing.T) {
	t.Parallel()
	for _, e := range mailtest.SharedEndpoints(t) {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			d := newMailboxFixture(t, e, "sent")
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
	t.Parallel()
	_, e := mailtest.Shared(t, servertest.Config{})
	d := newMailboxFixture(t, e, "lost")
	store := &fakeFailingStore{OutboxStore: d.vault, change: func(o *mail.Outgoing) error {
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
	t.Parallel()
	_, e := mailtest.Shared(t, servertest.Config{})
	d := newMailboxFixture(t, e, "later")
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
	t.Parallel()
	_, gmail := mailtest.Shared(t, servertest.Config{Capability: "IMAP4rev1 SASL-IR LITERAL+ UIDPLUS SPECIAL-USE X-GM-EXT-1"})
	for wanted, want := range map[mail.SentCopy]mail.SentState{mail.SentAuto: mail.SentProvider, mail.SentAlways: mail.SentFiled, mail.SentNever: mail.SentNone} {
		d := newMailboxFixture(t, gmail, string(wanted), func(a *mail.Account) { a.SentCopy = wanted })
		sent := d.mustSend(hello(keyed("k")))
		if sent.State != mail.OutboxAccepted || sent.Sent != want || len(d.In("Sent")) == 1 != (want == mail.SentFiled) {
			t.Errorf("entry %+v with %d copies", sent, len(d.In("Sent")))
		}
		if _, err := d.vault.OutgoingMessage(t.Context(), sent.ID); !errors.Is(err, mail.ErrNoOutgoing) {
			t.Errorf("the bytes are still there: %v", err)
		}
	}
}

func TestSentFolderIsFoundByUseThenByName(t *testing.T) {
	t.Parallel()
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
			d := newMailboxFixture(t, memory, "folders "+c.name)
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
	_, e := mailtest.Shared(t, servertest.Config{})
	d := newMailboxFixture(t, e, "use")
	d.create("Gesendet")
	if sent := d.mustSend(hello()); sent.Sent != mail.SentFiled || len(d.In("Sent")) != 1 || len(d.In("Gesendet")) != 0 {
		t.Errorf("entry %+v", sent)
	}
}

func TestDraftIsSavedForAPerson(t *testing.T) {
	t.Parallel()
	_, e := mailtest.Shared(t, servertest.Config{})
	d := newMailboxFixture(t, e, "drafts", func(a *mail.Account) { a.Mode, a.AllowOut.Entries = mail.Draft, nil })
	d.create("Drafts")
	saved, err := d.SaveDraft(t.Context(), account, outbox.Draft{To: []mail.Address{{Addr: "anybody@example.com"}}, BCC: []mail.Address{{Addr: "dan@example.net"}}, Subject: "Later", Body: "Text"})
	must(t, err)
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
	d.dir.Edit(func(a *mail.Account) { a.SubjectPattern, a.AllowIn = "^ticket", mail.AllowList{Enabled: true} })
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
}

func TestDraftIsRefused(t *testing.T) {
	t.Parallel()
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
			d := newMailboxFixture(t, memory, "refused "+name, func(a *mail.Account) {
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

// What a reply answers is read and answered once the reply was sent, at once or when a
// person approved it; that this failed is told, and the reply was sent all the same.
func TestWhatAReplyAnswersIsMarked(t *testing.T) {
	t.Parallel()
	_, e := mailtest.Shared(t, servertest.Config{})
	d := newMailboxFixture(t, e, "answered")
	uids := d.box.Add("INBOX", mailtest.Letter{Subject: "one"}, mailtest.Letter{Subject: "two"}, mailtest.Letter{Subject: "three"}, mailtest.Letter{Subject: "four"})
	boxes := mailbox.New(mailbox.Options{Directory: d.dir})
	defer func() { _ = boxes.Close() }()
	page, err := boxes.List(t.Context(), account, mailbox.ListQuery{})
	must(t, err)
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
	must(t, second(d.Send(t.Context(), account, dry)))
	marked(true, false, false, false)

	d.dir.Edit(func(a *mail.Account) { a.Mode = mail.Approve })
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
}

func TestReplyByPOP3(t *testing.T) {
	t.Parallel()
	s, e := mailtest.Shared(t, servertest.Config{})
	d := newMailboxFixture(t, e, "popreply", func(a *mail.Account) {
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
	mailtest.WantKind(t, second(d.Send(t.Context(), account, hello(func(r *outbox.Request) { r.Draft.ReplyTo = &ref }))), mail.KindNotFound)
}
