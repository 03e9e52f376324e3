//go:build unix

package bolt

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/postern-mail/postern/vault/kv"
)

// TestADirectoryThatOthersCanWriteToIsRefused, when a vault is made and when it is opened.
func TestADirectoryThatOthersCanWriteToIsRefused(t *testing.T) {
	for _, c := range []struct {
		mode    fs.FileMode
		refused bool
		gid     int // -1: that of the owner's number
	}{{0o700, false, -1}, {0o755, false, -1}, {0o777, true, -1}, {0o702, true, -1}, {0o777 | fs.ModeSticky, false, -1}, {0o775, false, -1}, {0o775, true, os.Getuid() + 1}} {
		dir := filepath.Join(t.TempDir(), "x")
		must(t, os.Mkdir(dir, 0o700))
		path := filepath.Join(dir, "postern.db")
		fill := func() error {
			_, err := Create(t.Context(), path, func(tx kv.Tx) error { return tx.Put("b", []byte("k"), nil) })
			return err
		}
		must(t, fill())
		if c.gid < 0 {
			c.gid = os.Getuid()
		}
		if err := os.Chown(dir, -1, c.gid); errors.Is(err, syscall.EPERM) {
			continue // not everybody may give a directory to that group
		} else if err != nil {
			t.Fatal(err)
		}
		must(t, os.Chmod(dir, c.mode))
		if _, err := At(path); errors.Is(err, kv.ErrPermissions) != c.refused || err != nil && !c.refused {
			t.Errorf("%v of group %d: %v", c.mode, c.gid, err)
		}
		must(t, os.Remove(path))
		if err := fill(); errors.Is(err, kv.ErrPermissions) != c.refused || err != nil && !c.refused {
			t.Errorf("made in %v of group %d: %v", c.mode, c.gid, err)
		}
	}
}
