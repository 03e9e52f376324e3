package extension

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxLinks is how many symbolic links a path may lead through.
const maxLinks = 40

// resolve follows an absolute path to the directory of extensions and returns it
// without symbolic links. On the way nothing may belong to anybody but the person
// who runs this process and root, and nothing may be changed by others: whoever can
// rename a directory above can put another in its place. A directory in which
// everybody may write but only owners may rename, such as /tmp, will do above it.
func resolve(dir string) (string, error) {
	volume := filepath.VolumeName(dir)
	root := volume + string(filepath.Separator)
	at, rest := root, parts(dir[len(volume):])
	if err := trustedAncestor(at); err != nil {
		return "", err
	}
	for links := 0; len(rest) > 0; {
		next := filepath.Join(at, rest[0])
		rest = rest[1:]
		info, err := os.Lstat(next)
		if err != nil {
			return "", err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			if links++; links > maxLinks {
				return "", errors.New("its path leads through too many symbolic links")
			}
			if err := ownedLink(next, info); err != nil {
				return "", err
			}
			target, err := os.Readlink(next)
			if err != nil {
				return "", err
			}
			if filepath.IsAbs(target) {
				if filepath.VolumeName(target) != volume {
					return "", errors.New("its path leads to another volume")
				}
				at = root
				target = target[len(volume):]
			}
			rest = append(parts(target), rest...)
			continue
		}
		at = next
		if !info.IsDir() {
			return "", fmt.Errorf("%s is not a directory", at)
		}
		if err := trustedAncestor(at); err != nil {
			return "", err
		}
	}
	if err := trustedDirectory(at); err != nil {
		return "", fmt.Errorf("the directory %w", err)
	}
	return at, nil
}

// parts splits a path at its separators.
func parts(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r < 0x80 && os.IsPathSeparator(uint8(r)) })
}

// trustedDirectory holds the directory of extensions and those in it to the rule
// that nobody else may change them. Its error follows what the directory is called.
func trustedDirectory(path string) error {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return errors.New("cannot be looked at")
	case info.Mode()&fs.ModeSymlink != 0:
		return errors.New("is a symbolic link, which is not followed: put the directory itself there")
	case !info.IsDir():
		return errors.New("is not a directory")
	}
	return onlyOurs(path, info)
}

// trustedFile is trustedDirectory for a file in one.
func trustedFile(path string, info fs.FileInfo) error {
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return errors.New("is a symbolic link, which is not followed: put the file itself there")
	case !info.Mode().IsRegular():
		return errors.New("is not a regular file")
	}
	return onlyOurs(path, info)
}
