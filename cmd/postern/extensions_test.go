package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/postern-mail/postern/cmd/postern/internal/house"
	"github.com/postern-mail/postern/commands/admin"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/vault/vaulttest"
)

// ownDirectory makes a directory that only its owner can change, whatever the umask.
func ownDirectory(t testing.TB, path string) {
	t.Helper()
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
}

// ownFile writes a file likewise.
func ownFile(t testing.TB, path, content string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

// contactsBeside puts the example of the documentation into the extensions beside a
// vault: built as it says, or with a program that only stands there.
func contactsBeside(t testing.TB, v testVault, built bool) (dir string) {
	t.Helper()
	above := filepath.Dir(v.path)
	if vaulttest.InDatabase() { // who calls says where they are
		above = t.TempDir()
	}
	ownDirectory(t, filepath.Dir(above))
	ownDirectory(t, above)
	dir = filepath.Join(above, "extensions")
	ownDirectory(t, dir)
	at := filepath.Join(dir, "x-contacts")
	ownDirectory(t, at)
	const example = "../../docs/examples/x-contacts/"
	manifest, err := os.ReadFile(example + "manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	ownFile(t, filepath.Join(at, "manifest.json"), string(manifest), 0o644)
	program := filepath.Join(at, "contacts")
	if runtime.GOOS == "windows" {
		program += ".exe"
	}
	if !built {
		ownFile(t, program, "", 0o755)
		return dir
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, example+"contacts.go")
	build.Env = append(build.Environ(), "CGO_ENABLED=0") // no other test needs the libraries with cgo but without the race detector
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.Chmod(program, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// envelopes runs the program and takes its answers apart, one a line.
func envelopes(t testing.TB, env []string, stdin string, args ...string) (answers []answer, stderr string) {
	t.Helper()
	var said bytes.Buffer
	c := program(t, append(env, "GORACE=atexit_sleep_ms=0"), args...)
	c.Stdin, c.Stderr = strings.NewReader(stdin), &said
	out, _ := c.Output() // its status is that of the answer
	for line := range strings.Lines(string(out)) {
		answers = append(answers, answerOf(t, fmt.Sprint(args), []byte(line)))
	}
	return answers, said.String()
}

// TestTheExampleExtension goes the documentation's way with the program itself, by
// every door.
func TestTheExampleExtension(t *testing.T) {
	t.Parallel()
	slow(t, "TestAnExtensionGetsNoKey")
	v := newVault(t)
	contactsBeside(t, v, true)
	owner, agent := v.environment(true), v.environment(false)
	const note = "canarynote"
	one := func(env []string, stdin string, args ...string) answer {
		t.Helper()
		list, stderr := envelopes(t, env, stdin, args...)
		if len(list) != 1 || stderr != "" {
			t.Fatalf("%q: %d answers, %s", args, len(list), stderr)
		}
		return list[0]
	}
	// exec, and the direct form; the administrator adds.
	if a := one(owner, "", "exec", "x-contacts add 'Ann Lee' --email ann@example.org --note "+note); string(a.Data) != `{"people":1}` {
		t.Fatalf("%s", a.raw)
	}
	if a := one(owner, "", "x-contacts", "add", "Bob O'Neil", "--email", "bob@example.org"); string(a.Data) != `{"people":2}` {
		t.Errorf("%s", a.raw)
	}
	// The prompt, without a terminal.
	list, _ := envelopes(t, agent, "x-contacts find LEE\nx-contacts find o -n 1 --fields total,people.email\nx-contacts find nobody\nhelp x-contacts\nversion\nx-contacts add Eve --email eve@example.org\n", "repl")
	for i, want := range []string{`{"people":[{"name":"Ann Lee","email":"ann@example.org","note":"canarynote"}],"total":1}`, `{"total":2,"people":[{"email":"ann@example.org"}]}`,
		`"code":"NOT_FOUND","message":"There is nobody like that in the address book."`, `"description":"A person's address book","commands":[{"name":"x-contacts find"`, `"extensions":["x-contacts"]`, `"code":"PERMISSION_DENIED"`} {
		if i >= len(list) || !strings.Contains(string(list[i].raw), want) {
			t.Errorf("answer %d is not %s", i, want)
		}
	}
	if strings.Contains(string(list[3].raw), "x-contacts add") {
		t.Errorf("an agent is told of what only the administrator may run: %s", list[3].raw)
	}
	// MCP.
	c := serving(t, v)
	if m := c.Call("x-contacts find ann"); m.IsError() || !strings.Contains(m.Text(), `"people":[{"name":"Ann Lee"`) || !strings.Contains(m.Text(), `"_meta":{"command":"x-contacts find ann","duration_ms":`) || !strings.Contains(m.Text(), `"untrusted":["*"]`) {
		t.Errorf("%s", m.Line)
	}
	if m := c.Call("x-contacts add Eve --email eve@example.org"); !m.IsError() || !strings.Contains(m.Text(), `"code":"PERMISSION_DENIED"`) {
		t.Errorf("%s", m.Line)
	}
	_ = c.Close()
	// The record: every execution, and no sensitive value.
	var log admin.AuditListResult
	list, _ = envelopes(t, owner, "x-contacts add Ann --email ANN@example.org\naudit list --limit 50 --full\naudit verify\nconfig set deny x-contacts\n", "repl")
	if len(list) != 4 || list[0].Error.Code != "CONFLICT" || !list[2].Success || !list[3].Success {
		t.Fatalf("%+v", list)
	}
	a := list[1]
	if err := json.Unmarshal(a.Data, &log); err != nil || strings.Contains(string(a.raw), note) || !strings.Contains(string(a.raw), "--note [redacted]") {
		t.Errorf("%v: %s", err, a.raw)
	}
	ran := 0
	for _, e := range log.Entries {
		if strings.HasPrefix(e.Parsed, "x-contacts ") {
			ran++
		}
	}
	if ran != 9 {
		t.Errorf("%d entries of extensions: %s", ran, a.raw)
	}
	// What the administrator takes away is gone.
	list, _ = envelopes(t, agent, "x-contacts find ann\nversion\n", "repl")
	if len(list) != 2 || list[0].Error.Code != "PERMISSION_DENIED" || strings.Contains(string(list[1].raw), "x-contacts") {
		t.Errorf("%s\n%s", list[0].raw, list[1].raw)
	}
}

// TestAnExtensionGetsNoKey lists the environment of a program that postern, with
// limits and all, starts.
func TestAnExtensionGetsNoKey(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the program of this test is a script")
	}
	v := newVault(t)
	dir := filepath.Join(filepath.Dir(v.path), "extensions")
	at := filepath.Join(dir, "x-env")
	for _, d := range []string{filepath.Dir(filepath.Dir(v.path)), filepath.Dir(v.path), dir, at} {
		ownDirectory(t, d)
	}
	ownFile(t, filepath.Join(at, "manifest.json"), `{"name":"x-env","summary":"Show the environment","program":"run","effect":"read","examples":["x-env"]}`, 0o644)
	ownFile(t, filepath.Join(at, "run"), "#!/bin/sh\ncat >/dev/null\nenv | awk 'BEGIN {printf \"[\"} {gsub(/[\"\\\\]/, \"?\"); printf \"%s\\\"%s\\\"\", (NR > 1 ? \",\" : \"\"), $0} END {print \"]\"}'\n", 0o755)
	canaries := canaries{}
	env := append(v.environment(true), "POSTERN_POLICY_PIN=", "MAIL_IMAP_WORK_PASS="+canaries.plant("password"), "API_TOKEN="+canaries.plant("token"), "HOME=/home/ann", "LANG=C")
	list, stderr := envelopes(t, env, "", "exec", "x-env")
	var got []string
	if len(list) != 1 || json.Unmarshal(list[0].Data, &got) != nil {
		t.Fatalf("%v %s", list, stderr)
	}
	canaries.search(t, "the environment of an extension", list[0].raw)
	for i, key := range v.text {
		if bytes.Contains(list[0].raw, []byte(key)) {
			t.Errorf("it holds key %d", i)
		}
	}
	for _, e := range got {
		name, _, _ := strings.Cut(e, "=")
		if !slices.Contains([]string{"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "PWD", "OLDPWD", "SHLVL", "_"}, name) {
			t.Errorf("it holds %s", name)
		}
	}
	if !slices.Contains(got, "HOME=/home/ann") {
		t.Errorf("%q", got)
	}
}

// TestABrokenExtensionStopsNothing shows where a person hears of it.
func TestABrokenExtensionStopsNothing(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	dir := contactsBeside(t, v, false)
	at := filepath.Join(dir, "x-broken")
	ownDirectory(t, at)
	ownFile(t, filepath.Join(at, "manifest.json"), `{"name":"help"}`, 0o644)
	const said = "postern: Extension x-broken: It is left out: its manifest is not valid: its name is not that of its directory.\n"
	for _, args := range [][]string{{"exec", "version"}, {"repl"}, {"serve"}} {
		list, stderr := envelopes(t, v.environment(false), "", args...)
		if stderr != said || args[0] == "exec" && (len(list) != 1 || !strings.Contains(string(list[0].raw), `"extensions":["x-contacts"]`)) {
			t.Errorf("%q: %q", args, stderr)
		}
	}
	list, _ := envelopes(t, v.environment(false), "", "doctor", "--full")
	var d admin.DoctorResult
	if len(list) != 1 || json.Unmarshal(list[0].Data, &d) != nil {
		t.Fatalf("%v", list)
	}
	checks := map[string]admin.Check{}
	for _, c := range d.Checks {
		checks[c.Name] = c
	}
	if !checks["extensions"].OK || checks["extensions"].Detail != "In use: x-contacts." || checks["extension x-broken"].OK ||
		checks["extension x-broken"].Code != "CONFIG_ERROR" || !strings.Contains(checks["extension x-broken"].Detail, "not that of its directory") {
		t.Errorf("%s", list[0].raw)
	}
	// The bare mailbox between agents has no extensions, and says nothing of them.
	if status, out, stderr := inThisProcess(t, append(v.environment(false), house.ExtensionsVar+"="+dir), []string{"agent", "describe"}); status != 0 || len(stderr) > 0 || bytes.Contains(out, []byte("x-")) {
		t.Errorf("%d %s", status, stderr)
	}
}

// TestWhereExtensionsAre names the directory in each way.
func TestWhereExtensionsAre(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	beside := contactsBeside(t, v, false)
	var said bytes.Buffer
	p := newProcess(t)
	p.stderr = &said
	environ := map[string]string{"POSTERN_DB": v.path}
	p.getenv = func(name string) string { return environ[name] }
	load := func(from house.ExtensionsFrom, named string) (commands int, says string) {
		said.Reset()
		environ[house.ExtensionsVar] = named
		for _, c := range wired(t)(p.house(house.Plan{Profile: gateway.FullProfile(), Extensions: from})).Registry.Commands() {
			if c.Extension() != "" {
				commands++
			}
		}
		return commands, said.String()
	}
	for _, c := range []struct {
		from  house.ExtensionsFrom
		named string
		n     int
		says  string
	}{
		{0, "", 0, ""}, {0, beside, 0, ""}, {house.WhereNamed, "", 0, ""}, {house.WhereNamed, beside, 2, ""}, {house.BesideVault, "", 2, ""}, {house.BesideVault, beside, 2, ""},
		{house.BesideVault, filepath.Join(beside, "none"), 0, "does not exist"}, {house.BesideVault, "extensions", 0, "absolute path"},
	} {
		if n, says := load(c.from, c.named); n != c.n || (says == "") != (c.says == "") || !strings.Contains(says, c.says) {
			t.Errorf("%d %q: %d commands, %q", c.from, c.named, n, says)
		}
	}
	// Without a directory beside the vault there is nothing to say.
	environ["POSTERN_DB"] = filepath.Join(t.TempDir(), "postern.db")
	if n, says := load(house.BesideVault, ""); n != 0 || says != "" {
		t.Errorf("%d commands, %q", n, says)
	}
}
