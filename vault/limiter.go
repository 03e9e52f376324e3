package vault

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/vault/kv"
)

const (
	// exactLimit is the highest limit for which every event is remembered, so that no
	// window of time, wherever it begins, holds more. For higher limits that would
	// cost too much, and events are let through at an even pace, see pace.
	exactLimit = 100

	limitExact, limitPaced, limitHeld byte = 1, 2, 3

	// limitSweep is how many other keys one event examines, to delete those that
	// no longer limit.
	limitSweep = 4
)

// Take charges one event to the key, for all processes that share the vault. It
// implements gateway.Limiter. A limit or window of 0 or less allows nothing. After a
// clock was set back a caller waits for one window at most; when it is set right again,
// earlier events may be forgotten.
//
// A process that has charged events above exactLimit before holds some more, which cost
// no transaction.
func (v *Vault) Take(ctx context.Context, key string, limit int, window time.Duration) (time.Duration, error) {
	return v.TakeSeveral(ctx, key, 1, limit, window)
}

// TakeSeveral is Take for n events at once, all of them or none. More than the limit are
// never allowed.
func (v *Vault) TakeSeveral(ctx context.Context, key string, n, limit int, window time.Duration) (time.Duration, error) {
	if limit <= 0 || window <= 0 || n > limit {
		return max(window, time.Second), nil
	}
	if err := v.Ready(ctx); err != nil {
		return 0, err
	}
	h := v.holds.of(key, limit, window)
	if limit > exactLimit && h.take(int64(n), v.now().UnixNano()) {
		return 0, nil
	}
	name := v.limitName(key)
	var retry time.Duration
	err := v.writeTogether(ctx, func(t *transaction, j *job) error {
		var state []byte
		now := v.now().UnixNano()
		if principal, ok := strings.CutPrefix(key, gateway.CommandsKey); ok { // a process that begins knows nothing of it
			v.noteLog(principal, parsePace(t.limit(v.logName(principal))))
		}
		if limit <= exactLimit {
			state, retry = takeExact(t.limit(name), n, limit, window, now)
		} else {
			var kept func(error)
			if state, retry, kept = h.charge(t.limit(name), int64(n), now); kept != nil {
				j.after = append(j.after, kept)
			}
		}
		// A caller that has to wait leaves no state, unless the clock was set back: then the
		// state is the instant from which the wait counts.
		if state == nil {
			return errNothing
		}
		if err := sweepLimits(t, name, now); err != nil {
			return err
		}
		return t.put(bucketLimits, name, state)
	})
	if err != nil && !errors.Is(err, errNothing) {
		return 0, err
	}
	return retry, nil
}

// Foresee returns the result of Take, and charges nothing.
func (v *Vault) Foresee(ctx context.Context, key string, limit int, window time.Duration) (retry time.Duration, err error) {
	if limit <= 0 || window <= 0 {
		return max(window, time.Second), nil
	}
	err = v.view(ctx, func(t *transaction) error {
		state, now := t.limit(v.limitName(key)), v.now().UnixNano()
		if limit <= exactLimit {
			_, retry = takeExact(state, 1, limit, window, now)
			return nil
		}
		p := parsePace(state)
		retry = p.charge(1, limit, window, now)
		return nil
	})
	return retry, err
}

func (v *Vault) limitName(key string) []byte { return keyedDigest(v.limitKey, []byte(key))[:16] }

// limit returns the state of a limit. An unreadable state starts again; Check
// reports the damage.
func (t *transaction) limit(name []byte) []byte {
	state, err := t.get(bucketLimits, name)
	if err != nil {
		return nil
	}
	return state
}

// A state is its kind, the instant from which it can be forgotten, and more numbers, all
// instants in nanoseconds since 1970.

func takeExact(state []byte, n, limit int, window time.Duration, now int64) ([]byte, time.Duration) {
	var events []int64
	setBack := false
	for _, at := range numbers(state, limitExact) {
		// An event of the future was left by a clock set back: it counts as one of
		// now, so that it ends a window from now.
		setBack = setBack || at > now
		if at = min(at, now); now-at < int64(window) {
			events = append(events, at)
		}
	}
	slices.Sort(events)
	if len(events)+n <= limit {
		return limitState(limitExact, now+int64(window), append(events, slices.Repeat([]int64{now}, n)...)), 0
	}
	// The limit may have been lowered: the surplus events must end first.
	retry := time.Duration(events[len(events)+n-1-limit] + int64(window) - now)
	if setBack {
		return limitState(limitExact, now+int64(window), events), retry
	}
	return nil, retry
}

func limitState(kind byte, until int64, rest []int64) []byte {
	b := binary.BigEndian.AppendUint64([]byte{kind}, uint64(until))
	for _, n := range rest {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	return b
}

// numbers returns nil for a state of another kind: a limit that was moved
// across exactLimit starts again.
func numbers(state []byte, kind byte) []int64 {
	if len(state) < 9 || state[0] != kind || len(state)%8 != 1 {
		return nil
	}
	var list []int64
	for b := state[9:]; len(b) > 0; b = b[8:] {
		list = append(list, int64(binary.BigEndian.Uint64(b)))
	}
	return list
}

// sweepLimits deletes a few expired limits after the key. Keys are evenly
// spread, so that in time all are reached.
func sweepLimits(t *transaction, from []byte, now int64) error {
	list, err := t.Scan(bucketLimits, kv.Range{From: from}, limitSweep+1)
	for _, r := range list {
		state, broken := t.values.open(bucketLimits, r.Key, r.Value)
		if err == nil && !bytes.Equal(r.Key, from) && (broken != nil || len(state) < 9 || int64(binary.BigEndian.Uint64(state[1:])) <= now) {
			err = t.Delete(bucketLimits, r.Key)
		}
	}
	return err
}
