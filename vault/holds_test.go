package vault

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/vault/kv"
)

// TestLimitsAgreeWithTheirModel has processes take and record at random, on one clock, and checks
// every event that passed: against gateway.NextDue, the rule without holds, and where the limit is
// small, against the events themselves, of which no window has more and the last has as many.
func TestLimitsAgreeWithTheirModel(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for limit, window := range map[int]time.Duration{120: time.Minute, 5: 30 * time.Second} {
		dice := rand.New(rand.NewPCG(seed, 1))
		path, k := newPlace(t)
		at := fakeClock{epoch}
		open := func() *Vault { return mustOpen(t, path, Keys{Agent: k.Agent}, &Options{Now: at.now}) }
		processes := []*Vault{open(), open(), open()}
		var due time.Time
		var passed []time.Time
		steps := size(testmain.Rounds(400, 1500), 200)
		for range steps {
			switch n := dice.IntN(100); {
			case n < 60:
				at.at = at.at.Add(time.Duration(dice.IntN(48000/limit)) * time.Millisecond)
			case n < 61:
				at.at = at.at.Add(time.Duration(dice.IntN(700)) * time.Second)
			case n < 62: // one ends, with the events that it holds
				processes[dice.IntN(len(processes))] = open()
			}
			v := processes[dice.IntN(len(processes))]
			n := 1
			if dice.IntN(4) == 0 {
				n += dice.IntN(limit/3 + 1)
			}
			wait, err := v.TakeSeveral(t.Context(), "k", n, limit, window)
			must(t, err)
			if exact := limit <= exactLimit; exact {
				ends := at.at // when there is room
				if i := len(passed) + n - limit; i > 0 {
					ends = passed[i-1].Add(window)
				}
				if want := max(ends.Sub(at.at), 0); wait != want {
					t.Fatalf("after %d events: wait %v, want %v", len(passed), wait, want)
				}
			}
			for range n {
				if wait > 0 {
					break
				}
				passed = append(passed, at.at)
				var early time.Duration
				if due, early = gateway.NextDue(due, at.at, limit, window); early > 0 && limit > exactLimit {
					t.Fatalf("event %d passes %v too early", len(passed), early)
				}
			}
			if dice.IntN(2) == 0 {
				must(t, v.Record(t.Context(), gateway.AuditEntry{Time: at.at}))
			}
		}
		if len(passed) < steps/3 {
			t.Errorf("only %d events passed", len(passed))
		}
	}
}

func TestAHeldEventCostsNoTransaction(t *testing.T) {
	t.Parallel()
	_, v := newVault(t, nil)
	for range 20 {
		take(t, v, "k", 1200, time.Minute)
		must(t, v.Record(t.Context(), gateway.AuditEntry{}))
	}
	before := v.Transactions()
	for range 100 {
		take(t, v, "k", 1200, time.Minute)
		must(t, v.Record(t.Context(), gateway.AuditEntry{}))
	}
	if n := v.Transactions() - before; n != 100 {
		t.Errorf("%d transactions for 100 commands", n)
	}
}

// The events that an ended process held count as used until the hold is over.
func TestEventsHeldByAnEndedProcessComeBack(t *testing.T) {
	t.Parallel()
	path, k := newPlace(t)
	at := fakeClock{epoch}
	open := func() *Vault { return mustOpen(t, path, Keys{Agent: k.Agent}, &Options{Now: at.now}) }
	for range 10 {
		v := open()
		for range 3 {
			take(t, v, "k", 120, time.Minute)
		}
	}
	at.at = at.at.Add(holdTime + time.Minute)
	v := open()
	for i := range 120 {
		if i == 60 { // what is refused does not count
			if wait, err := v.TakeSeveral(t.Context(), "k", 61, 120, time.Minute); err != nil || wait <= 0 {
				t.Errorf("more at once than there is room for: wait %v, %v", wait, err)
			}
		}
		if take(t, v, "k", 120, time.Minute) != 0 {
			t.Fatalf("event %d of a burst waits", i)
		}
	}
	for _, n := range []int{1, 10, 1} { // what is refused does not count
		if wait, err := v.TakeSeveral(t.Context(), "k", n, 120, time.Minute); err != nil || wait != time.Duration(n)*time.Second/2 {
			t.Errorf("%d more wait %v, %v", n, wait, err)
		}
	}
}

// The transaction that reserves more events fails: none of them may be used.
func TestEventsOfAFailedReservationAreNotUsed(t *testing.T) {
	t.Parallel()
	_, v := newVault(t, nil)
	for range 3 {
		take(t, v, "k", 120, time.Minute)
	}
	h := v.holds.of("k", 120, time.Minute)
	if h.count == 0 {
		t.Fatal("nothing is held")
	}
	engine := v.engine
	v.engine = fakeFullDisk{engine}
	h.count = 1
	take(t, v, "k", 120, time.Minute)
	if err := v.Record(t.Context(), gateway.AuditEntry{}); err == nil {
		t.Fatal("it did not fail")
	}
	if h.count != 0 || h.coming != 0 || h.used == 0 {
		t.Errorf("%+v", h)
	}
	v.engine = engine
	take(t, v, "k", 120, time.Minute)
}

type fakeFullDisk struct{ kv.Engine }

func (e fakeFullDisk) Transact(ctx context.Context, write bool, fn func(kv.Tx) error) (kv.Version, error) {
	return e.Engine.Transact(ctx, write, func(tx kv.Tx) error { return errors.Join(fn(tx), errors.New("the disk is full")) })
}
