package imap

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	goimap "github.com/emersion/go-imap/v2"
	"github.com/postern-mail/postern/mail/internal/wire"
	"github.com/postern-mail/postern/mail/servertest/scripted"
)

// What a server sends may not keep a command waiting behind the end of its context,
// and the pool from closing. In each case the library would wait, or compute, for
// good or for minutes.
func TestAnswersThatWouldKeepTheLibraryWaiting(t *testing.T) {
	most := 4 << 20 // what a line may be long
	if testing.Short() {
		most /= 4
	}
	falling := func() string {
		var b strings.Builder
		for n := 2_040_000; b.Len() < most-200; n -= 2 {
			fmt.Fprintf(&b, "%d,", n)
		}
		return strings.TrimSuffix(b.String(), ",")
	}
	const simple = "IMAP4rev1 SASL-IR AUTH=PLAIN"
	for _, test := range []struct {
		name, caps string
		answer     func(s *scripted.Conn, tag, command string)
		ask        func(s *Session) error
		kind       wire.Kind // empty: it works
		or         wire.Kind // where a race in the network decides: the answer came before the rest of the command left
	}{
		{"a message 0 is expunged", scripted.Caps, func(s *scripted.Conn, tag, command string) {
			s.Send("* 0 EXPUNGE\r\n" + strings.Repeat("* 1 EXPUNGE\r\n", 200) + tag + " OK done\r\n")
		}, func(s *Session) error { return second(s.Expunge(goimap.UIDSetNum(1, 2)).Wait()) }, "", ""},
		{"accepted between two literals", simple, func(s *scripted.Conn, tag, command string) {
			s.Send("+ go\r\n" + tag + " OK done\r\n")
			s.Drain()
		}, func(s *Session) error {
			return second(s.Search(&goimap.SearchCriteria{Header: []goimap.SearchCriteriaHeaderField{{Key: "From", Value: "jörg"}, {Key: "Subject", Value: "größe"}}}).Wait())
		}, wire.KindProtocol, ""},
		{"refused between two literals", simple, func(s *scripted.Conn, tag, command string) {
			s.Send("+ go\r\n" + tag + " BAD no\r\n")
			s.Drain()
		}, func(s *Session) error {
			return second(s.Count(&goimap.SearchCriteria{Text: []string{"jörg", "größe"}}).Wait())
		}, wire.KindRefused, wire.KindProtocol},
		{"a set in falling order", scripted.Caps, func(s *scripted.Conn, tag, command string) {
			s.Send(fmt.Sprintf("* ESEARCH (TAG %q) UID ALL %s\r\n%s OK done\r\n", tag, falling(), tag))
		}, func(s *Session) error {
			set, err := s.Search(&goimap.SearchCriteria{}).Wait()
			if err == nil && (len(set) < most/9 || !set.Contains(2_040_000) || set.Contains(2_039_999)) {
				return fmt.Errorf("%d ranges", len(set))
			}
			return err
		}, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			scripted.Settle(t)
			sv := scripted.Serve(t, func(s *scripted.Conn) {
				s.Greet(test.caps)
				for {
					tag, command := s.Expect()
					if strings.HasPrefix(command, "SELECT") {
						s.Send("* 300 EXISTS\r\n* OK [UIDVALIDITY 7] v\r\n" + tag + " OK [READ-WRITE] done\r\n")
						continue
					}
					test.answer(s, tag, command)
				}
			})
			p := NewPool(PoolOptions{Config: configOf(sv)})
			within(t, "the command", func() {
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				err := p.Change(ctx, "INBOX", DeleteMessages, func(_ context.Context, s *Session) error {
					if _, err := s.Select("INBOX").Wait(); err != nil {
						return err
					}
					return test.ask(s)
				})
				if test.kind == "" && err != nil {
					t.Error(err)
				}
				if test.kind != "" {
					kind := test.kind
					if e := (*wire.Error)(nil); errors.As(err, &e) && test.or == e.Kind {
						kind = test.or
					}
					wantError(t, err, kind, StageSearch)
				}
			})
			within(t, "Close", func() { _ = p.Close() })
		})
	}
}

// within fails the test when do does not return in the end.
func within(t *testing.T, what string, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); do() }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatalf("%s does not return", what)
	}
}

// A server can guess the next tag. An answer to a command that has not begun to
// leave is none.
func TestAnswerAheadOfItsCommand(t *testing.T) {
	scripted.Settle(t)
	guess := make(chan struct{})
	cfg := serve(t, func(s *scripted.Conn) {
		s.Login()
		<-guess
		s.Send("* 3 EXISTS\r\nT1 OK done\r\n")
		s.Drain()
	})
	s := dial(t, cfg)
	err := s.Use(t.Context(), func(_ context.Context, s *Session) error {
		close(guess)
		<-s.client.Closed()
		return s.Noop().Wait()
	})
	wantError(t, err, wire.KindProtocol, StageNoop)
}

// A server that accepts IDLE and refuses the NOOP in front of it is in IDLE, where
// it would take no command: the connection is given up.
func TestIdleThatIsNotRestedIn(t *testing.T) {
	scripted.Settle(t)
	cfg := serve(t, scripted.AnswerIMAP(scripted.Caps+" IDLE", func(command string) string {
		switch command {
		case "NOOP":
			return "TAG NO [UNAVAILABLE] busy\r\n"
		case "IDLE":
			return "+ idling\r\n"
		}
		return scripted.Selected
	}))
	p := newPool(t, PoolOptions{Config: cfg})
	look := func(s *Session) error { return lookAt("INBOX")(t.Context(), s) }
	if _, err := p.Rest(t.Context(), "INBOX", look, func(bool) {}); err == nil {
		t.Error("it rests")
	}
	lend(t, p, "INBOX", lookAt("INBOX"))
}
