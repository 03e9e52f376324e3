package conformance

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// closeTime is what a server has to end once its input has.
const closeTime = 2 * time.Second

// Command is a server that is a program: started with an argument vector, spoken to
// over its standard input and output, and ended with every process of its group.
type Command struct {
	Args []string // the program and its arguments; no shell reads them
	Env  []string // NAME=value; nil for this process's
	Dir  string   // empty for this process's

	// Stderr gets what the server says there; nil discards it. It is written by one
	// goroutine at a time.
	Stderr io.Writer
}

var _ Target = (*Command)(nil)

// Transport implements Target.
func (c *Command) Transport() string { return "stdio" }

func (c *Command) start() (io.WriteCloser, io.ReadCloser, func(), error) {
	if len(c.Args) == 0 {
		return nil, nil, nil, &errNoStart{errors.New("no program is given")}
	}
	cmd := exec.Command(c.Args[0], c.Args[1:]...)
	cmd.Env, cmd.Dir, cmd.Stderr = c.Env, c.Dir, c.Stderr
	cmd.WaitDelay = closeTime // a grandchild may hold standard error
	ownGroup(cmd)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, nil, &errNoStart{err}
	}
	// Not StdoutPipe: Wait would close it under the reader.
	out, w, err := os.Pipe()
	if err != nil {
		return nil, nil, nil, &errNoStart{err}
	}
	cmd.Stdout = w
	err = cmd.Start()
	_ = w.Close()
	if err != nil {
		_ = out.Close()
		return nil, nil, nil, &errNoStart{err}
	}
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_ = cmd.Wait() // how it ended is not judged
	}()
	var once sync.Once
	stop := func() {
		once.Do(func() {
			_ = in.Close()
			select {
			case <-exited:
			case <-time.After(closeTime):
			}
			killGroup(cmd)
			_ = out.Close()
			select {
			case <-exited:
			case <-time.After(closeTime + time.Second):
			}
		})
	}
	return in, out, stop, nil
}

// Open implements Target.
func (c *Command) Open(context.Context) (Conn, error) {
	in, out, stop, err := c.start()
	if err != nil {
		return nil, err
	}
	return newLineConn(in, out, stop), nil
}

// Client implements Target.
func (c *Command) Client(context.Context) (mcp.Transport, func(), error) {
	in, out, stop, err := c.start()
	if err != nil {
		return nil, nil, err
	}
	return &mcp.IOTransport{Reader: out, Writer: in, MaxLineLength: MaxMessage}, stop, nil
}
