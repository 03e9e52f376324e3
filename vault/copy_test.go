package vault

import (
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/vault/bolt"
	"github.com/postern-mail/postern/vault/kv"
	"github.com/postern-mail/postern/vault/vaulttest"
)

// TestCopyMovesEverything goes from a file to a file, and where there is PostgreSQL from a
// file to a database and back.
func TestCopyMovesEverything(t *testing.T) {
	t.Parallel()
	t.Run("file to file", func(t *testing.T) {
		copies(t, filepath.Join(t.TempDir(), "other.db"))
	})
	t.Run("file to database, back and there again", func(t *testing.T) {
		database := vaulttest.Server(t).NewSchema(t)
		copies(t, database, filepath.Join(t.TempDir(), "back.db"), database)
	})
}

// fileAt makes a vault in a file, also where the others are in a database.
func fileAt(t *testing.T) (path string, k Keys) {
	t.Helper()
	path, k = filepath.Join(t.TempDir(), "postern.db"), newKeys(t)
	must(t, second(Init(t.Context(), path, k)))
	return path, k
}

func copies(t *testing.T, places ...string) {
	from, k := fileAt(t)
	admin := mustOpen(t, from, k, nil)
	mustAdd(t, admin, "work")
	record(t, admin, 130)
	message := make([]byte, 3*outboxChunk+17)
	mustAddOutgoing(t, admin, outgoing(1), message)
	for _, to := range places {
		if _, err := Copy(t.Context(), from, to, Keys{Agent: k.Agent}); !errors.Is(err, ErrNoKey) && !errors.Is(err, ErrWrongKey) && !errors.Is(err, ErrBadKey) {
			t.Errorf("without the administrator's key: %v", err)
		}
		n, err := Copy(t.Context(), from, to, k)
		if err != nil || n < 130 {
			t.Fatalf("%d records, %v", n, err)
		}
		// An open vault and a new one say where it went.
		wantErr(t, admin.Record(t.Context(), gateway.AuditEntry{Command: "late"}), ErrMoved, "the source")
		wantErr(t, second(Open(t.Context(), from, k, nil)), ErrMoved, "the source opened again")
		wantErr(t, second(Copy(t.Context(), from, to, k)), ErrTaken, "a second copy")
		admin = mustOpen(t, to, k, nil)
		must(t, admin.Check(t.Context()))
		if r, err := admin.VerifyAudit(t.Context()); err != nil || !r.OK || r.Entries != 130 {
			t.Errorf("the log: %+v, %v", r, err)
		}
		if got, err := admin.OutgoingMessage(t.Context(), "id-0001"); err != nil || len(got) != len(message) {
			t.Errorf("the message has %d bytes, %v", len(got), err)
		}
		from = to
	}
	// A place with another vault stays as it is.
	taken, other := fileAt(t)
	wantErr(t, second(Copy(t.Context(), from, taken, k)), ErrTaken, "another vault's place")
	must(t, mustOpen(t, taken, other, nil).Check(t.Context()))
	must(t, admin.Check(t.Context()))
}

// TestCopyInterrupted: wherever a copy ends, one vault opens or none, and the same copy goes
// on from there.
func TestCopyInterrupted(t *testing.T) {
	t.Parallel()
	from, k := fileAt(t)
	to := filepath.Join(t.TempDir(), "other.db")
	id := mustOpen(t, from, k, nil).id
	source, err := engineAt(t.Context(), from)
	must(t, err)
	// Before the source was marked: its transaction fails after the destination was made.
	failure := errors.New("no")
	_, err = source.Transact(t.Context(), true, func(old kv.Tx) error {
		_, err := bolt.Create(t.Context(), to, func(tx kv.Tx) error {
			return errors.Join(tx.Put(bucketHeaders, []byte(keyFormat), []byte{0, 0, 0, movedFormat}), tx.Put(bucketHeaders, []byte(keyMoved), []byte("\x00\x00\x00\x01"+unfinished)),
				tx.Put(bucketHeaders, []byte("id"), id))
		})
		return errors.Join(err, failure)
	})
	wantErr(t, err, failure, "the first copy")
	wantErr(t, second(Open(t.Context(), to, k, nil)), ErrMoved, "the unfinished copy")
	must(t, mustOpen(t, from, k, nil).Check(t.Context()))
	// After the source was marked and before the destination opens.
	there, err := engineAt(t.Context(), to)
	must(t, err)
	if _, _, err := copyTo(t.Context(), mustOpen(t, from, k, nil), id, there, to); err != nil {
		t.Fatal(err)
	}
	wantErr(t, second(Open(t.Context(), from, k, nil)), ErrMoved, "the source")
	wantErr(t, second(Open(t.Context(), to, k, nil)), ErrMoved, "the unfinished copy")
	must(t, second(Copy(t.Context(), from, to, k)))
	must(t, mustOpen(t, to, k, nil).Check(t.Context()))
}

// A copy that is killed at any moment, both ways and while others write, leaves one vault that
// opens or none. The same copy goes on from there, and nothing that was kept is lost.
func TestCopyKilledAnywhere(t *testing.T) {
	t.Parallel()
	database := vaulttest.Server(t).NewSchema(t)
	from, k := fileAt(t)
	kept, killed := 200, 0
	record(t, mustOpen(t, from, k, nil), 200)
	took := 500 * time.Millisecond
	for round := range testmain.Rounds(6, 16) {
		to := database
		if from == database {
			to = filepath.Join(t.TempDir(), "back.db")
		}
		writer, moved := mustOpen(t, from, Keys{Agent: k.Agent}, nil), make(chan error, 1)
		go func() {
			for {
				if err := writer.Record(t.Context(), gateway.AuditEntry{Command: "meanwhile"}); err != nil {
					moved <- err
					return
				}
				kept++
			}
		}()
		copier := process("copier", from, to, k.Agent)
		copier.Env = append(copier.Env, AdminKeyVar+"="+k.Admin.Reveal())
		began := time.Now()
		must(t, copier.Start())
		kill := time.AfterFunc(took*time.Duration(round%8)/7, func() { _ = copier.Process.Kill() })
		if copier.Wait() != nil {
			killed++
		} else {
			took = time.Since(began)
		}
		kill.Stop()
		if second(Open(t.Context(), from, k, nil)) == nil && second(Open(t.Context(), to, k, nil)) == nil {
			t.Error("both open")
		}
		if _, err := Copy(t.Context(), from, to, k); err != nil && (!errors.Is(err, ErrTaken) || second(Open(t.Context(), to, k, nil)) != nil) {
			t.Fatal(err)
		}
		wantErr(t, <-moved, ErrMoved, "who writes")
		wantErr(t, second(Open(t.Context(), from, k, nil)), ErrMoved, "the source")
		v := mustOpen(t, to, k, nil)
		must(t, v.Check(t.Context()))
		if r, err := v.VerifyAudit(t.Context()); err != nil || !r.OK || r.Entries != kept {
			t.Fatalf("%d entries were kept: %+v, %v", kept, r, err)
		}
		from = to
	}
	t.Logf("%d were killed, %d entries were kept", killed, kept)
	if killed == 0 {
		t.Error("every copy had ended before it was killed")
	}
}

// Of several copies at once one is made, and its vault opens.
func TestCopiesAtOnce(t *testing.T) {
	t.Parallel()
	database := vaulttest.Server(t).NewSchema(t)
	from, k := fileAt(t)
	for range testmain.Rounds(2, 6) {
		to := database
		if from == database {
			to = filepath.Join(t.TempDir(), "back.db")
		}
		var wg sync.WaitGroup
		var made atomic.Int64
		for range 4 {
			wg.Go(func() {
				if _, err := Copy(t.Context(), from, to, k); err == nil {
					made.Add(1)
				}
			})
		}
		wg.Wait()
		if made.Load() != 1 {
			t.Errorf("%d copies were made", made.Load())
		}
		wantErr(t, second(Open(t.Context(), from, k, nil)), ErrMoved, "the source")
		must(t, mustOpen(t, to, k, nil).Check(t.Context()))
		from = to
	}
}
