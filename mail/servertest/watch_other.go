//go:build !linux

package servertest

import (
	"os"
	"time"
)

// awaitChange returns when ready does. It polls ready, and ends with os.ErrDeadlineExceeded
// after the timeout.
func awaitChange(_ []string, timeout time.Duration, ready func() (bool, error)) error {
	for deadline := time.Now().Add(timeout); ; time.Sleep(pollInterval) {
		if ok, err := ready(); ok || err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return os.ErrDeadlineExceeded
		}
	}
}
