package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/postern-mail/postern/cmd/postern/internal/house"
)

// With a real keyring: what init keeps there, serve and every other verb find again
// by themselves, and without the session nobody does.
func TestInitKeepsTheKeysInTheSystemKeyring(t *testing.T) {
	t.Parallel()
	desktop := newSession(t)
	desktop.unlock(t)
	s := newMachine(t)
	env := append([]string{"HOME=" + s.home, "POSTERN_DB=" + s.env["POSTERN_DB"], "PW=" + s.env["PW"]}, desktop.environ...)
	env = append(env, "HOME="+s.home)
	_, imap, _ := strings.Cut(s.servers.IMAPAddr, ":")
	c := program(t, env, "init", "--admin-key", "keyring", "--agent-key", "keyring", "work", "--email", s.servers.Username, "--imap-host", "127.0.0.1", "--imap-port", imap,
		"--ca-file", s.ca, "--password-from", "env:PW")
	if out, err := c.CombinedOutput(); err != nil || !strings.Contains(string(out), "in the system keyring") {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, file := range []string{house.AgentKeyFile(s.env["POSTERN_DB"]), house.AdminKeyFile(s.env["POSTERN_DB"])} {
		if text, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(text), "keyring:") {
			t.Errorf("%s: %q, %v", file, text, err)
		}
	}
	works(t, alone(t, env, "mail", "list", "--limit", "1"))
	refused(t, alone(t, env, "account", "edit", "work", "--mode", "RW"), "PERMISSION_DENIED", 6, "")
	works(t, alone(t, append(env, "POSTERN_ADMIN_KEY_FILE="+house.AdminKeyFile(s.env["POSTERN_DB"])), "account", "edit", "work", "--mode", "RW"))
	elsewhere := append(env, "DBUS_SESSION_BUS_ADDRESS=unix:path="+filepath.Join(t.TempDir(), "none"))
	refused(t, alone(t, elsewhere, "mail", "list"), "CONFIG_ERROR", 3, "keyring cannot be used now")
	if out, err := program(t, elsewhere, "help").CombinedOutput(); err != nil {
		t.Errorf("help needs the key: %v\n%s", err, out)
	}
}
