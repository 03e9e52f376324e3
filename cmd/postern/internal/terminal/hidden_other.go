//go:build !linux && !darwin

package terminal

import (
	"os"

	"golang.org/x/term"
)

// silence has nothing to do where reading a password does all of it.
func silence(int) error { return nil }

func readHidden(f *os.File) ([]byte, error) { return term.ReadPassword(int(f.Fd())) }
