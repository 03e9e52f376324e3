//go:build unix

package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/postern-mail/postern/cmd/postern/internal/house"
	"github.com/postern-mail/postern/commands"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/mail/servertest/scripted"
)

// everything is every command there is in any profile.
func everything() []*discovery.Command { return commands.All(&commands.Deps{}) }

// forms are command strings that use each argument of a command, made of what its
// own definition says: a new argument, or a new command, is tried without anybody
// remembering to. Where a message has to be named, it is this one.
func forms(c *discovery.Command, id, uid string) (lines []string) {
	named := func(path ...string) []string {
		for _, a := range c.Arguments() {
			switch {
			case !a.Positional:
			case a.Name == "id":
				path = append(path, id)
			case a.Required:
				path = append(path, sample(a))
			}
		}
		return path
	}
	needed := []string{}
	for _, a := range c.Arguments() {
		if a.Required && !a.Positional {
			needed = append(needed, "--"+a.Name+"="+sample(a))
		}
	}
	add := func(tokens ...string) { lines = append(lines, discovery.JoinCommand(tokens)) }
	path := strings.Fields(c.Path)
	add(append(named(path...), needed...)...)
	for _, a := range c.Arguments() {
		if a.Positional {
			continue
		}
		option := "--" + a.Name
		switch {
		case a.Name == "uid":
			add(append(append(path, "--folder=INBOX", "--uid="+uid), needed...)...)
		case a.Name == "folder" && strings.Contains(c.Usage(), "[ID"):
			add(append(append(path, "--folder=INBOX", "--uid="+uid), needed...)...)
		case a.Kind == discovery.KindFlag:
			add(append(named(append(path, option)...), needed...)...)
		case len(a.Enum) > 0:
			for _, e := range a.Enum {
				add(append(named(append(path, option+"="+e)...), needed...)...)
			}
		default:
			v := sample(a)
			if a.Name == "before" || a.Name == "after" {
				v = id
			}
			add(append(named(append(path, option+"="+v)...), needed...)...)
			if a.Minimum != "" && a.Maximum != "" && a.Name != "timeout" {
				add(append(named(append(path, option+"="+string(a.Minimum))...), needed...)...)
				add(append(named(append(path, option+"="+string(a.Maximum))...), needed...)...)
			}
		}
	}
	for _, e := range c.Examples {
		add(strings.Fields(e)...)
	}
	return lines
}

// sample is something that an argument takes.
func sample(a *discovery.Argument) string {
	switch {
	case a.Name == "account":
		return "default"
	case a.Name == "fields":
		return "status"
	case a.Name == "folder" || a.Name == "to" && a.MaxItems == nil:
		return "INBOX"
	case a.Default != nil && a.Name == "timeout":
		return "20"
	case len(a.Examples) > 0:
		return a.Examples[0]
	case a.Kind == discovery.KindDatetime:
		return "2026-01-01"
	case a.Kind == discovery.KindInteger || a.Item == discovery.KindInteger:
		if a.Maximum != "" && len(a.Maximum) < 4 {
			return string(a.Maximum)
		}
		return "200"
	case len(a.Enum) > 0:
		return a.Enum[0]
	}
	return "x"
}

// beyond are what people would try besides, to delete, to move and to send.
var beyond = []string{"mail delete --folder INBOX --uid 1,2 --confirm", "mail flags --folder INBOX --uid 3 --add '\\Deleted'", "mail expunge", "delete 1",
	"mail move --folder INBOX --uid 1,2 --to Archive", "mail copy --folder INBOX --uid 3 --to Archive", "mail archive 1",
	"mail send --to bob@example.org --subject s --body b", "mail draft --to bob@example.org --subject s --body b", "mail reply",
	"mail forward imap:default:INBOX:1:1", "agent send --from a:b --to c:d --subject s", "outbox approve x --code y"}

// Test004_2_INV_GLOBAL_01_02_03_05_06_NothingButReadingCrossesTheWire runs every command that
// exists anywhere, with each of its arguments, through the profile, and reads what crossed the
// wire. One connection is open at a time, whatever is asked. Nothing is deleted, moved or sent,
// fetching changes nothing, and no text of a message is logged, also when everything fails.
func Test004_2_INV_GLOBAL_01_02_03_05_06_NothingButReadingCrossesTheWire(t *testing.T) {
	t.Parallel()
	s := servertest.SharedDovecot(t)
	const attached = "c4n4ry-4tt4chm3nt"
	for _, protocol := range []string{"imap", "pop3"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			user := servertest.User("wire" + protocol)
			letter := []byte("From: bob@example.org\r\nSubject: letter\r\nDate: Mon, 02 Feb 2026 10:00:00 +0000\r\n\r\n" + bodyCanary + "\r\n")
			s.Deliver(t, user, "INBOX", letter, []byte("From: bob@example.org\r\nSubject: file\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\n"+
				bodyCanary+"\r\n--b\r\nContent-Type: text/plain\r\nContent-Disposition: attachment; filename=a.txt\r\n\r\n"+attached+"\r\n--b--\r\n"), letter, realMessages(t)[0])
			p := newRecorder(t, s, protocol)
			submission := scripted.Serve(t, func(*scripted.Conn) {})
			c := carry(t, p, p.options(t, s, protocol, user), func(tr *house.Transport) {
				// A way out is there: only the commands are not.
				tr.Store.Served.SMTP = mail.Endpoint{Host: "127.0.0.1", Port: submission.Port, Security: mail.Plaintext}
				tr.Store.Served.AllowOut = mail.AllowList{Enabled: true, Entries: []string{"*"}}
			})
			var page listData
			c.do(t, "mail list --oldest-first", &page)
			if len(page.Messages) != 4 {
				t.Fatalf("%d messages", len(page.Messages))
			}
			id := page.Messages[1].ID
			before := s.Files(t, user)
			p.reset()

			worked, tried, shown := map[string]int{}, 0, 0
			marking := func(path string) bool { return path == "mail mark-read" }
			run := func(line, path string) {
				a := c.run(line)
				tried++
				offered := c.Registry.Exists(path)
				switch {
				case a.Success && !offered:
					t.Errorf("%s works", line)
				case a.Success:
					worked[path]++
				case !offered && a.Error.Code != discovery.CommandNotFound:
					t.Errorf("%s is told from a command that does not exist: %s", line, a.raw)
				case a.Error.Hint == "":
					t.Errorf("%s: no hint: %s", line, a.raw)
				}
				if strings.Contains(string(a.raw), bodyCanary) {
					shown++
				}
			}
			try := func(which func(path string) bool) (said []string) {
				for _, command := range everything() {
					if which(command.Path) {
						for _, line := range forms(command, id, "2") {
							run(line, command.Path)
						}
					}
				}
				return p.reset()
			}
			for _, line := range beyond {
				run(line, "")
			}
			read := try(func(path string) bool { return !marking(path) })
			if after := s.Files(t, user); !slices.Equal(before, after) || submission.Accepted() > 0 {
				t.Errorf("%d were called to send, and the mailbox was\n%v\nand is\n%v", submission.Accepted(), before, after)
			}
			mark := try(marking)
			if protocol == "pop3" {
				report(t, popViolations(slices.Concat(read, mark)))
			} else {
				report(t, append(imapViolations(read, false), imapViolations(mark, true)...))
				if got := flags(t, s, user); !slices.Equal(got, []string{"", "S", "", ""}) { // what is asked for in so many words
					t.Errorf("after mark-read the flags are %q", got)
				}
			}
			if len(strings.Join(read, "")) < 300 {
				t.Errorf("hardly anything was said: %q", read)
			}
			for _, path := range house.TransportCommands {
				if worked[path] == 0 && !(protocol == "pop3" && marking(path)) {
					t.Errorf("%s never worked, so nothing is known of it", path)
				}
			}
			if a := c.run("mail get 1"); protocol == "pop3" && (c.Registry.Exists("mail mark-read") || !strings.Contains(string(a.raw), "there are no short ids")) {
				t.Errorf("over POP3 there is mark-read, or %s", a.raw)
			}
			if worked["mail list"] < 8 || tried < 300 || shown == 0 {
				t.Errorf("%d commands tried, lists that worked: %d, texts that were read: %d", tried, worked["mail list"], shown)
			}
			report(t, p.several())
			p.dead(true) // what fails is logged most
			c.run("mail list")
			c.run("mail get --folder INBOX --uid 2 --attachment-text")
			if !strings.Contains(c.log.String(), "operation failed") {
				t.Errorf("nothing was ever logged, so nothing is known: %s", c.log)
			}
			for _, text := range []string{bodyCanary, attached} {
				report(t, finds("the log", []byte(c.log.String()), text))
			}
		})
	}
}

// Test004_2_ReadersOfTheWireNoticeWhatIsWrong breaks what a client says in every way
// that a reader of the wire has to notice, and some that it must let pass.
func Test004_2_ReadersOfTheWireNoticeWhatIsWrong(t *testing.T) {
	t.Parallel()
	for _, c := range testmain.Table[struct {
		Line string
		Want bool
	}](t, "testdata/cases/wire_imap.txt") {
		if got := imapViolations([]string{"x NOOP\r\n" + c.Line + "\r\n"}, false); (len(got) > 0) != c.Want {
			t.Errorf("%q: %q", c.Line, got)
		}
	}
	for _, c := range testmain.Table[struct {
		Line string
		Want bool
	}](t, "testdata/cases/wire_marking.txt") {
		if got := imapViolations([]string{c.Line + "\r\n"}, true); (len(got) > 0) != c.Want {
			t.Errorf("marking, %q: %q", c.Line, got)
		}
	}
	for _, c := range testmain.Table[struct {
		Line string
		Want bool
	}](t, "testdata/cases/wire_pop3.txt") {
		if got := popViolations([]string{c.Line + "\r\n"}); (len(got) > 0) != c.Want {
			t.Errorf("%q: %q", c.Line, got)
		}
	}
}
