package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
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

// program is the test binary acting as postern (see TestMain).
func program(t testing.TB, env []string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), self, args...)
	c.Env = append(append(os.Environ(), actAsPostern+"=1"), env...)
	return c
}

// serving starts 'postern serve' and says hello as a client does. The caller reads
// the answers, the first of them to that.
func serving(t testing.TB, v testVault) (c *exec.Cmd, in io.WriteCloser, answers *bufio.Scanner) {
	t.Helper()
	c = program(t, v.environment(false), "serve")
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(in, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	answers = bufio.NewScanner(out)
	answers.Buffer(nil, 4<<20)
	return c, in, answers
}

// TestTwentyProcessesShareOneVault starts them at once; none may fail on a lock,
// every command is one entry, and the chain is whole.
func TestTwentyProcessesShareOneVault(t *testing.T) {
	const processes, each = 20, 5
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
	h := newHouse(t, v)
	var report struct {
		OK      bool `json:"ok"`
		Entries int  `json:"entries"`
	}
	h.do(t, "audit verify", &report)
	if !report.OK || report.Entries != processes*each {
		t.Errorf("%+v, want %d entries", report, processes*each)
	}
}

// TestKilledServersLeaveASoundVault kills servers in the middle of a stream of
// commands. Whatever was answered is on record, and the vault checks clean.
func TestKilledServersLeaveASoundVault(t *testing.T) {
	v := newVault(t)
	answered := 0
	for i := range 10 {
		c := program(t, v.environment(true), "serve")
		in, err := c.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(in, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
		fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		for id := range 40 {
			fmt.Fprintf(in, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"cli","arguments":{"command":"mail accounts"}}}`+"\n", id+1)
		}
		answers := bufio.NewScanner(out)
		for n := 0; n < 3+i && answers.Scan(); n++ {
			if strings.Contains(answers.Text(), `"result":{"content"`) {
				answered++
			}
		}
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = c.Wait()
	}
	h := newHouse(t, v)
	var report struct {
		OK      bool `json:"ok"`
		Entries int  `json:"entries"`
	}
	h.do(t, "audit verify", &report)
	if !report.OK || report.Entries < answered || answered < 20 {
		t.Errorf("%+v after %d answers", report, answered)
	}
	if err := h.store.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// BenchmarkStartToInitialize is the time from starting the program to the answer
// to initialize.
func BenchmarkStartToInitialize(b *testing.B) {
	for b.Loop() {
		c := program(b, nil, "serve")
		in, err := c.StdinPipe()
		if err != nil {
			b.Fatal(err)
		}
		out, err := c.StdoutPipe()
		if err != nil {
			b.Fatal(err)
		}
		if err := c.Start(); err != nil {
			b.Fatal(err)
		}
		fmt.Fprintln(in, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
		if answers := bufio.NewScanner(out); !answers.Scan() {
			b.Fatal("no answer")
		}
		_ = in.Close()
		_ = c.Wait()
	}
}
