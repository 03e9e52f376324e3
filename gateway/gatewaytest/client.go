// Package gatewaytest is an MCP client for tests of any ACLI server: it starts a server as
// a process, or uses two pipes, initializes the session, calls the tool "cli" and parses
// the answers in any order.
//
//	c := gatewaytest.Start(t, exec.Command("postern", "serve"))
//	if m := c.Call("version"); m.IsError() { … }
//	err := c.Close()
package gatewaytest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"
)

// Client is a client with an initialized session. One goroutine uses it, but Begin and Send
// may be called while another one reads.
type Client struct {
	Process *exec.Cmd // nil over pipes

	// Progress makes calls ask for their progress; their token is their id. Next returns
	// the notifications.
	Progress bool

	t    testing.TB
	in   io.WriteCloser
	out  *bufio.Reader
	ids  int
	kept map[int]Message // answers that came before Answer wanted them
}

// New initializes a session with a server that reads from in and writes to out, and waits
// for its answer. Any failure, here or later, fails the test.
func New(t testing.TB, in io.WriteCloser, out io.Reader) *Client {
	t.Helper()
	c := &Client{t: t, in: in, out: bufio.NewReader(out), kept: map[int]Message{}}
	c.Send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"gatewaytest","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	if m := c.Answer(0); m.Error != nil {
		t.Fatalf("initialize: %s", m.Line)
	}
	return c
}

// Start starts a server as a process and initializes a session. If p has no stderr, the
// test's log gets it. The process is killed at the end of the test at the latest.
func Start(t testing.TB, p *exec.Cmd) *Client {
	t.Helper()
	if p.Stderr == nil {
		p.Stderr = t.Output()
	}
	in, err := p.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if p.ProcessState == nil {
			_ = p.Process.Kill()
			_ = p.Wait()
		}
	})
	c := New(t, in, out)
	c.Process = p
	return c
}

// Message is a message of a server: an answer, a notification or a request of its own.
type Message struct {
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
	Error *struct {
		Code    int
		Message string
	}
	Line string `json:"-"` // all of it
}

// Text is the envelope of an answer to a call (002 section 5); empty where there is none.
func (m Message) Text() string {
	if len(m.Result.Content) != 1 {
		return ""
	}
	return m.Result.Content[0].Text
}

// IsError reports whether the command or the request failed.
func (m Message) IsError() bool { return m.Result.IsError || m.Error != nil }

// Send writes lines unchanged.
func (c *Client) Send(lines ...string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, strings.Join(lines, "\n")+"\n"); err != nil {
		c.t.Error(err)
	}
}

// Begin calls the tool and returns the id of the answer without waiting for it: 1 for the
// first call, then 2, and so on.
func (c *Client) Begin(command string) (id int) {
	c.t.Helper()
	c.ids++
	text, err := json.Marshal(command)
	if err != nil {
		c.t.Fatal(err)
	}
	meta := ""
	if c.Progress {
		meta = fmt.Sprintf(`,"_meta":{"progressToken":%d}`, c.ids)
	}
	c.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"cli","arguments":{"command":%s}%s}}`, c.ids, text, meta))
	return c.ids
}

// Cancel gives up a call.
func (c *Client) Cancel(id int) {
	c.t.Helper()
	c.Send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d,"reason":"enough"}}`, id))
}

// Next returns the next message of the server as it comes.
func (c *Client) Next() Message {
	c.t.Helper()
	line, err := c.out.ReadString('\n')
	m := Message{Line: strings.TrimSuffix(line, "\n")}
	if err = errors.Join(err, json.Unmarshal([]byte(line), &m)); err != nil {
		c.t.Fatalf("the server's next message: %v: %.500s", err, line)
	}
	return m
}

// Answer waits for the answer to a call. It keeps other answers that come before it and
// skips notifications.
func (c *Client) Answer(id int) Message {
	c.t.Helper()
	for {
		if m, ok := c.kept[id]; ok {
			delete(c.kept, id)
			return m
		}
		if m := c.Next(); m.ID != nil && m.Method == "" {
			c.kept[*m.ID] = m
		}
	}
}

// Call calls the tool and waits for the answer.
func (c *Client) Call(command string) Message {
	c.t.Helper()
	return c.Answer(c.Begin(command))
}

// Close ends the input, skips the remaining output, and waits for the end of the server's
// process, whose error it returns.
func (c *Client) Close() error {
	err := c.in.Close()
	_, read := io.Copy(io.Discard, c.out)
	if c.Process == nil {
		return errors.Join(err, read)
	}
	return c.Process.Wait()
}
