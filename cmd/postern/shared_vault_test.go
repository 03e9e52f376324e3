package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/postern-mail/postern/gateway/gatewaytest"
	"github.com/postern-mail/postern/internal/testmain"
)

// closedPort is a loopback port that nothing listens on.
func closedPort(t testing.TB) uint16 {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return uint16(l.Addr().(*net.TCPAddr).Port)
}

// program is the test binary acting as postern (see TestMain), without the race detector.
func program(t testing.TB, env []string, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(t.Context(), childProgram(t), args...)
	c.Env = append(append(os.Environ(), actAsPostern+"=1"), env...)
	return c
}

// serving starts 'postern serve' as an agent, and says hello as a client does.
func serving(t testing.TB, v testVault) *gatewaytest.Client {
	t.Helper()
	return gatewaytest.Start(t, program(t, v.environment(false), "serve"))
}

// TestProcessesShareOneVault starts them at once; none may fail on a lock,
// every command is one entry, and the chain is whole.
func TestProcessesShareOneVault(t *testing.T) {
	t.Parallel()
	processes, each := testmain.Rounds(8, 20), testmain.Rounds(2, 5)
	if testing.Short() {
		processes, each = 4, 1
	}
	v := newVault(t)
	var wg sync.WaitGroup
	for p := range processes {
		wg.Go(func() {
			for i := range each {
				// Half of them change a setting, half read.
				line := fmt.Sprintf("config set commands_per_minute %d", 5000+p*each+i)
				if p%2 == 0 {
					line = "mail accounts"
				}
				var stderr bytes.Buffer
				c := program(t, v.environment(true), "exec", line)
				c.Stderr = &stderr
				out, err := c.Output()
				if err != nil || !bytes.HasPrefix(out, []byte(`{"success":true`)) || stderr.Len() > 0 {
					t.Errorf("process %d: %v\n%s%s", p, err, out, stderr.Bytes())
				}
			}
		})
	}
	wg.Wait()
	if n := newHouse(t, v).entries(t); n != processes*each {
		t.Errorf("%d entries, want %d", n, processes*each)
	}
}

// BenchmarkStartToInitialize is the time from starting the program to the answer
// to initialize.
func BenchmarkStartToInitialize(b *testing.B) {
	for b.Loop() {
		_ = gatewaytest.Start(b, program(b, nil, "serve")).Close()
	}
}
