package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/postern-mail/postern/mail/demo"
)

// terminal is a program on a terminal of its own, with a person in front of it.
type terminal struct {
	t      *testing.T
	master *os.File
	c      *exec.Cmd
	before *unix.Termios

	mu     sync.Mutex
	more   *sync.Cond
	screen bytes.Buffer // everything that was ever printed
	ended  bool
	read   int // how much of it the person has seen
}

// onTerminal starts the program on the station.
func (s *station) onTerminal(t *testing.T, environ []string, args ...string) *terminal {
	t.Helper()
	master, slave := newTerminal(t)
	err := unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 50, Col: 150})
	if err != nil {
		t.Fatal(err)
	}
	before, err := unix.IoctlGetTermios(int(master.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	defer slave.Close()
	records, err := json.Marshal(s.srv)
	if err != nil {
		t.Fatal(err)
	}
	term := &terminal{t: t, master: master, before: before, c: program(t, append([]string{stationVar + "=" + string(records), "HOME=" + s.home, "POSTERN_DB=" + s.env["POSTERN_DB"], "TERM=xterm-256color"}, environ...), args...)}
	term.more = sync.NewCond(&term.mu)
	term.c.Stdin, term.c.Stdout, term.c.Stderr = slave, slave, slave
	term.c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Pdeathsig: syscall.SIGKILL}
	if err := term.c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = term.c.Process.Kill()
		_ = term.c.Wait()
		_ = master.Close()
	})
	go term.watch()
	return term
}

// watch ends when the program has closed the terminal.
func (c *terminal) watch() {
	buffer := make([]byte, 4096)
	for {
		n, err := c.master.Read(buffer)
		c.mu.Lock()
		c.screen.Write(buffer[:n])
		c.ended = err != nil
		c.more.Broadcast()
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}

var escapes = regexp.MustCompile(`\x1b(\[[0-9;?<>=$]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[()][A-Z0-9]|[=>78PM])`)

// sees waits until the text is on the screen, after what was seen before.
func (c *terminal) sees(text string) {
	c.t.Helper()
	deadline := time.AfterFunc(time.Minute, func() {
		c.mu.Lock()
		c.ended = true
		c.more.Broadcast()
		c.mu.Unlock()
	})
	defer deadline.Stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		shown := escapes.ReplaceAllString(c.screen.String(), "")
		if at := strings.Index(shown[min(c.read, len(shown)):], text); at >= 0 {
			c.read += at + len(text)
			return
		}
		if c.ended {
			c.t.Fatalf("%q does not appear:\n%s", text, shown)
		}
		c.more.Wait()
	}
}

func (c *terminal) types(text string) {
	c.t.Helper()
	if _, err := c.master.WriteString(text); err != nil {
		c.t.Fatal(err)
	}
}

// status waits for the program's end.
func (c *terminal) status() int {
	_ = c.c.Wait()
	return c.c.ProcessState.ExitCode()
}

func (c *terminal) shown() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.screen.String()
}

const enter, interrupt = "\r", "\x03"

// step is a question and its answer.
type step struct{ sees, types string }

func (s *station) steps(plain bool) []step {
	// A choice of the lines is a number, one of the forms is made with the arrows.
	first, yes := enter, "y"
	if plain {
		first, yes = "1"+enter, "y"+enter
	}
	return []step{
		{"address", demo.Username + enter}, {"servers?", yes}, {"Name of the account", enter}, {"Password", s.env["PW"] + enter},
		{"What now?", first}, {"certificates (PEM)", s.ca + enter}, {"What may agents do", enter}, {"Whose mail", enter}, {"keys kept?", enter}, {"add the account", enter},
	}
}

// On a real terminal, with forms and line by line, init goes from an address to mail;
// what is typed as a password is on no screen.
func TestInitOnATerminal(t *testing.T) {
	for name, environ := range map[string][]string{"forms": {"ACCESSIBLE="}, "lines": {"ACCESSIBLE=1"}, "dumb": {"TERM=dumb"}, "no colour": {"NO_COLOR=1"}} {
		t.Run(name, func(t *testing.T) {
			s := newStation(t)
			c := s.onTerminal(t, environ, "init")
			for _, step := range s.steps(name == "lines" || name == "dumb") {
				c.sees(step.sees)
				c.types(step.types)
			}
			c.sees("mcpServers")
			if status := c.status(); status != 0 {
				t.Fatalf("status %d:\n%s", status, c.shown())
			}
			s.noSecretIn(t, c.shown())
			if name != "forms" && regexp.MustCompile(`\x1b\[[0-9;]*3[0-9][;m]`).MatchString(c.shown()) {
				t.Errorf("there are colours:\n%q", c.shown())
			}
			if (name == "lines" || name == "dumb") && strings.Contains(c.shown(), "\x1b") {
				t.Errorf("something is drawn:\n%q", c.shown())
			}
			if a, err := s.vault(t).Account(t.Context(), "default"); err != nil || a.Email != demo.Username {
				t.Errorf("%+v, %v", a, err)
			}
		})
	}
}

// Ctrl-C at any question ends the program, leaves the terminal as it was, and nothing
// else.
func TestInterruptAtAnyQuestionLeavesNothing(t *testing.T) {
	s := newStation(t)
	for name, environ := range map[string][]string{"forms": nil, "lines": {"ACCESSIBLE=1"}} {
		steps := s.steps(name == "lines")
		for n := range steps {
			if name == "lines" && n != 0 && n != 3 && n != len(steps)-1 {
				continue // what reads a line is the same everywhere, but for the password
			}
			c := s.onTerminal(t, environ, "init")
			for _, step := range steps[:n] {
				c.sees(step.sees)
				c.types(step.types)
			}
			c.sees(steps[n].sees)
			c.types(interrupt)
			if status := c.status(); status != 130 {
				t.Errorf("%s, question %d: status %d\n%s", name, n+1, status, c.shown())
			}
			after, err := unix.IoctlGetTermios(int(c.master.Fd()), unix.TCGETS)
			if err != nil || after.Lflag != c.before.Lflag || after.Iflag != c.before.Iflag {
				t.Errorf("%s, question %d: the terminal was %#x and is left with %#x, %v", name, n+1, c.before.Lflag, after.Lflag, err)
			}
			s.untouched(t)
		}
	}
}
