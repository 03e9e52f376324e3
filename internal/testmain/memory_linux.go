package testmain

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// inMemory makes a directory of a file system in memory, where there is one with room that
// lets programs be started from it. It removes what test programs left that were killed.
func inMemory() (dir string, err error) {
	const shared, prefix, room, noExec = "/dev/shm", "postern-test-", 1 << 30, 8
	var s syscall.Statfs_t
	if err := syscall.Statfs(shared, &s); err != nil || s.Flags&noExec != 0 || s.Bavail*uint64(s.Bsize) < room {
		return "", os.ErrNotExist
	}
	left, _ := filepath.Glob(filepath.Join(shared, prefix+"*"))
	for _, old := range left {
		of, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(old), prefix), "-")
		if pid, err := strconv.Atoi(of); err == nil && syscall.Kill(pid, 0) == syscall.ESRCH {
			_ = os.RemoveAll(old)
		}
	}
	if dir, err = os.MkdirTemp(shared, prefix+strconv.Itoa(os.Getpid())+"-"); err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o755) // a test's process of another user has its way through it
}
