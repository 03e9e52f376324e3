package house

import (
	"context"
	"time"

	"github.com/postern-mail/postern/mail"
)

var _ mail.OutboxStore = (*store)(nil)

// The methods below implement mail.OutboxStore by asking the vault. Entries of others are
// answered like ones that do not exist.

func (s *store) AddOutgoing(ctx context.Context, o mail.Outgoing, message []byte) (kept mail.Outgoing, added bool, err error) {
	if !ownOutgoing(ctx, &o) {
		return mail.Outgoing{}, false, mail.ErrNoOutgoing
	}
	kept, added, err = s.Vault.AddOutgoing(ctx, o, message)
	if added && kept.State == mail.OutboxWaiting {
		s.notify.waits(ctx, kept.ID)
	}
	return kept, added, err
}

func (s *store) Outgoing(ctx context.Context, id string) (mail.Outgoing, error) {
	return own(ctx)(s.Vault.Outgoing(ctx, id))
}

func (s *store) OutgoingByKey(ctx context.Context, account, key string) (mail.Outgoing, error) {
	return own(ctx)(s.Vault.OutgoingByKey(ctx, account, key))
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
	return s.Vault.OutgoingMessage(ctx, id)
}

func (s *store) ListOutgoing(ctx context.Context, q mail.OutboxQuery) (entries []mail.Outgoing, more bool, err error) {
	only := q.Only
	q.Only = func(o *mail.Outgoing) bool { return ownOutgoing(ctx, o) && (only == nil || only(o)) }
	return s.Vault.ListOutgoing(ctx, q)
}

func (s *store) ChangeOutgoing(ctx context.Context, id string, change func(o *mail.Outgoing) (drop bool, err error)) (mail.Outgoing, error) {
	var before mail.OutboxState
	o, err := s.Vault.ChangeOutgoing(ctx, id, func(o *mail.Outgoing) (bool, error) {
		if !ownOutgoing(ctx, o) {
			return false, mail.ErrNoOutgoing
		}
		before = o.State
		return change(o)
	})
	begins := before == mail.OutboxQueued || before == mail.OutboxUnknown && o.Kind == mail.OutboxPlan // of a plan, the rest
	if err == nil && begins && o.State == mail.OutboxWaiting {
		s.notify.waits(ctx, o.ID)
	}
	return o, err
}

// outboxKey is the same for every process on a vault, so that a key names one
// message in all of them.
func (s *store) outboxKey(ctx context.Context) ([]byte, error) { return s.Key(ctx, "outbox names") }

// stateKey is the same for every process on a vault, so that one may be given the answer to
// another's question.
func (s *store) stateKey(ctx context.Context) ([]byte, error) {
	return s.Key(ctx, "states of questions")
}

// takeSend charges one send to a principal, or says whether it could.
func (s *store) takeSend(ctx context.Context, principal string, charge bool) (time.Duration, error) {
	c, err := s.Config(ctx)
	if err != nil {
		return 0, err
	}
	if !charge {
		return s.Foresee(ctx, "sends:"+principal, c.SendsPerHour, time.Hour)
	}
	return s.Vault.Take(ctx, "sends:"+principal, c.SendsPerHour, time.Hour)
}

// takeChanges charges n messages that a principal changes.
func (s *store) takeChanges(ctx context.Context, principal string, n int) (time.Duration, error) {
	c, err := s.Config(ctx)
	if err != nil {
		return 0, err
	}
	return s.TakeSeveral(ctx, "changes:"+principal, n, c.ChangesPerHour, time.Hour)
}
