//go:build linux || darwin

package main

import "golang.org/x/sys/unix"

// silence stops a terminal from showing what is typed, before anybody is asked to
// type: a fast person, or one who pastes, is not shown either. The terminal is set
// back by whoever keeps its state.
func silence(fd int) {
	t, err := unix.IoctlGetTermios(fd, ioctlGet)
	if err != nil {
		return
	}
	t.Lflag &^= unix.ECHO
	_ = unix.IoctlSetTermios(fd, ioctlSet, t) // reading it then sets it again, or fails
}
