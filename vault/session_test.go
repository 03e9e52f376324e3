package vault

import (
	"errors"
	"os"
	"testing"

	bolt "go.etcd.io/bbolt"
)

// TestAFaultInsideBboltLeavesTheFileFree ends a transaction at the points where
// bbolt may still hold its locks and its mapping.
func TestAFaultInsideBboltLeavesTheFileFree(t *testing.T) {
	path, k := newVaultFile(t)
	v := mustOpen(t, path, k, nil)
	for _, write := range []bool{false, true} {
		err := v.file.transact(t.Context(), write, func(*bolt.Tx) error { panic("assertion failed: of bbolt") })
		if !errors.Is(err, ErrDamaged) {
			t.Errorf("a panic inside: %v, want ErrDamaged", err)
		}
		must(t, v.Update(t.Context(), func(*Tx) error { return nil }))
	}
	// A session that got no transaction, so that closing it could wait for good.
	h, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	db, err := bolt.Open(path, 0o600, &bolt.Options{OpenFile: func(string, int, os.FileMode) (*os.File, error) { return h, nil }})
	must(t, err)
	s := session{handle: h, db: db}
	s.end(path)
	must(t, v.Update(t.Context(), func(*Tx) error { return nil }))
}
