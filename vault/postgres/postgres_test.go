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
	"time"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/vault/kv"
	"github.com/postern-mail/postern/vault/kv/kvtest"
	"github.com/postern-mail/postern/vault/vaulttest"
)

var (
	server    *servertest.PostgresServer
	serverErr error
)

func TestMain(m *testing.M) {
	if job := os.Getenv(childJob); job != "" {
		child(job)
	}
	os.Exit(servertest.Main(func() int {
		if server, serverErr = servertest.StartPostgres(); server != nil {
			defer func() { _ = server.Stop() }()
		}
		return m.Run()
	}))
}

var must = vaulttest.Must

func second[T any](_ T, err error) error { return err }

func third[A, B any](_ A, _ B, err error) error { return err }

// newPlace returns the address of an empty vault.
func newPlace(t *testing.T) string {
	t.Helper()
	servertest.Check(t, serverErr)
	return created(t, server.NewSchema(t))
}

// ownServer starts a server for the test alone, with an empty vault at an address.
func ownServer(t *testing.T) (s *servertest.PostgresServer, address string) {
	t.Helper()
	s = servertest.Postgres(t)
	return s, created(t, s.NewSchema(t))
}

func created(t *testing.T, address string) string {
	t.Helper()
	if made, err := Create(t.Context(), address, func(kv.Tx) error { return nil }); err != nil || !made {
		t.Fatalf("created %v, %v", made, err)
	}
	return address
}

func another(t *testing.T, address string) *Engine {
	t.Helper()
	e, err := newEngine(address)
	must(t, err)
	e.least = 10 * time.Millisecond
	return e
}

func TestEngine(t *testing.T) {
	t.Parallel()
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
	vaulttest.WantErr(t, second(Create(t.Context(), address+"x", nil)), kv.ErrUnreachable, "no such schema")
	vaulttest.WantErr(t, second(another(t, address+"x").Version(t.Context())), kv.ErrNone, "no tables")
	e := another(t, address)
	must(t, put(t.Context(), e, "b", "a"))
	server.Exec(t, "ALTER TABLE "+schema+".postern_writes RENAME TO away")
	vaulttest.WantErr(t, put(t.Context(), e, "b", "a"), kv.ErrDamaged, "one table is not there")
	server.Exec(t, "ALTER TABLE "+schema+".away RENAME TO postern_writes")
	for _, back := range []string{"seq = seq - 1", "seq = seq + 1, mark = mark + 1", "id = id + 1, seq = seq + 9"} { // as late, and not the same
		server.Exec(t, "UPDATE "+schema+".postern_vault SET "+back)
		for range 2 {
			_, err := e.Version(t.Context())
			for _, err := range []error{err, put(t.Context(), e, "b", "b")} {
				vaulttest.WantErr(t, err, kv.ErrWentBack, "after %s", back)
			}
		}
		must(t, second(another(t, address).Version(t.Context())))
	}
}

var pooled atomic.Int64 // databases

// behindPooler returns the address of an empty vault behind a pooler.
func behindPooler(t *testing.T, pooler *servertest.PgBouncerServer) string {
	t.Helper()
	database := fmt.Sprintf("pooled%d", pooled.Add(1))
	server.Exec(t, "CREATE DATABASE "+database)
	return created(t, pooler.URL(database))
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
		t.Parallel()
		address, writes := behindPooler(t, pooler), newWrites()
		var wg sync.WaitGroup
		for i := range 12 {
			e := another(t, address)
			wg.Go(func() {
				for n := range testmain.Rounds(5, 20) {
					writes.write(t.Context(), e, fmt.Sprintf("%d-%d", i, n))
				}
			})
		}
		wg.Wait()
		if len(writes.errors) > 0 {
			t.Error(writes.errors)
		}
		writes.judge(t, another(t, address), nil)
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
				must(t, tx.Delete(bucket, []byte("key")))
				sql := tx.collected()
				results, err := tx.c.Exec(t.Context(), "EXPLAIN "+sql).ReadAll()
				must(t, err)
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
