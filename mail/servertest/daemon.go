package servertest

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	startAttempts = 5                // each with other ports
	startTimeout  = 30 * time.Second // generous: many test binaries may start at once
	pollInterval  = 5 * time.Millisecond
)

// errEndedEarly reports a server that ended before it answered; that a port was taken
// meanwhile is the likely reason.
var errEndedEarly = errors.New("it ended before it answered")

// untilTaken starts a server, and again with other ports if one was taken meanwhile.
func untilTaken[S any](start func() (S, error)) (s S, err error) {
	for range startAttempts {
		if s, err = start(); !errors.Is(err, errEndedEarly) {
			break
		}
	}
	return s, err
}

// keep lets a server live as long as the test, as Check does if err says that none runs.
// When the test failed, the end of the server's log is added to the test's.
func keep[S interface {
	LogTail() string
	Stop() error
}](t testing.TB, name string, s S, err error) S {
	t.Helper()
	Check(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("end of the %s log:\n%s", name, s.LogTail())
		}
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// endpoint is a server's address and what identifies it.
type endpoint struct {
	Host  string // localhost
	CAPEM []byte // what a client must trust
	CA    *CA
}

func (e *endpoint) address(port uint16) string {
	return net.JoinHostPort(e.Host, strconv.Itoa(int(port)))
}

// ClientTLS returns a configuration for a client that trusts this server alone.
func (e *endpoint) ClientTLS() *tls.Config {
	return &tls.Config{RootCAs: e.CA.Pool(), ServerName: e.Host}
}

// daemon is a server program with all its processes, and the directory of its files. It is
// safe for concurrent use.
type daemon struct {
	name string // for errors
	dir  string
	log  string // the name of the log it writes in the directory
	cmd  *exec.Cmd

	leash *leash
	done  chan struct{} // closed when the program has ended
	err   error         // how it ended; read after done
	once  sync.Once
	left  error // why a process or file of it is left
}

// newDaemon makes the directory. In t.TempDir the names of the sockets would be longer
// than a socket address can hold.
func newDaemon(name, log string) (*daemon, error) {
	parent := os.TempDir()
	if len(parent) > 40 {
		parent = "/tmp"
	}
	dir, err := os.MkdirTemp(parent, name+"-")
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return &daemon{name: name, dir: dir, log: log, done: make(chan struct{})}, nil
}

// start starts the command, in its own session, and returns when ready returns nil. A
// program that does not get so far is stopped.
func (d *daemon) start(cmd *exec.Cmd, ready func() error) error {
	d.cmd = cmd
	cmd.Dir = d.dir
	// A file and not a pipe: Wait would wait for every process that inherited it.
	output, err := os.Create(filepath.Join(d.dir, "output"))
	if err != nil {
		return fmt.Errorf("start %s: %w", d.name, errors.Join(err, d.stop()))
	}
	defer output.Close()
	cmd.Stdout, cmd.Stderr = output, output
	ownSession(cmd)
	if err := cmd.Start(); err != nil {
		d.cmd = nil
		return fmt.Errorf("start %s: %w", d.name, errors.Join(err, d.stop()))
	}
	go func() {
		d.err = cmd.Wait()
		close(d.done)
	}()
	if d.leash, err = newLeash(cmd.Process.Pid); err == nil {
		err = d.await(ready)
	}
	if err != nil {
		tail := d.LogTail()
		return fmt.Errorf("start %s: %w\n%s", d.name, errors.Join(err, d.stop()), tail)
	}
	return nil
}

func (d *daemon) await(ready func() error) error {
	deadline := time.NewTimer(startTimeout)
	defer deadline.Stop()
	for {
		err := ready()
		if err == nil {
			return nil
		}
		select {
		case <-d.done:
			return fmt.Errorf("%w: %w", errEndedEarly, d.err)
		case <-deadline.C:
			return fmt.Errorf("not ready within %s: %w", startTimeout, err)
		case <-time.After(pollInterval):
		}
	}
}

// greeting returns what is nil if the first line of the server at this address has the
// token, which tells it from another server that got the port first.
func greeting(address, token string) (ready func() error) {
	return func() error { return greets(address, token) }
}

func greets(address, token string) error {
	conn, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return err
	}
	if !strings.Contains(line, token) {
		return errors.New("another server answers on the port")
	}
	return nil
}

// LogTail returns the last lines of the server's log, at most 16 kB, and its output before
// it had a log.
func (d *daemon) LogTail() string { return logTail(d.dir, "output", d.log) }

func logTail(dir string, names ...string) string {
	const most = 16 << 10
	var log []byte
	for _, name := range names {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err.Error()
		}
		log = append(log, b...)
	}
	if len(log) > most {
		log = log[len(log)-most:]
		log = log[bytes.IndexByte(log, '\n')+1:]
	}
	return string(log)
}

// stop ends the server with every connection to it, waits until its processes are
// gone, and removes what it kept. Further calls do nothing.
func (d *daemon) stop() error {
	d.once.Do(func() {
		var err error
		if d.cmd != nil {
			d.leash.release()
			// All its processes at once: a graceful end takes a second, and the files it
			// would tidy up are removed.
			err = endSession(d.cmd.Process, d.done)
		}
		if err := errors.Join(err, os.RemoveAll(d.dir)); err != nil {
			d.left = fmt.Errorf("stop %s: %w", d.name, err)
		}
	})
	return d.left
}
