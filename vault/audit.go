package vault

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/vault/kv"
)

// The audit log is a chain: the hash of an entry covers the hash of the one before it,
// its own number, and its bytes. The chain record holds both ends: the first number with
// the hash before it, and the last number with its hash. Purging moves the first end
// forward, so that the rest still verifies. A head covers what was there at an
// administrator's command, see audit_head.go.

// Bounds of an entry's texts, in runes; longer ones are cut.
const (
	maxAuditCommand = 256  // 002 section 8.3
	maxAuditTarget  = 8200 // the recipients of any message, as commands tells them
	maxAuditText    = 256  // any other
)

const (
	purgeBatch    = 100            // entries one append may purge
	clockMistrust = 24 * time.Hour // the date of an entry further in the future is not trusted
	verifyBatch   = 1000           // entries one transaction verifies
)

var chainKey = []byte("chain")

// AuditRecord is an entry with its number in the log; numbers grow by one.
type AuditRecord struct {
	Seq    uint64 `json:"seq,omitzero"`
	Signed bool   `json:"signed,omitempty"` // the administrator signed the log up to it
	gateway.AuditEntry
}

// chain is both ends of the log. In an empty log last is first-1 and both hashes
// are equal.
type chain struct {
	first, last      uint64
	before, lastHash []byte
}

func (t *transaction) chain() (chain, error) {
	b, err := t.get(bucketChain, chainKey)
	if err != nil {
		return chain{}, err
	}
	if b == nil {
		zero := make([]byte, hashSize)
		return chain{first: 1, before: zero, lastHash: zero}, nil
	}
	if len(b) != 2*(8+hashSize) {
		return chain{}, fmt.Errorf("%w: the audit log's ends have a wrong length", ErrDamaged)
	}
	return chain{
		first:    binary.BigEndian.Uint64(b),
		before:   b[8 : 8+hashSize],
		last:     binary.BigEndian.Uint64(b[8+hashSize:]),
		lastHash: b[16+hashSize:],
	}, nil
}

func (t *transaction) putChain(c chain) error {
	b := append(uint64Bytes(c.first), c.before...)
	b = append(append(b, uint64Bytes(c.last)...), c.lastHash...)
	return t.put(bucketChain, chainKey, b)
}

// link is one entry as it is stored: the hash before it, its own, its JSON.
type link struct {
	before, hash, entry []byte
}

func parseLink(b []byte) (link, error) {
	if len(b) < 2*hashSize {
		return link{}, fmt.Errorf("%w: an audit entry is too short", ErrDamaged)
	}
	return link{before: b[:hashSize], hash: b[hashSize : 2*hashSize], entry: b[2*hashSize:]}, nil
}

func (l link) decode(seq uint64) (r AuditRecord, err error) {
	if err := json.Unmarshal(l.entry, &r); err != nil {
		return AuditRecord{}, fmt.Errorf("%w: audit entry %d is unreadable", ErrDamaged, seq)
	}
	r.Seq = seq
	return r, nil
}

// linkAt returns an entry; the error matches ErrDamaged where there is none.
func (t *transaction) linkAt(seq uint64) (l link, r AuditRecord, err error) {
	b, err := t.get(bucketAudit, uint64Bytes(seq))
	if err == nil {
		l, err = parseLink(b)
	}
	if err == nil {
		r, err = l.decode(seq)
	}
	return l, r, err
}

func (v *Vault) linkHash(seq uint64, before, entry []byte) []byte {
	return keyedDigest(v.auditKey, []byte("postern audit"), v.id, uint64Bytes(seq), before, entry)
}

// Record appends an entry to the audit log and purges some of those older than the
// setting audit_retention_days. When it returns nil the entry is durable, in one
// transaction with those of other calls at the same time. Texts that are too long are
// cut, and a zero time means now. It works also while the policy cannot be trusted,
// since the refusals of that time must be recorded; it does not purge then. It
// implements gateway.Auditor.
func (v *Vault) Record(ctx context.Context, e gateway.AuditEntry) error {
	if err := v.Ready(ctx); err != nil {
		return err
	}
	e = v.bounded(e)
	low := v.holds.low()
	return v.writeTogether(ctx, func(t *transaction, j *job) error {
		size, err := v.append(t, e)
		if err != nil {
			return err
		}
		if err := v.chargeLog(t, j, e.Principal, size); err != nil {
			return err
		}
		for key, h := range low {
			name := v.limitName(key)
			state, _, kept := h.charge(t.limit(name), 0, v.now().UnixNano())
			j.after = append(j.after, kept)
			if err := t.put(bucketLimits, name, state); err != nil {
				return err
			}
		}
		return nil
	})
}

// logShare is how many bytes of entries a principal may cause in an hour, and as many at once
// after silence: about 18,000 ordinary ones.
const logShare = 8 << 20

var _ gateway.Bounded = (*Vault)(nil)

// LogFull implements gateway.Bounded. It knows what the principal has caused, in any process,
// from this process's last transaction that recorded or charged a command of the principal.
func (v *Vault) LogFull(principal string) (wait time.Duration, share int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return max(0, time.Duration(v.logDue[principal]-v.now().UnixNano())-time.Hour), logShare
}

func (v *Vault) logName(principal string) []byte { return v.limitName("audit:" + principal) }

// noteLog is called with the state of a principal's share.
func (v *Vault) noteLog(principal string, p pace) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.logDue == nil {
		v.logDue = map[string]int64{}
	}
	v.logDue[principal] = p.due
}

// chargeLog charges the bytes of an entry to a principal's share, also beyond it.
func (v *Vault) chargeLog(t *transaction, j *job, principal string, size int) error {
	name, now := v.logName(principal), v.now().UnixNano()
	p := parsePace(t.limit(name))
	p.due = max(min(p.due, now+int64(time.Hour)), now) + int64(size)*spacing(logShare, time.Hour)
	j.after = append(j.after, func(err error) {
		if err == nil {
			v.noteLog(principal, p)
		}
	})
	return t.put(bucketLimits, name, p.state())
}

// append puts an entry at the end of the log, and signs it if it is the administrator's. It
// returns how many bytes that takes, about.
func (v *Vault) append(t *transaction, e gateway.AuditEntry) (size int, err error) {
	c, err := t.chain()
	if err != nil {
		return 0, err
	}
	signed, last := v.mayAttest(t, c)
	entry, err := json.Marshal(AuditRecord{Signed: signed != nil, AuditEntry: e})
	if err != nil {
		return 0, fmt.Errorf("audit entry: %w", err)
	}
	seq, before := c.last+1, c.lastHash
	if !t.appended { // the same question each time, so that an engine can ask it ahead
		newest, err := t.Scan(bucketAudit, kv.Range{Reverse: true}, 1)
		if err != nil {
			return 0, err
		}
		if len(newest) > 0 && bytes.Compare(newest[0].Key, uint64Bytes(c.last)) > 0 {
			// The ends of the log were lost or replaced. The entries there are evidence.
			return 0, fmt.Errorf("%w: the audit log goes on after its end at %d", ErrDamaged, c.last)
		}
		t.appended = true
	}
	hash := v.linkHash(seq, before, entry)
	if err := t.putNew(bucketAudit, uint64Bytes(seq), bytes.Join([][]byte{before, hash, entry}, nil)); err != nil {
		return 0, err
	}
	c.last, c.lastHash = seq, hash
	if err := v.purge(t, &c); err != nil {
		return 0, err
	}
	size = len(entry) + 4*hashSize
	if err := t.putChain(c); err != nil || signed == nil {
		return size, err
	}
	return size, v.attest(t, c, signed, last, e.Time)
}

func (v *Vault) bounded(e gateway.AuditEntry) gateway.AuditEntry {
	if y := e.Time.Year(); e.Time.IsZero() || y < 1 || y > 9999 {
		e.Time = v.now()
	}
	e.Time = e.Time.UTC().Round(0)
	for text, limit := range map[*string]int{
		&e.Command: maxAuditCommand, &e.Target: maxAuditTarget, &e.Changes: maxAuditTarget, &e.Principal: maxAuditText,
		&e.Account: maxAuditText, &e.Parsed: maxAuditText, &e.Reason: maxAuditText, &e.Code: maxAuditText,
	} {
		*text, _ = plain.Head(strings.ToValidUTF8(*text, "\uFFFD"), limit)
	}
	return e
}

// purge removes old entries from the front of the log, a batch at most and never the
// newest. An entry dated in the future by a wrong clock is removed when one after it has
// grown old, and until then does not hold up later ones. An entry dated too early waits
// for the entries before it. An entry that does not open stops the purge, so that
// evidence stays.
func (v *Vault) purge(t *transaction, c *chain) error {
	p, err := v.policy(t)
	if err != nil || p.configErr != nil {
		return nil // without a trusted policy the retention is not known
	}
	cutoff, ahead := v.retention(p)
	if v.oldest.seq == c.first && !v.oldest.time.Before(cutoff) && v.oldest.time.Before(ahead) {
		return nil
	}
	first, before := c.first, c.before
	for seq := c.first; seq < c.last && seq-c.first < purgeBatch; seq++ {
		l, r, err := t.linkAt(seq)
		if err != nil {
			break
		}
		if r.Time.Before(cutoff) {
			first, before = seq+1, l.hash
		} else if r.Time.Before(ahead) {
			v.oldest.seq, v.oldest.time = seq, r.Time
			break
		}
	}
	for seq := c.first; seq < first; seq++ {
		if err := t.Delete(bucketAudit, uint64Bytes(seq)); err != nil {
			return err
		}
	}
	c.first, c.before = first, before
	return nil
}

// AuditQuery selects audit entries.
type AuditQuery struct {
	Account string // only entries of this account; empty means all
	Before  uint64 // only entries with a smaller Seq; 0 means no bound
	Limit   int    // at most this many; 0 means 50, more than 501 means 501
}

// Audit returns entries, newest first.
func (v *Vault) Audit(ctx context.Context, q AuditQuery) ([]AuditRecord, error) {
	if q.Limit <= 0 {
		q.Limit = 50
	}
	q.Limit = min(q.Limit, 501)
	records := []AuditRecord{}
	err := v.view(ctx, func(t *transaction) error {
		newest := kv.Range{Reverse: true}
		if q.Before != 0 {
			newest.To = uint64Bytes(q.Before)
		}
		for record, err := range kv.Each(t, bucketAudit, newest) {
			if err != nil {
				return err
			}
			r, err := t.openLink(record)
			if err != nil {
				return err
			}
			if q.Account == "" || r.Account == q.Account {
				records = append(records, r)
			}
			if len(records) == q.Limit {
				return nil
			}
		}
		return nil
	})
	return records, err
}

func (t *transaction) openLink(record kv.Record) (AuditRecord, error) {
	plain, err := t.values.open(bucketAudit, record.Key, record.Value)
	if err != nil {
		return AuditRecord{}, err
	}
	if len(record.Key) != 8 {
		return AuditRecord{}, fmt.Errorf("%w: an audit entry has no number", ErrDamaged)
	}
	l, err := parseLink(plain)
	if err != nil {
		return AuditRecord{}, err
	}
	return l.decode(binary.BigEndian.Uint64(record.Key))
}

// AuditReport is the outcome of VerifyAudit.
type AuditReport struct {
	Entries     int
	First, Last uint64 // first and last number of the log; Last < First when it is empty
	OK          bool
	Bad         uint64 // number of the first altered entry that was found; 0 when OK
	Problem     string // the fault of that entry; empty when OK

	// Signed is the last entry that the administrator signed, and SignedAt its time; both are
	// zero where there is none. What was altered up to it since then is found. A process with
	// the agent's key could have rewritten the entries behind it.
	Signed   uint64
	SignedAt time.Time
}

// VerifyAudit checks the whole chain and finds an entry that was changed,
// removed, inserted or moved, at either end too; without any key anywhere, with the agent's
// key up to the entry that was signed last. A broken chain is a report, not
// an error. Other processes may append meanwhile: the log is read in short
// transactions, up to the entry that was last at the beginning. Of a vault in a database all
// other records are compared with what was written last as well, as Check does; a fault there
// is a Problem without a Bad entry.
func (v *Vault) VerifyAudit(ctx context.Context) (AuditReport, error) {
	w := auditWalk{v: v}
	var bad error
	for done := false; !done && bad == nil; {
		err := v.view(ctx, func(t *transaction) (err error) {
			done, bad, err = w.step(t)
			return err
		})
		if err != nil {
			return AuditReport{}, err
		}
	}
	if w.report.OK = bad == nil; !w.report.OK {
		w.report.Bad, w.report.Problem = max(w.next, 1), bad.Error()
		return w.report, nil
	}
	err := v.view(ctx, func(t *transaction) error { return v.checkSums(t) })
	if errors.Is(err, ErrDamaged) || errors.Is(err, ErrWentBack) {
		w.report.OK, w.report.Problem, err = false, err.Error(), nil
	}
	return w.report, err
}

// auditWalk is the state of a verification.
type auditWalk struct {
	v       *Vault
	report  AuditReport
	started bool
	next    uint64 // number of the current entry
	before  []byte // hash of the one before
}

// begin notes where the log ends, and checks the head.
func (w *auditWalk) begin(t *transaction, c chain) (bad, err error) {
	w.started, w.report.Last = true, c.last
	p, err := w.v.policy(t)
	if errors.Is(err, ErrUntrustedPolicy) || err == nil && p.configErr != nil {
		p, err = &policy{config: Config{AuditRetentionDays: 1}}, nil // what it says of the log is not known
	}
	if err != nil {
		return nil, err
	}
	h, at, bad := w.v.sound(t, c, p)
	if h != nil {
		w.report.Signed, w.report.SignedAt = h.Seq, h.Time
	}
	if bad != nil {
		w.next = at
	}
	return bad, nil
}

// step verifies a batch. It returns whether the walk is over, or the fault of the
// current entry.
func (w *auditWalk) step(t *transaction) (done bool, bad, err error) {
	c, err := t.chain()
	if errors.Is(err, ErrDamaged) {
		return false, errors.New("the ends of the log do not open"), nil
	}
	if err != nil {
		return false, nil, err
	}
	if !w.started {
		if bad, err := w.begin(t, c); bad != nil || err != nil {
			return false, bad, err
		}
	}
	from := kv.Range{From: uint64Bytes(w.next)}
	if w.next < c.first {
		// This is the beginning, or entries were purged meanwhile.
		w.next, w.before, w.report.First = c.first, c.before, c.first
		from.From = nil
	}
	if c.last < w.report.Last || c.last+1 < c.first {
		w.next = c.last + 1
		return false, errors.New("the log went back"), nil
	}
	list, err := t.Scan(bucketAudit, from, verifyBatch)
	if err != nil {
		return false, nil, err
	}
	for i := range verifyBatch {
		if w.next > w.report.Last {
			if w.report.Last == c.last && !bytes.Equal(w.before, c.lastHash) {
				w.next = c.last
				return false, errors.New("it is not the entry that was written last"), nil
			}
			late, err := t.Scan(bucketAudit, kv.Range{From: uint64Bytes(c.last + 1)}, 1)
			if len(late) > 0 {
				w.next, bad = c.last+1, errors.New("it comes after the last entry")
			}
			return true, bad, err
		}
		if i == len(list) {
			return false, errors.New("it is missing"), nil
		}
		if bad := w.entry(t, list[i]); bad != nil {
			return false, bad, nil
		}
	}
	return false, nil, nil
}

// entry verifies the current entry and moves on.
func (w *auditWalk) entry(t *transaction, record kv.Record) error {
	switch order := bytes.Compare(record.Key, uint64Bytes(w.next)); {
	case order < 0:
		return errors.New("an entry comes before it")
	case order > 0:
		return errors.New("it is missing")
	}
	plain, err := t.values.open(bucketAudit, record.Key, record.Value)
	if err != nil {
		return errors.New("it does not open: it was changed or comes from another place")
	}
	l, err := parseLink(plain)
	if err != nil {
		return errors.New("it is too short")
	}
	if !bytes.Equal(l.before, w.before) {
		return errors.New("it does not follow the entry before it")
	}
	if !bytes.Equal(l.hash, w.v.linkHash(w.next, l.before, l.entry)) {
		return errors.New("its text does not fit its hash")
	}
	r, err := l.decode(w.next)
	switch {
	case err != nil:
		return errors.New("it is unreadable")
	case r.Signed && r.Seq > w.report.Signed && r.Seq <= w.report.Last:
		return errors.New("it was signed, and the signature was removed or an older one put in place")
	}
	w.report.Entries++
	w.before = l.hash
	w.next++
	return nil
}
