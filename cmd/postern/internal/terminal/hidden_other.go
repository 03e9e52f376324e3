//go:build !linux && !darwin

package terminal

import (
	"context"
	"os"

	"golang.org/x/term"
)

// silence has nothing to do where reading a password does all of it.
func silence(int) error { return nil }

// Rest has nothing to do: this system's way to keep what is typed unseen is not known here.
func Rest(*os.File) {}

// Suspend has nothing to do: no shell here takes a program up again.
func Suspend() {}

// Unchanged is ctx: nothing tells that the window has another size.
func Unchanged(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithCancel(ctx)
}

// Read reads from a terminal and waits no longer than ctx lasts. What is typed next after that is
// lost: a console cannot be waited for.
func Read(ctx context.Context, f *os.File, b []byte) (int, error) {
	return Await(ctx, func() (int, error) { return f.Read(b) })
}

func readHidden(_ context.Context, f *os.File) ([]byte, error) { return term.ReadPassword(int(f.Fd())) }
