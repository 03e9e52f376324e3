package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/postern-mail/postern/cmd/postern/internal/house"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/demo"
	"github.com/postern-mail/postern/vault"
)

// From init, which asks twice, to a message that leaves: the administrator's key is behind a
// passphrase that is on no screen, and without which nothing is decided.
func TestAPassphraseFromInitToApprove(t *testing.T) {
	t.Parallel()
	s := newMachine(t)
	environ := []string{"ACCESSIBLE=1"}
	if !testing.Short() { // as the program does
		environ = append(environ, cheaplyVar+"=")
	}
	x := s.onTerminal(t, environ, "init")
	steps := s.steps(true)
	for _, step := range steps {
		x.sees(step.sees)
		if step.sees == "Passphrase" { // what is too short or another is asked again
			for _, typed := range []step2{{"short", []string{"too short", "Passphrase (not shown)"}}, {passphrase, []string{"same again (not shown)"}}, {"another one", []string{"are different", "Passphrase (not shown)"}}} {
				x.types(typed.types + enter)
				x.sees(typed.sees...)
			}
		}
		if step.sees == "To whom" {
			step.types = "@example.org" + enter
		}
		x.types(step.types)
	}
	x.sees("sealed with your passphrase", "--print")
	x.quits(0)
	s.noSecretIn(t, x.written())
	file := house.AdminKeyFile(s.env["POSTERN_DB"])
	text, err := os.ReadFile(file)
	if err != nil || !strings.HasPrefix(string(text), vault.PassphrasePrefix) || strings.Count(string(text), "\n") != 1 {
		t.Fatalf("%q, %v", text, err)
	}
	key, err := vault.OpenKey(strings.TrimSpace(string(text)), mail.NewSecret([]byte(passphrase)))
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, file, sealedCheaply(t, key.Reveal()))

	x = s.onTerminal(t, nil, "mail", "send", "--to", "bob@example.org", "--subject", "One", "--body", "x")
	x.sees("Nothing was sent yet", "in the outbox as", "\n")
	x.quits(6)
	for _, c := range []struct {
		typed  []string
		says   string
		status int
	}{
		{[]string{"wrong" + enter, enter, "wrong again" + enter}, "does not open the administrator's key", 3},
		{[]string{interrupt}, "", 130},
		{[]string{"\x04"}, "", 130},
	} {
		x = s.onTerminal(t, nil, "approve")
		for i, typed := range c.typed {
			if i > 0 {
				x.sees("This passphrase does not open the key.", "Passphrase of the administrator's key: ")
			} else {
				x.sees("Passphrase of the administrator's key: ")
			}
			x.types(typed)
		}
		x.sees(c.says)
		x.quits(c.status)
		if strings.Contains(x.written(), "wrong") {
			t.Error("what was typed is shown")
		}
	}
	x = s.onTerminal(t, nil, "approve")
	x.sees("Passphrase of the administrator's key: ")
	x.types("wrong" + enter)
	x.sees("does not open", "Passphrase of the administrator's key: ")
	x.types(passphrase + enter)
	x.sees("1 of 1", "q ends: ")
	x.types("y\r")
	x.sees("It was sent.")
	x.quits(0)
	s.noSecretIn(t, x.written())
	if n := len(s.servers.Outgoing()); n != 1 {
		t.Errorf("%d messages left", n)
	}
	// So does the word of the prompt, which asks once.
	x = s.onTerminal(t, nil, "mail", "send", "--to", "bob@example.org", "--subject", "Two", "--body", "x")
	x.sees("in the outbox as", "\n")
	x.quits(6)
	x = s.onTerminal(t, nil, "repl")
	x.sees("1 message waits for you: 'approve' shows it.", promptSign)
	x.types("approve\r")
	x.sees("Passphrase of the administrator's key: ")
	x.types(interrupt)
	if got := x.sees(promptSign); strings.Contains(got, "1 of 1") || strings.Contains(got, "cancel") {
		t.Errorf("given up: %s", got)
	}
	x.types("approve\r")
	x.sees("Passphrase of the administrator's key: ")
	x.types(passphrase + enter)
	x.sees("1 of 1", "q ends: ")
	x.types("\r")
	x.sees("Still waiting: 1.", promptSign)
	x.types("approve\r")
	x.sees("approve", "1 of 1", "q ends: ")
	x.types("n\r")
	x.sees("is rejected", promptSign)
	x.types("quit\r")
	x.quits(0)
	// Who writes a letter, and has the key where approve finds it, decides about it at once.
	x = s.onTerminal(t, []string{"EDITOR=", "VISUAL="}, "write", "bob@example.org")
	for _, step := range []step{{"Cc: ", enter}, {"Subject: ", "Three" + enter}, {"Attach: ", enter}, {"> ", "Mine." + enter}, {"> ", "." + enter},
		{"y shows it for your approval", "y" + enter}, {"Passphrase of the administrator's key: ", passphrase + enter}, {"Send exactly this?\ny sends it", "y" + enter}} {
		x.sees(step.sees)
		x.types(step.types)
	}
	x.sees("It was sent.")
	x.quits(0)
	if n := len(s.servers.Outgoing()); n != 2 {
		t.Errorf("%d messages left", n)
	}
	// Without the passphrase the letter waits.
	x = s.onTerminal(t, []string{"EDITOR=", "VISUAL="}, "write", "bob@example.org")
	for _, step := range []step{{"Cc: ", enter}, {"Subject: ", "Four" + enter}, {"Attach: ", enter}, {"> ", "." + enter}, {"y shows it for your approval", "y" + enter}, {"Passphrase of the administrator's key: ", interrupt}} {
		x.sees(step.sees)
		x.types(step.types)
	}
	x.sees("It waits in the outbox as", "'postern approve' asks again.")
	x.quits(6)
	// Another account takes the passphrase, too.
	x = s.onTerminal(t, nil, "init")
	x.sees("Passphrase of the administrator's key: ")
	x.types(passphrase + enter)
	x.sees("There is a vault already", demo.Username, "Add another account?")
	x.types(interrupt)
	x.quits(130)
}

// step2 is an answer and what is said to it.
type step2 struct {
	types string
	sees  []string
}

// sealedVault is a vault whose administrator's key is in a sealed file. It returns that
// file and the environments of the administrator and of an agent.
func sealedVault(t *testing.T) (file string, admin, agent []string) {
	t.Helper()
	v := waitingVault(t)
	file, _, agent = v.keyFiles(t)
	writeFile(t, file, sealedCheaply(t, v.text[0]))
	return file, append([]string{"POSTERN_ADMIN_KEY_FILE=" + file}, agent...), agent
}

// waitingVault is a vault in which a letter waits.
func waitingVault(t *testing.T) testVault {
	t.Helper()
	v, nowhere := newVault(t), mail.Endpoint{Host: "127.0.0.1", Port: 1, Security: mail.TLS}
	v.add(t, mail.Account{Name: "work", Email: "me@example.org", Protocol: mail.IMAP, Username: "me", Auth: mail.AuthPassword, Mode: mail.Approve,
		IMAP: nowhere, SMTP: nowhere, AllowOut: mail.AllowList{Enabled: true, Entries: []string{"*"}}}, "secret")
	if a := newHouse(t, v).as(t, gateway.Principal{Name: mail.AgentPrincipal}, lunch); a.Error.Code != discovery.ApprovalRequired {
		t.Fatalf("%s", a.raw)
	}
	return v
}

// sealedCheaply is the line of a key that is sealed with the passphrase.
func sealedCheaply(t *testing.T, key string) string {
	t.Helper()
	text, err := sealCheaply(mail.NewSecret([]byte(key)), mail.NewSecret([]byte(passphrase)))
	if err != nil {
		t.Fatal(err)
	}
	return text + "\n"
}

// Each verb that acts as the administrator asks, once, and help does not.
func TestAPassphraseIsAskedWhereTheKeyIsNeeded(t *testing.T) {
	t.Parallel()
	_, admin, _ := sealedVault(t)
	x := onTerminal(t, 100, 40, admin, "account", "list")
	x.sees("Passphrase of the administrator's key: ")
	x.types(passphrase + enter)
	x.sees("work")
	x.quits(0)
	x = onTerminal(t, 100, 40, admin, "repl")
	x.sees("Passphrase of the administrator's key: ")
	x.types(passphrase + enter)
	x.sees(promptSign)
	for range 2 {
		x.types("account list\r")
		x.sees("work", promptSign)
	}
	x.types("quit\r")
	x.quits(0)
	if n := strings.Count(x.written(), "Passphrase"); n != 1 {
		t.Errorf("it was asked %d times", n)
	}
	x = onTerminal(t, 100, 40, admin, "repl")
	x.sees("Passphrase of the administrator's key: ")
	x.types(interrupt)
	x.quits(0)
	// A page needs no key, and neither does saying what is missing or unknown; a stop waits for nobody.
	for _, c := range []struct {
		line, says string
		status     int
	}{{"help account add", "--imap-host", 0}, {"version", "ACLI", 0}, {"account show", "name is missing", 2}, {"account show work --nope", "has no option '--nope'", 2},
		{"exec 'account show'", "name is missing", 2}, {"account shwo work", "There is no command 'account shwo'", 2}, {"read", "Usage: postern read ID", 2},
		{"account edit work --mode FOO", "--mode must be one of RO", 2}, {"mail list --limit 0", "--limit must be between 1", 2}, {"stop", "Everything is stopped", 0}} {
		args, err := gateway.Tokenize(c.line)
		if err != nil {
			t.Fatal(err)
		}
		x = onTerminal(t, 100, 40, admin, args...)
		x.sees(c.says)
		x.quits(c.status)
		if strings.Contains(x.written(), "Passphrase") {
			t.Errorf("%s: %s", c.line, x.written())
		}
	}
}

// Without a terminal nothing waits: the error says what to do, and an agent goes on with its
// own key.
func TestASealedKeyWithoutATerminal(t *testing.T) {
	t.Parallel()
	file, admin, _ := sealedVault(t)
	refused(t, alone(t, admin, "account", "list"), "CONFIG_ERROR", 3, "no terminal to ask for it")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	direct := append([]string{"POSTERN_ADMIN_KEY=" + strings.TrimSpace(string(text))}, admin[1:]...)
	refused(t, alone(t, direct, "account", "list"), "CONFIG_ERROR", 3, "POSTERN_ADMIN_KEY_COMMAND")
	if out, err := program(t, admin, "help").CombinedOutput(); err != nil {
		t.Errorf("help needs the passphrase: %v\n%s", err, out)
	}
	c := program(t, admin, "serve")
	c.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"cli","arguments":{"command":"mail accounts"}}}
`)
	if out, err := c.Output(); err != nil || !strings.Contains(string(out), "work") {
		t.Errorf("an agent's server: %v\n%s", err, out)
	}
	writeFile(t, file, "passphrase:half\n")
	x := onTerminal(t, 100, 40, admin, "account", "list")
	x.sees("Passphrase of the administrator's key: ")
	x.types(passphrase + enter)
	x.sees("is not a key that this version sealed")
	x.quits(3)
}

// A new administrator's key is sealed with the passphrase of the former one, wherever it goes.
func TestRekeyKeepsThePassphrase(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("each key is sealed at its full cost; TestASealedKeyIsReplacedByASealedOne of package house replaces one without a terminal")
	}
	file, admin, agent := sealedVault(t)
	out := filepath.Join(t.TempDir(), "new.key")
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"vault rekey", "vault rekey --admin --admin-out " + out} {
		x := onTerminal(t, 100, 40, admin, "exec", "--json", line)
		x.sees("Passphrase of the administrator's key: ")
		x.types(passphrase + enter)
		var answer struct{ Success bool }
		found := regexp.MustCompile(`\{"success.*\}`).FindString(x.sees("success", "\n"))
		if err := json.Unmarshal([]byte(found), &answer); err != nil || !answer.Success {
			t.Fatalf("%s: %q, %v\n%s", line, found, err, x.written())
		}
		x.quits(0)
		if strings.Count(x.written(), "Passphrase of") != 1 {
			t.Errorf("%s asks again", line)
		}
	}
	for _, f := range []string{file, out} {
		text, err := os.ReadFile(f)
		if err != nil || !strings.HasPrefix(string(text), vault.PassphrasePrefix) || string(text) == string(before) {
			t.Errorf("%s: %q, %v", f, text, err)
		}
		if _, err := os.Lstat(f + ".new"); err == nil {
			t.Errorf("%s.new is left", f)
		}
	}
	// The process that ends between the change and the last step leaves the new key beside
	// the former one.
	if err := os.Rename(out, file+".new"); err != nil {
		t.Fatal(err)
	}
	x := onTerminal(t, 100, 40, append([]string{"POSTERN_ADMIN_KEY_FILE=" + file}, agent...), "account", "list")
	x.sees("Passphrase of the administrator's key: ")
	x.types(passphrase + enter)
	x.sees("work")
	x.quits(0)
}

// A key that init showed once is in no file: approve asks for it, and shows nothing of it.
func TestAKeyThatIsKeptNowhereIsTyped(t *testing.T) {
	t.Parallel()
	v := waitingVault(t)
	_, _, agent := v.keyFiles(t)
	other, err := vault.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		typed  string
		sees   []string
		status int
	}{
		{v.text[0] + enter, []string{"the one that you typed", "1 of 1"}, 6},
		{other + enter, []string{"does not open"}, 3},
		{enter, []string{"The administrator's key was not found."}, 6},
	} {
		x := onTerminal(t, 100, 40, agent, "approve")
		x.sees("The administrator's key: ")
		x.types(tc.typed)
		if x.sees(tc.sees...); tc.typed == v.text[0]+enter {
			x.sees("q ends: ")
			x.types("y\r")
			x.sees("could not be reached", "  postern outbox show ") // a command as a shell takes it
		}
		x.quits(tc.status)
		if strings.Contains(x.written(), v.text[0]) || strings.Contains(x.written(), other) {
			t.Error("the key is shown")
		}
	}
}
