package vault

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault/kv"
)

var (
	_ mail.Directory  = (*Vault)(nil)
	_ gateway.Auditor = (*Vault)(nil)
	_ gateway.Limiter = (*Vault)(nil)
)

// Options change how Open opens a vault. The zero Options are the defaults.
type Options struct {
	// PolicyPin is the fingerprint that the vault's policy key must have, as
	// Fingerprint returns it; case, spaces and hyphens do not matter. Empty
	// accepts any.
	PolicyPin string

	// AsAgent opens for an agent's work with either key: with the agent key, or
	// with the admin key if only that is given, but never as the admin.
	AsAgent bool

	// Marks is a directory of this machine, made when it is needed, that keeps how many writes
	// were seen of a vault in a database; see ErrWentBack. Empty keeps none.
	Marks string

	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Vault is an open vault, or one that is opened by its first use. It holds keys, but no
// file and no lock, between calls. It is safe for concurrent use.
type Vault struct {
	source  func(context.Context) (*Vault, error) // nil for a vault made by Open
	opening chan struct{}                         // one place: held by the caller that opens the vault
	away    error                                 // why it could not be opened for as long as a caller waits, until awayAt
	awayAt  time.Time
	opened  atomic.Bool // the fields below are set

	engine kv.Engine
	now    func() time.Time
	id     []byte
	public ed25519.PublicKey

	keys atomic.Pointer[dataKeys]

	// These stay when the vault is rekeyed: names and digests that they made must be
	// found again, and what they protect is sealed besides.
	auditKey  []byte // chains the audit log
	digestKey []byte // digests secrets for the manifest
	limitKey  []byte // names limits
	outerKey  []byte // the keys of other packages derive from it
	codeKey   []byte // makes approval codes; nil unless admin
	sumKey    []byte // digests records, see checkSums
	kind      engineKind

	writes       atomic.Int64 // of a vault in a database: those that were seen, see later
	marks        string       // directory of this machine's marks of them; empty for none
	marked       atomic.Int64 // when the mark was written; in nanoseconds
	begun        atomic.Bool  // it was compared
	keysCompared atomic.Int64 // when, see checkKeys; in nanoseconds
	journalMost  int          // changes of a principal that the journal keeps; 0 means maxJournalChanges
	together     together
	holds        holds
	transactions atomic.Int64
	oldest       struct { // the first entry of the audit log when it was last read; only a running job uses it
		seq  uint64
		time time.Time
	}

	mu      sync.Mutex
	cached  *policy    // the newest verified policy
	current kv.Version // the last state in which cached was in force
	looked  time.Time  // when readPolicyOnce last began to find that cached is in force

	logDue map[string]int64 // by principal: the instant that stands for its entries, see LogFull
}

// dataKeys are the keys that end with the data key.
type dataKeys struct {
	values  *sealer // seals every value
	signing *sealer // unseals the private key; nil unless admin
	slot    []byte  // the agent's slot, another one after each Rekey
}

// Open opens the vault at path, and never creates or changes it. With the admin
// key it opens as the admin, through the admin's slot only; with the agent key
// alone as an agent. The context bounds the wait for other processes.
//
// Errors match ErrNoVault, ErrPermissions, ErrDamaged, ErrFutureFormat, ErrNoKey,
// ErrBadKey, ErrWrongKey, ErrPolicyPin, ErrUntrustedPolicy (the policy key in the
// file is not the admin's) or ErrBusy.
func Open(ctx context.Context, path string, k Keys, o *Options) (*Vault, error) {
	if o == nil {
		o = &Options{}
	}
	kind, err := kindOf(path)
	if err != nil {
		return nil, err
	}
	engine, err := kind.at(ctx, path)
	if err != nil {
		return nil, err
	}
	slot, key, err := k.choose(o.AsAgent)
	if err != nil {
		return nil, err
	}
	defer clear(key)
	var h header
	_, err = engine.Transact(ctx, false, func(t kv.Tx) (err error) {
		h, err = readHeader(t)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("vault %s: %w", engine.Path(), err)
	}
	v := &Vault{engine: engine, kind: kind, now: o.Now, id: h.id, public: h.public}
	if v.now == nil {
		v.now = time.Now
	}
	if err := v.unlock(h, slot, key, !o.AsAgent); err != nil {
		return nil, fmt.Errorf("vault %s: %w", engine.Path(), err)
	}
	if o.PolicyPin != "" && plainFingerprint(o.PolicyPin) != plainFingerprint(v.Fingerprint()) {
		return nil, fmt.Errorf("vault %s: %w: it is %s", engine.Path(), ErrPolicyPin, v.Fingerprint())
	}
	if v.marks = o.Marks; kind.foreign && v.marks != "" {
		writes, err := v.readMark()
		if err != nil {
			return nil, fmt.Errorf("vault %s: %w", engine.Path(), err)
		}
		v.writes.Store(writes)
	}
	v.opened.Store(true)
	return v, nil
}

// Lazy returns a vault that source opens. source is called at the vault's first use, and
// again after an error, which the vault's method then returns: so it finds a vault that
// is made meanwhile. It is called once more when the vault was rekeyed meanwhile, and has
// to find the new key. Admin, Path, Fingerprint and Now open nothing; see Ready.
func Lazy(source func(context.Context) (*Vault, error)) *Vault {
	return &Vault{source: source, opening: make(chan struct{}, 1), now: time.Now}
}

// Ready opens the vault unless it is open.
func (v *Vault) Ready(ctx context.Context) error {
	if v.opened.Load() {
		return nil
	}
	since := time.Now()
	select {
	case v.opening <- struct{}{}:
		defer func() { <-v.opening }()
	case <-ctx.Done():
		return ctx.Err()
	}
	switch {
	case v.opened.Load():
		return nil
	case v.awayAt.After(since): // it has waited with another, and need not wait as long again
		return v.away
	}
	o, err := v.source(ctx)
	if errors.Is(err, ErrUnreachable) && ctx.Err() == nil {
		v.away, v.awayAt = err, time.Now()
	}
	if err != nil {
		return err
	}
	v.engine, v.now, v.id, v.public = o.engine, o.now, o.id, o.public
	v.keys.Store(o.keys.Load())
	v.auditKey, v.digestKey, v.limitKey, v.outerKey, v.codeKey = o.auditKey, o.digestKey, o.limitKey, o.outerKey, o.codeKey
	v.sumKey, v.kind, v.marks = o.sumKey, o.kind, o.marks
	v.sawWrites(o.writes.Load())
	v.opened.Store(true)
	return nil
}

// reopen gets the keys of a vault that was rekeyed since it had the stale ones.
func (v *Vault) reopen(ctx context.Context, stale *dataKeys) error {
	if v.source == nil {
		return ErrRekeyed
	}
	select {
	case v.opening <- struct{}{}:
		defer func() { <-v.opening }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if v.keys.Load() != stale {
		return nil
	}
	o, err := v.source(ctx)
	if errors.Is(err, ErrWrongKey) {
		return fmt.Errorf("%w: %w", ErrRekeyed, err)
	}
	if err != nil {
		return err
	}
	if !bytes.Equal(o.id, v.id) {
		return errOtherVault
	}
	if !bytes.Equal(o.public, v.public) {
		return errOtherPolicyKey
	}
	v.keys.Store(o.keys.Load())
	return nil
}

// Opened reports whether the vault is open.
func (v *Vault) Opened() bool { return v.opened.Load() }

// choose returns the slot to open and its key, which the caller clears.
func (k Keys) choose(asAgent bool) (slot string, key []byte, err error) {
	slot, name, secret := slotAdmin, AdminKeyVar, k.Admin
	if k.Admin.IsZero() || (asAgent && !k.Agent.IsZero()) {
		slot, name, secret = slotAgent, AgentKeyVar, k.Agent
	}
	if secret.IsZero() {
		return "", nil, fmt.Errorf("%w: set %s", ErrNoKey, AgentKeyVar)
	}
	key, err = decodeKey(secret, name)
	return slot, key, err
}

// unlock opens the slot and derives the vault's keys. admin keeps the key that signs
// policy, if the slot is the admin's.
func (v *Vault) unlock(h header, slot string, key []byte, admin bool) error {
	data, err := h.openSlot(slot, key)
	if err != nil {
		return err
	}
	defer clear(data)
	keys := &dataKeys{slot: h.slots[slotAgent]}
	if slot == slotAdmin {
		private, err := h.openSigner(key)
		if err != nil {
			return err
		}
		defer clear(private)
		if admin {
			if keys.signing, err = derivedSealer(key, h.id, purposeSigner); err != nil {
				return err
			}
			if v.codeKey, err = derive(private.Seed(), h.id, "approval codes"); err != nil {
				return err
			}
		}
	}
	if keys.values, err = derivedSealer(data, h.id, purposeValues); err != nil {
		return err
	}
	root, err := h.openRoot(data, keys.values)
	if err != nil {
		return err
	}
	defer clear(root)
	v.keys.Store(keys)
	for purpose, k := range map[string]*[]byte{"audit chain": &v.auditKey, "secret digests": &v.digestKey, "limit names": &v.limitKey, "other packages": &v.outerKey, purposeSums: &v.sumKey} {
		if *k, err = derive(root, h.id, purpose); err != nil {
			return err
		}
	}
	return nil
}

// Admin reports whether the vault was opened as the admin.
func (v *Vault) Admin() bool { return v.opened.Load() && v.keys.Load().signing != nil }

// Remote reports whether the vault is open, and processes on other machines may have it too.
func (v *Vault) Remote() bool { return v.opened.Load() && v.kind.remote }

// Lock is kv.Engine.Lock.
func (v *Vault) Lock(ctx context.Context, name string) (held context.Context, unlock func(), err error) {
	if err := v.Ready(ctx); err != nil {
		return nil, nil, err
	}
	return v.engine.Lock(ctx, name)
}

// Path returns the path of the vault, symbolic links resolved, or the address of its
// database without secrets; empty before it is open.
func (v *Vault) Path() string {
	if !v.opened.Load() {
		return ""
	}
	return v.engine.Path()
}

// Transactions returns how many transactions this process has made with the vault.
func (v *Vault) Transactions() int64 { return v.transactions.Load() }

// Fingerprint names the key that signs the vault's policy: the SHA-256 of the
// public key in groups of base32.
func (v *Vault) Fingerprint() string { return fingerprint(v.public) }

func fingerprint(public ed25519.PublicKey) string {
	sum := sha256.Sum256(public)
	text := strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:]))
	var groups []string
	for ; len(text) > 4; text = text[4:] {
		groups = append(groups, text[:4])
	}
	return strings.Join(append(groups, text), "-")
}

func plainFingerprint(s string) string {
	return strings.ToLower(strings.NewReplacer("-", "", " ", "").Replace(strings.TrimSpace(s)))
}

// Buckets of the file. All but the header are sealed under the data key.
const (
	bucketHeaders  = "vault"
	bucketPolicy   = "policy" // the manifest
	bucketAccounts = "accounts"
	bucketSecrets  = "secrets"
	bucketSettings = "settings"
	bucketGrants   = "grants"
	bucketResumed  = "resumed"
	bucketAudit    = "audit"
	bucketChain    = "audit.chain"
	bucketLimits   = "limits"
	statePrefix    = "state/" // a bucket of another package, see Tx
)

const (
	slotAdmin = "admin"
	slotAgent = "agent"
	keySigner = "signer"
	keyRoot   = "root"

	purposeSlot   = "slot "
	purposeSigner = "signer"
	purposeValues = "values"

	maxHeader = 16 // more than its fields
)

// header is the part that is read before the data key is known.
type header struct {
	id     []byte
	public ed25519.PublicKey
	slots  map[string][]byte // the data key, sealed
	signer []byte            // seed of the private key, sealed under the admin key
	root   []byte            // the first data key, sealed under the present one; nil while they are one
}

func readHeader(t kv.Tx) (header, error) {
	list, err := t.Scan(bucketHeaders, kv.Range{}, maxHeader)
	if err != nil {
		return header{}, err
	}
	fields := map[string][]byte{}
	for _, field := range list {
		fields[string(field.Key)] = field.Value
	}
	format := fields["format"]
	if len(format) != 4 {
		return header{}, fmt.Errorf("%w: it has no format number", ErrDamaged)
	}
	switch n := binary.BigEndian.Uint32(format); {
	case n == movedFormat:
		return header{}, movedError(fields)
	case n > movedFormat:
		return header{}, fmt.Errorf("%w: it has format %d, this version reads up to %d", ErrFutureFormat, n, rekeyedFormat)
	case n == rekeyedFormat && len(fields[keyRoot]) == 0:
		return header{}, fmt.Errorf("%w: its header is incomplete", ErrDamaged)
	case n != formatVersion && n != rekeyedFormat:
		return header{}, fmt.Errorf("%w: there is no format %d", ErrDamaged, n)
	}
	h := header{
		id:     fields["id"],
		public: fields["public"],
		slots:  map[string][]byte{slotAdmin: fields[slotAdmin], slotAgent: fields[slotAgent]},
		signer: fields[keySigner],
		root:   fields[keyRoot],
	}
	if len(h.id) != idSize || len(h.public) != ed25519.PublicKeySize || len(h.slots[slotAdmin]) == 0 ||
		len(h.slots[slotAgent]) == 0 || len(h.signer) == 0 {
		return header{}, fmt.Errorf("%w: its header is incomplete", ErrDamaged)
	}
	return h, nil
}

// openSlot returns the data key, which the caller clears.
func (h header) openSlot(slot string, key []byte) ([]byte, error) {
	s, err := derivedSealer(key, h.id, purposeSlot+slot)
	if err != nil {
		return nil, err
	}
	data, err := s.open(bucketHeaders, []byte(slot), h.slots[slot])
	if err != nil || len(data) != keySize {
		// A damaged slot looks the same; a wrong key is more likely.
		return nil, fmt.Errorf("%w as its %s", ErrWrongKey, slot)
	}
	return data, nil
}

// openRoot returns the secret from which the keys derive that stay when the vault is
// rekeyed. The caller clears it.
func (h header) openRoot(data []byte, values *sealer) ([]byte, error) {
	if h.root == nil {
		return bytes.Clone(data), nil
	}
	return values.open(bucketHeaders, []byte(keyRoot), h.root)
}

// openSigner returns the private key, which the caller clears. The public key is not sealed, so
// that an agent could replace it: it is compared with the private key.
func (h header) openSigner(adminKey []byte) (ed25519.PrivateKey, error) {
	s, err := derivedSealer(adminKey, h.id, purposeSigner)
	if err != nil {
		return nil, err
	}
	private, err := openSeed(s, h.signer)
	if err == nil && !h.public.Equal(private.Public()) {
		clear(private)
		return nil, errOtherPolicyKey
	}
	return private, err
}

func openSeed(s *sealer, sealed []byte) (ed25519.PrivateKey, error) {
	seed, err := s.open(bucketHeaders, []byte(keySigner), sealed)
	if err != nil {
		return nil, err
	}
	defer clear(seed)
	if len(seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("%w: its signing key has a wrong length", ErrDamaged)
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// transaction is a transaction of the engine in which values are sealed.
type transaction struct {
	kv.Tx
	*dataKeys
	header   header
	writes   int64   // that were seen before
	known    *policy // that was verified before, or nil
	appended bool    // to the audit log, whose end it knows therefore
	leaves   bool    // something leaves behind it, or is stopped: the mark is written first
}

func (v *Vault) view(ctx context.Context, fn func(*transaction) error) error {
	return v.transact(ctx, false, fn)
}

func (v *Vault) update(ctx context.Context, fn func(*transaction) error) error {
	return v.transact(ctx, true, fn)
}

func (v *Vault) transact(ctx context.Context, write bool, fn func(*transaction) error) error {
	if err := v.Ready(ctx); err != nil {
		return err
	}
	for {
		keys := v.keys.Load()
		err := v.transactWith(ctx, keys, write, fn)
		if !errors.Is(err, errStaleKeys) {
			return err
		}
		if err := v.reopen(ctx, keys); err != nil {
			return err
		}
	}
}

// errStaleKeys says that the vault was rekeyed since it was opened, before the
// transaction did anything.
var errStaleKeys = errors.New("the keys are stale")

var (
	errOtherVault     = fmt.Errorf("%w: another vault has taken its place", ErrDamaged)
	errOtherPolicyKey = fmt.Errorf("%w: the policy key was replaced", ErrUntrustedPolicy)
)

func (v *Vault) transactWith(ctx context.Context, keys *dataKeys, write bool, fn func(*transaction) error) error {
	v.transactions.Add(1)
	var p *policy
	var sums *summing
	var first, leaves bool
	before := v.writes.Load()
	v.mu.Lock()
	known := v.cached
	v.mu.Unlock()
	version, err := v.engine.Transact(ctx, write, func(t kv.Tx) error {
		h, err := readHeader(t)
		if err != nil {
			return err
		}
		// The path can lead to another file by now, and the policy key must still be
		// the one this process began with.
		if !bytes.Equal(h.id, v.id) {
			return errOtherVault
		}
		if !bytes.Equal(h.public, v.public) {
			return errOtherPolicyKey
		}
		if !bytes.Equal(h.slots[slotAgent], keys.slot) {
			return errStaleKeys
		}
		if write && v.kind.foreign {
			sums, err = newSumming(t, keys.values, v.sumKey)
			if err == nil {
				err = v.later(before, sums.sums)
			}
			if err != nil {
				return err
			}
			t = sums
		}
		x := &transaction{Tx: t, dataKeys: keys, header: h, writes: before, known: known}
		if first = v.kind.foreign && v.marks != "" && !v.begun.Load(); first {
			if err := v.begin(x); err != nil {
				return err
			}
		}
		if err := fn(x); err != nil {
			return err
		}
		leaves = x.leaves
		if sums != nil {
			if err := sums.keep(); err != nil {
				return err
			}
		}
		p, err = v.stillInForce(t)
		return err
	})
	if err == nil && sums != nil {
		v.sawWrites(written(sums.sums))
		if kept := v.keepMark(leaves); leaves && kept != nil {
			err = fmt.Errorf("the mark of the vault's writes: %w", kept)
		}
	}
	if err == nil && first {
		v.begun.Store(true)
	}
	if err == nil && p != nil {
		v.inForce(p, version)
	}
	return err
}

// get returns the value, or nil when the record does not exist.
func (t *transaction) get(bucket string, key []byte) ([]byte, error) {
	sealed, err := t.Get(bucket, key)
	if sealed == nil || err != nil {
		return nil, err
	}
	return t.values.open(bucket, key, sealed)
}

func (t *transaction) put(bucket string, key, value []byte) error {
	return t.Put(bucket, key, t.values.seal(bucket, key, value))
}

// putNew is put for a record of which the caller knows that it is not there.
func (t *transaction) putNew(bucket string, key, value []byte) error {
	sealed := t.values.seal(bucket, key, value)
	s, ok := t.Tx.(*summing)
	if !ok {
		return t.Put(bucket, key, sealed)
	}
	s.of(bucket).add(sumDigest(s.key, bucket, key, sealed))
	return s.Tx.Put(bucket, key, sealed)
}

// each calls fn with every record in the order of keys.
func (t *transaction) each(bucket string, fn func(key, value []byte) error) error {
	for record, err := range kv.Each(t, bucket, kv.Range{}) {
		if err != nil {
			return err
		}
		value, err := t.values.open(bucket, record.Key, record.Value)
		if err == nil {
			err = fn(record.Key, value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
