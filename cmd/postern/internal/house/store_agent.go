package house

import (
	"context"
	"time"

	"github.com/postern-mail/postern/vault"
	"github.com/postern-mail/postern/vault/agentmail"
	"github.com/postern-mail/postern/vault/kv"
)

var _ agentmail.Store = (*store)(nil)

func (s *store) View(ctx context.Context, fn func(kv.Tx) error) error {
	return s.do(ctx, func(v *vault.Vault) error { return v.View(ctx, fn) })
}

func (s *store) Update(ctx context.Context, fn func(kv.Tx) error) error {
	return s.do(ctx, func(v *vault.Vault) error { return v.Update(ctx, fn) })
}

func (s *store) Key(ctx context.Context, purpose string) ([]byte, error) {
	return with(ctx, s, func(v *vault.Vault) ([]byte, error) { return v.Key(ctx, purpose) })
}

func (s *store) Changes(ctx context.Context) (func(context.Context) error, error) {
	return with(ctx, s, func(v *vault.Vault) (func(context.Context) error, error) { return v.Changes(ctx) })
}

func (s *store) Now() time.Time { return time.Now() }
