package wire_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/postern-mail/postern/mail/internal/imap"
	"github.com/postern-mail/postern/mail/internal/pop3"
	"github.com/postern-mail/postern/mail/internal/smtp"
	"github.com/postern-mail/postern/mail/internal/wire"
	"github.com/postern-mail/postern/mail/servertest/scripted"
)

// answering is a server that answers lines by their beginnings, and hangs up at any other.
func answering(greeting string, answers map[string]string) func(note func(string)) func(*scripted.Conn) {
	return func(note func(string)) func(*scripted.Conn) {
		return scripted.AnswerLines(greeting, func(line string) (string, bool) {
			note(line)
			for begin, answer := range answers {
				if strings.HasPrefix(line, begin) {
					return answer, false
				}
			}
			return "", true
		})
	}
}

// obliging is an IMAP server that does whatever it is told.
func obliging(note func(string)) func(*scripted.Conn) {
	return func(c *scripted.Conn) {
		c.Greet(scripted.Caps + " IDLE")
		for {
			line := c.Line()
			note(line)
			tag, command, _ := strings.Cut(line, " ")
			if command == "IDLE" {
				c.Send("+ idling\r\n")
				note(c.Line())
			}
			c.Send(tag + " OK done\r\n")
		}
	}
}

// TestNothingBeginsOnceTheTargetSaysSo has a session of each protocol go on under a stop, and
// one that rests in IDLE. No command leaves, not even a goodbye, and no connection is made.
func TestNothingBeginsOnceTheTargetSaysSo(t *testing.T) {
	noop := func(_ context.Context, s *imap.Session) error { return s.Noop().Wait() }
	for name, c := range map[string]struct {
		server func(note func(string)) func(*scripted.Conn)
		// open makes a session, and returns how it goes on and how it ends.
		open func(t *testing.T, target wire.Target) (goOn, end func() error, err error)
	}{
		"IMAP": {obliging, func(t *testing.T, target wire.Target) (goOn, end func() error, err error) {
			p := imap.NewPool(imap.PoolOptions{Config: imap.Config{Target: target}})
			return func() error { return p.Lend(t.Context(), "", noop) }, p.Close, p.Lend(t.Context(), "", noop)
		}},
		"IMAP at rest in IDLE": {obliging, func(t *testing.T, target wire.Target) (goOn, end func() error, err error) {
			p := imap.NewPool(imap.PoolOptions{Config: imap.Config{Target: target}})
			leave, err := p.Rest(t.Context(), "INBOX", func(s *imap.Session) error { return noop(t.Context(), s) }, func(bool) {})
			return func() error {
				leave(true)
				return p.Lend(t.Context(), "", noop)
			}, p.Close, err
		}},
		"POP3": {answering("+OK here\r\n", map[string]string{"CAPA": "+OK\r\nUSER\r\nUIDL\r\n.\r\n", "USER": "+OK\r\n", "PASS": "+OK\r\n", "NOOP": "+OK\r\n", "QUIT": "+OK\r\n"}),
			func(t *testing.T, target wire.Target) (goOn, end func() error, err error) {
				s, err := pop3.Dial(t.Context(), pop3.Config{Target: target})
				return func() error { return s.Check(t.Context()) }, func() error { return s.Close() }, err
			}},
		"SMTP": {answering("220 here\r\n", map[string]string{"EHLO": "250-here\r\n250 AUTH PLAIN\r\n", "AUTH": "235 in\r\n", "QUIT": "221 bye\r\n"}),
			func(t *testing.T, target wire.Target) (goOn, end func() error, err error) {
				s, err := smtp.Dial(t.Context(), target)
				return func() error {
					_, err := s.Send(t.Context(), smtp.Envelope{From: "a@example.com", Recipients: []string{"b@example.com"}}, []byte("Subject: x\r\n\r\nx\r\n"))
					return err
				}, func() error { return s.Close() }, err
			}},
	} {
		t.Run(name, func(t *testing.T) {
			stop := errors.New("stopped")
			var stopped atomic.Bool
			var mu sync.Mutex
			var lines []string
			sv := scripted.Serve(t, c.server(func(line string) { mu.Lock(); defer mu.Unlock(); lines = append(lines, line) }))
			target := sv.Target(wire.Plaintext)
			target.MayBegin = func(context.Context) error {
				if stopped.Load() {
					return stop
				}
				return nil
			}
			goOn, end, err := c.open(t, target)
			if err != nil {
				t.Fatal(err)
			}
			mu.Lock()
			before := slices.Clone(lines)
			mu.Unlock()
			stopped.Store(true)
			if err := goOn(); !errors.Is(err, stop) {
				t.Errorf("it goes on: %v", err)
			}
			_ = end()
			if _, _, err := c.open(t, target); !errors.Is(err, stop) || sv.Accepted() != 1 {
				t.Errorf("a new session, of %d: %v", sv.Accepted(), err)
			}
			sv.Stop()
			if !slices.Equal(lines, before) {
				t.Errorf("after the stop it was told %q", lines[len(before):])
			}
		})
	}
}
