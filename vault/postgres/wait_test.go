package postgres

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postern-mail/postern/vault/kv"
	"github.com/postern-mail/postern/vault/vaulttest"
)

// until looks until something is so.
func until(t *testing.T, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !so(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it never came that %s", what)
		}
	}
}

// count is how many requests have this.
func (p *proxy) count(sql string) (n int) {
	for _, r := range p.sent() {
		if r.has(sql) {
			n++
		}
	}
	return n
}

func lock(t *testing.T, e *Engine, ctx context.Context) (held context.Context, unlock func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	t.Cleanup(cancel)
	held, unlock, err := e.Lock(ctx, "one")
	must(t, err)
	t.Cleanup(unlock)
	return held, unlock
}

func put(ctx context.Context, e *Engine, bucket, key string) error {
	return second(e.Transact(ctx, true, func(tx kv.Tx) error { return tx.Put(bucket, []byte(key), nil) }))
}

func TestOneHasALeaseAtATime(t *testing.T) {
	t.Parallel()
	address := newPlace(t)
	var inside, turns atomic.Int64
	var wg sync.WaitGroup
	for range 3 {
		e := another(t, address)
		for range 2 {
			wg.Go(func() {
				for range 5 {
					held, unlock, err := e.Lock(t.Context(), "one")
					if err != nil {
						t.Error(err)
						return
					}
					if inside.Add(1) != 1 || held.Err() != nil {
						t.Error("two have the lock")
					}
					turns.Add(1)
					inside.Add(-1)
					unlock()
				}
			})
		}
	}
	wg.Wait()
	if turns.Load() != 30 {
		t.Errorf("%d turns of 30", turns.Load())
	}
}

// Who is cut off knows that the lock is lost before another has it.
func TestALeaseIsLostBeforeAnotherHasIt(t *testing.T) {
	t.Parallel()
	address := newPlace(t)
	p, through := newProxy(t, address)
	a, b := another(t, through), another(t, address)
	a.lease, b.lease = 2*time.Second, 2*time.Second
	held, _ := lock(t, a, t.Context())
	p.block(true)
	lock(t, b, t.Context())
	if held.Err() == nil {
		t.Error("two have the lock")
	}
}

// A connection that breaks for a moment is no reason to lose a lock, nor to wait for oneself.
func TestALeaseOutlivesItsConnection(t *testing.T) {
	t.Parallel()
	p, through := newProxy(t, newPlace(t))
	e := another(t, through)
	e.lease = 8 * time.Second
	p.plan = p.once("lease", silent)
	held, _ := lock(t, e, t.Context())
	<-p.reached // an answer was lost
	p.block(true)
	p.block(false)
	p.reset()
	until(t, "it was renewed twice", func() bool { return p.count("UPDATE postern_leases") >= 2 })
	if held.Err() != nil {
		t.Error("the lock is lost")
	}
}

// Who gives up while it asks for a lock does not keep one that it was not told of.
func TestALockThatNobodyWasToldOfIsGivenBack(t *testing.T) {
	t.Parallel()
	address := newPlace(t)
	p, through := newProxy(t, address)
	e := another(t, through)
	e.lease = time.Hour
	p.plan = always("lease", full)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- third(e.Lock(ctx, "one")) }()
	_, schema, _ := strings.Cut(address, "search_path=")
	until(t, "the lock is held", func() bool { return len(server.Exec(t, "SELECT 1 FROM "+schema+".postern_leases")) == 1 })
	cancel()
	vaulttest.WantErr(t, <-ended, context.Canceled, "who gives up")
	lock(t, another(t, address), t.Context())
}

func TestALeaseEndsWithItsProcess(t *testing.T) {
	t.Parallel()
	address := newPlace(t)
	process, lines := start(t, "lock", address)
	if !lines.Scan() || lines.Text() != "held" {
		t.Fatalf("the process says %q", lines.Text())
	}
	e := another(t, address)
	if _, err := e.Version(t.Context()); err != nil { // it has a connection now
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	var other *kv.Held
	if _, _, err := e.Lock(short, "one"); !errors.As(err, &other) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("beside a holder: %v", err)
	}
	_ = process.Process.Kill()
	_ = process.Wait()
	lock(t, e, t.Context())
}

// What stood still and does not know yet that its lock was lost cannot write.
func TestAWriteWithALostLeaseIsNotKept(t *testing.T) {
	t.Parallel()
	address := newPlace(t)
	e := another(t, address)
	held, _ := lock(t, e, t.Context())
	inner, unlock, err := e.Lock(held, "two")
	must(t, err)
	defer unlock()
	must(t, put(inner, e, "b", "held"))
	_, schema, _ := strings.Cut(address, "search_path=")
	server.Exec(t, "UPDATE "+schema+".postern_leases SET holder = 1 WHERE name = 'one'")
	for _, ctx := range []context.Context{held, inner} {
		vaulttest.WantErr(t, put(ctx, e, "b", "lost"), kv.ErrBusy, "a write with a lock that was lost")
	}
	must(t, put(t.Context(), e, "b", "without"))
	must(t, second(e.Transact(t.Context(), false, func(tx kv.Tx) error {
		list, err := tx.Scan("b", kv.Range{}, 9)
		if len(list) != 2 {
			t.Errorf("%q were kept", list)
		}
		return err
	})))
	// The locks of another vault do not matter.
	must(t, put(held, another(t, newPlace(t)), "b", "elsewhere"))
}

// waiting begins to wait for a change.
func waiting(t *testing.T, e *Engine) (ended chan error) {
	t.Helper()
	must(t, second(e.Version(t.Context())))
	wait := e.Changes()
	ended = make(chan error, 1)
	go func() { ended <- wait(t.Context()) }()
	return ended
}

func TestWaitersAreWokenByNotifications(t *testing.T) {
	t.Parallel()
	address := newPlace(t)
	p, through := newProxy(t, address)
	a, b := another(t, through), another(t, address)
	a.look = time.Hour
	for i := range 5 {
		one, two := waiting(t, a), waiting(t, a)
		until(t, "it listens", func() bool { return p.count("LISTEN") > 0 })
		must(t, put(t.Context(), b, "b", "a"))
		must(t, errors.Join(<-one, <-two))
		until(t, "it was notified", func() (told bool) { p.set(func() { told = p.told > i }); return told })
	}
	if n := p.count("LISTEN"); n != 1 {
		t.Errorf("%d connections listen", n)
	}
	// One that is lost is made again, and what was written meanwhile is found.
	ended := waiting(t, a)
	p.block(true)
	must(t, put(t.Context(), b, "b", "b"))
	p.block(false)
	must(t, <-ended)
}

func TestWaitersLookWhereNothingNotifies(t *testing.T) {
	t.Parallel()
	address := newPlace(t)
	p, through := newProxy(t, address)
	p.deaf = true
	a, b := another(t, through), another(t, address)
	a.look = 10 * time.Millisecond
	ended := waiting(t, a)
	until(t, "it listens", func() bool { return p.count("LISTEN") > 0 })
	must(t, put(t.Context(), b, "b", "a"))
	must(t, <-ended)
}

// However much is written, who waits for some of it does not look all the time.
func TestAWaitTakesAWhile(t *testing.T) {
	t.Parallel()
	e := another(t, newPlace(t))
	e.least = shortWait
	began, ended := time.Now(), waiting(t, e)
	must(t, errors.Join(put(t.Context(), e, "b", "a"), <-ended))
	if took := time.Since(began); took < shortWait {
		t.Errorf("a wait took %v", took)
	}
}

func TestNobodyIsWokenForTheAudit(t *testing.T) {
	t.Parallel()
	p, through := newProxy(t, newPlace(t))
	e := another(t, through)
	for bucket := range quiet {
		if err := put(t.Context(), e, bucket, "a"); err != nil || p.count("NOTIFY") != 0 {
			t.Errorf("%s notifies %d times, %v", bucket, p.count("NOTIFY"), err)
		}
	}
	// Nor is it found by looking.
	e.look = time.Millisecond
	ended := waiting(t, e)
	must(t, put(t.Context(), e, "audit", "b"))
	p.reset()
	until(t, "it looked", func() bool { return p.count("FROM postern_vault WHERE one = 1") >= 3 })
	select {
	case err := <-ended:
		t.Errorf("somebody was woken: %v", err)
	default:
	}
	if err := put(t.Context(), e, "b", "a"); err != nil || p.count("NOTIFY") != 1 {
		t.Errorf("%d notifications, %v", p.count("NOTIFY"), err)
	}
	must(t, <-ended)
}
