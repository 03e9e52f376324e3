//go:build unix

package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/postern-mail/postern/cmd/postern/internal/house"
	"github.com/postern-mail/postern/commands"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail/servertest"
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

// Test004_2_NothingButReadingCrossesTheWire runs every command that exists anywhere,
// with each of its arguments, through the profile, and reads what crossed the wire.
// One connection is open at a time, whatever is asked.
func Test004_2_NothingButReadingCrossesTheWire(t *testing.T) {
	t.Parallel()
	s := servertest.SharedDovecot(t)
	for _, protocol := range []string{"imap", "pop3"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			user := servertest.User("wire" + protocol)
			s.Deliver(t, user, "INBOX", realMessages(t)[:4]...)
			target := s.IMAPSAddr()
			if protocol == "pop3" {
				target = s.POP3SAddr()
			}
			p := newTap(t, s, target)
			c := carry(t, p, p.options(t, s, protocol, user), nil)
			var page listData
			c.do(t, "mail list --oldest-first", &page)
			if len(page.Messages) != 4 {
				t.Fatalf("%d messages", len(page.Messages))
			}
			id := page.Messages[1].ID
			before := s.Files(t, user)
			p.reset()

			worked, tried := map[string]int{}, 0
			marking := func(path string) bool { return path == "mail mark-read" }
			try := func(which func(path string) bool) (said []string) {
				for _, command := range everything() {
					if !which(command.Path) {
						continue
					}
					for _, line := range forms(command, id, "2") {
						a := c.run(line)
						tried++
						offered := c.Registry.Exists(command.Path)
						switch {
						case a.Success:
							worked[command.Path]++
						case !offered && a.Error.Code != discovery.CommandNotFound:
							t.Errorf("%s is told from a command that does not exist: %s", line, a.raw)
						case a.Error.Hint == "":
							t.Errorf("%s: no hint: %s", line, a.raw)
						}
						if a.Success && !offered {
							t.Errorf("%s works", line)
						}
					}
				}
				return p.reset()
			}
			read := try(func(path string) bool { return !marking(path) })
			mark := try(marking)
			check := func(said []string, marks bool) []string {
				if protocol == "pop3" {
					return popViolations(said)
				}
				return imapViolations(said, marks)
			}
			for _, v := range append(check(read, false), check(mark, true)...) {
				t.Error(v)
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
			if worked["mail list"] < 8 || tried < 300 {
				t.Errorf("%d commands tried, lists that worked: %d", tried, worked["mail list"])
			}
			for _, v := range p.several() {
				t.Error(v)
			}
			if after := s.Files(t, user); protocol == "pop3" && !slices.Equal(before, after) {
				t.Errorf("the mailbox changed:\n%v\n%v", before, after)
			}
		})
	}
}

// Test004_2_ReadersOfTheWireNoticeWhatIsWrong breaks what a client says in every way
// that a reader of the wire has to notice, and some that it must let pass.
func Test004_2_ReadersOfTheWireNoticeWhatIsWrong(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{
		"a SELECT INBOX": true, "a STORE 1 +FLAGS (\\Seen)": true, "a UID STORE 1 +FLAGS (\\Deleted)": true, "a uid store 1 flags (\\Seen)": true,
		"a UID STORE 1 -FLAGS (\\Seen)": true, "a EXPUNGE": true, "a UID EXPUNGE 1": true, "a UID MOVE 1 x": true, "a MOVE 1 x": true, "a UID COPY 1 x": true,
		"a APPEND x {3}\r\nabc": true, "a CREATE x": true, "a DELETE x": true, "a RENAME x y": true, "a CLOSE": true, "a SUBSCRIBE x": true,
		"a UID FETCH 1 BODY[]": true, "a FETCH 1 (UID RFC822)": true, "a FETCH 1 RFC822.TEXT": true, "a UID FETCH 1 BINARY[1]": true, "a fetch 1 body[text]": true,
		"a LIST \"\" {1}\r\n*\r\nb DELETE x": true, "a AUTHENTICATE PLAIN\r\nAGE=\r\nb DELETE x": true, "a SETACL x y z": true,
		"a UID FETCH 1 (UID FLAGS BODY.PEEK[HEADER] RFC822.SIZE)": false, "a AUTHENTICATE PLAIN\r\nDELETE=": false, "a EXAMINE INBOX": false,
		"a UID SEARCH SUBJECT {6}\r\nDELETE": false, "a NOOP": false, "a UID FETCH 1 (BODY.PEEK[]<0.10> BINARY.PEEK[1])": false,
	} {
		if got := imapViolations([]string{"x NOOP\r\n" + line + "\r\n"}, false); (len(got) > 0) != want {
			t.Errorf("%q: %q", line, got)
		}
	}
	for line, want := range map[string]bool{
		"a SELECT INBOX": false, "a UID STORE 1 +FLAGS (\\Seen)": false, "a UID STORE 1,2 +FLAGS.SILENT (\\Seen)": false,
		"a UID STORE 1 +FLAGS (\\Seen \\Deleted)": true, "a UID STORE 1 FLAGS (\\Seen)": true, "a STORE 1 +FLAGS (\\Seen)": true, "a UID STORE * +FLAGS (\\Seen)": true, "a EXPUNGE": true,
	} {
		if got := imapViolations([]string{line + "\r\n"}, true); (len(got) > 0) != want {
			t.Errorf("marking, %q: %q", line, got)
		}
	}
	for line, want := range map[string]bool{
		"DELE 1": true, "dele 1": true, "RSET": true, "XTND": true, "UIDL\r\nLIST\r\nDELE 2": true, "AUTH PLAIN\r\nAGE=\r\nDELE 1": true,
		"AUTH PLAIN\r\nDELE": false, "RETR 1": false, "TOP 1 0": false, "QUIT": false,
	} {
		if got := popViolations([]string{line + "\r\n"}); (len(got) > 0) != want {
			t.Errorf("%q: %q", line, got)
		}
	}
}
