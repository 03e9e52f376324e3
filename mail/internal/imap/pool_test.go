package imap

import (
	"bufio"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postern-mail/postern/mail/internal/wire"
	"github.com/postern-mail/postern/mail/servertest/scripted"
)

func newPool(t *testing.T, o PoolOptions) *Pool {
	t.Helper()
	p := NewPool(o)
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func TestPoolNeverHasMoreThanItsSessions(t *testing.T) {
	t.Parallel()
	sv := scripted.Serve(t, obedient)
	p := newPool(t, PoolOptions{Config: configOf(sv)})
	var wg sync.WaitGroup
	var at peak
	for range 60 {
		wg.Go(func() {
			lend(t, p, "", func(ctx context.Context, s *Session) error {
				at.in()
				defer at.out()
				return noop(ctx, s)
			})
		})
	}
	wg.Wait()
	if at.most.Load() > DefaultSessions || sv.Accepted() > DefaultSessions {
		t.Errorf("%d at once, %d connections", at.most.Load(), sv.Accepted())
	}
}

// Of several sessions the one is lent that has the folder open, and best with the access that
// is wanted.
func TestPoolPrefersTheFolderAsked(t *testing.T) {
	p := newPool(t, PoolOptions{Config: serve(t, obedient), Sessions: 3})
	// Three sessions, made by lending one inside the other.
	mustLend(t, p, "", func(ctx context.Context, b *Session) error {
		err := p.Change(ctx, "", MarkSeen, func(ctx context.Context, a *Session) error {
			if err := p.Lend(ctx, "", lookAt("A")); err != nil {
				return err
			}
			return second(a.Select("A").Wait())
		})
		if err != nil {
			return err
		}
		return lookAt("B")(ctx, b)
	})
	for _, want := range []Folder{{Name: "B"}, {Name: "A"}, {Name: "A", Writable: true}, {Name: "B"}, {Name: "A", Writable: true}, {Name: "A"}} {
		use := func(_ context.Context, s *Session) error {
			if f, ok := s.Selected(); !ok || f.Name != want.Name || f.Writable != want.Writable || f.UIDValidity != 7 || f.Exists != 3 {
				t.Errorf("asked for %+v, got %+v", want, f)
			}
			return nil
		}
		if !want.Writable {
			mustLend(t, p, want.Name, use)
		} else if err := p.Change(t.Context(), want.Name, MarkSeen, use); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPoolServesInOrder(t *testing.T) {
	p := newPool(t, PoolOptions{Config: serve(t, obedient), Sessions: 1})
	var order []int
	var wg sync.WaitGroup
	mustLend(t, p, "", func(ctx context.Context, s *Session) error {
		for i := range 10 {
			wg.Go(func() {
				_ = p.Lend(ctx, "", func(context.Context, *Session) error { order = append(order, i); return nil })
			})
			p.queued(i + 1)
		}
		return nil
	})
	wg.Wait()
	if want := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}; !slices.Equal(order, want) {
		t.Errorf("order %v", order)
	}
}

// A server that hung up between lends is noticed while asking, and the lend runs again,
// unless the server has answered: a goodbye that crosses a command is no answer to it,
// and what was answered is not asked again.
func TestPoolReplacesADeadSession(t *testing.T) {
	store := func(_ context.Context, s *Session) error {
		return second(s.Store(UIDs(1), false, []string{`\Seen`}).Wait())
	}
	for name, tc := range map[string]struct {
		last  string // of the server, in place of an answer to the second lend
		conns int
	}{
		"silent":              {"", 2},
		"silent after change": {"", 2}, // that of an earlier lend is no reason not to repeat one that reads
		"with goodbye":        {"* BYE you were idle\r\n", 2},
		"answered":            {"* 4 EXISTS\r\n", 1},
	} {
		t.Run(name, func(t *testing.T) {
			sv := scripted.Serve(t, func(s *scripted.Conn) {
				if s.N > 1 {
					obedient(s)
					return
				}
				s.Login()
				s.Answer("TAG OK done\r\n")
				s.Expect()
				s.Send(tc.last)
			})
			p := newPool(t, PoolOptions{Config: configOf(sv)})
			if name != "silent after change" {
				mustLend(t, p, "", noop)
			} else if err := p.Change(t.Context(), "", MarkSeen, store); err != nil {
				t.Fatal(err)
			}
			calls := 0
			err := p.Lend(t.Context(), "", func(ctx context.Context, s *Session) error { calls++; return noop(ctx, s) })
			if tc.conns == 1 {
				wantError(t, err, wire.KindClosed, StageNoop)
			} else if err != nil {
				t.Error(err)
			}
			if calls != tc.conns || sv.Accepted() != tc.conns {
				t.Errorf("%d calls, %d connections, want %d of each", calls, sv.Accepted(), tc.conns)
			}
		})
	}
}

func TestPoolAsksAnOldSessionFirst(t *testing.T) {
	var mu sync.Mutex
	now := time.Now()
	clock := func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	var seen []string
	cfg := serve(t, scripted.AnswerIMAP(scripted.Caps, func(command string) string {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, command)
		return "TAG OK done\r\n"
	}))
	p := newPool(t, PoolOptions{Config: cfg, Now: clock})
	use := func(context.Context, *Session) error { return nil }
	for _, later := range []time.Duration{0, time.Minute, 5 * time.Minute} {
		mu.Lock()
		now = now.Add(later)
		mu.Unlock()
		mustLend(t, p, "", use)
	}
	mu.Lock()
	defer mu.Unlock()
	if strings.Join(seen, ",") != "NOOP" {
		t.Errorf("sent %q, want one NOOP", seen)
	}
}

func TestPoolClosesSessionsOutOfStep(t *testing.T) {
	sv := scripted.Serve(t, func(s *scripted.Conn) {
		s.Login()
		s.Expect()
		s.Send("Z9 XYZZY\r\n")
		s.Drain()
	})
	p := newPool(t, PoolOptions{Config: configOf(sv)})
	for range 3 {
		wantError(t, p.Lend(t.Context(), "", noop), wire.KindProtocol, StageNoop)
	}
	if sv.Accepted() != 3 {
		t.Errorf("%d connections", sv.Accepted())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open != 0 || len(p.idle) != 0 || len(p.lent) != 0 {
		t.Errorf("open %d, idle %d, lent %d", p.open, len(p.idle), len(p.lent))
	}
}

func TestPoolCloseEndsEverything(t *testing.T) {
	last := make(chan string, 8)
	hung := make(chan struct{})
	sv := scripted.Serve(t, func(s *scripted.Conn) {
		s.Login()
		said := ""
		defer func() { last <- said }()
		for {
			tag, cmd := s.Expect()
			said = cmd
			if strings.HasPrefix(cmd, "EXAMINE") {
				close(hung)
				_, _ = bufio.NewReader(s.Lines).ReadByte()
				return
			}
			s.Send(tag + " OK done\r\n")
		}
	})
	p := NewPool(PoolOptions{Config: configOf(sv), Sessions: 2})
	var wg sync.WaitGroup
	err := p.Lend(t.Context(), "", func(ctx context.Context, s *Session) error {
		wg.Go(func() {
			// The login leaves together with what follows it, so the server may have the
			// EXAMINE before the answer to the login has been read here.
			err := p.Lend(t.Context(), "", lookAt("INBOX"))
			var e *wire.Error
			if !errors.As(err, &e) || e.Kind != wire.KindClosed || e.Stage != StageExamine && e.Stage != wire.StageAuth {
				t.Errorf("got %v, want closed at examine, or at auth", err)
			}
		})
		<-hung
		wg.Go(func() { wantError(t, p.Lend(t.Context(), "", noop), wire.KindClosed, wire.StageConnect) })
		p.queued(1)
		// Now, while both sessions are lent: the one that waits must not get
		// either of them first.
		_ = p.Close()
		_ = p.Close()
		return noop(ctx, s)
	})
	wantError(t, err, wire.KindClosed, StageNoop)
	wg.Wait()
	wantError(t, p.Lend(t.Context(), "", noop), wire.KindClosed, wire.StageConnect)
	said := []string{<-last, <-last}
	if got := strings.Join(said, ","); !strings.Contains(got, "EXAMINE") {
		t.Errorf("last words %q", got)
	}
}

func TestPoolSaysGoodbye(t *testing.T) {
	t.Parallel()
	last := make(chan string, 1)
	sv := scripted.Serve(t, func(s *scripted.Conn) {
		s.Login()
		_, cmd := s.Expect()
		last <- cmd
		s.Drain() // never answers: the pool may not wait for long
	})
	p := NewPool(PoolOptions{Config: configOf(sv)})
	p.goodbye = 50 * time.Millisecond
	must(t, p.Warm(t.Context()))
	_ = p.Close()
	if got := <-last; got != "LOGOUT" {
		t.Errorf("said %q", got)
	}
}
