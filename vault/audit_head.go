package vault

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// head is the last entry of the log at one moment, signed with the policy key. A process that
// has the agent's key can make links of the chain, and so can rewrite the log from any entry
// on; it can delete a head and put an older one back, but not make one. Each entry of an
// administrator's command is signed in the transaction that writes it.
//
// The manifest of the policy notes a head. So a deleted head is found, and so is one from
// before the last change of the policy. A later one that is put back is found by an entry behind
// it that says that it was signed. Where the head, the entries behind it and the policy are
// all those of an earlier moment, nothing in the file can show that there was a later one.
type head struct {
	Seq  uint64    `json:"seq"`
	Hash []byte    `json:"hash"`
	Time time.Time `json:"time"`

	// Marks are some of the entries before it, by number. They say which are too young to have
	// been purged, since whoever has the agent's key can purge; entries between two marks pass
	// for as old as the first.
	Marks []mark `json:"marks,omitempty"`
}

// mark is the number of an entry and its time.
type mark struct {
	Seq  uint64    `json:"seq"`
	Time time.Time `json:"time"`
}

// bucketHeads has one record of the signed policy: a head as it was at a change of the policy,
// without its marks.
const bucketHeads = "audit.signed"

// maxMarks is into how many parts marks divide the time that entries are kept.
const maxMarks = 64

var headKey = []byte("head") // in bucketChain: the signature, then the head's JSON

func (v *Vault) headMessage(record []byte) []byte {
	return appendSized(nil, []byte("postern audit head"), uint64Bytes(formatVersion), v.id, record)
}

// head returns the signed head, or nil where there is none. The error matches ErrDamaged
// where its signature is not the policy key's.
func (v *Vault) head(t *transaction) (*head, error) {
	b, err := t.get(bucketChain, headKey)
	if b == nil || err != nil {
		return nil, err
	}
	h := &head{}
	if n := ed25519.SignatureSize; len(b) < n || !ed25519.Verify(v.public, v.headMessage(b[n:]), b[:n]) || json.Unmarshal(b[n:], h) != nil {
		return nil, fmt.Errorf("%w: the signature of the audit log is wrong", ErrDamaged)
	}
	return h, nil
}

// noted returns the head that the manifest notes, or nil.
func (p *policy) noted() *head {
	h := &head{}
	if record := p.records[bucketHeads][string(headKey)]; record == nil || json.Unmarshal(record, h) != nil {
		return nil
	}
	return h
}

// noteHead makes the policy that is about to be signed note the head.
func (c *policyChange) noteHead(h *head) error {
	record, err := json.Marshal(head{Seq: h.Seq, Hash: h.Hash, Time: h.Time})
	if err != nil {
		return err
	}
	return c.put(bucketHeads, string(headKey), record)
}

// sound returns the signed head, after checking that it is there where the policy notes one,
// and that the log has the entries that it covers. It is nil where nothing was ever signed.
// The error says what is wrong, and which entry it is about.
func (v *Vault) sound(t *transaction, c chain, p *policy) (*head, uint64, error) {
	h, err := v.head(t)
	if err != nil && !errors.Is(err, ErrDamaged) {
		return nil, 0, err
	}
	noted := p.noted()
	switch {
	case err != nil:
		return nil, c.last, errors.New("the signature of the log is not the administrator's")
	case noted != nil && h == nil:
		return nil, noted.Seq, errors.New("it was signed, and the signature was removed")
	case h == nil:
		return nil, 0, nil
	case noted != nil && h.Seq < noted.Seq:
		return h, noted.Seq, errors.New("it was signed, and an older signature was put in place")
	case h.Seq > c.last:
		return h, c.last + 1, errors.New("it was signed, and is missing: the log went back")
	}
	hash := c.before
	if h.Seq >= c.first {
		l, _, err := t.linkAt(h.Seq)
		if err != nil && !errors.Is(err, ErrDamaged) {
			return h, h.Seq, err
		}
		hash = l.hash
	}
	if h.Seq+1 >= c.first && !bytes.Equal(hash, h.Hash) {
		return h, h.Seq, errors.New("it is not the entry that was signed: entries up to it were rewritten")
	}
	cutoff, ahead := v.retention(p)
	for _, m := range append(h.Marks, mark{h.Seq, h.Time}) {
		if m.Seq < c.first && !m.Time.Before(cutoff) && m.Time.Before(ahead) {
			return h, m.Seq, errors.New("it was signed, and was removed before its time")
		}
	}
	return h, 0, nil
}

// retention returns the time before which entries are purged, and the one from which a
// date is not trusted.
func (v *Vault) retention(p *policy) (cutoff, ahead time.Time) {
	now := v.now()
	return now.AddDate(0, 0, -p.config.AuditRetentionDays), now.Add(clockMistrust)
}

// mayAttest returns the policy and the present head where an administrator's entry is to be
// signed. There is no policy where it is not: the process cannot, the policy cannot be trusted,
// or the log is not what was signed before, which a new signature would hide.
func (v *Vault) mayAttest(t *transaction, c chain) (*policy, *head) {
	if !v.Admin() {
		return nil, nil
	}
	p, err := v.policy(t)
	if err != nil || p.configErr != nil {
		return nil, nil
	}
	h, _, err := v.sound(t, c, p)
	if err != nil {
		return nil, nil
	}
	return p, h
}

// attest signs the end of the log, whose entry has a time. last is the head before it, if any.
func (v *Vault) attest(t *transaction, c chain, p *policy, last *head, at time.Time) error {
	if now := v.now(); at.After(now) {
		at = now
	}
	next := head{Seq: c.last, Hash: c.lastHash, Time: at.UTC().Round(0)}
	if err := v.markEntries(t, c, p, last, &next); err != nil {
		return err
	}
	record, err := json.Marshal(next)
	if err != nil {
		return err
	}
	private, err := openSeed(t.signing, t.header.signer)
	if err != nil {
		return err
	}
	defer clear(private)
	if err := t.put(bucketChain, headKey, append(ed25519.Sign(private, v.headMessage(record)), record...)); err != nil {
		return err
	}
	if p.noted() != nil {
		return nil
	}
	return v.resign(t, func(c *policyChange) error { return c.noteHead(&next) })
}

// markEntries gives a new head its marks: those of the head before it that are still young,
// and as many behind it as the time since then asks for.
func (v *Vault) markEntries(t *transaction, c chain, p *policy, last, next *head) error {
	cutoff, _ := v.retention(p)
	now, pause := v.now(), time.Duration(p.config.AuditRetentionDays)*24*time.Hour/maxMarks
	read := func(seq uint64) (mark, error) {
		_, r, err := t.linkAt(seq)
		return mark{seq, r.Time}, err
	}
	if last == nil {
		first, err := read(c.first)
		if err != nil {
			return err
		}
		next.Marks = []mark{first}
	} else {
		next.Marks = append(last.Marks, mark{last.Seq, last.Time})
		if n := len(next.Marks); n > 1 && next.Marks[n-1].Time.Sub(next.Marks[n-2].Time) < pause {
			next.Marks = next.Marks[:n-1]
		}
	}
	from := next.Marks[len(next.Marks)-1]
	from.Seq = max(from.Seq, c.first)
	for n, i := min(uint64(max(next.Time.Sub(from.Time)/pause, 0)), maxMarks), uint64(1); i <= n && from.Seq < c.last; i++ {
		m, err := read(from.Seq + (c.last-from.Seq)*i/(n+1))
		if err != nil {
			return err
		}
		next.Marks = append(next.Marks, m)
	}
	next.Marks = slices.DeleteFunc(next.Marks, func(m mark) bool { return m.Time.Before(cutoff) || m.Time.After(now) })
	next.Marks = next.Marks[max(0, len(next.Marks)-2*maxMarks):]
	return nil
}
