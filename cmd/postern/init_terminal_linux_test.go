package main

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/mattn/go-runewidth"

	"github.com/postern-mail/postern/mail/demo"
)

// environment is what the program gets on the station, on a terminal that can draw.
func (s *station) environment(t *testing.T) []string {
	t.Helper()
	records, err := json.Marshal(s.srv)
	if err != nil {
		t.Fatal(err)
	}
	return []string{stationVar + "=" + string(records), cheaplyVar + "=1", "HOME=" + s.home, "POSTERN_DB=" + s.env["POSTERN_DB"], "TERM=xterm-256color"}
}

// onTerminal starts the program on the station.
func (s *station) onTerminal(t *testing.T, environ []string, args ...string) *tty {
	t.Helper()
	return onTerminal(t, 150, 50, append(s.environment(t), environ...), args...)
}

const enter, interrupt, backspace = "\r", "\x03", "\x7f"

// step is a question and its answer.
type step struct{ sees, types string }

func (s *station) steps(plain bool) []step {
	// A choice of the lines is a number, one of the forms is made with the arrows.
	second, yes := down+enter, "y"
	if plain {
		second, yes = "2"+enter, "y"+enter
	}
	return []step{
		{"address", demo.Username + enter}, {"servers?", yes}, {"Password", s.env["PW"] + enter},
		{"What now?", second}, {"certificates (PEM)", s.ca + enter}, {"Name of the account", enter}, {"What may agents do", enter}, {"To whom", enter}, {"Your name", enter}, {"Whose mail", enter}, {"keys kept?", enter}, {"Passphrase", passphrase + enter}, {"same again", passphrase + enter}, {"Connect a client?", enter}, {"Add the account", enter},
	}
}

// On a real terminal, with forms and line by line, init goes from an address to mail;
// what is typed as a password is on no screen.
func TestInitOnATerminal(t *testing.T) {
	for name, environ := range map[string][]string{"forms": {"ACCESSIBLE="}, "lines": {"ACCESSIBLE=1"}, "dumb": {"TERM=dumb"}, "no colour": {"NO_COLOR=1"}} {
		if testing.Short() && name != "forms" { // TestAPassphraseFromInitToApprove goes line by line
			continue
		}
		t.Run(name, func(t *testing.T) {
			s := newStation(t)
			c := s.onTerminal(t, environ, "init")
			for _, step := range s.steps(name == "lines" || name == "dumb") {
				c.sees(step.sees)
				c.types(step.types)
			}
			c.sees("--print", "postern approve")
			c.quits(0)
			s.noSecretIn(t, c.written())
			if first, rest, _ := strings.Cut(c.written(), "servers?"); name == "forms" && (strings.Contains(first, "go back") || !strings.Contains(rest, "go back")) {
				t.Errorf("the way back is not named at all questions but the first:\n%q", c.written())
			}
			if name != "forms" && regexp.MustCompile(`\x1b\[[0-9;]*3[0-9][;m]`).MatchString(c.written()) {
				t.Errorf("there are colours:\n%q", c.written())
			}
			if (name == "lines" || name == "dumb") && (strings.Contains(c.written(), "\x1b") || strings.Contains(c.written(), "?:")) {
				t.Errorf("something is drawn, or a question ends in two marks:\n%q", c.written())
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
			// What reads a line is the same everywhere, but for the password.
			if testing.Short() && n != 3 || name == "lines" && n != 0 && n != 3 && n != len(steps)-1 {
				continue
			}
			c := s.onTerminal(t, environ, "init")
			for _, step := range steps[:n] {
				c.sees(step.sees)
				c.types(step.types)
			}
			c.sees(steps[n].sees)
			c.types(interrupt)
			c.sees("Nothing was stored.")
			c.quits(130)
			s.untouched(t)
		}
	}
}

// What init says fits the window: no line is wider but one with a path or a fingerprint, which
// stands alone, and a command to copy.
func TestInitFitsTheWindow(t *testing.T) {
	slow(t, "TestAPassphraseFromInitToApprove")
	for _, columns := range []int{60, 80} {
		s := newStation(t)
		c := onTerminal(t, columns, 40, append(s.environment(t), "ACCESSIBLE=1"), "init")
		for _, step := range s.steps(true) {
			c.sees(step.sees)
			if step.sees == "Connect a client?" {
				step.types = "2" + enter
			}
			c.types(step.types)
		}
		c.sees("Claude Code starts Postern", "postern approve")
		c.quits(0)
		lines := 0
		for line := range strings.Lines(strings.ReplaceAll(c.written(), "\r", "")) {
			line = strings.TrimRight(line, "\n")
			lines++
			if strings.HasPrefix(line, "    ") || runewidth.StringWidth(line) <= columns || len(strings.Fields(line)) == 1 || strings.HasSuffix(line, ": "+s.ca) { // typed
				continue
			}
			t.Errorf("%d columns: %q", columns, line)
		}
		if lines < 60 {
			t.Errorf("%d lines", lines)
		}
	}
}

// Nothing that a form shows is broken, and the way back takes from the screen what it takes back.
func TestTheFormsBreakNoWordAndTakeBackAnAnswer(t *testing.T) {
	slow(t, "TestInitOnATerminal")
	for _, columns := range []int{60, 80, 100} {
		s := newStation(t)
		clear(s.srv)
		c := onTerminal(t, columns, 40, s.environment(t), "init")
		for _, step := range []step{{"Mail address", demo.Username + enter}, {"How is the mail read?", enter}, {"imap.example.org:1234", "localhost:1" + enter},
			{"IMAP connection protected?", enter}, {"smtp.example.org:1234", "localhost:2" + enter}, {"SMTP connection protected?", down + enter}, {"Login name", escape}, {"SMTP connection protected?", escape}} {
			c.sees(step.sees)
			c.types(step.types)
		}
		c.sees("SMTP server", "localhost:2")
		d, err := newDisplay(columns, c.written())
		if err != nil {
			t.Fatal(err)
		}
		shown := strings.Join(text(d.lines), "\n")
		for line, want := range map[string]int{"IMAP server: localhost:1\n": 1, "SMTP server": 1, "STARTTLS": 0, "Login name": 0} {
			if strings.Count(shown, line) != want {
				t.Errorf("%d columns: %q is not there %d times:\n%s", columns, line, want, shown)
			}
		}
		c.types(backspace + "3" + enter) // in the proposal
		c.sees("SMTP server: localhost:3")
		c.types(interrupt)
		c.sees("Nothing was stored.")
		c.quits(130)
	}
}
