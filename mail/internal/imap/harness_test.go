package imap

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail/internal/wire"
	"github.com/postern-mail/postern/mail/servertest/scripted"
)

var must = testmain.Must

// serve starts a scripted server, and returns how to connect to it without TLS.
func serve(t *testing.T, run func(s *scripted.Conn)) Config {
	t.Helper()
	return configOf(scripted.Serve(t, run))
}

// configOf is how to connect to a scripted server without TLS.
func configOf(sv *scripted.Server) Config { return Config{Target: sv.Target(wire.Plaintext)} }

// talk is the script of a server that greets, gives each command its answer, as
// scripted.Conn.Answer does, and falls silent.
func talk(greeting string, answers ...string) func(s *scripted.Conn) {
	return func(s *scripted.Conn) {
		s.Send(greeting)
		for _, a := range answers {
			s.Answer(a)
		}
		s.Drain()
	}
}

// obey answers every command of a small client that has logged in.
func obey(s *scripted.Conn) {
	for {
		tag, command := s.Expect()
		verb, _, _ := strings.Cut(command, " ")
		switch verb {
		case "CAPABILITY":
			s.Send("* CAPABILITY " + scripted.Caps + "\r\n" + tag + " OK done\r\n")
		case "EXAMINE", "SELECT":
			s.Send("* 3 EXISTS\r\n* OK [UIDVALIDITY 7] v\r\n" + tag + " OK [READ-ONLY] done\r\n")
		case "LOGOUT":
			s.Send("* BYE bye\r\n" + tag + " OK out\r\n")
			return
		default:
			s.Send(tag + " OK done\r\n")
		}
	}
}

// obedient accepts a login and obeys.
func obedient(s *scripted.Conn) {
	s.Login()
	obey(s)
}

// peak notes the most that were in at once.
type peak struct{ now, most atomic.Int32 }

func (p *peak) in() {
	n := p.now.Add(1)
	for m := p.most.Load(); n > m && !p.most.CompareAndSwap(m, n); m = p.most.Load() {
	}
}

func (p *peak) out() { p.now.Add(-1) }

// lend lends a session of a pool, which may not fail.
func lend(t *testing.T, p *Pool, folder string, fn func(ctx context.Context, s *Session) error) {
	t.Helper()
	if err := p.Lend(t.Context(), folder, fn); err != nil {
		t.Error(err)
	}
}

// mustLend is lend for the test's own goroutine: nothing follows when it fails.
func mustLend(t *testing.T, p *Pool, folder string, fn func(ctx context.Context, s *Session) error) {
	t.Helper()
	must(t, p.Lend(t.Context(), folder, fn))
}

// dial connects, for as long as the test.
func dial(t *testing.T, cfg Config) *Session {
	t.Helper()
	s, err := Dial(t.Context(), cfg)
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// using connects, and uses the session for fn, which may not fail.
func using(t *testing.T, cfg Config, fn func(s *Session) error) {
	t.Helper()
	if err := dial(t, cfg).Use(t.Context(), func(_ context.Context, s *Session) error { return fn(s) }); err != nil {
		t.Error(err)
	}
}

// texts is what a FETCH found: each message's UID and the content of its sections.
func texts(data []*Fetched) string {
	var all []string
	for _, m := range data {
		text := fmt.Sprintf("%d:", m.UID)
		for _, b := range m.Sections {
			text += string(b.Bytes)
		}
		all = append(all, text)
	}
	return strings.Join(all, " ")
}

// lookAt is a lend that opens a folder for reading.
func lookAt(folder string) func(context.Context, *Session) error {
	return func(_ context.Context, s *Session) error { return second(s.Examine(folder).Wait()) }
}

// noop is a lend that says NOOP.
func noop(_ context.Context, s *Session) error { return s.Noop().Wait() }

// second is the error of a call whose answer does not matter.
func second[T any](_ T, err error) error { return err }
