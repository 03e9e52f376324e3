package imap

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/postern-mail/postern/mail/internal/wire"
	"github.com/postern-mail/postern/mail/servertest/scripted"
)

// queued waits until so many stand in the queue.
func (p *Pool) queued(n int) {
	for {
		p.mu.Lock()
		now := len(p.queue)
		p.mu.Unlock()
		if now == n {
			return
		}
	}
}

// A session that is given back serves who waits, although a connection is being
// made for them; that one is kept, logged in, for who comes next.
func TestPoolTakesWhatComesFirst(t *testing.T) {
	greet, second := make(chan struct{}), make(chan struct{})
	sv := scripted.Serve(t, func(s *scripted.Conn) {
		if s.N > 1 {
			<-greet
			s.Login()
			close(second)
			obey(s)
			return
		}
		obedient(s)
	})
	p := newPool(t, PoolOptions{Config: configOf(sv), Sessions: 2})
	var waiting sync.WaitGroup
	mustLend(t, p, "", func(ctx context.Context, s *Session) error {
		if err := noop(ctx, s); err != nil {
			return err
		}
		waiting.Go(func() { lend(t, p, "", noop) })
		p.queued(1)
		return nil
	})
	waiting.Wait() // with the second connection still without a greeting
	close(greet)
	<-second // nobody asks for it, and it logs in
	for idle := 0; idle < 2; {
		p.mu.Lock()
		idle = len(p.idle)
		p.mu.Unlock()
	}
	err := p.Lend(t.Context(), "", func(ctx context.Context, _ *Session) error { return p.Lend(ctx, "", noop) })
	if err != nil || sv.Accepted() != 2 {
		t.Errorf("%d connections: %v", sv.Accepted(), err)
	}
}

// A dial that fails costs the Lend it was made for, and nobody else.
func TestPoolTellsADialsErrorToItsOwner(t *testing.T) {
	sv := scripted.Serve(t, func(s *scripted.Conn) {
		if s.N == 2 {
			s.Send("* BYE [UNAVAILABLE] too many\r\n")
			return
		}
		obedient(s)
	})
	p := newPool(t, PoolOptions{Config: configOf(sv), Sessions: 2})
	var others sync.WaitGroup
	lend(t, p, "", func(ctx context.Context, s *Session) error {
		if err := noop(ctx, s); err != nil {
			return err
		}
		if e := wantError(t, p.Lend(ctx, "", noop), wire.KindClosed, wire.StageGreeting); e.Code != "UNAVAILABLE" {
			t.Errorf("error %+v", e)
		}
		for range 5 {
			others.Go(func() { lend(t, p, "", noop) })
		}
		return nil
	})
	others.Wait()
	if sv.Accepted() > 3 {
		t.Errorf("%d connections", sv.Accepted())
	}
}

// When nobody waits any more a dial ends.
func TestPoolAbandonsADial(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{}, 2)
	sv := scripted.Serve(t, func(s *scripted.Conn) {
		s.Drain() // never greets
		ended <- struct{}{}
	})
	p := newPool(t, PoolOptions{Config: configOf(sv)})
	for _, kind := range []wire.Kind{wire.KindTimeout, wire.KindCanceled} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		want := context.DeadlineExceeded
		if kind == wire.KindCanceled {
			cancel()
			ctx, cancel = context.WithCancel(t.Context())
			want = context.Canceled
			time.AfterFunc(10*time.Millisecond, cancel)
		}
		err := p.Lend(ctx, "", noop)
		cancel()
		var e *wire.Error
		if !errors.As(err, &e) || e.Kind != kind || !errors.Is(err, want) {
			t.Errorf("ended by %v, want %s", err, kind)
		}
	}
	// Not by the test's end, which the server would see as well.
	for range sv.Accepted() {
		<-ended
	}
	p.work.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.dials) != 0 || p.open != 0 {
		t.Errorf("%d dials, %d open", len(p.dials), p.open)
	}
}

// A lend that comes while a connection is made ahead gets that one, and its login leaves
// with the lend's first command; one that comes during the login waits for it.
func TestPoolLendsWhatIsMadeAhead(t *testing.T) {
	for _, during := range []string{"greeting", "login"} {
		t.Run(during, func(t *testing.T) {
			reached, goOn, first := make(chan struct{}), make(chan struct{}), make(chan string, 1)
			sv := scripted.Serve(t, func(s *scripted.Conn) {
				if during == "greeting" {
					close(reached)
					<-goOn
				}
				s.Send("* OK [CAPABILITY " + scripted.Caps + "] ready\r\n")
				tag, _ := s.Expect()
				if during == "login" {
					close(reached)
					<-goOn
					s.Send(tag + " OK [CAPABILITY " + scripted.Caps + "] in\r\n")
				}
				next, command := s.Expect() // before an answer to the login, where both left together
				first <- command
				if during == "greeting" {
					s.Send(tag + " OK [CAPABILITY " + scripted.Caps + "] in\r\n")
				}
				s.Send(next + " OK done\r\n")
				obey(s)
			})
			p := newPool(t, PoolOptions{Config: configOf(sv)})
			var all sync.WaitGroup
			all.Go(func() {
				if err := p.Warm(t.Context()); err != nil {
					t.Error(err)
				}
			})
			<-reached
			all.Go(func() { lend(t, p, "", noop) })
			if during == "login" {
				p.queued(1)
			} else {
				for takenOver := false; !takenOver; {
					p.mu.Lock()
					takenOver = !p.queue[0].ahead
					p.mu.Unlock()
				}
			}
			if err := p.Warm(t.Context()); err != nil { // a second time: something is being made
				t.Error(err)
			}
			close(goOn)
			all.Wait()
			p.work.Wait()
			if command := <-first; command != "NOOP" || sv.Accepted() != 1 {
				t.Errorf("%d connections, first %s", sv.Accepted(), command)
			}
		})
	}
}

// A connection made ahead that fails is the failure of the lend that took it over, and of
// nobody else.
func TestPoolTellsWhatFailedAhead(t *testing.T) {
	reached, goOn := make(chan struct{}), make(chan struct{})
	sv := scripted.Serve(t, func(s *scripted.Conn) {
		close(reached)
		<-goOn
		s.Send("* BYE [UNAVAILABLE] too many\r\n")
	})
	p := newPool(t, PoolOptions{Config: configOf(sv)})
	var all sync.WaitGroup
	all.Go(func() {
		if err := p.Warm(t.Context()); err != nil {
			t.Error(err)
		}
	})
	<-reached
	ctx, cancel := context.WithCancel(t.Context())
	all.Go(func() { wantError(t, p.Lend(ctx, "", noop), wire.KindCanceled, wire.StageConnect) })
	all.Go(func() { wantError(t, p.Lend(t.Context(), "", noop), wire.KindClosed, wire.StageGreeting) })
	p.queued(2)
	cancel()
	p.queued(1)
	close(goOn)
	all.Wait()
}

// The one whose context ends takes nothing from the others: the connection that
// was being made for it serves them.
func TestPoolKeepsADialForOthers(t *testing.T) {
	greet := make(chan struct{})
	sv := scripted.Serve(t, func(s *scripted.Conn) {
		<-greet
		obedient(s)
	})
	p := newPool(t, PoolOptions{Config: configOf(sv)})
	ctx, cancel := context.WithCancel(t.Context())
	var first, second sync.WaitGroup
	first.Go(func() { wantError(t, p.Lend(ctx, "", noop), wire.KindCanceled, wire.StageConnect) })
	p.queued(1)
	second.Go(func() { lend(t, p, "", noop) })
	p.queued(2)
	cancel()
	first.Wait()
	close(greet)
	second.Wait()
	if n := sv.Accepted(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

func TestPoolClosesWhileDialling(t *testing.T) {
	for name, run := range map[string]func(*scripted.Conn){
		"no greeting":     (*scripted.Conn).Drain,
		"no login answer": func(s *scripted.Conn) { oneWrite(s, scripted.Caps); s.Drain() },
		"no SASL-IR":      func(s *scripted.Conn) { oneWrite(s, "IMAP4rev1 AUTH=PLAIN"); s.Drain() },
	} {
		t.Run(name, func(t *testing.T) {
			reached := make(chan struct{})
			sv := scripted.Serve(t, func(s *scripted.Conn) { close(reached); run(s) })
			p := NewPool(PoolOptions{Config: configOf(sv)})
			var lends sync.WaitGroup
			for range 3 {
				lends.Go(func() {
					var e *wire.Error
					if err := p.Lend(t.Context(), "", noop); !errors.As(err, &e) || e.Kind != wire.KindClosed {
						t.Errorf("error %v", err)
					}
				})
			}
			<-reached
			_ = p.Close()
			lends.Wait()
		})
	}
}

// One login at a time until one has worked. A refusal counts more than the logins that worked
// before it: the password may have been changed, and each try with the old one counts as an
// attack.
func TestPoolLogsInOnceBeforeItLogsInSideBySide(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		worked bool // before
		answer string
		kind   wire.Kind
	}{"never worked": {false, "NO [UNAVAILABLE] busy", wire.KindRefused}, "worked": {true, "NO [AUTHENTICATIONFAILED] no more", wire.KindAuth}} {
		t.Run(name, func(t *testing.T) {
			var at peak
			sv := scripted.Serve(t, func(s *scripted.Conn) {
				if c.worked && s.N == 1 {
					s.Login()
					s.Answer("TAG OK done\r\n")
					return // so that the next has to log in again
				}
				s.Send("* OK [CAPABILITY " + scripted.Caps + "] ready\r\n")
				tag, _ := s.Expect()
				at.in()
				at.out()
				s.Send(tag + " " + c.answer + "\r\n")
				s.Drain()
			})
			p := newPool(t, PoolOptions{Config: configOf(sv)})
			if c.worked {
				mustLend(t, p, "", noop)
				wantError(t, p.Lend(t.Context(), "", noop), c.kind, wire.StageAuth)
			}
			before := sv.Accepted()
			var lends sync.WaitGroup
			for range 10 {
				lends.Go(func() { wantError(t, p.Lend(t.Context(), "", noop), c.kind, wire.StageAuth) })
			}
			lends.Wait()
			if at.most.Load() != 1 || sv.Accepted() > before+10 {
				t.Errorf("%d logins at once, %d connections", at.most.Load(), sv.Accepted())
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.logins.proven || p.open != 0 || p.logins.pending != 0 {
				t.Errorf("proven %v, open %d, unsettled %d", p.logins.proven, p.open, p.logins.pending)
			}
		})
	}
}

// Who has a session and sends nothing keeps the others waiting only shortly.
func TestPoolHurriesALoginThatIsHeld(t *testing.T) {
	p := newPool(t, PoolOptions{Config: serve(t, obedient)})
	lend(t, p, "", func(ctx context.Context, _ *Session) error { return p.Lend(ctx, "", noop) })
}
