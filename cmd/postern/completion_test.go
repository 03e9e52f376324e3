package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail/servertest"
)

// asAShell asks as the scripts do, where no vault is and none may be made.
func asAShell(t *testing.T, environ map[string]string, words ...string) []string {
	t.Helper()
	var out strings.Builder
	p := &process{getenv: func(name string) string { return environ[name] }, stdout: &out, stderr: io.Discard, log: slog.New(slog.DiscardHandler)}
	if err := p.completeWords(t.Context(), append([]string{"--"}, words...)); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

func TestCompletionInAShell(t *testing.T) {
	// A key that is fetched, or a vault that is made, would be seen in this directory.
	dir := t.TempDir()
	fetched := filepath.Join(dir, "fetched")
	environ := map[string]string{"HOME": dir, "POSTERN_DB": filepath.Join(dir, "postern.db"),
		"POSTERN_KEY_COMMAND": "touch " + fetched, "POSTERN_ADMIN_KEY_COMMAND": "touch " + fetched}
	for _, tc := range testmain.Table[struct{ Line, Want string }](t, "testdata/cases/completion.txt") {
		if got := strings.Join(asAShell(t, environ, strings.Split(tc.Line, " ")...), " "); got != tc.Want {
			t.Errorf("%q: %q, not %q", tc.Line, got, tc.Want)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("completion left something behind: %v %v", left, err)
	}
}

// Completion has each verb tell its flags by -h. That may do nothing but that.
func TestEveryVerbTellsItsFlags(t *testing.T) {
	dir := t.TempDir()
	p := &process{getenv: func(name string) string { return map[string]string{"HOME": dir}[name] }, stdout: io.Discard, stderr: io.Discard,
		log: slog.New(slog.DiscardHandler)}
	for verb, run := range p.verbs() {
		if verb == "agent" || verb == completeVerb { // commands of the registry; takes words
			continue
		}
		p.flagged = nil
		if err := run(t.Context(), []string{"-h"}); !errors.Is(err, flag.ErrHelp) || p.flagged == nil || p.flagged.Name() != verb {
			t.Errorf("%s -h: %v, flags %v", verb, err, p.flagged)
		}
		words := strings.Fields(verb)
		last := len(words) - 1
		if !slices.Contains(asAShell(t, nil, append(words[:last:last], "")...), words[last]) || !strings.Contains(fmt.Sprint(usage), "postern "+verb) {
			t.Errorf("%s is not told of", verb)
		}
	}
}

// The printed script, in a bash that asks the program itself.
func TestCompletionInBash(t *testing.T) {
	slow(t, "TestCompletionInAShell")
	t.Parallel()
	bash, err := exec.LookPath("bash")
	switch {
	case runtime.GOOS == "windows" || err != nil && os.Getenv(servertest.RequireServers) == "":
		t.Skip("there is no bash here (set " + servertest.RequireServers + "=1 to make this a failure)")
	case err != nil:
		t.Fatal(err)
	}
	dir := t.TempDir()
	script := filepath.Join(dir, "postern.bash")
	if err := os.WriteFile(script, []byte(bashCompletion), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), bash, "-n", script).CombinedOutput(); err != nil {
		t.Fatalf("bash does not take it: %v\n%s", err, out)
	}
	for _, tc := range []struct{ words, want string }{ // the words as bash cuts them
		{"ma", "mail"},
		{"mail list --un", "--unread|--until"},
		{"serve --profile = t", "transport"},
		{"serve --profile =", "full|read|transport"},
		{"agent read me : x --wa", "--wait"},
		{"mail list --since ", ""},
	} {
		args := append([]string{"--norc", "-c", `. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _postern; IFS='|'; echo "${COMPREPLY[*]}"`,
			"bash", script, program(t, nil).Path}, strings.Split(tc.words, " ")...)
		run := exec.CommandContext(t.Context(), bash, args...)
		run.Env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "POSTERN_DB=" + filepath.Join(dir, "none.db"), actAsPostern + "=1"}
		out, err := run.CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != tc.want {
			t.Errorf("%s: %q, not %q (%v)", tc.words, got, tc.want, err)
		}
	}
}
