package mailbox

import (
	"context"
	"errors"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/imap"
	"github.com/postern-mail/postern/mail/mailbox/internal/fetch"
)

// StoredDraft is a draft of the account's mailbox.
type StoredDraft struct {
	Source []byte
	Ref    mail.Ref // with the UIDVALIDITY
	Own    bool     // the caller may go on with it, see mail.DraftOrigin
}

// Draft reads a draft: a message of
// the account's folder for drafts that is marked \Draft and that the account itself wrote. A
// hidden message and one that does not exist give the same error; any other is KindInvalid.
func (m *Client) Draft(ctx context.Context, op string, ref mail.Ref) (*StoredDraft, error) {
	x, err := with[changer](ctx, m, op, ref.Account, "no drafts", mail.AdviceSendNow)
	if err != nil {
		return nil, err
	}
	d, err := x.draft(ctx, ref)
	if err != nil {
		return nil, err
	}
	origin, err := m.draftOrigins(ctx, []mail.Ref{d.Ref})
	if err != nil {
		return nil, err
	}
	d.Own = origin[0].Own
	return d, nil
}

// draft is Client.Draft, but for whose it is.
func (x *imapBox) draft(ctx context.Context, ref mail.Ref) (*StoredDraft, error) {
	d := &StoredDraft{}
	items := imap.Items{Size: true, Flags: true, Sections: []imap.Section{fetch.WholeHeader}}
	err := x.readOne(ctx, ref, items, func(s *imap.Session, g *fetch.Message) error {
		drafts, err := x.knownFor(s, "drafts")
		switch {
		case err != nil:
			return err
		case !g.Readable:
			return x.NoMessage("")
		case g.Ref.Folder != drafts || !fetch.HasFlag(g.Flags, fetch.FlagDraft):
			return x.Invalid("The message is not a draft in the account's folder for drafts.", mail.AdviceListDrafts)
		case !x.Policy.Wrote(g.Header):
			return x.Invalid("The draft is not from the account's own address.", mail.AdviceFileDraft)
		}
		d.Ref = g.Ref
		d.Source, err = x.chunks(s, g.Ref.UID, "", g.Size)
		return err
	})
	return d, err
}

// RemoveDraft removes a draft that was sent for good: that message alone, where the server can
// remove one alone. The copy of what was sent is there, so it is not in the journal. A draft that
// is gone already is nil; else the Issue says that it is still there, or may be.
func (m *Client) RemoveDraft(ctx context.Context, op string, ref mail.Ref) *mail.Issue {
	return m.dropDraft(ctx, Batch{Op: op, Account: ref.Account, Refs: []mail.Ref{ref}})
}

// ReplaceDraft is RemoveDraft for a draft whose place another took by a change, see
// Placed.Change. It is put into the trash, as a piece of that change.
func (m *Client) ReplaceDraft(ctx context.Context, op string, ref mail.Ref, change string) *mail.Issue {
	return m.dropDraft(ctx, Batch{Op: op, Account: ref.Account, Refs: []mail.Ref{ref}, Action: mail.Action{Do: mail.DoTrash}, Of: change})
}

func (m *Client) dropDraft(ctx context.Context, of Batch) *mail.Issue {
	b, err := m.begin(ctx, of)
	var out *Changed
	if err == nil {
		out, err = b.removeDraft(ctx)
	}
	var known *mail.Error
	switch {
	case errors.As(err, &known) && known.Kind == mail.KindNotFound && known.Advice != mail.AdviceMakeTrash:
		return nil
	case err != nil:
		o := mail.Operation{Op: of.Op, Account: of.Account}
		i := o.AsError(o.Wrap(ctx, err, nil)).Issue()
		i.MessageID = of.Refs[0].String()
		return &i
	case len(out.Issues) > 0:
		return &out.Issues[0]
	}
	return nil
}

func (b *batch) removeDraft(ctx context.Context) (*Changed, error) {
	grant := imap.DeleteMessages
	if b.asked.Do == mail.DoTrash {
		grant = imap.MoveMessages
	}
	return b.runFound(ctx, grant, true, func(ctx context.Context, s *imap.Session, l *located, uids []uint32) error {
		drafts, err := b.knownFor(s, "drafts")
		switch {
		case err != nil:
			return err
		case b.folder != drafts || !fetch.HasFlag(l.found[uids[0]].Flags, fetch.FlagDraft):
			return b.Invalid("The message is not a draft any more.", mail.AdviceListDrafts)
		case b.asked.Do == mail.DoTrash:
			return b.moveByRole(ctx, s, l, uids)
		case !s.UIDPlus():
			return b.Failure(mail.KindUnsupported, "", "The server can delete no single message: it has no UIDPLUS.", mail.AdviceTrash)
		}
		b.expunge(ctx, s, l, uids, "The draft is still there.", "Whether the draft is still there is not known.")
		return nil
	})
}
