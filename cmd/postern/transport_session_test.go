//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// mcpSession is a client's side of a server.
type mcpSession struct {
	in      io.Writer
	answers *bufio.Scanner
	id      int
	close   func() error
}

// newMCPSession says hello; the answer to that is read with the first call's.
func newMCPSession(in io.Writer, out io.Reader) *mcpSession {
	s := &mcpSession{in: in, answers: bufio.NewScanner(out)}
	s.answers.Buffer(nil, 4<<20)
	fmt.Fprintln(in, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return s
}

// write calls the tool and does not wait for the answer.
func (s *mcpSession) write(command string) {
	s.id++
	text, _ := json.Marshal(command)
	fmt.Fprintf(s.in, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"cli","arguments":{"command":%s}}}`+"\n", s.id, text)
}

// call calls the tool and returns the line that answers it.
func (s *mcpSession) call(t testing.TB, command string) string {
	t.Helper()
	s.write(command)
	for s.answers.Scan() {
		if line := s.answers.Text(); strings.Contains(line, fmt.Sprintf(`"id":%d,`, s.id)) {
			return line
		}
	}
	t.Fatalf("%s: no answer: %v", command, s.answers.Err())
	return ""
}

// envelope calls the tool and takes its answer apart.
func (s *mcpSession) envelope(t testing.TB, command string) answer {
	t.Helper()
	var reply struct {
		Result struct {
			Content []struct {
				Text string `json:"text"`
			} `json:"content"`
		} `json:"result"`
	}
	line := s.call(t, command)
	if err := json.Unmarshal([]byte(line), &reply); err != nil || len(reply.Result.Content) != 1 {
		t.Fatalf("%s: %v: %s", command, err, line)
	}
	a := answer{raw: []byte(reply.Result.Content[0].Text)}
	if err := json.Unmarshal(a.raw, &a); err != nil {
		t.Fatalf("%s: %v: %s", command, err, line)
	}
	return a
}

// carrying starts the program as a process of the profile.
func carrying(t testing.TB, o *transportOptions, env ...string) (*exec.Cmd, *mcpSession, *written) {
	t.Helper()
	// The race detector keeps a process a second longer unless it is told not to.
	c := program(t, append(slices.Clone(env), "GORACE=atexit_sleep_ms=0"), o.arguments()...)
	log := &written{}
	c.Stderr = log
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
	s := newMCPSession(in, out)
	s.close = in.Close
	return c, s, log
}

// ended closes the input of a process and waits for its end.
func ended(t testing.TB, c *exec.Cmd, s *mcpSession) {
	t.Helper()
	_ = s.close()
	for s.answers.Scan() {
	}
	if err := c.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}
