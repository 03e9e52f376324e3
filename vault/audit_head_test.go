package vault

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/gateway"
)

// TestAProcessWithTheAgentsKeyIsFoundOut: what a process that has the agent's key, and can make
// every link of the chain, does to entries before the last signed one is found. What it does
// behind that is not, and the report says from where.
func TestAProcessWithTheAgentsKeyIsFoundOut(t *testing.T) {
	t.Parallel()
	// rewrite makes the log anew from the number on, with the entries that change returns.
	rewrite := func(from uint64, change func(seq uint64, e *gateway.AuditEntry) bool) func(*testing.T, *Vault) {
		return func(t *testing.T, agent *Vault) {
			forge(t, agent, func(tx *transaction) error {
				c, err := tx.chain()
				must(t, err)
				last := c.last
				c.last, c.lastHash = c.first-1, c.before
				for seq := c.first; seq <= last; seq++ {
					b, err := tx.get(bucketAudit, seqKey(seq))
					must(t, err)
					l, err := parseLink(b)
					must(t, err)
					must(t, tx.Delete(bucketAudit, seqKey(seq)))
					if seq >= from {
						r, err := l.decode(seq)
						must(t, err)
						if !change(seq, &r.AuditEntry) {
							continue
						}
						l.entry, err = json.Marshal(r.AuditEntry)
						must(t, err)
					}
					c.last++
					hash := agent.linkHash(c.last, c.lastHash, l.entry)
					must(t, tx.put(bucketAudit, seqKey(c.last), bytes.Join([][]byte{c.lastHash, hash, l.entry}, nil)))
					c.lastHash = hash
				}
				return tx.putChain(c)
			})
		}
	}
	none := func(uint64, *gateway.AuditEntry) bool { return false }
	behead := func(t *testing.T, agent *Vault) {
		forge(t, agent, func(tx *transaction) error { return tx.Delete(bucketChain, []byte("head")) })
	}
	all := func(list ...func(*testing.T, *Vault)) func(*testing.T, *Vault) {
		return func(t *testing.T, agent *Vault) {
			for _, do := range list {
				do(t, agent)
			}
		}
	}
	const signed = 21 // ten of the agent's before each of two signed ones, and three behind
	for name, c := range map[string]struct {
		attack func(*testing.T, *Vault)
		found  bool
	}{
		"nothing":            {func(*testing.T, *Vault) {}, false},
		"everything deleted": {rewrite(1, none), true},
		"an entry deleted":   {rewrite(1, func(seq uint64, _ *gateway.AuditEntry) bool { return seq != 5 }), true},
		"an entry rewritten": {rewrite(1, func(seq uint64, e *gateway.AuditEntry) bool {
			e.Command += strings.Repeat("!", int(seq/5%2))
			return true
		}), true},
		"everything forged":     {all(rewrite(1, none), func(t *testing.T, agent *Vault) { record(t, agent, 40) }), true},
		"as if it was old":      {purgedTo(24), true},
		"the oldest, as if old": {purgedTo(10), true},
		"only the oldest one":   {purgedTo(1), true},
		"the head deleted":      {behead, true},
		"forged, head deleted": {all(behead, rewrite(1, none), func(t *testing.T, agent *Vault) {
			must(t, agent.Record(t.Context(), gateway.AuditEntry{Time: epoch, Principal: "admin", Command: "account list", Allowed: true}))
		}), true},
		"the head forged": {func(t *testing.T, agent *Vault) {
			forge(t, agent, func(tx *transaction) error {
				b, err := tx.get(bucketChain, []byte("head"))
				must(t, err)
				b[len(b)-20] ^= 1
				return tx.put(bucketChain, []byte("head"), b)
			})
		}, true},
		"entries behind the head rewritten": {rewrite(signed+1, func(_ uint64, e *gateway.AuditEntry) bool { e.Command = "another"; return true }), false},
		"entries behind the head deleted":   {rewrite(signed+1, none), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := fakeClock{epoch}
			admin, agent := newVault(t, &Options{Now: at.now})
			record(t, agent, 10)
			record(t, admin, 1)
			record(t, agent, 9)
			record(t, admin, 1)
			record(t, agent, 3)
			c.attack(t, agent)
			for range 2 { // an administrator's command hides nothing
				r := verify(t, admin)
				if r.OK == c.found || r.OK != (r.Problem == "") || r.OK && (r.Signed < signed || r.SignedAt.IsZero()) {
					t.Fatalf("VerifyAudit = %+v", r)
				}
				record(t, admin, 1)
			}
		})
	}
}

// purgedTo removes entries from the front as if they were old.
func purgedTo(upTo uint64) func(*testing.T, *Vault) {
	return func(t *testing.T, agent *Vault) {
		forge(t, agent, func(tx *transaction) error {
			c, err := tx.chain()
			must(t, err)
			for ; c.first <= upTo; c.first++ {
				b, err := tx.get(bucketAudit, seqKey(c.first))
				must(t, err)
				c.before = b[hashSize : 2*hashSize]
				must(t, tx.Delete(bucketAudit, seqKey(c.first)))
			}
			return tx.putChain(c)
		})
	}
}

// TestAnOlderHeadPutBackIsFoundOut: by the entries that say that they were signed, and where a
// process rewrites those as well, by the policy, if that was changed since.
func TestAnOlderHeadPutBackIsFoundOut(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]bool{"the policy was changed since": true, "it was not": false} {
		t.Run(name, func(t *testing.T) {
			admin, agent := newVault(t, &Options{Now: func() time.Time { return epoch }})
			record(t, agent, 3)
			record(t, admin, 1)
			var kept [2][]byte
			keep := func(tx *transaction) (err error) {
				b, err := tx.get(bucketChain, []byte("head"))
				ends, err2 := tx.get(bucketChain, chainKey)
				kept = [2][]byte{b, ends}
				return errors.Join(err, err2)
			}
			forge(t, agent, keep)
			record(t, agent, 3)
			record(t, admin, 1) // number 8
			if change {
				mustAdd(t, admin, "work")
			}
			forge(t, agent, func(tx *transaction) error { return tx.put(bucketChain, []byte("head"), kept[0]) })
			if r := verify(t, admin); r.OK || r.Bad != 8 || r.Signed != 4 {
				t.Errorf("VerifyAudit = %+v, want number 8 to have lost its signature", r)
			}
			forge(t, agent, func(tx *transaction) error {
				for seq := uint64(5); seq <= 8; seq++ {
					must(t, tx.Delete(bucketAudit, seqKey(seq)))
				}
				return tx.put(bucketChain, chainKey, kept[1])
			})
			if r := verify(t, admin); r.OK == change || r.Signed != 4 {
				t.Errorf("the log of an earlier moment: VerifyAudit = %+v", r)
			}
		})
	}
}

// TestHeadsAgreeWithPurging: what is purged when it is old is no fault, nor when the time
// that entries are kept is made shorter and longer again.
func TestHeadsAgreeWithPurging(t *testing.T) {
	t.Parallel()
	at := fakeClock{epoch}
	admin, agent := newVault(t, &Options{Now: at.now})
	days := func(n string) {
		t.Helper()
		must(t, admin.SetSetting(t.Context(), "audit_retention_days", n))
		record(t, admin, 1)
	}
	days("20")
	for day := range 30 {
		at.at = epoch.AddDate(0, 0, day)
		if record(t, agent, 1); day%7 == 0 {
			record(t, admin, 1)
		}
		if r := verify(t, admin); !r.OK {
			t.Fatalf("on day %d: VerifyAudit = %+v", day, r)
		}
	}
	before := verify(t, admin).First
	days("3")
	days("90")
	after := verify(t, admin)
	if !after.OK || after.First <= before {
		t.Fatalf("a shorter time removed nothing: the log begins at %d, and did at %d: %+v", after.First, before, after)
	}
	purgedTo(after.First)(t, agent)
	if r := verify(t, admin); r.OK {
		t.Errorf("an entry three days old was removed: VerifyAudit = %+v", r)
	}
	at.at = at.at.AddDate(1, 0, 0)
	record(t, admin, 1)
	if r := verify(t, admin); !r.OK {
		t.Errorf("a year later: VerifyAudit = %+v", r)
	}
}
