//go:build unix

package extension

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/internal/testmain"
)

// secret is a text that no answer, audit entry or environment may hold.
const secret = "hunter2hunter2"

// forever is longer than every test, and bounds the life of programs that a failed test
// leaves behind.
const forever = 5 * time.Minute

// says makes a directory with one extension, x-it, whose program prints a text and ends.
func says(t testing.TB, text, end string) string {
	t.Helper()
	dir := directory(t)
	at := installScript(t, dir, "x-it", manifestOf("x-it", "run", "read"), "#!/bin/sh\n/bin/cat output\n"+end+"\n")
	must(t, os.WriteFile(filepath.Join(at, "output"), []byte(text), 0o644))
	return dir
}

func init() {
	for name, do := range map[string]func(){
		"hang":   func() { time.Sleep(forever) },
		"ignore": func() { signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT); time.Sleep(forever) },
		"flood": func() {
			for {
				if _, err := os.Stdout.WriteString(strings.Repeat("[", 64<<10)); err != nil {
					os.Exit(9)
				}
			}
		},
		"babble": func() {
			for range 400 {
				fmt.Fprint(os.Stderr, strings.Repeat(secret+" ", 2000))
			}
			fmt.Print(`{"ok":true}`)
		},
		"failsecret": repeatsKey,
		"leave":      func() { leaves(nil) },
		"escape":     func() { leaves(&syscall.SysProcAttr{Setsid: true}) },
		"forks":      func() { leaves(nil); time.Sleep(forever) },
		"counts":     counts,
	} {
		behaviours[name] = do
	}
}

// repeatsKey fails with the sensitive argument in its message.
func repeatsKey() {
	var in struct{ Arguments struct{ Key string } }
	_ = json.NewDecoder(os.Stdin).Decode(&in)
	fmt.Print(`{"error":{"code":"AUTH_FAILED","message":"The key ` + in.Arguments.Key + ` is wrong."}}`)
	os.Exit(1)
}

// leaves starts a child that keeps the standard output open. It writes the child's process
// id to a file and prints it.
func leaves(attr *syscall.SysProcAttr) {
	self, err := os.Executable()
	if err != nil {
		os.Exit(1)
	}
	c := exec.Cmd{Path: self, Args: []string{prefix + "hang"}, Stdout: os.Stdout, SysProcAttr: attr}
	if err := c.Start(); err != nil {
		os.Exit(1)
	}
	_ = os.WriteFile("child", []byte(strconv.Itoa(c.Process.Pid)), 0o644)
	fmt.Printf(`{"child":%d}`, c.Process.Pid)
}

// counts prints how many programs like it run at the same time.
func counts() {
	mark := fmt.Sprintf("running-%d", os.Getpid())
	if err := os.WriteFile(mark, nil, 0o644); err != nil {
		os.Exit(1)
	}
	defer os.Remove(mark)
	most := 0
	for range 40 {
		running, _ := filepath.Glob("running-*")
		most = max(most, len(running))
		time.Sleep(time.Millisecond)
	}
	fmt.Print(most)
}

func TestInvalidOutputIsAnError(t *testing.T) {
	t.Parallel()
	type output struct{ want, text, end string }
	cases := []output{{"printed more than 252 KiB", "", "exec /usr/bin/yes '[['"}, {"ended by the system", "", "kill -9 $$"}}
	for _, c := range testmain.Table[struct{ Status, Want, Text string }](t, "testdata/cases/invalid_output.txt") {
		cases = append(cases, output{c.Want, c.Text, "exit " + c.Status})
	}
	for _, c := range cases {
		s := whole(t, says(t, c.text, c.end), Options{})
		r := s.do(t, "x-it")
		if r.Success || r.Error.Code != discovery.ExecutionError || !strings.Contains(r.Error.Message, c.want) || r.Error.Hint == "" || strings.Contains(r.raw, secret) ||
			r.Meta.Untrusted != nil || len(r.raw) > 1000 {
			t.Errorf("%.100q, %s: %s", c.text, c.end, r.raw)
		}
		if e := s.notes.entries; len(e) != 1 || e[0].Parsed != "x-it" || e[0].Code != "EXECUTION_ERROR" || !e[0].Allowed || strings.Contains(fmt.Sprint(e), secret) {
			t.Errorf("%.100q, %s: %+v", c.text, c.end, e)
		}
	}
}

func TestValidOutputIsTheAnswer(t *testing.T) {
	t.Parallel()
	valid := func(dir, want string) {
		t.Helper()
		r := whole(t, dir, Options{}).do(t, "x-it")
		if !r.Success || string(r.Data) != want || strings.Contains(r.raw, secret) || fmt.Sprint(r.Meta.Untrusted) != "[*]" || len(r.raw) > gateway.MaxAnswerBytes {
			t.Errorf("%.1000s, want %.1000s", r.raw, want)
		}
	}
	for _, c := range testmain.Table[struct{ Text, Want string }](t, "testdata/cases/valid_output.txt") {
		valid(says(t, c.Text, ""), c.Want)
	}
	valid(one(t, "babble", "read"), `{"ok":true}`)
}

func TestAProgramsOwnErrorIsPassedOn(t *testing.T) {
	t.Parallel()
	for _, c := range testmain.Table[struct{ Code, Message, Hint, Text string }](t, "testdata/cases/own_error.txt") {
		r := whole(t, says(t, c.Text, "exit 1"), Options{}).do(t, "x-it")
		if string(r.Error.Code) != c.Code || r.Error.Message != c.Message || r.Error.Hint != c.Hint || fmt.Sprint(r.Meta.Untrusted) != "[error.message error.hint]" || strings.Contains(r.raw, secret) {
			t.Errorf("%s: %s", c.Text, r.raw)
		}
	}
}

// The program repeats the value of a sensitive argument in its error. It must be neither in
// the answer nor in the audit entry.
func TestASensitiveArgumentIsNotRepeated(t *testing.T) {
	s := whole(t, one(t, "failsecret", "read"), Options{})
	for _, line := range []string{"x-it --key " + secret, "x-it --key=" + secret, "x-it a --key " + secret + " --count 3"} {
		r := s.do(t, line)
		if r.Success || !strings.Contains(r.Error.Message, "is not shown") || strings.Contains(r.raw, secret) || !strings.Contains(r.Meta.Command, discovery.Redacted) {
			t.Errorf("%s", r.raw)
		}
	}
	// Without a sensitive argument the program's own message is shown.
	if r := s.do(t, "x-it"); r.Error.Code != discovery.AuthFailed {
		t.Errorf("%s", r.raw)
	}
	if text := fmt.Sprint(s.notes.entries); len(s.notes.entries) != 4 || strings.Contains(text, secret) || strings.Count(text, discovery.Redacted) != 3 {
		t.Errorf("%s", text)
	}
}

// One of the programs ignores every signal that it can, and one has a child.
func TestADeadlineEndsAProgram(t *testing.T) {
	t.Parallel()
	for does, effect := range map[string]string{"hang": "read", "ignore": "write", "forks": "read"} {
		t.Run(does, func(t *testing.T) {
			t.Parallel()
			dir := one(t, does, effect)
			r := whole(t, dir, Options{}).do(t, "x-it --timeout 1")
			if r.Success || r.Error.Code != discovery.Timeout || strings.Contains(r.Error.Message, "not known") != (effect == "write") {
				t.Errorf("%s", r.raw)
			}
			if does == "forks" {
				gone(t, childOf(t, dir))
			}
		})
	}
}

func TestACancelledCommandEndsItsProgram(t *testing.T) {
	dir := one(t, "forks", "read")
	s := whole(t, dir, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan reply)
	go func() { done <- s.as(t, ctx, gateway.Principal{}, "x-it") }()
	child := childOf(t, dir)
	cancel()
	if r := <-done; r.Success || r.Error.Message != "The command was cancelled." {
		t.Errorf("%s", r.raw)
	}
	gone(t, child)
}

// childOf waits for the process id of a program's child, which the program writes to a file
// in its directory.
func childOf(t testing.TB, dir string) int {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		raw, _ := os.ReadFile(filepath.Join(dir, "x-it", "child"))
		if pid, err := strconv.Atoi(string(raw)); err == nil {
			return pid
		}
	}
	t.Fatal("the program started no child")
	return 0
}

// gone waits until a process has ended; a zombie counts as ended.
func gone(t testing.TB, pid int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if !lives(pid) {
			return
		}
	}
	t.Errorf("process %d lives", pid)
	_ = syscall.Kill(pid, syscall.SIGKILL)
}

func lives(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(after, "Z")
}

// A child that keeps the output open is killed when its parent has answered. One that left
// the process group is not waited for.
func TestAChildThatKeepsTheOutputOpen(t *testing.T) {
	t.Parallel()
	for _, does := range []string{"leave", "escape"} {
		dir := one(t, does, "read")
		r := whole(t, dir, Options{}).do(t, "x-it")
		var data struct{ Child int }
		if err := json.Unmarshal(r.Data, &data); err != nil || data.Child == 0 {
			t.Fatalf("%s: %v", r.raw, err)
		}
		if does == "leave" {
			gone(t, data.Child)
		} else if !lives(data.Child) {
			t.Error("the test does not show what it says: the child did not leave")
		} else if err := syscall.Kill(data.Child, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	}
}

// The program gets more input than a pipe holds.
func TestAProgramThatReadsNothing(t *testing.T) {
	s := whole(t, says(t, `{"ok":true}`, ""), Options{})
	if r := s.do(t, "x-it "+strings.Repeat("é", 9000)); !r.Success {
		t.Fatalf("%s", r.raw)
	}
	tokens := []string{"x-it"}
	for range 90 {
		tokens = append(tokens, strings.Repeat("x", 10_000))
	}
	if a := s.Do(t.Context(), gateway.Request{Tokens: tokens}); !a.Success() {
		t.Errorf("%s", a.JSON)
	}
}

func TestAProgramGetsItsArgumentsAndNoSecret(t *testing.T) {
	for _, env := range []string{"POSTERN_KEY", "POSTERN_ADMIN_KEY", "MAIL_IMAP_DEFAULT_PASS", "SSH_AUTH_SOCK", "LD_PRELOAD_X", "API_TOKEN"} {
		t.Setenv(env, secret)
	}
	dir := one(t, "echo", "write")
	s := whole(t, dir, Options{Environ: append(os.Environ(), "PATH=relative:/usr/bin::.:/bin", "LANG=C.UTF-8")})
	r := s.as(t, t.Context(), gateway.Principal{Name: "ann", Admin: true}, `x-it one 'two words' --since 2026-02-02T10:00:00Z --key `+secret)
	var g given
	if err := json.Unmarshal(r.Data, &g); err != nil {
		t.Fatalf("%s: %v", r.raw, err)
	}
	want := map[string]any{"words": []any{"one", "two words"}, "key": secret, "since": "2026-02-02T10:00:00Z", "count": 3.0}
	if fmt.Sprint(g.Input.Arguments) != fmt.Sprint(want) || g.Input.Command != "x-it" || g.Input.Principal != "ann" || !g.Input.Admin {
		t.Errorf("%+v", g.Input)
	}
	if at, err := time.Parse(time.RFC3339, g.Input.Deadline); err != nil || time.Until(at) > 31*time.Second {
		t.Errorf("deadline %q, %v", g.Input.Deadline, err)
	}
	if resolved, _ := filepath.EvalSymlinks(filepath.Join(dir, "x-it")); g.Dir != resolved || len(g.Arguments) != 1 {
		t.Errorf("started in %q as %q", g.Dir, g.Arguments)
	}
	for _, v := range g.Environ {
		name, value, _ := strings.Cut(v, "=")
		if strings.Contains(v, secret) || strings.HasPrefix(name, "POSTERN_") || name == "PATH" && (strings.Contains(value, "relative") || strings.Contains(value, ".")) {
			t.Errorf("the program gets %s", v)
		}
	}
	if !strings.Contains(strings.Join(g.Environ, "\n"), "LANG=C.UTF-8") {
		t.Errorf("%q", g.Environ)
	}
	// Without Environ the program gets no variables.
	if r := whole(t, dir, Options{}).do(t, "x-it"); json.Unmarshal(r.Data, &g) != nil || len(g.Environ) > 1 {
		t.Errorf("%q", g.Environ) // os/exec sets PWD
	}
}

// Many commands at once are all answered, and at most maxConcurrent programs run at a time.
func TestManyCommandsAtOnce(t *testing.T) {
	t.Parallel()
	const howMany = 4 * maxConcurrent
	s := whole(t, one(t, "counts", "read"), Options{})
	answers := make([]reply, howMany)
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() { answers[i] = s.do(t, "x-it --timeout 300") })
	}
	wg.Wait()
	most := 0
	for _, r := range answers {
		n, err := strconv.Atoi(string(r.Data))
		if !r.Success || err != nil {
			t.Fatalf("%s", r.raw)
		}
		most = max(most, n)
	}
	if most > maxConcurrent || len(s.notes.entries) != howMany {
		t.Errorf("%d ran at once; %d audit entries", most, len(s.notes.entries))
	}
}

// All slots are taken, so the command waits until its deadline.
func TestACommandThatWaitsForASlotKeepsItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRunner("", Options{})
		for range maxConcurrent {
			r.slots <- struct{}{}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := r.run(ctx, &discovery.Call{}, &job{}, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
	})
}

func TestAnAnswerMatchesTheOutputOfTheManifest(t *testing.T) {
	for text, ok := range map[string]bool{` {"total" : 1 } `: true, `{"total":"many"}`: false, `{"total":1,"more":2}`: false, `{"ok":true}`: false} {
		dir := directory(t)
		installScript(t, dir, "x-it", `{"name":"x-it","summary":"Do","program":"run","effect":"read","examples":["x-it"],
			"output":{"type":"object","properties":{"total":{"type":"integer"}},"required":["total"]}}`, "#!/bin/sh\necho '"+text+"'\n")
		r := whole(t, dir, Options{}).do(t, "x-it --fields total")
		if r.Success != ok || !ok && !strings.Contains(r.Error.Message, "match its manifest") || ok && string(r.Data) != `{"total":1}` {
			t.Errorf("%s: %s", text, r.raw)
		}
	}
}
