package vault

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/vault/kv"
)

const (
	// exactLimit is up to which limit every event is remembered, so that no window
	// of time, wherever it begins, holds more. Above it that would cost too much,
	// and one instant per key stands for all of them (gateway.NextDue): a burst of
	// the whole limit may come at once, after which events are let through at its
	// even pace.
	exactLimit = 100

	limitExact, limitPaced byte = 1, 2

	// limitSweep is how many other keys one event looks at, to forget those that
	// do not limit any more.
	limitSweep = 4
)

// errRefused rolls the transaction back: a refused event is not charged, and
// costs no write, save the first after the clock was set back.
var errRefused = errors.New("over the limit")

// Take charges one event to the key, for all processes that share the vault. It
// implements gateway.Limiter. A limit or window that is not positive allows
// nothing. A clock that was set back delays nobody longer than one window; when it is
// set right again, what was charged before may be forgotten.
func (v *Vault) Take(ctx context.Context, key string, limit int, window time.Duration) (time.Duration, error) {
	if limit <= 0 || window <= 0 {
		return max(window, time.Second), nil
	}
	name := v.limitName(key)
	var retry time.Duration
	err := v.update(ctx, func(t *transaction) error {
		var state []byte
		now := v.now().UnixNano()
		if state, retry = taken(t, name, limit, window, now); state == nil {
			return errRefused
		}
		if err := sweepLimits(t, name, now); err != nil {
			return err
		}
		return t.put(bucketLimits, name, state)
	})
	if errors.Is(err, errRefused) {
		err = nil
	}
	return retry, err
}

// Foresee tells what Take would, and charges nothing.
func (v *Vault) Foresee(ctx context.Context, key string, limit int, window time.Duration) (retry time.Duration, err error) {
	if limit <= 0 || window <= 0 {
		return max(window, time.Second), nil
	}
	err = v.view(ctx, func(t *transaction) error {
		_, retry = taken(t, v.limitName(key), limit, window, v.now().UnixNano())
		return nil
	})
	return retry, err
}

func (v *Vault) limitName(key string) []byte { return keyedDigest(v.limitKey, []byte(key))[:16] }

// taken is the state of a limit after one more event, or how long to wait for it. Who
// has to wait leaves no state, save where the clock was found to have been set back:
// what is left then is what the wait counts from.
func taken(t *transaction, name []byte, limit int, window time.Duration, now int64) (state []byte, retry time.Duration) {
	state, err := t.get(bucketLimits, name)
	if err != nil {
		// A limit that cannot be read starts again; the log tells of the damage.
		state = nil
	}
	if limit <= exactLimit {
		return takeExact(state, limit, window, now)
	}
	return takePaced(state, limit, window, now)
}

// A state is its kind, the instant from which it can be forgotten, and instants,
// all in nanoseconds since 1970.

func takeExact(state []byte, limit int, window time.Duration, now int64) ([]byte, time.Duration) {
	var events []int64
	setBack := false
	for _, at := range instants(state, limitExact) {
		// An event of the future is the trace of a clock set back: it counts as one
		// of now, so that it ends a window from now.
		setBack = setBack || at > now
		if at = min(at, now); now-at < int64(window) {
			events = append(events, at)
		}
	}
	slices.Sort(events)
	if len(events) < limit {
		return limitState(limitExact, now+int64(window), append(events, now)), 0
	}
	// The limit may have been lowered: as many must end as are too many.
	retry := time.Duration(events[len(events)-limit] + int64(window) - now)
	if setBack {
		return limitState(limitExact, now+int64(window), events), retry
	}
	return nil, retry
}

// takePaced keeps the state of gateway.NextDue.
func takePaced(state []byte, limit int, window time.Duration, now int64) ([]byte, time.Duration) {
	var due time.Time
	if at := instants(state, limitPaced); len(at) == 1 {
		due = time.Unix(0, at[0])
	}
	next, wait := gateway.NextDue(due, time.Unix(0, now), limit, window)
	if wait > 0 && next.Equal(due) {
		return nil, wait
	}
	return limitState(limitPaced, next.UnixNano(), []int64{next.UnixNano()}), wait
}

func limitState(kind byte, until int64, at []int64) []byte {
	b := binary.BigEndian.AppendUint64([]byte{kind}, uint64(until))
	for _, n := range at {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	return b
}

// instants returns none for a state of the other kind: a limit that was moved
// across the boundary starts again.
func instants(state []byte, kind byte) []int64 {
	if len(state) < 9 || state[0] != kind || len(state)%8 != 1 {
		return nil
	}
	var at []int64
	for b := state[9:]; len(b) > 0; b = b[8:] {
		at = append(at, int64(binary.BigEndian.Uint64(b)))
	}
	return at
}

// sweepLimits forgets a few expired limits that follow the key. Keys are evenly
// spread, so that in time every one has its turn.
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
