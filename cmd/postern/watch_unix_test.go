//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
)

// demoServer is 'postern demo --serve' with a client that has said hello.
type demoServer struct {
	t       *testing.T
	in      io.Writer
	answers *bufio.Scanner
	process *os.Process
	wait    func() error
	status  func() int
}

func serveDemo(t *testing.T) *demoServer {
	t.Helper()
	c := program(t, nil, "demo", "--serve")
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
	s := &demoServer{t: t, in: in, answers: bufio.NewScanner(out), process: c.Process, wait: c.Wait, status: func() int { return c.ProcessState.ExitCode() }}
	s.answers.Buffer(nil, 4<<20)
	s.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	s.next()
	return s
}

func (s *demoServer) send(lines ...string) {
	s.t.Helper()
	if _, err := io.WriteString(s.in, strings.Join(lines, "\n")+"\n"); err != nil {
		s.t.Fatal(err)
	}
}

func callWithProgress(id int, command string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"cli","arguments":{"command":%q},"_meta":{"progressToken":%d}}}`, id, command, id)
}

type reply struct {
	ID     *int
	Method string
	Params struct {
		ProgressToken int
		Progress      float64
		Message       string
	}
	Result struct {
		Content []struct{ Text string }
		IsError bool
	}
}

func (s *demoServer) next() (r reply) {
	s.t.Helper()
	if !s.answers.Scan() {
		s.t.Fatalf("no more answers: %v", s.answers.Err())
	}
	if err := json.Unmarshal(s.answers.Bytes(), &r); err != nil {
		s.t.Fatal(err)
	}
	return r
}

// answer is the next answer; notifications are passed over.
func (s *demoServer) answer() (id int, text string) {
	s.t.Helper()
	for {
		if r := s.next(); r.ID != nil {
			if len(r.Result.Content) == 0 {
				return *r.ID, ""
			}
			return *r.ID, r.Result.Content[0].Text
		}
	}
}

// A watch lets everything pass that came behind it on the same connection: what makes
// the message arrive that it waits for, twenty other watches and fifty reads.
func TestAWatchHoldsUpNothing(t *testing.T) {
	s := serveDemo(t)
	const watches, reads = 20, 50
	var lines []string
	for i := range watches {
		lines = append(lines, callWithProgress(1+i, "mail watch --wait 2m"))
	}
	for i := range reads {
		lines = append(lines, callWithProgress(100+i, fmt.Sprintf("mail get --uid %d", 1+i)))
	}
	s.send(append(lines, callWithProgress(200, "mail copy --folder Archive --uid 1 --to INBOX"))...)
	copied := false
	for range watches + reads + 1 {
		id, text := s.answer()
		switch {
		case !strings.HasPrefix(text, `{"success":true`):
			t.Fatalf("%d: %.300s", id, text)
		case id == 200:
			copied = true
		case id > watches:
		case !copied && !strings.Contains(text, `"messages":[{"message_id":"imap:demo:INBOX:1:51"`):
			t.Errorf("watch %d ended without a message: %.300s", id, text)
		}
	}
	// A client that gives a watch up gets no answer to it, and the connection goes on.
	s.send(callWithProgress(300, "mail watch --wait 2m"), callWithProgress(301, "mail list --limit 1"), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":300}}`,
		callWithProgress(302, "mail list --limit 1"))
	for _, want := range []int{301, 302} {
		if id, text := s.answer(); id != 301 && id != 302 || !strings.HasPrefix(text, `{"success":true`) {
			t.Errorf("answer %d (%.200s), want %d", id, text, want)
		}
	}
	// While one waits it says so to who asked; the process ends when it is told to.
	s.send(callWithProgress(400, "mail watch --wait 4m"))
	for r := s.next(); r.Method != "notifications/progress" || r.Params.ProgressToken != 400 || r.Params.Message != "waiting for mail in INBOX"; r = s.next() {
	}
	if err := s.process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for s.answers.Scan() { // until its end
	}
	_ = s.wait()
	if s.status() != 0 {
		t.Errorf("status %d", s.status())
	}
}
