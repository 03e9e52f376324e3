package imap

import (
	"context"
	"errors"
	"sync"
	"time"
)

// The defaults of PoolOptions.
const (
	DefaultSessions = 4
	// DefaultFresh is how long an idle session is taken to be alive unasked.
	DefaultFresh = 4 * time.Minute

	goodbye = time.Second     // how long Close is polite
	pinging = 5 * time.Second // how long an old idle session has to answer
)

// PoolOptions sets a Pool up. Zero fields mean the defaults.
type PoolOptions struct {
	Config   Config
	Sessions int              // at most this many connections at once; 0 means DefaultSessions
	Fresh    time.Duration    // an idle session older than this is asked first; 0 means DefaultFresh
	Now      func() time.Time // nil means time.Now
}

// Pool keeps the sessions of one account and lends them. It is safe for
// concurrent use.
type Pool struct {
	o PoolOptions

	life context.Context // ends with Close
	kill context.CancelFunc

	mu      sync.Mutex
	idle    []*pooled // most recently used last
	lent    map[*pooled]bool
	open    int // idle, lent and being dialled
	dialing int
	proven  bool // a login has worked: the next ones may happen side by side
	queue   []*waiter
	closed  bool
}

type pooled struct {
	*Session
	used time.Time
}

// waiter is a Lend in the queue. It is told once: to take its turn, or an error.
type waiter struct {
	turn chan error
}

// NewPool makes a Pool. It connects on the first Lend or Warm. Call Close to end it.
func NewPool(o PoolOptions) *Pool {
	if o.Sessions <= 0 {
		o.Sessions = DefaultSessions
	}
	if o.Fresh <= 0 {
		o.Fresh = DefaultFresh
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	p := &Pool{o: o, lent: make(map[*pooled]bool)}
	p.life, p.kill = context.WithCancel(context.Background())
	return p
}

// Lend runs fn with a session, preferring one that has folder EXAMINEd; an empty
// folder means any. It waits its turn when all sessions are lent. The session may
// not be kept. When a session from an earlier lend turns out dead before the
// server answered anything, fn runs once more on a fresh connection, so it must
// be safe to repeat. A refused login is never repeated, and fails everybody who
// waits for a session with it.
func (p *Pool) Lend(ctx context.Context, folder string, fn func(ctx context.Context, s *Session) error) error {
	s, fresh, err := p.take(ctx, FolderName(folder), false, false)
	if err != nil {
		return err
	}
	err = p.use(ctx, s, fn)
	if fresh || err == nil || s.guard.answered() || !died(err) || ctx.Err() != nil {
		return err
	}
	if s, _, err = p.take(ctx, "", false, true); err != nil {
		return err
	}
	return p.use(ctx, s, fn)
}

// died reports whether err says that the connection was no longer there.
func died(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.OutOfStep && (e.Kind == KindClosed || e.Kind == KindConnection)
}

// Warm connects ahead, when nothing is connected.
func (p *Pool) Warm(ctx context.Context) error {
	p.mu.Lock()
	warm := p.open > 0
	p.mu.Unlock()
	if warm {
		return nil
	}
	return p.Lend(ctx, "", func(context.Context, *Session) error { return nil })
}

func (p *Pool) use(ctx context.Context, s *pooled, fn func(ctx context.Context, s *Session) error) (err error) {
	sound := false
	defer func() { p.put(s, sound) }() // also when fn panics
	err = s.Use(ctx, fn)
	var e *Error
	sound = !(errors.As(err, &e) && e.OutOfStep) && ctx.Err() == nil
	return err
}

// take returns a session, whose Fresh says that no lend has used it yet. Of
// several that have the folder open it prefers one that has it open as wanted.
func (p *Pool) take(ctx context.Context, folder string, writable, fresh bool) (s *pooled, isFresh bool, err error) {
	for first := true; ; first = false {
		if err := ctx.Err(); err != nil {
			return nil, false, &Error{Op: "lend", Stage: StageConnect, Kind: kindOf(err), Err: err}
		}
		s, dial, w := p.next(folder, writable, fresh, first)
		switch {
		case w != nil:
			if err := p.wait(ctx, w); err != nil {
				return nil, false, err
			}
		case s != nil:
			if p.check(ctx, s) {
				return s, false, nil
			}
			p.put(s, false)
		case dial:
			s, err := p.dial(ctx)
			return s, true, err
		default:
			return nil, false, &Error{Op: "lend", Stage: StageConnect, Kind: KindClosed, Err: ErrClosed}
		}
	}
}

// next decides, under the lock, what a Lend does: use a session, dial, or wait.
// Nothing at all means that the pool is closed. Who has waited already goes
// before who just came, so the first in the queue is not overtaken.
func (p *Pool) next(folder string, writable, fresh, newcomer bool) (s *pooled, dial bool, w *waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, false, nil
	}
	if newcomer && len(p.queue) > 0 {
		return nil, false, p.enqueue(false)
	}
	if n := len(p.idle); n > 0 && !fresh {
		best := n - 1
		for i, c := range p.idle {
			if f, ok := c.Selected(); ok && folder != "" && f.Name == folder {
				best = i
				if f.Writable == writable {
					break
				}
			}
		}
		s = p.idle[best]
		p.idle = append(p.idle[:best], p.idle[best+1:]...)
		p.lent[s] = true
		return s, false, nil
	} else if n > 0 && p.open >= p.o.Sessions {
		// A fresh connection is wanted and there is no room: the oldest goes.
		old := p.idle[0]
		p.idle = p.idle[1:]
		p.open--
		go old.Close()
	}
	if p.open < p.o.Sessions && (p.proven || p.dialing == 0) {
		p.open++
		p.dialing++
		return nil, true, nil
	}
	return nil, false, p.enqueue(!newcomer)
}

func (p *Pool) enqueue(front bool) *waiter {
	w := &waiter{turn: make(chan error, 1)}
	if front {
		p.queue = append([]*waiter{w}, p.queue...)
	} else {
		p.queue = append(p.queue, w)
	}
	return w
}

func (p *Pool) wait(ctx context.Context, w *waiter) error {
	select {
	case err := <-w.turn:
		return err
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, q := range p.queue {
		if q == w {
			p.queue = append(p.queue[:i], p.queue[i+1:]...)
			return &Error{Op: "lend", Stage: StageConnect, Kind: kindOf(ctx.Err()), Err: ctx.Err()}
		}
	}
	p.wake() // its turn had come; it goes to the next
	return &Error{Op: "lend", Stage: StageConnect, Kind: kindOf(ctx.Err()), Err: ctx.Err()}
}

// wake gives the first in the queue its turn. The lock is held.
func (p *Pool) wake() {
	if len(p.queue) > 0 {
		p.queue[0].turn <- nil
		p.queue = p.queue[1:]
	}
}

// check makes sure of a session before it is lent again.
func (p *Pool) check(ctx context.Context, s *pooled) bool {
	if !s.alive() {
		return false
	}
	if p.o.Now().Sub(s.used) < p.o.Fresh {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, pinging)
	defer cancel()
	return s.Use(ctx, func(context.Context, *Session) error { return s.Noop().Wait() }) == nil && s.alive()
}

func (p *Pool) dial(ctx context.Context) (*pooled, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.life, cancel)()
	s, err := Dial(ctx, p.o.Config)

	p.mu.Lock()
	defer p.mu.Unlock()
	p.dialing--
	if err == nil && p.closed {
		go s.Close()
		err = &Error{Op: "dial", Stage: StageConnect, Kind: KindClosed, Err: ErrClosed}
	}
	if err != nil {
		p.open--
		var e *Error
		if errors.As(err, &e) && e.Kind == KindAuth {
			// Each of those who wait would try the same password again.
			for _, w := range p.queue {
				w.turn <- err
			}
			p.queue = nil
		}
		p.wake()
		return nil, err
	}
	c := &pooled{Session: s, used: p.o.Now()}
	p.lent[c] = true
	if !p.proven {
		p.proven = true
		for range p.o.Sessions - 1 {
			p.wake() // those who waited for the first login may dial now
		}
	}
	return c, nil
}

// put takes a session back and gives the next in the queue its turn.
func (p *Pool) put(s *pooled, sound bool) {
	sound = sound && s.alive()
	p.mu.Lock()
	delete(p.lent, s)
	if sound = sound && !p.closed; sound {
		s.used = p.o.Now()
		p.idle = append(p.idle, s)
	} else {
		p.open--
	}
	p.wake()
	p.mu.Unlock()
	if !sound {
		_ = s.Close()
	}
}

// Close ends every session, politely where nobody is using it, and fails those
// who wait. It returns when all connections are closed.
func (p *Pool) Close() error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil
	}
	p.closed = true
	idle, queue := p.idle, p.queue
	p.idle, p.queue = nil, nil
	p.open -= len(idle)
	var lent []*pooled
	for s := range p.lent {
		lent = append(lent, s)
	}
	p.mu.Unlock()

	p.kill()
	for _, w := range queue {
		w.turn <- &Error{Op: "lend", Stage: StageConnect, Kind: KindClosed, Err: ErrClosed}
	}
	var wg sync.WaitGroup
	for _, s := range lent {
		wg.Go(func() { _ = s.Close() })
	}
	for _, s := range idle {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), goodbye)
			defer cancel()
			s.Logout(ctx)
		})
	}
	wg.Wait()
	return nil
}
