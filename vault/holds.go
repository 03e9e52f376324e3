package vault

import (
	"crypto/rand"
	"encoding/binary"
	"slices"
	"sync"
	"time"
)

const (
	// holdSize is how many events of a limit a process reserves, and holdTime how long it may
	// use them. Events reserved by an ended process count as used.
	holdSize = 16
	holdTime = 10 * time.Minute
)

// pace is the state of a limit above exactLimit: by the rule of gateway.NextDue one
// instant represents all events, and a burst of the whole limit may come at once. Events
// that processes hold are charged beside it, as if all of them came now, so that later
// use could always have been charged then.
type pace struct {
	due   int64
	holds []hold
}

// hold is the events that one process may use until an instant. They include used events
// that it has not reported yet.
type hold struct{ owner, count, until int64 }

func parsePace(state []byte) (p pace) {
	if at := numbers(state, limitPaced); len(at) == 1 {
		p.due = at[0]
	}
	list := numbers(state, limitHeld)
	if len(list)%3 != 1 {
		return p
	}
	p.due = list[0]
	for list = list[1:]; len(list) > 0; list = list[3:] {
		p.holds = append(p.holds, hold{list[0], list[1], list[2]})
	}
	return p
}

func (p *pace) state() []byte {
	if len(p.holds) == 0 {
		return limitState(limitPaced, p.due, []int64{p.due}) // which versions without holds read too
	}
	until, list := p.due, []int64{p.due}
	for _, h := range p.holds {
		until = max(until, h.until)
		list = append(list, h.owner, h.count, h.until)
	}
	return limitState(limitHeld, until, list)
}

// spacing is how much of the window one event takes.
func spacing(limit int, window time.Duration) int64 { return max(int64(window)/int64(limit), 1) }

// settle charges the events that are no longer held: those of ended holds, and those that
// an owner used, the last of them at an instant.
func (p *pace) settle(owner, used, last, pause, now int64) {
	p.holds = slices.DeleteFunc(p.holds, func(h hold) bool {
		// A hold that ends in the far future was left by a clock set back.
		at, n := min(h.until, now+int64(holdTime)), h.count
		switch {
		case h.owner == owner:
			at, n = last, used
		case at > now:
			return false
		}
		if n > 0 {
			p.due = max(p.due, at) + n*pause
		}
		return true
	})
}

// charge charges events that happen now, or returns how long to wait for them. An
// instant further in the future than a window allows was left by a clock set back, and
// is cut.
func (p *pace) charge(n int64, limit int, window time.Duration, now int64) time.Duration {
	p.due = min(p.due, now+int64(window))
	from, each := max(p.due, now), spacing(limit, window)
	if over := from + (p.held()+n)*each - now - int64(window); over > 0 {
		return time.Duration(over)
	}
	p.due = from + n*each
	return 0
}

// held returns how many events all processes hold.
func (p *pace) held() (n int64) {
	for _, h := range p.holds {
		n += h.count
	}
	return n
}

// holds are the events that this process holds, by limit.
type holds struct {
	mu   sync.Mutex
	keys map[string]*held
}

// held is the events that this process holds of one limit.
type held struct {
	mu      sync.Mutex
	limit   int
	window  time.Duration
	owner   int64
	count   int64 // events that may be used
	coming  int64 // events that may be used once their hold is durable
	used    int64 // used events not reported to the vault yet
	since   int64 // the time of the last report or use
	until   int64
	charged bool // the process has charged before, so holding pays
}

// of returns the process's held events of a limit.
func (s *holds) of(key string, limit int, window time.Duration) *held {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.keys[key]
	if h == nil || h.limit != limit || h.window != window {
		var owner [8]byte
		_, _ = rand.Read(owner[:]) // it never fails
		h = &held{limit: limit, window: window, owner: int64(binary.BigEndian.Uint64(owner[:]))}
		if s.keys == nil {
			s.keys = map[string]*held{}
		}
		s.keys[key] = h
	}
	return h
}

// take uses n held events.
func (h *held) take(n, now int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.count < n || now < h.since || now >= h.until {
		return false
	}
	h.count -= n
	h.used += n
	h.since = now
	return true
}

// charge reports the used events to the vault, charges n more and refills the held ones.
// It returns the state to keep, nil for no change, and how long to wait. If there is a
// state, kept must be called with the outcome of the transaction.
func (h *held) charge(old []byte, n, now int64) (state []byte, retry time.Duration, kept func(error)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now < h.since || now >= h.until { // a clock set back ends it too
		h.count = 0
	}
	p, used, left := parsePace(old), h.used, h.count+h.coming
	due := p.due
	p.settle(h.owner, used, h.since, spacing(h.limit, h.window), now)
	mine := hold{h.owner, left, now + int64(holdTime)}
	p.holds = append(p.holds, mine)
	if n > 0 {
		if retry = p.charge(n, h.limit, h.window, now); retry > 0 && p.due >= due {
			return nil, retry, nil
		}
	}
	more := int64(0)
	if h.charged && retry == 0 {
		more = (now+int64(h.window)-max(p.due, now))/spacing(h.limit, h.window) - p.held()
		more = min(max(more, 0), max(holdSize-left, 0))
	}
	if mine.count += more; mine.count > 0 {
		p.holds[len(p.holds)-1] = mine
	} else {
		p.holds = p.holds[:len(p.holds)-1]
	}
	h.charged, h.used, h.coming = true, 0, h.coming+more
	h.since, h.until = now, mine.until
	return p.state(), retry, func(err error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.coming -= more
		if err == nil {
			h.count += more
			return
		}
		// The state may have been kept: none of it is used, and the used events are reported again.
		h.count, h.used = 0, h.used+used
	}
}

// low returns the limits with too few held events, by key.
func (s *holds) low() (list map[string]*held) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, h := range s.keys {
		h.mu.Lock()
		if h.limit > exactLimit && h.used > 0 && h.count+h.coming < holdSize/2 {
			if list == nil {
				list = map[string]*held{}
			}
			list[key] = h
		}
		h.mu.Unlock()
	}
	return list
}
