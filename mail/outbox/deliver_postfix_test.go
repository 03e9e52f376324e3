package outbox_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/emersion/go-imap/v2"

	"github.com/postern-mail/postern/internal/testmain"
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
			e, err := d.sendOrForesee(hello(request), dry)
			if kind(err) != want || dry != (e == nil) || e != nil && (e.State != mail.OutboxRefused || e.Temporary) {
				t.Errorf("%s, dry %v: %+v, %v", want, dry, e, err)
			}
		}
	}
}

// source puts a message of these fields and this body into the mailbox. Lines end with LF.
func (d *mailboxFixture) source(message string) mail.Ref {
	d.t.Helper()
	return d.box.Ref("INBOX", d.box.Add("INBOX", mailtest.Letter{Raw: []byte(strings.ReplaceAll(message, "\n", "\r\n"))})[0])
}

// about is a request about a message, with a text of its own and nobody named.
func about(change func(*outbox.Draft)) outbox.Request {
	return hello(func(r *outbox.Request) {
		r.Draft = outbox.Draft{Body: "My own text.\n"}
		change(&r.Draft)
	})
}

// arrived is what Python reads of the copies that one address each got, in the order of the
// entries.
func arrived(t *testing.T, s *servertest.DovecotServer, entries []*mail.Outgoing, address func(i int) string) []servertest.PythonMessage {
	t.Helper()
	var raw [][]byte
	for i, e := range entries {
		raw = append(raw, s.WaitDelivered(t, address(i), e.MessageID))
	}
	return servertest.ReadAllPython(t, raw)
}

func addresses(list [][2]string) string {
	var out []string
	for _, a := range list {
		out = append(out, a[1])
	}
	return strings.Join(out, " ")
}

// aliased is an account with another address of its own.
func aliased(a *mail.Account) { a.OwnAddresses = []string{"Alias@example.net"} }

// A reply arrives with the recipients, sender, subject and thread that the header of the
// message it answers gives it, as Python reads it from Postfix and Dovecot.
func replyArrivesWhereTheMessageSays(t *testing.T, p *postfixServers) {
	d := p.fixture(t, aliased)
	cases := testmain.Table[struct {
		Name                          string
		All, Own                      bool
		To, CC, From, Subject, Thread string
		Elsewhere                     bool
		Fields                        string
	}](t, "testdata/cases/replies.txt")
	var sent []*mail.Outgoing
	for _, c := range cases {
		ref := d.source(c.Fields + "\n\nThe text.\n")
		sent = append(sent, d.mustSend(about(func(m *outbox.Draft) {
			m.ReplyTo, m.ToSender, m.ToAll, m.Quote = &ref, true, c.All, true
			if c.Elsewhere {
				m.To = []mail.Address{{Addr: c.To}}
			}
			if c.Own {
				m.Subject = c.Subject
			}
		})))
	}
	for i, r := range arrived(t, p.dovecot, sent, func(i int) string { return strings.Fields(cases[i].To)[0] }) {
		c, e := cases[i], sent[i]
		ids := strings.Fields(c.Thread)
		if addresses(r.To) != c.To || addresses(r.CC) != c.CC || addresses(r.From) != c.From || e.From != c.From || r.Subject != c.Subject || r.References != c.Thread ||
			r.Parent != ids[len(ids)-1] || e.Elsewhere != c.Elsewhere || len(r.Defects) > 0 {
			t.Errorf("%s: %+v, entry %+v", c.Name, r, e)
		}
		all := strings.Fields(c.To + " " + c.CC)
		if len(e.Recipients) != len(all) {
			t.Errorf("%s: recipients %q", c.Name, e.Recipients)
		}
		if !strings.HasPrefix(r.Body, "My own text.\n\n") || !strings.Contains(r.Body, " wrote:\n> ") || !strings.HasSuffix(r.Body, "> The text.\n") {
			t.Errorf("%s: body %q", c.Name, r.Body)
		}
		for _, other := range all {
			p.dovecot.WaitDelivered(t, other, e.MessageID)
		}
		if copies := p.dovecot.Copies(t, "eve@example.net", e.MessageID); len(copies) > 0 {
			t.Errorf("%s: eve got it", c.Name)
		}
	}
}

// The outbound list judges everybody whom a message makes a recipient, and one outside it
// keeps the whole reply back.
func TestTheOutboundListSeesWhomAMessageNames(t *testing.T) {
	t.Parallel()
	_, e := mailtest.Shared(t, servertest.Config{})
	d := newMailboxFixture(t, e, "named")
	ref := d.source("From: bob@example.net\nReply-To: eve@evil.example\nTo: ann@example.org\nCc: mallory@evil.example\nSubject: x\n\nx\n")
	for _, all := range []bool{false, true} {
		sent, err := d.Send(t.Context(), account, about(func(m *outbox.Draft) {
			m.ReplyTo, m.ToSender, m.ToAll, m.To = &ref, true, all, []mail.Address{{Addr: "eve@evil.example"}}
		}))
		var refused *mail.SendRefused
		if sent != nil || !errors.As(err, &refused) || refused.Reason != mail.ReasonAllowList || !slices.Contains(refused.Recipients, "eve@evil.example") || all != slices.Contains(refused.Recipients, "mallory@evil.example") {
			t.Errorf("all %v: %+v, %v", all, sent, err)
		}
	}
	if len(d.server.messages()) > 0 {
		t.Error("something left")
	}
	d.dir.Edit(func(a *mail.Account) { a.Mode, a.AllowOut = mail.Approve, mail.AllowList{} })
	held := d.mustSend(about(func(m *outbox.Draft) { m.ReplyTo, m.ToSender, m.ToAll = &ref, true, true }))
	shown, err := d.Show(t.Context(), held.ID)
	if err != nil || held.State != mail.OutboxWaiting || !shown.Elsewhere || len(shown.To) != 1 || shown.To[0].Addr != "eve@evil.example" || len(shown.CC) != 1 || shown.CC[0].Addr != "mallory@evil.example" {
		t.Errorf("%+v, %v", shown, err)
	}
}

// What programs in two languages write above a quote is kept, each depth by one mark more,
// and what was sent reads as history here.
func quotesKeepTheirDepth(t *testing.T, p *postfixServers) {
	d := p.fixture(t)
	intros := []string{"On Fri, 20 Nov 2026 at 10:15, Carol <carol@example.net> wrote:", "Le 20 nov. 2026 à 10:15, Carol <carol@example.net> a écrit :"}
	long := strings.TrimSpace(strings.Repeat("long words ", 30))
	var sent []*mail.Outgoing
	for _, intro := range intros {
		ref := d.source("From: =?utf-8?q?Bob_=C3=96zt=C3=BCrk?= <bob@example.net>\nTo: ann@example.org\nSubject: x\nDate: Sat, 21 Nov 2026 09:30:00 +0100\nContent-Type: text/plain; charset=utf-8\n\n" +
			"Yes.\n\n" + intro + "\n> Shall we?\n> > At noon\n>> or later?\n\n-- \nBob\nFrom here on.\n" + long + "\n")
		sent = append(sent, d.mustSend(about(func(m *outbox.Draft) { m.ReplyTo, m.ToSender, m.Quote = &ref, true, true })))
	}
	copies := d.In("Sent")
	for i, r := range arrived(t, p.dovecot, sent, func(int) string { return "bob@example.net" }) {
		head, quote, _ := strings.Cut(r.Body, " wrote:\n")
		if head != "My own text.\n\nOn 21 November 2026 at 09:30, Bob Öztürk <bob@example.net>" || len(r.Defects) > 0 {
			t.Errorf("head %q, defects %q", head, r.Defects)
		}
		for _, line := range []string{"> Yes.\n", ">\n", "> " + intros[i] + "\n", ">> Shall we?\n", ">>> At noon\n", ">>> or later?\n", "> Bob\n", "> From here on.\n", "> " + long + "\n"} {
			if !strings.Contains("\n"+quote, "\n"+line) {
				t.Errorf("no %q in\n%s", line, quote)
			}
		}
		onlyQuoted(t, quote)
		if got := d.box.Read("Sent", copies[i].uid, mailbox.GetQuery{BodyChars: 20_000}); !strings.HasPrefix(got.BodyText, "My own text.\n") {
			t.Errorf("read back %q", got.BodyText)
		}
	}
}

func onlyQuoted(t *testing.T, quote string) {
	t.Helper()
	for line := range strings.Lines(quote) {
		if !strings.HasPrefix(line, ">") {
			t.Errorf("not quoted: %q", line)
		}
	}
}

// Whatever a message holds, what hands it on or quotes it has the fields of any letter, that
// text as text and those attachments byte for byte.
func TestNothingOfAForwardedMessageIsMoreThanTextOrAFile(t *testing.T) {
	t.Parallel()
	fields := []string{"Date", "From", "To", "Subject", "Message-ID", "MIME-Version", "Content-Type", "Content-Transfer-Encoding", "In-Reply-To", "References"}
	type sending struct {
		name, way string
		original  *mailbox.Message
	}
	var all []sending
	var raw [][]byte
	_, dovecot := mailtest.Shared(t, servertest.Config{})
	d := newMailboxFixture(t, dovecot, "forwards", func(a *mail.Account) { a.AllowOut, a.SentCopy = mail.AllowList{}, mail.SentNever })
	send := func(name string, message []byte) {
		ref := d.box.Ref("INBOX", d.box.Add("INBOX", mailtest.Letter{Raw: message})[0])
		original := d.box.Read("INBOX", ref.UID, mailbox.GetQuery{BodyChars: 20_000, Content: true})
		for _, way := range []string{"quoted", "handed on", "whole"} {
			e, err := d.Send(t.Context(), account, about(func(m *outbox.Draft) {
				m.To = []mail.Address{{Addr: "carol@example.net"}}
				if way == "quoted" {
					m.ReplyTo, m.Quote = &ref, true
				} else {
					m.Forward, m.Whole = &ref, way == "whole"
				}
			}))
			if way == "whole" && kind(err) == mail.KindInvalid && bytes.Contains(bytes.ToLower(message), []byte("\nbcc:")) {
				continue // one with hidden recipients
			}
			if err != nil || len(e.Recipients) != 1 {
				t.Errorf("%s, %s: %+v, %v", name, way, e, err)
				continue
			}
			sent := d.server.messages()
			all, raw = append(all, sending{name, way, original}), append(raw, []byte(sent[len(sent)-1].raw))
		}
	}
	for _, c := range testmain.Table[struct{ Name, Message string }](t, "testdata/cases/hostile.txt") {
		send(c.Name, []byte(crlf(c.Message)))
	}
	files, err := filepath.Glob("../testdata/real-emails/*/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no messages: %v", err)
	}
	for i, f := range files {
		if i%testmain.Rounds(16, 4) > 0 {
			continue // all of them take minutes
		}
		message, err := os.ReadFile(f)
		must(t, err)
		send(filepath.Base(f), []byte(crlf(strings.ReplaceAll(string(message), "\r\n", "\n"))))
	}
	for i, p := range servertest.ReadAllPython(t, raw) {
		one := all[i]
		t.Run(one.name+" "+one.way, func(t *testing.T) {
			if len(p.Defects) > 0 && one.way != "whole" { // those of the message itself
				t.Errorf("defects %q", p.Defects)
			}
			for _, f := range p.Fields {
				if !slices.Contains(fields, f) {
					t.Errorf("a field %s", f)
				}
			}
			if !strings.HasPrefix(p.Body, "My own text.\n") || strings.ContainsAny(p.Body, "\x00\u202e\u200b") || strings.Contains(p.Body, "unseen") || p.HTML != "" {
				t.Errorf("body %q html %q", p.Body, p.HTML)
			}
			switch one.way {
			case "quoted":
				_, quote, _ := strings.Cut(p.Body, " wrote:\n")
				onlyQuoted(t, quote)
			case "handed on":
				if len(p.Files) != len(one.original.Attachments) {
					t.Fatalf("%d files, want %d", len(p.Files), len(one.original.Attachments))
				}
				for i, a := range one.original.Attachments {
					sum := sha256.Sum256(a.Content)
					if want := hex.EncodeToString(sum[:]); p.Files[i].SHA256 != want && p.Files[i].Type != "message/rfc822" {
						t.Errorf("file %d, %s, is not as it was", i, a.Filename)
					}
					if n := p.Files[i].Name; strings.ContainsAny(n, "/\\\r\n") || n == "" {
						t.Errorf("name %q", n)
					}
				}
			case "whole":
				if len(p.Files) != 1 || !strings.HasSuffix(p.Files[0].Name, ".eml") {
					t.Errorf("files %+v", p.Files)
				}
			}
		})
	}
}

// A whole message arrives byte for byte, as a message where its bytes need no encoding.
func wholeMessageArrivesByteForByte(t *testing.T, p *postfixServers) {
	d := p.fixture(t)
	forward := func(ref mail.Ref) outbox.Request {
		return about(func(m *outbox.Draft) {
			m.To, m.Forward, m.Whole = []mail.Address{{Addr: "carol@example.net"}}, &ref, true
		})
	}
	const whole, encoded = "message/rfc822", "application/octet-stream"
	cases := []struct{ text, kind string }{{"plain\n", whole}, {"\n.\n..\n--=_x\n", whole}, {"gr\xfc\xdfe\n", encoded},
		{"From here\n", encoded}, {strings.Repeat("x", 1200) + "\n", encoded}, {"no end", whole}}
	var sent []*mail.Outgoing
	message := func(text string) string {
		return "From: bob@example.net\nTo: ann@example.org\nSubject: Gr=?utf-8?q?=C3=BC?=n\nMessage-ID: <a@x.example>\n\n" + text
	}
	for _, c := range cases {
		sent = append(sent, d.mustSend(forward(d.source(message(c.text)))))
	}
	for i, r := range arrived(t, p.dovecot, sent, func(int) string { return "carol@example.net" }) {
		c := cases[i]
		if len(r.Defects) > 0 || len(r.Files) != 1 || r.Files[0].Type != c.kind || r.Files[0].Disposition != "attachment" {
			t.Errorf("%.20q: %q, %+v", c.text, r.Defects, r.Files)
			continue
		}
		raw := strings.ReplaceAll(string(p.dovecot.Copies(t, "carol@example.net", sent[i].MessageID)[0]), "\r\n", "\n")
		sum := sha256.Sum256([]byte(strings.ReplaceAll(message(c.text), "\n", "\r\n")))
		if c.kind == whole && !strings.Contains(raw, "\n\n"+message(c.text)+"\n--") || c.kind == encoded && r.Files[0].SHA256 != hex.EncodeToString(sum[:]) {
			t.Errorf("%.20q is not as it was", c.text)
		}
	}
	hidden := d.source("From: ann@example.org\nTo: bob@example.net\nBcc: dan@example.net\nSubject: x\n\nx\n")
	mailtest.WantKind(t, second(d.Send(t.Context(), account, forward(hidden))), mail.KindInvalid)
}

// A repeated reply or forward needs the message no longer; a hidden message and a missing one
// are alike for both.
func TestAnswersToRepeatedAndHidden(t *testing.T) {
	t.Parallel()
	_, e := mailtest.Shared(t, servertest.Config{})
	d := newMailboxFixture(t, e, "again", func(a *mail.Account) { a.AllowIn = mail.AllowList{Enabled: true, Entries: []string{"@example.net"}} })
	for name, change := range map[string]func(*outbox.Draft, *mail.Ref){
		"reply":   func(m *outbox.Draft, r *mail.Ref) { m.ReplyTo, m.ToSender, m.ToAll, m.Quote = r, true, true, true },
		"forward": func(m *outbox.Draft, r *mail.Ref) { m.Forward, m.To = r, []mail.Address{{Addr: "carol@example.net"}} },
		"whole": func(m *outbox.Draft, r *mail.Ref) {
			m.Forward, m.Whole, m.To = r, true, []mail.Address{{Addr: "carol@example.net"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			seen, hidden := d.source("From: bob@example.net\nSubject: x\n\nx\n"), d.source("From: eve@evil.example\nSubject: x\n\nx\n")
			request := func(r mail.Ref) outbox.Request {
				q := about(func(m *outbox.Draft) { change(m, &r) })
				q.Key = fmt.Sprint(name, r.UID)
				return q
			}
			first := d.mustSend(request(seen))
			missing := hidden
			missing.UID += 100
			_, one := d.Send(t.Context(), account, request(hidden))
			_, other := d.Send(t.Context(), account, request(missing))
			if h, m := mailtest.WantKind(t, one, mail.KindNotFound), mailtest.WantKind(t, other, mail.KindNotFound); h.Message != m.Message || h.Advice != m.Advice ||
				h.Stage != m.Stage || one.Error() != other.Error() {
				t.Errorf("hidden: %v; missing: %v", one, other)
			}
			mailtest.WantKind(t, second(d.SaveDraft(t.Context(), account, request(hidden).Draft)), mail.KindNotFound)
			d.box.Remove("INBOX", seen.UID)
			if e := d.mustSend(request(seen)); !e.Replayed || e.ID != first.ID {
				t.Errorf("again %+v", e)
			}
		})
	}
}
