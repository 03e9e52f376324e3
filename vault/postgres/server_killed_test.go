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
	"github.com/postern-mail/postern/vault/kv"
	"github.com/postern-mail/postern/vault/vaulttest"
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
		e.lease = 2 * time.Second
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
	cmd = vaulttest.Process(childJob+"="+job, childAddress+"="+address)
	cmd.Stderr = os.Stderr
	out, errOut := cmd.StdoutPipe()
	_, errIn := cmd.StdinPipe()
	must(t, errors.Join(errOut, errIn, cmd.Start()))
	return cmd, bufio.NewScanner(out)
}

// killed lets a process write until it is killed at random, and returns the write that it had
// begun then.
func (w *writes) killed(t *testing.T, address string) (open string) {
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
			w.note(record, nil, false)
		case "unknown":
			w.note(record, errUnknown, true)
		case "failed":
			w.note(record, errors.New(why), false)
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
	s, address := ownServer(t)
	writes := newWrites()
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for i := range 2 {
		e := another(t, address)
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				writes.write(t.Context(), e, fmt.Sprintf("here%d-%d", i, n))
			}
		})
	}
	var mu sync.Mutex
	open, processes := map[string]bool{}, 0
	for range 2 {
		wg.Go(func() {
			for ctx.Err() == nil {
				record := writes.killed(t, address)
				mu.Lock()
				open[record], processes = true, processes+1
				mu.Unlock()
			}
		})
	}
	kills := testmain.Rounds(5, 30)
	for range kills {
		writes.goOn()
		time.Sleep(time.Duration(rand.IntN(int(100 * time.Millisecond)))) // a random moment
		must(t, errors.Join(s.Kill(), s.Start()))
	}
	writes.goOn()
	stop()
	wg.Wait()
	t.Logf("%d kills of the server, %d of processes", kills, processes)
	writes.judge(t, another(t, address), open)
}

// So does a standby that takes over from a server that is killed.
func TestFailoverLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	s, address := ownServer(t)
	_, schema, _ := strings.Cut(address, "search_path=")
	writes := newWrites()
	for round := range testmain.Rounds(2, 5) {
		standby := s.Standby(t)
		both := strings.Replace(address, s.Address(), s.Address()+","+standby.Address(), 1)
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for i := range 4 {
			e := another(t, both)
			wg.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					writes.write(t.Context(), e, fmt.Sprintf("%d-%d-%d", round, i, n))
				}
			})
		}
		writes.goOn()
		time.Sleep(time.Duration(rand.IntN(int(100 * time.Millisecond)))) // a random moment
		must(t, s.Kill())
		standby.Promote(t)
		writes.goOn()
		stop()
		wg.Wait()
		s, address = standby, standby.URL(schema)
		writes.judge(t, another(t, address), nil)
	}
}

// A server that does not answer keeps nobody longer than the context. Where a standby does not, a
// write that only one server has does not count as kept.
func TestServersThatStandStill(t *testing.T) {
	t.Parallel()
	s, address := ownServer(t)
	used, unused := another(t, address), another(t, address)
	must(t, errors.Join(put(t.Context(), used, "b", "a"), s.Freeze(true)))
	for _, e := range []*Engine{used, unused} {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		vaulttest.WantErr(t, put(ctx, e, "b", "b"), context.DeadlineExceeded, "a write")
		vaulttest.WantErr(t, second(e.Version(ctx)), context.DeadlineExceeded, "the version")
	}
	must(t, errors.Join(s.Freeze(false), put(t.Context(), used, "b", "c"), put(t.Context(), unused, "b", "d")))
	standby := s.Standby(t)
	e, writes := another(t, address), newWrites()
	for _, how := range []string{"pg_cancel_backend", "pg_terminate_backend"} {
		must(t, standby.Freeze(true))
		var err error
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, err = e.Transact(t.Context(), true, func(tx kv.Tx) error { return increment(tx, how) })
		}()
		// The server gives up waiting for the standby.
		for len(s.Exec(t, "SELECT pid FROM pg_stat_activity WHERE CASE WHEN wait_event = 'SyncRep' THEN "+how+"(pid) END")) == 0 {
		}
		if how == "pg_terminate_backend" {
			// The write is there; that it was kept is said when the standby has it.
			for len(s.Exec(t, "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'")) == 0 {
			}
			select {
			case <-done:
				t.Errorf("the end does not wait for the standby: %v", err)
			default:
			}
			must(t, standby.Freeze(false))
			<-done
			must(t, err)
			continue
		}
		<-done
		if away := (*kv.Away)(nil); !errors.Is(err, errUnknown) || !errors.Is(err, kv.ErrUnreachable) || !errors.As(err, &away) || !away.Unknown {
			t.Errorf("where the server gave up: %v", err)
		}
		must(t, standby.Freeze(false))
	}
	writes.judge(t, e, map[string]bool{"pg_cancel_backend": true, "pg_terminate_backend": true})
}
