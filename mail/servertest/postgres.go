package servertest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// PostgresServer is a running PostgreSQL with a database of its own, on 127.0.0.1. Anybody on
// this machine logs in as "postern", who may do everything. It is safe for concurrent use.
type PostgresServer struct {
	Port uint16

	*daemon
	programs string // the directory of its programs
	as       owner
	schemas  *atomic.Int64
}

// Postgres starts a server that lives as long as the test.
func Postgres(t testing.TB) *PostgresServer {
	t.Helper()
	s, err := StartPostgres()
	return keep(t, "PostgreSQL", s, err)
}

// HasPostgres returns the error that StartPostgres would return without starting anything.
func HasPostgres() error {
	if err := short(); err != nil {
		return err
	}
	_, err := postgresPrograms()
	return err
}

// StartPostgres starts a server that lives until Stop. The error matches ErrNotInstalled
// where there is no PostgreSQL.
func StartPostgres() (*PostgresServer, error) {
	if err := short(); err != nil {
		return nil, err
	}
	return untilTaken(func() (*PostgresServer, error) {
		return newPostgres(func(s *PostgresServer) error {
			return s.run("initdb", "--no-sync", "--auth=trust", "--username=postern", "--encoding=UTF8", "--locale=C", "--pgdata="+s.data())
		})
	})
}

// Standby starts another server that follows this one. While it runs, a COMMIT of this one
// waits until it has it too.
func (s *PostgresServer) Standby(t testing.TB) *PostgresServer {
	t.Helper()
	follower, err := untilTaken(func() (*PostgresServer, error) {
		return newPostgres(func(f *PostgresServer) error {
			return f.run("pg_basebackup", "--no-sync", "--checkpoint=fast", "--write-recovery-conf", "--wal-method=stream",
				"--dbname=host=127.0.0.1 port="+strconv.Itoa(int(s.Port))+" user=postern application_name=standby", "--pgdata="+f.data())
		})
	})
	keep(t, "PostgreSQL", follower, err)
	follower.schemas = s.schemas
	s.Exec(t, "ALTER SYSTEM SET synchronous_standby_names = 'standby'")
	s.Exec(t, "SELECT pg_reload_conf()")
	if err := follower.await(func() error {
		if len(s.Exec(t, "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'")) == 0 {
			return errors.New("it does not follow")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return follower
}

// Promote makes a standby a server that writes.
func (s *PostgresServer) Promote(t testing.TB) {
	t.Helper()
	s.Exec(t, "SELECT pg_promote(true, 30)")
	s.Exec(t, "ALTER SYSTEM SET synchronous_standby_names = ''")
	s.Exec(t, "SELECT pg_reload_conf()")
}

// postgresPrograms returns the directory of the newest one's programs.
func postgresPrograms() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if err != nil || len(found) == 0 {
		return "", fmt.Errorf("postgresql: %w", ErrNotInstalled)
	}
	return filepath.Dir(found[len(found)-1]), nil
}

func newPostgres(fill func(*PostgresServer) error) (*PostgresServer, error) {
	programs, err := postgresPrograms()
	if err != nil {
		return nil, err
	}
	d, err := newDaemon("postgres", "log")
	if err != nil {
		return nil, err
	}
	s := &PostgresServer{daemon: d, programs: programs, schemas: &atomic.Int64{}}
	if s.as, err = mailOwner(); err == nil {
		err = errors.Join(os.Chmod(d.dir, 0o755), os.Mkdir(s.data(), 0o700), s.as.give(s.data()), s.as.give(d.dir))
	}
	ports, errPorts := freePorts("127.0.0.1", 1)
	if err = errors.Join(err, errPorts); err == nil {
		s.Port = ports[0]
		err = fill(s)
	}
	if err == nil {
		err = s.Start()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start postgresql: %w", err), d.stop())
	}
	return s, nil
}

func (s *PostgresServer) data() string { return filepath.Join(s.dir, "data") }

func (s *PostgresServer) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.programs, name), args...)
	cmd.Dir = s.dir
	cmd.Env = []string{"PATH=/usr/bin:/bin", "LANG=C", "HOME=" + s.dir}
	runAs(cmd, s.as)
	return cmd
}

func (s *PostgresServer) run(name string, args ...string) error {
	if out, err := s.command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return nil
}

// Start starts the server again, after Kill.
func (s *PostgresServer) Start() error {
	if s.cmd != nil {
		next := &daemon{name: s.name, dir: s.dir, log: s.log, done: make(chan struct{})}
		s.daemon = next
	}
	args := []string{"-D", s.data(), "-k", s.dir}
	for _, set := range []string{
		"port=" + strconv.Itoa(int(s.Port)), "listen_addresses=127.0.0.1", "max_connections=400", "shared_buffers=64MB", "fsync=off",
		"max_wal_senders=4", "wal_level=replica", "log_min_messages=warning",
		"dynamic_shared_memory_type=mmap", // in its directory: a server that is killed leaves what is in /dev/shm
	} {
		args = append(args, "-c", set)
	}
	return s.start(s.command("postgres", args...), func() error {
		pid, err := os.ReadFile(filepath.Join(s.data(), "postmaster.pid"))
		if err != nil {
			return err
		}
		lines := strings.Split(string(pid), "\n")
		if len(lines) < 8 || lines[0] != strconv.Itoa(s.cmd.Process.Pid) || !strings.HasPrefix(lines[7], "ready") && !strings.HasPrefix(lines[7], "standby") {
			return errors.New("it is not ready")
		}
		return nil
	})
}

// Kill ends the server with all its processes at once, as a machine that fails.
func (s *PostgresServer) Kill() error {
	s.leash.release()
	return errors.Join(s.end(), os.Remove(filepath.Join(s.data(), "postmaster.pid")))
}

// Stop ends the server and removes its files.
func (s *PostgresServer) Stop() error { return errors.Join(s.end(), s.stop()) }

// Address returns host:port.
func (s *PostgresServer) Address() string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(int(s.Port)))
}

// NewSchema makes an empty schema and returns the address that leads to it.
func (s *PostgresServer) NewSchema(t testing.TB) string {
	t.Helper()
	name := "s" + strconv.FormatInt(s.schemas.Add(1), 10)
	s.Exec(t, "CREATE SCHEMA "+name)
	return s.URL(name)
}

// URL returns the address of a schema.
func (s *PostgresServer) URL(schema string) string {
	return "postgres://postern@" + s.Address() + "/postgres?sslmode=disable&search_path=" + schema
}

// Exec runs a statement as who may do everything, and returns its rows as text.
func (s *PostgresServer) Exec(t testing.TB, sql string) (rows [][]string) {
	t.Helper()
	c, err := pgconn.Connect(t.Context(), s.URL("public"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	results, err := c.Exec(t.Context(), sql).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	for _, r := range results {
		for _, row := range r.Rows {
			var texts []string
			for _, value := range row {
				texts = append(texts, string(value))
			}
			rows = append(rows, texts)
		}
	}
	return rows
}
