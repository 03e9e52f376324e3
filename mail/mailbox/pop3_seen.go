package mailbox

import (
	"context"
	"slices"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/pop3"
)

// popNames is what is known of an account's acknowledged messages while something
// works on it.
type popNames struct {
	state   mail.SeenState
	mailbox string
	first   []string // what counts as dealt with on first contact
	present []string
	backlog bool
	changed bool // the state has to begin, to get another mailbox's name, or to forget what is gone
}

func (x *popBox) mailbox() string { return x.account.POP3.Address() + " " + x.account.Username }

// seen reads the state and brings it up to what is there. Without a store
// nothing is known or kept.
func (x *popBox) seen(ctx context.Context, store mail.SeenStore, list []pop3.Message) (n popNames, err error) {
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
	// Half of what is kept may be gone before it is worth a write.
	if len(s.Names) > 2*len(n.present)+64 && s.KeepNames(n.present) {
		n.changed = true
	}
}

func (n *popNames) isNew(name string) bool { return n.state.IsNewName(name) }

func (n *popNames) keep(ctx context.Context, store mail.SeenStore, x *popBox) error {
	if !n.changed || store == nil {
		return nil
	}
	return store.UpdateSeen(ctx, x.account.Name, popFolder, func(s *mail.SeenState) error {
		n.apply(s)
		return nil
	})
}

// missing is the Issue for a message that is not there, or that is hidden.
func (x *popBox) missing(r mail.Ref) mail.Issue {
	i := x.noMessage("").Issue()
	i.MessageID = r.String()
	return i
}

func (x *popBox) ack(ctx context.Context, refs []mail.Ref) (*Changed, error) {
	store := x.m.o.Seen
	if store == nil {
		return nil, x.Unsupported("Nothing is kept here about which messages are new.", mail.AdviceKeepIDs)
	}
	for _, r := range refs {
		if r.Account != x.Account || r.Protocol != mail.POP3 || r.UIDL == "" {
			return nil, x.noMessage("")
		}
	}
	out := &Changed{Account: x.account.Name, Folder: popFolder}
	var names popNames
	var acked []string
	err := x.lend(ctx, true, func(s *pop3.Session) error {
		*out, acked = Changed{Account: x.account.Name, Folder: popFolder}, nil
		var err error
		if names, err = x.seen(ctx, store, x.session.list); err != nil {
			return err
		}
		var there []pop3.Message
		for _, r := range refs {
			if i, ok := x.session.places[r.UIDL]; ok && !slices.Contains(there, x.session.list[i]) {
				there = append(there, x.session.list[i])
			}
		}
		shown := map[string]bool{}
		if x.policy.ShowsAll() {
			for _, m := range there {
				shown[m.UIDL] = true
			}
		} else {
			var ignored []mail.Issue
			if err := x.heads(ctx, s, there, nil, &ignored, func(h *popHead) bool { shown[h.UIDL] = true; return false }); err != nil {
				return err
			}
		}
		for _, r := range refs {
			switch {
			case !shown[r.UIDL]:
				out.Issues = append(out.Issues, x.missing(r))
			case !slices.Contains(acked, r.UIDL):
				acked = append(acked, r.UIDL)
			}
		}
		for _, name := range acked {
			// Who acknowledges a message has looked before, and what came after
			// that message may be new to them.
			names.first = names.first[:min(len(names.first), x.session.places[name])]
		}
		if len(acked) == 0 {
			reason := ""
			if len(there) > 0 {
				reason = "filtered"
			}
			return x.noMessage(reason)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = store.UpdateSeen(ctx, x.account.Name, popFolder, func(s *mail.SeenState) error {
		names.apply(s)
		out.Messages = nil
		for _, n := range acked {
			out.Messages = append(out.Messages, ChangedMessage{Ref: x.ref(n), Already: !s.IsNewName(n)})
		}
		s.AckNames(acked...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	out.Attempted, out.Succeeded = len(acked), len(acked)
	return out, nil
}
