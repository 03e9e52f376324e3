package mailbox

import (
	"context"
	"slices"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/imap"
	"github.com/postern-mail/postern/mail/mailbox/internal/fetch"
)

// seeing is the state of one folder's acknowledged messages during one operation. Without a
// store it is empty and not kept.
type seeing struct {
	store mail.SeenStore
	state mail.SeenState
	begun *begun // the state has to begin again, or has another mailbox's name

	newest mail.Newest // to be kept; zero where what is kept will do
}

// begun describes a folder when its state began, or when its name changed.
type begun struct {
	mailbox           string
	uidValidity, last uint32
	floor             uint32 // a new state begins after it; at most last
	backlog           bool
}

func (b *begun) apply(s *mail.SeenState) {
	if !s.Follow(b.mailbox, b.uidValidity, b.last) {
		s.Begin(b.mailbox, b.uidValidity, b.floor, b.backlog)
	}
}

// mailbox names the server and user by which a folder is found. The same folder may
// get another name when its account is edited.
func (x *access) mailbox() string { return x.account.Incoming().Address() + " " + x.account.Username }

func (y *seeing) read(ctx context.Context, x *imapBox, folder string) error {
	if y.store == nil {
		return nil
	}
	var err error
	y.state, err = y.store.Seen(ctx, x.account.Name, folder)
	return err
}

func (y *seeing) known(x *imapBox, box imap.Folder) bool {
	return y.state.Known(x.mailbox(), box.UIDValidity)
}

// begin notes the state of a folder on first contact, and when its name changed.
func (y *seeing) begin(x *imapBox, s *imap.Session, box imap.Folder) error {
	if y.store == nil || y.known(x, box) {
		return nil
	}
	b, err := x.begun(s, box)
	if err != nil {
		return err
	}
	y.begun = b
	y.begun.apply(&y.state)
	return nil
}

// begun describes the open folder as it is now. Not every server says which UID comes next;
// the last message then has the greatest one.
func (x *imapBox) begun(s *imap.Session, box imap.Folder) (*begun, error) {
	last := max(box.UIDNext, 1) - 1
	b := &begun{x.mailbox(), box.UIDValidity, last, last, x.account.ProcessBacklog}
	if box.UIDNext != 0 || box.Exists == 0 {
		return b, nil
	}
	data, err := s.Fetch(imap.SeqRange{First: box.Exists, Last: box.Exists}, imap.Items{}).Wait()
	if err != nil {
		return nil, err
	}
	for _, d := range data {
		b.last = max(b.last, d.UID)
	}
	b.floor = b.last
	return b, nil
}

// keep stores what begin and note noted. If another process was first, its state stays.
func (y *seeing) keep(ctx context.Context, x *imapBox, folder string) error {
	if y.begun == nil && y.newest.Messages == 0 {
		return nil
	}
	return y.store.UpdateSeen(ctx, x.account.Name, folder, func(s *mail.SeenState) error {
		if y.begun != nil {
			y.begun.apply(s)
		}
		if y.newest.Messages != 0 && s.UIDValidity == y.state.UIDValidity {
			s.Newest = y.newest
		}
		return nil
	})
}

// unacked is the set of new UIDs, whether or not messages have them.
func (y *seeing) unacked() imap.UIDSet {
	var all []imap.UIDRange
	for _, r := range y.state.Unacked() {
		all = append(all, imap.UIDRange(r))
	}
	if len(all) == 0 {
		return imap.UIDs(1<<32 - 1) // nothing is new; a set cannot be empty
	}
	return imap.UIDsIn(all)
}

// Ack marks messages as acknowledged, so that New no longer lists them (000 section 7.1).
// It does not change the server. Messages may be named in any order and more than once; one
// that does not exist, or that the policy hides, is an Issue and is not recorded.
func (m *Client) Ack(ctx context.Context, account string, refs []mail.Ref) (*Changed, error) {
	b, err := m.open(ctx, "mail ack", account)
	if err != nil {
		return nil, err
	}
	if err := b.base().checkCount(refs, MaxBatch); err != nil {
		return nil, err
	}
	if m.o.Seen == nil {
		return nil, b.base().noRecord()
	}
	return b.ack(ctx, refs)
}

// noRecord is the error of what needs a SeenStore, where there is none.
func (x *access) noRecord() error {
	return x.Unsupported("Postern keeps no record here of which messages are new.", mail.AdviceKeepIDs)
}

func (x *imapBox) ack(ctx context.Context, refs []mail.Ref) (*Changed, error) {
	b, err := x.batch(Batch{Refs: refs})
	if err != nil {
		return nil, err
	}
	y := &seeing{store: x.m.o.Seen}
	if err := y.read(ctx, x, b.folder); err != nil {
		return nil, err
	}
	var l *located
	var uids []uint32
	var acked []mail.Ref
	var first *begun
	err = b.lend(ctx, b.folder, func(s *imap.Session) error {
		var err error
		if l, err = b.locate(s, false, fetch.Wanted{}); err != nil {
			return err
		}
		if uids, err = b.present(l); err != nil {
			return err
		}
		// The caller has looked at the folder before, and what came after the message
		// may be new to them.
		if first = (&begun{mailbox: b.mailbox(), uidValidity: l.box.UIDValidity, last: slices.Max(uids)}); !y.known(x, l.box) {
			if first, err = b.begun(s, l.box); err == nil {
				first.floor = min(first.floor, slices.Min(uids)-1)
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, u := range uids {
		acked = append(acked, b.ref(l, u))
	}
	return x.acknowledge(ctx, b.out, acked, first.apply)
}

// acknowledge marks messages as acknowledged, in a state that apply has adapted to the
// folder, and reports each.
func (x *access) acknowledge(ctx context.Context, out *Changed, refs []mail.Ref, apply func(*mail.SeenState)) (*Changed, error) {
	err := x.m.o.Seen.UpdateSeen(ctx, x.Account, out.Folder, func(s *mail.SeenState) error {
		apply(s)
		out.Messages, out.Attempted, out.Succeeded = nil, len(refs), len(refs)
		var uids []uint32
		var names []string
		for _, r := range refs {
			isNew := s.IsNew(r.UID)
			if r.Protocol == mail.POP3 {
				isNew = s.IsNewName(r.UIDL)
				names = append(names, r.UIDL)
			} else {
				uids = append(uids, r.UID)
			}
			out.Messages = append(out.Messages, ChangedMessage{Ref: r, Already: !isNew})
		}
		s.Ack(uids...)
		s.AckNames(names...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
