package conformance

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"time"
)

// defaultGrace is how long a server may run after its input has ended, where its Target does
// not say.
const defaultGrace = 2 * time.Second

// Command is a server that is a program: started with an argument vector, spoken to
// over its standard input and output, and ended with every process of its group.
type Command struct {
	Args []string // the program and its arguments; no shell reads them
	Env  []string // NAME=value; nil for this process's

	Grace time.Duration // how long it may run after its input has ended; 0 means 2 s

	// Stderr gets the server's standard error; nil discards it. It is written by
	// one goroutine at a time.
	Stderr io.Writer
}

var _ Target = (*Command)(nil)

// Transport implements Target.
func (c *Command) Transport() string { return "stdio" }

// Open implements Target.
func (c *Command) Open(context.Context) (Conn, error) {
	if len(c.Args) == 0 {
		return nil, errors.New("no program is given")
	}
	cmd := exec.Command(c.Args[0], c.Args[1:]...)
	cmd.Env, cmd.Stderr = c.Env, c.Stderr
	grace := cmp.Or(c.Grace, defaultGrace)
	cmd.WaitDelay = grace // a grandchild may hold standard error
	ownGroup(cmd)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	// Not StdoutPipe: Wait would close it under the reader.
	out, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout = w
	err = cmd.Start()
	_ = w.Close()
	if err != nil {
		_ = out.Close()
		return nil, err
	}
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_ = cmd.Wait() // how it ended is not judged
	}()
	return newLineConn(in, out, func() {
		select {
		case <-exited:
		case <-time.After(grace):
		}
		killGroup(cmd)
		_ = out.Close()
		select {
		case <-exited:
		case <-time.After(grace + time.Second):
		}
	}), nil
}
