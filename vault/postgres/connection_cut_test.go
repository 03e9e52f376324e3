package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/vault/kv"
)

// writes are what writers know of their writes: each write is a record and one more on a
// counter.
type writes struct {
	mu       sync.Mutex
	kept     map[string]bool  // Transact returned nil
	errors   map[string]error // what it returned
	unknown  int              // errors that say that the outcome is not known
	progress chan struct{}    // has a value after a write that was kept
}

func newWrites() *writes {
	return &writes{kept: map[string]bool{}, errors: map[string]error{}, progress: make(chan struct{}, 1)}
}

func increment(tx kv.Tx, record string) error {
	n, err := counter(tx)
	_, other := tx.Get("writes", []byte(record)) // which nobody asked for before
	return errors.Join(err, other, tx.Put("writes", []byte(record), []byte("value of "+record)), tx.Put("count", []byte("n"), strconv.AppendInt(nil, n+1, 10)))
}

func counter(tx kv.Tx) (int64, error) {
	b, err := tx.Get("count", []byte("n"))
	if err != nil || b == nil {
		return 0, err
	}
	return strconv.ParseInt(string(b), 10, 64)
}

// goOn waits until a write is kept that ends later.
func (w *writes) goOn() {
	select {
	case <-w.progress:
	default:
	}
	<-w.progress
}

// write makes one write and notes what became of it.
func (w *writes) write(ctx context.Context, e kv.Engine, record string) {
	_, err := e.Transact(ctx, true, func(tx kv.Tx) error { return increment(tx, record) })
	w.note(record, err, errors.Is(err, errUnknown))
}

func (w *writes) note(record string, err error, unknown bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err != nil && unknown:
		w.unknown++
		fallthrough
	case err != nil:
		w.errors[record] = err
	default:
		w.kept[record] = true
		select {
		case w.progress <- struct{}{}:
		default:
		}
	}
}

// judge compares what is there with what the writers were told. A record that nobody was
// told of must be among open.
func (w *writes) judge(t *testing.T, e *Engine, open map[string]bool) {
	t.Helper()
	found := map[string]bool{}
	var count int64
	must(t, second(e.Transact(t.Context(), false, func(tx kv.Tx) (err error) {
		for r, err := range kv.Each(tx, "writes", kv.Range{}) {
			if err != nil {
				return err
			}
			if want := "value of " + string(r.Key); string(r.Value) != want {
				t.Errorf("%s is %q", r.Key, r.Value)
			}
			found[string(r.Key)] = true
		}
		count, err = counter(tx)
		return err
	})))
	w.mu.Lock()
	defer w.mu.Unlock()
	lost, odd := 0, 0
	for record := range w.kept {
		if !found[record] {
			lost++
		}
	}
	for record := range found {
		if !w.kept[record] && !open[record] && !errors.Is(w.errors[record], errUnknown) {
			odd++
			t.Logf("%s is there: %v", record, w.errors[record])
		}
	}
	if lost > 0 || odd > 0 || count != int64(len(found)) || w.unknown > 0 {
		t.Errorf("%d writes that were kept are lost, %d that failed are there, the counter is %d for %d records, of %d the outcome was not known", lost, odd, count, len(found), w.unknown)
	}
	must(t, e.Check(t.Context()))
	t.Logf("%d writes were kept, %d failed", len(w.kept), len(w.errors))
}

// kind names what a request does, so that each is cut in each way.
func (r request) kind() string {
	for _, k := range []struct{ has, name string }{
		{"start", "start"}, {"transaction_read_only", "connect"}, {"FOR UPDATE", "begin to write"}, {"BEGIN", "begin to read"},
		{"COMMIT", "commit"}, {"postern_writes", "resolve"}, {"ORDER BY", "scan"}, {"SELECT key, value", "get"}, {"INSERT INTO postern_records", "insert"}, {"ROLLBACK", "end"}, {"FROM postern_vault", "version"}, {"INTO postern_leases", "lease"},
	} {
		if r.has(k.has) {
			return k.name
		}
	}
	return r.sql
}

// Wherever the connection breaks, nothing is lost or doubled, and who wrote is told what
// became of it.
func TestCutsLoseAndDoubleNothing(t *testing.T) {
	t.Parallel()
	address := newPlace(t)
	p, through := newProxy(t, address)
	direct, writes := another(t, address), newWrites()

	most := testmain.Rounds(120, 600)
	var missing []string // each kind with each cut
	for _, kind := range []string{"start", "connect", "begin to write", "get", "commit", "resolve", "begin to read", "scan", "end", "version"} {
		for _, c := range cuts {
			missing = append(missing, kind+" "+string(c))
		}
	}
	done, total, wait := map[string]int{}, 0, 0
	ended, finished := false, make(chan struct{})
	p.plan = func(r request) cut {
		c := cuts[rand.IntN(len(cuts))]
		i := slices.IndexFunc(missing, func(m string) bool { return strings.HasPrefix(m, r.kind()+" ") })
		wait--
		switch {
		case ended, wait > 0 && (i < 0 || r.kind() != "resolve"), total >= most/2 && i < 0 && r.kind() != "commit":
			return ""
		case i >= 0:
			c = cut(strings.TrimPrefix(missing[i], r.kind()+" "))
			missing = slices.Delete(missing, i, i+1)
		}
		done[r.kind()]++
		total, wait = total+1, 1+rand.IntN(6)
		if ended = total >= most && len(missing) == 0 || total >= 2*most; ended {
			close(finished)
		}
		return c
	}

	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for i := range 4 {
		e := another(t, through)
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				writes.write(t.Context(), e, fmt.Sprintf("%d-%d", i, n))
			}
		})
	}
	reader := another(t, through)
	wg.Go(func() {
		for ctx.Err() == nil {
			_, _ = reader.Version(t.Context())
			var n int64
			list := 0
			if _, err := reader.Transact(t.Context(), false, func(tx kv.Tx) (err error) {
				for _, err := range kv.Each(tx, "writes", kv.Range{}) {
					if err != nil {
						return err
					}
					list++
				}
				n, err = counter(tx)
				return err
			}); err == nil && n != int64(list) {
				t.Errorf("a moment has %d records and counts %d", list, n)
			}
		}
	})
	<-finished
	stop()
	wg.Wait()
	t.Logf("%d cuts: %v", total, done)
	if len(missing) > 0 {
		t.Errorf("never cut: %q", missing)
	}
	writes.judge(t, direct, nil)
}
