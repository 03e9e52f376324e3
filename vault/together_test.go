package vault

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/vault/kv"
	"github.com/postern-mail/postern/vault/vaulttest"
)

// TestEntriesOfCallsAtOnceShareATransaction keeps others from writing while many entries wait.
func TestEntriesOfCallsAtOnceShareATransaction(t *testing.T) {
	t.Parallel()
	path, k := newPlace(t)
	v, other := mustOpen(t, path, k, nil), mustOpen(t, path, k, nil)
	const calls = 50
	before := v.Transactions()
	var wg sync.WaitGroup
	waiting := func() int {
		v.together.mu.Lock()
		defer v.together.mu.Unlock()
		return len(v.together.waiting)
	}
	must(t, other.Update(t.Context(), func(kv.Tx) error {
		for i := range calls {
			wg.Go(func() {
				if err := v.Record(context.Background(), gateway.AuditEntry{Command: fmt.Sprint(i)}); err != nil {
					t.Error(err)
				}
			})
			// The first entry's transaction waits for its turn; the others share the next one.
			for i == 0 && v.Transactions() == before || waiting() < i {
				time.Sleep(time.Millisecond)
			}
		}
		return nil
	}))
	wg.Wait()
	if n := v.Transactions() - before; n != 2 {
		t.Errorf("%d transactions for %d entries", n, calls)
	}
	if r := verify(t, v); !r.OK || r.Entries != calls || len(commands(t, v)) != calls {
		t.Errorf("%+v", r)
	}
}

// TestACallWaitsNoLongerThanItsContext makes the write take longer than the context. Where the
// caller's time is over, a database is to blame.
func TestACallWaitsNoLongerThanItsContext(t *testing.T) {
	t.Parallel()
	v, _ := newVault(t, nil)
	for _, want := range []error{context.Canceled, context.DeadlineExceeded} {
		slow := make(chan struct{})
		ctx, cancel := context.WithTimeout(t.Context(), map[error]time.Duration{context.Canceled: time.Hour, context.DeadlineExceeded: time.Second}[want])
		err := v.writeTogether(ctx, func(*transaction, *job) error {
			if want == context.Canceled {
				cancel()
			}
			<-slow
			return nil
		})
		cancel()
		if late := want == context.DeadlineExceeded; !errors.Is(err, want) || errors.Is(err, ErrUnreachable) != (late && vaulttest.InDatabase()) {
			t.Errorf("it ends with %v, want %v", err, want)
		}
		close(slow)
		must(t, v.Record(t.Context(), gateway.AuditEntry{Command: "later"}))
	}
}

// fakeAwayEngine is an engine whose database is away.
type fakeAwayEngine struct {
	kv.Engine
	asked int
}

func (e *fakeAwayEngine) Version(context.Context) (kv.Version, error) {
	e.asked++
	return kv.Version{}, &Away{}
}

func (e *fakeAwayEngine) Transact(context.Context, bool, func(kv.Tx) error) (kv.Version, error) {
	return e.Version(context.Background())
}

// TestADatabaseThatIsAwayIsAskedOnce: each question may take as long as it is waited for.
func TestADatabaseThatIsAwayIsAskedOnce(t *testing.T) {
	t.Parallel()
	v, _ := newVault(t, nil)
	must(t, second(v.Config(t.Context())))
	e := &fakeAwayEngine{Engine: v.engine}
	v.engine = e
	if _, err := v.Config(t.Context()); !errors.Is(err, ErrUnreachable) || e.asked != 1 {
		t.Errorf("asked %d times: %v", e.asked, err)
	}
}

// TestCallersWaitTogetherForADatabaseThatIsAway: not one after the other, as long as each may.
func TestCallersWaitTogetherForADatabaseThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		v := Lazy(func(context.Context) (*Vault, error) {
			asked++
			time.Sleep(5 * time.Second)
			return nil, &Away{}
		})
		start := time.Now()
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if err := v.Ready(t.Context()); !errors.Is(err, ErrUnreachable) || time.Since(start) != 5*time.Second {
					t.Errorf("after %s: %v", time.Since(start), err)
				}
			})
		}
		wg.Wait()
		if err := v.Ready(t.Context()); !errors.Is(err, ErrUnreachable) || asked != 2 {
			t.Errorf("asked %d times: %v", asked, err)
		}
	})
}

// TestAFailedWriteIsReportedToEveryCaller lets one of the writes fail that share a
// transaction.
func TestAFailedWriteIsReportedToEveryCaller(t *testing.T) {
	t.Parallel()
	path, k := newPlace(t)
	v := mustOpen(t, path, k, nil)
	failure := errors.New("no")
	for name, fail := range map[string]func(t *transaction) error{
		"error": func(*transaction) error { return failure },
		"panic": func(*transaction) error { panic("no") },
	} {
		jobs := []*job{}
		for i := range 3 {
			jobs = append(jobs, &job{ctx: t.Context(), done: make(chan error, 1), do: func(tx *transaction) error {
				return tx.put(bucketLimits, uint64Bytes(uint64(i)), nil)
			}})
		}
		jobs[1].do = fail
		told := 0
		jobs[0].after = []func(error){func(err error) {
			if err != nil {
				told++
			}
		}}
		v.together.waiting = jobs
		v.runJobs()
		for i, j := range jobs {
			if err := <-j.done; err == nil {
				t.Errorf("%s: call %d is told that it was kept", name, i)
			}
		}
		must(t, v.view(t.Context(), func(tx *transaction) error {
			if b, err := tx.get(bucketLimits, uint64Bytes(0)); b != nil || err != nil || told != 1 {
				t.Errorf("%s: something was kept, or %d told", name, told)
			}
			return nil
		}))
	}
	vaulttest.Remove(t, path)
	wantErr(t, v.Record(t.Context(), gateway.AuditEntry{}), ErrNoVault, "without a vault")
}

// TestThePolicyIsReadAgainOnlyAfterAWriteOfAnotherProcess counts transactions.
func TestThePolicyIsReadAgainOnlyAfterAWriteOfAnotherProcess(t *testing.T) {
	t.Parallel()
	admin, v := newVault(t, nil)
	mustAdd(t, admin, "work")
	costsOf := func(v *Vault, what string, want int64, use func()) {
		t.Helper()
		before := v.Transactions()
		use()
		if n := v.Transactions() - before; n != want {
			t.Errorf("%s: %d transactions, want %d", what, n, want)
		}
	}
	costs := func(what string, want int64, use func()) { t.Helper(); costsOf(v, what, want, use) }
	read := func() {
		for range 3 {
			must(t, second(v.Config(t.Context())))
			must(t, second(v.Account(t.Context(), "work")))
		}
	}
	costs("the first time", 1, read)
	costs("again", 0, read)
	costs("an entry", 1, func() { must(t, v.Record(t.Context(), gateway.AuditEntry{})) })
	costs("after an own write", 0, read)
	costsOf(admin, "an administrator's, which is signed", 1, func() { must(t, admin.Record(t.Context(), gateway.AuditEntry{})) })
	costs("after a write of another process", 1, read)
	must(t, admin.SetSetting(t.Context(), "deny", "mail send"))
	costs("after a change", 1, func() {
		if c, err := v.Config(t.Context()); err != nil || len(c.Deny) != 1 {
			t.Errorf("%+v, %v", c, err)
		}
	})
}
