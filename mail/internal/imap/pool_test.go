package imap

import (
	"bufio"
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	goimap "github.com/emersion/go-imap/v2"
	"github.com/postern-mail/postern/mail/internal/wire"
	"github.com/postern-mail/postern/mail/servertest/scripted"
)

// obedient answers every command of a small read-only client, until stop says so.
func obedient(s *scripted.Conn) {
	s.Login()
	for {
		tag, cmd := s.Expect()
		verb, _, _ := strings.Cut(cmd, " ")
		switch verb {
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

func noop(_ context.Context, s *Session) error { return s.Noop().Wait() }

func newPool(t *testing.T, o PoolOptions) *Pool {
	t.Helper()
	p := NewPool(o)
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func TestPoolReusesOneSession(t *testing.T) {
	scripted.Settle(t)
	sv := scripted.Serve(t, obedient)
	p := newPool(t, PoolOptions{Config: configOf(sv)})
	for range 20 {
		if err := p.Lend(t.Context(), "", noop); err != nil {
			t.Fatal(err)
		}
	}
	if n := sv.Accepted(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

func TestPoolNeverHasMoreThanItsSessions(t *testing.T) {
	scripted.Settle(t)
	sv := scripted.Serve(t, obedient)
	p := newPool(t, PoolOptions{Config: configOf(sv)})
	var wg sync.WaitGroup
	var now, most atomic.Int32
	for range 60 {
		wg.Go(func() {
			err := p.Lend(t.Context(), "", func(ctx context.Context, s *Session) error {
				n := now.Add(1)
				defer now.Add(-1)
				for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
				return noop(ctx, s)
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if most.Load() > DefaultSessions || sv.Accepted() > DefaultSessions {
		t.Errorf("%d at once, %d connections", most.Load(), sv.Accepted())
	}
}

func TestPoolPrefersTheFolderAsked(t *testing.T) {
	scripted.Settle(t)
	sv := scripted.Serve(t, obedient)
	p := newPool(t, PoolOptions{Config: configOf(sv), Sessions: 2})
	examine := func(name string) func(context.Context, *Session) error {
		return func(_ context.Context, s *Session) error { _, err := s.Examine(name).Wait(); return err }
	}
	// Two sessions, made by lending one inside the other.
	err := p.Lend(t.Context(), "", func(ctx context.Context, a *Session) error {
		if err := p.Lend(ctx, "", examine("B")); err != nil {
			return err
		}
		return examine("A")(ctx, a)
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"B", "A", "B", "B", "A"} {
		err := p.Lend(t.Context(), name, func(_ context.Context, s *Session) error {
			if f, ok := s.Selected(); !ok || f.Name != name || f.UIDValidity != 7 || f.Exists != 3 {
				t.Errorf("asked for %s, got %+v", name, f)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestPoolServesInOrder(t *testing.T) {
	scripted.Settle(t)
	p := newPool(t, PoolOptions{Config: serve(t, obedient), Sessions: 1})
	var order []int
	var wg sync.WaitGroup
	err := p.Lend(t.Context(), "", func(ctx context.Context, s *Session) error {
		for i := range 10 {
			wg.Go(func() {
				_ = p.Lend(ctx, "", func(context.Context, *Session) error { order = append(order, i); return nil })
			})
			for queued := 0; queued <= i; { // until this one stands in the queue
				p.mu.Lock()
				queued = len(p.queue)
				p.mu.Unlock()
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	for i, got := range order {
		if i != got {
			t.Fatalf("order %v", order)
		}
	}
	if len(order) != 10 {
		t.Fatalf("%d were served", len(order))
	}
}

func TestPoolWaitEndsWithContext(t *testing.T) {
	scripted.Settle(t)
	p := newPool(t, PoolOptions{Config: serve(t, obedient), Sessions: 1})
	err := p.Lend(t.Context(), "", func(ctx context.Context, s *Session) error {
		short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		defer cancel()
		err := p.Lend(short, "", noop)
		if wantError(t, err, wire.KindTimeout, wire.StageConnect); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		return noop(ctx, s)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Lend(t.Context(), "", noop); err != nil {
		t.Errorf("after that: %v", err)
	}
}

// A server that hung up between lends is noticed, before or while asking.
func TestPoolReplacesADeadSession(t *testing.T) {
	scripted.Settle(t)
	var conns atomic.Int32
	ended := make(chan struct{})
	sv := scripted.Serve(t, func(s *scripted.Conn) {
		if conns.Add(1) > 1 {
			obedient(s)
			return
		}
		s.Login()
		tag, _ := s.Expect()
		s.Send(tag + " OK done\r\n")
		s.Expect() // the second command gets no answer
		_ = s.Close()
		close(ended)
	})
	p := newPool(t, PoolOptions{Config: configOf(sv)})
	calls := 0
	for range 2 {
		err := p.Lend(t.Context(), "", func(ctx context.Context, s *Session) error { calls++; return noop(ctx, s) })
		if err != nil {
			t.Fatal(err)
		}
	}
	<-ended
	if calls != 3 || conns.Load() != 2 {
		t.Errorf("%d calls on %d connections, want 3 on 2", calls, conns.Load())
	}
}

// A goodbye that crosses a command on an old session is no answer to it.
func TestPoolReplacesASessionThatSaysGoodbye(t *testing.T) {
	scripted.Settle(t)
	var conns atomic.Int32
	sv := scripted.Serve(t, func(s *scripted.Conn) {
		if conns.Add(1) > 1 {
			obedient(s)
			return
		}
		s.Login()
		tag, _ := s.Expect()
		s.Send(tag + " OK done\r\n")
		s.Expect()
		s.Send("* BYE you were idle\r\n")
	})
	p := newPool(t, PoolOptions{Config: configOf(sv)})
	for range 2 {
		if err := p.Lend(t.Context(), "", noop); err != nil {
			t.Fatal(err)
		}
	}
	if n := conns.Load(); n != 2 {
		t.Errorf("%d connections", n)
	}
}

// What a server answered is not asked again: the first answer counts.
func TestPoolDoesNotRepeatAfterAnAnswer(t *testing.T) {
	scripted.Settle(t)
	sv := scripted.Serve(t, func(s *scripted.Conn) {
		s.Login()
		tag, _ := s.Expect()
		s.Send(tag + " OK done\r\n")
		s.Expect()
		s.Send("* 4 EXISTS\r\n")
	})
	p := newPool(t, PoolOptions{Config: configOf(sv)})
	if err := p.Lend(t.Context(), "", noop); err != nil {
		t.Fatal(err)
	}
	calls := 0
	err := p.Lend(t.Context(), "", func(ctx context.Context, s *Session) error { calls++; return noop(ctx, s) })
	wantError(t, err, wire.KindClosed, StageNoop)
	if calls != 1 || sv.Accepted() != 1 {
		t.Errorf("%d calls, %d connections", calls, sv.Accepted())
	}
}

func TestPoolAsksAnOldSessionFirst(t *testing.T) {
	scripted.Settle(t)
	var mu sync.Mutex
	now := time.Now()
	clock := func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	var seen []string
	sv := scripted.Serve(t, func(s *scripted.Conn) {
		s.Login()
		for {
			tag, cmd := s.Expect()
			mu.Lock()
			seen = append(seen, cmd)
			mu.Unlock()
			if cmd == "EXAMINE Q" {
				s.Send("* OK [UIDVALIDITY 7] v\r\n")
			}
			s.Send(tag + " OK done\r\n")
		}
	})
	p := newPool(t, PoolOptions{Config: configOf(sv), Now: clock})
	use := func(context.Context, *Session) error { return nil }
	for _, later := range []time.Duration{0, time.Minute, 5 * time.Minute} {
		mu.Lock()
		now = now.Add(later)
		mu.Unlock()
		if err := p.Lend(t.Context(), "", use); err != nil {
			t.Fatal(err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if strings.Join(seen, ",") != "NOOP" {
		t.Errorf("sent %q, want one NOOP", seen)
	}
}

// Fifty callers with a wrong password are one attempt, not fifty.
func TestPoolDoesNotRepeatAWrongPassword(t *testing.T) {
	scripted.Settle(t)
	release := make(chan struct{})
	sv := scripted.Serve(t, func(s *scripted.Conn) {
		s.Send("* OK [CAPABILITY " + scripted.Caps + "] ready\r\n")
		tag, _ := s.Expect()
		<-release
		s.Send(tag + " NO [AUTHENTICATIONFAILED] wrong\r\n")
		s.Drain()
	})
	p := newPool(t, PoolOptions{Config: configOf(sv)})
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			e := new(wire.Error)
			if err := p.Lend(t.Context(), "", noop); !errors.As(err, &e) || e.Kind != wire.KindAuth {
				t.Errorf("error %v", err)
			}
		})
	}
	for queued, lent := 0, 0; queued < 49 || lent < 1; {
		p.mu.Lock()
		queued, lent = len(p.queue), len(p.lent)
		p.mu.Unlock()
	}
	close(release)
	wg.Wait()
	if n := sv.Accepted(); n != 1 {
		t.Errorf("%d logins", n)
	}
}

func TestPoolClosesSessionsOutOfStep(t *testing.T) {
	scripted.Settle(t)
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

func TestPoolSurvivesAPanic(t *testing.T) {
	scripted.Settle(t)
	p := newPool(t, PoolOptions{Config: serve(t, obedient), Sessions: 1})
	func() {
		defer func() { _ = recover() }()
		_ = p.Lend(t.Context(), "", func(context.Context, *Session) error { panic("x") })
	}()
	if err := p.Lend(t.Context(), "", noop); err != nil {
		t.Fatal(err)
	}
}

func TestPoolCloseEndsEverything(t *testing.T) {
	scripted.Settle(t)
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
			err := p.Lend(t.Context(), "", func(_ context.Context, s *Session) error {
				_, err := s.Examine("INBOX").Wait()
				return err
			})
			wantError(t, err, wire.KindClosed, StageExamine)
		})
		<-hung
		wg.Go(func() { wantError(t, p.Lend(t.Context(), "", noop), wire.KindClosed, wire.StageConnect) })
		for queued := 0; queued == 0; {
			p.mu.Lock()
			queued = len(p.queue)
			p.mu.Unlock()
		}
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
	scripted.Settle(t)
	last := make(chan string, 1)
	sv := scripted.Serve(t, func(s *scripted.Conn) {
		s.Login()
		_, cmd := s.Expect()
		last <- cmd
		s.Drain() // never answers: the pool may not wait for long
	})
	p := NewPool(PoolOptions{Config: configOf(sv)})
	if err := p.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	_ = p.Close()
	if got := <-last; got != "LOGOUT" {
		t.Errorf("said %q", got)
	}
}

// What an earlier lend changed is no reason not to repeat one that only reads.
func TestPoolReplacesADeadSessionThatOnceChangedSomething(t *testing.T) {
	scripted.Settle(t)
	var conns atomic.Int32
	sv := scripted.Serve(t, func(s *scripted.Conn) {
		if conns.Add(1) > 1 {
			obedient(s)
			return
		}
		s.Login()
		tag, _ := s.Expect()
		s.Send(strings.ReplaceAll(scripted.Selected, "TAG", tag))
		tag, _ = s.Expect()
		s.Send("* 1 FETCH (UID 1 FLAGS (\\Seen))\r\n" + tag + " OK done\r\n")
		s.Expect() // gets no answer
	})
	p := newPool(t, PoolOptions{Config: configOf(sv)})
	err := p.Change(t.Context(), "INBOX", MarkSeen, func(_ context.Context, s *Session) error {
		if _, err := s.Select("INBOX").Wait(); err != nil {
			return err
		}
		_, err := s.Store(goimap.UIDSetNum(1), goimap.StoreFlagsAdd, []goimap.Flag{goimap.FlagSeen}).Wait()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Lend(t.Context(), "", noop); err != nil || conns.Load() != 2 {
		t.Errorf("%v on %d connections", err, conns.Load())
	}
}
