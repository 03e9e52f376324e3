package servertest

import (
	"errors"
	"fmt"
	"net"
	"testing"
)

// verdict records how a test ended instead of ending this one.
type verdict struct {
	testing.TB
	skipped, failed bool
}

func (v *verdict) Helper()              {}
func (v *verdict) Skipf(string, ...any) { v.skipped = true }
func (v *verdict) Fatal(...any)         { v.failed = true }

func TestCheckSkipsOnlyAMissingProgramThatIsNotRequired(t *testing.T) {
	missing := fmt.Errorf("dovecot: %w", ErrNotInstalled)
	broken := errors.New("it does not start")
	for _, test := range []struct {
		err             error
		required        string
		skipped, failed bool
	}{
		{nil, "", false, false},
		{nil, "1", false, false},
		{missing, "", true, false},
		{missing, "1", false, true},
		{broken, "", false, true},
		{broken, "1", false, true},
	} {
		t.Setenv(RequireServers, test.required)
		v := &verdict{TB: t}
		Check(v, test.err)
		if v.skipped != test.skipped || v.failed != test.failed {
			t.Errorf("%v, required %q: skipped %v, failed %v", test.err, test.required, v.skipped, v.failed)
		}
	}
}

// takenAtFirst chooses ports of which one is taken, and free ones from the second
// choice on.
func takenAtFirst(t *testing.T, taken int, starts *int) func(string, int) ([]uint16, error) {
	t.Helper()
	other, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { other.Close() })
	return func(host string, n int) ([]uint16, error) {
		*starts++
		ports, err := freePorts(host, n)
		if err == nil && *starts == 1 {
			ports[taken] = uint16(other.Addr().(*net.TCPAddr).Port)
		}
		return ports, err
	}
}

// When somebody else binds a port between our choosing it and the server's binding it, the
// server starts on others.
func TestStartTriesOtherPortsWhenOneIsTaken(t *testing.T) {
	t.Parallel()
	for port := range 4 {
		starts := 0
		login(t, Dovecot(t, Config{ports: takenAtFirst(t, port, &starts)}), someone())
		if starts != 2 {
			t.Errorf("port %d: %d starts, want 2", port, starts)
		}
	}
}
