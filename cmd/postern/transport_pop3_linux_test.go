package main

import (
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postern-mail/postern/cmd/postern/internal/house"
	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail/servertest/scripted"
)

// pop3Server is a server on which a test decides what it says.
type pop3Server struct {
	*scripted.Server
	mu    sync.Mutex
	heard []string
}

// reaction answers one command; false hangs up. The command of a new connection is
// empty.
type reaction func(w io.Writer, command string) bool

func hostile(t testing.TB, react func(session int) reaction) *pop3Server {
	t.Helper()
	s := &pop3Server{}
	s.Server = scripted.Serve(t, func(c *scripted.Conn) {
		do := react(c.N)
		for command := ""; do(c, command); {
			command = c.Line()
			s.mu.Lock()
			s.heard = append(s.heard, command)
			s.mu.Unlock()
		}
	})
	return s
}

func (s *pop3Server) commands() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.heard)
}

const ordinary = "From: bob@example.org\r\nSubject: one\r\nDate: Mon, 02 Feb 2026 10:00:00 +0000\r\n\r\ntext\r\n.\r\n"

// say answers as an ordinary server with two messages does, but for what differs: a
// verb, or "greeting", and what it answers.
func say(differs map[string]string) reaction {
	return func(w io.Writer, command string) bool {
		verb, _, _ := strings.Cut(strings.ToUpper(command), " ")
		answer, ok := map[string]string{"": "+OK ready\r\n", "CAPA": "+OK\r\nUIDL\r\nTOP\r\nUSER\r\nSASL PLAIN\r\n.\r\n", "AUTH": "+OK\r\n", "USER": "+OK\r\n", "PASS": "+OK\r\n",
			"UIDL": "+OK\r\n1 a\r\n2 b\r\n.\r\n", "LIST": "+OK\r\n1 100\r\n2 100\r\n.\r\n", "TOP": "+OK\r\n" + ordinary, "RETR": "+OK\r\n" + ordinary, "NOOP": "+OK\r\n", "QUIT": "+OK\r\n"}[verb]
		if verb == "" {
			verb = "greeting"
		}
		if other, different := differs[verb]; different {
			answer, ok = other, true
			if other == "" {
				return false // it hangs up
			}
		}
		if !ok {
			answer = "-ERR unknown\r\n"
		}
		_, err := io.WriteString(w, answer)
		return err == nil && verb != "QUIT"
	}
}

// endless answers one verb with something that never ends.
func endless(verb, first, again string, pause time.Duration) reaction {
	usual := say(nil)
	return func(w io.Writer, command string) bool {
		if v, _, _ := strings.Cut(strings.ToUpper(command), " "); v != verb {
			return usual(w, command)
		}
		if _, err := io.WriteString(w, first); err != nil {
			return false
		}
		if again == "" {
			_, _ = io.Copy(io.Discard, w.(net.Conn)) // silence, until the client has gone
			return false
		}
		for again := strings.Repeat(again, 1+60_000/len(again)); ; {
			if pause > 0 {
				again = again[:1]
				time.Sleep(pause)
			}
			if _, err := io.WriteString(w, again); err != nil {
				return false
			}
		}
	}
}

// maxHostile is what a process may use that a server wants to fill, in kB: a message
// of the largest size, 64 MiB, while it grows. The race detector takes several times
// as much.
func maxHostile() int {
	if racing {
		return 1400 << 10
	}
	return 350 << 10
}

// Test004_5_HostilePOP3Servers meets servers that lie, flood, trickle and keep
// silent, through the program as a process: it answers, within the deadline that
// was asked for, and goes on to answer.
func Test004_5_HostilePOP3Servers(t *testing.T) {
	t.Parallel()
	numbered := "+OK\r\n"
	for i := range 300 {
		numbered += fmt.Sprintf("%d name%d\r\n", i+1, i+1)
	}
	for _, test := range testmain.Table[struct {
		ByDay           bool
		Name, How       string
		Line, Want      string // a command, and its code or part of its answer
		VerbsAndAnswers []string
	}](t, "testdata/cases/hostile_pop3.txt") {
		if !test.ByDay && testmain.Rounds(0, 1) == 0 {
			continue
		}
		react := hostileReaction(test.How, test.VerbsAndAnswers, numbered)
		t.Run(test.Name, func(t *testing.T) {
			t.Parallel()
			s := hostile(t, func(int) reaction { return react })
			o := &house.TransportOptions{Host: "127.0.0.1", Port: uint(s.Port), Security: "none", Protocol: "pop3", Username: "ann", Helper: "echo secret"}
			session, log := carrying(t, o)
			limit := " --timeout 60" // for a flood on a slow machine; it ends by its size
			if test.Want == "TIMEOUT" {
				limit = " --timeout 1"
			}
			for _, line := range []string{test.Line + limit, "mail verify" + limit, "version"} {
				a := envelope(t, session, line)
				if strings.Contains(line, test.Line) && test.Want != "" && string(a.Error.Code) != test.Want && !strings.Contains(string(a.raw), test.Want) {
					t.Errorf("%s: %.600s", line, a.raw)
				}
				if !a.Success && a.Error.Hint == "" {
					t.Errorf("%s: no hint: %s", line, a.raw)
				}
			}
			if kB := peak(t, session.Process.Process.Pid); kB > maxHostile() {
				t.Errorf("%d kB were resident", kB)
			}
			ended(t, session)
			if strings.Contains(log.String(), "panic") || strings.Contains(log.String(), "secret") {
				t.Errorf("%s", log)
			}
			said := slices.DeleteFunc(s.commands(), func(line string) bool { return line == "*" }) // gives a login up
			for _, v := range popViolations([]string{strings.Join(said, "\r\n")}) {
				t.Error(v)
			}
		})
	}
}

// hostileReaction says what verbs are answered with, or goes on with the last of three texts for ever:
// all at once, a little at a time, or not at all.
func hostileReaction(how string, texts []string, numbered string) reaction {
	if how == "says" {
		differs := map[string]string{}
		for i := 0; i+1 < len(texts); i += 2 {
			differs[texts[i]] = strings.ReplaceAll(texts[i+1], "NUMBERED", numbered)
		}
		return say(differs)
	}
	return endless(texts[0], texts[1], texts[2], map[string]time.Duration{"trickles": 50 * time.Millisecond}[how])
}

// Test004_5_POP3WithoutTheTLSThatWasAsked strips STLS, and puts bytes in front of the
// handshake: no user name or password leaves.
func Test004_5_POP3WithoutTheTLSThatWasAsked(t *testing.T) {
	t.Parallel()
	for name, react := range map[string]reaction{
		"refused":             say(map[string]string{"STLS": "-ERR what\r\n"}),
		"no TLS behind it":    say(map[string]string{"STLS": "+OK\r\n"}),
		"bytes in front":      say(map[string]string{"STLS": "+OK\r\n+OK injected\r\n"}),
		"capabilities before": say(map[string]string{"greeting": "+OK\r\n+OK\r\nSASL PLAIN\r\n.\r\n", "STLS": "-ERR no\r\n"}),
	} {
		s := hostile(t, func(int) reaction { return react })
		o := &house.TransportOptions{Host: "127.0.0.1", Port: uint(s.Port), Security: "starttls", Protocol: "pop3", Username: "ann", Helper: "echo secret"}
		session, _ := carrying(t, o)
		if a := envelope(t, session, "mail list --timeout 5"); a.Success || a.Error.Hint == "" {
			t.Errorf("%s: %s", name, a.raw)
		}
		ended(t, session)
		begun := false // the handshake, of which any byte can be taken for a line's end
		for _, command := range s.commands() {
			begun = begun || isHandshake(command)
			verb, _, _ := strings.Cut(command, " ")
			if verb != "STLS" && verb != "QUIT" && !begun {
				t.Errorf("%s: it said %q", name, command)
			}
			if strings.Contains(command, "ann") || strings.Contains(command, "secret") || strings.Contains(command, "AUTH") {
				t.Errorf("%s: it gave itself away: %q", name, command)
			}
		}
	}
}

// isHandshake reports whether what was taken for a line is a piece of TLS.
func isHandshake(line string) bool {
	return strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r > '~' })
}

// Test004_5_AMessageThatVanishesBetweenTwoSessions is there in one session and not in
// the next.
func Test004_5_AMessageThatVanishesBetweenTwoSessions(t *testing.T) {
	t.Parallel()
	s := hostile(t, func(session int) reaction {
		usual := say(nil)
		after := say(map[string]string{"UIDL": "+OK\r\n1 b\r\n.\r\n", "LIST": "+OK\r\n1 100\r\n.\r\n"})
		gets := 0
		return func(w io.Writer, command string) bool {
			switch {
			case session > 1:
				return after(w, command)
			case strings.HasPrefix(command, "RETR"):
				return false // it hangs up, and the next session is another
			case strings.HasPrefix(command, "TOP"):
				gets++
			}
			return usual(w, command)
		}
	})
	o := &house.TransportOptions{Host: "127.0.0.1", Port: uint(s.Port), Security: "none", Protocol: "pop3", Username: "ann", Helper: "echo secret"}
	session, _ := carrying(t, o)
	if a := envelope(t, session, "mail list"); !a.Success || !strings.Contains(string(a.raw), "pop3:default:a") {
		t.Fatalf("%s", a.raw)
	}
	for _, line := range []string{"mail get pop3:default:a", "mail thread pop3:default:a"} {
		if a := envelope(t, session, line); a.Error.Code != "NOT_FOUND" {
			t.Errorf("%s: %s", line, a.raw)
		}
	}
	if a := envelope(t, session, "mail list --before pop3:default:a"); a.Error.Code != "CONFLICT" {
		t.Errorf("%s", a.raw)
	}
	if a := envelope(t, session, "mail get pop3:default:b"); !a.Success {
		t.Errorf("what took its number: %s", a.raw)
	}
	ended(t, session)
}
