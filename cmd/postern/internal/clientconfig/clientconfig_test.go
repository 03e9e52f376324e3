package clientconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/postern-mail/postern/internal/testmain"
)

func TestMain(m *testing.M) { os.Exit(testmain.Run(m.Run)) }

const program = "/opt/postern/postern"

// sample is an entry as install makes it.
func sample(args ...string) *Entry {
	return &Entry{Command: program, Args: append([]string{"serve"}, args...), Env: []Variable{
		{"POSTERN_DB", "/home/ann/.config/postern/postern.db"}, {"POSTERN_KEY_FILE", `/home/ann/"key" é`}, {"POSTERN_POLICY_PIN", "a1b2"}}}
}

// place is where a client's file is in a directory of the test's own. With a text, the
// file is there.
func place(t testing.TB, c Client, text ...string) string {
	t.Helper()
	home := t.TempDir()
	env := map[string]string{"HOME": home, "USERPROFILE": home, "APPDATA": filepath.Join(home, "AppData")}
	path, err := c.UserFile(func(name string) string { return env[name] })
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range text {
		write(t, path, s)
	}
	return path
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func named(t testing.TB, name string) Client {
	t.Helper()
	c, ok := Named(name)
	if !ok {
		t.Fatalf("there is no %s", name)
	}
	return c
}

// must fails where a file that was to be changed is not.
func must(t testing.TB) func(changed bool, err error) {
	return func(changed bool, err error) {
		t.Helper()
		if err != nil || !changed {
			t.Fatalf("changed is %t: %v", changed, err)
		}
	}
}

// same fails where a file that was to be left alone is changed.
func same(t testing.TB, path, text string) func(changed bool, err error) {
	return func(changed bool, err error) {
		t.Helper()
		if err != nil || changed || textOf(path) != text {
			t.Errorf("changed is %t: %v\n%s", changed, err, textOf(path))
		}
	}
}

// textOf is what a file holds; empty where there is none.
func textOf(path string) string {
	text, _ := os.ReadFile(path)
	return string(text)
}

// existing are files as people and clients have them, in the form that a client reads.
func existing(t testing.TB, format string) (all []struct{ Format, Name, Text string }) {
	for _, f := range testmain.Table[struct{ Format, Name, Text string }](t, "testdata/cases/files.txt") {
		if f.Format == format {
			all = append(all, f)
		}
	}
	return all
}

// files are the existing files that a client could have.
func (c Client) files(t testing.TB) map[string]string {
	all := make(map[string]string)
	take := func(format, container string) {
		for _, f := range existing(t, format) {
			all[f.Name] = strings.ReplaceAll(f.Text, "CONTAINER", container)
		}
	}
	switch f := c.format.(type) {
	case jsonFormat:
		take("json", f.container)
		if f.comments {
			take("comments", f.container)
		}
	case tomlFormat:
		take("toml", "")
	}
	return all
}

// What was there keeps every byte, what is added is found by the client, a second
// time changes nothing, and Remove brings back the file as it was.
func TestPutAndRemoveLeaveTheRestAlone(t *testing.T) {
	readOnly, full := sample("--read-only"), sample("--profile", "full")
	for _, c := range clients {
		for name, text := range c.files(t) {
			t.Run(c.Name+"/"+name, func(t *testing.T) {
				t.Parallel()
				path := place(t, c, text)
				must(t)(c.Put(path, "postern", readOnly))
				after := textOf(path)
				c.started(t, after, readOnly)
				kept(t, text, after)
				if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o644 {
					t.Errorf("%v, %v", info, err)
				}
				same(t, path, after)(c.Put(path, "postern", readOnly))
				// Another entry changes the entry and nothing else.
				must(t)(c.Put(path, "postern", full))
				now := textOf(path)
				c.started(t, now, full)
				kept(t, text, now)
				if strings.Contains(now, "--read-only") || textOf(path+".postern-backup") != text {
					t.Errorf("not changed, or the backup differs:\n%s", now)
				}
				must(t)(c.Put(path, "postern", readOnly))
				if textOf(path) != after {
					t.Errorf("and back:\n%s", textOf(path))
				}
				must(t)(c.Remove(path, "postern"))
				if _, err := os.Stat(path + ".postern-backup"); err == nil {
					t.Error("the backup stays")
				}
				same(t, path, text)(c.Remove(path, "postern"))
				// Without the backup, too, everything but white space is unchanged.
				must(t)(c.Put(path, "postern", readOnly))
				if err := os.Remove(path + ".postern-backup"); err != nil {
					t.Fatal(err)
				}
				must(t)(c.Remove(path, "postern"))
				if now = textOf(path); now != "" {
					kept(t, text, now)
				} else if rest := strings.Join(strings.Fields(text), ""); rest != "" && !regexp.MustCompile(`^{"[a-zA-Z]+":{}}$`).MatchString(rest) {
					t.Errorf("%q is gone", text) // nothing tells another from a file that Put made
				}
				if strings.Contains(withoutProjects(now), "postern") && !strings.Contains(text, "postern") {
					t.Errorf("something stays:\n%s", now)
				}
			})
		}
	}
}

func withoutProjects(s string) string {
	return regexp.MustCompile(`(?m)^.*"projects".*$`).ReplaceAllString(s, "")
}

// kept fails unless after is before with something put in between, in at most three
// places: an entry, a comma and white space.
func kept(t testing.TB, before, after string) {
	t.Helper()
	squeeze := func(s string) string { return strings.Join(strings.Fields(s), "") }
	b, a := squeeze(before), squeeze(after)
	at := 0
	for i := 0; i < len(a) && at < len(b); i++ {
		if a[i] == b[at] {
			at++
		}
	}
	if at < len(b) {
		t.Errorf("something is lost from %q on in\n%s", b[at:], after)
	}
	// Comments and line ends belong to the person.
	for _, line := range strings.SplitAfter(before, "\n") {
		if trimmed := strings.TrimSpace(line); strings.HasPrefix(trimmed, "//") || strings.HasPrefix(trimmed, "#") {
			if !strings.Contains(after, strings.TrimRight(line, "\r\n")) {
				t.Errorf("the comment %q is lost", trimmed)
			}
		}
	}
	if strings.Contains(before, "\r\n") && strings.Count(after, "\n") != strings.Count(after, "\r\n") {
		t.Errorf("line ends are mixed: %q", after)
	}
}

// started checks that the client would find the entry, with all that is in it.
func (c Client) started(t testing.TB, text string, e *Entry) {
	t.Helper()
	raw, ok := c.format.entry([]byte(text), "postern")
	if !ok {
		t.Fatalf("there is no entry:\n%s", text)
	}
	for _, want := range append([]string{e.Command, "POSTERN_DB", "POSTERN_KEY_FILE", "POSTERN_POLICY_PIN"}, e.Args...) {
		if !strings.Contains(raw, want) {
			t.Errorf("%q is missing in %s", want, raw)
		}
	}
	f, isJSON := c.format.(jsonFormat)
	if !isJSON {
		return
	}
	if !f.comments && !json.Valid([]byte(strings.TrimPrefix(text, byteOrderMark))) {
		t.Errorf("no JSON any more:\n%s", text)
	}
	var got struct {
		Type, Command string
		Args          []string
		Env           map[string]string
	}
	if err := json.Unmarshal([]byte(raw), &got); err != nil || got.Command != e.Command || !slices.Equal(got.Args, e.Args) || len(got.Env) != len(e.Env) || f.typed != (got.Type == "stdio") {
		t.Errorf("%+v, %v", got, err)
	}
	for _, v := range e.Env {
		if got.Env[v.Name] != v.Value {
			t.Errorf("%s is %q", v.Name, got.Env[v.Name])
		}
	}
}

// Without any file one is made, for its owner alone, and removed again.
func TestPutMakesTheFileAndRemoveRemovesIt(t *testing.T) {
	for _, c := range clients {
		path := place(t, c)
		must(t)(c.Put(path, "my-mail", sample()))
		if now := textOf(path); now != c.Paste("my-mail", sample()) {
			t.Errorf("%s: what is pasted differs from\n%s", c.Name, now)
		}
		if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", c.Name, info, err)
		}
		must(t)(c.Remove(path, "my-mail"))
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %s stays: %v", c.Name, path, err)
		}
		same(t, path, "")(c.Remove(path, "my-mail"))
	}
}

// Unreadable files and other programs' entries stay unchanged.
func TestWhatIsNotUnderstoodIsLeftAlone(t *testing.T) {
	for _, c := range testmain.Table[struct {
		Name               string
		Client, Text, Said string
	}](t, "testdata/cases/refused.txt") {
		t.Run(c.Name, func(t *testing.T) {
			client := named(t, c.Client)
			path := place(t, client, c.Text)
			changed, err := client.Put(path, "postern", sample())
			if changed || err == nil || !strings.Contains(err.Error(), c.Said) || errors.Is(err, ErrForeign) != (c.Said == "another server") {
				t.Errorf("%t, %v", changed, err)
			}
			if removed, again := client.Remove(path, "postern"); removed || again == nil || again.Error() != err.Error() {
				t.Errorf("Remove: %t, %v", removed, again)
			}
			if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 || textOf(path) != c.Text {
				t.Errorf("it was changed, or something was left beside it: %v", entries)
			}
		})
	}
}

// A name that one of the formats would have to quote is refused before anything is
// read, and an error says no control character.
func TestNamesThatNeedQuotes(t *testing.T) {
	for _, c := range clients {
		path := place(t, c)
		for _, name := range []string{"", "a b", "a.b", "a]", "é", "a\n"} {
			if changed, err := c.Put(path, name, sample()); changed || !errors.Is(err, errName) {
				t.Errorf("%s: %q: %t, %v", c.Name, name, changed, err)
			}
		}
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s: a file was written", c.Name)
		}
	}
	path := place(t, named(t, "cursor"), "{\"a\\u001b\u202e\": 1, \"a\\u001b\u202e\": 1}")
	if _, err := named(t, "cursor").Put(path, "postern", sample()); err == nil || err.Error() != `"a" is in it twice` {
		t.Errorf("%q", err)
	}
}

// A link stays a link, and a write-protected file is not written.
func TestLinksAndProtectionAreKept(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links and modes are another matter there")
	}
	c := named(t, "cursor")
	path := place(t, c)
	target := filepath.Join(t.TempDir(), "dotfiles.json")
	if err := errors.Join(os.WriteFile(target, []byte("{}\n"), 0o640), os.MkdirAll(filepath.Dir(path), 0o700), os.Symlink(target, path)); err != nil {
		t.Fatal(err)
	}
	must(t)(c.Put(path, "postern", sample()))
	if link, err := os.Readlink(path); err != nil || link != target || !strings.Contains(textOf(target), program) {
		t.Errorf("%s, %v\n%s", link, err, textOf(target))
	}
	if info, err := os.Stat(target); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("%v, %v", info, err)
	}
	must(t)(c.Remove(path, "postern"))
	if err := os.Chmod(target, 0o400); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Put(path, "postern", sample()); !errors.Is(err, errReadOnly) || textOf(target) != "{}\n" {
		t.Errorf("%v\n%s", err, textOf(target))
	}
	// A link to where nothing is yet.
	if err := os.Remove(target); err != nil {
		t.Fatal(err)
	}
	must(t)(c.Put(path, "postern", sample()))
	if !strings.Contains(textOf(target), program) {
		t.Error(textOf(target))
	}
	// A directory is not a file.
	if _, err := c.Put(filepath.Dir(path), "postern", sample()); !errors.Is(err, errNotRegular) {
		t.Errorf("%v", err)
	}
}

// A program that writes the file at the same time is not overwritten.
func TestReplaceSeesThatTheFileChanged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.json")
	for _, before := range []string{"{}", ""} {
		if before != "" {
			write(t, path, before)
		}
		f, err := read(path)
		if err != nil {
			t.Fatal(err)
		}
		write(t, path, `{"a":1}`)
		if err := f.replace([]byte("{}"), true); !errors.Is(err, errChanged) || textOf(path) != `{"a":1}` {
			t.Errorf("%v: %s", err, textOf(path))
		}
		_ = os.Remove(path)
	}
}

// FuzzConfigs: whatever a file holds, it is refused and untouched, or still readable
// with the entry in it, and without the entry it is readable again.
func FuzzConfigs(f *testing.F) {
	for _, format := range []string{"json", "comments", "toml"} {
		for _, file := range existing(f, format) {
			f.Add(file.Text)
		}
	}
	entry := &Entry{Command: "/opt/postern", Args: []string{"serve", "--read-only"}, Env: []Variable{{"POSTERN_DB", "/x"}}}
	f.Fuzz(func(t *testing.T, text string) {
		for i, format := range []format{jsonFormat{container: "mcpServers", comments: true}, jsonFormat{container: "mcpServers"}, tomlFormat{}} {
			what := fmt.Sprintf("format %d", i)
			_, had := format.entry([]byte(text), "postern")
			with, err := format.put([]byte(text), "postern", entry)
			if err != nil {
				continue
			}
			if again, err := format.put(with, "postern", entry); err != nil || !bytes.Equal(again, with) {
				t.Errorf("%s: %v\n%q\n%q", what, err, with, again)
			}
			raw, ok := format.entry(with, "postern")
			if !ok {
				t.Fatalf("%s: no entry in %q", what, with)
			}
			if !had && !format.restores([]byte(text), with, "postern", raw) {
				t.Errorf("%s: %q is not found again in %q", what, text, with)
			}
			without, err := format.remove(with, "postern")
			if err != nil {
				t.Errorf("%s: %v in %q", what, err, with)
			}
			if _, ok := format.entry(without, "postern"); ok {
				t.Errorf("%s: the entry stays in %q", what, without)
			}
			if _, err := format.put(without, "postern", entry); err != nil {
				t.Errorf("%s: %q became %q: %v", what, text, without, err)
			}
		}
	})
}
