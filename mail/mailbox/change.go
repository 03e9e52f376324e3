package mailbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/imap"
	"github.com/postern-mail/postern/mail/mailbox/internal/fetch"
)

// MaxBatch bounds the messages one change may name, and MaxPiece those of one that a person
// decided about, or that is a piece of something.
const MaxBatch, MaxPiece = 100, 500

// Batch is messages of one folder of an account, and what is done to them.
type Batch struct {
	Op, Account string // Op names it in errors, such as "mail move"
	Refs        []mail.Ref
	mail.Action
	Of       string // what it is a piece of, see mail.Change; empty for nothing
	Approved bool   // a person decided about it, or makes it
	Sent     bool   // it is part of a sending, and never taken back
}

// piece reports whether it was decided before which messages are meant: those that are gone by
// now are left alone, and no bound of a command holds.
func (b *Batch) piece() bool { return b.Of != "" || b.Approved }

// batch is changes by IMAP.
type batch struct {
	*imapBox
	asked  Batch
	refs   []mail.Ref // as they were named; UIDValidity 0 means as it is now
	uids   []uint32   // those of refs, each once
	folder string
	files  bool // they are put into another folder
	out    *Changed
	copied imap.Copied // where they are now, whatever the policy tells of that
	sent   bool        // a command was sent that must not be repeated
	unsure bool        // it is not known of some whether they were changed
}

// begin checks the references: messages of one folder of an account that may be changed.
func (m *Client) begin(ctx context.Context, of Batch) (changes, error) {
	x, err := m.openToChange(ctx, of.Op, of.Account)
	if err != nil {
		return nil, err
	}
	return x.changes(of)
}

// Do makes a change, which is in the journal, see mail.Journal. Where a person has to decide
// first the error is KindAsks, and nothing was changed. A message that does not exist, or that
// the server leaves as it was, is an Issue; where nothing is left it is an error.
//
// DoMove moves to another folder of the account (001 section 9): with MOVE where the server has
// it, else by copying and expunging exactly those whose copies it has confirmed. A server that
// can do neither moves nothing. DoTrash and DoArchive do so to the account's folder of that use,
// which is in the answer; what is there already is refused. DoCopy copies all or none (001
// section 8). DoFlags adds and removes flags (001 section 7). DoMarkRead sets \Seen and nothing
// else (004 section 3): where a message does not exist none is changed, unless the batch has Of
// or Approved.
func (m *Client) Do(ctx context.Context, of Batch) (*Changed, error) {
	b, err := m.begin(ctx, of)
	if err != nil {
		return nil, err
	}
	return b.do(ctx)
}

// MarkRead, SetFlags, Move, Trash and Copy, within the account, are Do.
func (m *Client) MarkRead(ctx context.Context, account string, refs []mail.Ref) (*Changed, error) {
	return m.Do(ctx, Batch{Op: "mail mark-read", Account: account, Refs: refs, Action: mail.Action{Do: mail.DoMarkRead}})
}

// SetFlags is Do of DoFlags.
func (m *Client) SetFlags(ctx context.Context, account string, refs []mail.Ref, add, remove []string) (*Changed, error) {
	return m.Do(ctx, Batch{Op: "mail flags", Account: account, Refs: refs, Action: mail.Action{Do: mail.DoFlags, Add: add, Remove: remove}})
}

// Move is Do of DoMove.
func (m *Client) Move(ctx context.Context, account string, refs []mail.Ref, toFolder string) (*Changed, error) {
	return m.Do(ctx, Batch{Op: "mail move", Account: account, Refs: refs, Action: mail.Action{Do: mail.DoMove, To: toFolder}})
}

// Trash is Do of DoTrash.
func (m *Client) Trash(ctx context.Context, account string, refs []mail.Ref) (*Changed, error) {
	return m.Do(ctx, Batch{Op: "mail trash", Account: account, Refs: refs, Action: mail.Action{Do: mail.DoTrash}})
}

func (b *batch) do(ctx context.Context) (*Changed, error) {
	switch b.asked.Do {
	case mail.DoMarkRead:
		return b.flag(ctx, imap.MarkSeen, storeStep{flags: []string{fetch.FlagSeen}})
	case mail.DoFlags:
		steps, err := b.flagSteps()
		if err != nil {
			return nil, err
		}
		return b.flag(ctx, imap.ChangeFlags, steps...)
	case mail.DoTrash, mail.DoArchive:
		return b.runFound(ctx, imap.MoveMessages, true, b.moveByRole)
	case mail.DoMove, mail.DoCopy:
		to, err := b.folderName(b.asked.To)
		if err != nil {
			return nil, err
		}
		if b.asked.Do == mail.DoCopy {
			return b.copy(ctx, to)
		}
		return b.move(ctx, to)
	}
	return nil, fmt.Errorf("mailbox: %q is nothing that is done to messages", b.asked.Do)
}

// openToChange opens an account whose mailbox may be changed.
func (m *Client) openToChange(ctx context.Context, op, account string) (changer, error) {
	b, err := with[changer](ctx, m, op, account, "no flags and no folders", mail.AdvicePOP3Read)
	if err == nil && !b.base().Policy.MayFile() {
		err = b.base().ReadOnly(&b.base().account)
	}
	return b, err
}

// checkCount bounds the messages of one command.
func (x *access) checkCount(refs []mail.Ref, most int) error {
	if len(refs) == 0 || len(refs) > most {
		return x.Invalid(fmt.Sprintf("A command takes 1 to %d messages.", most), mail.AdviceSeveralCommands)
	}
	return nil
}

func (x *imapBox) changes(of Batch) (changes, error) { return x.batch(of) }

// batch checks the references: messages of one folder of the account.
func (x *imapBox) batch(of Batch) (*batch, error) {
	most, refs := MaxBatch, of.Refs
	if of.piece() {
		most = MaxPiece
	}
	if err := x.checkCount(refs, most); err != nil {
		return nil, err
	}
	b := &batch{imapBox: x, asked: of}
	for _, r := range refs {
		r.Folder = imap.FolderName(r.Folder)
		if r.Account != x.Account || r.Folder != imap.FolderName(refs[0].Folder) {
			return nil, x.Invalid("The messages are not all in one folder of one account.", mail.AdviceFolderByFolder)
		}
		if r.Protocol != mail.IMAP || r.UID == 0 {
			return nil, x.NoMessage("")
		}
		b.refs = append(b.refs, r) // each is held to its UIDVALIDITY
		if !slices.Contains(b.uids, r.UID) {
			b.uids = append(b.uids, r.UID)
		}
	}
	var err error
	b.folder, err = x.folderName(refs[0].Folder)
	return b, err
}

// located is the result of locate: the messages of a batch that exist and that the policy
// shows.
type located struct {
	box    imap.Folder
	found  map[uint32]*fetch.Message
	hidden bool // the policy hides one of them; only for the audit
	spaces imap.Namespaces
}

// reason is the audit's reason for messages that were not found.
func (l *located) reason() string {
	if l.hidden {
		return "filtered"
	}
	return ""
}

// locate opens the folder and looks at the messages, in one round trip. It reveals nothing
// about a message that the policy hides.
func (b *batch) locate(s *imap.Session, writable bool, w fetch.Wanted) (*located, error) {
	w.Header = !b.Policy.ShowsAll()
	// The folder is opened each time: the change must not reach another message, and not every
	// server tells a session that its folder was replaced.
	var opening *imap.Examining
	var fetching *imap.Fetching
	var telling *imap.Pending[imap.Namespaces]
	learned := func() error { return nil }
	if b.files {
		b.beforeRoles(s)
	}
	s.Together(func() {
		if telling = s.Namespaces(); b.files {
			learned = b.learnRoles(s)
		}
		if writable {
			opening = s.Select(b.folder)
		} else {
			opening = s.Examine(b.folder)
		}
		fetching = s.Fetch(imap.UIDs(b.uids...), w.Items())
	})
	box, err := opening.Wait()
	data, fetchErr := fetching.Wait()
	spaces, spacesErr := telling.Wait()
	if err = cmp.Or(err, learned(), spacesErr); err != nil {
		return nil, err
	}
	for _, r := range b.refs {
		if r.UIDValidity != 0 && r.UIDValidity != box.UIDValidity {
			return nil, b.MadeAnew(mail.AdviceListAgain)
		}
	}
	if imap.Refused(fetchErr) && !b.Policy.ShowsAll() {
		data, fetchErr = nil, nil
	}
	if fetchErr != nil {
		return nil, fetchErr
	}
	l := &located{box: box, found: map[uint32]*fetch.Message{}, spaces: spaces}
	got := b.Window(box, data)
	for i := range got {
		switch g := &got[i]; {
		case !slices.Contains(b.uids, g.Ref.UID):
		case b.Policy.Sees(g):
			l.found[g.Ref.UID] = g
		default:
			l.hidden = true
		}
	}
	b.out = &Changed{Account: b.account.Name, Folder: b.folder}
	return l, nil
}

// present returns the UIDs that were found, in the order they were named, and adds an issue
// for every other. If no message was found, it returns an error.
func (b *batch) present(l *located) ([]uint32, error) {
	var uids []uint32
	for _, u := range b.uids {
		if l.found[u] != nil {
			uids = append(uids, u)
			continue
		}
		e := b.NoMessage(l.reason())
		b.out.Issues = append(b.out.Issues, b.issue(l, u, e))
	}
	if len(uids) == 0 {
		return nil, b.NoMessage(l.reason())
	}
	return uids, nil
}

// missing names the messages of a batch that do not exist. then says what that meant for the
// others.
func (b *batch) missing(l *located, then string) error {
	e := b.NoMessage(l.reason())
	if len(b.uids) == 1 {
		return e
	}
	var missing []string
	for _, u := range b.uids {
		if l.found[u] == nil {
			missing = append(missing, fmt.Sprint(u))
		}
	}
	e.Message = fmt.Sprintf("There are no such messages: UID %s. %s", strings.Join(missing, ", "), then)
	return e
}

func (b *batch) issue(l *located, uid uint32, e *mail.Error) mail.Issue {
	i := e.Issue()
	i.UID, i.MessageID = uid, b.ref(l, uid).String()
	return i
}

func (b *batch) ref(l *located, uid uint32) mail.Ref {
	return b.RefTo(b.folder, l.box.UIDValidity, uid)
}

// change lends a session that may make the changes grant allows. Changes of one account
// happen one after the other, in the order they were asked for.
func (x *imapBox) change(ctx context.Context, folder string, grant imap.Grant, fn func(ctx context.Context, s *imap.Session) error) error {
	select {
	case x.pool.turn <- struct{}{}:
		defer func() { <-x.pool.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	return x.pool.Change(ctx, folder, grant, func(ctx context.Context, s *imap.Session) error {
		if folder != "" {
			if err := x.findOwn(s, folder); err != nil {
				return err
			}
		}
		return fn(ctx, s)
	})
}

// runFound locates the messages, then calls run: fn gets the UIDs of those that exist, in
// the order they were named.
func (b *batch) runFound(ctx context.Context, grant imap.Grant, writable bool, fn func(ctx context.Context, s *imap.Session, l *located, uids []uint32) error) (*Changed, error) {
	b.files = grant == imap.CopyMessages || grant == imap.MoveMessages
	return b.run(ctx, grant, func(ctx context.Context, s *imap.Session) error {
		l, err := b.locate(s, writable, identified)
		if err == nil && grant != imap.CopyMessages {
			err = b.mayTouch(l.spaces, b.folder)
		}
		if err != nil {
			return err
		}
		uids, err := b.present(l)
		if err != nil {
			return err
		}
		return fn(ctx, s, l, uids)
	})
}

// run makes the change and returns the outcome.
func (b *batch) run(ctx context.Context, grant imap.Grant, fn func(ctx context.Context, s *imap.Session) error) (*Changed, error) {
	err := b.inFolder(ctx, b.folder, b.change(ctx, b.folder, grant, fn))
	if err != nil && b.out != nil && len(b.out.Messages) > 0 {
		// Some messages were changed: the caller has to know which.
		var e *mail.Error
		if errors.As(err, &e) {
			b.out.Issues = append(b.out.Issues, e.Issue())
			return b.out, nil
		}
	}
	if b.sent && err != nil && !imap.Refused(err) {
		return nil, b.undecided(err, "Whether the messages are at their new place is not known.", mail.AdviceLookIntoBoth)
	}
	if err != nil {
		return nil, err
	}
	return b.out, nil
}

// storeStep is one STORE.
type storeStep struct {
	remove bool // else they are added
	flags  []string
}

// undone returns the flags that a message still has although they were removed, or lacks
// although they were added, by its flags after the step.
func undone(now []string, step storeStep) (left []string) {
	for _, f := range step.flags {
		if fetch.HasFlag(now, f) == step.remove {
			left = append(left, f)
		}
	}
	return left
}

// flag runs the steps one after the other.
func (b *batch) flag(ctx context.Context, grant imap.Grant, steps ...storeStep) (*Changed, error) {
	c := mail.Change{Kind: mail.ChangeFlags}
	for _, step := range steps {
		if step.remove {
			c.Remove = step.flags
		} else {
			c.Add = step.flags
		}
	}
	return b.run(ctx, grant, func(ctx context.Context, s *imap.Session) error {
		l, err := b.locate(s, true, identified)
		if err == nil {
			err = b.mayTouch(l.spaces, b.folder)
		}
		if err != nil {
			return err
		}
		if b.asked.Do == mail.DoMarkRead && !b.asked.piece() && len(l.found) < len(b.uids) {
			return b.missing(l, "None was marked.")
		}
		uids, err := b.present(l)
		if err != nil {
			return err
		}
		return b.record(ctx, l, uids, c, func() error { return b.store(s, l, uids, steps) })
	})
}

// stored notes that a step was done, unless flags that the server sent since show that it
// was not.
func (b *batch) stored(l *located, c *ChangedMessage, step storeStep) bool {
	if left := undone(c.Flags, step); c.Flags != nil && len(left) > 0 {
		b.out.Issues = append(b.out.Issues, b.notStored(l, c.Ref.UID, step.remove, left))
		return false
	}
	b.out.Succeeded++
	c.Added, c.Removed = c.Added || !step.remove, c.Removed || step.remove
	return true
}

// notStored is the issue of a message whose flags the server did not change although it
// said OK.
func (b *batch) notStored(l *located, uid uint32, remove bool, left []string) mail.Issue {
	verb := "set"
	if remove {
		verb = "remove"
	}
	return b.refused(l, uid, imap.StageStore, fmt.Sprintf("The server did not %s %s; it may not allow it.", verb, strings.Join(left, ", ")))
}

// refused is the issue of a message for which the server refused the command.
func (b *batch) refused(l *located, uid uint32, stage string, message string) mail.Issue {
	return mail.Issue{Kind: mail.KindRefused, Stage: stage, UID: uid, MessageID: b.ref(l, uid).String(), Message: message}
}

// store makes the steps, and reports the outcome of each message.
func (b *batch) store(s *imap.Session, l *located, uids []uint32, steps []storeStep) (broken error) {
	changed := make([]ChangedMessage, len(uids))
	for i, u := range uids {
		changed[i] = ChangedMessage{Ref: b.ref(l, u), Flags: l.found[u].Flags}
	}
	for _, step := range steps {
		b.out.Attempted += len(uids)
		s.Renew()
		data, err := s.Store(imap.UIDs(uids...), step.remove, step.flags).Wait()
		if err != nil {
			broken = err
			for i := range changed {
				changed[i].Flags = nil
			}
			break
		}
		if slices.ContainsFunc(changed, func(c ChangedMessage) bool {
			d := fetch.DataOf(data, c.Ref.UID)
			return (d == nil || d.Flags == nil) && len(undone(c.Flags, step)) > 0
		}) {
			// Where a right is missing, some servers do not set the flag, say OK and report
			// no flags.
			if now, err := look(s, uids); err == nil {
				data = now
			}
		}
		for i := range changed {
			c := &changed[i]
			if d := fetch.DataOf(data, c.Ref.UID); d != nil && d.Flags != nil {
				c.Flags = fetch.Flags(d.Flags)
			} else if len(undone(c.Flags, step)) > 0 {
				c.Flags = nil // the flags from before no longer hold
			}
			b.stored(l, c, step)
		}
	}
	// A message without any completed step is an issue, or was cut off with all others.
	b.out.Messages = slices.DeleteFunc(changed, func(c ChangedMessage) bool { return !c.Added && !c.Removed })
	return broken
}

// flagSteps are the STOREs of an action of DoFlags. A flag is a keyword or a system flag; \Recent
// and \Draft cannot be set, and \Deleted cannot be added.
func (b *batch) flagSteps() (steps []storeStep, err error) {
	for i, names := range [][]string{b.asked.Add, b.asked.Remove} {
		step := storeStep{remove: i == 1}
		if step.flags, err = b.flags(names, !step.remove); err != nil {
			return nil, err
		}
		if len(step.flags) > 0 {
			steps = append(steps, step)
		}
	}
	if len(steps) == 0 {
		return nil, b.Invalid("No flag is named.", mail.AdviceFlags)
	}
	return steps, nil
}

// MaxFlags bounds the flags one change adds, and those it removes (001 section 7).
const MaxFlags = 20

func (b *batch) flags(names []string, adding bool) ([]string, error) {
	if len(names) > MaxFlags {
		return nil, b.Invalid(fmt.Sprintf("At most %d flags can be changed at once.", MaxFlags), mail.AdviceSeveralCommands)
	}
	var flags []string
	for _, n := range names {
		f := fetch.CanonicalFlag(n)
		switch {
		case !imap.ValidFlag(f):
			return nil, b.Invalid("A flag is a keyword without spaces, or a system flag such as \\Flagged.", mail.AdviceFlags)
		case strings.EqualFold(f, `\Recent`):
			return nil, b.Invalid("The flag \\Recent belongs to the server.", mail.AdviceFlags)
		case strings.EqualFold(f, fetch.FlagDraft):
			return nil, b.Invalid("The flag \\Draft belongs to drafts.", mail.AdviceFlags)
		case adding && f == fetch.FlagDeleted:
			return nil, b.Invalid("The flag \\Deleted is not set this way.", mail.AdviceDelete)
		}
		if !slices.Contains(flags, f) {
			flags = append(flags, f)
		}
	}
	return flags, nil
}
