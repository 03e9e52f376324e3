//go:build unix

package login

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail"
)

// helperScript writes a program that a helper can be, in a directory of its own.
func helperScript(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "helper")
	// The descriptor must be closed before any child can inherit it: a file that is
	// open for writing cannot be executed.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	must(t, os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o700))
	return path
}

func helperAccount(name string, argv ...string) *mail.Account {
	return &mail.Account{Name: name, Protocol: mail.IMAP, IMAP: mail.Endpoint{Host: "imap.example.org", Port: 993, Security: mail.TLS}, Username: "ann",
		Auth: mail.AuthHelper, Mode: mail.ReadOnly, Helper: argv}
}

func newHelpers(t *testing.T) (*helperSource, *fakeClock) {
	t.Helper()
	c := newFakeClock()
	h := newHelperSource(os.Environ(), c.now)
	h.limit = time.Hour // nothing may end because time is up, save where a test says so
	t.Cleanup(h.Close)
	return h, c
}

// runs counts the lines of a file that a script adds one to at each run.
func runs(t *testing.T, file string) int {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return bytes.Count(b, []byte("\n"))
}

func helperGives(t *testing.T, h *helperSource, a *mail.Account, want string) mail.Secret {
	t.Helper()
	s, err := h.Secret(t.Context(), a)
	if err != nil || s.Reveal() != want {
		t.Fatalf("%q, %v; want %q", s.Reveal(), err, want)
	}
	return s
}

func helperFails(t *testing.T, h *helperSource, a *mail.Account, kind mail.Kind, says string) *mail.Error {
	t.Helper()
	s, err := h.Secret(t.Context(), a)
	var e *mail.Error
	if !s.IsZero() || !errors.As(err, &e) || e.Kind != kind || !strings.Contains(e.Message+" "+string(e.Advice), says) {
		t.Fatalf("%v, %v; want %s with %q", s, err, kind, says)
	}
	if text := fmt.Sprintf("%+v %v %#v %s %s", e, e, e.Err, e.Message, e.Advice); strings.Contains(text, "canary") {
		t.Errorf("it repeats what the helper printed: %s", text)
	}
	if e.Account != a.Name || e.Stage != "credential" || !strings.HasSuffix(e.Message, ".") || e.Advice == "" {
		t.Errorf("%+v", e)
	}
	return e
}

func TestTheFirstLineOfAHelperIsTheSecret(t *testing.T) {
	t.Parallel() // one of them waits for a second
	for _, c := range testmain.Table[struct {
		Name, Secret string
		Kind         mail.Kind
		Says, Script string
	}](t, "testdata/cases/helper.txt") {
		t.Run(c.Name, func(t *testing.T) {
			h, _ := newHelpers(t)
			if a := helperAccount("work", helperScript(t, c.Script)); c.Kind == "" {
				helperGives(t, h, a, c.Secret)
			} else {
				helperFails(t, h, a, c.Kind, c.Says)
			}
		})
	}
}

func TestAHelperThatGivesNothingIsAClearErrorWithoutItsWords(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	plain := filepath.Join(directory, "plain")
	must(t, os.WriteFile(plain, []byte("#!/bin/sh\necho secret\n"), 0o600))
	for name, test := range map[string]struct {
		argv []string
		kind mail.Kind
		says string
	}{
		"no command":      {nil, mail.KindConfig, "has no helper command"},
		"missing":         {[]string{filepath.Join(directory, "nothing")}, mail.KindConfig, "is not there"},
		"missing in PATH": {[]string{"postern-no-such-helper"}, mail.KindConfig, "is not there"},
		"a directory":     {[]string{directory}, mail.KindConfig, "is not there"},
		"not executable":  {[]string{plain}, mail.KindConfig, "is not there"},
		"no program":      {[]string{helperBytes(t, "\x7fELFcanary-word")}, mail.KindConfig, "cannot be started"},
		"relative":        {[]string{"./helper"}, mail.KindConfig, "is not there"},
	} {
		t.Run(name, func(t *testing.T) {
			h, _ := newHelpers(t)
			helperFails(t, h, helperAccount("work", test.argv...), test.kind, test.says)
		})
	}
}

func helperBytes(t *testing.T, content string) string {
	t.Helper()
	path := helperScript(t, "")
	must(t, os.WriteFile(path, []byte(content), 0o700))
	return path
}

// TestNoHelperIsFoundInTheCurrentDirectory puts a program where a shell or a PATH
// with a relative or empty entry would find it.
func TestNoHelperIsFoundInTheCurrentDirectory(t *testing.T) {
	path := helperScript(t, "echo planted")
	t.Chdir(filepath.Dir(path))
	for _, debug := range []string{"", "execerrdot=0"} { // with it the library allows what we do not
		t.Setenv("GODEBUG", debug)
		for _, list := range []string{"", ".", ":/usr/bin", "/usr/bin:", ".:/usr/bin"} {
			t.Setenv("PATH", list)
			h, _ := newHelpers(t)
			helperFails(t, h, helperAccount("work", "helper"), mail.KindConfig, "is not there")
		}
	}
	t.Setenv("PATH", filepath.Dir(path))
	h, _ := newHelpers(t)
	helperGives(t, h, helperAccount("work", "helper"), "planted")
}

func TestArgumentsReachAHelperAsTheyAre(t *testing.T) {
	h, _ := newHelpers(t)
	path := helperScript(t, `printf '%s|' "$#" "$@"`)
	helperGives(t, h, helperAccount("work", path, "get", "$HOME `id`", "", "a 'b' \"c\" *"), "4|get|$HOME `id`||a 'b' \"c\" *|")
}

// TestAHelperSeesNothingOfOurs looks from inside a helper.
func TestAHelperSeesNothingOfOurs(t *testing.T) {
	t.Setenv("POSTERN_KEY", "canary")
	t.Setenv("POSTERN_ADMIN_KEY_FILE", "canary")
	t.Setenv("MAIL_IMAP_WORK_PASS", "canary")
	t.Setenv("HELPER_NEEDS", "this")
	for name, test := range map[string]struct{ body, want string }{
		"keys and passwords":    {`env | grep -c canary; true`, "0"},
		"the rest of it":        {`echo $HELPER_NEEDS`, "this"},
		"the working directory": {`pwd`, "/"},
		"standard input":        {`if read x; then echo input; else echo end; fi`, "end"},
		"a terminal":            {`if (: </dev/tty) 2>/dev/null; then echo terminal; else echo none; fi`, "none"},
	} {
		t.Run(name, func(t *testing.T) {
			h, _ := newHelpers(t)
			helperGives(t, h, helperAccount("work", helperScript(t, test.body)), test.want)
		})
	}
	if _, err := os.Stat("/proc/self/stat"); err == nil { // where a test has no terminal either way
		h, _ := newHelpers(t)
		helperGives(t, h, helperAccount("work", helperScript(t, `if [ "$(cut -d' ' -f6 /proc/$$/stat)" = $$ ]; then echo leader; else echo member; fi`)), "leader")
	}
}

// blockingHelper is a script that waits at a pipe before it prints, and counts its runs.
type blockingHelper struct{ path, count, gate string }

func newBlockingHelper(t *testing.T) blockingHelper {
	t.Helper()
	dir := t.TempDir()
	g := blockingHelper{count: filepath.Join(dir, "count"), gate: filepath.Join(dir, "gate")}
	must(t, syscall.Mkfifo(g.gate, 0o600))
	g.path = helperScript(t, fmt.Sprintf("echo x >>%s; read word <%s; echo $word", g.count, g.gate))
	return g
}

// open lets the run that waits print word.
func (g blockingHelper) open(t *testing.T, word string) {
	t.Helper()
	if err := os.WriteFile(g.gate, []byte(word+"\n"), 0); err != nil {
		t.Error(err)
	}
}

func TestCallersShareOneRunAndWhatItGave(t *testing.T) {
	h, _ := newHelpers(t)
	g := newBlockingHelper(t)
	a := helperAccount("work", g.path)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if s, err := h.Secret(t.Context(), a); err != nil || s.Reveal() != "secret" {
				t.Errorf("%q, %v", s.Reveal(), err)
			}
		})
	}
	g.open(t, "secret")
	wg.Wait()
	helperGives(t, h, a, "secret")
	if n := runs(t, g.count); n != 1 {
		t.Errorf("%d runs", n)
	}
	other := helperAccount("other", g.path)
	wg.Go(func() { helperGives(t, h, other, "else") })
	g.open(t, "else")
	wg.Wait()
	if n := runs(t, g.count); n != 2 {
		t.Errorf("%d runs for two accounts", n)
	}
}

func TestACallerThatGivesUpLeavesTheRunToTheNext(t *testing.T) {
	h, _ := newHelpers(t)
	g := newBlockingHelper(t)
	a := helperAccount("work", g.path)
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := h.Secret(ctx, a)
		failed <- err
	}()
	waitForRuns(t, g.count, 1)
	cancel()
	err := <-failed
	var e *mail.Error
	if !errors.Is(err, context.Canceled) || !errors.As(err, &e) || e.Kind != mail.KindTimeout {
		t.Errorf("%v", err)
	}
	g.open(t, "secret")
	helperGives(t, h, a, "secret")
	if n := runs(t, g.count); n != 1 {
		t.Errorf("%d runs", n)
	}
}

// waitForRuns returns when a script has begun as many times.
func waitForRuns(t *testing.T, file string, n int) {
	t.Helper()
	for runs(t, file) < n {
		select {
		case <-t.Context().Done():
			t.Fatal("the helper did not begin")
		case <-time.After(time.Millisecond):
		}
	}
}

// TestAHelperThatHangsIsKilledWithItsChildren ends a run by its own bound, and one
// by Close, and looks for what the helper had started.
func TestAHelperThatHangsIsKilledWithItsChildren(t *testing.T) {
	t.Parallel()
	pid := filepath.Join(t.TempDir(), "pid")
	path := helperScript(t, fmt.Sprintf("sleep 1000 & echo $! >%s; wait", pid))

	h, _ := newHelpers(t)
	h.limit = 50 * time.Millisecond
	helperFails(t, h, helperAccount("work", helperScript(t, "exec sleep 1000")), mail.KindTimeout, "did not finish")
	helperFails(t, h, helperAccount("work", helperScript(t, "sleep 1000 & wait")), mail.KindTimeout, "did not finish")

	h, _ = newHelpers(t)
	failed := make(chan error, 1)
	go func() {
		_, err := h.Secret(t.Context(), helperAccount("work", path))
		failed <- err
	}()
	waitForRuns(t, pid, 1)
	h.Close()
	var e *mail.Error
	if err := <-failed; !errors.As(err, &e) || e.Kind != mail.KindConnection {
		t.Errorf("%v", err)
	}
	var child int
	b, err := os.ReadFile(pid)
	must(t, err)
	if _, err := fmt.Sscan(string(b), &child); err != nil {
		t.Fatal(err)
	}
	for running(child) {
		select {
		case <-t.Context().Done():
			t.Fatalf("process %d lives on", child)
		case <-time.After(time.Millisecond):
		}
	}
}

// running reports whether a process runs; one that is dead and not yet waited for
// by whoever inherited it does not.
func running(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || !bytes.Contains(stat, []byte(") Z "))
}

// TestARefusedSecretIsFetchedOnceMoreThenLeftAlone goes through what the server
// may say of what a helper gives, with a helper that gives something else at each
// run.
func TestARefusedSecretIsFetchedOnceMoreThenLeftAlone(t *testing.T) {
	h, c := newHelpers(t)
	count := filepath.Join(t.TempDir(), "count")
	a := helperAccount("work", helperScript(t, fmt.Sprintf("echo x >>%s; wc -l <%[1]s | tr -d ' '", count)))
	steps := func(want int) {
		t.Helper()
		if n := runs(t, count); n != want {
			t.Fatalf("%d runs, want %d", n, want)
		}
	}
	if h.Refused(a, mail.NewSecret([]byte("never given"))) {
		t.Error("there is nothing newer before the first run")
	}
	first := helperGives(t, h, a, "1")
	if !h.Refused(a, first) {
		t.Fatal("the first refusal is worth another run")
	}
	if !h.Refused(a, first) {
		t.Error("a second connection with the same secret is worth the same run")
	}
	second := helperGives(t, h, a, "2")
	if !h.Refused(a, first) {
		t.Error("there is something newer than the first")
	}
	helperGives(t, h, a, "2")
	for range 2 {
		if h.Refused(a, second) {
			t.Fatal("the second refusal is worth another run")
		}
	}
	for range 5 {
		helperFails(t, h, a, mail.KindAuth, "It is run again in 30 s at the earliest.")
	}
	steps(2)

	c.advance(HelperPause - time.Second)
	helperFails(t, h, a, mail.KindAuth, "in 1 s")
	c.advance(time.Second)
	third := helperGives(t, h, a, "3")
	if h.Refused(a, third) {
		t.Error("after a pause one refusal is enough for the next")
	}
	helperFails(t, h, a, mail.KindAuth, "in 30 s")
	steps(3)

	// One that was in use for long has become old, which is no fault of the helper.
	c.advance(HelperPause)
	fourth := helperGives(t, h, a, "4")
	c.advance(24 * time.Hour)
	if !h.Refused(a, fourth) {
		t.Error("a secret that was good for a day is worth another run")
	}
	helperGives(t, h, a, "5")
	steps(5)
}

func TestTheSameSecretIsNotTriedTwice(t *testing.T) {
	h, c := newHelpers(t)
	count := filepath.Join(t.TempDir(), "count")
	a := helperAccount("work", helperScript(t, fmt.Sprintf("echo x >>%s; echo wrong", count)))
	if !h.Refused(a, helperGives(t, h, a, "wrong")) {
		t.Fatal("the first refusal is worth another run")
	}
	e := helperFails(t, h, a, mail.KindAuth, "It is run again in 30 s at the earliest.")
	if strings.Contains(e.Message+string(e.Advice), "wrong") {
		t.Errorf("%v", e)
	}
	helperFails(t, h, a, mail.KindAuth, "in 30 s")
	if n := runs(t, count); n != 2 {
		t.Errorf("%d runs", n)
	}
	// The server may have been wrong: after the pause it is worth one try.
	c.advance(HelperPause)
	if h.Refused(a, helperGives(t, h, a, "wrong")) {
		t.Error("and only one")
	}
}

func TestAHelperThatFailedIsLeftAlone(t *testing.T) {
	h, c := newHelpers(t)
	dir := t.TempDir()
	count, good := filepath.Join(dir, "count"), filepath.Join(dir, "good")
	a := helperAccount("work", helperScript(t, fmt.Sprintf("echo x >>%s; test -e %s || exit 7; echo secret", count, good)))
	helperFails(t, h, a, mail.KindAuth, "status 7")
	helperFails(t, h, a, mail.KindAuth, "It is run again in 30 s at the earliest.")
	must(t, os.WriteFile(good, nil, 0o600))
	helperFails(t, h, a, mail.KindAuth, "status 7")
	if n := runs(t, count); n != 1 {
		t.Errorf("%d runs", n)
	}
	c.advance(HelperPause)
	helperGives(t, h, a, "secret")

	// Nobody was asked by a program that is not there, so it may come at any time.
	late := filepath.Join(dir, "late")
	b := helperAccount("late", late)
	helperFails(t, h, b, mail.KindConfig, "is not there")
	must(t, os.Link(helperScript(t, "echo secret"), late))
	helperGives(t, h, b, "secret")
}

func TestAnotherHelperIsRunAnewAndTheOldSecretIsWiped(t *testing.T) {
	h, _ := newHelpers(t)
	old, changed := helperAccount("work", helperScript(t, "echo old")), helperAccount("work", helperScript(t, "echo new"))
	s := helperGives(t, h, old, "old")
	kept := h.accounts["work"].secret
	helperGives(t, h, changed, "new")
	if kept.Reveal() != "\x00\x00\x00" || s.Reveal() != "old" {
		t.Errorf("kept %q, lent %q", kept.Reveal(), s.Reveal())
	}
	if h.Refused(old, s) {
		t.Error("the account has another helper now")
	}

	// A run of the old one is ended, and its caller told.
	g := newBlockingHelper(t)
	waiting := helperAccount("work", g.path)
	failed := make(chan error, 1)
	go func() {
		_, err := h.Secret(t.Context(), waiting)
		failed <- err
	}()
	waitForRuns(t, g.count, 1)
	helperGives(t, h, changed, "new")
	var e *mail.Error
	if err := <-failed; !errors.As(err, &e) {
		t.Errorf("%v", err)
	}
	helperGives(t, h, changed, "new")
}

func TestCloseWipesAndRefuses(t *testing.T) {
	h, _ := newHelpers(t)
	a := helperAccount("work", helperScript(t, "echo secret"))
	s := helperGives(t, h, a, "secret")
	kept := h.accounts["work"].secret
	h.Close()
	h.Close()
	if kept.Reveal() != "\x00\x00\x00\x00\x00\x00" || s.Reveal() != "secret" {
		t.Errorf("kept %q, lent %q", kept.Reveal(), s.Reveal())
	}
	helperFails(t, h, a, mail.KindConnection, "The program is ending")
	if h.Refused(a, s) {
		t.Error("nothing newer comes")
	}
}
