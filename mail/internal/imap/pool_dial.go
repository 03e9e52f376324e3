package imap

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/postern-mail/postern/mail/internal/wire"
)

// dialFor begins to connect for a waiter. The connection goes to whoever is first
// in the queue when it is there. The lock is held.
func (p *Pool) dialFor(w *waiter) {
	cfg := &p.o.Config
	ctx, cancel := context.WithTimeout(p.life, cfg.Connect+cfg.Greeting+loginTime)
	d := &dialing{cancel: cancel, round: p.logins.begin(), done: make(chan struct{})}
	w.dial = d
	p.dials[d] = true
	p.open++
	p.work.Go(func() {
		defer cancel()
		p.dial(ctx, d)
	})
}

func (p *Pool) dial(ctx context.Context, d *dialing) {
	c := &pooled{awaiting: true, round: d.round}
	s, err := connect(ctx, p.o.Config, func(err error) { p.outcome(c, err) })
	c.Session = s

	p.mu.Lock()
	delete(p.dials, d)
	d.err = err
	close(d.done)
	if err == nil && s.settled() && c.awaiting {
		p.answered(c)
		p.logins.worked()
	}
	switch {
	case err == nil && (p.closed || c.awaiting && d.round < p.logins.round):
		// The pool was closed, or what this would log in with has been refused.
		p.open--
		p.answered(c)
		for _, w := range p.queue {
			if w.dial == d {
				w.dial = nil
			}
		}
		p.serve()
		p.mu.Unlock()
		_ = s.Close()
		return
	case err != nil:
		p.open--
		p.answered(c)
		p.failed(d, err)
		p.serve()
		p.mu.Unlock()
		return
	case len(p.queue) > 0:
		c.used = p.o.Now()
		p.give(0, given{s: c, new: true})
		p.serve()
		p.mu.Unlock()
		return
	}
	// Nobody waits any more. It becomes idle when it is logged in.
	p.lent[c] = true
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(p.life, loginTime)
	defer cancel()
	sound := s.Use(ctx, func(context.Context, *Session) error { return s.Ready() }) == nil
	p.put(c, sound)
}

// failed tells of a dial that failed: everybody when the login was refused, unless
// it is worth another try; else the one it was made for, if that still waits. The
// lock is held.
func (p *Pool) failed(d *dialing, err error) {
	i := slices.IndexFunc(p.queue, func(w *waiter) bool { return w.dial == d })
	var e *wire.Error
	switch {
	case errors.As(err, &e) && e.Kind == wire.KindAuth:
		if i >= 0 {
			p.queue[i].dial = nil // it gets another, unless everybody fails
		}
		p.refused(e, d.round)
	case i >= 0:
		p.give(i, given{err: err})
	}
}

// refused is told of a login that was refused, and reports whether it is worth
// another try. Where it is not, those who wait fail. The lock is held.
func (p *Pool) refused(e *wire.Error, round int) (again bool) {
	again, final := p.logins.refused(e, round)
	if final {
		p.fail(e)
		p.abandon()
	}
	return again
}

// again reports whether the login of a session was refused and is worth another
// try.
func (p *Pool) again(s *pooled) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return s.again
}

// outcome is told how a login ended that was held for the first commands. The
// reader of the session calls it, before anybody sees the outcome.
func (p *Pool) outcome(c *pooled, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answered(c)
	var e *wire.Error
	switch {
	case err == nil:
		p.logins.worked()
	case errors.As(err, &e) && e.Kind == wire.KindAuth:
		c.again = p.refused(e, c.round)
	}
	p.serve()
}

// answered notes that the login of a session has an outcome, or will have none.
// The lock is held.
func (p *Pool) answered(c *pooled) {
	if c.awaiting {
		c.awaiting = false
		p.logins.end()
	}
}

// hurry sees to it that a login is sent that others wait for, although who has the
// session sends no command. The lock is held.
func (p *Pool) hurry() {
	for c := range p.lent {
		if !c.awaiting || c.hurried {
			continue
		}
		c.hurried = true
		p.work.Go(func() {
			select {
			case <-time.After(unsentLogin):
				c.guard.sendHeld()
			case <-p.life.Done():
			}
		})
	}
}
