package main

import (
	"encoding/json"
	"errors"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/postern-mail/postern/gateway/gatewaytest"
	"github.com/postern-mail/postern/vault/agentmail"
)

// TestOverMCPWhatWasNotWrittenIsUnreadAgain has a server whose answer does not get
// through: the client does not read, and the server is killed while it writes; or the
// client is gone when it does. Once the lease is over the message is unread, and after
// an answer that got through it is not.
func TestOverMCPWhatWasNotWrittenIsUnreadAgain(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("pipes differ here")
	}
	for name, c := range map[string]struct {
		stop func(t *testing.T, p *os.Process, answers *os.File) // nil reads the answer
		want int
	}{
		"read":           {nil, 0},
		"killed":         {func(t *testing.T, p *os.Process, _ *os.File) { _ = p.Kill() }, 1},
		"client is gone": {func(t *testing.T, _ *os.Process, answers *os.File) { _ = answers.Close() }, 1},
		"told to go away": {func(t *testing.T, p *os.Process, answers *os.File) {
			_ = p.Signal(syscall.SIGTERM)
			_ = answers.Close()
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVault(t)
			now := v.opened(t, 0)
			// More than a pipe holds.
			if _, err := agentmail.New(now).Send(t.Context(), agentmail.Message{Sender: "p:a", Recipient: "p:b", Body: strings.Repeat("x", 120<<10)}); err != nil {
				t.Fatal(err)
			}
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = r.Close() }()
			server := program(t, v.environment(false), "serve")
			server.Stdout = w
			in, err := server.StdinPipe()
			if err = errors.Join(err, server.Start(), w.Close()); err != nil {
				t.Fatal(err)
			}
			client := gatewaytest.New(t, in, r)
			read := client.Begin("agent read p:b")
			awaitRead(t, now, "p:b") // it was taken, and its answer is on the way
			if c.stop != nil {
				c.stop(t, server.Process, r)
			} else if m := client.Answer(read); len(m.Line) < 120<<10 {
				t.Fatalf("%d bytes", len(m.Line))
			}
			_ = in.Close()
			if err := server.Wait(); err != nil {
				t.Logf("it ends with %v", err)
			}
			list, err := agentmail.New(v.opened(t, 2*agentmail.Lease)).Read(t.Context(), agentmail.Query{Agent: "p:b"})
			if err != nil || len(list.Messages) != c.want {
				t.Errorf("%d are unread, want %d: %v", len(list.Messages), c.want, err)
			}
		})
	}
}

// TestAWaitThatIsGivenUpTakesNothing cancels a waiting read over MCP, and ends waiting
// processes by signals. What comes afterwards is unread.
func TestAWaitThatIsGivenUpTakesNothing(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("there are no such signals here")
	}
	v := newVault(t)
	c := serving(t, v)
	waiting := c.Begin("agent read p:b --wait 200s")
	next := func(command string) gatewaytest.Message {
		t.Helper()
		id := c.Begin(command)
		m := c.Next()
		if m.ID == nil || *m.ID != id {
			t.Fatalf("%s, want the answer of %s", m.Line, command)
		}
		return m
	}
	next("agent status")
	c.Cancel(waiting)
	next("agent send --from p:a --to p:b --subject x")
	// The wait may end after the message came: then it holds it for as long as it
	// could have been read by somebody, and no longer.
	if m := next("agent read p:b --peek --wait 60s"); !strings.Contains(m.Text(), `"subject":"x"`) {
		t.Errorf("the wait that was given up took it: %s", m.Line)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}

	for _, signal := range []os.Signal{syscall.SIGTERM, os.Interrupt, syscall.SIGHUP} {
		c := program(t, v.environment(false), "agent", "read", "p:w", "--wait", "200s")
		var out, failure strings.Builder
		c.Stdout, c.Stderr = &out, &failure
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		waitForCommand(t, v)
		if err := c.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		_ = c.Wait()
		var e map[string]string
		if status := c.ProcessState.ExitCode(); status == 0 || out.Len() > 0 || json.Unmarshal([]byte(failure.String()), &e) != nil || e["error"] == "" {
			t.Errorf("%v: status %d, %q, %q", signal, status, out.String(), failure.String())
		}
	}
	now := v.opened(t, 0)
	if _, err := agentmail.New(now).Send(t.Context(), agentmail.Message{Sender: "p:a", Recipient: "p:w"}); err != nil {
		t.Fatal(err)
	}
	if list, err := agentmail.New(now).Read(t.Context(), agentmail.Query{Agent: "p:w"}); err != nil || len(list.Messages) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
}

// waitForCommand waits until one more process has counted its command, which it does
// right before it runs it.
func waitForCommand(t testing.TB, v testVault) {
	t.Helper()
	info, err := os.Stat(v.path)
	if err != nil {
		t.Fatal(err)
	}
	for before := info.ModTime(); info.ModTime().Equal(before); {
		time.Sleep(5 * time.Millisecond) // another process is at work
		if info, err = os.Stat(v.path); err != nil {
			t.Fatal(err)
		}
	}
}
