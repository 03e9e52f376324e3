package house

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/postern-mail/postern/commands"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault"
)

// store is a vault that is opened when something first needs it, since help,
// schema and version work without. It is safe for concurrent use.
type store struct {
	open func(context.Context) (*vault.Vault, error)

	environment    *mail.Environment // accounts beside the vault's
	environmentErr error             // what is wrong with them; no account is used then

	vault   atomic.Pointer[vault.Vault]
	asks    bool          // opening runs a program that fetches a key
	opening chan struct{} // one place: who opens; the others wait no longer than they must

	temporary bool // the vault is made when it is opened, see passing
	// Guarded by opening.
	remove func() error // removes what was made; nil when nothing was
	closed bool
}

func newStore(open func(context.Context) (*vault.Vault, error)) *store {
	return &store{open: open, environment: &mail.Environment{}, opening: make(chan struct{}, 1)}
}

var (
	_ commands.Store         = (*store)(nil)
	_ gateway.Auditor        = (*store)(nil)
	_ gateway.Limiter        = (*store)(nil)
	_ gateway.SettingsSource = (*store)(nil)
	_ mail.SeenStore         = (*store)(nil)
	_ mail.TokenStore        = (*store)(nil)
)

// get opens the vault once. A failure is not kept: a server that was started
// before its vault was made answers as soon as it is there.
func (s *store) get(ctx context.Context) (*vault.Vault, error) {
	if v := s.vault.Load(); v != nil {
		return v, nil
	}
	if s.asks && optional(ctx) {
		return nil, vault.ErrNoKey // nobody is asked for a key on behalf of help
	}
	select {
	case s.opening <- struct{}{}:
		defer func() { <-s.opening }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if v := s.vault.Load(); v != nil {
		return v, nil
	}
	v, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	s.vault.Store(v)
	return v, nil
}

// Settings implements gateway.SettingsSource.
func (s *store) Settings(ctx context.Context, without bool) (gateway.Settings, error) {
	if without {
		ctx = dispensable(ctx)
	}
	v, err := s.get(ctx)
	if err != nil {
		return gateway.Settings{}, err
	}
	c, err := v.Config(ctx)
	return gateway.Settings{Deny: c.Deny, CommandsPerMinute: c.CommandsPerMinute, Location: c.Timezone}, err
}

// Take implements gateway.Limiter. It opens nothing: the gateway asks for the settings
// first.
func (s *store) Take(ctx context.Context, key string, limit int, window time.Duration) (time.Duration, error) {
	v := s.vault.Load()
	if v == nil {
		return 0, nil // the settings failed, which refuses what is not reserved
	}
	return v.Take(ctx, key, limit, window)
}

// Record implements gateway.Auditor. Without a vault there is nothing to record in
// and nothing to record either: the gateway runs only the reserved commands then,
// because Settings fails.
func (s *store) Record(ctx context.Context, e gateway.AuditEntry) error {
	v := s.vault.Load()
	if v == nil {
		return nil
	}
	return v.Record(ctx, e)
}

// with opens the vault and asks it something.
func with[T any](ctx context.Context, s *store, ask func(*vault.Vault) (T, error)) (T, error) {
	v, err := s.get(ctx)
	if err != nil {
		var none T
		return none, err
	}
	return ask(v)
}

// do opens the vault and tells it something.
func (s *store) do(ctx context.Context, tell func(*vault.Vault) error) error {
	v, err := s.get(ctx)
	if err != nil {
		return err
	}
	return tell(v)
}

// The methods below implement commands.Store by asking the vault.

func (s *store) SetSetting(ctx context.Context, name, value string) error {
	return s.do(ctx, func(v *vault.Vault) error { return v.SetSetting(ctx, name, value) })
}

func (s *store) AllSettings(ctx context.Context) ([]vault.Setting, error) {
	all, err := with(ctx, s, func(v *vault.Vault) ([]vault.Setting, error) { return v.Settings(ctx) })
	return seenSettings(ctx, all), err
}

func (s *store) Audit(ctx context.Context, q vault.AuditQuery) ([]vault.AuditRecord, error) {
	return with(ctx, s, func(v *vault.Vault) ([]vault.AuditRecord, error) { return v.Audit(ctx, q) })
}

func (s *store) VerifyAudit(ctx context.Context) (vault.AuditReport, error) {
	return with(ctx, s, func(v *vault.Vault) (vault.AuditReport, error) { return v.VerifyAudit(ctx) })
}

func (s *store) Check(ctx context.Context) error {
	return s.do(ctx, func(v *vault.Vault) error { return v.Check(ctx) })
}

// Seen implements mail.SeenStore.
func (s *store) Seen(ctx context.Context, account, folder string) (mail.SeenState, error) {
	if err := outOfScope(ctx, account); err != nil {
		return mail.SeenState{}, err
	}
	return with(ctx, s, func(v *vault.Vault) (mail.SeenState, error) { return v.Seen(ctx, account, folder) })
}

// UpdateSeen implements mail.SeenStore.
func (s *store) UpdateSeen(ctx context.Context, account, folder string, change func(*mail.SeenState) error) error {
	if err := outOfScope(ctx, account); err != nil {
		return err
	}
	return s.do(ctx, func(v *vault.Vault) error { return v.UpdateSeen(ctx, account, folder, change) })
}

// cursorKey is the same for every process on a vault, so that one may continue
// the search of another.
func (s *store) cursorKey(ctx context.Context) ([]byte, error) { return s.Key(ctx, "search cursor") }
