package vault

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/postern-mail/postern/vault/bolt"
	"github.com/postern-mail/postern/vault/kv"
	"github.com/postern-mail/postern/vault/vaulttest"
)

// FuzzDamagedFile changes bytes of a small vault. The engine's Check must neither crash
// nor hang, and neither must any method if that Check finds no fault. Their results do not
// matter here: sealing protects those. With sum the head's checksum is corrected, so that
// the fuzzer reaches the code behind that check.
func FuzzDamagedFile(f *testing.F) {
	vaulttest.OnlyFile(f, "it damages its bytes")
	whole, err := os.ReadFile(filepath.Join("testdata", "format1.db"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte{}, uint32(len(whole)), false)
	f.Add([]byte{}, uint32(5000), false)
	f.Add([]byte{0, 0x10, 0x08, 0x01}, uint32(len(whole)), false)
	f.Add([]byte{0, 0, 0x20, 0x02, 0, 0x10, 0x20, 0x03}, uint32(len(whole)), true)
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, edits []byte, length uint32, sum bool) {
		b := append([]byte(nil), whole...)
		for ; len(edits) >= 4; edits = edits[4:] {
			at := int(edits[0])<<16 | int(edits[1])<<8 | int(edits[2])
			b[at%len(b)] = edits[3]
		}
		if sum {
			for _, meta := range []int{16, 4096 + 16} { // its last 8 bytes of 64
				h := fnv.New64a()
				_, _ = h.Write(b[meta:][:56])
				binary.NativeEndian.PutUint64(b[meta+56:], h.Sum64())
			}
		}
		b = b[:min(int(length), len(b))]
		path := filepath.Join(dir, fmt.Sprint(os.Getpid(), ".db"))
		must(t, os.WriteFile(path, b, 0o600))
		engine, err := bolt.At(path)
		if err != nil || engine.Check(t.Context()) != nil {
			return
		}
		now := func() time.Time { return fixtureEntry().Time.AddDate(1, 0, 0) }
		v, err := Open(t.Context(), path, fixtureKeys(), &Options{Now: now})
		// A failed call must not leave the file locked for the next one.
		free := func(err error) {
			if errors.Is(err, ErrBusy) {
				t.Fatal(err)
			}
		}
		free(err)
		if err != nil {
			return
		}
		for _, err := range []error{
			second(v.Accounts(t.Context())),
			second(v.Secret(t.Context(), "work")),
			second(v.Audit(t.Context(), AuditQuery{})),
			second(v.VerifyAudit(t.Context())),
			v.Check(t.Context()),
			v.SetSetting(t.Context(), "deny", ""),
			v.Record(t.Context(), fixtureEntry()),
			second(v.Take(t.Context(), "agent", 5, time.Hour)),
			v.Update(t.Context(), func(tx kv.Tx) error { return tx.Put("seen", []byte("x"), []byte("y")) }),
			v.Check(t.Context()),
		} {
			free(err)
		}
	})
}
