package postgres

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/vault/kv"
)

// childJob makes the test's program a process that does something with an engine until it is
// killed; childAddress is where.
const childJob, childAddress = "POSTERN_TEST_JOB", "POSTERN_TEST_ADDRESS"

// child does what another process is to do, and says what on its standard output.
func child(job string) {
	e, err := newEngine(os.Getenv(childAddress))
	if err != nil {
		panic(err)
	}
	switch name, _, _ := strings.Cut(job, " "); name {
	case "write":
		for n := 0; ; n++ {
			record := fmt.Sprintf("%d-%d", os.Getpid(), n)
			fmt.Println("begin", record)
			_, err := e.Transact(context.Background(), true, func(tx kv.Tx) error { return increment(tx, record) })
			switch {
			case errors.Is(err, errUnknown):
				fmt.Println("unknown", record)
			case err != nil:
				fmt.Println("failed", record, strings.ReplaceAll(err.Error(), "\n", " "))
			default:
				fmt.Println("kept", record)
			}
		}
	case "lock":
		e.lease = 4 * time.Second // long enough to be renewed in time on a busy machine
		if _, _, err := e.Lock(context.Background(), "one"); err != nil {
			panic(err)
		}
		fmt.Println("held")
		_, _ = io.Copy(io.Discard, os.Stdin) // until the test ends
	}
}

// start begins a process of the test's program.
func start(t *testing.T, job, address string) (cmd *exec.Cmd, lines *bufio.Scanner) {
	t.Helper()
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childJob+"="+job, childAddress+"="+address)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	_, errIn := cmd.StdinPipe()
	if err = errors.Join(err, errIn); err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewScanner(out)
}

// killed lets a process write until it is killed at random, and returns the write that it had
// begun then.
func (l *ledger) killed(t *testing.T, address string) (open string) {
	cmd, lines := start(t, "write", address)
	left := 1 + rand.IntN(12)
	for lines.Scan() {
		what, rest, _ := strings.Cut(lines.Text(), " ")
		record, why, _ := strings.Cut(rest, " ")
		switch what {
		case "begin":
			open = record
			continue
		case "kept":
			l.note(record, nil, false)
		case "unknown":
			l.note(record, errUnknown, true)
		case "failed":
			l.note(record, errors.New(why), false)
		default:
			t.Errorf("the process says %q", lines.Text())
		}
		open = ""
		if left--; left == 0 {
			time.AfterFunc(time.Duration(rand.IntN(int(5*time.Millisecond))), func() { _ = cmd.Process.Kill() })
		}
	}
	_ = cmd.Wait()
	return open
}

// A server and processes that are killed at random lose and double nothing.
func TestKillsLoseAndDoubleNothing(t *testing.T) {
	t.Parallel()
	s := servertest.Postgres(t)
	address := s.NewSchema(t)
	if _, err := Create(t.Context(), address, func(kv.Tx) error { return nil }); err != nil {
		t.Fatal(err)
	}
	ledger, ctx, stop := newLedger(), t.Context(), make(chan struct{})
	stopped := func() bool {
		select {
		case <-stop:
			return true
		default:
			return false
		}
	}
	var wg sync.WaitGroup
	for i := range 2 {
		e := another(t, address)
		wg.Go(func() {
			for n := 0; !stopped(); n++ {
				ledger.write(ctx, e, fmt.Sprintf("here%d-%d", i, n))
			}
		})
	}
	var mu sync.Mutex
	open, processes := map[string]bool{}, 0
	for range 2 {
		wg.Go(func() {
			for !stopped() {
				record := ledger.killed(t, address)
				mu.Lock()
				open[record], processes = true, processes+1
				mu.Unlock()
			}
		})
	}
	kills := testmain.Rounds(5, 30)
	for range kills {
		<-ledger.progress
		time.Sleep(time.Duration(rand.IntN(int(100 * time.Millisecond)))) // a random moment
		if err := errors.Join(s.Kill(), s.Start()); err != nil {
			t.Fatal(err)
		}
		select { // what was kept before
		case <-ledger.progress:
		default:
		}
	}
	<-ledger.progress
	close(stop)
	wg.Wait()
	t.Logf("%d kills of the server, %d of processes", kills, processes)
	ledger.judge(t, another(t, address), open)
}

// So does a standby that takes over from a server that is killed.
func TestFailoverLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	s := servertest.Postgres(t)
	address := s.NewSchema(t)
	if _, err := Create(t.Context(), address, func(kv.Tx) error { return nil }); err != nil {
		t.Fatal(err)
	}
	_, schema, _ := strings.Cut(address, "search_path=")
	ledger := newLedger()
	for round := range testmain.Rounds(2, 5) {
		standby := s.Standby(t)
		both := strings.Replace(address, s.Address(), s.Address()+","+standby.Address(), 1)
		done := make(chan struct{})
		var wg sync.WaitGroup
		for i := range 4 {
			e := another(t, both)
			wg.Go(func() {
				for n := 0; ; n++ {
					select {
					case <-done:
						return
					default:
						ledger.write(t.Context(), e, fmt.Sprintf("%d-%d-%d", round, i, n))
					}
				}
			})
		}
		<-ledger.progress
		time.Sleep(time.Duration(rand.IntN(int(100 * time.Millisecond)))) // a random moment
		if err := s.Kill(); err != nil {
			t.Fatal(err)
		}
		standby.Promote(t)
		select {
		case <-ledger.progress:
		default:
		}
		<-ledger.progress
		close(done)
		wg.Wait()
		s, address = standby, standby.URL(schema)
		ledger.judge(t, another(t, address), nil)
	}
}

// Where a standby does not answer, a write that only one server has does not count as kept.
func TestWhatAStandbyDoesNotHaveIsNotKept(t *testing.T) {
	t.Parallel()
	s := servertest.Postgres(t)
	address := s.NewSchema(t)
	if _, err := Create(t.Context(), address, func(kv.Tx) error { return nil }); err != nil {
		t.Fatal(err)
	}
	standby := s.Standby(t)
	e, ledger := another(t, address), newLedger()
	for _, end := range []struct{ how, kept string }{{"pg_cancel_backend", "not known"}, {"pg_terminate_backend", "nil"}} {
		if err := standby.Freeze(true); err != nil {
			t.Fatal(err)
		}
		var err error
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, err = e.Transact(t.Context(), true, func(tx kv.Tx) error { return increment(tx, end.how) })
		}()
		// The server gives up waiting for the standby.
		for len(s.Exec(t, "SELECT pid FROM pg_stat_activity WHERE CASE WHEN wait_event = 'SyncRep' THEN "+end.how+"(pid) END")) == 0 {
		}
		if end.kept == "nil" {
			// The write is there; that it was kept is said when the standby has it.
			for len(s.Exec(t, "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'")) == 0 {
			}
			select {
			case <-done:
				t.Errorf("after %s the end does not wait for the standby: %v", end.how, err)
			default:
			}
		}
		if end.kept != "nil" {
			<-done
			if away := (*kv.Away)(nil); !errors.Is(err, errUnknown) || !errors.Is(err, kv.ErrUnreachable) || !errors.As(err, &away) || !away.Unknown {
				t.Errorf("after %s: %v", end.how, err)
			}
		}
		if err := standby.Freeze(false); err != nil {
			t.Fatal(err)
		}
		if <-done; end.kept == "nil" && err != nil {
			t.Errorf("after %s: %v", end.how, err)
		}
	}
	ledger.judge(t, e, map[string]bool{"pg_cancel_backend": true, "pg_terminate_backend": true})
}

// A server that does not answer keeps nobody longer than the context.
func TestAServerThatStandsStill(t *testing.T) {
	t.Parallel()
	s := servertest.Postgres(t)
	address := s.NewSchema(t)
	if _, err := Create(t.Context(), address, func(kv.Tx) error { return nil }); err != nil {
		t.Fatal(err)
	}
	used, unused := another(t, address), another(t, address)
	if err := errors.Join(put(t.Context(), used, "b", "a"), s.Freeze(true)); err != nil {
		t.Fatal(err)
	}
	for _, e := range []*Engine{used, unused} {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if err := put(ctx, e, "b", "b"); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if _, err := e.Version(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	}
	if err := errors.Join(s.Freeze(false), put(t.Context(), used, "b", "c"), put(t.Context(), unused, "b", "d")); err != nil {
		t.Error(err)
	}
}
