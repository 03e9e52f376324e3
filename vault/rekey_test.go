package vault

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/vault/kv"
	"github.com/postern-mail/postern/vault/vaulttest"
)

func TestRekeyKeepsEverything(t *testing.T) {
	t.Parallel()
	path, k := fixture(t, "format1-full.db"), fixtureKeys()
	next := newKeys(t)
	for _, step := range []Keys{{Agent: next.Agent}, {Admin: next.Admin}, newKeys(t), {}} {
		old := k
		before := mustOpen(t, path, k, nil)
		must(t, Rekey(t.Context(), path, k, step))
		if !step.Agent.IsZero() {
			k.Agent = step.Agent
			wantErr(t, second(Open(t.Context(), path, Keys{Agent: old.Agent}, nil)), ErrWrongKey, "the former agent key")
		}
		if !step.Admin.IsZero() {
			k.Admin = step.Admin
			wantErr(t, second(Open(t.Context(), path, Keys{Admin: old.Admin}, nil)), ErrWrongKey, "the former admin key")
		}
		v := mustOpen(t, path, k, nil)
		if v.Fingerprint() != before.Fingerprint() || !bytes.Equal(v.outerKey, before.outerKey) {
			t.Error("the vault has another signing key, or other names")
		}
		if bytes.Equal(before.keys.Load().slot, v.keys.Load().slot) {
			t.Error("the data key is the former one")
		}
	}
	keepsFullFixture(t, path, k)
}

// TestRekeyLeavesNothingOfTheFormerKeys looks for what was sealed before in all that is there.
func TestRekeyLeavesNothingOfTheFormerKeys(t *testing.T) {
	t.Parallel()
	path, k := newPlace(t)
	v := mustOpen(t, path, k, nil)
	mustAdd(t, v, "work")
	var sealed [][]byte
	must(t, v.view(t.Context(), func(t *transaction) error {
		sealed = append(sealed, t.header.slots[slotAdmin], t.header.slots[slotAgent], t.header.signer)
		for _, bucket := range []string{bucketSecrets, bucketAccounts, bucketPolicy} {
			for r, err := range kv.Each(t.Tx, bucket, kv.Range{}) {
				if err != nil {
					return err
				}
				sealed = append(sealed, r.Value)
			}
		}
		return nil
	}))
	has := func() (n int) {
		b := vaulttest.Content(t, path)
		for _, s := range sealed {
			if bytes.Contains(b, s) {
				n++
			}
		}
		return n
	}
	if has() != len(sealed) || len(sealed) < 6 {
		t.Fatalf("%d of %d are there before", has(), len(sealed))
	}
	next := newKeys(t)
	must(t, Rekey(t.Context(), path, k, next))
	if has() != 0 {
		t.Errorf("%d records that the former keys open are still there", has())
	}
	// The former data key neither opens nor makes a record.
	stale, fresh := v.keys.Load(), mustOpen(t, path, next, nil)
	must(t, fresh.view(t.Context(), func(now *transaction) error {
		old := &transaction{Tx: now.Tx, dataKeys: stale}
		_, err := old.get(bucketSecrets, []byte("work"))
		wantErr(t, err, ErrDamaged, "a secret with the former data key")
		return nil
	}))
}

func TestRekeyRefuses(t *testing.T) {
	t.Parallel()
	path, k := newPlace(t)
	before := snapshot(t, path)
	other := newKeys(t)
	for name, c := range map[string]struct {
		now, next Keys
		want      error
	}{
		"a wrong admin key":              {Keys{other.Admin, k.Agent}, Keys{Agent: other.Agent}, ErrWrongKey},
		"a wrong agent key that stays":   {Keys{k.Admin, other.Agent}, Keys{Admin: other.Admin}, ErrWrongKey},
		"no agent key that stays":        {Keys{Admin: k.Admin}, Keys{Admin: other.Admin}, ErrNoKey},
		"the same new keys":              {k, Keys{other.Agent, other.Agent}, ErrBadKey},
		"the agent's key as the admin's": {k, Keys{Admin: k.Agent}, ErrBadKey},
		"an agent that is no admin":      {Keys{k.Agent, k.Agent}, other, ErrWrongKey},
	} {
		wantErr(t, Rekey(t.Context(), path, c.now, c.next), c.want, "%s", name)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	wantErr(t, Rekey(ended, path, k, other), context.Canceled, "a context that has ended")
	unchanged(t, path, before)
}

// TestAnOpenVaultIsRekeyed has vaults that are open go on with the new keys, and those
// that cannot find them say so.
func TestAnOpenVaultIsRekeyed(t *testing.T) {
	t.Parallel()
	path, k := newPlace(t)
	source := func(find func() Keys) *Vault {
		return Lazy(func(ctx context.Context) (*Vault, error) { return Open(ctx, path, find(), nil) })
	}
	first, ctx := k, t.Context()
	admin := source(func() Keys { return k })
	agent := source(func() Keys { return Keys{Agent: k.Agent} })
	stale := source(func() Keys { return Keys{Agent: first.Agent} })
	opened := mustOpen(t, path, k, nil)
	mustAdd(t, admin, "work")
	record := func(v *Vault, command string) error {
		return v.Record(ctx, gateway.AuditEntry{Principal: "agent", Command: command})
	}
	for i := range 4 {
		for _, v := range []*Vault{admin, agent} {
			must(t, record(v, "mail list"))
			secretIs(t, v, "secret of work")
			must(t, second(v.Take(ctx, "key", 1000, 1e9)))
		}
		must(t, admin.SetSetting(ctx, "sends_per_hour", "3"))
		if i == 0 {
			must(t, errors.Join(record(stale, "mail list"), record(opened, "mail list")))
		} else {
			wantErr(t, record(stale, "mail list"), ErrRekeyed, "with the former key")
			wantErr(t, record(opened, "mail list"), ErrRekeyed, "a vault that nothing opens again")
			wantErr(t, second(stale.Secret(ctx, "work")), ErrRekeyed, "with the former key")
		}
		next := newKeys(t)
		must(t, Rekey(ctx, path, k, next))
		k = next
	}
	if !admin.Admin() || agent.Admin() {
		t.Error("a vault is opened again as another")
	}
	if r := verify(t, admin); !r.OK || r.Entries != 10 {
		t.Errorf("the audit log: %+v", r)
	}
	must(t, agent.Check(ctx))
}
