package imap

import (
	"context"
	"errors"
	"time"

	"github.com/postern-mail/postern/mail/internal/wire"
)

// dial begins to make a connection with the values of ctx, which may end. The first caller in the queue at that time gets the
// connection, or the failure. The lock is held.
func (p *Pool) dial(ctx context.Context) {
	cfg := &p.o.Config
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cfg.Connect+cfg.Greeting+loginTime)
	stop := context.AfterFunc(p.life, cancel)
	c := &pooled{awaiting: true, round: p.logins.begin()}
	p.dials[c] = cancel
	p.open++
	p.work.Go(func() {
		defer cancel()
		defer stop()
		s, err := connect(ctx, p.o.Config, func(err error) { p.outcome(c, err) })
		c.Session = s
		p.dialled(c, err)
	})
}

// dialled takes the result of a dial.
func (p *Pool) dialled(c *pooled, err error) {
	p.mu.Lock()
	_, wanted := p.dials[c]
	delete(p.dials, c)
	if err == nil && c.settled() && c.awaiting {
		p.answered(c)
		p.logins.worked()
	}
	var e *wire.Error
	switch {
	case err == nil && !p.closed && !(c.awaiting && c.round < p.logins.round):
		if len(p.queue) > 0 {
			c.used = p.o.Now().Round(0)
			p.give(0, given{s: c, new: true})
			p.serve()
			p.mu.Unlock()
			return
		}
		// No caller waits any more. It becomes idle when it is logged in.
		p.lent[c], c.ahead = true, true
		p.mu.Unlock()
		ctx, cancel := context.WithTimeout(p.life, loginTime)
		defer cancel()
		sound := c.Use(ctx, func(_ context.Context, s *Session) error { return s.Ready() }) == nil
		p.put(c, sound)
		return
	case errors.As(err, &e) && e.Kind == wire.KindAuth:
		p.answered(c)
		p.refused(e, c.round)
	case err != nil && wanted && len(p.queue) > 0:
		p.give(0, given{err: err})
	}
	// It failed, or the pool was closed, or its credential has been refused.
	p.open--
	p.answered(c)
	p.serve()
	p.mu.Unlock()
	if c.Session != nil {
		_ = c.Close()
	}
}

// refused notes a refused login, and reports whether it is worth another try. If not, the
// waiting callers fail. The lock is held.
func (p *Pool) refused(e *wire.Error, round int) (retry bool) {
	retry, final := p.logins.refused(e, round)
	if final {
		p.fail(e)
		p.abandon()
	}
	return retry
}

// retries reports whether the login of a session was refused and is worth another
// try.
func (p *Pool) retries(s *pooled) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return s.retry
}

// outcome takes the outcome of a login that was held for the first commands. The session's
// reader calls it, before any caller sees the outcome.
func (p *Pool) outcome(c *pooled, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answered(c)
	var e *wire.Error
	switch {
	case err == nil:
		p.logins.worked()
	case errors.As(err, &e) && e.Kind == wire.KindAuth:
		c.retry = p.refused(e, c.round)
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

// hurry sends a held login that other callers wait for, if the session's borrower sends no
// command. The lock is held.
func (p *Pool) hurry() {
	for c := range p.lent {
		if !c.awaiting || c.hurried {
			continue
		}
		c.hurried = true
		p.work.Go(func() {
			select {
			case <-time.After(unsentLogin):
				c.guard.flush()
			case <-p.life.Done():
			}
		})
	}
}
