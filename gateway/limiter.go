package gateway

import (
	"context"
	"sync"
	"time"
)

// memoryLimiter is the Limiter of a gateway that was given none: a generic cell
// rate algorithm per key. It holds one time per key, so that memory is bounded by
// the number of principals. golang.org/x/time/rate keeps a limit per limiter
// object; here the limit may change between two calls and the same rule must hold
// for a store that several processes share.
type memoryLimiter struct {
	mu  sync.Mutex
	now func() time.Time
	due map[string]time.Time
}

var _ Limiter = (*memoryLimiter)(nil)

func (l *memoryLimiter) Take(_ context.Context, key string, limit int, window time.Duration) (time.Duration, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	due, wait := NextDue(l.due[key], l.now(), limit, window)
	l.due[key] = due
	return wait, nil
}

// NextDue is the rule for a Limiter that keeps one instant per key: events are
// spread evenly at limit per window, with a burst of limit allowed after silence,
// so that one window can hold almost twice the limit. due is what the key's last
// allowed event left behind, zero for none, and next replaces it. The event may happen
// when wait is 0; else wait is positive and next is due, unless that is further in the
// future than a window can bring: it is an effect of a clock that was set back, and is
// cut to the end of one window. A limit or window that is not positive allows nothing.
func NextDue(due, now time.Time, limit int, window time.Duration) (next time.Time, wait time.Duration) {
	if limit <= 0 || window <= 0 {
		return due, max(window, time.Second)
	}
	if end := now.Add(window); due.After(end) {
		due = end
	}
	from := due
	if from.Before(now) {
		from = now
	}
	next = from.Add(max(window/time.Duration(limit), 1))
	if over := next.Sub(now.Add(window)); over > 0 {
		return due, over
	}
	return next, 0
}
