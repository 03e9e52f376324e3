package servertest

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// awaitChange returns when ready does. It calls ready at once, and again whenever an entry
// appears in one of the directories, which must exist, or a file in them grows. It ends
// with os.ErrDeadlineExceeded after the timeout.
func awaitChange(dirs []string, timeout time.Duration, ready func() (bool, error)) error {
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC | syscall.IN_NONBLOCK)
	if err != nil {
		return fmt.Errorf("watch directories: %w", err)
	}
	events := os.NewFile(uintptr(fd), "inotify")
	defer events.Close()
	for _, dir := range dirs {
		const interesting = syscall.IN_MODIFY | syscall.IN_CREATE | syscall.IN_MOVED_TO
		if _, err := syscall.InotifyAddWatch(fd, dir, interesting); err != nil {
			return fmt.Errorf("watch %s: %w", dir, err)
		}
	}
	if err := events.SetReadDeadline(time.Now().Add(timeout)); err != nil {
		return fmt.Errorf("watch directories: %w", err)
	}
	// Changes between the call and the read wait in the event queue, so none is missed.
	for buf := make([]byte, 64<<10); ; {
		if ok, err := ready(); ok || err != nil {
			return err
		}
		if _, err := events.Read(buf); err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				return err
			}
			return fmt.Errorf("watch directories: %w", err)
		}
	}
}
