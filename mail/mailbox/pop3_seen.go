package mailbox

import (
	"context"
	"slices"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/pop3"
	"github.com/postern-mail/postern/mail/mailbox/internal/fetch"
)

// popNames is the state of an account's acknowledged messages during one operation.
type popNames struct {
	state   mail.SeenState
	mailbox string
	first   []string // the messages that count as acknowledged on first contact
	present []string
	backlog bool
	changed bool // the state has to begin, to get another mailbox's name, or to forget deleted messages
}

// seen reads the state and adapts it to the messages in the mailbox. Without a store the
// state is empty and not kept.
func (x *popBox) seen(ctx context.Context, list []pop3.Message) (n popNames, err error) {
	store := x.m.o.Seen
	if store == nil {
		return n, nil
	}
	n = popNames{mailbox: x.mailbox(), backlog: x.account.ProcessBacklog}
	for _, m := range list {
		n.present = append(n.present, m.UIDL)
	}
	n.first = n.present
	if n.state, err = store.Seen(ctx, x.account.Name, popFolder); err != nil {
		return n, err
	}
	n.changed = !n.state.KnownNames(n.mailbox)
	n.apply(&n.state)
	return n, nil
}

func (n *popNames) apply(s *mail.SeenState) {
	s.FollowNames(n.mailbox, n.present)
	s.BeginNames(n.mailbox, n.first, n.backlog)
	// A write is worth it only when half of the kept names are gone.
	if len(s.Names) > 2*len(n.present)+64 && s.KeepNames(n.present) {
		n.changed = true
	}
}

func (n *popNames) keep(ctx context.Context, x *popBox) error {
	if !n.changed {
		return nil
	}
	return x.m.o.Seen.UpdateSeen(ctx, x.account.Name, popFolder, func(s *mail.SeenState) error {
		n.apply(s)
		return nil
	})
}

func (x *popBox) ack(ctx context.Context, refs []mail.Ref) (*Changed, error) {
	for _, r := range refs {
		if r != x.ref(r.UIDL) || r.UIDL == "" {
			return nil, x.NoMessage("")
		}
	}
	var out *Changed
	var names popNames
	var acked []mail.Ref
	err := x.lend(ctx, true, func(s *pop3.Mailbox) error {
		out, acked = &Changed{Account: x.Account, Folder: popFolder}, nil
		var err error
		if names, err = x.seen(ctx, s.List); err != nil {
			return err
		}
		var there []pop3.Message
		shown := map[string]bool{}
		for _, r := range refs {
			if i, ok := s.Places[r.UIDL]; ok && !slices.Contains(there, s.List[i]) {
				there = append(there, s.List[i])
				shown[r.UIDL] = x.Policy.ShowsAll()
			}
		}
		if !x.Policy.ShowsAll() {
			err = x.heads(ctx, s, there, nil, func(g *fetch.Message) bool { shown[g.Ref.UIDL] = true; return true })
		}
		for _, r := range refs {
			switch {
			case !shown[r.UIDL]:
				missing := x.NoMessage("").Issue()
				if _, hidden := s.Places[r.UIDL]; hidden {
					missing.Reason = "filtered"
				}
				missing.MessageID = r.String()
				out.Issues = append(out.Issues, missing)
			case !slices.Contains(acked, r):
				acked = append(acked, r)
				// The caller has listed the mailbox before, and what came after that
				// message may be new to them.
				names.first = names.first[:min(len(names.first), s.Places[r.UIDL])]
			}
		}
		switch {
		case err != nil || len(acked) > 0:
			return err
		case len(there) > 0:
			return x.NoMessage("filtered")
		}
		return x.NoMessage("")
	})
	if err != nil {
		return nil, err
	}
	return x.acknowledge(ctx, out, acked, names.apply)
}
