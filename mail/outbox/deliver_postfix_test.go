package outbox_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/emersion/go-imap/v2"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/outbox"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
)

// newPostfixDesk is a desk whose submission server is a real Postfix, which delivers
// to the Dovecot that also holds the sender's folders.
func newPostfixDesk(t testing.TB, config servertest.PostfixConfig) (*desk, *servertest.DovecotServer) {
	t.Helper()
	s, e := mailtest.Dovecot(t, servertest.Config{Submission: true})
	config.Dovecot = s
	p := servertest.Postfix(t, config)
	d := newDesk(t, e, "ann", func(a *mail.Account) {
		a.SMTP, a.CAPEM = mail.Endpoint{Host: p.Host, Port: p.SubmissionsPort, Security: mail.TLS}, p.CAPEM
		a.AllowOut = mail.AllowList{}
	})
	return d, s
}

func TestPostfixDeliversWhatTheOutboxSends(t *testing.T) {
	d, s := newPostfixDesk(t, servertest.PostfixConfig{SMTPUTF8: true, Refuse: map[string]string{
		"nobody@example.net": "550 5.1.1 no such user", "later@example.net": "451 4.3.0 try later"}})
	content := bytes.Repeat([]byte{0, 1, 2, 0xff, '\r', '\n', '.'}, 50_000)
	e := d.mustSend(hello(keyed("k"), func(r *outbox.Request) {
		r.Draft.Subject = "Grüße aus Köln"
		r.Draft.CC, r.Draft.BCC = []mail.Address{{Name: "Çelik", Addr: "carol@example.net"}}, []mail.Address{{Addr: "dan@example.net"}}
		r.Draft.Body = ".\nA line that is a dot.\r\nFrom here on: Ünïcödé.\n" + strings.Repeat("漢字", 600)
		r.Draft.Attachments = []outbox.Attachment{{Name: "Übersicht.bin", Content: content}}
	}))
	if e.State != mail.OutboxAccepted || e.Sent != mail.SentFiled {
		t.Fatalf("entry %+v", e)
	}
	var wire []byte
	for _, user := range []string{"bob@example.net", "carol@example.net", "dan@example.net"} {
		raw := s.WaitDelivered(t, user, e.MessageID)
		if bytes.Contains(bytes.ToLower(raw), []byte("\r\nbcc:")) {
			t.Errorf("%s sees who was in BCC", user)
		}
		_, rest, _ := bytes.Cut(raw, []byte("\nFrom: "))
		if wire == nil {
			wire = rest
		}
		if !bytes.Equal(rest, wire) {
			t.Errorf("%s got something else", user)
		}
	}
	copies := d.In("Sent")
	if len(copies) != 1 || !strings.Contains(copies[0].raw, "Bcc: dan@example.net\r\n") {
		t.Fatalf("%d copies", len(copies))
	}
	got := d.box.Read("Sent", copies[0].uid, mailbox.GetQuery{Content: true, BodyChars: 20_000})
	if got.Subject != "Grüße aus Köln" || !strings.Contains(got.BodyText, "Ünïcödé") || !strings.Contains(got.BodyText, strings.Repeat("漢字", 600)) ||
		len(got.Attachments) != 1 || got.Attachments[0].Filename != "Übersicht.bin" || !bytes.Equal(got.Attachments[0].Content, content) {
		t.Errorf("the copy reads %q, %q, %+v", got.Subject, got.BodyText[:60], len(got.Attachments))
	}

	for address, want := range map[string]mail.OutboxState{"nobody@example.net": mail.OutboxRefused, "later@example.net": mail.OutboxQueued} {
		e, err := d.Send(t.Context(), account, hello(keyed(address), func(r *outbox.Request) { r.Draft.To = []mail.Address{{Addr: "bob@example.net"}, {Addr: address}} }))
		if kind(err) != mail.KindRefused || e.State != want || !strings.Contains(e.Reason, address) {
			t.Errorf("%s: %+v, %v", address, e, err)
		}
		if len(s.Copies(t, "bob@example.net", e.MessageID)) > 0 {
			t.Errorf("%s: the other recipient got it", address)
		}
	}

	utf8 := d.mustSend(hello(func(r *outbox.Request) { r.Draft.To = []mail.Address{{Addr: "jörg@example.net"}} }))
	if !utf8.SMTPUTF8 || utf8.State != mail.OutboxAccepted {
		t.Errorf("entry %+v", utf8)
	}
	s.WaitDelivered(t, "jörg@example.net", utf8.MessageID)
}

// TestPostfixDeliversMarkdownAndDrafts has Python read what arrived of a letter in Markdown,
// which the person who decides has seen, and of a mail program's draft with 8-bit text.
func TestPostfixDeliversMarkdownAndDrafts(t *testing.T) {
	d, s := newPostfixDesk(t, servertest.PostfixConfig{})
	d.create("Drafts")
	a := d.dir.Known[account]
	a.Mode = mail.Approve
	d.dir.Set(a)
	body := "# Grüße\n\nSee [this](https://example.org/?a=1&b=2), " + strings.Repeat("and some more words ", 10) + "\n<script>x</script>\n"
	quoted := "On Monday [Eve](https://evil.example) wrote:\n> # Click <b>here</b>\n"
	content := bytes.Repeat([]byte{0, 0xff, '\r', '.', '\n'}, 10_000)
	waits := d.mustSend(hello(func(r *outbox.Request) {
		r.Draft.Body, r.Draft.Quoted, r.Draft.Markdown = body, quoted, true
		r.Draft.Attachments = []outbox.Attachment{{Name: "a.bin", Content: content}}
	}))
	text := strings.ReplaceAll(body, " \n", "\n") + "\n" + quoted
	shown, err := d.Show(t.Context(), waits.ID)
	if err != nil || !shown.Markdown || shown.HTML != "" || shown.Body != text || len(shown.Files) != 1 {
		t.Errorf("%v, shown is %+v", err, shown)
	}
	if e, err := d.Approve(t.Context(), waits.ID, waits.Digest, "ann"); err != nil || e.State != mail.OutboxAccepted {
		t.Fatalf("%+v, %v", e, err)
	}
	p := servertest.ReadPython(t, s.WaitDelivered(t, "bob@example.net", waits.MessageID))
	if len(p.Defects) > 0 || p.Body != text || len(p.Files) != 1 || p.Files[0].SHA256 != fmt.Sprintf("%x", sha256.Sum256(content)) {
		t.Errorf("Python reads %+v, want\n%s", p, text)
	}
	for _, want := range []string{"<h1>Grüße</h1>", `<a href="https://example.org/?a=1&amp;b=2">this</a>`, "&lt;script&gt;x&lt;/script&gt;", "On Monday [Eve](https://evil.example) wrote:<br>", "&gt; # Click &lt;b&gt;here&lt;/b&gt;<br>"} {
		if !strings.Contains(p.HTML, want) {
			t.Errorf("the HTML lacks %q:\n%s", want, p.HTML)
		}
	}

	ref := d.put("Drafts", foreign(fromAnn+toBob+"Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n", "Grüße,\r\n.\r\nFrom here.\r\n"), imap.FlagDraft)
	waits = d.mustSend(outbox.Request{Stored: &ref, Principal: "agent"})
	if e, err := d.Approve(t.Context(), waits.ID, waits.Digest, "ann"); err != nil || e.State != mail.OutboxAccepted || len(d.In("Drafts")) > 0 {
		t.Fatalf("%+v, %v", e, err)
	}
	if p := servertest.ReadPython(t, s.WaitDelivered(t, "bob@example.net", waits.MessageID)); len(p.Defects) > 0 || p.Body != "Grüße,\n.\nFrom here.\n" || p.Subject != "Grüße" {
		t.Errorf("Python reads %+v", p)
	}
}

func TestPostfixLimitsAreKnownBeforeAnythingIsSent(t *testing.T) {
	d, _ := newPostfixDesk(t, servertest.PostfixConfig{MessageSizeLimit: 20_000})
	large := func(r *outbox.Request) {
		r.Draft.Attachments = []outbox.Attachment{{Name: "a.bin", Content: make([]byte, 30_000)}}
	}
	foreign := func(r *outbox.Request) { r.Draft.To = []mail.Address{{Addr: "jörg@example.net"}} }
	for name, request := range map[string]func(*outbox.Request){"size": large, "SMTPUTF8": foreign} {
		t.Run(name, func(t *testing.T) {
			for _, dry := range []bool{true, false} {
				e, err := d.Send(t.Context(), account, hello(request, func(r *outbox.Request) { r.DryRun = dry }))
				if k := kind(err); k != mail.KindRefused && k != mail.KindUnsupported {
					t.Errorf("dry %v: %+v, %v", dry, e, err)
				}
				if dry != (e == nil) || e != nil && e.State != mail.OutboxRefused {
					t.Errorf("dry %v: entry %+v", dry, e)
				}
			}
		})
	}
}
