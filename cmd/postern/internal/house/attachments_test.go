package house

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postern-mail/postern/commands"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault"
)

func newAttachments(t testing.TB, dir string) *attachments {
	t.Helper()
	a := &attachments{locate: func(context.Context) (string, error) { return dir, nil }}
	t.Cleanup(func() { _ = a.Close() })
	return a
}

func TestAttachmentsAreTheOwnersAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "some", "where")
	a := newAttachments(t, dir)
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("the directory is there before anything is saved: %v", err)
	}
	for _, name := range []string{"x.bin", "a/b/c.txt", "a/./b//d.txt"} {
		path, err := a.Save(forOwner(t.Context()), "work", name, []byte("content of "+name))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != "content of "+name || !strings.HasPrefix(path, dir) || !filepath.IsAbs(path) {
			t.Errorf("%s: %q at %s, %v", name, got, path, err)
		}
		for p, want := range map[string]fs.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
			if info, err := os.Stat(p); runtime.GOOS != "windows" && (err != nil || info.Mode().Perm() != want) {
				t.Errorf("%s: %v, %v", p, info.Mode(), err)
			}
		}
	}
}

func TestAnAttachmentIsNeverWrittenOverAFile(t *testing.T) {
	dir := t.TempDir()
	a := newAttachments(t, dir)
	if err := os.WriteFile(filepath.Join(dir, "x"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Save(forOwner(t.Context()), "work", "x", []byte("theirs")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over a file: %v", err)
	}
	if _, err := a.Save(forOwner(t.Context()), "work", "x/y", []byte("theirs")); err == nil || errors.Is(err, fs.ErrExist) {
		t.Errorf("below a file: %v", err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "x")); err != nil || string(got) != "mine" {
		t.Errorf("%q, %v", got, err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	saved := 0
	for range 8 {
		wg.Go(func() {
			if _, err := a.Save(forOwner(t.Context()), "work", "d/once", []byte("content")); err == nil {
				mu.Lock()
				saved++
				mu.Unlock()
			}
		})
	}
	if wg.Wait(); saved != 1 {
		t.Errorf("one name was saved %d times", saved)
	}
}

func TestAnAttachmentStaysInItsDirectory(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	a := newAttachments(t, dir)
	names := []string{"../x", "/" + filepath.ToSlash(outside) + "/x", "a/../../x", ".", ""}
	if runtime.GOOS != "windows" {
		for link, target := range map[string]string{"out": outside, "file": filepath.Join(outside, "x")} {
			if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
				t.Fatal(err)
			}
		}
		names = append(names, "out/x", "out/sub/x", "file")
	}
	for _, name := range names {
		if path, err := a.Save(forOwner(t.Context()), "work", name, []byte("x")); err == nil {
			t.Errorf("%q was saved to %s", name, path)
		}
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) != 0 {
		t.Errorf("outside there is %v, %v", left, err)
	}
}

func TestAnAttachmentThatFailsLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	a := newAttachments(t, dir)
	ctx, cancel := context.WithCancel(forOwner(t.Context()))
	cancel()
	if _, err := a.Save(ctx, "work", "x", []byte("x")); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	broken := &attachments{locate: func(context.Context) (string, error) { return "", fs.ErrPermission }}
	if _, err := broken.Save(forOwner(t.Context()), "work", "x", nil); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("%v", err)
	}
}

func TestWhereAttachmentsAre(t *testing.T) {
	var keys vault.Keys
	for _, k := range []*mail.Secret{&keys.Admin, &keys.Agent} {
		key, err := vault.NewKey()
		if err != nil {
			t.Fatal(err)
		}
		*k = mail.NewSecret([]byte(key))
	}
	path := filepath.Join(t.TempDir(), "postern.db")
	if _, err := vault.Init(forOwner(t.Context()), path, keys); err != nil {
		t.Fatal(err)
	}
	store := newStore(func(ctx context.Context) (*vault.Vault, error) { return vault.Open(ctx, path, keys, nil) })
	named := ""
	s := &System{Getenv: func(string) string { return named }}
	if dir, err := s.attachmentDir(forOwner(t.Context()), store); err != nil || dir != filepath.Join(filepath.Dir(path), "attachments") {
		t.Errorf("%s, %v", dir, err)
	}
	named = "/elsewhere"
	if dir, err := s.attachmentDir(forOwner(t.Context()), store); err != nil || dir != named {
		t.Errorf("%s, %v", dir, err)
	}
}

func TestWhatIsReadFromTheAttachmentDirectory(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	a := newAttachments(t, dir)
	for name, content := range map[string]string{filepath.Join(outside, "secret"): "secret", filepath.Join(dir, "a"): "content", filepath.Join(dir, "empty"): ""} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := a.Read(forOwner(t.Context()), "./a", 7); err != nil || string(got) != "content" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := a.Read(forOwner(t.Context()), "empty", 0); err != nil || len(got) != 0 {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := a.Read(forOwner(t.Context()), "a", 6); !errors.Is(err, commands.ErrTooLarge) {
		t.Errorf("%v", err)
	}
	names := []string{"../secret", filepath.Join(outside, "secret"), ".", "none", ""}
	if runtime.GOOS != "windows" {
		if err := os.Symlink(filepath.Join(outside, "secret"), filepath.Join(dir, "link")); err != nil {
			t.Fatal(err)
		}
		names = append(names, "link")
	}
	for _, name := range names {
		if got, err := a.Read(forOwner(t.Context()), name, 100); err == nil {
			t.Errorf("%q gave %q", name, got)
		}
	}
	ctx, cancel := context.WithCancel(forOwner(t.Context()))
	cancel()
	if _, err := a.Read(ctx, "a", 100); err == nil {
		t.Error("an ended context reads on")
	}
}

// TestNobodyFillsTheDirectoryForOthers: what a principal saved counts to its share as long as it
// is there, and nothing else in the directory does.
func TestNobodyFillsTheDirectoryForOthers(t *testing.T) {
	now := time.Now()
	v, remove, err := vault.Temporary(forOwner(t.Context()), &vault.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = remove() })
	dir := t.TempDir()
	a := newAttachments(t, dir)
	a.records, a.files, a.bytes = newStore(func(context.Context) (*vault.Vault, error) { return v, nil }), 3, 100
	if err := os.WriteFile(filepath.Join(dir, "holiday.mov"), make([]byte, 5000), 0o600); err != nil {
		t.Fatal(err)
	}
	as := func(principal string) context.Context {
		return onBehalfOf(t.Context(), gateway.Principal{Name: principal})
	}
	save := func(principal, name string, size int) error {
		_, err := a.Save(as(principal), "work", name, make([]byte, size))
		return err
	}
	full := func(err error) bool {
		var full *vault.ShareFull
		return errors.As(err, &full) && full.Principal == "agent" && full.Count == 3 && full.Bytes == 100
	}
	if err := errors.Join(save("agent", "a", 50), save("agent", "b", 50)); err != nil {
		t.Fatal(err)
	}
	if err := save("agent", "c", 1); !full(err) {
		t.Errorf("more bytes than its share: %v", err)
	}
	if err := save("agent", "holiday.mov", 1); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over a file: %v", err)
	}
	if err := save("person", "c", 50); err != nil {
		t.Errorf("another: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	if err := save("agent", "d", 1); !full(err) {
		t.Errorf("a file that is gone may be one that is being saved: %v", err)
	}
	now = now.Add(2 * savingTime)
	if err := errors.Join(save("agent", "d", 1), save("agent", "e", 1)); err != nil {
		t.Errorf("in the place of a file that is gone: %v", err)
	}
	if err := save("agent", "f", 1); !full(err) {
		t.Errorf("more files than its share: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "e"), make([]byte, 9), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"d": "work", "./d": "work", "c": "work", "e": "", "holiday.mov": ""} {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if from, err := a.SavedFrom(as("agent"), name, content); strings.Join(from, " ") != want || err != nil {
			t.Errorf("%s was saved from %q, %v, want %q", name, from, err, want)
		}
	}
}

// The origin of a file goes with its content: another principal, another name and another
// spelling are no way around it, and what grants saved is in no other's directory.
func TestTheOriginOfAFileIsOfItsContent(t *testing.T) {
	v, remove, err := vault.Temporary(forOwner(t.Context()), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = remove() })
	dir := t.TempDir()
	a := newAttachments(t, dir)
	a.records, a.files, a.bytes = newStore(func(context.Context) (*vault.Vault, error) { return v, nil }), 30, 1000
	agent := onBehalfOf(t.Context(), gateway.Principal{Name: "agent"})
	grant := func(name, account string) context.Context {
		return onBehalfOf(t.Context(), gateway.Principal{Name: "grant:" + name, Scope: &gateway.Scope{Accounts: []string{account}}})
	}
	content := []byte("CONFIDENTIAL")
	if _, err := a.Save(grant("ga", "w"), "w", "c.pdf", content); err != nil {
		t.Fatal(err)
	}
	for _, ctx := range []context.Context{agent, grant("gb", "x"), grant("ga", "w")} {
		if from, err := a.SavedFrom(ctx, "other.pdf", content); !slices.Equal(from, []string{"w"}) || err != nil {
			t.Errorf("saved from %q, %v", from, err)
		}
	}
	if _, err := a.Save(agent, "x", "own.pdf", content); err != nil {
		t.Fatal(err)
	}
	if from, err := a.SavedFrom(agent, "OWN.PDF", content); len(from) != 2 || err != nil {
		t.Errorf("saved from %q, %v", from, err)
	}
	saved, err := filepath.Glob(filepath.Join(dir, "grants", "*", "c.pdf"))
	if err != nil || len(saved) != 1 {
		t.Fatalf("%q, %v", saved, err)
	}
	if err := os.Symlink("grants", filepath.Join(dir, "way")); err != nil {
		t.Fatal(err)
	}
	own := filepath.ToSlash(strings.TrimPrefix(filepath.Dir(saved[0]), filepath.Join(dir, "grants")))
	for _, way := range []string{"grants", "./grants", "x/../grants", "Grants", "way"} {
		if _, err := a.Read(agent, way+own+"/c.pdf", 100); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("read through %s: %v", way, err)
		}
		if _, err := a.Save(agent, "w", way+own+"/p.pdf", content); !errors.Is(err, fs.ErrExist) {
			t.Errorf("saved through %s: %v", way, err)
		}
	}
	if got, err := a.Read(grant("ga", "w"), "c.pdf", 100); err != nil || string(got) != string(content) {
		t.Errorf("%q, %v", got, err)
	}
}
