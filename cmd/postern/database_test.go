package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/postern-mail/postern/mail/demo"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/vault"
	"github.com/postern-mail/postern/vault/vaulttest"
)

// TestOnPostgres runs with their vaults in a database the tests of what the engine decides.
func TestOnPostgres(t *testing.T) {
	t.Parallel()
	vaulttest.Again(t, map[string]string{
		"TestHouseScripts":                   "limits and keys of each principal are rows",
		"TestAGrantFromItsBeginningToItsEnd": "a serving process learns of a grant by a row",
		"TestAFleetLeavesNothingBehind":      "no connection to the server is left",
		"TestRekeyUnderManyProcesses":        "every row is sealed anew beside its readers",
	})
}

// A vault in a database is set up, used, moved into a file and back by the same verbs as one
// in a file; an init that fails leaves no vault there, and no key of one here.
func TestVaultInADatabase(t *testing.T) {
	server := servertest.Postgres(t)
	s := newMachine(t)
	t.Setenv("HOME", s.home)
	t.Setenv("XDG_CONFIG_HOME", "")
	address := server.NewSchema(t)
	s.env["POSTERN_DB"] = address
	run := func(args ...string) (string, int) {
		t.Helper()
		p, out := s.process(t)
		p.args = args
		status := p.run(t.Context())
		s.noSecretIn(t, out.String())
		return out.String(), status
	}
	init := []string{"init", "--accept-found", "--admin-key", "file", "--agent-key", "file", "work", "--email", demo.Username, "--password-from", "env:PW"}
	if out, status := run(init...); status == 0 || !strings.Contains(out, "Nothing was stored") { // the certificate is nobody's
		t.Fatalf("%d %s", status, out)
	}
	if there, err := vault.Exists(t.Context(), address); there || err != nil {
		t.Errorf("an init that failed left a vault: %v, %v", there, err)
	}
	keys := filepath.Join(s.home, ".config", "postern", "postern.db.key")
	if _, err := os.Stat(keys); err == nil {
		t.Error("an init that failed left a key")
	}
	if out, status := run(append(init, "--ca-file", s.ca)...); status != 0 || !strings.Contains(out, "postgres://"+server.Address()+"/postgres") {
		t.Fatalf("%d %s", status, out)
	}
	lists := func() {
		t.Helper()
		if out, status := run("mail", "list", "--limit", "2"); status != 0 || !strings.Contains(out, `"rows":[[`) {
			t.Errorf("%d %s", status, out)
		}
	}
	lists()
	s.env["POSTERN_ADMIN_KEY_FILE"] = filepath.Join(s.home, ".config", "postern-admin", "postern.db.admin.key")
	s.env["POSTERN_KEY_FILE"] = keys
	file := filepath.Join(s.home, "moved.db")
	for from, to := address, file; ; from, to = to, from {
		if out, status := run("vault", "copy", from, to); status != 0 || !strings.Contains(out, "were copied and compared") {
			t.Fatalf("%d %s", status, out)
		}
		if out, status := run("mail", "list"); status != 3 || !strings.Contains(out, "it was moved to") {
			t.Errorf("where it was: %d %s", status, out)
		}
		s.env["POSTERN_DB"] = to
		lists()
		if out, status := run("audit", "verify"); status != 0 || !strings.Contains(out, "whole") {
			t.Errorf("%d %s", status, out)
		}
		if to == address {
			break
		}
	}
	for _, place := range []string{"mysql://localhost/x", "postgres://u:hunter22@db.example.org/x?sslmode=require", "postgres://u:hunter%zz22@localhost/x"} {
		s.env["POSTERN_DB"] = place
		if out, status := run("mail", "list"); status != 3 || strings.Contains(out, "hunter") || !strings.Contains(out, "POSTERN_DB is a file's path") {
			t.Errorf("%s: %d %s", place, status, out)
		}
	}
	s.env["POSTERN_DB"] = strings.Replace(address, "postern@", "postern:hunter22@", 1)
	if out, status := run("install", "cursor", "--print"); status != 3 || strings.Contains(out, "hunter") {
		t.Errorf("%d %s", status, out)
	}
	if out, status := run("vault", "copy", s.env["POSTERN_DB"], file); status != 2 || strings.Contains(out, "hunter") {
		t.Errorf("%d %s", status, out)
	}
}
