package commands_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/postern-mail/postern/commands"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/vault"
)

// checkedStore is a store whose check ends with an error.
type checkedStore struct {
	commands.Store
	err error
}

func (s checkedStore) Check(context.Context) error { return s.err }

func TestVaultCheckTellsDamageFromFailure(t *testing.T) {
	busy := errors.New("busy")
	for _, c := range []struct {
		found error
		want  commands.VaultCheckResult
		err   error
	}{
		{nil, commands.VaultCheckResult{OK: true}, nil},
		{fmt.Errorf("%w: page 7 is used twice", vault.ErrDamaged), commands.VaultCheckResult{Problem: "the vault is damaged or is no vault: page 7 is used twice"}, nil},
		{busy, commands.VaultCheckResult{}, busy},
	} {
		for _, command := range commands.All(&commands.Deps{Store: checkedStore{err: c.found}}) {
			if command.Path != "vault check" {
				continue
			}
			bound, err := command.Bind(nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			got, err := command.Run(t.Context(), &discovery.Call{}, bound)
			if !errors.Is(err, c.err) || err == nil && got != any(c.want) {
				t.Errorf("%v: %+v, %v", c.found, got, err)
			}
		}
	}
}
