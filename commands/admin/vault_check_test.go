package admin_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/postern-mail/postern/commands/admin"
	"github.com/postern-mail/postern/vault"
)

// fakeFailingCheck is a store whose check ends with an error.
type fakeFailingCheck struct {
	admin.Store
	err error
}

func (s fakeFailingCheck) Check(context.Context) error { return s.err }

func TestVaultCheckTellsDamageFromFailure(t *testing.T) {
	for _, c := range []struct {
		found       error
		works       bool
		ok, problem any
	}{
		{nil, true, true, nil},
		{fmt.Errorf("%w: page 7 is used twice", vault.ErrDamaged), true, false, "the vault is damaged, or the file is not a vault: page 7 is used twice"},
		{errors.New("busy"), false, nil, nil},
	} {
		b := newFixture(t)
		b.deps.Store = fakeFailingCheck{b.deps.Store, c.found}
		if e := b.Do(t, "vault check"); e.Success != c.works || e.Data["ok"] != c.ok || e.Data["problem"] != c.problem {
			t.Errorf("%v: %+v", c.found, e)
		}
	}
}
