package pop3

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/postern-mail/postern/mail/internal/wire"
)

// A POP3 mailbox is locked while a session is open (RFC 1939 section 4), and shows in it
// what it held at the login. So there is one session at a time: it is kept for a short
// while for the next command and then closed, and a command that needs the current list
// gets a young one.
const (
	kept  = 20 * time.Second // idle, before it is given up
	young = 5 * time.Second  // how old a session may be that lists the mailbox

	way = 600 * time.Millisecond // between two sessions that follow each other: other processes ask twice a second for their turn
)

// Kept is the one session of a mailbox, kept between commands. It is safe for concurrent use:
// callers wait for each other.
type Kept struct {
	cfg Config
	now func() time.Time

	life context.Context // ends with Close
	end  context.CancelFunc
	turn chan struct{} // one place

	// The fields below belong to the holder of the turn.
	mailbox *Mailbox
	release context.CancelFunc // ends the session's context
	opened  time.Time          // by the wall clock, as rested: the other stands still while a machine sleeps
	rested  time.Time          // when the last command ended
	idle    *time.Timer
}

// Mailbox is a session with what the mailbox held when it began.
type Mailbox struct {
	*Session
	List    []Message
	Skipped int            // messages that the server gave no name, which are left out
	Places  map[string]int // by UIDL, where in List
}

// NewKept makes a Kept, which connects when it is first used.
func NewKept(cfg Config, now func() time.Time) *Kept {
	b := &Kept{cfg: cfg, now: now, turn: make(chan struct{}, 1)}
	b.life, b.end = context.WithCancel(context.Background())
	return b
}

// Try logs in on a session of its own, while the kept one is closed, and ends it after done.
func (b *Kept) Try(ctx context.Context, done func(s *Session)) error {
	if err := b.enter(ctx); err != nil {
		return err
	}
	defer b.leave()
	b.drop()
	ctx, cancel := b.within(ctx)
	defer cancel()
	s, release, err := b.dial(ctx)
	if err != nil {
		return b.explain(err)
	}
	defer release()
	done(s)
	_ = s.Close()
	return nil
}

// dial begins a session, which ends with its context or with the lease. release gives that
// back, after the session's end.
func (b *Kept) dial(ctx context.Context) (s *Session, release func(), err error) {
	release = func() {}
	if b.cfg.Lease != nil {
		if ctx, release, err = b.cfg.Lease(ctx); err != nil {
			return nil, nil, err
		}
	}
	if s, err = Dial(ctx, b.cfg); err != nil {
		release()
	}
	return s, release, err
}

// enter takes the turn.
func (b *Kept) enter(ctx context.Context) error {
	select {
	case b.turn <- struct{}{}:
		if b.life.Err() == nil {
			return nil
		}
		b.leave()
		return errClosed
	case <-b.life.Done():
		return errClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (b *Kept) leave() { <-b.turn }

// within returns a context that ends with ctx or with Close.
func (b *Kept) within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(b.life, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// explain replaces the error of a connection that Close ended.
func (b *Kept) explain(err error) error {
	var w *wire.Error
	if b.life.Err() == nil || err == nil || errors.As(err, &w) && w.Kind == wire.KindRefused {
		return err
	}
	return errClosed
}

// Lend runs fn on the session; on a new one if none is open, or if it is not young and either
// fresh is set or other processes may be waiting for the mailbox, who get their turn. A dead
// session is replaced once, if it was not new; fn then runs again.
func (b *Kept) Lend(ctx context.Context, fresh bool, fn func(s *Mailbox) error) error {
	if err := b.enter(ctx); err != nil {
		return err
	}
	defer b.leave()
	if b.idle != nil {
		b.idle.Stop()
	}
	defer b.keep()
	if b.mailbox != nil && b.now().Sub(b.rested) > kept {
		b.drop() // the machine slept
	}
	if b.mailbox != nil && (fresh || b.cfg.Lease != nil) && b.now().Sub(b.opened) > b.youth() {
		b.drop()
		if b.cfg.Lease != nil {
			select {
			case <-time.After(way):
			case <-ctx.Done():
			case <-b.life.Done():
			}
		}
	}
	for used := b.mailbox != nil; ; used = false {
		if err := b.open(ctx); err != nil {
			return b.explain(err)
		}
		err := fn(b.mailbox)
		var w *wire.Error
		if err == nil || !errors.As(err, &w) || w.Kind == wire.KindRefused {
			return err
		}
		b.drop()
		dead := w.Kind == wire.KindConnection || w.Kind == wire.KindClosed || w.Kind == wire.KindCanceled // by its lease
		if !used || !dead || ctx.Err() != nil || b.life.Err() != nil {
			return b.explain(err)
		}
	}
}

// youth is the maximum age of a session that shows the present messages: servers that allow
// logins less often say so (RFC 2449 section 6.5).
func (b *Kept) youth() time.Duration {
	if seconds, err := strconv.Atoi(b.mailbox.Capability("LOGIN-DELAY")); err == nil && seconds > 0 {
		return max(young, time.Duration(min(seconds, 900))*time.Second)
	}
	return young
}

func (b *Kept) open(ctx context.Context) error {
	if b.mailbox != nil && b.mailbox.ctx.Err() == nil {
		return nil
	}
	b.drop() // where its lease was lost
	// The session outlives the command that begins it, which bounds its beginning.
	life, end := b.within(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, end)
	defer stop()
	s, release, err := b.dial(life)
	if err != nil {
		end()
		return err
	}
	list, skipped, err := s.Messages(ctx)
	if err == nil && !stop() {
		err = ctx.Err()
	}
	if err != nil {
		_ = s.Close()
		release()
		end()
		return err
	}
	b.release = func() { release(); end() }
	b.opened, b.rested = b.now().Round(0), b.now().Round(0)
	b.mailbox = &Mailbox{Session: s, List: list, Skipped: skipped, Places: make(map[string]int, len(list))}
	for i, m := range list {
		b.mailbox.Places[m.UIDL] = i
	}
	return nil
}

var errClosed = errors.New("the program is ending")

// keep leaves the session for the next command, for a while.
func (b *Kept) keep() {
	if b.mailbox == nil {
		return
	}
	b.rested = b.now().Round(0)
	wait := kept
	if b.cfg.Lease != nil {
		wait = min(kept, b.youth()) // others may be waiting for it
	}
	if b.idle != nil {
		b.idle.Reset(wait)
		return
	}
	b.idle = time.AfterFunc(wait, func() {
		select {
		case b.turn <- struct{}{}:
			b.drop()
			<-b.turn
		default: // in use, and its user sets the timer anew
		}
	})
}

// drop closes the session, which unlocks the mailbox. The caller holds the turn.
func (b *Kept) drop() {
	if b.mailbox != nil {
		_ = b.mailbox.Close()
		b.release()
		b.mailbox = nil
	}
}

// Close ends the session and returns when it has ended. Commands that use it or wait for it
// fail; a session that is idle says goodbye to the server.
func (b *Kept) Close() error {
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
