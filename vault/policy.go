package vault

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault/kv"
)

// Policy is the data that only the admin may change: every account with its lists, modes,
// servers and helper, every account's secret, every setting, every grant and the end of
// the last stop. One signed manifest covers all of it, so that an agent, who can seal records, can neither change
// nor drop nor mix any. Data that an agent may change, such as a token that a provider
// rotates, is state and is kept elsewhere (see Tx).

var manifestKey = []byte("manifest")

const (
	hashSize     = sha256.Size
	manifestSize = 8 + hashSize + ed25519.SignatureSize
)

// signedBuckets are the buckets that the manifest covers, in this order.
var signedBuckets = []string{bucketAccounts, bucketSecrets, bucketSettings, bucketGrants, bucketHeads, bucketResumed}

// policy is the whole verified policy of one generation. It does not change
// once other goroutines can see it.
type policy struct {
	sealed     []byte // the manifest as in the file, to recognize it
	stop       []byte // the last stop as in the file, nil for none; see stop.go
	stopped    *mail.Stopped
	generation uint64
	digest     []byte // the signed digest
	// By bucket and name: JSON of mail.Account and of grantRecord, settings as they were
	// set, and a keyed digest of each secret.
	records   map[string]map[string][]byte
	config    Config
	configErr error
	grantList []grantRecord
	grantErr  error
}

// same reports whether the policy is that of a manifest and a stop as in the file.
func (p *policy) same(sealed, stop []byte) bool {
	return p != nil && bytes.Equal(p.sealed, sealed) && bytes.Equal(p.stop, stop)
}

// policy returns the verified policy of the transaction. It is verified once per
// generation; each time it is checked that the file still has that generation. The
// file's other records do not matter then, since the caller gets the verified ones.
func (v *Vault) policy(t *transaction) (*policy, error) {
	sealed, stop, err := policyOf(t)
	if err != nil {
		return nil, err
	}
	v.mu.Lock()
	cached := v.cached
	v.mu.Unlock()
	var p *policy
	switch {
	case cached.same(sealed, stop):
		return cached, nil
	case cached != nil && bytes.Equal(cached.sealed, sealed): // there is another stop
		other := *cached
		p = &other
	default:
		if p, err = v.verifyPolicy(t); err != nil {
			return nil, err
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	p.stop = stop
	p.judgeStop(t, v.cached)
	// An older file was put in place, and perhaps written to since. What another goroutine
	// verified after this transaction began says nothing.
	if c := t.known; c != nil && p.generation < c.generation {
		return nil, fmt.Errorf("%w: it went back from generation %d to %d", ErrUntrustedPolicy, c.generation, p.generation)
	}
	if c := v.cached; c != nil {
		if p.generation == c.generation && !bytes.Equal(p.digest, c.digest) {
			return nil, fmt.Errorf("%w: there are two of generation %d", ErrUntrustedPolicy, p.generation)
		}
		if p.generation < c.generation {
			return p, nil
		}
	}
	v.cached = p
	return p, nil
}

func (v *Vault) verifyPolicy(t *transaction) (*policy, error) {
	sealed, err := t.Get(bucketPolicy, manifestKey)
	if err != nil {
		return nil, err
	}
	manifest, err := t.values.open(bucketPolicy, manifestKey, sealed)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUntrustedPolicy, err)
	}
	if len(manifest) != manifestSize {
		return nil, fmt.Errorf("%w: its manifest has a wrong length", ErrUntrustedPolicy)
	}
	generation := binary.BigEndian.Uint64(manifest)
	hash, signature := manifest[8:8+hashSize], manifest[8+hashSize:]
	if !ed25519.Verify(v.public, signedMessage(v.id, generation, hash), signature) {
		return nil, fmt.Errorf("%w: its signature is wrong", ErrUntrustedPolicy)
	}
	p := &policy{sealed: sealed, generation: generation, digest: hash}
	if err := v.readPolicy(t, p); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUntrustedPolicy, err)
	}
	if !bytes.Equal(p.hash(v.id), hash) {
		return nil, fmt.Errorf("%w: its records differ from the signed ones", ErrUntrustedPolicy)
	}
	p.config, p.configErr = parseConfig(p.records[bucketSettings])
	p.grantList, p.grantErr = parseGrants(p.records[bucketGrants])
	return p, nil
}

func (v *Vault) readPolicy(t *transaction, p *policy) error {
	p.records = map[string]map[string][]byte{}
	for _, bucket := range signedBuckets {
		records := map[string][]byte{}
		p.records[bucket] = records
		if err := t.each(bucket, func(name, plain []byte) error {
			records[string(name)] = v.signed(bucket, string(name), plain)
			if bucket == bucketSecrets {
				clear(plain)
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// signed returns the part of a record that the manifest covers: all of it, or the digest
// of a secret.
func (v *Vault) signed(bucket, name string, record []byte) []byte {
	if bucket == bucketSecrets {
		return v.secretDigest(name, record)
	}
	return record
}

// secretDigest represents a secret in the manifest and in memory. It is keyed, so
// that it does not help to guess one.
func (v *Vault) secretDigest(name string, secret []byte) []byte {
	return keyedDigest(v.digestKey, []byte("postern secret"), []byte(name), secret)
}

// hash covers every record with its bucket and name, in one order, and nothing
// can be moved across a boundary since every field is preceded by its length and
// every bucket by its count.
func (p *policy) hash(id []byte) []byte {
	h := sha256.New()
	writeSized(h, []byte("postern policy"), uint64Bytes(formatVersion), id, uint64Bytes(p.generation))
	for _, bucket := range signedBuckets {
		records := p.records[bucket]
		if (bucket == bucketGrants || bucket == bucketHeads || bucket == bucketResumed) && len(records) == 0 {
			continue // older vaults were signed without these buckets
		}
		writeSized(h, []byte(bucket), uint64Bytes(uint64(len(records))))
		for _, name := range slices.Sorted(maps.Keys(records)) {
			writeSized(h, []byte(name), records[name])
		}
	}
	return h.Sum(nil)
}

func signedMessage(id []byte, generation uint64, hash []byte) []byte {
	return appendSized(nil, []byte("postern policy manifest"), uint64Bytes(formatVersion), id, uint64Bytes(generation), hash)
}

// change lends fn the policy to alter, and signs the outcome, all in one transaction. The
// policy is verified first: the admin must not sign records that others put there.
func (v *Vault) change(ctx context.Context, fn func(*policyChange) error) error {
	if err := v.Ready(ctx); err != nil {
		return err
	}
	if !v.Admin() {
		return ErrAdminRequired
	}
	return v.update(ctx, func(t *transaction) error {
		return v.resign(t, func(c *policyChange) error {
			if h, err := v.head(t); err == nil && h != nil {
				if noted := c.p.noted(); noted != nil && noted.Seq > h.Seq {
					return fn(c) // an older one was put in place, which audit verify tells
				}
				if err := c.noteHead(h); err != nil {
					return err
				}
			}
			return fn(c)
		})
	})
}

// resign is change within a transaction.
func (v *Vault) resign(t *transaction, fn func(*policyChange) error) error {
	// First that it did not go back, then the records themselves: the cache does
	// not read them.
	if _, err := v.policy(t); err != nil {
		return err
	}
	current, err := v.verifyPolicy(t)
	if err != nil {
		return err
	}
	next := &policy{generation: current.generation + 1, records: map[string]map[string][]byte{}}
	for bucket, records := range current.records {
		next.records[bucket] = maps.Clone(records)
	}
	if err := fn(&policyChange{v: v, t: t, p: next}); err != nil {
		return err
	}
	private, err := openSeed(t.signing, t.header.signer)
	if err != nil {
		return err
	}
	defer clear(private)
	return t.put(bucketPolicy, manifestKey, signManifest(private, v.id, next))
}

func signManifest(private ed25519.PrivateKey, id []byte, p *policy) []byte {
	hash := p.hash(id)
	manifest := append(uint64Bytes(p.generation), hash...)
	return append(manifest, ed25519.Sign(private, signedMessage(id, p.generation, hash))...)
}

// policyChange writes records both to the file and to the policy to be signed.
type policyChange struct {
	v *Vault
	t *transaction
	p *policy
}

func (c *policyChange) put(bucket, name string, record []byte) error {
	c.p.records[bucket][name] = c.v.signed(bucket, name, record)
	return c.t.put(bucket, []byte(name), record)
}

func (c *policyChange) drop(bucket, name string) error {
	delete(c.p.records[bucket], name)
	return c.t.Delete(bucket, []byte(name))
}

// stillInForce returns the policy that was verified last, if the transaction has the
// same, and nil otherwise.
func (v *Vault) stillInForce(t kv.Tx) (*policy, error) {
	sealed, stop, err := policyOf(t)
	v.mu.Lock()
	defer v.mu.Unlock()
	if err != nil || !v.cached.same(sealed, stop) {
		return nil, err
	}
	return v.cached, nil
}

// policyOf returns the manifest and the last stop as in the file.
func policyOf(t kv.Tx) (sealed, stop []byte, err error) {
	if sealed, err = t.Get(bucketPolicy, manifestKey); err == nil {
		stop, err = t.Get(bucketPolicy, stopKey)
	}
	return sealed, stop, err
}

// inForce notes that a policy was in force in a state.
func (v *Vault) inForce(p *policy, state kv.Version) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.cached == p && (state.File != v.current.File || state.Seq > v.current.Seq) {
		v.current = state
	}
}

// readPolicyOnce returns the present policy. It needs no transaction where nothing was
// written since this process last saw that its policy is in force; each of its own
// transactions checks that.
func (v *Vault) readPolicyOnce(ctx context.Context) (_ *policy, err error) {
	began := time.Now()
	defer func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		if err == nil && began.After(v.looked) {
			v.looked = began
		}
	}()
	v.mu.Lock()
	p, seen := v.cached, v.current
	v.mu.Unlock()
	if p != nil && ctx.Err() == nil {
		switch now, err := v.engine.Version(ctx); {
		case err == nil && now == seen:
			return p, nil
		case errors.Is(err, ErrUnreachable):
			return nil, err
		}
	}
	err = v.view(ctx, func(t *transaction) (err error) {
		p, err = v.policy(t)
		return err
	})
	return p, err
}
