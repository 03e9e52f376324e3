package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// maxConfig bounds a client's configuration. One of them keeps its whole state there.
const maxConfig = 64 << 20

// configFile is a client's configuration as it was when it was read.
type configFile struct {
	path string // where it really is, behind links
	text []byte
	info fs.FileInfo // nil: there is none
}

var (
	errNotRegular = errors.New("it is no regular file")
	errHuge       = errors.New("it is too large")
	errReadOnly   = errors.New("it is write-protected")
	errChanged    = errors.New("another program changed it meanwhile; try again")
)

// readConfig reads a configuration, which may not be there yet.
func readConfig(path string) ([]byte, *configFile, error) {
	f := &configFile{path: path}
	// What people keep in a repository of their own they link to: the link stays.
	real, err := filepath.EvalSymlinks(path)
	switch {
	case err == nil:
		f.path = real
	case !errors.Is(err, fs.ErrNotExist):
		return nil, nil, err
	default:
		if target, linkErr := os.Readlink(path); linkErr == nil {
			if !filepath.IsAbs(target) {
				target = filepath.Join(filepath.Dir(path), target)
			}
			f.path = target // a link whose target is not there yet
		}
		return nil, f, nil
	}
	if f.info, err = os.Stat(f.path); err != nil {
		return nil, nil, err
	}
	switch {
	case !f.info.Mode().IsRegular():
		return nil, nil, errNotRegular
	case f.info.Size() > maxConfig:
		return nil, nil, errHuge
	}
	f.text, err = os.ReadFile(f.path)
	return f.text, f, err
}

// backup is where the file is kept as it was.
func (f *configFile) backup() string { return f.path + ".postern-backup" }

// replace gives the file another text, at once and whole; no text removes it. It fails
// when the file is no longer what was read.
func (f *configFile) replace(text []byte, backup bool) error {
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

func (f *configFile) unchanged() error {
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
// one that was read. last is asked just before; nil asks nothing.
func (f *configFile) write(path string, text []byte, last func() error) error {
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
