//go:build !linux && !darwin

package terminal

import (
	"context"
	"os"

	"golang.org/x/term"
)

// silence has nothing to do where reading a password does all of it.
func silence(int) error { return nil }

// Keys has nothing to do: what reads a line here has the terminal before it is asked for.
func Keys(*os.File) {}

func readHidden(_ context.Context, f *os.File) ([]byte, error) { return term.ReadPassword(int(f.Fd())) }
