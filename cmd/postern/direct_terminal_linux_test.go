package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/postern-mail/postern/cmd/postern/internal/house"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
)

// On a terminal a command of the shell is drawn as at the prompt, with the commands that it
// proposes as a shell takes them; --json gives the envelope.
func TestACommandOfTheShellOnATerminal(t *testing.T) {
	t.Parallel()
	servers, v := sampleServers(t), newVault(t)
	v.add(t, servers.Account(), servers.Password.Reveal())
	for _, tc := range []struct {
		line   string
		status int
		sees   []string
	}{
		{"mail list --limit 2", 0, []string{"demo, INBOX", "Help desk", "Read one: postern read 50\n", "  postern mail list --before"}},
		{"mail list --limt 2", 2, []string{"'mail list' has no option '--limt'.\nDid you mean --limit? Usage: postern mail list", "For example:\n  postern mail list"}},
		{"mail list -h", 0, []string{"A folder, newest first.", "Usage: postern mail list", "--oldest-first"}},
		{"serv", 2, []string{"There is no command 'serv'.", "Did you mean 'postern serve'?"}},
		{"sent", 2, []string{"Did you mean 'postern mail list'?", "For example:\n  postern mail list --folder Sent"}},
		{"delete 50", 2, []string{"Did you mean 'postern trash'?"}},
		{"unread", 2, []string{"Did you mean 'postern inbox'?"}},
		{"reply 50 everybody", 2, []string{"'postern reply ID' answers the sender"}},
		{"save 50 9", 5, []string{"no such attachment: 'postern read' lists them."}},
		{"serve -h", 0, []string{"usage: postern serve", "--read-only  "}},
		{"grant", 0, []string{"Type one of these, most often 'postern grant list'.", "grant add", "grant list"}},
		{"allow", 0, []string{"Type one of these, most often 'postern allow in list'.", "allow out add"}},
		{"vault", 0, []string{"Type one of these, most often 'postern vault check'.", "vault rekey"}},
		{"mail", 0, []string{"Type one of these, most often 'postern mail list'.", "mail list"}},
		{"exec --json grant", 6, []string{"'grant' is for the administrator alone."}},
		{"grant -h", 0, []string{"grant add", "grant list"}},
		{"help account add", 0, []string{"Usage: postern account add NAME"}},
		{"account edit work -h", 0, []string{"Usage: postern account edit NAME"}},
		{"outbox approve -h", 0, []string{"Usage: postern outbox approve"}},
		{"outbox approve", 6, []string{"You may not run 'outbox approve'.", "set POSTERN_ADMIN_KEY_FILE"}},
		{"approve -h", 0, []string{"usage: postern approve [ID]", "Shows each message", "administrator's key"}},
		{"mail list --json --limit 1", 0, []string{`{"success":true,"data":{"folder":"INBOX"`}},
		{"exec --json nonsense", 2, []string{`{"success":false,"error":{"code":"COMMAND_NOT_FOUND"`}},
		{"more", 5, []string{"'more' is for the prompt, 'postern repl'"}},
		{"undo", 5, []string{"'undo' is for the prompt, 'postern repl'"}},
		{"agent -h", 0, []string{"agent send"}},
		{"-h", 0, []string{"Start\n", "an account, or another one", "For you\n", "postern approve", "postern account list", "For agents\n", "Tools\n"}},
	} {
		status, shown := shownOnTerminal(t, 90, v.environment(false), strings.Fields(tc.line)...)
		rest := shown
		for _, text := range tc.sees {
			_, after, found := strings.Cut(rest, text)
			if rest = after; !found {
				t.Errorf("%s: no %q in\n%s", tc.line, text, shown)
			}
		}
		if status != tc.status {
			t.Errorf("%s: status %d, want %d", tc.line, status, tc.status)
		}
		for l := range strings.Lines(shown) { // what is to be copied stays whole
			if drawn := !strings.HasPrefix(l, "{") && !strings.HasPrefix(l, "  postern "); drawn && len([]rune(l)) > 91 {
				t.Errorf("%s: a line is too wide: %q", tc.line, l)
			}
		}
	}
}

// Without a vault nobody is asked for a key, or sent to look for one.
func TestATerminalWithoutAVault(t *testing.T) {
	for line, status := range map[string]int{"approve": 3, "inbox": 3, "doctor": 3, "account list": 6} {
		got, shown := shownOnTerminal(t, 90, []string{"POSTERN_DB=" + filepath.Join(t.TempDir(), "none.db")}, strings.Fields(line)...)
		if got != status || !strings.Contains(shown, "There is no vault yet") || !strings.Contains(shown, "'postern init'") || strings.Contains(shown, "KEY") {
			t.Errorf("%s: status %d, want %d:\n%s", line, got, status, shown)
		}
	}
}

// In a shell the list of messages ends with what waits for the person, which no answer for a
// program says; and nobody is asked for a key where nothing waits.
func TestTheShellSaysWhatWaits(t *testing.T) {
	t.Parallel()
	servers, v := sampleServers(t), newVault(t)
	a := servers.Account()
	a.Mode, a.AllowOut = mail.Approve, mail.AllowList{Enabled: true, Entries: []string{"*"}}
	v.add(t, a, servers.Password.Reveal())
	run := func(status int, args ...string) string {
		got, shown := shownOnTerminal(t, 90, v.environment(false), args...)
		if got != status {
			t.Errorf("%s: status %d, want %d", args, got, status)
		}
		return shown
	}
	for _, args := range [][]string{{"approve"}, {"inbox", "2"}} {
		if out := run(0, args...); strings.Contains(out, "waits for you") != (args[0] == "approve") || strings.Contains(out, "key") {
			t.Errorf("%s: %s", args, out)
		}
	}
	newHouse(t, v).as(t, gateway.Principal{Name: mail.AgentPrincipal}, "mail send --to ann@example.org --subject Lunch --body x")
	if out := run(0, "inbox", "2"); !strings.HasSuffix(out, "\n1 message waits for you: 'postern approve' shows it.\n") {
		t.Error(out)
	}
	if out := run(0, "mail", "list", "--json", "--limit", "2"); strings.Contains(out, "waits for you") {
		t.Error(out)
	}
}

// A command does not become the administrator because a key lies in its file and somebody has a
// terminal, which an agent's shell may have, too: approve asks about each thing, and what only shows
// something asks for a yes. The refusal of anything else says that, and what to type.
func TestACommandDoesNotTakeTheAdministratorsKeyByItself(t *testing.T) {
	t.Parallel()
	v := waitingVault(t)
	file := house.AdminKeyFile(v.path)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, file, v.text[0]+"\n")
	env := append(v.environment(false), "NO_COLOR=1")
	advice := []string{"You may not run 'account", "It takes the administrator's key: put POSTERN_ADMIN_KEY_FILE=" + discovery.Quote(file) + " before 'postern', in a shell of your own from which no agent is started. On a terminal 'postern approve' and what changes nothing find the key by themselves, and ask."}
	x := onTerminal(t, 9999, 40, env, "account", "edit", "work", "--mode", "RW")
	x.sees(advice...)
	x.quits(6)
	for answer, want := range map[string]struct {
		says   []string
		status int
	}{"\r": {advice, 6}, "y\r": {[]string{"You act as the administrator", "me@example.org"}, 0}} {
		x = onTerminal(t, 9999, 40, env, "account", "show", "work")
		x.sees("This takes the administrator's key. y finds it, anything else does not: ")
		x.types(answer)
		x.sees(want.says...)
		x.quits(want.status)
	}
	// A program is asked nothing.
	refused(t, program(t, env, "audit", "list"), "PERMISSION_DENIED", 6, "admin privilege")
	x = onTerminal(t, 9999, 40, env, "exec", "--json", "audit list")
	x.sees("PERMISSION_DENIED")
	x.quits(6)
	x = onTerminal(t, 9999, 40, env, "repl", "--no-history")
	x.sees(promptSign)
	x.types("audit list --limit 1\r")
	x.sees("anything else does not: ")
	x.types("y\r")
	x.sees("permission denied", "audit list", promptSign)
	x.types("account edit work --mode RW\r")
	x.sees("You may not run", promptSign)
	for _, line := range []string{"grant", "grant -h", "help grant"} {
		x.types(line + "\r")
		x.sees("Type one of these, most often 'grant list'.", promptSign)
	}
	x.types("quit\r")
	x.quits(0)
	x = onTerminal(t, 9999, 40, env, "approve")
	x.sees("You act as the administrator", "q ends: ")
	x.types("q\r")
	x.quits(6)
	x = onTerminal(t, 9999, 40, append(env, "POSTERN_ADMIN_KEY_FILE="+file), "account", "show", "work")
	x.sees("me@example.org")
	x.quits(0)
}

// The pages of the program's own verbs are whole in windows of all widths, as those of commands
// are, and say what the verb is for.
func TestNoPageOfAVerbBreaksAWord(t *testing.T) {
	t.Parallel()
	page := func(verb string, width int) string {
		status, shown := shownOnTerminal(t, width, nil, append(strings.Fields(verb), "-h")...)
		if status != 0 || !strings.HasPrefix(shown, "usage: postern "+verb) {
			t.Errorf("%s -h: status %d: %s", verb, status, shown)
		}
		return shown
	}
	for verb := range (&process{}).verbs() {
		if verb == completeVerb || verb == "agent" { // for programs
			continue
		}
		wide := page(verb, 9999)
		if about, _, _ := strings.Cut(wide, "\nOptions\n"); !strings.Contains(strings.TrimSpace(about), "\n\n") {
			t.Errorf("%s -h does not say what it is for:\n%s", verb, about)
		}
		for l := range strings.Lines(page(verb, 60)) {
			if len([]rune(l)) > 61 {
				t.Errorf("%s -h is wider than 60 columns: %q", verb, l)
			}
		}
		for _, width := range []int{60, 80, 200} {
			wantSameWords(t, verb+" -h", width, page(verb, width), wide)
		}
	}
}
