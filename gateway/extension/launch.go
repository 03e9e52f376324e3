package extension

import (
	"path/filepath"
	"strconv"
	"time"

	"github.com/postern-mail/postern/internal/child"
)

// Bounds of each process of an extension.
const (
	maxMemory    = 1 << 30
	maxFileBytes = 1 << 30
	maxFiles     = 256
	maxProcesses = 64
)

// Launch limits this process and becomes the program of an extension's command; on Windows
// it starts the program and waits for it. args are the arguments that a runner adds to its
// Launcher. When it cannot become the program it returns the exit status. A program that
// uses a Launcher calls it for the hidden verb before it does anything else.
func Launch(args []string) int {
	limits, path, ok := parseArguments(args)
	if !ok {
		return child.CannotStart
	}
	return limits.Become(path)
}

// parseArguments reads the arguments that a runner adds to its Launcher: seconds of
// processor time and the program. Anything else is refused: a program without limits does
// not start.
func parseArguments(args []string) (l child.Limits, path string, ok bool) {
	if len(args) != 2 || !filepath.IsAbs(args[1]) {
		return l, "", false
	}
	seconds, err := strconv.ParseInt(args[0], 10, 32)
	l = child.Limits{Memory: maxMemory, CPU: time.Duration(seconds) * time.Second, FileBytes: maxFileBytes, Files: maxFiles, Processes: maxProcesses}
	return l, args[1], err == nil && seconds > 0
}
