package main

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/postern-mail/postern/mail/demo"
)

// A person's first hour, on one terminal after the other: from an address to rules, with
// an answer that is none and a way back, to an agent's client, to the mail, and to a
// message that leaves when it has been looked at. The screens are golden at four widths. What
// differs from run to run is as wide each time, so that nothing moves when the test writes it
// as something that does not differ: the home directory, the ports of the servers, ids, times
// and the fingerprint of the rules.
func TestInitIsDrawn(t *testing.T) {
	slow(t, "TestInitOnATerminal")
	t.Parallel()
	for _, width := range []int{60, 80, 100, 160} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			t.Parallel()
			s := newMachineAt(t, thatDay)
			s.home = shortHome(t)
			ca := writeFile(t, filepath.Join(s.home, "ca.pem"), string(s.servers.CAPEM))
			writeFile(t, filepath.Join(s.home, ".claude.json"), "{}")
			env := append(s.environment(t), "POSTERN_DB=", "XDG_CONFIG_HOME=", "XDG_DATA_HOME=", "XDG_STATE_HOME=", "XDG_CACHE_HOME=", "XDG_RUNTIME_DIR=", "TZ=UTC", "PAGER=")
			g := newGolden(t, fmt.Sprintf("first-%d.txt", width), width, s.home, "/home/anna", fmt.Sprint(s.srv["imaps"].Port), "10993", fmt.Sprint(s.srv["submissions"].Port), "10465")
			run := func(status int, title string, args ...string) {
				t.Helper()
				x := onTerminal(t, width, 200, env, args...)
				x.quits(status)
				g.shows(x, title)
			}
			x := onTerminal(t, width, 200, env, "init")
			g.goes(x, step{"Mail address", "demo.example.org" + enter}, step{"is not an address", clearLine + demo.Username + enter},
				step{"Use these servers?", "y"}, step{"Password", escape}, step{"Use these servers?", "y"},
				step{"Password", s.env["PW"] + enter}, step{"What now?", down + enter}, step{"File of certificates", strings.Replace(ca, s.home, "~", 1) + enter}, step{"Name of the account", enter},
				step{"What may agents do", enter}, step{"To whom may they write?", enter}, step{"Your name", "Anna Lee" + enter}, step{"Whose mail", enter},
				step{"Where are the keys kept?", enter}, step{"Passphrase", passphrase + enter}, step{"The same again", passphrase + enter},
				step{"Connect a client?", enter}, step{"Add the account", enter})
			x.quits(0)
			g.shows(x, "what came today?")
			s.noSecretIn(t, x.written())

			run(0, "vault", "doctor")
			run(0, "Help desk", "inbox", "5")
			run(6, "Nothing was sent yet", "mail", "send", "--to", "bob@example.org", "--subject", "The projector", "--body", "It works. Shall I bring it on Friday?")
			x = onTerminal(t, width, 200, env, "approve")
			g.goes(x, step{"assphrase", passphrase + enter}, step{"Send exactly this?", ""})
			if n := len(s.servers.Outgoing()); n != 0 {
				t.Errorf("%d messages left unasked", n)
			}
			x.types("y" + enter)
			x.quits(0)
			g.shows(x, "It was sent.")
			if n := len(s.servers.Outgoing()); n != 1 {
				t.Errorf("%d messages left", n)
			}
			g.end()
		})
	}
}

// shortHome is a home directory whose name is as long as that of /home/anna.
func shortHome(t *testing.T) string {
	t.Helper()
	home := "/tmp/" + strings.ToLower(rand.Text()[:5])
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(home); err != nil {
			t.Error(err)
		}
	})
	return home
}
