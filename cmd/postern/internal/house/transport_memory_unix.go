//go:build unix && !linux

package house

import "golang.org/x/sys/unix"

// HideMemory keeps this process's memory out of core files.
func HideMemory() { _ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}) }
