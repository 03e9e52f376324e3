package house

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/postern-mail/postern/commands"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault"
)

// store is the vault as the commands of this process see it: opened when something first
// needs it, with the accounts of the environment beside its own, and with nothing in it
// for a caller that a grant does not name. Its test lists the vault's methods that it
// passes through unchanged. It is safe for concurrent use.
type store struct {
	*vault.Vault
	open func(context.Context) (*vault.Vault, error)

	environment    *mail.Environment // accounts beside the vault's
	environmentErr error             // what is wrong with them; no account is used then

	sending []string // paths of the extensions that let something leave
	notify  notifier // tells the person what begins to wait

	asks      bool // opening runs a program that fetches a key
	temporary bool // the vault is made when it is opened, see passing

	life context.Context // for what the process does for itself; ends when the process ends, or a little later
	end  context.CancelFunc

	mu     sync.Mutex
	remove func() error // removes the temporary vault; nil without one
	closed bool

	closing time.Duration // for how long a process that ends waits for a vault that does not answer
}

func newStore(open func(context.Context) (*vault.Vault, error)) *store {
	s := &store{open: open, environment: &mail.Environment{}, closing: closeTime}
	s.life, s.end = context.WithCancel(forOwner(context.Background()))
	s.notify.store, s.notify.ending, s.notify.limit = s, make(chan struct{}), notifyTime
	s.Vault = vault.Lazy(func(ctx context.Context) (*vault.Vault, error) {
		if s.asks && optional(ctx) {
			return nil, vault.ErrNoKey // help must not ask a person for a key
		}
		return s.open(ctx)
	})
	return s
}

var (
	_ commands.Store         = (*store)(nil)
	_ gateway.Auditor        = (*store)(nil)
	_ gateway.Limiter        = (*store)(nil)
	_ gateway.SettingsSource = (*store)(nil)
	_ mail.SeenStore         = (*store)(nil)
	_ mail.DraftStore        = (*store)(nil)
	_ mail.TokenStore        = (*store)(nil)
)

// Settings implements gateway.SettingsSource.
func (s *store) Settings(ctx context.Context, without bool) (gateway.Settings, error) {
	if without {
		ctx = dispensable(ctx)
	}
	c, err := s.Config(ctx)
	var stopped *mail.Stopped
	if err == nil { // by the policy that was read for the settings
		stopped, err = s.Stopped(ctx, vault.StopTime)
	}
	deny := c.Deny
	if !c.ExtensionsSend {
		deny = slices.Concat(deny, s.sending)
	}
	return gateway.Settings{Deny: deny, CommandsPerMinute: c.CommandsPerMinute, Location: c.Timezone, Stopped: stopFault(stopped)}, err
}

// Take implements gateway.Limiter. It opens nothing: the gateway asks for the settings
// first.
func (s *store) Take(ctx context.Context, key string, limit int, window time.Duration) (time.Duration, error) {
	if !s.Opened() {
		return 0, nil // the settings failed, which refuses what is not reserved
	}
	return s.Vault.Take(ctx, key, limit, window)
}

// Record implements gateway.Auditor. Without a vault there is nothing to record in
// and nothing to record either: the gateway runs only the reserved commands then,
// because Settings fails.
func (s *store) Record(ctx context.Context, e gateway.AuditEntry) error {
	if !s.Opened() {
		return nil
	}
	return s.Vault.Record(ctx, e)
}

// AllSettings implements commands.Store.
func (s *store) AllSettings(ctx context.Context) ([]vault.Setting, error) {
	all, err := s.Vault.Settings(ctx)
	return seenSettings(ctx, all), err
}

// Seen implements mail.SeenStore.
func (s *store) Seen(ctx context.Context, account, folder string) (mail.SeenState, error) {
	if err := outOfScope(ctx, account); err != nil {
		return mail.SeenState{}, err
	}
	return s.Vault.Seen(ctx, account, folder)
}

// UpdateSeen implements mail.SeenStore.
func (s *store) UpdateSeen(ctx context.Context, account, folder string, change func(*mail.SeenState) error) error {
	if err := outOfScope(ctx, account); err != nil {
		return err
	}
	return s.Vault.UpdateSeen(ctx, account, folder, change)
}

// NoteDraft implements mail.DraftStore. What the administrator writes is a person's.
func (s *store) NoteDraft(ctx context.Context, ref mail.Ref) error {
	p := principalOf(ctx)
	a, err := s.account(ctx, ref.Account)
	if err != nil || isAdmin(p) {
		return err
	}
	return s.Vault.NoteDraft(ctx, p.Name, a.Mailbox(), ref)
}

// Drafts implements mail.DraftStore.
func (s *store) Drafts(ctx context.Context, refs []mail.Ref) ([]mail.DraftOrigin, error) {
	origins := make([]mail.DraftOrigin, len(refs))
	if len(refs) == 0 {
		return origins, nil
	}
	a, err := s.account(ctx, refs[0].Account)
	if err != nil {
		return nil, err
	}
	p := principalOf(ctx)
	writers, err := s.DraftWriters(ctx, a.Mailbox(), refs)
	for i, by := range writers {
		origins[i] = mail.DraftOrigin{ByAgent: by != "" && by != mail.PersonPrincipal, Own: isAdmin(p) || by != "" && mail.Owns(p.Name, by)}
	}
	return origins, err
}

func isAdmin(p gateway.Principal) bool { return p.Admin && p.Scope == nil }

// cursorKey is the same for every process on a vault, so that one may continue
// the search of another.
func (s *store) cursorKey(ctx context.Context) ([]byte, error) { return s.Key(ctx, "search cursor") }
