package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// tty is the program on a terminal of its own, and what it wrote there.
type tty struct {
	t      failing
	master *os.File
	cmd    *exec.Cmd
	before unix.Termios

	mu     sync.Mutex
	more   *sync.Cond
	raw    strings.Builder
	mark   int // of what has been looked at
	closed bool
}

const promptSign = "postern> "

// enter and the other keys, as a terminal sends them: down is to the next choice of a form, escape
// to the question before, clearLine empties a line.
const enter, interrupt, backspace, endOfInput = "\r", "\x03", "\x7f", "\x04"
const down, up, clearLine, escape = "\x1b[B", "\x1b[A", "\x15", "\x1b"

// step is a question and its answer.
type step struct{ sees, types string }

// erased is a line of progress, which is gone behind it.
var erased = regexp.MustCompile(`[^\n]*\x1b\[K`)

// control is what a program sends to a terminal beside text.
var control = regexp.MustCompile(`\x1b(\[[0-9;?<>=$]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[()][A-Z0-9]|[=>78PM])`)

var waited = flag.Duration("waited", 5*time.Minute, "how long a test waits for what a terminal does not show")

// atPrompt starts the program's prompt, which is there when it returns.
func atPrompt(t *testing.T, columns, lines int, env []string, args ...string) *tty {
	t.Helper()
	x := onTerminal(t, columns, lines, env, args...)
	x.sees(promptSign)
	return x
}

// onTerminal starts the program on a terminal of that many columns and lines.
func onTerminal(t *testing.T, columns, lines int, env []string, args ...string) *tty {
	t.Helper()
	master, slave := newTerminal(t)
	x := &tty{t: t, master: master, cmd: program(t, append([]string{"TERM=xterm", "NO_COLOR="}, env...), args...)}
	x.more = sync.NewCond(&x.mu)
	x.resize(columns, lines)
	x.before = *x.mode()
	x.cmd.Stdin, x.cmd.Stdout, x.cmd.Stderr = slave, slave, slave
	x.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	err := x.cmd.Start()
	_ = slave.Close() // so that the end of the program is the end of what is read
	if err != nil {
		t.Fatal(err)
	}
	go x.read()
	late := time.AfterFunc(*waited, x.end) // no part of any test
	t.Cleanup(func() {
		late.Stop()
		_ = x.cmd.Process.Kill()
		_, _ = x.cmd.Process.Wait()
		_ = x.master.Close()
	})
	return x
}

// shownOnTerminal runs the program's own code, where it asks nothing, on a terminal of that many
// columns without colours. A process of its own would cost a hundred times as much.
func shownOnTerminal(t *testing.T, columns int, env []string, args ...string) (status int, shown string) {
	t.Helper()
	master, slave := newTerminal(t)
	defer master.Close()
	(&tty{t: t, master: master}).resize(columns, 40)
	p := newProcess(t, append([]string{"TERM=xterm", "NO_COLOR=1"}, env...)...)
	p.args, p.stdin, p.stdout, p.stderr = args, slave, slave, slave
	var written []byte
	var reading sync.WaitGroup
	reading.Go(func() { written, _ = io.ReadAll(master) }) // until nobody has the other side
	status = p.run(t.Context())
	_ = slave.Close()
	reading.Wait()
	return status, erased.ReplaceAllString(strings.ReplaceAll(string(written), "\r", ""), "")
}

func (x *tty) read() {
	defer x.end()
	buf := make([]byte, 4096)
	for {
		n, err := x.master.Read(buf)
		x.mu.Lock()
		x.raw.Write(buf[:n])
		x.more.Broadcast()
		x.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (x *tty) end() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closed = true
	x.more.Broadcast()
}

func (x *tty) mode() *unix.Termios {
	x.t.Helper()
	m, err := unix.IoctlGetTermios(int(x.master.Fd()), unix.TCGETS)
	if err != nil {
		x.t.Fatalf("%v", err)
	}
	return m
}

func (x *tty) resize(columns, lines int) {
	x.t.Helper()
	if err := unix.IoctlSetWinsize(int(x.master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(lines), Col: uint16(columns)}); err != nil {
		x.t.Fatalf("%v", err)
	}
}

// types types keys, and looks at nothing that was written before.
func (x *tty) types(keys string) {
	x.t.Helper()
	x.mu.Lock()
	x.mark = x.raw.Len()
	x.mu.Unlock()
	if _, err := x.master.WriteString(keys); err != nil {
		x.t.Fatalf("%v", err)
	}
}

// sees waits until all of the texts have been written, in this order, and returns
// what was, without what moves a cursor.
func (x *tty) sees(texts ...string) string {
	x.t.Helper()
	x.mu.Lock()
	defer x.mu.Unlock()
	for {
		out := strings.ReplaceAll(control.ReplaceAllString(x.raw.String()[x.mark:], ""), "\r", "")
		rest, found := out, true
		for _, s := range texts {
			var ok bool
			if _, rest, ok = strings.Cut(rest, s); !ok {
				found = false
			}
		}
		if found {
			return out
		}
		if x.closed {
			x.t.Fatalf("%q is not among what the terminal shows:\n%s", texts, out)
		}
		x.more.Wait()
	}
}

// enters types a line, waits for what it brings as sees does, and returns that.
func (x *tty) enters(line string, texts ...string) string {
	x.t.Helper()
	x.types(line + enter)
	return x.sees(texts...)
}

// runs is enters at the prompt, which is there again behind it.
func (x *tty) runs(line string, texts ...string) string {
	x.t.Helper()
	return x.enters(line, append(texts, "\n"+promptSign)...)
}

// leaves ends the prompt as a person does.
func (x *tty) leaves() {
	x.t.Helper()
	x.types("quit" + enter)
	x.quits(0)
}

// goes types each answer once the question is seen.
func (x *tty) goes(steps ...step) {
	x.t.Helper()
	for _, s := range steps {
		x.sees(s.sees)
		x.types(s.types)
	}
}

// writes waits until more than so many bytes are written; it does not hold where so long none
// come, or no more can. The caller holds mu.
func (x *tty) writes(known int, quiet time.Duration) bool {
	late := false
	timer := time.AfterFunc(quiet, func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		late = true
		x.more.Broadcast()
	})
	defer timer.Stop()
	for x.raw.Len() == known && !x.closed && !late {
		x.more.Wait()
	}
	return x.raw.Len() > known
}

// written is everything the program wrote.
func (x *tty) written() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.raw.String()
}

// quits waits for the end of the program and checks that the terminal is as it was.
func (x *tty) quits(status int) {
	x.t.Helper()
	done := make(chan error, 1)
	go func() { done <- x.cmd.Wait() }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		x.t.Fatalf("it does not end; the terminal shows\n%s", x.written())
	}
	x.mu.Lock()
	for !x.closed { // what it wrote last may not have been read
		x.more.Wait()
	}
	x.mu.Unlock()
	if got := x.cmd.ProcessState.ExitCode(); got != status {
		x.t.Errorf("status %d, want %d", got, status)
	}
	if m := x.mode(); m.Lflag != x.before.Lflag || m.Iflag != x.before.Iflag || m.Oflag != x.before.Oflag {
		x.t.Errorf("the terminal is left in another mode: %+v, was %+v", *m, x.before)
	}
}

// newTerminal opens a pseudo-terminal: the person's side and the program's. The caller
// closes both.
func newTerminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return person, program
}
