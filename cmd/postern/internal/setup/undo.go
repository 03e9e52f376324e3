package setup

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// undoing undoes the steps of a set-up that failed.
type undoing struct{ steps []undoStep }

type undoStep struct {
	what string
	do   func(context.Context) error
}

func (u *undoing) add(what string, do func(context.Context) error) {
	u.steps = append(u.steps, undoStep{what, do})
}

// run undoes everything, the last step first, and names the failures.
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

// makeDir makes a directory and its parents, for the user only.
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
		// Another program may have begun to use it.
		if err := os.Remove(dir); !errors.Is(err, fs.ErrExist) { // as for a directory that is not empty
			return err
		}
		return nil
	})
	return nil
}

// writeNew writes a file that must not exist yet, for the user only. The whole
// file is on the disk when it returns.
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
