// Package servertest starts real mail servers for tests, and proxies between them and a
// client that count the traffic. Only tests import it.
//
// [Dovecot] gives a test its own throwaway IMAP and POP3 server; a package whose tests can
// share one calls [Main] from TestMain and [SharedDovecot] in each test. [Fill] gives it a
// folder of many messages. [Courier] gives a test a server of another make, for tests that
// must not depend on Dovecot, and [SharedCyrus] is a third. [Postfix] receives mail, as a provider's submission server
// does, and delivers it to a Dovecot. [OAuth] is an authorization server whose tokens both
// of them accept. [NewCA] makes certificates, good and bad. [NewProxy] counts connections,
// bytes and round trips.
//
// [Postgres] is a database server of the test's own, with a standby and a pooler where it
// wants them.
//
// Package scripted has servers that a test scripts; package mailtest has fakes of package
// mail's interfaces.
//
// [ReadPython] reads a message with an independent parser.
//
// Where the server program is not installed the tests that need it are
// skipped, unless POSTERN_REQUIRE_SERVERS is set: then they fail, so that a
// machine meant to run everything cannot silently run less. With -short no real
// server is started.
package servertest

import (
	"errors"
	"flag"
	"os"
	"testing"
)

// RequireServers is the environment variable that turns a missing server
// program from a skipped test into a failed one. Any value but the empty one
// counts.
const RequireServers = "POSTERN_REQUIRE_SERVERS"

// ErrNotInstalled reports that this machine has no program that fits.
var ErrNotInstalled = errors.New("the server program is not installed")

// ErrShort reports that tests run with -short, which starts no real server unless
// RequireServers is set, to be quick.
var ErrShort = errors.New("real servers are not started with -short")

func short() error {
	if !flag.Parsed() { // by a TestMain that starts a server for all of its tests
		flag.Parse()
	}
	if testing.Short() && os.Getenv(RequireServers) == "" {
		return ErrShort
	}
	return nil
}

// Check ends the test when err, from StartDovecot, says that no server runs: by a skip when
// the program is only not installed and servers are not required, by a failure otherwise. A
// nil error passes.
func Check(t testing.TB, err error) {
	t.Helper()
	switch {
	case err == nil:
	case errors.Is(err, ErrShort):
		t.Skip(err)
	case errors.Is(err, ErrNotInstalled) && os.Getenv(RequireServers) == "":
		t.Skipf("%v (set %s=1 to make this a failure)", err, RequireServers)
	default:
		t.Fatal(err)
	}
}
