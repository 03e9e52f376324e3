package pop3

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/mail/internal/wire"
	"github.com/postern-mail/postern/mail/servertest/scripted"
)

// stallingPop is a POP3 server with one message that says nothing more once it gets a
// certain command; "greeting" stands for the connection itself.
type stallingPop struct {
	said  chan string   // each command
	stuck chan struct{} // it says nothing more
	gone  chan struct{} // a client has gone
}

func stallAt(t *testing.T, at string) (*Kept, *stallingPop) {
	t.Helper()
	s := &stallingPop{said: make(chan string, 100), stuck: make(chan struct{}, 100), gone: make(chan struct{}, 100)}
	sv := scripted.Serve(t, func(c *scripted.Conn) {
		defer func() { s.gone <- struct{}{} }()
		for command := "greeting"; ; s.said <- command {
			if command == at {
				s.stuck <- struct{}{}
			} else {
				text := map[string]string{"CAPA": "+OK\r\nUSER\r\n.", "UIDL": "+OK\r\n1 one\r\n.", "LIST": "+OK\r\n1 5\r\n."}[command]
				c.Send(cmp.Or(text, "+OK") + "\r\n")
			}
			command, _, _ = strings.Cut(c.Line(), " ")
		}
	})
	return NewKept(Config{Target: sv.Target(wire.Plaintext)}, time.Now), s
}

// TestClosingEndsWhatAPOP3SessionIsDoing closes a mailbox while the server keeps silent,
// and another command waits for its turn.
func TestClosingEndsWhatAPOP3SessionIsDoing(t *testing.T) {
	retrieve := func(b *Kept) error {
		return b.Lend(t.Context(), false, func(s *Mailbox) error {
			return s.Retrieve(t.Context(), []int{1}, 100, func(int, []byte, error) {})
		})
	}
	verify := func(b *Kept) error {
		return b.Try(t.Context(), func(*Session) {})
	}
	for name, c := range map[string]struct {
		at string
		do func(*Kept) error
	}{
		"connecting": {"greeting", retrieve},
		"logging in": {"PASS", retrieve},
		"listing":    {"UIDL", retrieve},
		"reading":    {"RETR", retrieve},
		"verifying":  {"PASS", verify},
	} {
		t.Run(name, func(t *testing.T) {
			b, s := stallAt(t, c.at)
			done := make(chan error, 2)
			go func() { done <- c.do(b) }()
			<-s.stuck
			go func() { done <- retrieve(b) }()
			closed := make(chan error, 1)
			go func() { closed <- b.Close() }()
			for range 2 {
				select {
				case err := <-done:
					if !errors.Is(err, errClosed) {
						t.Errorf("%v, want what says that it was closed", err)
					}
				case <-time.After(time.Minute):
					t.Fatal("it goes on")
				}
			}
			if err := <-closed; err != nil {
				t.Error(err)
			}
			<-s.gone
			if err := retrieve(b); !errors.Is(err, errClosed) {
				t.Errorf("afterwards: %v", err)
			}
			if err := b.Close(); err != nil {
				t.Errorf("again: %v", err)
			}
		})
	}
}

// A session that nobody uses is ended as the protocol has it.
func TestClosingAnIdlePOP3SessionSaysGoodbye(t *testing.T) {
	b, s := stallAt(t, "nowhere")
	must(t, b.Lend(t.Context(), false, func(*Mailbox) error { return nil }))
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	last := ""
	for len(s.said) > 0 {
		last = <-s.said
	}
	if last != "QUIT" {
		t.Errorf("its last word was %q", last)
	}
}

// TestABusyMailboxGetsFreeForOthers: who goes on with it lets others have a turn, whether it
// lists or only reads.
func TestABusyMailboxGetsFreeForOthers(t *testing.T) {
	b, _ := stallAt(t, "nowhere")
	now, leases, released, free := time.Now(), 0, time.Time{}, time.Hour
	b.now = func() time.Time { return now }
	b.cfg.Lease = func(ctx context.Context) (context.Context, func(), error) {
		if leases++; leases > 1 {
			free = min(free, time.Since(released))
		}
		return ctx, func() { released = time.Now() }, nil
	}
	for _, fresh := range []bool{false, true, false} {
		must(t, b.Lend(t.Context(), fresh, func(*Mailbox) error { return nil }))
		now = now.Add(young + time.Second)
	}
	if leases != 3 || free < way {
		t.Errorf("%d leases, free for %v", leases, free)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

// TestASessionWhoseLeaseIsLostIsReplaced also where that happens in the middle of a command.
func TestASessionWhoseLeaseIsLostIsReplaced(t *testing.T) {
	b, s := stallAt(t, "NOOP")
	var lose context.CancelFunc
	b.cfg.Lease = func(ctx context.Context) (context.Context, func(), error) {
		held, cancel := context.WithCancel(ctx)
		lose = cancel
		return held, cancel, nil
	}
	runs := 0
	use := func(b *Mailbox) error {
		if runs++; runs != 2 {
			return nil
		}
		go func() { <-s.stuck; lose() }()
		return b.Check(t.Context())
	}
	for range 2 {
		if err := b.Lend(t.Context(), false, use); err != nil {
			t.Error(err)
		}
	}
	if err := b.Close(); err != nil || runs != 3 {
		t.Errorf("%v after %d runs", err, runs)
	}
}
