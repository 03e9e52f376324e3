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

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/outbox"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
)

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
