package main

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/postern-mail/postern/mail/demo"
)

// down is the key that goes to the next choice of a form.
const down = "\x1b[B"

// A person's first day, on one terminal after the other: from an address to rules, to
// the mail, to a message that leaves when it has been looked at.
func TestAFirstDay(t *testing.T) {
	slow(t, "TestInitOnATerminal")
	s := newStation(t)
	x := s.onTerminal(t, nil, "init")
	for _, step := range []step{
		{"address", demo.Username + enter}, {"servers?", "y"}, {"Name of the account", "mine" + enter}, {"Password", s.env["PW"] + enter},
		{"What now?", down + enter}, {"certificates (PEM)", s.ca + enter},
		{"What may agents do", enter}, {"To whom may they write", "@example.org" + enter}, {"Your name", "Ann Lee" + enter},
		{"Whose mail", enter}, {"keys kept?", down + enter}, {"Add the account", enter},
		{"Connect a client now?", enter},
	} {
		x.sees(step.sees)
		x.types(step.types)
	}
	x.sees("mcpServers")
	x.quits(0)
	s.noSecretIn(t, x.written())
	x.keep("1-init")

	conf := filepath.Dir(filepath.Dir(s.env["POSTERN_DB"]))
	admin := append(s.environment(t), "POSTERN_ADMIN_KEY_FILE="+filepath.Join(conf, "postern-admin", "postern.db.admin.key"))
	x = onTerminal(t, 100, 36, admin, "repl")
	x.sees(promptSign)
	x.types("mail list --limit 3\r")
	x.sees("mine, INBOX", "Help desk", "3 messages", promptSign)
	x.types("mail get --uid 50\r")
	x.sees("Help desk <help@example.org>", "Subject: About this mailbox", "│ ", promptSign)
	x.types(`mail send --to bob@example.net --subject Hello --body "Are you there?"` + "\r")
	x.sees("Nothing is sent", "bob@example.net", promptSign)
	x.types(`mail send --to bob@example.org --subject Hello --body "Are you there?"` + "\r")
	x.sees("From:", "Ann Lee", "Goes to:", "bob@example.org", "> Are you there?", "leaves it waiting: ")
	x.types("\r")
	id := regexp.MustCompile(`outbox as ([a-z0-9]+)`).FindStringSubmatch(x.sees("It waits in the outbox as ", promptSign))[1]
	sent := len(s.servers.Outgoing())
	x.types("outbox list --state waiting\r")
	x.sees(id, promptSign)
	x.types("outbox approve " + id + "\r")
	x.sees("Goes to:", "bob@example.org", "> Are you there?", "leaves it as it is: ")
	x.types("y\r")
	x.sees("accepted", promptSign)
	x.types("quit\r")
	x.quits(0)
	x.keep("2-repl")
	if after := s.servers.Outgoing(); sent != 0 || len(after) != 1 || !strings.Contains(string(after[0].Raw), "Are you there?") {
		t.Errorf("%d messages had left before, %d have now", sent, len(after))
	}

	// The agent's key alone reads, and sends nothing.
	x = onTerminal(t, 100, 36, s.environment(t), "mail", "send", "--to", "bob@example.org", "--subject", "Again", "--body", "x", "--account", "mine")
	id = regexp.MustCompile(`in the outbox as ([a-z0-9]+)`).FindStringSubmatch(x.sees("Nothing was sent yet", "in the outbox as", "\n"))[1]
	x.quits(6)
	if len(s.servers.Outgoing()) != 1 {
		t.Error("a message left without its person's word")
	}
	x.keep("3-agent")

	// Outside the prompt a terminal shows it and asks, too.
	for _, step := range []struct {
		answer, says string
		status, sent int
	}{{"no", "Nothing was done", 6, 1}, {"y", "accepted", 0, 2}} {
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
	x.sees("You decide as the administrator, whose key is the one of "+conf, "1 of 3", "Subject:", "One", "> This is One.", "q ends: ")
	x.types("y\r")
	x.sees("It was sent", "2 of 3", "Two", "q ends: ")
	x.types("n\r")
	x.sees("is rejected", "3 of 3", "Three", "q ends: ")
	x.types("\r")
	x.sees("Still waiting: 1.")
	x.quits(6)
	x.keep("4-approve")
	x = onTerminal(t, 100, 36, s.environment(t), "approve", ids[2][:4])
	x.sees("1 of 1", "Three", "q ends: ")
	x.types("q\r")
	x.sees("Still waiting: 1.")
	x.quits(6)
	// The prompt says so, and decides like 'postern approve'.
	x = onTerminal(t, 100, 36, s.environment(t), "repl")
	x.sees("1 message waits for you: 'approve' shows it.", promptSign)
	x.types("approve " + ids[2][:4] + "\r")
	x.sees("You decide as the administrator", "1 of 1", "Three", "q ends: ")
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

var screens = flag.String("screens", "", "a directory where tests keep what a terminal was sent, to look at with cat")

// keep writes down what a terminal was sent.
func (x *tty) keep(name string) {
	x.t.Helper()
	if *screens != "" {
		if err := os.WriteFile(filepath.Join(*screens, name), []byte(x.written()), 0o600); err != nil {
			x.t.Error(err)
		}
	}
}
