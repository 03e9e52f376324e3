package main

import (
	"testing"

	"github.com/postern-mail/postern/gateway"
)

// An account is changed by questions where the command has no options, and forgotten after a
// yes alone, at the prompt and in a shell.
func TestAccountsAskAPerson(t *testing.T) {
	t.Parallel()
	servers, v := sampleServers(t), newVault(t)
	v.add(t, servers.Account(), servers.Password.Reveal())
	h := newHouse(t, v)
	mode := func() (mode string) {
		t.Helper()
		var shown struct {
			Account struct {
				Mode string `json:"mode"`
				Name string `json:"display_name"`
			} `json:"account"`
		}
		h.do(t, "account show demo --full", &shown)
		return shown.Account.Mode + " " + shown.Account.Name
	}
	x := onTerminal(t, 80, 40, v.environment(true), "repl", "--no-history")
	x.sees(promptSign)
	x.types("account edit demo\r")
	x.sees("Enter keeps", "Your name", "display-name []: ")
	x.types("Ann Lee\r")
	x.sees("What may agents do?", "mode [RW]: ")
	x.types("anything\r")
	x.sees("One of RO, draft, approve, reply, RW.", "mode [RW]: ")
	x.types("APPROVE\r")
	x.sees("destroy [on]: ")
	x.types("\r")
	x.sees("codes [mask]: ")
	x.types("\r")
	x.sees(promptSign)
	if got := mode(); got != "approve Ann Lee" {
		t.Errorf("it is %s", got)
	}
	x.types("account edit demo\r")
	x.sees("display-name [Ann Lee]: ")
	x.types("Eve\r")
	x.sees("mode [approve]: ")
	x.types("RO")
	x.sees("RO")
	x.types("\x03") // the question is read by now, and not only shown
	x.sees("Nothing was changed.", promptSign)
	if got := mode(); got != "approve Ann Lee" {
		t.Errorf("it is %s", got)
	}
	x.types("account remove demo\r")
	x.sees("demo (demo@example.org)", "anything else keeps it: ")
	x.types("\r")
	x.sees("Nothing was changed.", promptSign)
	x.types("\x04")
	x.quits(0)

	for _, step := range []struct {
		answer string
		status int
	}{{"no", 6}, {"y", 0}} {
		mode() // it is there
		x := onTerminal(t, 80, 40, v.environment(true), "account", "remove", "demo")
		x.sees("anything else keeps it: ")
		x.types(step.answer + "\r")
		x.quits(step.status)
	}
	if a := h.as(t, gateway.Principal{Name: "admin", Admin: true}, "account show demo"); a.Error.Code != "NOT_FOUND" {
		t.Errorf("it is there still: %s", a.raw)
	}
	// A program is asked nothing.
	x = onTerminal(t, 80, 40, v.environment(true), "account", "remove", "demo", "--json")
	x.sees(`"NOT_FOUND"`)
	x.quits(5)
}
