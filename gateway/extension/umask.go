//go:build unix

package extension

import "syscall"

// restrictNewFiles sees to it that what the program writes beside itself is nobody
// else's to change: it would not be run again.
func restrictNewFiles() {
	mask := syscall.Umask(othersWrite)
	syscall.Umask(mask | othersWrite)
}
