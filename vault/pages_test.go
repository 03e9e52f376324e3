package vault

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
)

// bigFile makes a vault whose tree has branches, overflow pages, a free list and
// inline buckets.
func bigFile(t testing.TB) (path string, k Keys) {
	t.Helper()
	path, k = newVaultFile(t)
	v := mustOpen(t, path, k, nil)
	must(t, v.Update(t.Context(), func(tx *Tx) error {
		if err := tx.Bucket("small").Put([]byte("k"), []byte("v")); err != nil {
			return err
		}
		for i := range 2000 {
			if err := tx.Bucket("large").Put(fmt.Appendf(nil, "%06d", i), make([]byte, 100)); err != nil {
				return err
			}
		}
		return tx.Bucket("large").Put([]byte("overflow"), make([]byte, 50_000))
	}))
	must(t, v.Update(t.Context(), func(tx *Tx) error {
		for i := range 1000 {
			if err := tx.Bucket("large").Delete(fmt.Appendf(nil, "%06d", i)); err != nil {
				return err
			}
		}
		return nil
	}))
	return path, k
}

func TestCheckPagesAgreesWithBbolt(t *testing.T) {
	path, k := bigFile(t)
	v := mustOpen(t, path, k, nil)
	must(t, v.file.check(t.Context()))
	boltClean(t, v)
}

// TestDamagedPagesAreFoundBeforeBboltMeetsThem breaks the tree in the ways from
// which bbolt would not return: a branch that points at its own ancestors is a
// recursion without end.
func TestDamagedPagesAreFoundBeforeBboltMeetsThem(t *testing.T) {
	size := os.Getpagesize()
	for name, damage := range map[string]func(b []byte, root, branch int){
		"a branch leads to itself":   func(b []byte, _, branch int) { order.PutUint64(b[branch*size+pageHeader+8:], uint64(branch)) },
		"a branch leads to the root": func(b []byte, root, branch int) { order.PutUint64(b[branch*size+pageHeader+8:], uint64(root)) },
		"a branch leads outside":     func(b []byte, _, branch int) { order.PutUint64(b[branch*size+pageHeader+8:], 1<<40) },
		"a branch has no children":   func(b []byte, _, branch int) { order.PutUint16(b[branch*size+10:], 0) },
		"a branch has too many":      func(b []byte, _, branch int) { order.PutUint16(b[branch*size+10:], 0xffff) },
		"a key lies outside":         func(b []byte, _, branch int) { order.PutUint32(b[branch*size+pageHeader:], 1<<31) },
		"a page is of no kind":       func(b []byte, _, branch int) { order.PutUint16(b[branch*size+8:], 3) },
		"a page is another":          func(b []byte, _, branch int) { order.PutUint64(b[branch*size:], 4) },
		"a page reaches outside":     func(b []byte, root, _ int) { order.PutUint32(b[root*size+12:], 1<<30) },
		"a bucket is no bucket":      func(b []byte, root, _ int) { order.PutUint32(b[root*size+pageHeader:], 0) },
		"a value lies outside":       func(b []byte, root, _ int) { order.PutUint32(b[root*size+pageHeader+12:], 1<<31) },
	} {
		t.Run(name, func(t *testing.T) {
			path, k := bigFile(t)
			b, err := os.ReadFile(path)
			must(t, err)
			f, err := os.Open(path)
			must(t, err)
			m, err := readMeta(f)
			must(t, err)
			must(t, f.Close())
			branch := 0
			v := mustOpen(t, path, k, nil)
			must(t, v.file.transact(t.Context(), false, func(tx *bolt.Tx) error {
				branch = int(tx.Bucket([]byte(statePrefix + "large")).Root())
				return nil
			}))
			damage(b, int(m.root), branch)
			must(t, os.WriteFile(path, b, 0o600))
			if _, err := Open(t.Context(), path, k, nil); !errors.Is(err, ErrDamaged) {
				t.Errorf("Open = %v, want ErrDamaged", err)
			}
		})
	}
}

// TestAFileCutWhileInUseIsAnError shows that a page that is gone under a running
// process is an error of that one call, and the next works when it is back.
func TestAFileCutWhileInUseIsAnError(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a mapped file cannot be cut here")
	}
	path, k := bigFile(t)
	v := mustOpen(t, path, k, nil)
	whole, err := os.ReadFile(path)
	must(t, err)
	all := func(tx *Tx) error { return tx.Bucket("large").ForEach(nil, func(_, _ []byte) error { return nil }) }
	must(t, v.View(t.Context(), all))

	// Between transactions: found before anything is mapped.
	must(t, os.Truncate(path, int64(len(whole)/2)))
	if err := v.View(t.Context(), all); !errors.Is(err, ErrDamaged) {
		t.Errorf("View of half a file = %v, want ErrDamaged", err)
	}
	must(t, os.WriteFile(path, whole, 0o600))
	must(t, v.View(t.Context(), all))

	// Within one: a fault in mapped memory.
	cut := func(tx *Tx) error {
		must(t, os.Truncate(path, int64(8*os.Getpagesize())))
		return all(tx)
	}
	for name, run := range map[string]func(context.Context, func(*Tx) error) error{"View": v.View, "Update": v.Update} {
		if err := run(t.Context(), cut); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s of a file cut meanwhile = %v, want ErrDamaged", name, err)
		}
		must(t, os.WriteFile(path, whole, 0o600))
		must(t, v.Update(t.Context(), all))
	}
}

// FuzzDamagedFile changes a small vault and lets every method read it. It must
// neither crash nor hang; what it answers does not matter, since sealing decides
// that. The head's checksum is made right again where asked, so that the fuzzer
// reaches what lies behind it.
func FuzzDamagedFile(f *testing.F) {
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
			for _, head := range []int{0, 4096} {
				h := fnv.New64a()
				_, _ = h.Write(b[head+pageHeader:][:metaSum])
				binary.NativeEndian.PutUint64(b[head+pageHeader+metaSum:], h.Sum64())
			}
		}
		b = b[:min(int(length), len(b))]
		path := filepath.Join(dir, fmt.Sprint(os.Getpid(), ".db"))
		must(t, os.WriteFile(path, b, 0o600))
		now := func() time.Time { return fixtureEntry().Time.AddDate(1, 0, 0) }
		v, err := Open(t.Context(), path, fixtureKeys(), &Options{Now: now})
		// A call that failed must not have left the file locked for the next.
		free := func(err error) {
			if errors.Is(err, ErrBusy) {
				t.Fatal(err)
			}
		}
		free(err)
		if err != nil {
			return
		}
		_, err = v.Accounts(t.Context())
		free(err)
		_, err = v.Secret(t.Context(), "work")
		free(err)
		_, err = v.Audit(t.Context(), AuditQuery{})
		free(err)
		_, err = v.VerifyAudit(t.Context())
		free(err)
		free(v.Check(t.Context()))
		free(v.SetSetting(t.Context(), "deny", ""))
		free(v.Record(t.Context(), fixtureEntry()))
		_, err = v.Take(t.Context(), "agent", 5, time.Hour)
		free(err)
		free(v.Update(t.Context(), func(tx *Tx) error { return tx.Bucket("seen").Put([]byte("x"), []byte("y")) }))
		free(v.Check(t.Context()))
	})
}
