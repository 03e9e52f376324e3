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

// postfixServers are a Postfix, which takes mail in, and the Dovecot that it delivers to, which
// also holds the senders' folders.
type postfixServers struct {
	dovecot *servertest.DovecotServer
	postfix *servertest.PostfixServer
}

func startPostfix(t *testing.T, config servertest.PostfixConfig) *postfixServers {
	t.Helper()
	config.Dovecot = servertest.Dovecot(t, servertest.Config{Submission: true})
	return &postfixServers{config.Dovecot, servertest.Postfix(t, config)}
}

// fixture is an outbox whose account is on the servers, for a user of its own.
func (p *postfixServers) fixture(t testing.TB, change ...func(*mail.Account)) *mailboxFixture {
	t.Helper()
	d := newMailboxFixture(t, mailtest.DovecotAt(p.dovecot), servertest.User("ann"), append([]func(*mail.Account){func(a *mail.Account) {
		a.SMTP, a.CAPEM = mail.Endpoint{Host: p.postfix.Host, Port: p.postfix.SubmissionsPort, Security: mail.TLS}, p.postfix.CAPEM
		a.AllowOut = mail.AllowList{}
	}}, change...)...)
	d.box.Dir.Set(d.dir.Known[account])
	return d
}

// TestOnPostfix runs what is about real delivery, all on one Postfix and Dovecot.
func TestOnPostfix(t *testing.T) {
	t.Parallel()
	p := startPostfix(t, servertest.PostfixConfig{Refuse: map[string]string{"nobody@example.net": "550 5.1.1 no such user", "later@example.net": "451 4.3.0 try later"}})
	for name, test := range map[string]func(*testing.T, *postfixServers){
		"delivers what is sent":        postfixDelivers,
		"Markdown and drafts":          markdownAndDraftsArrive,
		"limits":                       limitsAreKnownBeforeAnythingIsSent,
		"replies":                      replyArrivesWhereTheMessageSays,
		"replies unasked":              replyGoesUnasked,
		"quotes":                       quotesKeepTheirDepth,
		"forwards whole, byte by byte": wholeMessageArrivesByteForByte,
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); test(t, p) })
	}
}

func postfixDelivers(t *testing.T, p *postfixServers) {
	d, s := p.fixture(t), p.dovecot
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
}

func TestPostfixTakesAddressesBeyondASCII(t *testing.T) {
	t.Parallel()
	p := startPostfix(t, servertest.PostfixConfig{SMTPUTF8: true})
	e := p.fixture(t).mustSend(hello(func(r *outbox.Request) { r.Draft.To = []mail.Address{{Addr: "jörg@example.net"}} }))
	if !e.SMTPUTF8 || e.State != mail.OutboxAccepted {
		t.Errorf("entry %+v", e)
	}
	p.dovecot.WaitDelivered(t, "jörg@example.net", e.MessageID)
}

// markdownAndDraftsArrive has Python read what arrived of a letter in Markdown,
// which the person who decides has seen, and of a mail program's draft with 8-bit text.
func markdownAndDraftsArrive(t *testing.T, p *postfixServers) {
	d, s := p.fixture(t, approving), p.dovecot
	d.create("Drafts")
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
	read := servertest.ReadPython(t, s.WaitDelivered(t, "bob@example.net", waits.MessageID))
	if len(read.Defects) > 0 || read.Body != text || len(read.Files) != 1 || read.Files[0].SHA256 != fmt.Sprintf("%x", sha256.Sum256(content)) {
		t.Errorf("Python reads %+v, want\n%s", read, text)
	}
	for _, want := range []string{"<h1>Grüße</h1>", `<a href="https://example.org/?a=1&amp;b=2">this</a>`, "&lt;script&gt;x&lt;/script&gt;", "On Monday [Eve](https://evil.example) wrote:<br>", "&gt; # Click &lt;b&gt;here&lt;/b&gt;<br>"} {
		if !strings.Contains(read.HTML, want) {
			t.Errorf("the HTML lacks %q:\n%s", want, read.HTML)
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

func limitsAreKnownBeforeAnythingIsSent(t *testing.T, p *postfixServers) {
	d := p.fixture(t)
	large := func(r *outbox.Request) {
		r.Draft.Attachments = []outbox.Attachment{{Name: "a.bin", Content: make([]byte, 8<<20)}} // Postfix takes 10 MB, encoded
	}
	foreign := func(r *outbox.Request) { r.Draft.To = []mail.Address{{Addr: "jörg@example.net"}} }
	for want, request := range map[mail.Kind]func(*outbox.Request){mail.KindRefused: large, mail.KindUnsupported: foreign} {
		for _, dry := range []bool{true, false} {
			e, err := d.Send(t.Context(), account, hello(request, func(r *outbox.Request) { r.DryRun = dry }))
			if kind(err) != want || dry != (e == nil) || e != nil && (e.State != mail.OutboxRefused || e.Temporary) {
				t.Errorf("%s, dry %v: %+v, %v", want, dry, e, err)
			}
		}
	}
}
