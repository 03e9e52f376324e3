package mailbox

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/imap"
	"github.com/postern-mail/postern/mail/internal/wire"
	"github.com/postern-mail/postern/mail/mailbox/internal/fetch"
)

// Copy is Do of DoCopy, and copies to another account when toAccount is neither empty nor account
// (001 section 8). The account they come from may be read-only then; the one they go to may not.
// Each message is fetched and appended by itself.
func (m *Client) Copy(ctx context.Context, account string, refs []mail.Ref, toAccount, toFolder string) (*Changed, error) {
	of := Batch{Op: "mail copy", Account: account, Refs: refs, Action: mail.Action{Do: mail.DoCopy, To: toFolder}}
	if toAccount != "" && toAccount != account {
		return m.copyAcross(ctx, of, toAccount)
	}
	return m.Do(ctx, of)
}

func (b *batch) copy(ctx context.Context, toFolder string) (*Changed, error) {
	return b.runFound(ctx, imap.CopyMessages, false, func(ctx context.Context, s *imap.Session, l *located, uids []uint32) error {
		if err := b.mayFile(ctx, s, l, uids, toFolder); err != nil {
			return err
		}
		return b.record(ctx, l, uids, mail.Change{Kind: mail.ChangeCopy, To: toFolder}, func() (err error) {
			b.out.Attempted = len(uids)
			b.sent = true
			if b.copied, err = s.Copy(imap.UIDs(uids...), toFolder).Wait(); err != nil {
				return b.noFolder(err, toFolder)
			}
			b.arrived(l, uids, toFolder)
			return nil
		})
	})
}

// noFolder turns the server's refusal of an unknown folder, with the code TRYCREATE (RFC
// 9051 section 7.1) or without, into our error.
func (x *imapBox) noFolder(err error, folder string) error {
	w := imap.Refusal(err)
	if w == nil || w.Code != "TRYCREATE" && w.Code != "NONEXISTENT" {
		return err
	}
	e := x.Failure(mail.KindNotFound, w.Stage, fmt.Sprintf("There is no folder %q to put the messages in.", folder), mail.AdviceFolders)
	e.Err, e.Missing = err, folder
	return e
}

// arrived reports the messages that are now in the new folder.
func (b *batch) arrived(l *located, uids []uint32, folder string) {
	c := b.copied
	for _, u := range uids {
		if len(c.Target) > 0 && c.Target[u] == 0 {
			b.unsure = true
			b.out.Issues = append(b.out.Issues, b.refused(l, u, imap.StageCopy, "The server reported other messages as done, and not this one: check where it is."))
			continue
		}
		b.out.Succeeded++
		m := ChangedMessage{Ref: b.ref(l, u)}
		if to := c.Target[u]; to != 0 && b.Policy.ShowsAll() { // else it tells how much hidden mail has come
			m.New = b.RefTo(folder, c.UIDValidity, to)
		}
		b.out.Messages = append(b.out.Messages, m)
	}
}

// beginAcross is begin for messages that are copied to another account, which may be changed.
func (m *Client) beginAcross(ctx context.Context, of Batch, toAccount string) (b changes, to changer, err error) {
	x, err := with[changer](ctx, m, "mail copy", of.Account, "no folders to copy from", mail.AdvicePOP3Parts)
	if err == nil {
		b, err = x.changes(of)
	}
	if err == nil {
		to, err = m.openToChange(ctx, "mail copy", toAccount)
	}
	if err == nil && !x.base().Policy.MayGive(to.base().Policy.Policy) {
		err = x.base().NotGiven(toAccount)
	}
	return b, to, err
}

// copyAcross copies messages to another account one by one.
func (m *Client) copyAcross(ctx context.Context, of Batch, toAccount string) (*Changed, error) {
	b, to, err := m.beginAcross(ctx, of, toAccount)
	if err != nil {
		return nil, err
	}
	toFolder, err := b.base().folderName(of.To)
	if err != nil {
		return nil, err
	}
	return b.copyTo(ctx, to, toFolder)
}

func (b *batch) copyTo(ctx context.Context, to changer, toFolder string) (*Changed, error) {
	ready := make(chan error, 1)
	go func() { ready <- to.mayTake(ctx, toFolder) }() // while the messages are looked at
	var l *located
	var uids []uint32
	b.files = true
	err := b.lend(ctx, b.folder, func(s *imap.Session) error {
		var err error
		if l, err = b.locate(s, false, fetch.Wanted{Dates: true, Full: true}); err != nil {
			return err
		}
		if uids, err = b.present(l); err != nil {
			return err
		}
		return b.mayLeave(ctx, l, uids, "")
	})
	if err = cmp.Or(err, <-ready); err != nil {
		return nil, err
	}
	var last *mail.Error
	c := b.journaled(l, uids, mail.Change{Kind: mail.ChangeCopy, FromAccount: b.account.Name, To: toFolder})
	err = to.base().recorded(ctx, c, func() (bool, error) {
		b.out.Change = c.ID
		for i, u := range uids {
			b.Tell(float64(i), float64(len(uids)), "copying messages")
			placed, err := b.carry(ctx, to, l, u, toFolder)
			if err != nil {
				last = b.AsError(b.wrap(ctx, err))
				b.out.Issues, b.unsure = append(b.out.Issues, b.issue(l, u, last)), b.unsure || last.Unknown
				continue
			}
			c.ToValidity, c.Messages[i].New, c.Messages[i].Done = placed.UIDValidity, placed.UID, true
			b.out.Messages = append(b.out.Messages, ChangedMessage{Ref: b.ref(l, u), New: to.base().told(placed)})
		}
		return !b.unsure, nil
	})
	if err != nil || len(b.out.Messages) == 0 && len(b.uids) == 1 {
		return nil, cmp.Or(err, error(last))
	}
	return b.out, nil
}

// carry fetches one message and appends it to the other account. It keeps the
// flags that describe the message and the date it arrived.
func (b *batch) carry(ctx context.Context, to changer, l *located, uid uint32, folder string) (placed mail.Ref, err error) {
	if ctx.Err() != nil {
		return placed, ctx.Err()
	}
	b.out.Attempted += 2
	var raw []byte
	err = b.lend(ctx, b.folder, func(s *imap.Session) error {
		box, err := s.Examine(b.folder).Wait()
		if err != nil {
			return err
		}
		if box.UIDValidity != l.box.UIDValidity {
			return b.MadeAnew(mail.AdviceListAgain)
		}
		if raw, err = b.chunks(s, uid, "", l.found[uid].Size); err == nil && b.MaskedIn(l.found[uid], raw).Any() {
			err = b.Withheld("it is not copied to another account")
		}
		return err
	})
	if err != nil {
		return placed, err
	}
	b.out.Succeeded++
	var flags []string
	for _, f := range l.found[uid].Flags {
		if f != fetch.FlagDeleted && imap.ValidFlag(f) {
			flags = append(flags, f)
		}
	}
	if placed, err = to.put(ctx, folder, flags, l.found[uid].Internal, raw); err == nil {
		b.out.Succeeded++
	}
	return placed, err
}

func (x *imapBox) put(ctx context.Context, folder string, flags []string, date time.Time, source []byte) (placed mail.Ref, err error) {
	sent := false
	err = x.change(ctx, "", imap.AppendMessages, func(_ context.Context, s *imap.Session) error {
		if err := stepAside(s, folder); err != nil {
			return err
		}
		sent = true
		placed, err = x.append(s, folder, flags, date, source)
		return err
	})
	answered := imap.Refused(err)
	if err = x.inFolder(ctx, folder, x.noFolder(err, folder)); err != nil && sent && !answered {
		err = x.undecided(err, "Whether the copy arrived is not known.", mail.AdviceLookIntoFolder)
	}
	return placed, err
}

func (b *batch) move(ctx context.Context, toFolder string) (*Changed, error) {
	if toFolder == b.folder {
		return nil, b.there(b.asked.Do)
	}
	return b.runFound(ctx, imap.MoveMessages, true, func(ctx context.Context, s *imap.Session, l *located, uids []uint32) error {
		return b.moveFound(ctx, s, l, uids, toFolder)
	})
}

func (b *batch) moveByRole(ctx context.Context, s *imap.Session, l *located, uids []uint32) (err error) {
	if b.out.To, err = b.byRole(s, b.asked.Do); err != nil {
		return err
	}
	if b.out.To == b.folder {
		return b.there(b.asked.Do)
	}
	return b.moveFound(ctx, s, l, uids, b.out.To)
}

// byRole is the folder that DoTrash and DoArchive move to: the trash, or the archive, which Gmail
// keeps with all mail.
func (x *imapBox) byRole(s *imap.Session, do mail.Doing) (folder string, err error) {
	roles := []string{string(do)}
	if do == mail.DoArchive {
		roles = append(roles, "all")
	}
	for _, find := range []func(*imap.Session, string) (string, error){x.knownFor, x.folderFor} { // it may be new
		for _, role := range roles {
			if folder == "" && err == nil {
				folder, err = find(s, role)
			}
		}
	}
	if err == nil && folder == "" {
		err = x.Failure(mail.KindNotFound, imap.StageList, "The account has no folder for the "+string(do)+".", mail.AdviceMakeTrash)
	}
	return folder, err
}

// there refuses to move messages to where they are.
func (x *access) there(do mail.Doing) error {
	switch do {
	case mail.DoTrash:
		return x.Invalid("The messages are in the trash already.", mail.AdviceDelete)
	case mail.DoArchive:
		return x.Invalid("The messages are in the archive already.", mail.AdviceOtherFolder)
	}
	return x.Invalid("The messages are in that folder already.", mail.AdviceOtherFolder)
}

func (b *batch) moveFound(ctx context.Context, s *imap.Session, l *located, uids []uint32, toFolder string) error {
	if err := b.mayFile(ctx, s, l, uids, toFolder); err != nil {
		return err
	}
	return b.moveRuns(ctx, s, l, [][]uint32{uids}, mail.Change{Kind: mail.ChangeMove, To: toFolder})
}

// moveRuns makes one change of moving some messages after others: a server gives those of one
// command their order.
func (b *batch) moveRuns(ctx context.Context, s *imap.Session, l *located, runs [][]uint32, c mail.Change) error {
	if !s.CanMove() && !s.UIDPlus() {
		return b.Failure(mail.KindUnsupported, "", "The server can move no single message: it has neither MOVE nor UIDPLUS.", mail.AdviceCopyAndRemove)
	}
	return b.record(ctx, l, slices.Concat(runs...), c, func() (err error) {
		all := imap.Copied{Target: map[uint32]uint32{}}
		defer func() { b.copied = all }()
		for _, uids := range runs {
			b.copied = imap.Copied{}
			err = b.moveRun(ctx, s, l, uids, c.To)
			maps.Copy(all.Target, b.copied.Target)
			if all.UIDValidity = cmp.Or(b.copied.UIDValidity, all.UIDValidity); err != nil {
				return err
			}
		}
		return nil
	})
}

func (b *batch) moveRun(ctx context.Context, s *imap.Session, l *located, uids []uint32, toFolder string) (err error) {
	b.out.Attempted += len(uids)
	b.sent = true
	if !s.CanMove() {
		return b.copyAndExpunge(ctx, s, l, uids, toFolder)
	}
	if b.copied, err = s.Move(imap.UIDs(uids...), toFolder).Wait(); err != nil {
		return b.notMoved(ctx, s, l, uids, b.noFolder(err, toFolder))
	}
	b.arrived(l, uids, toFolder)
	return nil
}

// notMoved reports the state of messages whose MOVE was refused: a server may have moved
// some of them by then. It returns err if it has no state to add.
func (b *batch) notMoved(ctx context.Context, s *imap.Session, l *located, uids []uint32, err error) error {
	if !imap.Refused(err) {
		return err
	}
	e := *b.AsError(b.wrap(ctx, err))
	there, lookErr := look(s, uids)
	b.unsure = len(there) < len(uids)
	if lookErr != nil {
		e.Message += " Whether some of the messages were moved is not known."
		e.Advice, e.Retryable = mail.AdviceLookIntoBoth, false
		return &e
	}
	if len(there) == len(uids) {
		return err
	}
	for _, u := range uids {
		of := e
		if of.Message = "The message was not moved: it is still where it was. " + e.Message; fetch.DataOf(there, u) == nil {
			of.Message, of.Retryable = "The message is gone from its folder, and may be at the new place: look there. "+e.Message, false
		}
		b.out.Issues = append(b.out.Issues, b.issue(l, u, &of))
	}
	return nil
}

// copyAndExpunge moves by three steps, each of which waits for the one before. A
// message is removed only when the server has said where its copy is.
func (b *batch) copyAndExpunge(ctx context.Context, s *imap.Session, l *located, uids []uint32, folder string) error {
	var err error
	if b.copied, err = s.Copy(imap.UIDs(uids...), folder).Wait(); err != nil {
		return b.noFolder(err, folder)
	}
	kept := slices.DeleteFunc(slices.Clone(uids), func(u uint32) bool { return b.copied.Target[u] == 0 })
	for _, u := range uids {
		if b.copied.Target[u] == 0 {
			b.unsure = true
			b.out.Issues = append(b.out.Issues, b.refused(l, u, imap.StageCopy, "The server did not say that the message was copied, so it was left where it is."))
		}
	}
	if len(kept) == 0 {
		return nil
	}
	b.arrived(l, kept, folder)
	b.expunge(ctx, s, l, kept, "The message was copied, and is also still where it was.",
		"The message was copied. Whether it is also still where it was is not known; it may be marked \\Deleted there.")
	return nil
}

// expunge removes messages named by UID in two steps. A server may say OK and
// remove nothing, where a right is missing: unless it has named each message as
// expunged, it is asked which of them are left. left describes a message that is still
// there, unknown one that may be.
func (b *batch) expunge(ctx context.Context, s *imap.Session, l *located, uids []uint32, left, unknown string) {
	const marked = " It is marked \\Deleted: a mail program that expunges the folder removes it."
	lost := func(uids []uint32, err error) {
		b.unsure = true
		e := *b.AsError(b.wrap(ctx, err))
		e.Message, e.Retryable = e.Message+" "+unknown, false
		for _, u := range uids {
			b.out.Issues = append(b.out.Issues, b.issue(l, u, &e))
		}
	}
	kept := func(u uint32, stage string, message string, w *wire.Error) {
		i := b.refused(l, u, stage, left+message)
		i.Retryable = w != nil && !w.Permanent
		b.out.Issues = append(b.out.Issues, i)
	}
	b.out.Attempted += 2 * len(uids)
	s.Renew()
	before := s.Moved()
	stored, err := s.Store(imap.UIDs(uids...), false, []string{fetch.FlagDeleted}).Wait()
	w := imap.Refusal(err)
	if err != nil && w == nil {
		lost(uids, err)
		return
	}
	var doomed []uint32
	for _, u := range uids {
		d := fetch.DataOf(stored, u)
		switch {
		case w != nil && d != nil && fetch.HasFlag(d.Flags, fetch.FlagDeleted):
			kept(u, imap.StageStore, marked, w)
		case w != nil:
			kept(u, imap.StageStore, "", w)
		case d != nil && d.Flags != nil && !fetch.HasFlag(d.Flags, fetch.FlagDeleted):
			kept(u, imap.StageStore, " The server did not mark it \\Deleted; it may not allow it.", nil)
		default:
			doomed = append(doomed, u)
		}
	}
	if len(doomed) == 0 {
		return
	}
	b.out.Succeeded += len(doomed)
	s.Renew()
	quiet := s.Moved() == before
	expunged, err := s.Expunge(imap.UIDs(doomed...)).Wait()
	if w = imap.Refusal(err); err != nil && w == nil {
		lost(doomed, err)
		return
	}
	if quiet && !slices.ContainsFunc(doomed, func(u uint32) bool { return !wasExpunged(fetch.DataOf(stored, u), expunged) }) {
		b.out.Succeeded += len(doomed) // the server has named each
		return
	}
	there, lookErr := look(s, doomed)
	if lookErr != nil && w == nil && !imap.Refused(lookErr) {
		lost(doomed, lookErr)
		return
	}
	for _, u := range doomed {
		d := fetch.DataOf(there, u)
		switch {
		case d == nil && (w == nil || lookErr == nil):
			b.out.Succeeded++ // it is gone, or the server says OK and shows nothing more
		case w != nil:
			kept(u, imap.StageExpunge, marked, w)
		case d.Flags != nil && !fetch.HasFlag(d.Flags, fetch.FlagDeleted):
			kept(u, imap.StageExpunge, " The server did not remove it; it may not allow it.", nil)
		default:
			kept(u, imap.StageExpunge, " The server did not remove it; it may not allow it."+marked, nil)
		}
	}
}

// wasExpunged reports whether a message, as a STORE told of it, is among those that
// the server named as expunged, one after the other, when nothing else had changed.
func wasExpunged(d *imap.Fetched, expunged []uint32) bool {
	if d == nil {
		return false
	}
	at := d.Number
	for _, n := range expunged {
		if n == at {
			return true
		}
		if n < at {
			at--
		}
	}
	return false
}

// look asks which of the messages exist. It may not leave together with the command that
// removes them: some servers answer it before they have removed any.
func look(s *imap.Session, uids []uint32) ([]*imap.Fetched, error) {
	s.Renew()
	return s.Fetch(imap.UIDs(uids...), imap.Items{Flags: true}).Wait()
}

// Delete removes messages for good (001 section 10). Only the named ones are expunged; if
// the server cannot do that, Delete fails and removes no message. With an error no message was
// removed; a message whose Issue is neither KindNotFound nor KindRefused may have been. Where
// the policy wants a person's word it fails.
func (m *Client) Delete(ctx context.Context, account string, refs []mail.Ref) (*Changed, error) {
	return m.destroy(ctx, Batch{Account: account, Refs: refs})
}

// DeleteApproved is Delete after a person has said so about these messages. Only the outbox,
// which asks, calls it.
func (m *Client) DeleteApproved(ctx context.Context, account string, refs []mail.Ref) (*Changed, error) {
	return m.destroy(ctx, Batch{Account: account, Refs: refs, Approved: true})
}

// beginDestroy is begin for messages that are to be deleted for good.
func (m *Client) beginDestroy(ctx context.Context, of Batch, approved bool) (changes, error) {
	of.Op = "mail delete"
	b, err := m.begin(ctx, of)
	if err == nil {
		if x := b.base(); !x.Policy.MayDestroy() || x.Policy.DestroyNeedsApproval() && !approved {
			err = x.NoDestroy(&x.account, x.Policy.Policy)
		}
	}
	return b, err
}

func (m *Client) destroy(ctx context.Context, of Batch) (*Changed, error) {
	b, err := m.beginDestroy(ctx, of, of.Approved)
	if err != nil {
		return nil, err
	}
	return b.delete(ctx)
}

func (b *batch) delete(ctx context.Context) (*Changed, error) {
	return b.runFound(ctx, imap.DeleteMessages, true, func(ctx context.Context, s *imap.Session, l *located, uids []uint32) error {
		if !s.UIDPlus() {
			return b.Failure(mail.KindUnsupported, "", "The server can delete no single message: it has no UIDPLUS.", mail.AdviceTrash)
		}
		if !b.asked.Approved { // else a person saw which they are
			drafts, err := b.knownFor(s, "drafts")
			if err == nil && b.folder == drafts {
				err = b.mayDrop(ctx, l, uids)
			}
			if err != nil {
				return err
			}
		}
		b.expunge(ctx, s, l, uids, "The message was not deleted and is still there.",
			"Whether the message was deleted is not known; it may be marked \\Deleted.")
		for _, u := range uids {
			if !slices.ContainsFunc(b.out.Issues, func(i mail.Issue) bool { return i.UID == u }) {
				b.out.Messages = append(b.out.Messages, ChangedMessage{Ref: b.ref(l, u)})
			}
		}
		return nil
	})
}

// ToDelete returns messages that somebody wants to delete for good, with whole references, as
// the policy shows them. If one of them does not exist, it is an error that names it.
func (m *Client) ToDelete(ctx context.Context, account string, refs []mail.Ref) ([]Summary, error) {
	b, err := m.beginDestroy(ctx, Batch{Account: account, Refs: refs}, true)
	if err != nil {
		return nil, err
	}
	return b.shown(ctx)
}

func (b *batch) shown(ctx context.Context) (shown []Summary, err error) {
	err = b.lend(ctx, b.folder, func(s *imap.Session) error {
		l, err := b.locate(s, false, fetch.Wanted{Dates: true})
		if err != nil {
			return err
		}
		if len(l.found) < len(b.uids) {
			return b.missing(l, "Nothing was deleted.")
		}
		shown = nil
		for _, u := range b.uids {
			shown = append(shown, b.Summary(l.found[u], false))
		}
		return nil
	})
	return shown, err
}

// MayChange returns the error with which a change to messages of one folder, or their copying to
// another account, would end before a server is asked; nil where there is none. An empty toAccount
// is their own. Without refs it is about the account alone.
func (m *Client) MayChange(ctx context.Context, op, account string, refs []mail.Ref, toAccount string) (err error) {
	switch {
	case len(refs) == 0:
		_, err = m.openToChange(ctx, op, account)
	case toAccount != "" && toAccount != account:
		_, _, err = m.beginAcross(ctx, Batch{Account: account, Refs: refs}, toAccount)
	default:
		_, err = m.begin(ctx, Batch{Op: op, Account: account, Refs: refs})
	}
	return err
}

// MayDestroy is MayChange for a deletion. asks reports whether it takes a person's word.
func (m *Client) MayDestroy(ctx context.Context, account string, refs []mail.Ref) (asks bool, err error) {
	b, err := m.beginDestroy(ctx, Batch{Account: account, Refs: refs}, true)
	return err == nil && b.base().Policy.DestroyNeedsApproval(), err
}
