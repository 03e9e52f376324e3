package prompt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/postern-mail/postern/cmd/postern/internal/house"
	"github.com/postern-mail/postern/commands"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/demo"
	"github.com/postern-mail/postern/vault"
)

func TestMain(m *testing.M) { os.Exit(testmain.Run(m.Run)) }

func TestOpenWord(t *testing.T) {
	for line, want := range map[string]string{
		"": "0 ", "mail": "0 mail", "mail ": "5 ", "mail li": "5 li", `mail list --folder "Proj`: "19 Proj", `a 'b c`: "2 b c", `a "b\"c`: `2 b"c`,
		`a b\ c`: "2 b c", `x "a b"c`: "2 a bc", "mail  list": "6 list", `é ü`: "3 ü", `a --folder=Pr`: "2 --folder=Pr", `a '`: "2 ",
	} {
		start, word := openWord(line)
		if got := fmt.Sprint(start, " ", word); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

// talk is a conversation on the sample servers without a terminal.
func talk(t *testing.T) *conversation {
	return talkWith(t, func(string) string { return "" }, func(a *mail.Account) {
		a.Mode, a.AllowOut = mail.Approve, mail.AllowList{Enabled: true, Entries: []string{"@example.com"}}
	})
}

func talkWith(t *testing.T, getenv func(string) string, change func(*mail.Account)) *conversation {
	t.Helper()
	servers, err := demo.Start(demo.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = servers.Close() })
	v, remove, err := vault.Temporary(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = remove() })
	a := servers.Account()
	change(&a)
	if err := v.AddAccount(t.Context(), a, servers.Password); err != nil {
		t.Fatal(err)
	}
	s := &house.System{Getenv: getenv, Log: slog.New(slog.DiscardHandler), Stderr: io.Discard}
	h, err := s.Wire(house.Plan{Profile: gateway.FullProfile(), Principal: gateway.Principal{Name: "admin", Admin: true},
		Open: func(context.Context) (*vault.Vault, error) { return v, nil }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	nothing, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nothing.Close() })
	d := Door{Gateway: h.Gateway, Registry: h.Registry, Principal: h.Principal, Accounts: func(context.Context) ([]string, error) { return []string{a.Name}, nil }, Waiting: h.Waiting}
	return &conversation{Options: Options{Door: d, Stage: h.Stage, Getenv: getenv, Stdin: nothing, Stdout: io.Discard, Progress: NewProgress(io.Discard, getenv)}, history: &history{}, complete: NewCompleter(d)}
}

// at has the conversation be with a person who types these lines, and returns what they see.
func (c *conversation) at(lines ...string) *strings.Builder {
	var out strings.Builder
	c.Stdout, c.prompt = &out, &fakeTerminal{lines, &out}
	return &out
}

func (c *conversation) run1(t *testing.T, line string) {
	t.Helper()
	c.complete.note(c.Gateway.Do(t.Context(), gateway.Request{Principal: c.Principal, Line: line, Full: true}))
}

func TestCompletion(t *testing.T) {
	c := talk(t)
	ask := func(line string) string {
		head, list := c.complete.line(t.Context(), line)
		for i := range list {
			if !strings.HasSuffix(list[i], " ") {
				t.Errorf("%q: no space behind %q", line, list[i])
			}
			list[i] = strings.TrimSuffix(list[i], " ")
		}
		return head + "|" + strings.Join(list, "|")
	}
	for _, tc := range testmain.Table[struct{ Line, Want string }](t, "testdata/cases/completion.txt") {
		got, want := ask(tc.Line), tc.Want
		if strings.Contains(want, "--nonsense") || strings.HasPrefix(tc.Line, "outbox show") {
			got, want = sorted(got), sorted(want)
		}
		if got != want {
			t.Errorf("%q: %q, want %q", tc.Line, got, want)
		}
	}
	// What answers have named.
	c.run1(t, "mail folders")
	c.run1(t, "mail list --limit 2")
	c.run1(t, "mail send --to ann@example.com --subject Hi --body x")
	for _, tc := range testmain.Table[struct{ Line, Want string }](t, "testdata/cases/completion_named.txt") {
		if got := ask(tc.Line); sorted(got) != sorted(tc.Want) {
			t.Errorf("%q: %q, want %q", tc.Line, got, tc.Want)
		}
	}
	for _, line := range []string{"outbox approve ", "approve "} {
		if got := ask(line); !strings.HasPrefix(got, line+"|0") || strings.Count(got, "|") != 1 {
			t.Errorf("%s: %q", line, got)
		}
	}
	// A proposal is what it says when it is read back.
	for _, p := range c.complete.folders("demo") {
		if tokens, err := gateway.Tokenize(discovery.Quote(p)); err != nil || !slices.Equal(tokens, []string{p}) {
			t.Errorf("%q is read as %q, %v", p, tokens, err)
		}
	}
}

func sorted(s string) string {
	head, rest, _ := strings.Cut(s, "|")
	list := strings.Split(rest, "|")
	slices.Sort(list)
	return head + "|" + strings.Join(list, "|")
}

// Tab where files are asked for proposes those that begin as the last name does.
func TestCompletionOfFiles(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	for _, name := range []string{"plans/floor.png", "plans/floor 2.png", "plans/.hidden", "plans/a,b.txt", "plan.pdf", "other.txt"} {
		file := filepath.Join(home, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(home)
	for _, tc := range []struct {
		line, head string
		list       []string
	}{
		{"pl", "", []string{"plan.pdf", "plans/"}},
		{"other.txt, ~/pl", "other.txt, ", []string{"~/plan.pdf", "~/plans/"}},
		{"plans/", "", []string{"plans/floor 2.png", "plans/floor.png"}},
		{"plans/.h", "", []string{"plans/.hidden"}},
		{"plans/floor 2", "", []string{"plans/floor 2.png"}},
		{"nowhere/x", "", nil},
	} {
		if head, list := files(tc.line); head != tc.head || !slices.Equal(list, tc.list) {
			t.Errorf("%q: %q, %q", tc.line, head, list)
		}
	}
}

// What is kept of what was typed: commands, without bodies and secrets and without a
// trace of where they were.
func TestHistoryKeepsNoBodyAndNoSecret(t *testing.T) {
	c := talk(t)
	for _, tc := range testmain.Table[struct{ Line, Want string }](t, "testdata/cases/history.txt") {
		got, ok := c.remembered(tc.Line)
		if ok != (tc.Want != "") || got != tc.Want {
			t.Errorf("%q is kept as %q, %v; want %q", tc.Line, got, ok, tc.Want)
		}
		if strings.Contains(got, "secret") || strings.Contains(got, "redacted") {
			t.Errorf("%q is kept as %q", tc.Line, got)
		}
	}
}

func TestHistoryFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "state", "postern", "history")
	h, err := readHistory(name)
	if err != nil || len(h.lines) != 0 {
		t.Fatalf("%v, %v", h, err)
	}
	for _, line := range []string{"mail list", "mail list", "version", strings.Repeat("x", maxHistoryLine+1), ""} { // once in a row
		h.add("whole: "+line, line)
	}
	again, err := readHistory(name)
	if err != nil || !slices.Equal(again.lines, []string{"mail list", "version"}) {
		t.Fatalf("%q, %v", again.lines, err)
	}
	if err := os.Chmod(name, 0o644); err != nil { // as another program may have made it
		t.Fatal(err)
	}
	other, err := readHistory(name)
	if err != nil {
		t.Fatal(err)
	}
	for at, mode := range map[string]os.FileMode{name: 0o600, filepath.Dir(name): 0o700} {
		if info, err := os.Stat(at); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", at, info.Mode(), err)
		}
	}
	// Two prompts write side by side.
	var wg sync.WaitGroup
	for _, p := range []*history{again, other} {
		wg.Go(func() {
			for i := range 900 {
				p.add("", fmt.Sprintf("mail get --uid %d%p", i, p))
			}
		})
	}
	wg.Wait()
	content, err := os.ReadFile(name)
	if n := strings.Count(string(content), "\n"); err != nil || n != 1802 {
		t.Errorf("%d lines, %v", n, err)
	}
	for l := range strings.Lines(string(content)) {
		if strings.Count(l, "mail") > 1 {
			t.Errorf("mixed: %q", l)
		}
	}
	for range 2 {
		if h, err = readHistory(name); err != nil || len(h.lines) != maxHistory/2 {
			t.Errorf("%d lines are kept, %v", len(h.lines), err)
		}
	}
	if entries, _ := os.ReadDir(filepath.Dir(name)); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
	// What somebody else put there is not shown on a terminal.
	if err := os.WriteFile(name, []byte("version\n\x1b[2Jmail\nmail list\n\u202e\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if h, err = readHistory(name); err != nil || !slices.Equal(h.lines, []string{"version", "mail list"}) {
		t.Errorf("%q, %v", h.lines, err)
	}
}

func TestWhereTheHistoryIs(t *testing.T) {
	for _, tc := range []struct{ variable, value, want string }{{HistoryVar, "off", ""}, {HistoryVar, "/x/y", "/x/y"}, {"XDG_STATE_HOME", "/state", "/state/postern/history"}} {
		if tc.variable == "XDG_STATE_HOME" && runtime.GOOS != "linux" {
			continue
		}
		if got := historyFile(func(name string) string { return map[string]string{tc.variable: tc.value}[name] }); got != tc.want {
			t.Errorf("%s=%s: %q", tc.variable, tc.value, got)
		}
	}
	// A directory in its place keeps nothing and breaks nothing.
	if _, err := readHistory(t.TempDir()); err == nil {
		t.Error("a directory is taken for a history")
	}
}

// What the prompt says to type next can be typed.
func TestWhatToTypeNextIsQuoted(t *testing.T) {
	c := talk(t)
	const id = "imap:demo:Old 'mail':1:5"
	list := &commands.MailListResult{Folder: "Old 'mail'"}
	list.Messages = []commands.MessageEntry{{ID: id}}
	shown := c.look().Render(gateway.Answer{Result: list})
	_, line, _ := strings.Cut(strings.TrimRight(shown, "\x1b[0m\n"), "Read one: ")
	if tokens, err := gateway.Tokenize(line); err != nil || !slices.Equal(tokens, []string{"read", id}) {
		t.Errorf("%q is %q, %v", line, tokens, err)
	}
}

// Somebody with the agent's key alone is not asked: an agent can have a terminal.
func TestAnAgentAtATerminalApprovesNothing(t *testing.T) {
	c := talk(t)
	c.Principal.Admin = false
	if c.asking("outbox approve 0123") != nil {
		t.Error("an agent is asked about what waits")
	}
	r := gateway.Request{Principal: c.Principal, Line: "mail send --to ann@example.com --subject x --body y", CanAsk: c.mayAsk()}
	if a := c.Gateway.Do(t.Context(), r); a.Asked != nil || a.Code != "APPROVAL_REQUIRED" {
		t.Errorf("an agent is asked at once: %s", a.JSON)
	}
}
