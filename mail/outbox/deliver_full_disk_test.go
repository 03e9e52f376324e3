package outbox_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/outbox"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
)

// fullDisk is a store that takes no change once a message has passed the gate.
type fullDisk struct {
	mail.OutboxStore
	full bool
}

func (s *fullDisk) ChangeOutgoing(ctx context.Context, id string, change func(*mail.Outgoing) (bool, error)) (mail.Outgoing, error) {
	if s.full {
		return mail.Outgoing{}, errors.New("no space left on device")
	}
	o, err := s.OutboxStore.ChangeOutgoing(ctx, id, change)
	if err == nil && o.State == mail.OutboxUnknown {
		s.full = true
	}
	return o, err
}

// Where nobody knows whether a message left, nobody is told that it did not, also when
// even that cannot be recorded.
func TestAnUnknownThatCannotBeRecordedIsStillUnknown(t *testing.T) {
	o := newOffice(t, newSubmissionServer(t))
	store := &fullDisk{OutboxStore: o.vault}
	b := outbox.New(outbox.Options{Directory: o.dir, Store: store, Key: func(ctx context.Context) ([]byte, error) { return o.vault.Key(ctx, "outbox") }})
	o.server.fault(stepTaken, interference{cut: true})
	e, err := b.Send(t.Context(), account, hello(keyed("k")))
	if err != nil || e.State != mail.OutboxUnknown || !strings.Contains(e.Reason, "not known") {
		t.Fatalf("%+v, %v", e, err)
	}
	if stored, taken := o.entry(e.ID).State, len(o.server.messages()); stored != mail.OutboxUnknown || taken != 1 {
		t.Errorf("the outbox says %s, and the server took %d", stored, taken)
	}
	o.server.at(nil)
	store.full = false
	// The attempt could not be ended either, so nobody may go on with it for now.
	_, err = b.Send(t.Context(), account, hello(keyed("k")))
	mailtest.WantKind(t, err, mail.KindConflict)
	if n := len(o.server.messages()); n != 1 {
		t.Errorf("the server has %d", n)
	}
}
