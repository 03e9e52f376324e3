package imap

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/postern-mail/postern/mail/internal/wire"
)

// The defaults of PoolOptions.
const (
	DefaultSessions = 4
	// DefaultFresh is how long an idle session is taken to be alive without a check.
	DefaultFresh = 4 * time.Minute

	loginTime = time.Minute // how long a login may take that no context bounds

	pingTime    = 5 * time.Second       // how long an old idle session has to answer a check
	unsentLogin = 20 * time.Millisecond // how long a held login waits for a command while others wait for it
)

// PoolOptions sets a Pool up. Zero fields mean the defaults.
type PoolOptions struct {
	Config   Config
	Sessions int              // at most this many connections at once; 0 means DefaultSessions
	Fresh    time.Duration    // an idle session older than this is checked first; 0 means DefaultFresh
	Now      func() time.Time // nil means time.Now
}

// Pool keeps the sessions of one account and lends them. It is safe for
// concurrent use.
type Pool struct {
	o PoolOptions

	life    context.Context // ends with Close
	kill    context.CancelFunc
	goodbye time.Duration // how long Close is polite

	noCharset atomic.Bool // the server takes only searches without a CHARSET

	mu     sync.Mutex
	idle   []*pooled // most recently used last
	lent   map[*pooled]bool
	dials  map[*pooled]context.CancelFunc // that a Lend waits for
	open   int                            // idle, lent and being dialled
	toRest int                            // lent, and about to rest
	logins loginGate
	queue  []*waiter
	closed bool
	work   sync.WaitGroup // dials and the work after them
}

type pooled struct {
	*Session
	used time.Time // by the wall clock: the other stands still while a machine sleeps

	round int // of its login; see loginGate

	// Guarded by Pool.mu.
	awaiting bool // its login has no answer yet
	hurried  bool
	retry    bool // its login was refused, and is worth another try
	ahead    bool // lent only to log in: it comes back soon
}

// waiter is a Lend in the queue. It gets one result.
type waiter struct {
	want
	ctx   context.Context
	given chan given
}

type given struct {
	s   *pooled
	new bool // no lend has used it yet
	err error
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
	o.Config = o.Config.withDefaults()
	p := &Pool{o: o, goodbye: time.Second, lent: make(map[*pooled]bool), dials: make(map[*pooled]context.CancelFunc)}
	p.life, p.kill = context.WithCancel(context.Background())
	return p
}

// Lend runs fn with a session, preferring one that has folder EXAMINEd; an empty folder
// means any. It waits its turn: meanwhile a connection is made for it if there is room, and
// it gets the new one or one that is given back, whichever is first. fn may not keep the
// session.
//
// When a session from an earlier lend turns out dead before the server answered anything,
// fn runs once more on a fresh connection, so it must be safe to repeat. On a new
// connection the login may leave together with fn's first commands; when it is refused they
// fail with that error. Where Login.Refused says that it is worth it, a refused login is
// tried once more, and fn runs again; the server obeyed no command of the run before. After
// any other refusal the login is not repeated, and all callers that wait for a session fail
// with it. For a SEARCH whose charset was refused see Session.Search.
func (p *Pool) Lend(ctx context.Context, folder string, fn func(ctx context.Context, s *Session) error) error {
	return p.lend(ctx, want{folder: FolderName(folder)}, fn)
}

// want says which session a lend asks for.
type want struct {
	folder   string // preferably open; empty means any
	writable bool   // preferably SELECTed
	fresh    bool   // only a new connection will do
	round    int    // the round that has to end well for this; 0 means none
	ahead    bool   // no command needs it yet: any other lend takes its connection over
}

func (p *Pool) lend(ctx context.Context, w want, fn func(ctx context.Context, s *Session) error) error {
	noCharset, revived, renewed := p.noCharset.Load(), false, false
	for repeated := false; ; repeated = true {
		s, isNew, err := p.take(ctx, w, repeated)
		if err != nil || s == nil {
			return err
		}
		s.noCharset = noCharset
		err = p.use(ctx, s, fn)
		switch {
		case err == nil && noCharset:
			p.noCharset.Store(true)
			return nil
		case err == nil || ctx.Err() != nil:
			return err
		case isNew && !renewed && p.retries(s):
			renewed, w.round = true, s.round+1
		case !isNew && !revived && died(err) && !s.guard.answered() && !s.guard.changed():
			revived, w = true, want{fresh: true, round: w.round}
		case !noCharset && errors.Is(err, errCharset) && !s.guard.changed():
			noCharset = true
		default:
			return err
		}
	}
}

// died reports whether err says that the connection was no longer there.
func died(err error) bool {
	var e *wire.Error
	return errors.As(err, &e) && e.OutOfStep && (e.Kind == wire.KindClosed || e.Kind == wire.KindConnection)
}

// Warm connects and logs in ahead, when nothing is connected. A Lend that comes meanwhile
// gets that connection and its failure, and Warm returns at once.
func (p *Pool) Warm(ctx context.Context) error {
	p.mu.Lock()
	warm := p.open > 0
	p.mu.Unlock()
	if warm {
		return nil
	}
	return p.lend(ctx, want{ahead: true}, func(context.Context, *Session) error { return nil })
}

func (p *Pool) use(ctx context.Context, s *pooled, fn func(ctx context.Context, s *Session) error) (err error) {
	sound := false
	defer func() { p.put(s, sound) }() // also when fn panics
	err = s.Use(ctx, func(ctx context.Context, s *Session) error {
		if err := fn(ctx, s); err != nil {
			return err
		}
		return s.Ready() // fn may have sent nothing, or not have looked
	})
	var e *wire.Error
	sound = !(errors.As(err, &e) && e.OutOfStep) && ctx.Err() == nil
	return err
}

// take returns a session; isNew says that no lend has used it yet. Earlier callers go
// first. The session is nil for a lend ahead when another lend has its connection.
func (p *Pool) take(ctx context.Context, what want, waited bool) (s *pooled, isNew bool, err error) {
	for ; ; waited = true {
		if ctx.Err() != nil {
			return nil, false, gaveUp(ctx)
		}
		w := &waiter{want: what, ctx: ctx, given: make(chan given, 1)}
		p.mu.Lock()
		if p.closed {
			p.mu.Unlock()
			return nil, false, closedError()
		}
		if err := p.logins.lostIn(what.round); err != nil {
			p.mu.Unlock()
			return nil, false, err // other callers have tried meanwhile
		}
		if what.ahead && len(p.queue) > 0 {
			p.mu.Unlock()
			return nil, false, nil
		}
		if len(p.queue) > 0 && p.queue[0].ahead {
			p.give(0, given{})
		}
		if waited {
			p.queue = slices.Insert(p.queue, 0, w)
		} else {
			if len(p.queue) == 0 {
				p.logins.unwatched()
			}
			p.queue = append(p.queue, w)
		}
		p.serve()
		p.mu.Unlock()
		g := p.wait(ctx, w)
		switch {
		case g.err != nil || g.s == nil:
			return nil, false, g.err
		case g.new || p.check(ctx, g.s):
			return g.s, g.new, nil
		}
		p.put(g.s, false)
	}
}

func gaveUp(ctx context.Context) *wire.Error {
	return &wire.Error{Stage: wire.StageConnect, Kind: wire.KindOf(ctx.Err()), Err: ctx.Err()}
}

func closedError() *wire.Error {
	return &wire.Error{Stage: wire.StageConnect, Kind: wire.KindClosed, Err: ErrClosed}
}

// wait waits until w is told, or ctx ends.
func (p *Pool) wait(ctx context.Context, w *waiter) given {
	select {
	case g := <-w.given:
		return g
	case <-ctx.Done():
	}
	p.mu.Lock()
	i := slices.Index(p.queue, w)
	if i < 0 { // it has been told meanwhile
		p.mu.Unlock()
		g := <-w.given
		if g.s != nil {
			p.put(g.s, true)
		}
		if g.err == nil {
			g.err = gaveUp(ctx)
		}
		return given{err: g.err}
	}
	p.queue = slices.Delete(p.queue, i, i+1)
	if len(p.queue) == 0 {
		p.abandon()
	}
	p.mu.Unlock()
	return given{err: gaveUp(ctx)}
}

// abandon ends the dials that no caller waits for any more. The lock is held.
func (p *Pool) abandon() {
	for c, cancel := range p.dials {
		delete(p.dials, c)
		cancel()
	}
}

// serve gives idle sessions to the waiting callers, first come first served, and dials for
// the others as far as there is room. The lock is held.
func (p *Pool) serve() {
	for i := 0; i < len(p.queue) && len(p.idle) > 0; {
		if w := p.queue[i]; !w.fresh {
			p.give(i, given{s: p.pick(w.folder, w.writable)})
		} else {
			i++
		}
	}
	coming := len(p.dials)
	for s := range p.lent {
		if s.ahead {
			coming++
		}
	}
	for ; coming < len(p.queue); coming++ {
		switch {
		case p.logins.shut():
			p.hurry()
			return
		case p.open < p.o.Sessions:
		case len(p.idle) == 0:
			return
		default: // A new connection is wanted and there is no room: the oldest goes.
			old := p.idle[0]
			p.idle = p.idle[1:]
			p.open--
			p.work.Go(func() { _ = old.Close() })
		}
		p.dial(p.queue[coming].ctx)
	}
}

// give tells the waiter at i, which leaves the queue. The lock is held.
func (p *Pool) give(i int, g given) {
	w := p.queue[i]
	p.queue = slices.Delete(p.queue, i, i+1)
	if g.s != nil {
		p.lent[g.s], g.s.ahead = true, w.ahead
	}
	w.given <- g
}

// pick takes an idle session, if possible one that does not rest in IDLE. Of several with
// the folder open it prefers one with the wanted access. The lock is held.
func (p *Pool) pick(folder string, writable bool) *pooled {
	best, high := 0, -1
	for i, c := range p.idle {
		rank := 0
		if f, ok := c.Selected(); ok && folder != "" && f.Name == folder {
			rank = 1
			if f.Writable == writable {
				rank = 2
			}
		}
		if !c.guard.resting() {
			rank += 3
		}
		if rank >= high { // of equal ones the most recently used
			best, high = i, rank
		}
	}
	s := p.idle[best]
	p.idle = slices.Delete(p.idle, best, best+1)
	return s
}

// check makes sure that a session is alive before it is lent again.
func (p *Pool) check(ctx context.Context, s *pooled) bool {
	if !s.alive() {
		return false
	}
	if age := p.o.Now().Sub(s.used); age >= 0 && age < p.o.Fresh {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, pingTime)
	defer cancel()
	return s.Use(ctx, func(context.Context, *Session) error { return s.Noop().Wait() }) == nil && s.alive()
}

// put takes a session back.
func (p *Pool) put(s *pooled, sound bool) {
	sound = sound && s.alive()
	p.mu.Lock()
	delete(p.lent, s)
	s.ahead = false
	sound = sound && !p.closed && !s.awaiting
	if sound {
		s.used = p.o.Now().Round(0)
		p.idle = append(p.idle, s)
	} else {
		p.open--
		p.answered(s)
	}
	p.serve()
	p.mu.Unlock()
	if !sound {
		_ = s.Close()
	}
}

// Close ends every session, with LOGOUT where it is idle, and fails the waiting callers. It
// returns when all connections are closed.
func (p *Pool) Close() error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil
	}
	p.closed = true
	idle := p.idle
	p.idle = nil
	p.open -= len(idle)
	p.fail(closedError())
	var lent []*pooled
	for s := range p.lent {
		lent = append(lent, s)
	}
	p.mu.Unlock()

	p.kill()
	var wg sync.WaitGroup
	for _, s := range lent {
		wg.Go(func() { _ = s.Close() })
	}
	for _, s := range idle {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), p.goodbye)
			defer cancel()
			s.Logout(ctx)
		})
	}
	wg.Wait()
	p.work.Wait()
	return nil
}

// fail tells all callers that wait. The lock is held.
func (p *Pool) fail(err error) {
	for len(p.queue) > 0 {
		p.give(0, given{err: err})
	}
}
