package house

import (
	"context"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault"
)

var _ mail.OutboxStore = (*store)(nil)

// The methods below implement mail.OutboxStore by asking the vault. What is not the
// caller's own is answered like what is not there.

func (s *store) AddOutgoing(ctx context.Context, o mail.Outgoing, message []byte) (kept mail.Outgoing, added bool, err error) {
	if !ownOutgoing(ctx, &o) {
		return mail.Outgoing{}, false, mail.ErrNoOutgoing
	}
	v, err := s.get(ctx)
	if err != nil {
		return mail.Outgoing{}, false, err
	}
	return v.AddOutgoing(ctx, o, message)
}

func (s *store) Outgoing(ctx context.Context, id string) (mail.Outgoing, error) {
	return own(ctx)(with(ctx, s, func(v *vault.Vault) (mail.Outgoing, error) { return v.Outgoing(ctx, id) }))
}

func (s *store) OutgoingByKey(ctx context.Context, account, key string) (mail.Outgoing, error) {
	return own(ctx)(with(ctx, s, func(v *vault.Vault) (mail.Outgoing, error) { return v.OutgoingByKey(ctx, account, key) }))
}

// own lets an entry pass that is the caller's own.
func own(ctx context.Context) func(mail.Outgoing, error) (mail.Outgoing, error) {
	return func(o mail.Outgoing, err error) (mail.Outgoing, error) {
		if err == nil && !ownOutgoing(ctx, &o) {
			return mail.Outgoing{}, mail.ErrNoOutgoing
		}
		return o, err
	}
}

func (s *store) OutgoingMessage(ctx context.Context, id string) ([]byte, error) {
	if _, err := s.Outgoing(ctx, id); err != nil {
		return nil, err
	}
	return with(ctx, s, func(v *vault.Vault) ([]byte, error) { return v.OutgoingMessage(ctx, id) })
}

func (s *store) ListOutgoing(ctx context.Context, q mail.OutboxQuery) (entries []mail.Outgoing, more bool, err error) {
	v, err := s.get(ctx)
	if err != nil {
		return nil, false, err
	}
	return listOutgoing(ctx, v, q)
}

func (s *store) ChangeOutgoing(ctx context.Context, id string, change func(o *mail.Outgoing) (drop bool, err error)) (mail.Outgoing, error) {
	return with(ctx, s, func(v *vault.Vault) (mail.Outgoing, error) {
		return v.ChangeOutgoing(ctx, id, func(o *mail.Outgoing) (bool, error) {
			if !ownOutgoing(ctx, o) {
				return false, mail.ErrNoOutgoing
			}
			return change(o)
		})
	})
}

// outboxKey is the same for every process on a vault, so that a key names one
// message in all of them.
func (s *store) outboxKey(ctx context.Context) ([]byte, error) { return s.Key(ctx, "outbox names") }

// takeSend charges one send to a principal, or tells whether it would be.
func (s *store) takeSend(ctx context.Context, principal string, charge bool) (time.Duration, error) {
	return with(ctx, s, func(v *vault.Vault) (time.Duration, error) {
		c, err := v.Config(ctx)
		if err != nil {
			return 0, err
		}
		if !charge {
			return v.Foresee(ctx, "sends:"+principal, c.SendsPerHour, time.Hour)
		}
		return v.Take(ctx, "sends:"+principal, c.SendsPerHour, time.Hour)
	})
}
