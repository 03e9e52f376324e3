package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
)

// Part of a pipe at a terminal, a word that only shows something is the command that it stands for,
// and changes nothing. A word that asks says that it is none there; without a terminal all do.
func TestAWordInAPipe(t *testing.T) {
	t.Parallel()
	servers, v := sampleServers(t), newVault(t)
	v.add(t, servers.Account(), servers.Password.Reveal())
	terminal, slave := newTerminal(t)
	defer terminal.Close()
	defer slave.Close()
	for _, tc := range testmain.Table[struct {
		Line     string
		Attended bool
		Status   int
		Out, Err string
	}](t, "testdata/cases/words.txt") {
		var out, stderr bytes.Buffer
		p := newProcess(t, v.environment(false)...)
		p.args, p.stdout, p.stderr = strings.Fields(tc.Line), &out, &stderr
		if tc.Attended {
			p.stdin = slave
		}
		status := p.run(t.Context())
		if status != tc.Status || !strings.Contains(out.String(), tc.Out) || !strings.HasPrefix(stderr.String(), tc.Err) || tc.Err == "" && stderr.Len() > 0 {
			t.Errorf("%s, %v: %d\n%s\n%s", tc.Line, tc.Attended, status, out.String(), stderr.String())
		}
	}
	// A word that is none there, and a page, take no key.
	for line, attended := range map[string]bool{"inbox": false, "search x": false, "inbox -h": true, "search -h": true} {
		asked := filepath.Join(t.TempDir(), "asked")
		p := newProcess(t, "POSTERN_DB="+v.path, "POSTERN_KEY_COMMAND=touch "+asked)
		p.args = strings.Fields(line)
		if attended {
			p.stdin = slave
		}
		p.run(t.Context())
		if _, err := os.Stat(asked); err == nil {
			t.Errorf("%s asked for the key", line)
		}
	}
}

// By POP3 there is no folder but the inbox, no search and no flag: a word that needs one says so.
func TestWordsByPOP3(t *testing.T) {
	t.Parallel()
	s, user := servertest.SharedDovecot(t), servertest.User("ann")
	a := dovecotAccount(s, user)
	a.Protocol, a.IMAP, a.Mode = mail.POP3, mail.Endpoint{}, mail.ReadWrite
	a.POP3 = mail.Endpoint{Host: s.Host, Port: s.POP3SPort, Security: mail.TLS}
	box := &mailtest.Box{T: t, Admin: mailtest.DialIMAP(t, s.IMAPAddr(), user)}
	box.Add("INBOX", mailtest.Letter{From: "bob@example.org", Subject: "One", Body: "Hello"}, mailtest.Letter{From: "bob@example.org", Subject: "Two", Body: "World"})
	v := newVault(t)
	v.add(t, a, servertest.Password)
	x := atPrompt(t, 80, 40, append(v.environment(true), "NO_COLOR=1", "PAGER=", "EDITOR=", "VISUAL=", "HOME="+t.TempDir()), "repl", "--no-history")
	_, id, _ := strings.Cut(x.runs("inbox", "Two"), "Read one: read ")
	id, _, _ = strings.Cut(id, "\n")
	for _, c := range []struct{ line, sees string }{
		{"read " + id, "World"},
		{"thread " + id, "1 message."},
		{"archive " + id, "POP3, which has no flags and no folders."},
		{"trash " + id, "POP3, which has no flags and no folders."},
		{"search World", "POP3, which has no search"},
		{"save " + id, "The message has no attachment."},
		{"undo", "nothing to take back"},
	} {
		x.runs(c.line, c.sees)
	}
	x.enters("forward "+id+" ann@example.org", "Cc: ")
	x.enters("\r", "Type the text", "\n> ")
	x.types(interrupt)
	x.sees("keeps the file: ")
	x.runs("", "It was not sent.", "takes it up.")
	x.leaves()
	if a := newHouse(t, v).do(t, "audit list", nil); strings.Contains(string(a.raw), "mark-read") {
		t.Errorf("reading tried to change the mailbox: %s", a.raw)
	}
}
