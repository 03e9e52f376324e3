package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/vault/kv"
	"github.com/postern-mail/postern/vault/vaulttest"
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

// read is a transaction that reads a record.
func read(ctx context.Context, e *Engine) error {
	return second(e.Transact(ctx, false, func(tx kv.Tx) error { return second(tx.Get("b", []byte("a"))) }))
}

// isNotThere checks that a write that stood still or stopped was not kept.
func isNotThere(t *testing.T, e *Engine, key string) {
	t.Helper()
	must(t, second(e.Transact(t.Context(), false, func(tx kv.Tx) error {
		v, err := tx.Get("b", []byte(key))
		if v != nil {
			t.Errorf("%s was kept", key)
		}
		return err
	})))
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
	must(t, read(t.Context(), b))
	lock(t, b, t.Context())
	must(t, letGo())
	wg.Wait()
	p.set(func() {
		if p.most > maxConnections {
			t.Errorf("%d connections at a time", p.most)
		}
	})
	// What is not used for long is closed.
	b.pool.mu.Lock()
	for i := range b.pool.idle {
		b.pool.idle[i].since = time.Time{}
	}
	b.pool.mu.Unlock()
	b.pool.sweep()
	until(t, "no connection is left", func() (none bool) { p.set(func() { none = len(p.conns) == 0 }); return none })
}

// What stands still in a transaction is ended by the server.
func TestWhatStandsStillIsEnded(t *testing.T) {
	t.Parallel()
	address := newPlace(t)
	a, b := another(t, address), another(t, address)
	a.still = 100 * time.Millisecond
	letGo := hold(t, a)
	must(t, put(t.Context(), b, "b", "others"))
	if err := letGo(); !errors.Is(err, kv.ErrBusy) && !errors.Is(err, kv.ErrUnreachable) || errors.Is(err, errUnknown) {
		t.Errorf("the write that stood still: %v", err)
	}
	isNotThere(t, b, "held")
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
	must(t, second(b.Transact(t.Context(), true, func(tx kv.Tx) error { return tx.Put("b", []byte("there"), make([]byte, 16<<20)) })))
	for range testmain.Rounds(1, 5) {
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
			p.set(func() { p.plan = p.once(c.kind, c.cut) })
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			for there := false; !there; {
				go func() { ended <- second(a.Transact(ctx, true, c.do)) }()
				select {
				case <-p.reached:
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
	isNotThere(t, b, "large")
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	_ = listener.Close()
	e := another(t, "postgres://somebody:s3cret@"+listener.Addr().String()+"/mail")
	for name, call := range map[string]func(context.Context) error{
		"read":    func(ctx context.Context) error { return read(ctx, e) },
		"write":   func(ctx context.Context) error { return put(ctx, e, "b", "a") },
		"version": func(ctx context.Context) error { return second(e.Version(ctx)) },
		"lock":    func(ctx context.Context) error { return third(e.Lock(ctx, "one")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			err := call(ctx)
			if !errors.Is(err, kv.ErrUnreachable) || !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			withoutSecret(t, err)
		})
	}
	// Nobody waits for a machine that is not there.
	nowhere := another(t, "postgres://somebody:s3cret@nowhere.invalid/mail")
	nowhere.pool.config.LookupFunc = func(context.Context, string) ([]string, error) { return nil, &net.DNSError{IsNotFound: true} }
	err = put(t.Context(), nowhere, "b", "a")
	vaulttest.WantErr(t, err, kv.ErrUnreachable, "no machine")
	withoutSecret(t, err)
}

// Where the caller's time ends because the database has fallen silent, that is said, in words
// without the driver's.
func TestSilence(t *testing.T) {
	t.Parallel()
	address := newPlace(t)
	for kind, call := range map[string]func(context.Context, *Engine) error{
		"start":          func(ctx context.Context, e *Engine) error { return second(e.Version(ctx)) },
		"version":        func(ctx context.Context, e *Engine) error { return second(e.Version(ctx)) },
		"begin to write": func(ctx context.Context, e *Engine) error { return put(ctx, e, "b", "a") },
		"get":            func(ctx context.Context, e *Engine) error { return read(ctx, e) },
		"begin to read":  func(ctx context.Context, e *Engine) error { return read(ctx, e) },
		"lease":          func(ctx context.Context, e *Engine) error { return third(e.Lock(ctx, "one")) },
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			p, through := newProxy(t, address)
			e := another(t, through)
			p.plan = always(kind, stopped)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := call(ctx, e); !errors.Is(err, kv.ErrUnreachable) || !errors.Is(err, context.DeadlineExceeded) ||
				!strings.HasSuffix(err.Error(), "/postgres: it did not answer in time") {
				t.Error(err)
			}
			ctx, cancel = context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			if err := call(ctx, e); !errors.Is(err, context.Canceled) || kind != "start" && errors.Is(err, kv.ErrUnreachable) {
				t.Errorf("cancelled: %v", err)
			}
		})
	}
}

// A COMMIT that nobody answers is looked for on another connection.
func TestACommitThatIsNotAnswered(t *testing.T) {
	t.Parallel()
	p, through := newProxy(t, newPlace(t))
	e := another(t, through)
	e.answer = time.Second / 10
	p.plan = p.once("commit", full)
	must(t, put(t.Context(), e, "b", "a"))
	if n := p.count("SELECT 1 FROM postern_writes"); n != 1 {
		t.Errorf("looked for %d times", n)
	}
}

// What a database refuses is said in its words, and the last attempt, which the end of the wait
// cuts short, hides no reason.
func TestWhyItCannotBeUsed(t *testing.T) {
	t.Parallel()
	address := newPlace(t)
	schema := address[strings.LastIndex(address, "=")+1:]
	server.Exec(t, "CREATE ROLE reader LOGIN; GRANT USAGE ON SCHEMA "+schema+" TO reader; GRANT SELECT ON ALL TABLES IN SCHEMA "+schema+" TO reader")
	cutting, cutOff := newProxy(t, address)
	cutting.plan = always("get", before)
	if err := read(t.Context(), another(t, cutOff)); !errors.Is(err, kv.ErrUnreachable) || !strings.HasSuffix(err.Error(), "/postgres: the connection to it ended") {
		t.Error(err)
	}
	p, through := newProxy(t, address)
	n := 0
	p.plan = func(r request) cut {
		if n++; n > 4 { // two connections, of which it is asked whether they write
			return stopped
		}
		return ""
	}
	for place, want := range map[string]string{
		strings.Replace(address, "search_path", "default_transaction_read_only=on&search_path", 1): "/postgres: it only reads, as a standby does",
		strings.Replace(through, "search_path", "default_transaction_read_only=on&search_path", 1): "/postgres: it only reads, as a standby does",
		strings.Replace(address, "/postgres?", "/nowhere?", 1):                                     `/nowhere: FATAL: database "nowhere" does not exist (SQLSTATE 3D000)`,
		strings.Replace(address, "postern@", "reader@", 1):                                         "/postgres: ERROR: permission denied for table postern_vault (SQLSTATE 42501)",
	} {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			if err := put(ctx, another(t, place), "b", "a"); !errors.Is(err, kv.ErrUnreachable) || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("%s: %v", want, err)
			}
		})
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
		must(t, do())
		if got := p.kinds(); !slices.Equal(got, want) {
			t.Errorf("%s sends %q, not %q", what, got, want)
		}
	}
	get := func(tx kv.Tx) error { return second(tx.Get("b", []byte("a"))) }
	put := func(n int) func(kv.Tx) error {
		return func(tx kv.Tx) (err error) {
			for i := range n {
				err = errors.Join(err, tx.Put("c", []byte{byte(i + 1)}, []byte("value")))
			}
			return err
		}
	}
	transact := func(write bool, do ...func(kv.Tx) error) func() error {
		return func() error {
			return second(e.Transact(t.Context(), write, func(tx kv.Tx) (err error) {
				for _, do := range do {
					err = errors.Join(err, do(tx))
				}
				return err
			}))
		}
	}
	scan := func(tx kv.Tx) error { return second(tx.Scan("b", kv.Range{Reverse: true}, 1)) }
	large := func(tx kv.Tx) error { return tx.Put("b", []byte("a"), make([]byte, largeValue)) }
	trips("a write of many records", []string{"begin to write", "commit"}, transact(true, put(50)))
	for _, write := range []bool{false, true} {
		want, do := []string{"begin to read", "get", "end"}, []func(kv.Tx) error{get, get}
		if write {
			want, do = []string{"begin to write", "get", "commit"}, append(do, put(1))
		}
		for range 2 {
			trips("what reads one record twice", want, transact(write, do...))
		}
	}
	for range 20 {
		trips("a read of what two read", []string{"begin to read", "end"}, transact(false, get))
		trips("a write of what two read", []string{"begin to write", "commit"}, transact(true, get, put(1)))
	}
	for range 2 {
		trips("a scan", []string{"begin to write", "scan", "commit"}, transact(true, get, scan, put(1)))
	}
	trips("a scan of what two read", []string{"begin to write", "commit"}, transact(true, get, scan, put(1)))
	trips("a scan of what was written meanwhile", []string{"begin to write", "insert", "large value", "scan", "commit"}, transact(true, large, scan, put(1)))
	trips("a value that has become large", []string{"begin to write", "commit"}, transact(true, get, put(1)))
	for range 3 {
		trips("a large value", []string{"begin to write", "get", "commit"}, transact(true, get, put(1)))
	}
	for range 16 {
		trips("what reads nothing", []string{"begin to read", "end"}, transact(false))
	}
	trips("what was not read for long", []string{"begin to read", "get", "end"}, transact(false, get))
	trips("the version", []string{"version"}, func() error { return second(e.Version(t.Context())) })
}

// What is asked for in the message with which a write begins is not older than its turn.
func TestNothingAheadIsOlderThanTheLock(t *testing.T) {
	t.Parallel()
	address := newPlace(t)
	p, through := newProxy(t, address)
	a, b := another(t, address), another(t, through)
	read := func(want ...string) error {
		return second(b.Transact(t.Context(), true, func(tx kv.Tx) error {
			value, err := tx.Get("b", []byte("held"))
			list, other := tx.Scan("b", kv.Range{}, 9)
			var keys []string
			for _, r := range list {
				keys = append(keys, string(r.Key))
			}
			if (value != nil) != slices.Contains(want, "held") || !slices.Equal(keys, want) {
				return fmt.Errorf("there are %q, and a value: %v", keys, value != nil)
			}
			return errors.Join(err, other)
		}))
	}
	for range 3 {
		must(t, read())
	}
	letGo := hold(t, a)
	p.reset()
	ended := make(chan error, 1)
	go func() { ended <- read("held") }()
	until(t, "it waits", func() bool { return p.count("FOR UPDATE") > 0 })
	must(t, errors.Join(letGo(), <-ended))
	if n := p.count("SELECT key, value"); n > 0 {
		t.Errorf("%d were asked for later", n)
	}
}

// What is asked ahead has bounds.
func TestAheadHasBounds(t *testing.T) {
	t.Parallel()
	e := another(t, newPlace(t))
	for n := range 16 {
		if err := second(e.Transact(t.Context(), true, func(tx kv.Tx) (err error) {
			for i := range 40 {
				key := fmt.Appendf(nil, "%d %d", i, n%4+i%8/7*n) // four kinds of transactions, with some records that no other reads
				err = errors.Join(err, second(tx.Get("b", key)), tx.Put("b", key, make([]byte, n/8*(i%16)<<10)))
			}
			return err
		})); err != nil {
			t.Fatal(err)
		}
		size, asked := 0, e.ahead(true)
		e.mu.Lock()
		for _, h := range e.habits[true] {
			if slices.Contains(asked, h.words) {
				size += h.size
			}
		}
		if len(asked) > maxAhead || size > aheadSize || len(e.habits[true]) > keepHabits || n > 4 && len(asked) == 0 {
			t.Errorf("%d conditions with %d bytes, of %d", len(asked), size, len(e.habits[true]))
		}
		e.mu.Unlock()
	}
}
