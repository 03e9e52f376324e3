package clientconfig

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// maxBytes bounds a client's configuration. One client keeps its whole state there.
const maxBytes = 64 << 20

// file is a client's configuration at the time it was read.
type file struct {
	path string // the real path, with links resolved
	text []byte
	info fs.FileInfo // nil for a missing file
}

var (
	errNotRegular = errors.New("it is not a regular file")
	errHuge       = errors.New("it is too large")
	errReadOnly   = errors.New("it is write-protected")
	errChanged    = errors.New("another program changed it meanwhile; try again")
)

// read reads a configuration; the file may be missing.
func read(path string) (*file, error) {
	f := &file{path: path}
	// People link their configuration to a repository of their own: the link stays.
	real, err := filepath.EvalSymlinks(path)
	switch {
	case err == nil:
		f.path = real
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	default:
		if target, linkErr := os.Readlink(path); linkErr == nil {
			if !filepath.IsAbs(target) {
				target = filepath.Join(filepath.Dir(path), target)
			}
			f.path = target // a link whose target is missing
		}
		return f, nil
	}
	if f.info, err = os.Stat(f.path); err != nil {
		return nil, err
	}
	switch {
	case !f.info.Mode().IsRegular():
		return nil, errNotRegular
	case f.info.Size() > maxBytes:
		return nil, errHuge
	}
	f.text, err = os.ReadFile(f.path)
	return f, err
}

// backup returns the path of the copy of the original file.
func (f *file) backup() string { return f.path + ".postern-backup" }

// replace gives the file another text, at once and whole; no text removes it. It fails
// when the file has changed since it was read.
func (f *file) replace(text []byte, backup bool) error {
	if f.info != nil && f.info.Mode().Perm()&0o200 == 0 {
		return errReadOnly
	}
	if err := f.unchanged(); err != nil {
		return err
	}
	if backup && f.info != nil {
		if err := f.write(f.backup(), f.text, nil); err != nil {
			return err
		}
	}
	if text == nil {
		return os.Remove(f.path)
	}
	if f.info == nil {
		if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
			return err
		}
	}
	return f.write(f.path, text, f.unchanged)
}

func (f *file) unchanged() error {
	now, err := os.ReadFile(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && f.info == nil:
		return nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case err != nil || f.info == nil || !bytes.Equal(now, f.text):
		return errChanged
	}
	return nil
}

// write writes a file aside and puts it in place, with the mode and the owner of the
// one that was read. last is called just before; nil is not called.
func (f *file) write(path string, text []byte, last func() error) error {
	aside, err := os.CreateTemp(filepath.Dir(path), ".postern-*.tmp") // mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(aside.Name()) }()
	_, err = aside.Write(text)
	if err == nil {
		err = aside.Sync()
	}
	if err := errors.Join(err, aside.Close()); err != nil {
		return err
	}
	if f.info != nil {
		if err := os.Chmod(aside.Name(), f.info.Mode().Perm()); err != nil {
			return err
		}
		sameOwner(aside.Name(), f.info)
	}
	if last != nil {
		if err := last(); err != nil {
			return err
		}
	}
	return os.Rename(aside.Name(), path)
}
