package servertest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// PgBouncerServer is a running PgBouncer before a PostgreSQL. It lends its few connections
// for one transaction at a time.
type PgBouncerServer struct {
	Port uint16

	*daemon
}

// Pooler starts a PgBouncer before the server that lives as long as the test. The test is
// skipped or fails as by Check where there is none.
func (s *PostgresServer) Pooler(t testing.TB) *PgBouncerServer {
	t.Helper()
	b, err := untilTaken(s.pooler)
	return keep(t, "PgBouncer", b, err)
}

func (s *PostgresServer) pooler() (*PgBouncerServer, error) {
	program := "/usr/sbin/pgbouncer"
	if _, err := os.Stat(program); err != nil {
		// Unpacked beside the system, where it would start by itself.
		program = "/opt/pgbouncer/usr/sbin/pgbouncer"
	}
	if _, err := os.Stat(program); err != nil {
		return nil, fmt.Errorf("pgbouncer: %w", ErrNotInstalled)
	}
	d, err := newDaemon("pgbouncer", "log")
	if err != nil {
		return nil, err
	}
	b := &PgBouncerServer{daemon: d}
	as, errAs := mailOwner()
	ports, errPorts := freePorts("127.0.0.1", 1)
	if err := errors.Join(errAs, errPorts); err != nil {
		return nil, errors.Join(err, d.stop())
	}
	b.Port = ports[0]
	file := func(name string) string { return filepath.Join(d.dir, name) }
	config := fmt.Sprintf(`[databases]
* = host=127.0.0.1 port=%d user=postern
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 5
max_client_conn = 400
logfile = %s
pidfile = %s
`, s.Port, b.Port, file("log"), file("pid"))
	if err := errors.Join(os.Chmod(d.dir, 0o755), as.give(d.dir), os.WriteFile(file("ini"), []byte(config), 0o644)); err != nil {
		return nil, errors.Join(err, d.stop())
	}
	cmd := exec.Command(program, file("ini"))
	cmd.Env = []string{"PATH=/usr/bin:/bin", "LANG=C", "HOME=" + d.dir}
	runAs(cmd, as)
	err = d.start(cmd, func() error {
		// It writes its id once it listens.
		pid, err := os.ReadFile(file("pid"))
		if err == nil && strings.TrimSpace(string(pid)) != strconv.Itoa(d.cmd.Process.Pid) {
			err = errors.New("it is not ready")
		}
		return err
	})
	return b, err
}

// Stop ends it and removes its files.
func (b *PgBouncerServer) Stop() error { return b.stop() }

// URL returns the address of a database of the server behind it.
func (b *PgBouncerServer) URL(database string) string {
	return "postgres://postern@" + net.JoinHostPort("127.0.0.1", strconv.Itoa(int(b.Port))) + "/" + database + "?sslmode=disable"
}
