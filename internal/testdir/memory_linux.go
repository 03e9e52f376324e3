package testdir

import (
	"os"
	"syscall"
)

// inMemory makes a directory of a file system in memory, where there is one with room that
// lets programs be started from it.
func inMemory() (dir string, err error) {
	const shared, room, noExec = "/dev/shm", 1 << 30, 8
	var s syscall.Statfs_t
	if err := syscall.Statfs(shared, &s); err != nil || s.Flags&noExec != 0 || s.Bavail*uint64(s.Bsize) < room {
		return "", os.ErrNotExist
	}
	if dir, err = os.MkdirTemp(shared, "postern-test-"); err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o755) // a test's process of another user has its way through it
}
