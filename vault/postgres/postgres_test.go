package postgres

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/vault/kv"
	"github.com/postern-mail/postern/vault/kv/kvtest"
)

var (
	server    *servertest.PostgresServer
	serverErr error
)

func TestMain(m *testing.M) {
	if job := os.Getenv(childJob); job != "" {
		child(job)
	}
	server, serverErr = servertest.StartPostgres()
	code := m.Run()
	if server != nil {
		_ = server.Stop()
	}
	os.Exit(code)
}

// newPlace returns the address of an empty vault.
func newPlace(t *testing.T) string {
	t.Helper()
	servertest.Check(t, serverErr)
	address := server.NewSchema(t)
	created, err := Create(t.Context(), address, func(kv.Tx) error { return nil })
	if err != nil || !created {
		t.Fatalf("created %v, %v", created, err)
	}
	return address
}

func another(t *testing.T, address string) *Engine {
	t.Helper()
	e, err := newEngine(address)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestEngine(t *testing.T) {
	kvtest.Run(t, func(t *testing.T) func() kv.Engine {
		address := newPlace(t)
		return func() kv.Engine { return another(t, address) }
	})
}

// What is missing is named for what it is, and a database that went back is refused by who has
// seen it later, and by nobody else.
func TestWhatIsNotThere(t *testing.T) {
	t.Parallel()
	address := newPlace(t)
	_, schema, _ := strings.Cut(address, "search_path=")
	none := strings.Replace(address, "/postgres?", "/nowhere?", 1)
	if _, err := Create(t.Context(), none, nil); !errors.Is(err, kv.ErrUnreachable) || !strings.Contains(err.Error(), `"nowhere"`) {
		t.Errorf("no such database: %v", err)
	}
	if _, err := Create(t.Context(), address+"x", nil); !errors.Is(err, kv.ErrUnreachable) {
		t.Errorf("no such schema: %v", err)
	}
	if _, err := another(t, address+"x").Version(t.Context()); !errors.Is(err, kv.ErrNone) {
		t.Errorf("no tables: %v", err)
	}
	e := another(t, address)
	if err := put(t.Context(), e, "b", "a"); err != nil {
		t.Fatal(err)
	}
	server.Exec(t, "ALTER TABLE "+schema+".postern_writes RENAME TO away")
	if err := put(t.Context(), e, "b", "a"); !errors.Is(err, kv.ErrDamaged) {
		t.Errorf("one table is not there: %v", err)
	}
	server.Exec(t, "ALTER TABLE "+schema+".away RENAME TO postern_writes")
	for _, back := range []string{"seq = seq - 1", "seq = seq + 1, mark = mark + 1", "id = id + 1, seq = seq + 9"} { // as late, and not the same
		server.Exec(t, "UPDATE "+schema+".postern_vault SET "+back)
		for range 2 {
			_, err := e.Version(t.Context())
			for _, err := range []error{err, put(t.Context(), e, "b", "b")} {
				if !errors.Is(err, kv.ErrWentBack) {
					t.Errorf("after %s: %v", back, err)
				}
			}
		}
		if _, err := another(t, address).Version(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

var pooled atomic.Int64 // databases

// behindPooler returns the address of an empty vault behind a pooler.
func behindPooler(t *testing.T, pooler *servertest.PgBouncerServer) string {
	t.Helper()
	database := fmt.Sprintf("pooled%d", pooled.Add(1))
	server.Exec(t, "CREATE DATABASE "+database)
	created, err := Create(t.Context(), pooler.URL(database), func(kv.Tx) error { return nil })
	if err != nil || !created {
		t.Fatalf("created %v, %v", created, err)
	}
	return pooler.URL(database)
}

// A pooler that gives each transaction another connection may stand between.
func TestPooler(t *testing.T) {
	t.Parallel()
	servertest.Check(t, serverErr)
	pooler := server.Pooler(t)
	kvtest.Run(t, func(t *testing.T) func() kv.Engine {
		address := behindPooler(t, pooler)
		return func() kv.Engine { return another(t, address) }
	})
	t.Run("writers", func(t *testing.T) {
		address, ledger := behindPooler(t, pooler), newLedger()
		var wg sync.WaitGroup
		for i := range 12 {
			e := another(t, address)
			wg.Go(func() {
				for n := range testmain.Rounds(5, 20) {
					ledger.write(t.Context(), e, fmt.Sprintf("%d-%d", i, n))
				}
			})
		}
		wg.Wait()
		if len(ledger.errors) > 0 {
			t.Error(ledger.errors)
		}
		ledger.judge(t, another(t, address), nil)
	})
}

// A record is found by the index, also where all of a statement is in its text.
func TestIndexIsUsed(t *testing.T) {
	t.Parallel()
	e := another(t, newPlace(t))
	if _, err := e.Transact(t.Context(), true, func(lent kv.Tx) error {
		t.Run("statements", func(t *testing.T) {
			tx := lent.(*tx)
			if _, err := tx.ask("SET LOCAL enable_seqscan = off", &arguments{}); err != nil { // a small table is read as a whole
				t.Fatal(err)
			}
			for _, bucket := range []string{"audit", "audit.chain", "state/outbox.entries"} {
				if err := tx.Delete(bucket, []byte("key")); err != nil {
					t.Fatal(err)
				}
				sql := tx.collected()
				results, err := tx.c.Exec(t.Context(), "EXPLAIN "+sql).ReadAll()
				if err != nil {
					t.Fatal(err)
				}
				for _, row := range results[0].Rows {
					if bytes.Contains(row[0], []byte("Filter")) {
						t.Errorf("%s: %s", sql, row[0])
					}
				}
			}
		})
		return errors.New("enough")
	}); err == nil || err.Error() != "enough" {
		t.Error(err)
	}
}
