package extension

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// maxLinks is how many symbolic links a path may lead through.
const maxLinks = 40

// resolve follows an absolute path to the directory of extensions and returns it
// without symbolic links. Every directory on the way must belong to the person who runs
// this process or to root, and nobody else may change it: anybody who can rename a
// directory above can put another in its place. A directory in which everybody may write
// but only owners may rename, such as /tmp, will do above it.
func resolve(dir string) (string, error) {
	links := 0
	at, err := follow(filepath.Clean(dir), &links)
	if err != nil {
		return "", err
	}
	if _, err := trusted(at, true); err != nil {
		return "", fmt.Errorf("the directory %w", err)
	}
	return at, nil
}

// follow is resolve for any directory on the way. A path that goes up again behind a
// link may end elsewhere than the system would go; the result is the path that is used.
func follow(path string, links *int) (string, error) {
	above := filepath.Dir(path)
	if above == path {
		return path, trustedAncestor(path)
	}
	above, err := follow(above, links)
	if err != nil {
		return "", err
	}
	path = filepath.Join(above, filepath.Base(path))
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return "", err
	case info.IsDir():
		return path, trustedAncestor(path)
	case info.Mode()&fs.ModeSymlink == 0:
		return "", fmt.Errorf("%s is not a directory", path)
	}
	if *links++; *links > maxLinks {
		return "", errors.New("its path leads through too many symbolic links")
	}
	if err := ownedLink(path, info); err != nil {
		return "", err
	}
	target, err := os.Readlink(path)
	if err != nil {
		return "", err
	}
	if !filepath.IsAbs(target) {
		target = filepath.Join(above, target)
	}
	return follow(filepath.Clean(target), links)
}

var errMissing = errors.New("is not there")

// trusted holds the directory of extensions, and the files used in it, to the rule that
// nobody else may change them. Its error follows the name of the file.
func trusted(path string, dir bool) (fs.FileInfo, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errMissing
	case err != nil:
		return nil, errors.New("cannot be looked at")
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, errors.New("is a symbolic link, which is not followed: put the file or directory itself there")
	case dir && !info.IsDir():
		return nil, errors.New("is not a directory")
	case !dir && !info.Mode().IsRegular():
		return nil, errors.New("is not a regular file")
	}
	return info, onlyOurs(path, info)
}
