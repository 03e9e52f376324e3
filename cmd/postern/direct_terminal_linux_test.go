package main

import (
	"strings"
	"testing"

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
		{"serve -h", 0, []string{"usage: postern serve", "--read-only  "}},
		{"grant -h", 6, []string{"'grant' is for the administrator alone.", "set POSTERN_ADMIN_KEY_FILE"}},
		{"help account add", 6, []string{"'account add' is for the administrator alone.", "set POSTERN_ADMIN_KEY_FILE"}},
		{"outbox approve -h", 6, []string{"You may not run 'outbox approve'.", "set POSTERN_ADMIN_KEY_FILE"}},
		{"mail list --json --limit 1", 0, []string{`{"success":true,"data":{"folder":"INBOX"`}},
		{"exec --json nonsense", 2, []string{`{"success":false,"error":{"code":"COMMAND_NOT_FOUND"`}},
		{"undo", 5, []string{"'undo' is for the prompt, 'postern repl'"}},
		{"agent -h", 0, []string{"agent send"}},
		{"-h", 0, []string{"Start\n", "For you\n", "postern approve", "postern account list", "For agents\n", "Tools\n"}},
	} {
		x := onTerminal(t, 90, 40, append(v.environment(false), "NO_COLOR=1"), strings.Fields(tc.line)...)
		x.sees(tc.sees...)
		x.quits(tc.status)
		for l := range strings.Lines(strings.ReplaceAll(x.written(), "\r", "")) {
			if drawn := !strings.HasPrefix(l, "{"); drawn && len([]rune(l)) > 91 {
				t.Errorf("%s: a line is too wide: %q", tc.line, l)
			}
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
		x := onTerminal(t, 90, 40, append(v.environment(false), "NO_COLOR=1"), args...)
		x.quits(status)
		return strings.ReplaceAll(x.written(), "\r", "")
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

// The pages of the program's own verbs are whole in windows of all widths, as those of commands
// are.
func TestNoPageOfAVerbBreaksAWord(t *testing.T) {
	t.Parallel()
	page := func(verb string, width int) string {
		x := onTerminal(t, width, 40, []string{"NO_COLOR=1"}, append(strings.Fields(verb), "-h")...)
		x.quits(0)
		return strings.ReplaceAll(x.written(), "\r", "")
	}
	for verb := range (&process{}).verbs() {
		if verb == completeVerb || verb == "agent" { // for programs
			continue
		}
		wide := page(verb, 9999)
		for _, width := range []int{60, 80, 200} {
			wantSameWords(t, verb+" -h", width, page(verb, width), wide)
		}
	}
}
