package lease

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postern-mail/postern/mail/internal/wire"
)

var errStore = errors.New("the vault's")

// locked is a vault whose every lock another process has, or that cannot be asked.
type locked struct {
	Others
	away bool
}

func (l locked) Remote() bool { return true }

func (l locked) Lock(ctx context.Context, _ string) (context.Context, func(), error) {
	if !l.away {
		<-ctx.Done()
	}
	return nil, nil, fmt.Errorf("%w: %w", errStore, ctx.Err())
}

// TestAMailboxInUseIsNoTroubleOfTheVault: its lock is none that a person could look for, but
// what keeps a process from asking for it is the vault's.
func TestAMailboxInUseIsNoTroubleOfTheVault(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	var refused *wire.Error
	for _, c := range []struct {
		ctx  context.Context
		away bool
		ok   func(error) bool
	}{
		{t.Context(), false, func(err error) bool {
			return errors.As(err, &refused) && refused.Code == "IN-USE" && !errors.Is(err, errStore)
		}},
		{t.Context(), true, func(err error) bool { return errors.Is(err, errStore) && !errors.As(err, &refused) }},
		{ended, false, func(err error) bool { return err == context.Canceled }},
	} {
		if _, _, err := (Leases{Others: locked{away: c.away}}).take(c.ctx, time.Millisecond, "pop3", "box"); !c.ok(err) {
			t.Errorf("away %v: %v", c.away, err)
		}
	}
}

// silent is a vault that gives locks and falls silent before it takes them back.
type silent struct {
	Others
	back chan struct{}
}

func (silent) Remote() bool { return true }

func (s silent) Lock(ctx context.Context, _ string) (context.Context, func(), error) {
	return ctx, func() { <-s.back }, nil
}

// TestAVaultThatFallsSilentHoldsUpNoRelease: a process could not end.
func TestAVaultThatFallsSilentHoldsUpNoRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vault := silent{back: make(chan struct{})}
		held, release, err := Leases{Others: vault}.POP3(t.Context(), "box")
		if err != nil {
			t.Fatal(err)
		}
		release()
		if held.Err() == nil {
			t.Error("it is held on")
		}
		close(vault.back)
	})
}
