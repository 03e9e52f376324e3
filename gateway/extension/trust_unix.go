//go:build unix

package extension

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// ours reports whether a file belongs to the person who runs this process or root.
func ours(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && (s.Uid == 0 || int64(s.Uid) == int64(os.Geteuid()))
}

// othersWrite are the bits by which somebody else may write.
const othersWrite = 0o022

func onlyOurs(_ string, info fs.FileInfo) error {
	switch {
	case !ours(info):
		return errors.New("belongs to somebody else: it has to be yours or root's")
	case info.Mode().Perm()&othersWrite != 0:
		return fmt.Errorf("can be changed by others (mode %04o): run chmod go-w on it", info.Mode().Perm())
	}
	return nil
}

func trustedAncestor(path string) error {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return err
	case !ours(info):
		return fmt.Errorf("%s, which it lies in, belongs to somebody else", path)
	case info.Mode().Perm()&othersWrite != 0 && info.Mode()&fs.ModeSticky == 0:
		return fmt.Errorf("%s, which it lies in, can be changed by others (mode %04o): run chmod go-w on it, or put the extensions elsewhere", path, info.Mode().Perm())
	}
	return nil
}

func ownedLink(path string, info fs.FileInfo) error {
	if !ours(info) {
		return fmt.Errorf("%s is a symbolic link of somebody else's", path)
	}
	return nil
}
