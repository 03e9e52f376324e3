package imap

import (
	"context"
	"errors"
	"time"
)

// dialFor begins to connect for a waiter. The connection goes to whoever is first
// in the queue when it is there. The lock is held.
func (p *Pool) dialFor(w *waiter) {
	cfg := &p.o.Config
	ctx, cancel := context.WithTimeout(p.life, cfg.Connect+cfg.Greeting+loginTime)
	d := &dialing{cancel: cancel, done: make(chan struct{})}
	w.dial = d
	p.dials[d] = true
	p.open++
	p.unsettled++
	p.work.Go(func() {
		defer cancel()
		p.dial(ctx, d)
	})
}

func (p *Pool) dial(ctx context.Context, d *dialing) {
	c := &pooled{awaiting: true}
	s, err := connect(ctx, p.o.Config, func(err error) { p.outcome(c, err) })
	c.Session = s

	p.mu.Lock()
	delete(p.dials, d)
	d.err = err
	close(d.done)
	if err == nil && s.settled() {
		p.answered(c)
		p.proven = true
	}
	switch {
	case err == nil && p.closed:
		p.open--
		p.answered(c)
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

// failed tells of a dial that failed: everybody when the login was refused, since
// each of those who wait would try the same password again, else the one it was
// made for, if that still waits. The lock is held.
func (p *Pool) failed(d *dialing, err error) {
	var e *Error
	if errors.As(err, &e) && e.Kind == KindAuth {
		p.refuse(err)
		return
	}
	for i, w := range p.queue {
		if w.dial == d {
			p.give(i, given{err: err})
			return
		}
	}
}

// refuse fails those who wait for a session, because a login was refused. The
// lock is held.
func (p *Pool) refuse(err error) {
	p.proven = false
	p.fail(err)
	p.abandon()
}

// outcome is told how a login ended that was held for the first commands. The
// reader of the session calls it, before anybody sees the outcome.
func (p *Pool) outcome(c *pooled, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answered(c)
	var e *Error
	switch {
	case err == nil:
		p.proven = true
	case errors.As(err, &e) && e.Kind == KindAuth:
		p.refuse(err)
	}
	p.serve()
}

// answered notes that the login of a session has an outcome, or will have none.
// The lock is held.
func (p *Pool) answered(c *pooled) {
	if c.awaiting {
		c.awaiting = false
		p.unsettled--
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
			case <-time.After(lazy):
				c.guard.nudge()
			case <-p.life.Done():
			}
		})
	}
}
