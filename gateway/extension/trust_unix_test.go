//go:build unix

package extension

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/postern-mail/postern/discovery"
)

// TestFilesThatOthersCanChangeAreNotUsed makes one file or directory unsafe at a time.
func TestFilesThatOthersCanChangeAreNotUsed(t *testing.T) {
	t.Parallel()
	chmod := func(path string, mode fs.FileMode) error { return os.Chmod(path, mode) }
	replace := func(path, target string) error {
		if err := os.Rename(path, path+".moved"); err != nil {
			return err
		}
		return os.Symlink(target, path)
	}
	program := func(at string) string { return filepath.Join(at, "does-trap") }
	manifest := func(at string) string { return filepath.Join(at, manifestName) }
	for name, c := range map[string]struct {
		spoil func(dir, at string) error
		want  string
	}{
		"program world":     {func(_, at string) error { return copied(program(at), 0o757) }, "its program can be changed by others (mode 0757): run chmod go-w"},
		"program group":     {func(_, at string) error { return copied(program(at), 0o775) }, "its program can be changed by others"},
		"program not run":   {func(_, at string) error { return copied(program(at), 0o644) }, "not executable"},
		"program setuid":    {func(_, at string) error { return copied(program(at), 0o755|fs.ModeSetuid) }, "setuid"},
		"program link":      {func(_, at string) error { return replace(program(at), "does-trap.moved") }, "its program is a symbolic link"},
		"program link out":  {func(_, at string) error { return replace(program(at), "/bin/sh") }, "its program is a symbolic link"},
		"program directory": {func(_, at string) error { _ = os.Remove(program(at)); return os.Mkdir(program(at), 0o755) }, "its program is not a regular file"},
		"program pipe":      {func(_, at string) error { _ = os.Remove(program(at)); return syscall.Mkfifo(program(at), 0o755) }, "its program is not a regular file"},
		"manifest world":    {func(_, at string) error { return chmod(manifest(at), 0o646) }, "its manifest can be changed by others"},
		"manifest link out": {func(_, at string) error { return replace(manifest(at), "/etc/passwd") }, "its manifest is a symbolic link"},
		"manifest pipe":     {func(_, at string) error { _ = os.Remove(manifest(at)); return syscall.Mkfifo(manifest(at), 0o644) }, "its manifest is not a regular file"},
		"file beside it": {func(_, at string) error {
			file := filepath.Join(at, "lib", "module.py")
			return errors.Join(os.Mkdir(filepath.Join(at, "lib"), 0o755), os.WriteFile(file, nil, 0o644), os.Chmod(file, 0o664))
		}, `a file in it, "lib/module.py", can be changed by others`},
		"own directory":         {func(_, at string) error { return chmod(at, 0o777) }, "its directory can be changed by others"},
		"own directory, sticky": {func(_, at string) error { return chmod(at, 0o777|fs.ModeSticky) }, "its directory can be changed by others"},
		"linked directory":      {func(dir, at string) error { return replace(at, "/usr") }, "its directory is a symbolic link"},
		"directory of all":      {func(dir, _ string) error { return chmod(dir, 0o775) }, "No extension is used:"},
		"directory, sticky":     {func(dir, _ string) error { return chmod(dir, 0o777|fs.ModeSticky) }, "No extension is used: the directory can be changed by others"},
		"directory above":       {func(dir, _ string) error { return chmod(filepath.Dir(dir), 0o777) }, "which it lies in, can be changed by others"},
	} {
		dir := directory(t)
		at := install(t, dir, "x-it", "trap", manifestOf("x-it", "does-trap", "read"))
		if s := whole(t, dir, Options{}); len(s.set.Names) != 1 {
			t.Fatal(s.set)
		}
		must(t, c.spoil(dir, at))
		s, err := Load(dir, Options{})
		if m := strings.Join(s.messages(), "\n"); err != nil || len(s.Commands) != 0 || !strings.Contains(m, c.want) {
			t.Errorf("%s: %q, %v", name, m, err)
		}
	}
}

// copied replaces the link to the test binary by a file with the mode, since a chmod would
// change the test binary.
func copied(path string, mode fs.FileMode) error {
	if err := os.Remove(path); err != nil {
		return err
	}
	if err := os.WriteFile(path, []byte("#!/bin/false\n"), 0o600); err != nil {
		return err
	}
	return os.Chmod(path, mode)
}

// The links are a chain of two, of which the first is relative, and one that leads to itself.
func TestASafeLinkToTheDirectoryIsFollowed(t *testing.T) {
	dir := directory(t)
	install(t, dir, "x-it", "echo", manifestOf("x-it", prefix+"echo", "read"))
	above := filepath.Dir(dir)
	for link, target := range map[string]string{"one": "../" + filepath.Base(above) + "/./two/", "two": dir, "circle": "circle"} {
		must(t, os.Symlink(target, filepath.Join(above, link)))
	}
	s := whole(t, filepath.Join(above, "one"), Options{})
	if r := s.do(t, "x-it"); !r.Success {
		t.Errorf("%s", r.raw)
	}
	c, err := Load(filepath.Join(above, "circle"), Options{})
	if err != nil || len(c.Problems) != 1 || !strings.Contains(c.Problems[0].Message, "too many symbolic links") {
		t.Errorf("%v, %v", c.Problems, err)
	}
	// If the link is changed later, no other program is run.
	other := directory(t)
	install(t, other, "x-it", "trap", manifestOf("x-it", "does-trap", "read"))
	must(t, os.Remove(filepath.Join(above, "two")))
	must(t, os.Symlink(other, filepath.Join(above, "two")))
	if r := s.do(t, "x-it"); r.Error.Code != discovery.ConfigError || !strings.Contains(r.Error.Message, "was replaced") {
		t.Errorf("%s", r.raw)
	}
}

// TestAChangedProgramIsNotRun changes the program between Load and its command.
func TestAChangedProgramIsNotRun(t *testing.T) {
	for name, c := range map[string]struct {
		change func(program string) error
		want   string
	}{
		"replaced": {func(p string) error { return copied(p, 0o755) }, "was changed since it was read"},
		"gone":     {os.Remove, "is not there"},
		"written": {func(p string) error {
			return os.WriteFile(p, []byte("#!/bin/sh\necho '{\"other\":1}'\n"), 0o755)
		}, "was changed since it was read"},
		"touched": {func(p string) error { return os.Chtimes(p, time.Time{}, time.Now().Add(time.Hour)) }, "was changed since it was read"},
		"opened":  {func(p string) error { return os.Chmod(p, 0o777) }, "can be changed by others"},
		"above":   {func(p string) error { return os.Chmod(filepath.Dir(p), 0o777) }, "its directory can be changed by others"},
		"linked": {func(p string) error {
			if err := os.Rename(p, p+".moved"); err != nil {
				return err
			}
			return os.Symlink(p+".moved", p)
		}, "is a symbolic link"},
	} {
		dir := directory(t)
		at := installScript(t, dir, "x-it", manifestOf("x-it", "run", "read"), "#!/bin/sh\necho '{\"ok\":true}'\n")
		s := whole(t, dir, Options{})
		if r := s.do(t, "x-it"); string(r.Data) != `{"ok":true}` {
			t.Fatalf("%s", r.raw)
		}
		must(t, c.change(filepath.Join(at, "run")))
		if r := s.do(t, "x-it"); r.Success || r.Error.Code != discovery.ConfigError || !strings.Contains(r.Error.Message, c.want) {
			t.Errorf("%s: %s", name, r.raw)
		}
		if e := s.notes.entries; len(e) != 2 || e[1].Code != "CONFIG_ERROR" {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

// info is the fake FileInfo of a file with an owner and a mode.
type info struct {
	fs.FileInfo
	uid  uint32
	mode fs.FileMode
}

func (i info) Sys() any          { return &syscall.Stat_t{Uid: i.uid} }
func (i info) Mode() fs.FileMode { return i.mode }

func TestFilesOfSomebodyElse(t *testing.T) {
	me := uint32(os.Geteuid())
	for _, c := range []struct {
		uid uint32
		ok  bool
	}{{me, true}, {0, true}, {me + 1, false}, {65534, me == 65534}} {
		i := info{uid: c.uid, mode: 0o755}
		if err := onlyOurs("x", i); (err == nil) != c.ok || !c.ok && !strings.Contains(err.Error(), "somebody else") {
			t.Errorf("%d: %v", c.uid, err)
		}
		if err := ownedLink("x", info{uid: c.uid, mode: fs.ModeSymlink | 0o777}); (err == nil) != c.ok {
			t.Errorf("link of %d: %v", c.uid, err)
		}
	}
	if ours(struct{ fs.FileInfo }{noSys{}}) {
		t.Error("a file whose owner is not known is ours")
	}
}

type noSys struct{ fs.FileInfo }

func (noSys) Sys() any { return nil }

// An extension's directory may hold a symbolic link that belongs to the same person.
func TestALinkBesideTheProgramIsAllowed(t *testing.T) {
	dir := directory(t)
	at := install(t, dir, "x-it", "trap", manifestOf("x-it", "does-trap", "read"))
	must(t, os.Symlink("/etc", filepath.Join(at, "settings")))
	whole(t, dir, Options{})
}
