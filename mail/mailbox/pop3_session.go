package mailbox

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/postern-mail/postern/mail/internal/pop3"
	"github.com/postern-mail/postern/mail/internal/wire"
)

// A POP3 mailbox is locked while a session is open (RFC 1939 section 4), and shows in it
// what it held at the login. So there is one session at a time: it is kept for a short
// while for the next command and then closed, and a command that needs the current list
// gets a young one.
const (
	popKept  = 20 * time.Second // idle, before it is given up
	popYoung = 5 * time.Second  // how old a session may be that lists the mailbox
)

// popSession is the one session of an account. It is safe for concurrent use: callers wait
// for each other.
type popSession struct {
	cfg pop3.Config
	now func() time.Time

	life context.Context // ends with Close
	end  context.CancelFunc
	turn chan struct{} // one place

	// The fields below belong to the holder of the turn.
	session *pop3.Session
	release context.CancelFunc // ends the session's context
	opened  time.Time
	list    []pop3.Message
	skipped int
	places  map[string]int // by UIDL, where in list
	idle    *time.Timer
}

func newPopSession(cfg pop3.Config, now func() time.Time) *popSession {
	b := &popSession{cfg: cfg, now: now, turn: make(chan struct{}, 1)}
	b.life, b.end = context.WithCancel(context.Background())
	return b
}

// alone runs fn while there is no session. The context of fn also ends when the
// account's session is closed for good.
func (b *popSession) alone(ctx context.Context, fn func(context.Context) error) error {
	if err := b.enter(ctx); err != nil {
		return err
	}
	defer b.leave()
	b.drop()
	ctx, cancel := b.within(ctx)
	defer cancel()
	return b.explain(fn(ctx))
}

// enter takes the turn.
func (b *popSession) enter(ctx context.Context) error {
	select {
	case b.turn <- struct{}{}:
		if b.life.Err() == nil {
			return nil
		}
		b.leave()
		return errPopClosed
	case <-b.life.Done():
		return errPopClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (b *popSession) leave() { <-b.turn }

// within returns a context that ends with ctx or with Close.
func (b *popSession) within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(b.life, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// explain replaces the error of a connection that Close ended.
func (b *popSession) explain(err error) error {
	var w *wire.Error
	if b.life.Err() == nil || err == nil || errors.As(err, &w) && w.Kind == wire.KindRefused {
		return err
	}
	return errPopClosed
}

// lend runs fn on the session; on a new one if none is open, or if fresh is set and it is
// not young. A dead session is replaced once, if it was not new; fn then runs again.
func (b *popSession) lend(ctx context.Context, fresh bool, fn func(s *pop3.Session) error) error {
	if err := b.enter(ctx); err != nil {
		return err
	}
	defer b.leave()
	if b.idle != nil {
		b.idle.Stop()
	}
	defer b.keep()
	if b.session != nil && fresh && b.now().Sub(b.opened) > b.youth() {
		b.drop()
	}
	for used := b.session != nil; ; used = false {
		if err := b.open(ctx); err != nil {
			return b.explain(err)
		}
		err := fn(b.session)
		var w *wire.Error
		if err == nil || !errors.As(err, &w) || w.Kind == wire.KindRefused {
			return err
		}
		b.drop()
		if !used || w.Kind != wire.KindConnection && w.Kind != wire.KindClosed || ctx.Err() != nil || b.life.Err() != nil {
			return b.explain(err)
		}
	}
}

// youth is the maximum age of a session that shows the present messages: servers that allow
// logins less often say so (RFC 2449 section 6.5).
func (b *popSession) youth() time.Duration {
	if seconds, err := strconv.Atoi(b.session.Capability("LOGIN-DELAY")); err == nil && seconds > 0 {
		return max(popYoung, time.Duration(min(seconds, 900))*time.Second)
	}
	return popYoung
}

func (b *popSession) open(ctx context.Context) error {
	if b.session != nil {
		return nil
	}
	// The session outlives the command that begins it, which bounds its beginning.
	life, release := b.within(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, release)
	defer stop()
	s, err := pop3.Dial(life, b.cfg)
	if err != nil {
		release()
		return err
	}
	list, skipped, err := s.Messages(ctx)
	if err == nil && !stop() {
		err = ctx.Err()
	}
	if err != nil {
		_ = s.Close()
		release()
		return err
	}
	b.release = release
	b.session, b.opened, b.list, b.skipped = s, b.now(), list, skipped
	b.places = make(map[string]int, len(list))
	for i, m := range list {
		b.places[m.UIDL] = i
	}
	return nil
}

var errPopClosed = errors.New("the program is ending")

// keep leaves the session for the next command, for a while.
func (b *popSession) keep() {
	if b.session == nil {
		return
	}
	if b.idle != nil {
		b.idle.Reset(popKept)
		return
	}
	b.idle = time.AfterFunc(popKept, func() {
		select {
		case b.turn <- struct{}{}:
			b.drop()
			<-b.turn
		default: // in use, and its user sets the timer anew
		}
	})
}

// drop closes the session, which unlocks the mailbox. The caller holds the turn.
func (b *popSession) drop() {
	if b.session != nil {
		_ = b.session.Close()
		b.release()
		b.session, b.list, b.places = nil, nil, nil
	}
}

// Close ends the session and returns when it has ended. Commands that use it or wait for it
// fail; a session that is idle says goodbye to the server.
func (b *popSession) Close() error {
	select {
	case b.turn <- struct{}{}:
	default:
		b.end() // the command that has the turn fails soon
		b.turn <- struct{}{}
	}
	defer b.leave()
	defer b.end()
	if b.idle != nil {
		b.idle.Stop()
	}
	b.drop()
	return nil
}
