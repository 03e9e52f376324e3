package servertest

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/postern-mail/postern/internal/testmain"
)

var (
	inMain atomic.Bool // whether Main stops what is shared
	named  atomic.Int64

	dovecots sharing[*DovecotServer]
	couriers sharing[*CourierServer]
	cyruses  sharing[*CyrusServer]
)

// sharing is the servers of one kind that the tests of a program have in common, each
// started when the first of them asks for it.
type sharing[S interface{ Stop() error }] struct {
	mu     sync.Mutex
	starts map[string]func() (S, error) // by how they are configured
}

func (s *sharing[S]) get(t testing.TB, config string, start func() (S, error)) S {
	t.Helper()
	if !inMain.Load() {
		t.Fatal("a server is shared, but TestMain does not call servertest.Main")
	}
	s.mu.Lock()
	if s.starts == nil {
		s.starts = map[string]func() (S, error){}
	}
	once := s.starts[config]
	if once == nil {
		once = sync.OnceValues(start)
		s.starts[config] = once
	}
	s.mu.Unlock()
	server, err := once()
	Check(t, err)
	return server
}

func (s *sharing[S]) stop() (err error) {
	for _, once := range s.starts {
		if server, startErr := once(); startErr == nil {
			err = errors.Join(err, server.Stop())
		}
	}
	return err
}

// Main runs the tests of a package as testmain.Run does, and stops the shared servers behind
// them. A TestMain passes what it returns to os.Exit.
func Main(run func() int) int {
	inMain.Store(true)
	return testmain.Run(func() int {
		code := run()
		if err := errors.Join(dovecots.stop(), couriers.stop(), cyruses.stop()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return max(code, 1)
		}
		return code
	})
}

// SharedDovecot is SharedDovecotWith of the zero Config.
func SharedDovecot(t testing.TB) *DovecotServer {
	t.Helper()
	return SharedDovecotWith(t, Config{})
}

// SharedDovecotWith returns the one Dovecot of this test program that has a Config, without a
// CA and a certificate; its TestMain calls Main. The server's log is all tests' log. A test
// that stops the server, changes its configuration or must be alone on it calls Dovecot
// instead. Each test has users of its own, as User names them.
func SharedDovecotWith(t testing.TB, c Config) *DovecotServer {
	t.Helper()
	return dovecots.get(t, fmt.Sprintf("%+v", c), func() (*DovecotServer, error) { return StartDovecot(c) })
}

// SharedCourier returns the one Courier of this test program, as SharedDovecot does.
func SharedCourier(t testing.TB) *CourierServer {
	t.Helper()
	return couriers.get(t, "", func() (*CourierServer, error) { return StartCourier(CourierConfig{}) })
}

// SharedCyrus returns the one Cyrus of this test program, as SharedDovecot does.
func SharedCyrus(t testing.TB) *CyrusServer {
	t.Helper()
	return cyruses.get(t, "", StartCyrus)
}

// User returns the name of a user whom no other test of this program has; name says whose it is.
func User(name string) string {
	return fmt.Sprintf("%s-%d", strings.ToLower(name), named.Add(1))
}
