package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// nobodyUID is the user under whom root runs the processes of a test: root may read any
// process, and others of one user may not.
const nobodyUID = 65534

// asUser has a command run by a user who is not root. Everybody else is that user already.
func asUser(c *exec.Cmd) *exec.Cmd {
	if os.Getuid() == 0 {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobodyUID, Gid: nobodyUID}}
	}
	return c
}

// userDirectory is a directory that the user of asUser has.
func userDirectory(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	if os.Getuid() == 0 {
		if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
			t.Fatal(err)
		}
		giveUser(t, dir)
	}
	return dir
}

// giveUser gives all there is in a directory to the user of asUser.
func giveUser(t testing.TB, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil || os.Getuid() != 0 {
			return err
		}
		return os.Chown(path, nobodyUID, nobodyUID)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// pry is a script that tells what a process reads of another, whose id is $1.
const pry = `cat "/proc/$1/environ" 2>&1 | tr '\0' '\n'; if (exec 3<"/proc/$1/mem") 2>/dev/null; then echo memory; fi`

// TestNobodyReadsAKeyFromAProcess has another program of the same user, an extension, a
// helper and root look at processes that were given keys and a password by their
// environment.
func TestNobodyReadsAKeyFromAProcess(t *testing.T) {
	t.Parallel()
	dir := userDirectory(t)
	v := newVault(t)
	vaultFile := filepath.Join(dir, "vault", "postern.db")
	ownDirectory(t, filepath.Dir(vaultFile))
	if err := os.Rename(v.path, vaultFile); err != nil {
		t.Fatal(err)
	}
	v.path = vaultFile
	const password = "environment-s3cret"
	env := append(v.environment(true), "HOME="+dir, "MAIL_IMAP_X_HOST=127.0.0.1", "MAIL_IMAP_X_USER=x", "MAIL_IMAP_X_PASS="+password)
	needles := []string{v.text[0], v.text[1], password}

	// The test's own program lies where only this user gets.
	program := filepath.Join(dir, "postern")
	content, err := os.ReadFile(childProgram(t))
	if err != nil {
		t.Fatal(err)
	}
	ownFile(t, program, string(content), 0o755)
	command := func(path string, args ...string) *exec.Cmd {
		c := asUser(exec.CommandContext(t.Context(), path, args...))
		c.Dir, c.Env = dir, append([]string{"PATH=" + os.Getenv("PATH"), actAsPostern + "=1"}, env...)
		return c
	}

	found := filepath.Join(dir, "found")
	look := "#!/bin/sh\nexec >>" + found + "\nset -- $PPID\n" + pry + "\necho looked\n"
	extension := filepath.Join(dir, "vault", "extensions", "x-look")
	ownDirectory(t, filepath.Dir(extension))
	ownDirectory(t, extension)
	ownFile(t, filepath.Join(extension, "manifest.json"), `{"name":"x-look","summary":"Look","program":"run","effect":"read","examples":["x-look"]}`, 0o644)
	ownFile(t, filepath.Join(extension, "run"), look, 0o755)
	helper := filepath.Join(dir, "helper")
	ownFile(t, helper, look, 0o755)
	giveUser(t, dir)

	readBy := func(pid int) string {
		c := command("/bin/sh", "-c", pry, "sh", fmt.Sprint(pid))
		c.Env = nil
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	holds := func(text string) bool {
		return strings.Contains(text, "memory\n") || slices.ContainsFunc(needles, func(s string) bool { return strings.Contains(text, s) })
	}

	// What a program that protects nothing lets out shows that the others could look.
	open := command("sleep", "1000")
	if err := open.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = open.Process.Kill(); _ = open.Wait() }()
	eventually(t, "sleep", func() bool { return strings.Contains(readBy(open.Process.Pid), v.text[1]) })
	if got := readBy(open.Process.Pid); !strings.Contains(got, password) || !strings.Contains(got, "memory\n") {
		t.Fatalf("of an open process: %q", got)
	}

	account := []string{"work", "--email", "me@example.org", "--imap-host", "127.0.0.1", "--password-from", "stdin"}
	for name, args := range map[string][]string{
		"serve": {"serve"}, "repl": {"repl"}, "demo": {"demo"}, "init": append([]string{"init"}, account...),
		"exec": {"exec", "agent read probe:one --wait 60s"}, "agent": {"agent", "read", "probe:one", "--wait", "60s"},
		"direct": {"agent", "read", "probe:two", "--wait", "60s"}, "transport": {"serve", "--profile", "transport", "--host", "127.0.0.1", "--port", "1", "--security", "none", "--username", "x", "--helper", helper},
	} {
		t.Run(name, func(t *testing.T) {
			c := command(program, args...)
			held, err := c.StdinPipe() // it waits for input
			if err != nil {
				t.Fatal(err)
			}
			var said bytes.Buffer
			c.Stdout, c.Stderr = &said, &said
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = held.Close(); _ = c.Process.Kill(); _ = c.Wait() }()
			proc := fmt.Sprintf("/proc/%d/", c.Process.Pid)
			// A process is open until its first instructions have run.
			eventually(t, "nothing for another process to read", func() bool { return !holds(readBy(c.Process.Pid)) })
			if b, err := os.ReadFile(proc + "limits"); err != nil || !strings.Contains(string(b), "Max core file size        0                    0 ") {
				t.Errorf("core files: %s, %v: %s", b, err, said.String())
			}
			if os.Getuid() == 0 { // who may read it finds nothing
				eventually(t, "no key in the environment", func() bool {
					b, err := os.ReadFile(proc + "environ")
					if err != nil {
						t.Fatalf("%v: %s", err, said.String())
					}
					return !holds(string(b)) && bytes.Contains(b, []byte("POSTERN_KEY=")) && bytes.Contains(b, []byte("POSTERN_DB="+v.path+"\x00"))
				})
			}
			if name == "transport" {
				eventually(t, "the helper", func() bool { b, _ := os.ReadFile(found); return strings.Contains(string(b), "looked") })
			}
		})
	}

	c := command(program, "exec", "x-look")
	out, err := c.CombinedOutput()
	if err != nil && !strings.Contains(string(out), `"success"`) {
		t.Fatalf("%v: %s", err, out)
	}
	// The keys reach what needs them.
	c = command(program, "repl")
	c.Stdin = io.NopCloser(strings.NewReader("account list\nmail accounts\n"))
	if out, err := c.CombinedOutput(); err != nil || strings.Count(string(out), `"success":true`) != 2 || !strings.Contains(string(out), `"x"`) {
		t.Errorf("%v: %s", err, out)
	}
	b, err := os.ReadFile(found)
	if err != nil || strings.Count(string(b), "looked\n") != 2 || holds(string(b)) {
		t.Errorf("the helper and the extension read %q, %v; %s", b, err, out)
	}
}
