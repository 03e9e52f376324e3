//go:build !linux

package testmain

import "os"

func inMemory() (dir string, err error) { return "", os.ErrNotExist }
