//go:build !linux && !darwin

package terminal

import (
	"context"
	"os"

	"golang.org/x/term"
)

// silence has nothing to do where reading a password does all of it.
func silence(int) error { return nil }

func readHidden(_ context.Context, f *os.File) ([]byte, error) { return term.ReadPassword(int(f.Fd())) }
