package imap

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	goimap "github.com/emersion/go-imap/v2"
	"github.com/postern-mail/postern/mail/internal/wire"
	"github.com/postern-mail/postern/mail/servertest/scripted"
)

// Numbers in falling order cost the library the square of their count: they are put in order
// on their way to it.
func TestASetInFallingOrder(t *testing.T) {
	t.Parallel()
	const first = 400_000
	var falling strings.Builder
	for n := first; n > 0; n -= 2 {
		fmt.Fprintf(&falling, ",%d", n)
	}
	cfg := serve(t, func(s *scripted.Conn) {
		s.Login()
		tag, _ := s.Expect()
		s.Send("* ESEARCH (TAG \"" + tag + "\") UID ALL " + falling.String()[1:] + "\r\n" + tag + " OK done\r\n")
		s.Drain()
	})
	using(t, cfg, func(s *Session) error {
		start := time.Now()
		set, err := s.Search(&goimap.SearchCriteria{}).Wait()
		if took := time.Since(start); err != nil || len(set) != first/2 || !set.Contains(first) || set.Contains(first-1) || took > 10*time.Second {
			t.Errorf("%d ranges after %s, %v", len(set), took, err)
		}
		return err
	})
}

// A server can guess the next tag. An answer to a command that has not begun to
// leave is none.
func TestAnswerAheadOfItsCommand(t *testing.T) {
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
