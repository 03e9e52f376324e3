package vault

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/postern-mail/postern/vault/kv"
)

// Policy is what only the admin may change: every account with its lists, modes,
// servers and helper, every account's secret, every setting and every grant. One manifest is
// signed over all of it, so that an agent, who can seal records, can neither
// change nor drop nor mix any. What an agent may change, such as a token that a
// provider rotates, is state and is kept elsewhere (see Tx).

var manifestKey = []byte("manifest")

const (
	hashSize     = sha256.Size
	manifestSize = 8 + hashSize + ed25519.SignatureSize
)

// policy is the whole policy of one generation, verified. It is never changed
// once other goroutines can see it.
type policy struct {
	sealed     []byte // the manifest as it lies in the file, by which it is known again
	generation uint64
	digest     []byte            // what was signed
	accounts   map[string][]byte // JSON of mail.Account
	secrets    map[string][]byte // keyed digests
	settings   map[string][]byte
	config     Config
	configErr  error
	grants     map[string][]byte // JSON of grantRecord
	grantList  []grantRecord
	grantErr   error
}

// policy returns the verified policy of the transaction. Verifying happens once
// per generation; that the file still has that generation is checked each time.
// What lies in the file beside the manifest cannot matter then, since the caller
// gets what was verified.
func (v *Vault) policy(t *transaction) (*policy, error) {
	sealed, err := t.Get(bucketPolicy, manifestKey)
	if err != nil {
		return nil, err
	}
	v.mu.Lock()
	cached := v.cached
	v.mu.Unlock()
	if cached != nil && bytes.Equal(cached.sealed, sealed) {
		return cached, nil
	}
	p, err := v.verifyPolicy(t)
	if err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if c := v.cached; c != nil {
		// Somebody put an older file in place, and perhaps went on from there.
		if p.generation < c.generation {
			return nil, fmt.Errorf("%w: it went back from generation %d to %d", ErrUntrustedPolicy, c.generation, p.generation)
		}
		if p.generation == c.generation && !bytes.Equal(p.digest, c.digest) {
			return nil, fmt.Errorf("%w: there are two of generation %d", ErrUntrustedPolicy, p.generation)
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
	manifest, err := v.values.open(bucketPolicy, manifestKey, sealed)
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
	p.config, p.configErr = parseConfig(p.settings)
	p.grantList, p.grantErr = parseGrants(p.grants)
	return p, nil
}

func (v *Vault) readPolicy(t *transaction, p *policy) error {
	read := func(bucket string, value func(name, value []byte) []byte) (map[string][]byte, error) {
		m := map[string][]byte{}
		return m, t.each(bucket, func(name, plain []byte) error {
			m[string(name)] = value(name, plain)
			return nil
		})
	}
	asIs := func(_, plain []byte) []byte { return plain }
	var err error
	if p.accounts, err = read(bucketAccounts, asIs); err != nil {
		return err
	}
	if p.settings, err = read(bucketSettings, asIs); err != nil {
		return err
	}
	if p.grants, err = read(bucketGrants, asIs); err != nil {
		return err
	}
	p.secrets, err = read(bucketSecrets, func(name, plain []byte) []byte {
		defer clear(plain)
		return v.secretDigest(string(name), plain)
	})
	return err
}

// secretDigest stands for a secret in the manifest and in memory. It is keyed, so
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
	type bucket struct {
		name    string
		records map[string][]byte
	}
	buckets := []bucket{{bucketAccounts, p.accounts}, {bucketSecrets, p.secrets}, {bucketSettings, p.settings}}
	if len(p.grants) > 0 { // no vault had any when the first were signed
		buckets = append(buckets, bucket{bucketGrants, p.grants})
	}
	for _, b := range buckets {
		writeSized(h, []byte(b.name), uint64Bytes(uint64(len(b.records))))
		for _, name := range slices.Sorted(maps.Keys(b.records)) {
			writeSized(h, []byte(name), b.records[name])
		}
	}
	return h.Sum(nil)
}

func signedMessage(id []byte, generation uint64, hash []byte) []byte {
	b := appendSized(nil, []byte("postern policy manifest"))
	b = appendSized(b, uint64Bytes(formatVersion))
	b = appendSized(b, id)
	b = appendSized(b, uint64Bytes(generation))
	return appendSized(b, hash)
}

// change lends fn the policy to alter, and signs the outcome, all in one
// transaction. The policy is verified first: the admin must not bless what
// somebody else put there.
func (v *Vault) change(ctx context.Context, fn func(*policyChange) error) error {
	if err := v.Ready(ctx); err != nil {
		return err
	}
	if !v.Admin() {
		return ErrAdminRequired
	}
	return v.update(ctx, func(t *transaction) error {
		// That it did not go back, and then the records themselves, for which the
		// cache would vouch unread.
		if _, err := v.policy(t); err != nil {
			return err
		}
		current, err := v.verifyPolicy(t)
		if err != nil {
			return err
		}
		next := &policy{
			generation: current.generation + 1,
			accounts:   maps.Clone(current.accounts),
			secrets:    maps.Clone(current.secrets),
			settings:   maps.Clone(current.settings),
			grants:     maps.Clone(current.grants),
		}
		if err := fn(&policyChange{v: v, t: t, p: next}); err != nil {
			return err
		}
		private, err := openSeed(v.signing, t.header.signer)
		if err != nil {
			return err
		}
		defer clear(private)
		return t.put(bucketPolicy, manifestKey, signManifest(private, v.id, next))
	})
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

func (c *policyChange) putAccount(name string, record []byte) error {
	c.p.accounts[name] = record
	return c.t.put(bucketAccounts, []byte(name), record)
}

func (c *policyChange) putSecret(name string, secret []byte) error {
	c.p.secrets[name] = c.v.secretDigest(name, secret)
	return c.t.put(bucketSecrets, []byte(name), secret)
}

func (c *policyChange) putSetting(name, value string) error {
	c.p.settings[name] = []byte(value)
	return c.t.put(bucketSettings, []byte(name), []byte(value))
}

func (c *policyChange) dropAccount(name string) error {
	delete(c.p.accounts, name)
	return c.t.Delete(bucketAccounts, []byte(name))
}

func (c *policyChange) dropSecret(name string) error {
	delete(c.p.secrets, name)
	return c.t.Delete(bucketSecrets, []byte(name))
}

// stillInForce returns the policy that was verified last, if the transaction has the
// same, and nil otherwise.
func (v *Vault) stillInForce(t kv.Tx) (*policy, error) {
	sealed, err := t.Get(bucketPolicy, manifestKey)
	v.mu.Lock()
	defer v.mu.Unlock()
	if err != nil || v.cached == nil || !bytes.Equal(sealed, v.cached.sealed) {
		return nil, err
	}
	return v.cached, nil
}

// inForce notes that a policy was in force in a state.
func (v *Vault) inForce(p *policy, state kv.Version) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.cached == p && (state.File != v.current.File || state.Seq > v.current.Seq) {
		v.current = state
	}
}

// readPolicyOnce returns the policy as it is now. It takes no transaction where nothing
// was written since this process last saw that its policy is in force, and each of its
// own transactions sees that.
func (v *Vault) readPolicyOnce(ctx context.Context) (*policy, error) {
	v.mu.Lock()
	p, seen := v.cached, v.current
	v.mu.Unlock()
	if p != nil && ctx.Err() == nil {
		if now, err := v.engine.Version(ctx); err == nil && now == seen {
			return p, nil
		}
	}
	err := v.view(ctx, func(t *transaction) (err error) {
		p, err = v.policy(t)
		return err
	})
	return p, err
}
