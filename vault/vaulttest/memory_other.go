//go:build !linux

package vaulttest

import "os"

func inMemory() (dir string, err error) { return "", os.ErrNotExist }
