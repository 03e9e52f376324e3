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

// saved saves a draft in Drafts and returns its reference.
func (d *mailboxFixture) saved(draft outbox.Draft) mail.Ref {
	d.t.Helper()
	d.create("Drafts")
	s, err := d.SaveDraft(d.t.Context(), account, draft)
	if err != nil {
		d.t.Fatal(err)
	}
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
				d.create("Sent")
				ref := d.saved(outbox.Draft{To: []mail.Address{{Name: "Bob, Jr.", Addr: "bob@example.net"}}, BCC: []mail.Address{{Addr: "dan@example.net"}}, Subject: "A long lettér",
					Body: "Dear Bob,\n\n", Markdown: markdown, Attachments: []outbox.Attachment{{Name: "Übersicht.bin", Content: file}}})
				first := ref
				for range 3 {
					s, err := d.AppendToDraft(t.Context(), ref, outbox.Draft{Body: part})
					if err != nil || s.Left != nil || s.Ref == ref || len(d.In("Drafts")) != 1 {
						t.Fatalf("%+v, %v; %d drafts", s, err, len(d.In("Drafts")))
					}
					ref = s.Ref
				}
				if _, err := d.AppendToDraft(t.Context(), first, outbox.Draft{Body: part}); kind(err) != mail.KindNotFound {
					t.Errorf("the draft before: %v", err)
				}
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
	if err := c.Close(); err != nil {
		d.t.Fatal(err)
	}
	a, err := c.Wait()
	if err != nil {
		d.t.Fatal(err)
	}
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
	if _, err := d.AppendToDraft(t.Context(), ref, outbox.Draft{Body: "x"}); kind(err) != mail.KindUnsupported {
		t.Errorf("added to it: %v", err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
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
	text := "Content-Type: text/plain\r\n"
	for name, tt := range map[string]struct {
		folder, raw string
		flags       []imap.Flag
		want        mail.Kind
	}{
		"a received message":     {"INBOX", foreign("From: bob@example.net\r\n"+toBob+text, "x\r\n"), []imap.Flag{imap.FlagDraft}, mail.KindInvalid},
		"a hidden message":       {"INBOX", foreign("From: eve@evil.example\r\n"+toBob+text, "x\r\n"), []imap.Flag{imap.FlagDraft}, mail.KindNotFound},
		"no draft":               {"Drafts", foreign(fromAnn+toBob+text, "x\r\n"), nil, mail.KindInvalid},
		"of a correspondent":     {"Drafts", foreign("From: bob@example.net\r\n"+toBob+text, "x\r\n"), []imap.Flag{imap.FlagDraft}, mail.KindInvalid},
		"of somebody else":       {"Drafts", foreign("From: eve@evil.example\r\n"+toBob+text, "x\r\n"), []imap.Flag{imap.FlagDraft}, mail.KindNotFound},
		"of two":                 {"Drafts", foreign("From: ann@example.org, eve@evil.example\r\n"+toBob+text, "x\r\n"), []imap.Flag{imap.FlagDraft}, mail.KindNotFound},
		"to a group":             {"Drafts", foreign(fromAnn+"To: all: bob@example.net, eve@example.net;\r\n"+text, "x\r\n"), []imap.Flag{imap.FlagDraft}, mail.KindInvalid},
		"to two readings":        {"Drafts", foreign(fromAnn+"To: \"a\\\"@example.net\r\n"+text, "x\r\n"), []imap.Flag{imap.FlagDraft}, mail.KindInvalid},
		"answers go elsewhere":   {"Drafts", foreign(fromAnn+toBob+"Reply-To: eve@evil.example\r\n"+text, "x\r\n"), []imap.Flag{imap.FlagDraft}, mail.KindInvalid},
		"a line that is cut":     {"Drafts", foreign(fromAnn+toBob+text, strings.Repeat("x", 1200)+"\r\n"), []imap.Flag{imap.FlagDraft}, mail.KindInvalid},
		"only a file":            {"Drafts", foreign(fromAnn+toBob+"Content-Disposition: attachment; filename=a.txt\r\n"+text, "x\r\n"), []imap.Flag{imap.FlagDraft}, mail.KindInvalid},
		"an unknown encoding":    {"Drafts", foreign(fromAnn+toBob+"Content-Transfer-Encoding: x-uuencode\r\n"+text, "x\r\n"), []imap.Flag{imap.FlagDraft}, mail.KindInvalid},
		"nobody":                 {"Drafts", foreign(fromAnn+"To: \r\n"+text, "x\r\n"), []imap.Flag{imap.FlagDraft}, ""},
		"outside the allow-list": {"Drafts", foreign(fromAnn+"To: eve@evil.example\r\n"+text, "x\r\n"), []imap.Flag{imap.FlagDraft}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			ref := d.put(tt.folder, tt.raw, tt.flags...)
			_, err := d.Send(t.Context(), account, outbox.Request{Stored: &ref, Principal: "agent"})
			var refused *mail.SendRefused
			if err == nil || kind(err) != tt.want || tt.want == "" && !errors.As(err, &refused) {
				t.Errorf("%v, want %q", err, tt.want)
			}
			if left := d.In(tt.folder); !slices.ContainsFunc(left, func(m storedMessage) bool { return m.uid == ref.UID }) {
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
	_, e := mailtest.Shared(t, servertest.Config{HideCapabilities: []string{"UIDPLUS", "IMAP4rev2"}})
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
