package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/postern-mail/postern/mail/demo"
)

// environment is what the program gets on the station, on a terminal that can draw.
func (s *station) environment(t *testing.T) []string {
	t.Helper()
	records, err := json.Marshal(s.srv)
	if err != nil {
		t.Fatal(err)
	}
	return []string{stationVar + "=" + string(records), "HOME=" + s.home, "POSTERN_DB=" + s.env["POSTERN_DB"], "TERM=xterm-256color"}
}

// onTerminal starts the program on the station.
func (s *station) onTerminal(t *testing.T, environ []string, args ...string) *tty {
	t.Helper()
	return onTerminal(t, 150, 50, append(s.environment(t), environ...), args...)
}

const enter, interrupt = "\r", "\x03"

// step is a question and its answer.
type step struct{ sees, types string }

func (s *station) steps() []step {
	return []step{
		{"address", demo.Username + enter}, {"servers?", "y" + enter}, {"Name of the account", enter}, {"Password", s.env["PW"] + enter},
		{"What now?", "1" + enter}, {"certificates (PEM)", s.ca + enter}, {"What may agents do", enter}, {"Whose mail", enter}, {"keys kept?", enter}, {"add the account", enter},
	}
}

// On a real terminal init goes from an address to mail, and draws nothing; what is typed as a
// password is on no screen.
func TestInitOnATerminal(t *testing.T) {
	s := newStation(t)
	c := s.onTerminal(t, nil, "init")
	for _, step := range s.steps() {
		c.sees(step.sees)
		c.types(step.types)
	}
	c.sees("mcpServers")
	c.quits(0)
	s.noSecretIn(t, c.written())
	if strings.Contains(c.written(), "\x1b") {
		t.Errorf("something is drawn:\n%q", c.written())
	}
	if a, err := s.vault(t).Account(t.Context(), "default"); err != nil || a.Email != demo.Username {
		t.Errorf("%+v, %v", a, err)
	}
}

// Ctrl-C at any question ends the program, leaves the terminal as it was, and nothing
// else.
func TestInterruptAtAnyQuestionLeavesNothing(t *testing.T) {
	s := newStation(t)
	steps := s.steps()
	for n := range steps {
		// What reads a line is the same everywhere, but for the password.
		if testing.Short() && n != 3 || n != 0 && n != 3 && n != len(steps)-1 {
			continue
		}
		c := s.onTerminal(t, nil, "init")
		for _, step := range steps[:n] {
			c.sees(step.sees)
			c.types(step.types)
		}
		c.sees(steps[n].sees)
		c.types(interrupt)
		c.quits(130)
		s.untouched(t)
	}
}
