package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/postern-mail/postern/vault/kv"
)

// lookPause is how often a waiting caller reads the state, which also finds what no
// notification tells: behind a pooler, and where the database has none.
const lookPause = time.Second

// shortWait is the least time that a wait takes: who waits for one record looks at it after each
// write of any process, and where much is written that must not take the database from the others.
const shortWait = time.Second / 2

// wake lends notifications to all that wait in this process, over one connection that is
// there while somebody waits.
type wake struct {
	config *pgconn.Config

	mu      sync.Mutex
	waiting map[chan struct{}]bool
	stop    context.CancelFunc // ends the listener; nil while there is none
	rest    *time.Timer        // ends it when nobody has waited for a while
	mute    bool               // the database knows no notifications
}

// join returns a channel that is sent to when something was written.
func (w *wake) join() chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting == nil {
		w.waiting = map[chan struct{}]bool{}
	}
	told := make(chan struct{}, 1)
	w.waiting[told] = true
	if w.stop == nil && !w.mute {
		ctx, cancel := context.WithCancel(context.Background())
		w.stop = cancel
		go w.listen(ctx)
	}
	return told
}

func (w *wake) leave(told chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.waiting, told)
	if w.rest == nil {
		w.rest = time.AfterFunc(idleTime, w.end)
	}
	w.rest.Reset(idleTime)
}

func (w *wake) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting) == 0 && w.stop != nil {
		w.stop()
		w.stop = nil
	}
}

// listen wakes all that wait, until its context ends.
func (w *wake) listen(ctx context.Context) {
	for ctx.Err() == nil {
		c, err := pgconn.ConnectConfig(ctx, w.config)
		if err == nil {
			if _, err = c.Exec(ctx, "LISTEN postern").ReadAll(); err != nil && !gone(err) {
				w.silence()
				discard(c)
				return
			}
			for err == nil {
				w.tell() // also once it listens: what was written before is not told
				err = c.WaitForNotification(ctx)
			}
			discard(c)
		}
		select {
		case <-ctx.Done():
		case <-time.After(lookPause):
		}
	}
}

// silence is for a database that knows no notifications.
func (w *wake) silence() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mute = true
}

func (w *wake) tell() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for told := range w.waiting {
		select {
		case told <- struct{}{}:
		default:
		}
	}
}

func (w *wake) silent() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mute
}

// Changes implements kv.Engine. A write to quiet buckets alone is none: each command makes one.
func (e *Engine) Changes() (wait func(context.Context) error) {
	before := e.newest() // older at most: then wait returns once too often
	return func(ctx context.Context) error {
		told, least := e.wake.join(), time.After(e.least)
		defer e.wake.leave(told)
		look := time.NewTicker(e.look)
		defer look.Stop()
		for {
			_, err := e.Version(ctx)
			if now := e.newest(); err != nil && ctx.Err() == nil || err == nil && (now.id != before.id || now.loud != before.loud) {
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-least:
					return nil
				}
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-told:
			case <-look.C:
			}
		}
	}
}

// leaseTime is how long a lock outlives its process. A living one renews it four times as
// often, and no longer counts on it when a quarter of the time is left.
const (
	leaseTime  = 20 * time.Second
	leaseParts = 4
)

const firstTry, lastTry = 10 * time.Millisecond, 500 * time.Millisecond

// lease is a lock that is held. A write with a context that has it is kept only if the
// lock was not lost: also where the process stood still and does not know yet.
type lease struct {
	e      *Engine
	name   string
	holder int64  // a number of this one
	outer  *lease // of the context in which it was taken
}

type leaseKey struct{}

func leaseOf(ctx context.Context) *lease {
	l, _ := ctx.Value(leaseKey{}).(*lease)
	return l
}

func (l *lease) where(a *arguments) string {
	return " WHERE name = " + a.text(l.name) + " AND holder = " + a.int(l.holder)
}

// until is when a lease ends that begins or is renewed now.
func (l *lease) until() string {
	return fmt.Sprintf("now() + interval '%d milliseconds'", l.e.lease.Milliseconds())
}

// set changes the end of a lease that has not ended, and reports whether it has not.
func (l *lease) set(ctx context.Context, until string) (bool, error) {
	a := &arguments{}
	rows, err := l.e.one(ctx, "UPDATE postern_leases SET until = "+until+l.where(a)+" AND until > now() RETURNING 1", a)
	return len(rows) == 1, err
}

// Lock implements kv.Engine with a lease, whose times are the database's. It is renewed
// until unlock. Where that fails, because the database cannot be reached, held ends a
// while before another may take it.
func (e *Engine) Lock(ctx context.Context, name string) (held context.Context, unlock func(), err error) {
	l := &lease{e: e, name: name, holder: random(), outer: leaseOf(ctx)}
	lost := false // an answer, which may have said that it has the lock
	defer func() {
		if err != nil && lost {
			go l.end()
		}
	}()
	for pause := firstTry; ; pause = min(2*pause, lastTry) {
		at := time.Now()
		a := &arguments{}
		// Who asks again because the answer was lost is the same holder.
		rows, err := e.one(ctx, "INSERT INTO postern_leases (name, holder, until) VALUES ("+a.text(name)+", "+a.int(l.holder)+", "+l.until()+
			") ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until WHERE postern_leases.until <= now() OR postern_leases.holder = excluded.holder RETURNING 1", a)
		lost = lost || err != nil
		if err = e.explain(ctx, at, err); errors.Is(err, kv.ErrUnreachable) || err != nil && ctx.Err() == nil && !errors.Is(err, kv.ErrBusy) {
			return nil, nil, err
		}
		if len(rows) == 1 {
			held, unlock = l.hold(ctx, at)
			return held, unlock, nil
		}
		select {
		case <-ctx.Done():
			return nil, nil, &kv.Held{Lock: name + " in " + e.name, Err: ctx.Err()}
		case <-time.After(pause):
		}
	}
}

// hold renews a lease that began after an instant.
func (l *lease) hold(ctx context.Context, at time.Time) (held context.Context, unlock func()) {
	held, lost := context.WithCancel(context.WithValue(ctx, leaseKey{}, l))
	renewing, stop := context.WithCancel(context.Background())
	left := func(since time.Time) time.Duration { return time.Until(since.Add(l.e.lease - l.e.lease/leaseParts)) }
	end := time.AfterFunc(left(at), func() {
		lost()
		stop()
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer lost()
		for {
			select {
			case <-renewing.Done():
				return
			case <-time.After(l.e.lease / leaseParts):
			}
			begun := time.Now()
			renewed, err := l.set(renewing, l.until())
			switch {
			case err == nil && !renewed:
				stop()
				return
			case err == nil:
				end.Reset(left(begun))
			}
		}
	}()
	return held, sync.OnceFunc(func() {
		ended := renewing.Err() != nil
		lost()
		stop()
		<-done
		end.Stop()
		if !ended {
			l.end()
		}
	})
}

// end gives a lease back. Where that fails it ends by itself.
func (l *lease) end() {
	ctx, cancel := context.WithTimeout(context.Background(), l.e.lease/leaseParts)
	defer cancel()
	_, _ = l.set(ctx, "now()")
}

// one runs a statement that is a transaction of its own.
func (e *Engine) one(ctx context.Context, sql string, a *arguments) (rows [][][]byte, err error) {
	err = e.pool.lend(ctx, func(ctx context.Context, c *pgconn.PgConn) error {
		result := c.ExecParams(ctx, sql, a.values, a.types, a.formats, []int16{asBytes}).Read()
		rows = result.Rows
		return result.Err
	})
	return rows, err
}
