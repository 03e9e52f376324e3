package main

import (
	"strings"
	"testing"

	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
)

// Two persons at two prompts of one vault: each sees what the other one did, and nothing is
// done twice.
func TestTwoPromptsOfOneVault(t *testing.T) {
	t.Parallel()
	servers, v := sampleServers(t), newVault(t)
	a := servers.Account()
	a.Mode, a.AllowOut = mail.Approve, mail.AllowList{Enabled: true, Entries: []string{"*"}}
	v.add(t, a, servers.Password.Reveal())
	newHouse(t, v).as(t, gateway.Principal{Name: mail.AgentPrincipal}, "mail send --to ann@example.org --subject Hi --body x")
	var both [2]*tty
	for i := range both {
		both[i] = onTerminal(t, 80, 40, append(v.environment(true), "NO_COLOR=1", "PAGER=", "HOME="+t.TempDir()), "repl", "--no-history")
		both[i].sees("1 message waits for you", promptSign)
		both[i].types("inbox 2\r")
		both[i].sees("Read one: read 50", promptSign)
	}
	for _, x := range both {
		x.types("approve\r")
		x.sees("1 of 1", "q ends: ")
	}
	both[0].types("y\r")
	both[0].sees("It was sent", promptSign)
	both[1].types("y\r")
	if got := both[1].sees("Somebody else decided about it. It was sent.", "\n"+promptSign); strings.Contains(got, "Still waiting") {
		t.Error(got)
	}
	if n := len(servers.Outgoing()); n != 1 {
		t.Errorf("%d messages left", n)
	}
	both[0].types("archive 50\r")
	both[0].sees("Moved 1 message to Archive.", promptSign)
	both[1].types("archive 50\r")
	both[1].sees("There is no such message.", promptSign)
	both[0].types("undo\r")
	both[0].sees("moved back", promptSign)
	both[1].types("undo\r")
	both[1].sees("nothing to take back", promptSign)
	both[1].types("inbox 1\r")
	both[1].sees("Read one: read 51", promptSign)
	for _, x := range both {
		x.types("quit\r")
		x.quits(0)
	}
}
