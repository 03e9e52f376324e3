package house

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/postern-mail/postern/vault"
)

func TestAMailboxIsMadeWithoutHardLinks(t *testing.T) {
	defer func() { link = os.Link }()
	for _, meanwhile := range []bool{false, true} { // another process makes the keys in between
		theirs := map[string]string{}
		link = func(_, file string) error {
			if meanwhile {
				key, err := vault.NewKey()
				theirs[file] = key + "\n"
				if err = errors.Join(err, os.WriteFile(file, []byte(theirs[file]), 0o600)); err != nil {
					t.Error(err)
				}
			}
			return &os.LinkError{Op: "link", New: file, Err: errors.ErrUnsupported}
		}
		path := filepath.Join(t.TempDir(), "mail.db")
		s := &System{Getenv: func(string) string { return "" }}
		for range 2 { // it is made, and found again
			if _, err := s.OpenMailbox(t.Context(), path); err != nil {
				t.Fatalf("%t: %v", meanwhile, err)
			}
		}
		for file, key := range theirs {
			if now, err := os.ReadFile(file); err != nil || string(now) != key {
				t.Errorf("%s is replaced: %v", filepath.Base(file), err)
			}
		}
		if left, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".postern-*")); err != nil || len(left) > 0 {
			t.Errorf("%t: %v, %v", meanwhile, left, err)
		}
	}
}
