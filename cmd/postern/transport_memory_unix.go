//go:build unix && !linux

package main

import "golang.org/x/sys/unix"

// hideMemory keeps what is in this process's memory out of core files.
func hideMemory() { _ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}) }
