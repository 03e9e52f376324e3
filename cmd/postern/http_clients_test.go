package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/vault"
)

// node runs a script of .ci/npm, with the clients that 'npm ci' puts there, and returns
// the objects that it prints. Without them the test is skipped, unless
// POSTERN_REQUIRE_SERVERS is set.
func node(t *testing.T, script string, args ...string) []map[string]any {
	t.Helper()
	if testing.Short() && os.Getenv(servertest.RequireServers) == "" {
		t.Skip("programs of others are not started with -short")
	}
	dir, err := filepath.Abs(filepath.Join("..", "..", ".ci", "npm"))
	if err != nil {
		t.Fatal(err)
	}
	// The suite needs a newer one than systems have.
	found, err := filepath.Glob(filepath.Join(dir, "node_modules", "node-*", "bin", "node"))
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		const why = "the clients are not installed: run 'npm ci --ignore-scripts' in .ci/npm"
		if os.Getenv(servertest.RequireServers) != "" {
			t.Fatal(why)
		}
		t.Skip(why + " (set " + servertest.RequireServers + "=1 to make this a failure)")
	}
	c := exec.CommandContext(t.Context(), found[0], append([]string{filepath.Join(dir, script)}, args...)...)
	home := t.TempDir() // the inspector keeps things there
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + home}
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	err = c.Run()
	var objects []map[string]any
	for line := range strings.Lines(stdout.String()) {
		var o map[string]any
		if json.Unmarshal([]byte(line), &o) != nil {
			t.Errorf("it printed %q", line)
		}
		objects = append(objects, o)
		t.Log(strings.TrimSpace(line))
	}
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, stderr.Bytes())
	}
	return objects
}

// Clients that other people wrote, in both eras of the protocol: lists, calls, many at
// once, one given up, a question to a person, a wrong token, a foreign web page.
func TestOtherPeoplesClients(t *testing.T) {
	t.Parallel()
	v, _ := workVault(t)
	_, expired, err := v.opened(t, -time.Hour).AddGrant(t.Context(), vault.Grant{Name: "old", Accounts: []string{"work"}, Profile: "full"}, 59*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	token := newHouse(t, v).token(t, "laptop", "--accounts work --identity repo:clients --profile full --ask-in-client")
	s := serveHTTP(t, v)
	ran := node(t, "clients.mjs", s.url, token, expired.Reveal())
	sessions := map[any]int{}
	for _, o := range ran {
		if o["session"] != nil {
			sessions[o["session"]]++
		}
	}
	if len(ran) != 18 || sessions[true] != 2 || sessions[false] != 2 {
		t.Errorf("%d clients ran, %v", len(ran), sessions)
	}
	if s.stop() != 0 {
		t.Errorf("%s", s.stderr)
	}
}

// The protocol's own conformance suite, in its released version and in the one to
// come.
func TestTheProtocolsOwnSuite(t *testing.T) {
	t.Parallel()
	s := serveHTTP(t, newVault(t), "--no-auth")
	ran := node(t, "conformance.mjs", strings.Replace(s.url, "127.0.0.1", "localhost", 1))
	passed := 0.0
	for _, o := range ran {
		n, _ := o["passed"].(float64)
		passed += n
	}
	if len(ran) != 5 || passed < 150 {
		t.Errorf("%d runs, %v checks passed", len(ran), passed)
	}
}
