package mailbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	goimap "github.com/emersion/go-imap/v2"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/imap"
)

// MaxBatch bounds the messages one change may name.
const MaxBatch = 100

// batch is one change of messages in one folder.
type batch struct {
	*imapBox
	refs   []mail.Ref // as they were named; UIDValidity 0 means as it is now
	uids   []uint32   // of these, each once
	folder string
	out    *Changed
	sent   bool // a command has left that does not do the same when it is repeated
}

// begin checks what is named: messages of one folder of an account that may be
// changed.
func (m *Client) begin(ctx context.Context, op, account string, refs []mail.Ref) (*batch, error) {
	x, err := m.openIMAP(ctx, op, account, "flags and no folders", mail.AdvicePOP3Ack)
	if err != nil {
		return nil, err
	}
	if !x.policy.MayChange() {
		return nil, x.ReadOnly()
	}
	return x.batch(refs)
}

// checkCount bounds the messages of one command.
func (x *access) checkCount(refs []mail.Ref) error {
	if len(refs) == 0 || len(refs) > MaxBatch {
		return x.Invalid(fmt.Sprintf("A command takes 1 to %d messages.", MaxBatch), mail.AdviceSeveralCommands)
	}
	return nil
}

// batch checks what is named: messages of one folder of the account.
func (x *imapBox) batch(refs []mail.Ref) (*batch, error) {
	if err := x.checkCount(refs); err != nil {
		return nil, err
	}
	b := &batch{imapBox: x}
	for _, r := range refs {
		r.Folder = imap.FolderName(r.Folder)
		if r.Account != x.Account || r.Folder != imap.FolderName(refs[0].Folder) {
			return nil, x.Invalid("The messages are not all in one folder of one account.", mail.AdviceFolderByFolder)
		}
		if r.Protocol != mail.IMAP || r.UID == 0 {
			return nil, x.noMessage("")
		}
		b.refs = append(b.refs, r) // each is held to its UIDVALIDITY
		if !slices.Contains(b.uids, r.UID) {
			b.uids = append(b.uids, r.UID)
		}
	}
	b.folder = b.refs[0].Folder
	return b, x.checkFolder(b.folder)
}

// located is what is known of the messages of a batch: those that are there and
// that the policy shows.
type located struct {
	box    imap.Folder
	found  map[uint32]*fetched
	hidden bool // the policy hides one of them: for the audit alone
}

// reason is what the audit is told of messages that were not found.
func (l *located) reason() string {
	if l.hidden {
		return "filtered"
	}
	return ""
}

// locate opens the folder and looks at the messages, in one round trip. It tells
// nothing about a message that the policy hides.
func (b *batch) locate(s *imap.Session, writable bool, w wanted) (*located, error) {
	w.header = !b.policy.ShowsAll()
	// Opened anew each time: what comes next may not reach another message, and
	// not every server tells a session that its folder was made anew.
	var opening *imap.Examining
	var fetch *imap.Fetching
	s.Together(func() {
		if writable {
			opening = s.Select(b.folder)
		} else {
			opening = s.Examine(b.folder)
		}
		fetch = startWindow(s, imap.UIDs(b.uids...), w)
	})
	box, err := opening.Wait()
	data, fetchErr := fetch.Wait()
	if err != nil {
		return nil, err
	}
	for _, r := range b.refs {
		if r.UIDValidity != 0 && r.UIDValidity != box.UIDValidity {
			return nil, b.madeAnew(mail.AdviceListAgain)
		}
	}
	if refusedByServer(fetchErr) && !b.policy.ShowsAll() {
		data, fetchErr = nil, nil
	}
	if fetchErr != nil {
		return nil, fetchErr
	}
	l := &located{box: box, found: map[uint32]*fetched{}}
	got := b.readWindow(box, data)
	for i := range got {
		switch g := &got[i]; {
		case !slices.Contains(b.uids, g.ref.UID):
		case g.visible(b.policy):
			l.found[g.ref.UID] = g
		default:
			l.hidden = true
		}
	}
	b.out = &Changed{Account: b.account.Name, Folder: b.folder}
	return l, nil
}

// present returns the UIDs that were found, in the order they were named, and
// makes an issue of each other. It is an error when there is none.
func (b *batch) present(l *located) ([]uint32, error) {
	var uids []uint32
	for _, u := range b.uids {
		if l.found[u] != nil {
			uids = append(uids, u)
			continue
		}
		e := b.noMessage("")
		b.out.Issues = append(b.out.Issues, b.issue(l, u, e))
	}
	if len(uids) == 0 {
		return nil, b.noMessage(l.reason())
	}
	return uids, nil
}

func (b *batch) issue(l *located, uid uint32, e *mail.Error) mail.Issue {
	i := e.Issue()
	i.UID, i.MessageID = uid, b.ref(l, uid).String()
	return i
}

func (b *batch) ref(l *located, uid uint32) mail.Ref {
	return b.refTo(b.folder, l.box.UIDValidity, uid)
}

// change lends a session that may change what grant allows. Changes of one account
// happen one after the other, in the order they were asked for.
func (x *imapBox) change(ctx context.Context, folder string, grant imap.Grant, fn func(ctx context.Context, s *imap.Session) error) error {
	select {
	case x.pool.turn <- struct{}{}:
		defer func() { <-x.pool.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	return x.pool.Change(ctx, folder, grant, fn)
}

// runFound is run for the messages that are there: it locates them, and gives fn
// their UIDs in the order they were named.
func (b *batch) runFound(ctx context.Context, grant imap.Grant, writable bool, fn func(ctx context.Context, s *imap.Session, l *located, uids []uint32) error) (*Changed, error) {
	return b.run(ctx, grant, func(ctx context.Context, s *imap.Session) error {
		l, err := b.locate(s, writable, wanted{})
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

// run makes the change and says what became of it.
func (b *batch) run(ctx context.Context, grant imap.Grant, fn func(ctx context.Context, s *imap.Session) error) (*Changed, error) {
	err := b.wrap(ctx, b.change(ctx, b.folder, grant, fn))
	if err != nil && b.out != nil && len(b.out.Messages) > 0 {
		// Something has happened, and whoever asked has to know what.
		var e *mail.Error
		if errors.As(err, &e) {
			b.out.Issues = append(b.out.Issues, e.Issue())
			return b.out, nil
		}
	}
	if b.sent && err != nil && !refusedByServer(err) {
		return nil, b.undecided(err, "Whether the messages are at their new place is not known.", mail.AdviceLookIntoBoth)
	}
	if err != nil {
		return nil, err
	}
	return b.out, nil
}

// MarkRead sets \Seen and nothing else (004 section 3). Either all the messages
// are there, or none is touched. One that the server does not mark is an Issue.
func (m *Client) MarkRead(ctx context.Context, account string, refs []mail.Ref) (*Changed, error) {
	b, err := m.begin(ctx, "mail mark-read", account, refs)
	if err != nil {
		return nil, err
	}
	return b.run(ctx, imap.MarkSeen, func(_ context.Context, s *imap.Session) error {
		if done, err := b.storeAtOnce(s, goimap.StoreFlagsAdd, goimap.FlagSeen); done || err != nil {
			return err
		}
		l, err := b.locate(s, true, wanted{})
		if err != nil {
			return err
		}
		if len(l.found) < len(b.uids) {
			e := b.noMessage(l.reason())
			if len(b.uids) > 1 {
				e.Message = fmt.Sprintf("There are no such messages: UID %s. None was marked.", joinUIDs(b.uids, l.found))
			}
			return e
		}
		return b.store(s, l, b.uids, []goimap.Flag{goimap.FlagSeen}, nil)
	})
}

// joinUIDs lists those of the UIDs that were not found.
func joinUIDs(uids []uint32, found map[uint32]*fetched) string {
	var missing []string
	for _, u := range uids {
		if found[u] == nil {
			missing = append(missing, fmt.Sprint(u))
		}
	}
	return strings.Join(missing, ", ")
}

// storeAtOnce changes one message in a single round trip, where the folder was
// SELECTed a short while ago and nothing is known to have changed: if the message
// is there, the answer says so. It is for flags alone, which can be set back: what
// cannot be undone opens the folder anew, since not every server tells a session
// at once that its folder was made anew. done is false when the message has to be
// looked for.
func (b *batch) storeAtOnce(s *imap.Session, op goimap.StoreFlagsOp, flags ...goimap.Flag) (done bool, err error) {
	box, ok := s.Unchanged(b.folder, true)
	if !ok || len(b.refs) != 1 || b.refs[0].UIDValidity != box.UIDValidity || !b.policy.ShowsAll() {
		return false, nil
	}
	l := &located{box: box}
	b.out = &Changed{Account: b.account.Name, Folder: b.folder, Attempted: 1}
	data, err := s.Store(imap.UIDs(b.uids...), op, flags).Wait()
	if refusedByServer(err) || err == nil && len(data) == 0 {
		return false, nil // it came after the folder was opened, or is not there
	}
	if err != nil {
		return false, err
	}
	if left := undone(data[0].Flags, op, flags); len(left) > 0 {
		b.out.Issues = append(b.out.Issues, b.notStored(l, b.uids[0], op, left))
		return true, nil
	}
	b.out.Succeeded = 1
	b.out.Messages = []ChangedMessage{{Ref: b.ref(l, b.uids[0]), Flags: toldFlags(data[0].Flags),
		Added: op == goimap.StoreFlagsAdd, Removed: op == goimap.StoreFlagsDel}}
	return true, nil
}

// undone returns those flags of a step that a message has although they were
// removed, or has not although they were added, by the flags that the server told
// after the step. A server that told none says nothing.
func undone(told []goimap.Flag, op goimap.StoreFlagsOp, step []goimap.Flag) []goimap.Flag {
	if told == nil {
		return nil
	}
	var left []goimap.Flag
	for _, f := range step {
		if hasFlag(told, f) != (op == goimap.StoreFlagsAdd) {
			left = append(left, f)
		}
	}
	return left
}

func hasFlag[F ~string](flags []F, flag goimap.Flag) bool {
	return slices.ContainsFunc(flags, func(f F) bool { return strings.EqualFold(string(f), string(flag)) })
}

// notStored is the issue of a message whose flags the server left as they were,
// and yet said OK.
func (b *batch) notStored(l *located, uid uint32, op goimap.StoreFlagsOp, left []goimap.Flag) mail.Issue {
	verb := "set"
	if op == goimap.StoreFlagsDel {
		verb = "remove"
	}
	names := make([]string, len(left))
	for i, f := range left {
		names[i] = string(f)
	}
	return b.refused(l, uid, imap.StageStore, fmt.Sprintf("The server did not %s %s; it may not allow it.", verb, strings.Join(names, ", ")))
}

// refused is the issue of a message with which the server did not do as it was
// asked.
func (b *batch) refused(l *located, uid uint32, stage string, message string) mail.Issue {
	return mail.Issue{Kind: mail.KindRefused, Stage: stage, UID: uid, MessageID: b.ref(l, uid).String(), Message: message}
}

// toldFlags is flagsOf for flags that the server may not have told.
func toldFlags(flags []goimap.Flag) []string {
	if flags == nil {
		return nil
	}
	return flagsOf(flags)
}

// store adds flags, then removes flags, and reports what became of each message.
func (b *batch) store(s *imap.Session, l *located, uids []uint32, add, remove []goimap.Flag) error {
	changed := make([]ChangedMessage, len(uids))
	for i, u := range uids {
		changed[i] = ChangedMessage{Ref: b.ref(l, u), Flags: l.found[u].flags}
	}
	var broken error
	for _, step := range []struct {
		op    goimap.StoreFlagsOp
		flags []goimap.Flag
		done  func(*ChangedMessage)
	}{
		{goimap.StoreFlagsAdd, add, func(c *ChangedMessage) { c.Added = true }},
		{goimap.StoreFlagsDel, remove, func(c *ChangedMessage) { c.Removed = true }},
	} {
		if len(step.flags) == 0 || broken != nil {
			continue
		}
		b.out.Attempted += len(uids)
		s.Renew()
		data, err := s.Store(imap.UIDs(uids...), step.op, step.flags).Wait()
		if err != nil {
			broken = err
			for i := range changed {
				changed[i].Flags = nil
			}
			continue
		}
		if slices.ContainsFunc(changed, func(c ChangedMessage) bool {
			d := dataOf(data, c.Ref.UID)
			return (d == nil || d.Flags == nil) && !alreadySo(c.Flags, step.op, step.flags)
		}) {
			// Some servers tell nothing of a flag that they did not set, where a
			// right is missing, and say OK.
			if now, err := look(s, uids); err == nil {
				data = now
			}
		}
		for i := range changed {
			c := &changed[i]
			if !alreadySo(c.Flags, step.op, step.flags) {
				c.Flags = nil // what was told before no longer holds
			}
			if d := dataOf(data, c.Ref.UID); d != nil && d.Flags != nil {
				c.Flags = flagsOf(d.Flags)
				if left := undone(d.Flags, step.op, step.flags); len(left) > 0 {
					b.out.Issues = append(b.out.Issues, b.notStored(l, c.Ref.UID, step.op, left))
					continue
				}
			}
			b.out.Succeeded++
			step.done(c)
		}
	}
	// One of which nothing was done is an issue, or has broken off with all.
	b.out.Messages = slices.DeleteFunc(changed, func(c ChangedMessage) bool { return !c.Added && !c.Removed })
	return broken
}

// alreadySo reports whether a step changes nothing, of which some servers say
// nothing.
func alreadySo(flags []string, op goimap.StoreFlagsOp, step []goimap.Flag) bool {
	return !slices.ContainsFunc(step, func(f goimap.Flag) bool { return hasFlag(flags, f) != (op == goimap.StoreFlagsAdd) })
}

// SetFlags adds and removes flags of messages (001 section 7). A flag is a keyword
// or a system flag; \Recent cannot be set, and \Deleted cannot be added: that is
// Delete. A message that is not there is an Issue, and so is one whose flags the
// server leaves as they were.
func (m *Client) SetFlags(ctx context.Context, account string, refs []mail.Ref, add, remove []string) (*Changed, error) {
	b, err := m.begin(ctx, "mail flags", account, refs)
	if err != nil {
		return nil, err
	}
	adding, err := b.flags(add, true)
	if err != nil {
		return nil, err
	}
	removing, err := b.flags(remove, false)
	if err != nil {
		return nil, err
	}
	if len(adding)+len(removing) == 0 {
		return nil, b.Invalid("No flag is named.", mail.AdviceNameFlag)
	}
	return b.run(ctx, imap.ChangeFlags, func(_ context.Context, s *imap.Session) error {
		op, one := goimap.StoreFlagsAdd, adding
		if len(adding) == 0 {
			op, one = goimap.StoreFlagsDel, removing
		}
		if len(adding) == 0 || len(removing) == 0 {
			if done, err := b.storeAtOnce(s, op, one...); done || err != nil {
				return err
			}
		}
		l, err := b.locate(s, true, wanted{})
		if err != nil {
			return err
		}
		uids, err := b.present(l)
		if err != nil {
			return err
		}
		return b.store(s, l, uids, adding, removing)
	})
}

// MaxFlags bounds the flags one change adds, and those it removes (001 section 7).
const MaxFlags = 20

func (b *batch) flags(names []string, adding bool) ([]goimap.Flag, error) {
	if len(names) > MaxFlags {
		return nil, b.Invalid(fmt.Sprintf("At most %d flags can be changed at once.", MaxFlags), mail.AdviceSeveralCommands)
	}
	var flags []goimap.Flag
	for _, n := range names {
		f := canonicalFlag(n)
		switch {
		case !imap.ValidFlag(f):
			return nil, b.Invalid("A flag is a keyword without spaces, or a system flag such as \\Flagged.", mail.AdviceFlagForm)
		case strings.EqualFold(f, `\Recent`):
			return nil, b.Invalid("The flag \\Recent belongs to the server.", mail.AdviceOtherFlag)
		case adding && f == string(goimap.FlagDeleted):
			return nil, b.Invalid("The flag \\Deleted is not set this way.", mail.AdviceDelete)
		}
		if !slices.Contains(flags, goimap.Flag(f)) {
			flags = append(flags, goimap.Flag(f))
		}
	}
	return flags, nil
}
