// Package child runs other programs: a parser of hostile files, an extension, a
// helper that knows a password.
//
// [Run] starts a program by an argument vector, never through a shell, in a session
// of its own, with only the environment it is given, reads a bounded amount of its
// output, and kills it and its children when its context ends. [Limits] bound the
// machine's resources that a process and its children can use; a process lowers its
// own, or becomes another program under them with [Limits.Become].
package child

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// linger is how long to wait for the output of a program that has ended, where a
// process that left its session holds the output open.
const linger = time.Second

var (
	// ErrStart means that the program does not exist or cannot be started. The error
	// also matches the system's error.
	ErrStart = errors.New("the program cannot be started")
	// ErrOutput means that the program printed more than MaxOutput. It was killed.
	ErrOutput = errors.New("the program printed too much")
)

// Program describes a program and how to run it.
type Program struct {
	// Args are the program and its arguments. A bare name is looked for in PATH, and
	// never found in the current directory.
	Args []string
	// Env is its environment, as NAME=value. Nil means an empty one.
	Env []string
	// Dir is the directory it starts in; empty means this process's directory.
	Dir string
	// Stdin is its standard input; nil means an empty one. Its standard error is
	// discarded, since it may hold the data that the program works with.
	Stdin []byte
	// MaxOutput is how many bytes of standard output it may print.
	MaxOutput int
	// Trusted says that the person chose the program: it may leave processes behind
	// that run on once it has ended well, such as one that remembers a passphrase,
	// and on Windows it may open windows.
	Trusted bool
	// Terminal leaves the program in our own session and process group, for one that
	// asks on the terminal. Then only the program is killed, not its children.
	Terminal bool
}

// Run runs a program until it ends and returns its standard output in memory without
// other copies, so that a caller can wipe it. With ErrOutput that is as much as it may
// print.
//
// The error is an *exec.ExitError for a program that ran and failed, and ctx's for one
// that was killed because ctx ended. When Run returns, the program is gone, and so are
// all processes of its session that stayed in its process group, except those that
// Program.Trusted and Program.Terminal allow.
func Run(ctx context.Context, p Program) ([]byte, error) {
	if len(p.Args) == 0 {
		return nil, fmt.Errorf("%w: no program is named", ErrStart)
	}
	run, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(run, p.Args[0], p.Args[1:]...)
	cmd.Env = append([]string{}, p.Env...)
	cmd.Dir = p.Dir
	if p.Stdin != nil {
		cmd.Stdin = bytes.NewReader(p.Stdin)
	}
	out := &output{left: p.MaxOutput, full: cancel}
	cmd.Stdout = out
	cmd.WaitDelay = linger
	wait := cmd.Wait
	if !p.Terminal {
		wait = isolate(cmd, p.Trusted)
	}
	if err := cmd.Start(); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("%w: %w", ErrStart, err)
	}
	err := wait()
	switch {
	case out.over:
		err = ErrOutput
	case err != nil && ctx.Err() != nil:
		err = ctx.Err()
	case errors.Is(err, exec.ErrWaitDelay):
		err = nil // the program itself has ended, and well
	}
	return out.b, err
}

// output keeps the output of a program in one buffer.
type output struct {
	b    []byte
	left int
	over bool
	full func() // called when the program prints too much
}

func (o *output) Write(p []byte) (int, error) {
	n := min(len(p), o.left)
	if room := len(o.b) + n; room > cap(o.b) {
		grown := make([]byte, len(o.b), max(room, 2*cap(o.b)))
		copy(grown, o.b)
		clear(o.b)
		o.b = grown
	}
	o.b, o.left = append(o.b, p[:n]...), o.left-n
	if n < len(p) {
		o.over = true
		o.full()
		return n, ErrOutput
	}
	return n, nil
}

// Without returns an environment without the variables whose names begin with one of
// the prefixes, which are in upper case (Windows ignores case). It hides our
// variables from programs that are not part of us.
func Without(environ []string, prefixes ...string) []string {
	kept := make([]string, 0, len(environ))
next:
	for _, v := range environ {
		for _, prefix := range prefixes {
			if strings.HasPrefix(strings.ToUpper(v), prefix) {
				continue next
			}
		}
		kept = append(kept, v)
	}
	return kept
}
