package extension

import (
	"path/filepath"
	"strconv"
)

// Launch limits this process and becomes the program that a command of an extension
// is done by; on Windows it starts the program and waits for it. args are what a
// runner adds to its Launcher. It returns the status to exit with where there is
// nothing to become. A program that uses a Launcher calls it for the hidden verb
// before it does anything else.
func Launch(args []string) int {
	l, path, ok := parseLimits(args)
	if !ok {
		return cannotStart
	}
	return launch(l, path)
}

// parseLimits is the other side of limits.list. Anything else is refused: a program
// without limits does not start.
func parseLimits(args []string) (l limits, path string, ok bool) {
	if len(args) != 3 || !filepath.IsAbs(args[2]) {
		return l, "", false
	}
	var err1, err2 error
	l.memory, err1 = strconv.ParseInt(args[0], 10, 64)
	l.cpu, err2 = strconv.ParseInt(args[1], 10, 32)
	return l, args[2], err1 == nil && err2 == nil && l.memory > 0 && l.cpu > 0
}
