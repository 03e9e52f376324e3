package extension

import (
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// passed are the variables that a program gets where they are set: those by which
// programs and interpreters find themselves, the person's home, language and time. An
// extension that needs a secret reads it from a file of its own.
var passed = []string{"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"}

// passedWindows are those without which little starts there.
var passedWindows = []string{"PATH", "SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "TEMP", "TMP", "USERPROFILE", "USERNAME", "LOCALAPPDATA", "APPDATA", "TZ"}

// environment picks the variables that a program gets. Directories of PATH that depend on
// where this process was started are left out: choosing that place would choose the
// programs. It is never nil, which would mean everything.
func environment(environ []string) []string {
	names := passed
	if runtime.GOOS == "windows" {
		names = passedWindows
	}
	kept := []string{}
	for _, v := range environ {
		name, value, ok := strings.Cut(v, "=")
		if runtime.GOOS == "windows" {
			name = strings.ToUpper(name)
		}
		if !ok || !slices.Contains(names, name) {
			continue
		}
		if name == "PATH" {
			value = absolutePath(value)
		}
		kept = append(kept, name+"="+value)
	}
	return kept
}

func absolutePath(list string) string {
	dirs := slices.DeleteFunc(filepath.SplitList(list), func(dir string) bool { return !filepath.IsAbs(dir) })
	return strings.Join(dirs, string(filepath.ListSeparator))
}
