package admin

import (
	"context"
	"errors"

	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/vault"
)

// VaultCheckResult answers vault check.
type VaultCheckResult struct {
	OK      bool   `json:"ok"`
	Problem string `json:"problem,omitempty"` // the first that was found
}

// vaultCheck is the administrator's: nobody can write while it reads everything.
func vaultCheck(d *Deps) *discovery.Command {
	return argument.Command(discovery.Spec{
		Path:     "vault check",
		Summary:  "Read the whole vault and look for damage",
		Details:  "It reads every page and every record, which takes as long as the vault is big; nothing is written meanwhile. 'audit verify' walks the audit log.",
		Effect:   discovery.Admin,
		Standing: true,
		Examples: []string{"vault check"},
	}, func(ctx context.Context, _ *discovery.Call, _ *struct{}) (VaultCheckResult, error) {
		err := d.Store.Check(ctx)
		if errors.Is(err, vault.ErrDamaged) || errors.Is(err, vault.ErrUntrustedPolicy) {
			return VaultCheckResult{Problem: err.Error()}, nil
		}
		return VaultCheckResult{OK: err == nil}, err
	})
}

// Summary implements discovery.Summarizer.
func (r VaultCheckResult) Summary() string {
	if r.OK {
		return "The vault is whole"
	}
	return "The vault is damaged"
}
