package mailbox

import (
	"context"
	"fmt"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/rfc5322"
	"github.com/postern-mail/postern/mail/mailbox/internal/fetch"
)

// Leaving is a message of a list, and how it lets its reader leave that.
type Leaving struct {
	Summary // as a list shows it
	mail.Leaving
	Header rfc5322.Header
}

// Leaving reads how messages of an account let their reader leave the lists that they came through, in
// the order named. A message that does not exist is an error. It costs a round trip for each.
func (m *Client) Leaving(ctx context.Context, op, account string, refs []mail.Ref) (all []Leaving, err error) {
	b, err := m.open(ctx, op, account)
	if err != nil {
		return nil, err
	}
	x := b.base()
	if len(refs) == 0 || len(refs) > MaxBatch {
		return nil, x.Invalid(fmt.Sprintf("A command takes 1 to %d messages.", MaxBatch), mail.AdviceSeveralCommands)
	}
	for _, ref := range refs {
		g, err := b.header(ctx, ref)
		if err != nil {
			return nil, err
		}
		l := Leaving{Summary: x.Summary(g, false), Leaving: mail.Leaving{Why: mail.NoPostUnclear}, Header: g.Header}
		if g.Whole && g.Headed < fetch.HeaderBytes {
			l.Leaving = x.Policy.Leaving(g.Header)
		}
		all = append(all, l)
	}
	return all, nil
}
