package vault

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/vault/kv"
	"github.com/postern-mail/postern/vault/vaulttest"
)

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func entry(command string) gateway.AuditEntry {
	return gateway.AuditEntry{
		Time: epoch, Principal: "agent", Account: "work", Command: command, Parsed: "mail get", Target: "INBOX 7",
		Allowed: true, Duration: 12 * time.Millisecond,
	}
}

// record keeps entries of the vault's time, all in one transaction.
func record(t testing.TB, v *Vault, n int) {
	t.Helper()
	must(t, v.update(t.Context(), func(tx *transaction) (err error) {
		for i := range n {
			e := entry(fmt.Sprint("command ", i+1))
			e.Time = v.now()
			err = errors.Join(err, second(v.append(tx, e)))
		}
		return err
	}))
}

func verify(t testing.TB, v *Vault) AuditReport {
	t.Helper()
	r, err := v.VerifyAudit(t.Context())
	must(t, err)
	return r
}

func TestAuditComesBackNewestFirst(t *testing.T) {
	t.Parallel()
	at := fakeClock{epoch}
	admin, agent := newVault(t, &Options{Now: at.now})
	if r := verify(t, admin); !r.OK || r.Entries != 0 || r.First != 1 || r.Last != 0 {
		t.Errorf("an empty log verifies as %+v", r)
	}
	if all, err := admin.Audit(t.Context(), AuditQuery{}); err != nil || all == nil || len(all) != 0 {
		t.Errorf("an empty log lists as %v, %v", all, err)
	}
	record(t, agent, 60)
	other := entry("for another")
	other.Account = "home"
	must(t, agent.Record(t.Context(), other))
	all, err := admin.Audit(t.Context(), AuditQuery{})
	if err != nil || len(all) != 50 || all[0].Seq != 61 || all[0].Command != "for another" || all[49].Seq != 12 {
		t.Fatalf("Audit = %d entries from %+v, %v", len(all), all[0], err)
	}
	if !reflect.DeepEqual(all[1].AuditEntry, entry("command 60")) {
		t.Errorf("an entry came back as %+v", all[1])
	}
	mine, err := admin.Audit(t.Context(), AuditQuery{Account: "home", Limit: 5})
	if err != nil || len(mine) != 1 || mine[0].Seq != 61 {
		t.Errorf("Audit of one account = %+v, %v", mine, err)
	}
	if r := verify(t, admin); !r.OK || r.Entries != 61 || r.First != 1 || r.Last != 61 || r.Bad != 0 {
		t.Errorf("VerifyAudit = %+v", r)
	}
	for account, want := range map[string]int{"": 61, "work": 60} { // page by page
		got := 0
		for q := (AuditQuery{Account: account, Limit: 25, Before: 1 << 40}); ; {
			page, err := admin.Audit(t.Context(), q)
			must(t, err)
			if len(page) == 0 {
				break
			}
			for _, r := range page {
				if got++; r.Seq >= q.Before || account != "" && r.Account != account {
					t.Errorf("number %d of %q in a page before %d", r.Seq, r.Account, q.Before)
				}
				q.Before = r.Seq
			}
		}
		if got != want {
			t.Errorf("account %q: %d entries in pages, want %d", account, got, want)
		}
	}
}

func TestAuditEntriesAreBounded(t *testing.T) {
	t.Parallel()
	at := fakeClock{epoch}
	v, _ := newVault(t, &Options{Now: at.now})
	long := strings.Repeat("é", 300)
	must(t, v.Record(t.Context(), gateway.AuditEntry{
		Command: strings.Repeat("é", 256) + "x", Target: strings.Repeat(long, 30), Principal: long, Account: long, Parsed: long, Reason: long, Code: "bad \xff",
	}))
	must(t, v.Record(t.Context(), gateway.AuditEntry{Time: time.Date(30000, 1, 1, 0, 0, 0, 0, time.UTC)}))
	all, err := v.Audit(t.Context(), AuditQuery{})
	if err != nil || len(all) != 2 {
		t.Fatal(all, err)
	}
	e := all[1]
	if e.Command != strings.Repeat("é", 256) || utf8.RuneCountInString(e.Target) != 8200 || e.Code != "bad \uFFFD" || !e.Time.Equal(epoch) {
		t.Errorf("the entry is %+v", e)
	}
	for _, s := range []string{e.Principal, e.Account, e.Parsed, e.Reason} {
		if utf8.RuneCountInString(s) != 256 {
			t.Errorf("a text has %d runes", utf8.RuneCountInString(s))
		}
	}
	if !all[0].Time.Equal(epoch) {
		t.Errorf("a year that JSON cannot write became %v", all[0].Time)
	}
}

// TestVerifyAuditFindsTampering tampers with a log of ten entries, as a process that has the
// file and no key, and as an agent that can seal records but whose forged entry
// must still fit the chain.
func TestVerifyAuditFindsTampering(t *testing.T) {
	t.Parallel()
	raw := func(fn func(tx kv.Tx) error) func(*testing.T, *Vault) {
		return func(t *testing.T, agent *Vault) { rawUpdate(t, agent, fn) }
	}
	without := func(numbers ...uint64) func(*testing.T, *Vault) {
		return raw(func(tx kv.Tx) (err error) {
			for _, n := range numbers {
				err = errors.Join(err, tx.Delete(bucketAudit, seqKey(n)))
			}
			return err
		})
	}
	resealed := func(seq uint64, change func(agent *Vault, l *link)) func(*testing.T, *Vault) {
		return func(t *testing.T, agent *Vault) {
			forge(t, agent, func(tx *transaction) error {
				b, err := tx.get(bucketAudit, seqKey(seq))
				must(t, err)
				l, err := parseLink(b)
				must(t, err)
				change(agent, &l)
				return tx.put(bucketAudit, seqKey(seq), bytes.Join([][]byte{l.before, l.hash, l.entry}, nil))
			})
		}
	}
	rewritten := func(seq uint64) func(*testing.T, *Vault) {
		return resealed(seq, func(agent *Vault, l *link) {
			l.entry = bytes.Replace(l.entry, fmt.Append(nil, "command ", seq), []byte("command 99"), 1)
			l.hash = agent.linkHash(seq, l.before, l.entry)
		})
	}
	for name, c := range map[string]struct {
		tamper func(*testing.T, *Vault)
		bad    uint64
	}{
		"a flipped bit": {raw(func(tx kv.Tx) error {
			v, err := tx.Get(bucketAudit, seqKey(5))
			v[40] ^= 1
			return errors.Join(err, tx.Put(bucketAudit, seqKey(5), v))
		}), 5},
		"a missing entry":         {without(5), 5},
		"the first entry missing": {without(1), 1},
		"the last entry missing":  {without(10), 10},
		"the tail missing":        {without(8, 9, 10), 8},
		"everything missing":      {raw(func(tx kv.Tx) error { return rawDelete(tx, bucketAudit) }), 1},
		"two swapped": {raw(func(tx kv.Tx) error {
			four, err := tx.Get(bucketAudit, seqKey(4))
			return errors.Join(err, rawCopy(tx, bucketAudit, seqKey(5), seqKey(4)), tx.Put(bucketAudit, seqKey(5), four))
		}), 4},
		"a copy after the end":                           {raw(func(tx kv.Tx) error { return rawCopy(tx, bucketAudit, seqKey(10), seqKey(11)) }), 11},
		"a copy before the beginning":                    {raw(func(tx kv.Tx) error { return rawCopy(tx, bucketAudit, seqKey(1), seqKey(0)) }), 1},
		"the ends missing":                               {raw(func(tx kv.Tx) error { return rawDelete(tx, bucketChain) }), 1},
		"the ends damaged":                               {raw(func(tx kv.Tx) error { return tx.Put(bucketChain, chainKey, make([]byte, 99)) }), 1},
		"a text resealed":                                {resealed(5, func(_ *Vault, l *link) { l.entry = bytes.Replace(l.entry, []byte("command 5"), []byte("command 6"), 1) }), 5},
		"a resealed hash":                                {resealed(5, func(_ *Vault, l *link) { l.hash = bytes.Repeat([]byte{7}, hashSize) }), 5},
		"a resealed before":                              {resealed(5, func(_ *Vault, l *link) { l.before = bytes.Repeat([]byte{7}, hashSize) }), 5},
		"an entry rewritten with a hash that fits":       {rewritten(5), 6},
		"the last entry rewritten with a hash that fits": {rewritten(10), 10},
		"two resealed in each other's place": {func(t *testing.T, agent *Vault) {
			forge(t, agent, func(tx *transaction) error {
				four, _ := tx.get(bucketAudit, seqKey(4))
				five, _ := tx.get(bucketAudit, seqKey(5))
				return errors.Join(tx.put(bucketAudit, seqKey(4), five), tx.put(bucketAudit, seqKey(5), four))
			})
		}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			admin, agent := newVault(t, &Options{Now: func() time.Time { return epoch }})
			record(t, agent, 10)
			c.tamper(t, agent)
			r := verify(t, admin)
			if r.OK || r.Bad != c.bad || r.Problem == "" {
				t.Errorf("VerifyAudit = %+v, want number %d to be bad", r, c.bad)
			}
		})
	}
}

func TestALogWithoutItsEndsIsNotOverwritten(t *testing.T) {
	t.Parallel()
	v, _ := newVault(t, &Options{Now: func() time.Time { return epoch }})
	record(t, v, 3)
	rawUpdate(t, v, func(tx kv.Tx) error { return rawDelete(tx, bucketChain) })
	wantErr(t, v.Record(t.Context(), entry("over it")), ErrDamaged, "Record")
}

func TestPurgingKeepsTheChainCheckable(t *testing.T) {
	t.Parallel()
	at := fakeClock{epoch}
	admin, agent := newVault(t, &Options{Now: at.now})
	must(t, admin.SetSetting(t.Context(), "audit_retention_days", "10"))
	recordAt := func(n int, when time.Time) {
		t.Helper()
		at.at = when
		record(t, agent, n)
	}
	span := func(first, last uint64) {
		t.Helper()
		r := verify(t, admin)
		if !r.OK || r.First != first || r.Last != last || r.Entries != int(last+1-first) {
			t.Fatalf("VerifyAudit = %+v, want %d to %d", r, first, last)
		}
	}
	day := 24 * time.Hour
	recordAt(250, epoch)
	span(1, 250)
	recordAt(1, epoch.Add(9*day))
	span(1, 251)
	recordAt(1, epoch.Add(11*day)) // a batch at a time
	span(101, 252)
	recordAt(2, epoch.Add(11*day))
	span(251, 254)

	// The clock goes back a year, and forward again: no recent entry is lost.
	recordAt(5, epoch.Add(-365*day))
	span(251, 259)
	recordAt(1, epoch.Add(12*day))
	span(251, 260)
	// It jumps ahead for one command: entries that are old by that clock are removed,
	// and the new entry does not hold up later ones.
	at.at = epoch.Add(12 * day)
	must(t, agent.Record(t.Context(), gateway.AuditEntry{Time: epoch.Add(9000 * day), Command: "wrong clock"}))
	recordAt(1, epoch.Add(12*day))
	span(251, 262)
	recordAt(1, epoch.Add(30*day))
	span(263, 263)
}

func TestNothingIsPurgedUnderAnUntrustedPolicy(t *testing.T) {
	t.Parallel()
	at := fakeClock{epoch}
	admin, agent := newVault(t, &Options{Now: at.now})
	record(t, agent, 3)
	sealed(bucketSettings, "audit_retention_days", "1")(t, admin, agent)
	gone(bucketPolicy, string(manifestKey))(t, admin, agent)
	at.at = epoch.AddDate(1, 0, 0)
	record(t, agent, 1)
	if r := verify(t, admin); !r.OK || r.Entries != 4 {
		t.Errorf("VerifyAudit = %+v, want all four", r)
	}
}

func TestVerifyAuditGoesOnBeyondOneBatch(t *testing.T) {
	t.Parallel()
	v, _ := newVault(t, &Options{Now: func() time.Time { return epoch }})
	n := 2*verifyBatch + 10
	record(t, v, n)
	if r := verify(t, v); !r.OK || r.Entries != n {
		t.Errorf("VerifyAudit = %+v, want %d entries", r, n)
	}
	rawUpdate(t, v, func(tx kv.Tx) error { return tx.Delete(bucketAudit, seqKey(verifyBatch+1)) })
	if r := verify(t, v); r.Bad != verifyBatch+1 {
		t.Errorf("VerifyAudit = %+v, want number %d to be bad", r, verifyBatch+1)
	}
	// Of a file it walks no chain; a database has sums.
	if err := v.Check(t.Context()); errors.Is(err, ErrDamaged) != vaulttest.InDatabase() {
		t.Errorf("Check: %v", err)
	}
}
