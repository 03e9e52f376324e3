package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/postern-mail/postern/mail/demo"
)

// down, clearLine and escape are keys of a form: to its next choice, to an empty line, to the
// question before.
const down, clearLine, escape = "\x1b[B", "\x15", "\x1b"

// A person's first day, on one terminal after the other: from an address to rules, with
// an answer that is none and a way back, to an agent's client, to the mail, and to a
// message that leaves when it has been looked at. The screens are golden at four widths. What
// differs from run to run is as wide each time, so that nothing moves when the test writes it
// as something that does not differ: the home directory, the ports of the servers, ids, times
// and the fingerprint of the rules.
func TestAFirstDay(t *testing.T) {
	slow(t, "TestInitOnATerminal")
	for _, width := range []int{60, 80, 100, 160} {
		t.Run(fmt.Sprint(width), func(t *testing.T) { firstDay(t, width) })
	}
}

func firstDay(t *testing.T, width int) {
	s := newStationAt(t, thatDay)
	s.home = shortHome(t)
	ca := filepath.Join(s.home, "ca.pem")
	writeFile(t, ca, string(s.servers.CAPEM))
	writeFile(t, filepath.Join(s.home, ".claude.json"), "{}")
	env := append(s.environment(t), "POSTERN_DB=", "XDG_CONFIG_HOME=", "XDG_DATA_HOME=", "XDG_STATE_HOME=", "XDG_CACHE_HOME=", "XDG_RUNTIME_DIR=", "TZ=UTC", "PAGER=")
	g := newGolden(t, fmt.Sprintf("first-%d.txt", width), width, s.home, "/home/anna", fmt.Sprint(s.srv["imaps"].Port), "10993", fmt.Sprint(s.srv["submissions"].Port), "10465")
	start := func(args ...string) *tty { return onTerminal(t, width, 200, env, args...) }

	x := start("init")
	for _, step := range []step{
		{"Mail address", "demo.example.org" + enter}, {"is not an address", clearLine + demo.Username + enter},
		{"Use these servers?", "y"}, {"Password", escape}, {"Use these servers?", "y"},
		{"Password", s.env["PW"] + enter}, {"What now?", down + enter}, {"File of certificates", "~/ca.pem" + enter}, {"Name of the account", enter},
		{"What may agents do", enter}, {"To whom may they write?", enter}, {"Your name", "Anna Lee" + enter}, {"Whose mail", enter},
		{"Where are the keys kept?", enter}, {"Passphrase", passphrase + enter}, {"The same again", passphrase + enter},
		{"Connect a client?", enter}, {"Add the account", enter},
	} {
		g.shows(x, step.sees)
		x.types(step.types)
	}
	x.quits(0)
	g.shows(x, "what came today?")
	s.noSecretIn(t, x.written())

	x = start("doctor")
	x.quits(0)
	g.shows(x, "vault")
	x = start("inbox", "5")
	x.quits(0)
	g.shows(x, "Help desk")
	x = start("mail", "send", "--to", "bob@example.org", "--subject", "The projector", "--body", "It works. Shall I bring it on Friday?")
	x.quits(6)
	g.shows(x, "Nothing was sent yet")
	x = start("approve")
	g.shows(x, "assphrase")
	x.types(passphrase + enter)
	g.shows(x, "Send exactly this?")
	if n := len(s.servers.Outgoing()); n != 0 {
		t.Errorf("%d messages left unasked", n)
	}
	x.types("y" + enter)
	x.quits(0)
	g.shows(x, "It was sent.")
	if sent := s.servers.Outgoing(); len(sent) != 1 || !strings.Contains(string(sent[0].Raw), "Shall I bring it on Friday?") {
		t.Errorf("%d messages left", len(sent))
	}
	g.end()
}

// shortHome is a home directory whose name is as long as that of /home/anna.
func shortHome(t *testing.T) string {
	t.Helper()
	for {
		home := "/tmp/" + strings.ToLower(rand.Text()[:5])
		err := os.Mkdir(home, 0o700)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := os.RemoveAll(home); err != nil {
				t.Error(err)
			}
		})
		return home
	}
}

// What waits is decided about on a terminal, whatever command shows it.
func TestDecidingOnATerminal(t *testing.T) {
	slow(t, "TestAFirstDay")
	s := newStation(t)
	p, _ := s.process(t, "")
	if err := p.init(t.Context(), []string{"--accept-found", "--admin-key", "file", "--agent-key", "file", "--allow-out", "@example.org", "mine", "--mode", "approve", "--email", demo.Username, "--ca-file", s.ca, "--password-from", "env:PW"}); err != nil {
		t.Fatal(err)
	}
	conf := filepath.Dir(filepath.Dir(s.env["POSTERN_DB"]))
	admin := append(s.environment(t), "POSTERN_ADMIN_KEY_FILE="+filepath.Join(conf, "postern-admin", "postern.db.admin.key"))
	// A recipient that is not allowed is refused, and a message that waits is decided about at the prompt.
	x := onTerminal(t, 100, 36, admin, "repl")
	x.sees(promptSign)
	x.types(`mail send --to bob@example.net --subject Hello --body "Are you there?"` + "\r")
	x.sees("Nothing is sent", "bob@example.net", promptSign)
	x.types(`mail send --to bob@example.org --subject Hello --body "Are you there?"` + "\r")
	x.sees("From:", demo.Username, "Goes to:", "bob@example.org", "│ Are you there?", "leaves it waiting: ")
	x.types("\r")
	id := regexp.MustCompile(`outbox as ([a-z0-9]+)`).FindStringSubmatch(x.sees("It waits in the outbox as ", promptSign))[1]
	x.types("outbox list --state waiting\r")
	x.sees(id, promptSign)
	x.types("outbox approve " + id + "\r")
	x.sees("Goes to:", "bob@example.org", "│ Are you there?", "leaves it as it is: ")
	if n := len(s.servers.Outgoing()); n != 0 {
		t.Errorf("%d messages left unasked", n)
	}
	x.types("y\r")
	x.sees("(sent)", "It was sent", promptSign)
	x.types("quit\r")
	x.quits(0)
	if sent := s.servers.Outgoing(); len(sent) != 1 || !strings.Contains(string(sent[0].Raw), "Are you there?") {
		t.Errorf("%d messages left", len(sent))
	}

	// The agent's key alone reads, and sends nothing.
	x = onTerminal(t, 100, 36, s.environment(t), "mail", "send", "--to", "bob@example.org", "--subject", "Again", "--body", "x", "--account", "mine")
	id = regexp.MustCompile(`in the outbox as ([a-z0-9]+)`).FindStringSubmatch(x.sees("Nothing was sent yet", "in the outbox as", "\n"))[1]
	x.quits(6)
	if len(s.servers.Outgoing()) != 1 {
		t.Error("a message left without its person's word")
	}

	// Outside the prompt a terminal shows it and asks, too.
	for _, step := range []struct {
		answer, says string
		status, sent int
	}{{"no", "Nothing was done", 6, 1}, {"y", "(sent)", 0, 2}} {
		x = onTerminal(t, 100, 36, admin, "outbox", "approve", id)
		x.sees("Subject:", "Again", "leaves it as it is: ")
		x.types(step.answer + "\r")
		x.sees(step.says)
		x.quits(step.status)
		if n := len(s.servers.Outgoing()); n != step.sent {
			t.Errorf("%s: %d messages left", step.answer, n)
		}
	}

	// 'postern approve' walks through what waits, with the key that init made.
	var ids []string
	for _, subject := range []string{"One", "Two", "Three"} {
		x = onTerminal(t, 100, 36, s.environment(t), "mail", "send", "--to", "bob@example.org", "--subject", subject, "--body", "This is "+subject+".", "--account", "mine")
		ids = append(ids, regexp.MustCompile(`in the outbox as ([a-z0-9]+)`).FindStringSubmatch(x.sees("Nothing was sent yet", "in the outbox as", "\n"))[1])
		x.quits(6)
	}
	x = onTerminal(t, 100, 36, s.environment(t), "approve")
	x.sees("You act as the administrator, whose key is the one of", conf, "1 of 3", "Subject:", "One", "│ This is One.", "q ends: ")
	x.types("y\r")
	x.sees("It was sent", "2 of 3", "Two", "q ends: ")
	x.types("n\r")
	x.sees("is rejected", "3 of 3", "Three", "q ends: ")
	x.types("\r")
	x.sees("Still waiting: 1.")
	x.quits(6)
	x = onTerminal(t, 100, 36, s.environment(t), "approve", ids[2][:4])
	x.sees("1 of 1", "Three", "q ends: ")
	x.types("q\r")
	x.sees("Still waiting: 1.")
	x.quits(6)
	// The prompt says so, and decides like 'postern approve'.
	x = onTerminal(t, 100, 36, s.environment(t), "repl")
	x.sees("1 message waits for you: 'approve' shows it.", promptSign)
	x.types("approve " + ids[2][:4] + "\r")
	x.sees("You act as the administrator", "1 of 1", "Three", "q ends: ")
	x.types("q\r")
	x.sees("Still waiting: 1.", promptSign)
	x.types("quit\r")
	x.quits(0)
	x = onTerminal(t, 100, 36, s.environment(t), "approve", ids[2][:4])
	x.sees("1 of 1", "Three", "q ends: ")
	x.types("y\r")
	x.sees("It was sent.")
	x.quits(0)
	for _, step := range []struct {
		says   string
		status int
		args   []string
	}{{"Nothing waits for you.", 0, []string{"approve"}}, {"Nothing that waits has this id", 5, []string{"approve", ids[0]}}} {
		x = onTerminal(t, 100, 36, s.environment(t), step.args...)
		x.sees(step.says)
		x.quits(step.status)
	}
	if after := s.servers.Outgoing(); len(after) != 4 {
		t.Errorf("%d messages left", len(after))
	}
}
