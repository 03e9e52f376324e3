package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/vault/kv"
)

// hold begins a write that goes on until it is let go.
func hold(t *testing.T, e *Engine) (letGo func() error) {
	t.Helper()
	inside, done, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := e.Transact(t.Context(), true, func(tx kv.Tx) error {
			close(inside)
			<-done
			return tx.Put("b", []byte("held"), nil)
		})
		ended <- err
	}()
	<-inside
	return sync.OnceValue(func() error {
		close(done)
		return <-ended
	})
}

// Who waits for another writer is told in time, and holds up neither readers nor leases of
// its own process.
func TestWritersThatWait(t *testing.T) {
	t.Parallel()
	address := newPlace(t)
	p, through := newProxy(t, address)
	a, b := another(t, address), another(t, through)
	letGo := hold(t, a)
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if err := put(ctx, b, "b", "in time"); !errors.Is(err, kv.ErrBusy) && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a writer that waits: %v", err)
	}
	var wg sync.WaitGroup
	for i := range 3 * maxConnections {
		wg.Go(func() {
			if err := put(t.Context(), b, "b", fmt.Sprint(i)); err != nil {
				t.Error(err)
			}
		})
	}
	until(t, "all writers wait that may", func() bool { return p.count("FOR UPDATE") > maxConnections/2 })
	if _, err := b.Transact(t.Context(), false, func(tx kv.Tx) error { _, err := tx.Get("b", []byte("0")); return err }); err != nil {
		t.Error(err)
	}
	lock(t, b, t.Context())
	if err := letGo(); err != nil {
		t.Error(err)
	}
	wg.Wait()
	p.set(func() {
		if p.most > maxConnections {
			t.Errorf("%d connections at a time", p.most)
		}
	})
}

// What stands still in a transaction is ended by the server.
func TestWhatStandsStillIsEnded(t *testing.T) {
	t.Parallel()
	address := newPlace(t)
	a, b := another(t, address), another(t, address)
	a.still = 100 * time.Millisecond
	letGo := hold(t, a)
	if err := put(t.Context(), b, "b", "others"); err != nil {
		t.Error(err)
	}
	if err := letGo(); !errors.Is(err, kv.ErrBusy) && !errors.Is(err, kv.ErrUnreachable) || errors.Is(err, errUnknown) {
		t.Errorf("the write that stood still: %v", err)
	}
	if _, err := b.Transact(t.Context(), false, func(tx kv.Tx) error {
		v, err := tx.Get("b", []byte("held"))
		if v != nil {
			t.Error("the write that stood still was kept")
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}

// So is a process that stops in the middle of sending or of being answered, and keeps its
// connection.
func TestWhoStopsInTheMiddleIsEnded(t *testing.T) {
	t.Parallel()
	address := newPlace(t)
	p, through := newProxy(t, address)
	b := another(t, address)
	write := func(size int) func(kv.Tx) error {
		return func(tx kv.Tx) error {
			return errors.Join(tx.Put("b", []byte("small"), nil), tx.Put("b", []byte("large"), make([]byte, size)))
		}
	}
	get := func(key string) func(kv.Tx) error {
		return func(tx kv.Tx) error { return second(tx.Get("b", []byte(key))) }
	}
	if _, err := b.Transact(t.Context(), true, func(tx kv.Tx) error { return tx.Put("b", []byte("there"), make([]byte, 32<<20)) }); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		for _, c := range []struct {
			kind string
			cut  cut
			do   func(kv.Tx) error
		}{
			{"commit", stopped, write(1)},
			{"commit", stopped, write(largeValue - 1)},
			{"large value", stopped, write(2 * flushSize)},
			{"get", full, get("there")},
		} {
			a := another(t, through)
			a.still = 100 * time.Millisecond
			reached := make(chan struct{})
			p.set(func() {
				p.plan = func(r request) cut {
					if r.kind() != c.kind {
						return ""
					}
					p.plan = nil
					close(reached)
					return c.cut
				}
			})
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			for there := false; !there; {
				go func() { ended <- second(a.Transact(ctx, true, c.do)) }()
				select {
				case <-reached:
					there = true
				case err := <-ended: // on a busy machine it stood still too long before it came there
					if !errors.Is(err, kv.ErrBusy) && !errors.Is(err, kv.ErrUnreachable) {
						t.Fatalf("%s: before it stopped: %v", c.kind, err)
					}
				}
			}
			if err := put(t.Context(), b, "b", "next"); err != nil {
				t.Errorf("%s: the next writer: %v", c.kind, err)
			}
			if c.cut == full {
				cancel() // it cannot know
			}
			if err := <-ended; err == nil || errors.Is(err, errUnknown) {
				t.Errorf("%s: who stopped: %v", c.kind, err)
			}
			cancel()
		}
	}
	if _, err := b.Transact(t.Context(), false, func(tx kv.Tx) error {
		v, err := tx.Get("b", []byte("large"))
		if v != nil {
			t.Error("a write that stopped was kept")
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}

func second[T any](_ T, err error) error { return err }

func TestPoolHasABound(t *testing.T) {
	t.Parallel()
	p, through := newProxy(t, newPlace(t))
	e := another(t, through)
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			if _, err := e.Transact(t.Context(), i%4 == 0, func(tx kv.Tx) error { return readOrWrite(tx, i) }); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	p.set(func() {
		if p.most > maxConnections {
			t.Errorf("%d connections at a time", p.most)
		}
	})
	// What is not used for long is closed.
	e.pool.mu.Lock()
	for i := range e.pool.idle {
		e.pool.idle[i].since = time.Time{}
	}
	e.pool.mu.Unlock()
	e.pool.sweep()
	until(t, "no connection is left", func() (none bool) { p.set(func() { none = len(p.conns) == 0 }); return none })
}

func readOrWrite(tx kv.Tx, i int) error {
	_, err := tx.Get("b", []byte("n"))
	if i%4 == 0 {
		return errors.Join(err, tx.Put("b", []byte("n"), []byte("n")))
	}
	return err
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = listener.Close()
	e := another(t, "postgres://somebody:s3cret@"+listener.Addr().String()+"/mail")
	for name, call := range map[string]func(context.Context) error{
		"read": func(ctx context.Context) error {
			_, err := e.Transact(ctx, false, func(kv.Tx) error { return nil })
			return err
		},
		"write":   func(ctx context.Context) error { return put(ctx, e, "b", "a") },
		"version": func(ctx context.Context) error { _, err := e.Version(ctx); return err },
		"lock":    func(ctx context.Context) error { _, _, err := e.Lock(ctx, "one"); return err },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if err := call(ctx); !errors.Is(err, kv.ErrUnreachable) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		} else {
			withoutSecret(t, err)
		}
		cancel()
	}
	// Nobody waits for a machine that is not there.
	e = another(t, "postgres://somebody:s3cret@nowhere.invalid/mail")
	e.pool.config.LookupFunc = func(context.Context, string) ([]string, error) { return nil, &net.DNSError{IsNotFound: true} }
	if err := put(t.Context(), e, "b", "a"); !errors.Is(err, kv.ErrUnreachable) {
		t.Error(err)
	} else {
		withoutSecret(t, err)
	}
}

// A transaction costs as few round trips as it can.
func TestRoundTrips(t *testing.T) {
	t.Parallel()
	servertest.Check(t, serverErr)
	p, through := newProxy(t, newPlace(t))
	e := another(t, through)
	if err := put(t.Context(), e, "b", "a"); err != nil { // it has a connection now
		t.Fatal(err)
	}
	trips := func(what string, want []string, do func() error) {
		t.Helper()
		p.reset()
		if err := do(); err != nil {
			t.Error(err)
		}
		var got []string
		for _, r := range p.sent() {
			got = append(got, r.kind())
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s sends %q, not %q", what, got, want)
		}
	}
	get := func(tx kv.Tx) error {
		_, err := tx.Get("b", []byte("a"))
		return err
	}
	trips("a read of one record", []string{"begin to read", "get", "end"}, func() error {
		_, err := e.Transact(t.Context(), false, get)
		return err
	})
	trips("a read of one record twice", []string{"begin to read", "get", "end"}, func() error {
		_, err := e.Transact(t.Context(), false, func(tx kv.Tx) error { return errors.Join(get(tx), get(tx)) })
		return err
	})
	trips("a write of one record", []string{"begin to write", "get", "commit"}, func() error {
		_, err := e.Transact(t.Context(), true, func(tx kv.Tx) error { return errors.Join(get(tx), tx.Put("b", []byte("a"), nil)) })
		return err
	})
	trips("a write of many records", []string{"begin to write", "commit"}, func() error {
		_, err := e.Transact(t.Context(), true, func(tx kv.Tx) (err error) {
			for i := range 50 {
				err = errors.Join(err, tx.Put("b", []byte{byte(i + 1)}, nil))
			}
			return err
		})
		return err
	})
	trips("the version", []string{"version"}, func() error {
		_, err := e.Version(t.Context())
		return err
	})
}
