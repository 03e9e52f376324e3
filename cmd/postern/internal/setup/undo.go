package setup

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// undoing takes back what a set-up made that did not come to its end.
type undoing struct{ steps []undoStep }

type undoStep struct {
	what string
	do   func(context.Context) error
}

func (u *undoing) add(what string, do func(context.Context) error) {
	u.steps = append(u.steps, undoStep{what, do})
}

// run takes everything back, the last first, and names what it could not.
func (u *undoing) run(ctx context.Context) (left []string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keyringTime)
	defer cancel()
	for i := len(u.steps) - 1; i >= 0; i-- {
		if err := u.steps[i].do(ctx); err != nil {
			left = append(left, u.steps[i].what)
		}
	}
	u.steps = nil
	return left
}

// makeDir makes a directory with those above it, for the user only.
func (u *undoing) makeDir(dir string) error {
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if above := filepath.Dir(dir); above != dir {
		if err := u.makeDir(above); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		return err
	}
	u.add(dir, func(context.Context) error {
		// Somebody else may have begun to use it.
		if err := os.Remove(dir); !errors.Is(err, fs.ErrExist) { // which it is of one that is not empty
			return err
		}
		return nil
	})
	return nil
}

// writeNew writes a file that must not exist yet, for the user only. It is whole
// on the disk when it returns.
func (u *undoing) writeNew(file string, text []byte) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	u.add(file, func(context.Context) error { return os.Remove(file) })
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
