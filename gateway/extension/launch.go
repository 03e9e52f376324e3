package extension

import (
	"path/filepath"
	"strconv"
	"time"

	"github.com/postern-mail/postern/internal/child"
)

// Bounds of each process of an extension that no manifest and no option changes.
const (
	maxFileBytes = 1 << 30
	maxFiles     = 256
	maxProcesses = 64
)

// Launch limits this process and becomes the program that a command of an extension
// is done by; on Windows it starts the program and waits for it. args are what a
// runner adds to its Launcher. It returns the status to exit with where there is
// nothing to become. A program that uses a Launcher calls it for the hidden verb
// before it does anything else.
func Launch(args []string) int {
	limits, path, ok := parseArguments(args)
	if !ok {
		return child.CannotStart
	}
	return limits.Become(path)
}

// arguments is what a Launcher is told besides the program: bytes of memory and
// seconds of processor time.
func arguments(memory, seconds int64) []string {
	return []string{strconv.FormatInt(memory, 10), strconv.FormatInt(seconds, 10)}
}

// parseArguments is the other side of arguments, with the program. Anything else is
// refused: a program without limits does not start.
func parseArguments(args []string) (l child.Limits, path string, ok bool) {
	if len(args) != 3 || !filepath.IsAbs(args[2]) {
		return l, "", false
	}
	memory, err1 := strconv.ParseInt(args[0], 10, 64)
	seconds, err2 := strconv.ParseInt(args[1], 10, 32)
	l = child.Limits{Memory: memory, CPU: time.Duration(seconds) * time.Second, FileBytes: maxFileBytes, Files: maxFiles, Processes: maxProcesses}
	return l, args[2], err1 == nil && err2 == nil && memory > 0 && seconds > 0
}
