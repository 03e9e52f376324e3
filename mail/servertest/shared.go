package servertest

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/postern-mail/postern/internal/testmain"
)

// The server of SharedDovecot, once a test asked for it.
var (
	inMain atomic.Bool // whether Main stops it
	common = sync.OnceValues(func() (*DovecotServer, error) { return StartDovecot(Config{}) })
	asked  atomic.Bool
	named  atomic.Int64
)

// Main runs the tests of a package as testmain.Run does, and stops the server of
// SharedDovecot behind them. A TestMain passes what it returns to os.Exit.
func Main(run func() int) int {
	inMain.Store(true)
	return testmain.Run(func() int {
		code := run()
		if !asked.Load() {
			return code
		}
		if s, err := common(); err == nil {
			if err := s.Stop(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return max(code, 1)
			}
		}
		return code
	})
}

// SharedDovecot returns the one Dovecot of this test program, with the zero Config; its
// TestMain calls Main. The server's log is all tests' log. A test that stops the server, changes its
// configuration or must be alone on it calls Dovecot instead. Each test has users of its own,
// as User names them.
func SharedDovecot(t testing.TB) *DovecotServer {
	t.Helper()
	if !inMain.Load() {
		t.Fatal("SharedDovecot: TestMain does not call servertest.Main")
	}
	asked.Store(true)
	s, err := common()
	Check(t, err)
	return s
}

// User returns the name of a user whom no other test of this program has; name says whose it is.
func User(name string) string {
	return fmt.Sprintf("%s-%d", strings.ToLower(name), named.Add(1))
}
