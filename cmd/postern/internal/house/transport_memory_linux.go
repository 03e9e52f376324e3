package house

import "golang.org/x/sys/unix"

// HideMemory keeps what is in this process's memory from other processes of the
// same user and out of core files. What cannot be had is done without.
func HideMemory() {
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
}
