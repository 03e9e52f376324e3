package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/mattn/go-runewidth"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail/demo"
)

// environment is what the program gets on the machine, on a terminal that can draw.
func (s *fakeMachine) environment(t *testing.T) []string {
	t.Helper()
	records, err := json.Marshal(s.srv)
	if err != nil {
		t.Fatal(err)
	}
	return []string{machineVar + "=" + string(records), cheaplyVar + "=1", "HOME=" + s.home, "TMPDIR=" + s.passing, "POSTERN_DB=" + s.env["POSTERN_DB"], "TERM=xterm-256color"}
}

// onTerminal starts the program on the machine.
func (s *fakeMachine) onTerminal(t *testing.T, environ []string, args ...string) *tty {
	t.Helper()
	return onTerminal(t, 150, 50, append(s.environment(t), environ...), args...)
}

func (s *fakeMachine) steps(plain bool) []step {
	// A choice of the lines is a number, one of the forms is made with the arrows.
	second, yes := down+enter, "y"
	if plain {
		second, yes = "2"+enter, "y"+enter
	}
	return []step{
		{"address", demo.Username + enter}, {"servers?", yes}, {"Password", s.env["PW"] + enter},
		{"What now?", second}, {"certificates (PEM)", s.ca + enter}, {"Name of the account", enter}, {"What may agents do", enter}, {"To whom", enter}, {"Your name", enter}, {"Whose mail", enter},
		{"keys kept?", enter}, {"Passphrase", passphrase + enter}, {"same again", passphrase + enter}, {"Connect a client?", enter}, {"Add the account", enter},
	}
}

// On a real terminal, with forms and line by line, init goes from an address to mail;
// what is typed as a password is on no screen.
func TestInitOnATerminal(t *testing.T) {
	t.Parallel()
	for name, plain := range map[string]bool{"NO_COLOR=1": false, "TERM=dumb": true} {
		if testing.Short() && plain { // person/passphrase.txtar goes line by line
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newMachine(t)
			x := onTerminal(t, 60, 50, append(s.environment(t), name), "init")
			steps := s.steps(plain)
			if client := &steps[len(steps)-2]; plain {
				client.types = "2" + enter
			}
			x.goes(steps...)
			x.sees("postern approve")
			x.quits(0)
			shown := x.written()
			s.noSecretIn(t, shown)
			if regexp.MustCompile(`\x1b\[[0-9;]*3[0-9][;m]`).MatchString(shown) {
				t.Errorf("there are colours:\n%q", shown)
			}
			if first, rest, _ := strings.Cut(shown, "servers?"); !plain && (strings.Contains(first, "go back") || !strings.Contains(rest, "go back")) {
				t.Errorf("the way back is not named at all questions but the first:\n%q", shown)
			}
			if plain {
				s.wantsToFit(t, 60, shown)
			}
			if a, err := s.vault(t).Account(t.Context(), "default"); err != nil || a.Email != demo.Username {
				t.Errorf("%+v, %v", a, err)
			}
		})
	}
}

// wantsToFit fails for what is drawn, and for a line that is wider than the window, but for one with
// a path or a fingerprint, which stands alone, a command to copy, and what was typed.
func (s *fakeMachine) wantsToFit(t *testing.T, columns int, shown string) {
	t.Helper()
	if strings.Contains(shown, "\x1b") || strings.Contains(shown, "?:") || strings.Count(shown, "\n") < 60 {
		t.Errorf("something is drawn, or a question ends in two marks:\n%q", shown)
	}
	for line := range strings.Lines(strings.ReplaceAll(shown, "\r", "")) {
		line = strings.TrimRight(line, "\n")
		if runewidth.StringWidth(line) > columns && !strings.HasPrefix(line, "    ") && len(strings.Fields(line)) > 1 && !strings.HasSuffix(line, ": "+s.ca) {
			t.Errorf("%d columns: %q", columns, line)
		}
	}
}

// Ctrl-C at a question of any kind ends the program, leaves the terminal as it was, and nothing
// else.
func TestInterruptAtAQuestionLeavesNothing(t *testing.T) {
	t.Parallel()
	for environ, questions := range map[string][]int{"ACCESSIBLE=": {0, 1, 2, 3, 4, 11, 14}, "ACCESSIBLE=1": {0, 2}} { // what reads a line is the same everywhere, but for the password
		for _, n := range questions {
			if testing.Short() && n != 3 {
				continue
			}
			t.Run(fmt.Sprint(environ, n), func(t *testing.T) {
				t.Parallel()
				s := newMachine(t)
				steps := s.steps(environ != "ACCESSIBLE=")
				x := s.onTerminal(t, []string{environ}, "init")
				x.goes(append(steps[:n:n], step{steps[n].sees, interrupt})...)
				x.sees("Nothing was stored.")
				x.quits(130)
				s.untouched(t)
			})
		}
	}
}

// A signal ends a form as the key does: it may come from elsewhere, or from a key between two forms.
func TestSignalAtAForm(t *testing.T) {
	t.Parallel()
	for _, sent := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		for range testmain.Rounds(2, 10) {
			s := newMachine(t)
			x := s.onTerminal(t, nil, "init")
			x.sees("Mail address")
			if err := x.cmd.Process.Signal(sent); err != nil {
				t.Fatal(err)
			}
			x.sees("Nothing was stored.")
			x.quits(130)
			s.untouched(t)
		}
	}
}

// The way back takes from the screen what it takes back.
func TestTheFormsTakeBackAnAnswer(t *testing.T) {
	slow(t, "TestInitOnATerminal")
	t.Parallel()
	const columns = 60
	s := newMachine(t)
	clear(s.srv)
	x := onTerminal(t, columns, 40, s.environment(t), "init")
	x.goes(step{"Mail address", demo.Username + enter}, step{"How is the mail read?", enter}, step{"imap.example.org:1234", "localhost:1" + enter},
		step{"IMAP connection protected?", enter}, step{"smtp.example.org:1234", "localhost:2" + enter}, step{"SMTP connection protected?", down + enter}, step{"Login name", escape}, step{"SMTP connection protected?", escape})
	x.sees("SMTP server", "localhost:2")
	d, err := newDisplay(columns, x.written())
	if err != nil {
		t.Fatal(err)
	}
	shown := strings.Join(text(d.lines), "\n")
	for line, want := range map[string]int{"IMAP server: localhost:1\n": 1, "SMTP server": 1, "STARTTLS": 0, "Login name": 0} {
		if strings.Count(shown, line) != want {
			t.Errorf("%q is not there %d times:\n%s", line, want, shown)
		}
	}
	x.types(backspace + "3" + enter) // in the proposal
	x.sees("SMTP server: localhost:3")
	x.types(interrupt)
	x.sees("Nothing was stored.")
	x.quits(130)
}
