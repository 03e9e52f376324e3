package terminal

import (
	"os"

	"golang.org/x/sys/windows"
)

// Discard drops unread input of a console, so that it does not answer a later question. On
// another file it does nothing.
func Discard(f *os.File) { _ = windows.FlushConsoleInputBuffer(windows.Handle(f.Fd())) }
