//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/postern-mail/postern/gateway"
)

// What an agent's command leaves for a person starts the person's program, from a process of one
// command and from a server, with no word of the agent's and without the vault's keys. What
// leaves or is refused starts nothing.
func TestTheNotifyCommandTellsThePerson(t *testing.T) {
	t.Parallel()
	const send = "mail send --to ann@example.org,bob@example.org --subject 'the subject' --body 'the body'"
	exec := func(t *testing.T, v testVault, line string) answer {
		out, _ := program(t, v.environment(false), "exec", line).Output()
		return answerOf(t, line, out)
	}
	serve := func(t *testing.T, v testVault, line string) answer {
		c, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: program(t, v.environment(false), "serve")}, nil)
		if err != nil {
			t.Fatal(err)
		}
		p := command(line)
		p.Name = "cli"
		r, err := c.CallTool(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil { // once the server has ended
			t.Fatal(err)
		}
		return answerOf(t, line, []byte(r.Content[0].(*mcp.TextContent).Text))
	}
	for name, c := range map[string]struct {
		do         func(*testing.T, testVault, string) answer
		line, said string
	}{
		"a message, by one command": {exec, send, "2"},
		"a deletion, by a server":   {serve, "mail delete imap:work:INBOX:1:50 --confirm", "0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, servers := workVault(t)
			dir := t.TempDir()
			told, script := filepath.Join(dir, "told"), filepath.Join(dir, "tell")
			if err := os.WriteFile(script, []byte("#!/bin/sh\nprintf '%s\\n' \"$@\" >>"+told+"\nenv >>"+told+"\nexit 3\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			h := newHouse(t, v)
			set := `config set notify_command '["` + script + `","waits: {id} of {account} for {recipients}","--","{body}"]'`
			for _, refused := range []string{strings.Replace(set, script, script+"x", 1), strings.Replace(set, script, "tell", 1)} {
				if a := h.do(t, refused, nil); a.Error.Code != "VALIDATION_ERROR" {
					t.Errorf("%s: %s", refused, a.raw)
				}
			}
			if a := h.as(t, gateway.Principal{Name: "agent"}, set); a.Error.Code != "PERMISSION_DENIED" {
				t.Errorf("an agent sets it: %s", a.raw)
			}
			h.do(t, set, &struct{}{})

			for _, line := range []string{send + " --dry-run", strings.Replace(send, "bob@example.org", "bob@example.net", 1), "mail draft --subject s --body b"} {
				exec(t, v, line)
			}
			h.do(t, "account edit work --mode RW", &struct{}{})
			if a := exec(t, v, send); !a.Success || len(servers.Outgoing()) != 1 {
				t.Errorf("%s, %d left", a.raw, len(servers.Outgoing()))
			}
			h.do(t, "account edit work --mode approve", &struct{}{})
			h.do(t, send, nil) // the administrator's own
			if _, err := os.Stat(told); err == nil {
				t.Error("somebody is told of what does not wait")
			}

			waits := c.do(t, v, c.line)
			_, rest, _ := strings.Cut(waits.Error.Message, "in the outbox as ")
			id, _, _ := strings.Cut(rest, " ")
			got := read(t, told)
			if waits.Error.Code != "APPROVAL_REQUIRED" || !strings.HasPrefix(got, "waits: "+id+" of work for "+c.said+"\n--\n{body}\n") {
				t.Fatalf("%s told %q", waits.raw, got)
			}
			for _, secret := range []string{"POSTERN", v.text[0], v.text[1], "the subject", "the body", "ann@example.org"} {
				if strings.Contains(got, secret) {
					t.Errorf("it is told %q:\n%s", secret, got)
				}
			}
			if a := h.do(t, "doctor", nil); !strings.Contains(string(a.raw), `"name":"notify_command","ok":false`) || !strings.Contains(string(a.raw), "it ended with status 3") {
				t.Errorf("doctor says %s", a.raw)
			}
		})
	}
}
