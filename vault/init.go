package vault

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"

	"github.com/postern-mail/postern/mail"
)

// InitResult says what Init found or made.
type InitResult struct {
	Path        string
	Fingerprint string
	Created     bool // false when the vault was there already
}

// Init makes a vault at path, with the directory above it where that is missing,
// or verifies the one that is there against both keys and leaves it as it is. It
// needs both keys, and they must differ. The file appears complete or not at all;
// of several Inits at once one makes it and the others verify it.
//
// Errors match ErrNoKey, ErrBadKey, or for an existing vault what Open returns.
func Init(ctx context.Context, path string, k Keys) (InitResult, error) {
	for _, need := range []struct {
		name string
		key  mail.Secret
	}{{AdminKeyVar, k.Admin}, {AgentKeyVar, k.Agent}} {
		if need.key.IsZero() {
			return InitResult{}, fmt.Errorf("%w: making a vault needs %s and %s, and %s is missing", ErrNoKey, AdminKeyVar, AgentKeyVar, need.name)
		}
		key, err := decodeKey(need.key, need.name)
		if err != nil {
			return InitResult{}, err
		}
		clear(key)
	}
	if k.Admin.Reveal() == k.Agent.Reveal() {
		return InitResult{}, fmt.Errorf("%w: %s and %s are the same key, which would make every agent an admin", ErrBadKey, AdminKeyVar, AgentKeyVar)
	}
	r, err := verifyExisting(ctx, path, k)
	if !errors.Is(err, ErrNoVault) {
		return r, err
	}
	created, err := create(ctx, path, k)
	if err != nil {
		return InitResult{}, fmt.Errorf("vault %s: %w", path, err)
	}
	// What was made is verified as any other vault is.
	r, err = verifyExisting(ctx, path, k)
	r.Created = created && err == nil
	return r, err
}

func verifyExisting(ctx context.Context, path string, k Keys) (InitResult, error) {
	v, err := Open(ctx, path, Keys{Admin: k.Admin}, nil)
	if err != nil {
		return InitResult{}, err
	}
	if _, err := Open(ctx, path, Keys{Agent: k.Agent}, nil); err != nil {
		return InitResult{}, err
	}
	return InitResult{Path: v.Path(), Fingerprint: v.Fingerprint()}, nil
}

// create makes the vault aside and then gives it its name, which fails when the
// name is taken. It reports whether it did, rather than somebody else.
func create(ctx context.Context, path string, k Keys) (created bool, err error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return false, err
	}
	// The lock stands beside the file's real place, as it does for transactions.
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return false, err
	}
	path = filepath.Join(dir, filepath.Base(path))
	side, err := takeLock(ctx, path+".lock", true)
	if err != nil {
		return false, err
	}
	defer func() { _ = side.Close() }()
	if _, err := os.Lstat(path); err == nil {
		return false, nil
	}
	temporary, err := os.CreateTemp(dir, ".postern-*.new") // mode 0600
	if err != nil {
		return false, err
	}
	defer func() { _ = os.Remove(temporary.Name()) }()
	if err := temporary.Close(); err != nil {
		return false, err
	}
	err = runBolt(temporary.Name(), true, os.OpenFile, func(t *bolt.Tx) error { return writeNew(t, k) })
	if err != nil {
		return false, err
	}
	if err := give(temporary.Name(), path); err != nil {
		return false, err
	}
	return true, syncDir(dir)
}

// give names the file path, unless that exists. Where the file system has no
// links the lock is all that stands between the look and the renaming.
func give(from, path string) error {
	err := os.Link(from, path)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return fs.ErrExist
	}
	return os.Rename(from, path)
}

// writeNew fills an empty file: header, both slots, the signing key, and the
// manifest of an empty policy.
func writeNew(t *bolt.Tx, k Keys) error {
	random := make([]byte, idSize+2*keySize)
	if _, err := rand.Read(random); err != nil {
		return err
	}
	defer clear(random)
	id, data, seed := random[:idSize], random[idSize:idSize+keySize], random[idSize+keySize:]
	private := ed25519.NewKeyFromSeed(seed)
	defer clear(private)

	b, err := t.CreateBucket([]byte(bucketHeaders))
	if err != nil {
		return err
	}
	seal := func(k mail.Secret, purpose, name string, plain []byte) error {
		key, err := decodeKey(k, name)
		if err != nil {
			return err
		}
		defer clear(key)
		s, err := derivedSealer(key, id, purpose)
		if err != nil {
			return err
		}
		return b.Put([]byte(name), s.seal(bucketHeaders, []byte(name), plain))
	}
	values, err := derivedSealer(data, id, purposeValues)
	if err != nil {
		return err
	}
	tx := &transaction{checkedTx: checkedTx{bolt: t}, values: values}
	return errors.Join(
		b.Put([]byte("format"), binary.BigEndian.AppendUint32(nil, formatVersion)),
		b.Put([]byte("id"), bytes.Clone(id)), // bbolt keeps the slice until it commits
		b.Put([]byte("public"), private.Public().(ed25519.PublicKey)),
		seal(k.Admin, purposeSlot+slotAdmin, slotAdmin, data),
		seal(k.Agent, purposeSlot+slotAgent, slotAgent, data),
		seal(k.Admin, purposeSigner, keySigner, seed),
		tx.put(bucketPolicy, manifestKey, signManifest(private, id, &policy{generation: 1})),
	)
}

// Temporary makes a vault in a directory of its own, with keys that exist only
// in this process, and opens it as the admin. remove deletes the directory.
func Temporary(ctx context.Context, o *Options) (v *Vault, remove func() error, err error) {
	dir, err := os.MkdirTemp("", "postern-*")
	if err != nil {
		return nil, nil, err
	}
	remove = func() error { return os.RemoveAll(dir) }
	defer func() {
		if err != nil {
			err = errors.Join(err, remove())
		}
	}()
	var k Keys
	for _, s := range []*mail.Secret{&k.Admin, &k.Agent} {
		text, err := NewKey()
		if err != nil {
			return nil, nil, err
		}
		*s = mail.NewSecret([]byte(text))
	}
	path := filepath.Join(dir, "postern.db")
	if _, err := Init(ctx, path, k); err != nil {
		return nil, nil, err
	}
	if v, err = Open(ctx, path, k, o); err != nil {
		return nil, nil, err
	}
	return v, remove, nil
}
