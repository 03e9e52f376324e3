package imap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// ErrNoIdle says that a session cannot rest in IDLE: the server does not offer it or has
// refused it, or the pool has its maximum of resting sessions.
var ErrNoIdle = errors.New("no IDLE here")

// idleTag begins the tag of every IDLE, and of no command of the library.
const idleTag = "I"

// idling is an IDLE (RFC 2177) that goes on beneath the protocol library, which does not
// know of it: meanwhile the server sends unsolicited responses, which the library takes at
// any time. So a session can rest in IDLE between two lends, and the lend that takes it up
// sends DONE in front of its first command, in the same write.
type idling struct {
	tag   string
	began chan struct{} // closed when the server accepted it or answered it

	mu       sync.Mutex
	accepted bool
	over     bool
	tell     func(news bool) // nil when there is no watcher
}

// take is given each line from the server, and reports whether it is of the IDLE.
func (i *idling) take(line string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch tag, _, _ := strings.Cut(line, " "); {
	case i.over:
		return false
	case strings.HasPrefix(line, "+") && !i.accepted:
		i.accepted = true
		close(i.began)
		return true
	case tag == i.tag:
		i.over = true
		if !i.accepted {
			close(i.began)
		}
		return true
	}
	return false
}

// state reports whether the server has accepted the IDLE, and whether it has answered it.
func (i *idling) state() (accepted, over bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.accepted, i.over
}

// report tells the watcher that there is news, or, once, that no more reports will come.
func (i *idling) report(news bool) {
	i.mu.Lock()
	tell := i.tell
	if !news {
		i.tell = nil
	}
	i.mu.Unlock()
	if tell != nil {
		tell(news)
	}
}

// idle has the session rest in IDLE, and returns when the server has accepted it, which is
// one round trip. tell is called with true when the server says that messages have come,
// and once with false when the reports end: the session is in use again, or gone. It is
// called on any goroutine and may not block.
func (s *Session) idle(tell func(news bool)) (*idling, error) {
	if !s.Has("IDLE") {
		return nil, ErrNoIdle
	}
	g := s.guard
	s.idles++
	i := &idling{tag: fmt.Sprintf("%s%d", idleTag, s.idles), began: make(chan struct{}), tell: tell}
	g.idling.Store(i)
	var noop *Waiter
	var err error
	s.Together(func() {
		// Some servers report in IDLE only mail that comes while it lasts.
		noop = s.Noop()
		_, err = g.Write([]byte(i.tag + " IDLE\r\n"))
	})
	if err == nil {
		select {
		case <-i.began:
		case <-s.client.Closed():
		}
		err = g.reason()
	}
	if noopErr := noop.Wait(); err == nil {
		err = noopErr
	}
	accepted, over := i.state()
	if accepted && err == nil {
		return i, nil
	}
	g.idling.CompareAndSwap(i, nil)
	i.mu.Lock()
	i.tell = nil
	i.mu.Unlock()
	if over && err == nil {
		g.filter.idle = false // it was refused, or the server ended it: no DONE is due
		return nil, ErrNoIdle
	}
	g.end(errGaveUp) // it may rest in IDLE, where it would take no command
	return nil, s.fail(StageIdle, errors.Join(err, errGaveUp))
}

// leaveIdle ends an IDLE: DONE leaves in front of the next write. The session's next
// borrower calls it.
func (g *guard) leaveIdle() {
	i := g.idling.Swap(nil)
	if i == nil {
		return
	}
	if _, over := i.state(); over { // the server ended it, so no DONE is due
		g.filter.idle = false
	} else if out, err := g.filter.push([]byte("DONE\r\n")); err == nil {
		g.writing.Lock()
		g.hold(out)
		g.writing.Unlock()
	}
	i.report(false)
}

// idleLine takes the lines that belong to an IDLE, in progress or just left.
func (g *guard) idleLine(line string) bool {
	i := g.idling.Load()
	if i == nil || !i.take(line) {
		return strings.HasPrefix(line, idleTag)
	}
	if accepted, over := i.state(); !over {
		_ = g.filter.continues() // it waited for the +
	} else if accepted {
		i.report(false)
	}
	return true
}

// report tells the IDLE in progress, if there is one, that messages have come, or that
// the connection is gone.
func (g *guard) report(news bool) {
	if i := g.idling.Load(); i != nil {
		i.report(news)
	}
}

func (g *guard) resting() bool {
	i := g.idling.Load()
	if i == nil {
		return false
	}
	_, over := i.state()
	return !over
}

// Look returns the folder as it is now, EXAMINEd. If it was opened less than trust ago,
// Look only asks the server for changes, which is cheap. With instant, it does not even ask
// if the folder was opened a moment ago and no change is known since: a watcher that goes
// on to rest in IDLE then learns of mail that came in between.
func (s *Session) Look(folder string, trust time.Duration, instant bool) (Folder, error) {
	if f, ok := s.Unchanged(folder); ok && instant {
		return f, nil
	}
	if _, ok := s.unchanged(folder, trust); ok {
		if err := s.Noop().Wait(); err != nil {
			return Folder{}, err
		}
		if f, ok := s.Selected(); ok && s.fresh.moved.Load() == s.fresh.opened {
			return f, nil
		}
	}
	return s.Examine(folder).Wait()
}

// Rest lends a session to look, and if look returns nil leaves the session in IDLE, with
// tell called on news (see Session.idle). leave ends the IDLE, unless the session was lent
// meanwhile; with bye the server is told at once, else with the next command. The error is
// ErrNoIdle where a session cannot rest.
//
// A session at rest is one of the pool's idle ones. Others are lent first.
func (p *Pool) Rest(ctx context.Context, folder string, look func(s *Session) error, tell func(news bool)) (leave func(bye bool), err error) {
	var at *Session
	var i *idling
	release := func() {}
	defer func() { release() }() // when it is an idle one
	err = p.Lend(ctx, folder, func(_ context.Context, s *Session) error {
		release() // Lend may run this twice
		release = func() {}
		if err := look(s); err != nil {
			return err
		}
		done, ok := p.mayRest()
		if !ok {
			return ErrNoIdle
		}
		release = done
		var err error
		at = s
		i, err = s.idle(tell)
		return err
	})
	if err != nil {
		return nil, err
	}
	return func(bye bool) { p.leave(at, i, bye) }, nil
}

// mayRest reports whether one more session may rest: one of several is kept for commands,
// so that two watchers of different folders do not keep waking each other. done is called when
// it rests.
func (p *Pool) mayRest() (done func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	resting := p.toRest
	for _, s := range p.idle {
		if s.guard.resting() {
			resting++
		}
	}
	if resting >= max(1, p.o.Sessions-1) {
		return nil, false
	}
	p.toRest++
	return func() {
		p.mu.Lock()
		p.toRest--
		p.mu.Unlock()
	}, true
}

// leave ends an IDLE that is still in progress.
func (p *Pool) leave(s *Session, i *idling, bye bool) {
	i.mu.Lock()
	i.tell = nil
	i.mu.Unlock()
	p.mu.Lock()
	n := slices.IndexFunc(p.idle, func(c *pooled) bool { return c.Session == s && s.guard.idling.Load() == i })
	if n < 0 {
		p.mu.Unlock()
		return
	}
	at := p.idle[n]
	at.guard.leaveIdle()
	if !bye {
		p.mu.Unlock()
		return
	}
	p.idle = slices.Delete(p.idle, n, n+1)
	p.lent[at] = true
	p.mu.Unlock()
	at.guard.flush()
	p.put(at, true)
}
