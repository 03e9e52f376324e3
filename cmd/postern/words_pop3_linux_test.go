package main

import (
	"strings"
	"testing"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
)

// By POP3 there is no folder but the inbox, no search and no flag: a word that needs one says so.
func TestWordsByPOP3(t *testing.T) {
	t.Parallel()
	s := servertest.Dovecot(t, servertest.Config{})
	a := dovecotAccount(s, "ann")
	a.Protocol, a.IMAP, a.Mode = mail.POP3, mail.Endpoint{}, mail.ReadWrite
	a.POP3 = mail.Endpoint{Host: s.Host, Port: s.POP3SPort, Security: mail.TLS}
	box := &mailtest.Box{T: t, Admin: mailtest.DialIMAP(t, s.IMAPAddr(), "ann")}
	box.Add("INBOX", mailtest.Letter{From: "bob@example.org", Subject: "One", Body: "Hello"}, mailtest.Letter{From: "bob@example.org", Subject: "Two", Body: "World"})
	v := newVault(t)
	v.add(t, a, servertest.Password)
	x := onTerminal(t, 80, 40, append(v.environment(true), "NO_COLOR=1", "PAGER=", "HOME="+t.TempDir()), "repl", "--no-history")
	x.sees(promptSign)
	x.types("inbox\r")
	out := x.sees("Two", "\n"+promptSign)
	id := strings.TrimSpace(strings.Split(strings.Split(out, "Read one: read ")[1], "\n")[0])
	for _, step := range []struct{ line, sees string }{
		{"read " + id, "World"},
		{"thread " + id, "1 message."},
		{"archive " + id, "POP3, which has no flags and no folders."},
		{"trash " + id, "POP3, which has no flags and no folders."},
		{"search World", "POP3, which has no search"},
		{"save " + id, "The message has no attachment."},
		{"undo", "nothing to take back"},
		{"forward " + id + " ann@example.org", "Cc: "},
	} {
		x.types(step.line + "\r")
		x.sees(step.sees)
	}
	x.types("\r\r")
	x.sees("Type the text", "\n> ")
	x.types("\x03")
	x.sees("keeps the file: ")
	x.types("\r")
	x.sees("It was not sent.", "takes it up.", promptSign)
	x.types("quit\r")
	x.quits(0)
	if a := newHouse(t, v).do(t, "audit list", nil); strings.Contains(string(a.raw), "mark-read") {
		t.Errorf("reading tried to change the mailbox: %s", a.raw)
	}
}
