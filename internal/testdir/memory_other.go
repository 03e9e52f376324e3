//go:build !linux

package testdir

import "os"

func inMemory() (dir string, err error) { return "", os.ErrNotExist }
