package outbox_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/outbox"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
	"github.com/postern-mail/postern/vault/vaulttest"
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
	must(t, second(d.Foresee(t.Context(), account, reply(1), false)))
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

// saved saves a draft in Drafts and returns its reference.
func (d *mailboxFixture) saved(draft outbox.Draft) mail.Ref {
	d.t.Helper()
	d.create("Drafts")
	s, err := d.SaveDraft(d.t.Context(), account, draft)
	must(d.t, err)
	return s.Ref
}

// TestLongLetterIsWrittenInPartsAndSentOnce writes a draft in parts on each server, with HTML
// and without, sends it, and has Python read what was sent.
func TestLongLetterIsWrittenInPartsAndSentOnce(t *testing.T) {
	t.Parallel()
	file := bytes.Repeat([]byte{0, 255, '\r', '\n', '.'}, 3000)
	part := "## Next\n\nA line of **words** that is longer than the lines of mail, so that it is sent as flowed text, and Ünïcödé.\n> a quote\n"
	for i, e := range mailtest.SharedEndpoints(t) {
		for _, markdown := range []bool{false, true}[min(i, 1):] { // both on the first
			t.Run(fmt.Sprint(e.Name, " ", markdown), func(t *testing.T) {
				t.Parallel()
				d := newMailboxFixture(t, e, fmt.Sprint("long", markdown))
				d.create("Sent", "Trash")
				ref := d.saved(outbox.Draft{To: []mail.Address{{Name: "Bob, Jr.", Addr: "bob@example.net"}}, BCC: []mail.Address{{Addr: "dan@example.net"}}, Subject: "A long lettér",
					Body: "Dear Bob,\n\n", Markdown: markdown, Attachments: []outbox.Attachment{{Name: "Übersicht.bin", Content: file}}})
				first := ref
				for range 3 {
					s, err := d.AppendToDraft(t.Context(), ref, outbox.Draft{Body: part})
					if err != nil || s.Left != nil || s.Ref == ref || len(d.In("Drafts")) != 1 {
						t.Fatalf("%+v, %v; %d drafts", s, err, len(d.In("Drafts")))
					}
					if ref = s.Ref; s.Change == "" {
						t.Error("it cannot be taken back")
					}
				}
				if old := d.In("Trash"); len(old) != 3 || !slices.Contains(old[2].flags, imap.FlagDraft) {
					t.Errorf("%d drafts that were replaced", len(old))
				}
				mailtest.WantKind(t, second(d.AppendToDraft(t.Context(), first, outbox.Draft{Body: part})), mail.KindNotFound)
				if kept := d.In("Drafts")[0]; !slices.Contains(kept.flags, imap.FlagDraft) || !strings.Contains(kept.raw, "Bcc: dan@example.net\r\n") {
					t.Errorf("the draft is %v\n%.300s", kept.flags, kept.raw)
				}
				sent := d.mustSend(outbox.Request{Stored: &ref, Principal: "agent"})
				if sent.State != mail.OutboxAccepted || sent.Sent != mail.SentFiled || sent.DraftLeft != nil || sent.Draft != "" || len(d.In("Drafts")) != 0 {
					t.Fatalf("%+v; %d drafts", sent, len(d.In("Drafts")))
				}
				for _, principal := range []string{"agent", "another"} {
					again := d.mustSend(outbox.Request{Stored: &ref, Principal: principal})
					if !again.Replayed || again.ID != sent.ID || len(d.server.messages()) != 1 || d.taken != 1 {
						t.Errorf("again %+v; the server took %d, %d were charged", again, len(d.server.messages()), d.taken)
					}
				}
				wire := d.server.messages()[0]
				if strings.Contains(wire.raw, "dan@") || len(sent.Recipients) != 2 {
					t.Errorf("to %q:\n%.400s", sent.Recipients, wire.raw)
				}
				p := servertest.ReadPython(t, []byte(wire.raw))
				sum := fmt.Sprintf("%x", sha256.Sum256(file))
				if len(p.Defects) > 0 || p.Body != "Dear Bob,\n\n"+strings.Repeat(part, 3) || p.Subject != "A long lettér" || p.To[0] != [2]string{"Bob, Jr.", "bob@example.net"} ||
					len(p.Files) != 1 || p.Files[0].SHA256 != sum || p.Files[0].Name != "Übersicht.bin" {
					t.Errorf("Python reads %+v", p)
				}
				if markdown != (strings.Count(p.HTML, "<h2>Next</h2>") == 3) || markdown != strings.Contains(p.HTML, "<strong>words</strong>") {
					t.Errorf("HTML %q", p.HTML)
				}
				if copies := d.In("Sent"); len(copies) != 1 || !strings.HasSuffix(copies[0].raw, wire.raw) {
					t.Errorf("%d copies", len(copies))
				}
			})
		}
	}
}

// TestDraftCutOffAnywhere cuts the connection after every so many bytes while text is added to
// a draft. At no moment is a text lost, and the same call afterwards adds it once.
func TestDraftCutOffAnywhere(t *testing.T) {
	t.Parallel()
	s, e := mailtest.Shared(t, servertest.Config{})
	d := newMailboxFixture(t, e, "cut")
	var left atomic.Int64
	proxy := servertest.NewProxy(t, s.IMAPAddr(), servertest.ProxyOptions{Lifetime: left.Load})
	a := d.dir.Known[account]
	a.IMAP.Host, a.IMAP.Port = proxy.Host, proxy.Port
	cut := &mailtest.Directory{Known: map[string]mail.Account{account: a}, Password: servertest.Password}
	const added = "What was added."
	step := int64(testmain.Rounds(vaulttest.Size(160, 400), 40))
	whole := false
	for n := step; !whole; n += step {
		ref := d.saved(outbox.Draft{Body: "What there was.\n"})
		left.Store(n)
		boxes := mailbox.New(mailbox.Options{Directory: cut})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		saved, err := outbox.New(outbox.Options{Directory: cut, Mailboxes: boxes, Store: d.vault}).AppendToDraft(ctx, ref, outbox.Draft{Body: added})
		cancel()
		_ = boxes.Close()
		whole = err == nil && saved.Left == nil
		drafts := d.In("Drafts")
		if len(drafts) == 0 || len(drafts) > 2 || !slices.ContainsFunc(drafts, func(m storedMessage) bool { return strings.Contains(m.raw, "What there was.") }) {
			t.Fatalf("after %d bytes, %v: %d drafts", n, err, len(drafts))
		}
		if err == nil && !slices.ContainsFunc(drafts, func(m storedMessage) bool { return strings.Contains(m.raw, added) }) {
			t.Errorf("after %d bytes it says that the text was added, and it was not", n)
		}
		_, err = d.AppendToDraft(t.Context(), ref, outbox.Draft{Body: added})
		after := d.In("Drafts")
		if err != nil && kind(err) != mail.KindNotFound || len(after) != 1 || strings.Count(after[0].raw, added) != 1 || !strings.Contains(after[0].raw, "What there was.") {
			t.Fatalf("after %d bytes, once more: %v; %d drafts", n, err, len(after))
		}
		d.box.Remove("Drafts", after[0].uid)
	}
}

// foreign is a draft as a mail program leaves it.
func foreign(header, body string) string {
	return "X-Mozilla-Draft-Info: internal/draft; vcard=0\r\nUser-Agent: Program\r\nDisposition-Notification-To: eve@evil.example\r\nMessage-ID: <program@example.org>\r\n" +
		"Date: Mon, 02 Mar 2026 10:00:00 +0000\r\nMIME-Version: 1.0\r\n" + header + "\r\n" + body
}

const (
	fromAnn = "From: Ann at home <ann@example.org>\r\n"
	toBob   = "To: Bob <bob@example.net>\r\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\n"
	twoWays = "Content-Type: multipart/alternative; boundary=xx\r\n"
	// Its HTML says something else than its text.
	otherHTML = "--xx\r\nContent-Type: text/plain\r\n\r\nYes.\r\n--xx\r\nContent-Type: text/html; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n<p>Nö, <b>never</b>.</p>\r\n--xx--\r\n"
)

// put appends a message to a folder and returns its reference.
func (d *mailboxFixture) put(folder, raw string, flags ...imap.Flag) mail.Ref {
	d.t.Helper()
	d.create(folder)
	c := d.box.Admin.Append(d.box.In(folder), int64(len(raw)), &imap.AppendOptions{Flags: flags})
	_, _ = c.Write([]byte(raw))
	must(d.t, c.Close())
	a, err := c.Wait()
	must(d.t, err)
	return mail.Ref{Protocol: mail.IMAP, Account: account, Folder: d.box.In(folder), UIDValidity: a.UIDValidity, UID: uint32(a.UID)}
}

// TestDraftOfAMailProgramIsSentAsItStands sends a draft that a person wrote in another
// program, after one who decides has seen all of it.
func TestDraftOfAMailProgramIsSentAsItStands(t *testing.T) {
	t.Parallel()
	_, e := mailtest.Shared(t, servertest.Config{})
	d := newMailboxFixture(t, e, "program", approving)
	d.box.Add("INBOX", mailtest.Letter{Extra: "Message-ID: <p@example.net>\r\n"})
	ref := d.put("Drafts", foreign(fromAnn+toBob+"Cc: carol@example.net\r\nBcc: dan@example.net\r\nIn-Reply-To: <p@example.net>\r\nReferences: <o@example.net> <p@example.net>\r\nReply-To: ANN@example.org\r\n"+twoWays, otherHTML), imap.FlagDraft)
	waits := d.mustSend(outbox.Request{Stored: &ref, Principal: "agent"})
	again := d.mustSend(outbox.Request{Stored: &ref, Principal: "another"})
	if waits.State != mail.OutboxWaiting || !again.Replayed || again.ID != waits.ID || len(d.In("Drafts")) != 1 {
		t.Fatalf("%+v\nagain %+v", waits, again)
	}
	shown, err := d.Show(t.Context(), waits.ID)
	if err != nil || shown.Body != "Yes." || shown.HTML != "Nö, never." || shown.Markdown || shown.HeaderFrom.Name != "Ann at home" || len(shown.Files) != 0 ||
		!slices.Equal(shown.Recipients, []string{"bob@example.net", "carol@example.net", "dan@example.net"}) || shown.BCC[0].Addr != "dan@example.net" {
		t.Fatalf("%v, shown is %+v", err, shown)
	}
	// Nothing can be added to what says two things.
	mailtest.WantKind(t, second(d.AppendToDraft(t.Context(), ref, outbox.Draft{Body: "x"})), mail.KindUnsupported)
	if e, err := d.Approve(t.Context(), waits.ID, waits.Digest, "ann"); err != nil || e.State != mail.OutboxAccepted || len(d.In("Drafts")) != 0 {
		t.Fatalf("%+v, %v", e, err)
	}
	if flags := d.In("INBOX")[0].flags; !slices.Contains(flags, imap.FlagAnswered) {
		t.Errorf("what it answers is marked %v", flags)
	}
	wire := d.server.messages()[0].raw
	p := servertest.ReadPython(t, []byte(wire))
	want := []string{"Date", "From", "To", "Cc", "Subject", "Message-ID", "In-Reply-To", "References", "MIME-Version", "Content-Type"}
	if !slices.Equal(p.Fields, want) || len(p.Defects) > 0 || p.Subject != "Grüße" || p.Parent != "<p@example.net>" || p.References != "<o@example.net> <p@example.net>" || strings.Contains(p.ID, "program") {
		t.Errorf("Python reads %+v, want the fields %q", p, want)
	}
	if !strings.HasSuffix(wire, "\r\n\r\n"+otherHTML) || p.Body != "Yes.\n" && p.Body != "Yes." || p.HTML != "<p>Nö, <b>never</b>.</p>" {
		t.Errorf("the content is not what it was: %+v\n%s", p, wire)
	}
}

// TestDraftChangedBeforeTheApproval approves a draft that goes on growing.
func TestDraftChangedBeforeTheApproval(t *testing.T) {
	t.Parallel()
	d := newMailboxFixture(t, mailtest.InMemory(t), "changed", approving)
	ref := d.saved(outbox.Draft{To: []mail.Address{{Addr: "bob@example.net"}}, Body: "One.\n"})
	waits := d.mustSend(outbox.Request{Stored: &ref, Principal: "agent"})
	s, err := d.AppendToDraft(t.Context(), ref, outbox.Draft{Body: "Two.\n"})
	must(t, err)
	if e, err := d.Approve(t.Context(), waits.ID, waits.Digest, "ann"); err != nil || e.State != mail.OutboxAccepted || e.DraftLeft != nil {
		t.Fatalf("%+v, %v", e, err)
	}
	if wire := d.server.messages()[0].raw; !strings.HasSuffix(wire, "\r\n\r\nOne.\r\n") {
		t.Errorf("something else left:\n%s", wire)
	}
	if left := d.In("Drafts"); len(left) != 1 || left[0].uid != s.Ref.UID || !strings.HasSuffix(left[0].raw, "One.\r\nTwo.\r\n") {
		t.Errorf("the changed draft is %+v", left)
	}
	// It is another letter, and the first one is not sent again.
	if e := d.mustSend(outbox.Request{Stored: &s.Ref, Principal: "agent"}); e.ID == waits.ID || e.State != mail.OutboxWaiting || e.MessageID == waits.MessageID {
		t.Errorf("the changed draft: %+v", e)
	} else if _, err := d.Reject(t.Context(), e.ID, "ann", "no"); err != nil {
		t.Error(err)
	}
	_, err = d.Send(t.Context(), account, outbox.Request{Stored: &s.Ref, Principal: "agent"})
	var known *mail.Error
	if !errors.As(err, &known) || known.Kind != mail.KindConflict || known.Advice != mail.AdviceChangeDraft || len(d.server.messages()) != 1 || len(d.In("Drafts")) != 1 {
		t.Errorf("after the person said no: %v", err)
	}
}

// TestOnlyDraftsOfTheAccountAreSent tries what is no draft of the account, and drafts that
// programs would read in different ways. Nothing leaves, and nothing is removed.
func TestOnlyDraftsOfTheAccountAreSent(t *testing.T) {
	t.Parallel()
	_, e := mailtest.Shared(t, servertest.Config{})
	d := newMailboxFixture(t, e, "others", func(a *mail.Account) { a.AllowIn = mail.AllowList{Enabled: true, Entries: []string{"bob@example.net"}} })
	for _, c := range testmain.Table[struct {
		Name, Folder string
		Draft        bool
		Want         mail.Kind
		Fields, Text string
	}](t, "testdata/cases/no_drafts.txt") {
		t.Run(c.Name, func(t *testing.T) {
			flags := []imap.Flag{imap.FlagDraft}
			if !c.Draft {
				flags = nil
			}
			ref := d.put(c.Folder, foreign(crlf(c.Fields), crlf(c.Text)), flags...)
			_, err := d.Send(t.Context(), account, outbox.Request{Stored: &ref, Principal: "agent"})
			var refused *mail.SendRefused
			if err == nil || kind(err) != c.Want || c.Want == "" && !errors.As(err, &refused) {
				t.Errorf("%v, want %q", err, c.Want)
			}
			if left := d.In(c.Folder); !slices.ContainsFunc(left, func(m storedMessage) bool { return m.uid == ref.UID }) {
				t.Error("it is gone")
			}
		})
	}
	if len(d.server.messages()) > 0 || len(d.entries()) > 0 {
		t.Errorf("the server took %d; %d entries", len(d.server.messages()), len(d.entries()))
	}
}

// TestDraftThatCannotBeRemovedIsToldOf sends one on a server that can remove no single message.
func TestDraftThatCannotBeRemovedIsToldOf(t *testing.T) {
	t.Parallel()
	_, e := mailtest.Shared(t, servertest.Config{HideCapabilities: []string{"UIDPLUS", "MOVE", "IMAP4rev2"}})
	d := newMailboxFixture(t, e, "kept")
	ref := d.put("Drafts", foreign(fromAnn+toBob, "One.\r\n"), imap.FlagDraft)
	s, err := d.AppendToDraft(t.Context(), ref, outbox.Draft{Body: "Two."})
	if err != nil || s.Left == nil || s.Left.Kind != mail.KindUnsupported || len(d.In("Drafts")) != 2 {
		t.Fatalf("%+v, %v", s, err)
	}
	sent := d.mustSend(outbox.Request{Stored: &ref, Principal: "agent"})
	if sent.DraftLeft == nil || !strings.HasPrefix(sent.DraftLeft.Message, "The message was sent, and its draft may still be") || sent.Draft != "" || len(d.In("Drafts")) != 2 {
		t.Errorf("%+v", sent)
	}
	if again := d.mustSend(outbox.Request{Stored: &ref, Principal: "agent"}); !again.Replayed || len(d.server.messages()) != 1 {
		t.Errorf("again %+v", again)
	}
}

// TestDraftFromAnotherOwnAddress sends one where the policy hides what others write, and no
// copy is filed: from the address that it has, and it is gone then too.
func TestDraftFromAnotherOwnAddress(t *testing.T) {
	t.Parallel()
	d := newMailboxFixture(t, mailtest.InMemory(t), "alias", func(a *mail.Account) {
		a.OwnAddresses, a.SentCopy, a.AllowIn = []string{"office@example.org"}, mail.SentNever, mail.AllowList{Enabled: true}
	})
	d.create("Trash")
	ref := d.put("Drafts", foreign("From: The Office <office@example.org>\r\n"+toBob, "One.\r\n"), imap.FlagDraft)
	if _, err := d.AppendToDraft(t.Context(), ref, outbox.Draft{Body: "Two."}); err != nil || len(d.In("Drafts")) != 1 {
		t.Fatalf("%v; %d drafts", err, len(d.In("Drafts")))
	}
	ref.UID = d.In("Drafts")[0].uid
	if e := d.mustSend(outbox.Request{Stored: &ref, Principal: "agent"}); e.From != "office@example.org" || e.Draft != "" || e.Attempt != "" || len(d.In("Drafts")) != 0 {
		t.Errorf("%+v; %d drafts", e, len(d.In("Drafts")))
	}
	if wire := d.server.messages()[0].raw; !strings.Contains(wire, "\r\nFrom: The Office <office@example.org>\r\n") || !strings.HasSuffix(wire, "\r\n\r\nOne.\r\nTwo.\r\n") {
		t.Errorf("it is\n%s", wire)
	}
}
