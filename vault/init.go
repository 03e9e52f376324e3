package vault

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault/bolt"
	"github.com/postern-mail/postern/vault/kv"
)

// InitResult is the result of Init.
type InitResult struct {
	Path        string
	Fingerprint string
	Created     bool // false when the vault existed already
}

// Init makes a vault at path, with its directory where that is missing, or
// verifies an existing one against both keys and leaves it unchanged. It needs
// both keys, and they must differ. The file appears complete or not at all; of
// several Inits at once one makes it and the others verify it.
//
// Errors match ErrNoKey, ErrBadKey, or for an existing vault those of Open.
func Init(ctx context.Context, path string, k Keys) (InitResult, error) {
	if err := k.both("making a vault"); err != nil {
		return InitResult{}, err
	}
	r, err := verifyExisting(ctx, path, k)
	if !errors.Is(err, ErrNoVault) {
		return r, err
	}
	kind, err := kindOf(path)
	if err != nil {
		return InitResult{}, err
	}
	created, err := kind.create(ctx, path, func(t kv.Tx) error { return writeNew(t, k, kind.foreign) })
	if err != nil {
		return InitResult{}, fmt.Errorf("vault %s: %w", Described(path), err)
	}
	// The new vault is verified like any other.
	r, err = verifyExisting(ctx, path, k)
	r.Created = created && err == nil
	return r, err
}

// both checks that both keys are there and differ. what is said to need them.
func (k Keys) both(what string) error {
	for _, need := range []struct {
		name string
		key  mail.Secret
	}{{AdminKeyVar, k.Admin}, {AgentKeyVar, k.Agent}} {
		if need.key.IsZero() {
			return fmt.Errorf("%w: %s needs %s and %s, and %s is missing", ErrNoKey, what, AdminKeyVar, AgentKeyVar, need.name)
		}
		key, err := decodeKey(need.key, need.name)
		if err != nil {
			return err
		}
		clear(key)
	}
	if k.Admin.Reveal() == k.Agent.Reveal() {
		return fmt.Errorf("%w: %s and %s are the same key, which would make every agent an admin", ErrBadKey, AdminKeyVar, AgentKeyVar)
	}
	return nil
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

// writeNew fills an empty file: header, both slots, the signing key, and the
// manifest of an empty policy.
func writeNew(t kv.Tx, k Keys, withSums bool) error {
	random := make([]byte, idSize+2*keySize)
	if _, err := rand.Read(random); err != nil {
		return err
	}
	defer clear(random)
	id, data, seed := random[:idSize], random[idSize:idSize+keySize], random[idSize+keySize:]
	private := ed25519.NewKeyFromSeed(seed)
	defer clear(private)

	if err := writeHeader(func(name string, value []byte) error { return t.Put(bucketHeaders, []byte(name), value) }, k, id, data, seed, nil); err != nil {
		return err
	}
	values, err := derivedSealer(data, id, purposeValues)
	if err != nil {
		return err
	}
	manifest := values.seal(bucketPolicy, manifestKey, signManifest(private, id, &policy{generation: 1}))
	if !withSums {
		return t.Put(bucketPolicy, manifestKey, manifest)
	}
	sums, err := freshSums(t, values, data, id)
	if err != nil {
		return err
	}
	return errors.Join(sums.Put(bucketPolicy, manifestKey, manifest), sums.keep())
}

// writeHeader writes the header of a vault: the data key and the seed of the private key
// sealed under its two keys, and the root sealed under the data key; nil where they are one.
func writeHeader(put func(name string, value []byte) error, k Keys, id, data, seed, root []byte) error {
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
		return put(name, s.seal(bucketHeaders, []byte(name), plain))
	}
	format := uint32(formatVersion)
	if root != nil {
		format = rekeyedFormat
		values, err := derivedSealer(data, id, purposeValues)
		if err != nil {
			return err
		}
		if err := put(keyRoot, values.seal(bucketHeaders, []byte(keyRoot), root)); err != nil {
			return err
		}
	}
	return errors.Join(
		put("format", binary.BigEndian.AppendUint32(nil, format)),
		put("id", id),
		put("public", ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey)),
		seal(k.Admin, purposeSlot+slotAdmin, slotAdmin, data),
		seal(k.Agent, purposeSlot+slotAgent, slotAgent, data),
		seal(k.Admin, purposeSigner, keySigner, seed),
	)
}

// Temporary makes a vault in a directory of its own, with keys that exist only in this process,
// so that nothing of it waits for the disk, and opens it as the admin. remove deletes the
// directory.
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
	v.engine.(*bolt.Engine).Brief()
	return v, remove, nil
}
