package house

import "golang.org/x/sys/unix"

// HideMemory keeps this process's memory from other processes of the same user and out of
// core files, as far as the system allows.
func HideMemory() {
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
}
