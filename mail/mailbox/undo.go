package mailbox

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/imap"
	"github.com/postern-mail/postern/mail/mailbox/internal/fetch"
)

// UndoQuery selects the changes that are to be taken back: those of an ID, those since a moment, or
// the last.
type UndoQuery struct {
	ID      string    // of a change, or of what changes are Of: a plan, a command, an undo
	Since   time.Time // begun at or after
	Last    bool      // what the newest command changed of which something is left to take back, and that took nothing back itself
	By      string    // only of this principal; empty means everybody's that the caller may know of
	Account string    // empty means any
	Owner   bool      // for the person whose mail it is, who is not held to modes and folders
}

// Undone is what came of an undo. A message is in Restored, in Left, in neither where it is as it
// was already, or in both where only its flags came back.
type Undone struct {
	Change   string // takes the undo back; empty where it changed nothing
	Restored []Restored
	Left     []LeftAsItIs
	Err      *mail.Error // why it ended before its end; nil where it did not. Called again it goes on
}

// Restored is a message that was taken back.
type Restored struct {
	From    mail.Ref // where the change had left it
	Ref     mail.Ref // where it is now: From where it was not moved; without a UID where the server did not say
	Trashed bool     // it was made by the change, a copy or a draft, and is in the trash now
	Added   []string // flags that it had before
	Removed []string // flags that the change had added
	Kept    []string // flags that others set or removed since: those are left
}

// LeftAsItIs is a message that an undo left.
type LeftAsItIs struct {
	Ref    mail.Ref // where the change had left it; without a UID where the server did not say
	Change string   // the newest of the changes that it is about
	Why    LeftWhy
	Said   string // the server's words, with LeftRefused; else empty
}

// LeftWhy is why an undo left a message.
type LeftWhy string

// The reasons.
const (
	LeftGone       LeftWhy = "gone"        // others moved or deleted it since, or the policy hides it
	LeftChanged    LeftWhy = "changed"     // others changed since all that the change did: its flags
	LeftFolderGone LeftWhy = "folder_gone" // its folder, or the one that it was in, is gone
	LeftMadeAnew   LeftWhy = "made_anew"   // its folder is another one of this name, or the server counts it anew
	LeftNotCertain LeftWhy = "not_certain" // the server did not say where it went, and not exactly one message fits
	LeftSent       LeftWhy = "sent"        // it is part of a sending
	LeftRefused    LeftWhy = "refused"     // by the server, see Said
	LeftTakenBack  LeftWhy = "taken_back"  // already
	LeftNotAllowed LeftWhy = "not_allowed" // the account's mode or folder rules do not let the caller
	LeftNoTrash    LeftWhy = "no_trash"    // it was made by the change, and the account has no trash to put it into
	LeftUnknown    LeftWhy = "unknown"     // the connection was lost: it is taken back or not
	LeftUnreached  LeftWhy = "unreached"   // its account could not be reached, or the undo ended before; call it again
)

// Undo takes changes back, see UndoQuery. Per message it is all of the changes together that are
// taken back, newest first. A message that is not where the changes left it is not touched, and flags
// are set and removed only as far as the changes removed and set them. Nothing is deleted: what was
// made is put into the trash. An undo is a change like any other, so that it can be taken back. The
// error is KindInvalid where nothing is selected and KindNotFound where no change fits; where some
// was taken back it is in Undone.
func (m *Client) Undo(ctx context.Context, q UndoQuery) (*Undone, error) {
	u := &undoing{m: m, q: q, o: mail.Operation{Op: "mail undo", Account: q.Account}, out: &Undone{}, boxes: map[string]*imapBox{}}
	all, chosen, err := u.changes(ctx)
	if err != nil {
		return nil, err
	}
	seen := map[part]looked{}
	var tracks []*track
	for {
		var unknown []part
		if tracks, unknown = compose(all, func(c *mail.Change) bool { return chosen[c.ID] }, seen); len(unknown) == 0 {
			break
		}
		if err := u.look(ctx, all, unknown, seen); err != nil {
			return nil, err
		}
	}
	u.all = tracks
	u.twice()
	for _, kind := range [][]*undoStep{u.flagSteps(), u.moveSteps()} {
		for _, st := range kind {
			if u.out.Err == nil && ctx.Err() != nil {
				u.out.Err = u.o.AsError(u.o.Wrap(ctx, ctx.Err(), nil))
			}
			if u.out.Err != nil {
				break
			}
			u.take(ctx, st)
		}
	}
	u.settle(ctx)
	if u.out.Change == "" && u.out.Err != nil {
		return nil, u.out.Err
	}
	return u.out, nil
}

// changes are those that were selected, and the undos since, of which some may have taken them back.
func (u *undoing) changes(ctx context.Context) (all []mail.Change, chosen map[string]bool, err error) {
	q := mail.ChangeQuery{Principal: u.q.By, Account: u.q.Account, ID: u.q.ID, Since: u.q.Since}
	switch {
	case u.m.o.Journal == nil:
		return nil, nil, u.o.Failure(mail.KindUnsupported, "", "Changes are not recorded here, so none can be taken back.", "")
	case u.q.Last:
		q.Only, q.Limit = left, 1
		last, err := u.m.o.Journal.ChangesMade(ctx, q)
		if err != nil || len(last) == 0 {
			return nil, nil, cmp.Or(err, error(u.none()))
		}
		q.ID, q.Only, q.Limit = cmp.Or(last[0].Of, last[0].ID), nil, 0
	case u.q.ID == "" && u.q.Since.IsZero():
		return nil, nil, u.o.Invalid("It is not said what is to be taken back.", mail.AdviceNarrow)
	}
	if all, err = u.made(ctx, q); err != nil || len(all) == 0 {
		return nil, nil, cmp.Or(err, error(u.none()))
	}
	chosen = map[string]bool{}
	for i := range all {
		chosen[all[i].ID] = true
	}
	undos, err := u.made(ctx, mail.ChangeQuery{Account: u.q.Account, Since: all[len(all)-1].Begun,
		Only: func(c *mail.Change) bool { return c.Undoes && !chosen[c.ID] }})
	all = append(all, undos...)
	slices.SortFunc(all, func(a, b mail.Change) int { return strings.Compare(b.ID, a.ID) })
	return all, chosen, err
}

func (u *undoing) none() *mail.Error {
	return u.o.Failure(mail.KindNotFound, "", "There is no such change, or it is not in the journal any more.", "")
}

// left reports whether something of a change can be taken back that is no undo itself.
func left(c *mail.Change) bool {
	return !c.Sent && (!c.Undoes || c.Redoes) && slices.ContainsFunc(c.Messages, func(m mail.ChangeMessage) bool {
		return m.Back == "" && (m.Done || m.New != 0 || c.Ended.IsZero())
	})
}

// made is all that a query selects, the newest first.
func (u *undoing) made(ctx context.Context, q mail.ChangeQuery) (all []mail.Change, err error) {
	for {
		some, err := u.m.o.Journal.ChangesMade(ctx, q)
		if all = append(all, some...); err != nil || len(some) < mail.MaxChanges {
			return all, err
		}
		q.Before = some[len(some)-1].ID
	}
}

// undoing is an undo under way.
type undoing struct {
	m     *Client
	q     UndoQuery
	o     mail.Operation
	out   *Undone
	boxes map[string]*imapBox
	all   []*track
	done  float64 // messages, for the progress
}

// undoStep is messages of one folder for which the same is to be done.
type undoStep struct {
	flags  bool // set and remove flags; else they are moved
	made   bool // into the trash; else to the folder
	to     string
	tracks []*track
}

// twice leaves messages of which two would be the same.
func (u *undoing) twice() {
	at := map[place]*track{}
	for _, t := range u.all {
		if t.why != "" || t.now.uid == 0 {
			continue
		}
		if o := at[t.now]; o != nil {
			t.why, o.why = LeftNotCertain, LeftNotCertain
		}
		at[t.now] = t
	}
}

// redoes reports whether what was before the changes came of an undo.
func (t *track) redoes() bool { return t.oldest.Undoes && !t.oldest.Redoes }

// cut divides tracks into steps, each of messages that are in one folder.
func cut(all []*track, st undoStep) (steps []*undoStep) {
	for _, t := range all {
		n := len(steps) - 1
		if n < 0 || len(steps[n].tracks) == MaxPiece || !steps[n].tracks[0].now.sameFolder(t.now) ||
			steps[n].tracks[0].now.validity != t.now.validity || steps[n].tracks[0].redoes() != t.redoes() {
			one := st
			steps, n = append(steps, &one), n+1
		}
		steps[n].tracks = append(steps[n].tracks, t)
	}
	return steps
}

func byPlace(a, b place) int {
	return cmp.Or(strings.Compare(a.account, b.account), strings.Compare(a.mailbox, b.mailbox), strings.Compare(a.folder, b.folder), cmp.Compare(a.validity, b.validity))
}

func (u *undoing) flagSteps() []*undoStep {
	var all []*track
	for _, t := range u.all {
		if t.why == "" && len(t.flags) > 0 && !t.made {
			all = append(all, t)
		}
	}
	slices.SortStableFunc(all, func(a, b *track) int { return cmp.Or(byPlace(a.now, b.now), cmp.Compare(a.now.uid, b.now.uid)) })
	return cut(all, undoStep{flags: true})
}

// moveSteps are in the order that the messages had in the folder they come back to, unless that
// would be too many.
func (u *undoing) moveSteps() (steps []*undoStep) {
	to := map[place][]*track{}
	var all []place
	for _, t := range u.all {
		if t.why != "" || !t.moved() {
			continue
		}
		p := place{account: t.now.account, mailbox: t.now.mailbox}
		if !t.made {
			p.folder = t.then.folder
		}
		if to[p] == nil {
			all = append(all, p)
		}
		to[p] = append(to[p], t)
	}
	slices.SortFunc(all, byPlace)
	for _, p := range all {
		tracks := to[p]
		slices.SortStableFunc(tracks, func(a, b *track) int {
			if p.folder == "" {
				return cmp.Or(byPlace(a.now, b.now), cmp.Compare(a.now.uid, b.now.uid))
			}
			return cmp.Or(cmp.Compare(a.then.validity, b.then.validity), cmp.Compare(a.then.uid, b.then.uid))
		})
		st := undoStep{made: p.folder == "", to: p.folder}
		some := cut(tracks, st)
		if len(some) > maxInOrder+2*len(tracks)/MaxPiece {
			slices.SortStableFunc(tracks, func(a, b *track) int { return byPlace(a.now, b.now) })
			some = cut(tracks, st)
		}
		steps = append(steps, some...)
	}
	return steps
}

// maxInOrder bounds the steps that bring messages of several folders back into the order they had
// in one.
const maxInOrder = 50

// box opens an account, for what the caller may do there.
func (u *undoing) box(ctx context.Context, account string) (*imapBox, error) {
	if x := u.boxes[account]; x != nil {
		return x, nil
	}
	var b box
	var err error
	if u.q.Owner {
		b, err = u.m.open(ctx, u.o.Op, account)
	} else {
		b, err = u.m.openToChange(ctx, u.o.Op, account)
	}
	x, ok := b.(*imapBox)
	switch {
	case err == nil && !ok:
		err = u.none() // it was IMAP then
	case err == nil && u.q.Owner:
		a := x.account
		a.Mode, a.AllowIn, a.SubjectPattern, a.HideFolders = mail.ReadWrite, mail.AllowList{}, "", nil
		x.Policy.Policy, err = mail.CompilePolicy(&a)
	}
	if err != nil {
		return nil, err
	}
	u.boxes[account] = x
	return x, nil
}

// take carries a step out, and notes of each of its messages what became of it.
func (u *undoing) take(ctx context.Context, st *undoStep) {
	st.tracks = slices.DeleteFunc(st.tracks, func(t *track) bool { return t.why != "" })
	if len(st.tracks) == 0 {
		return
	}
	at := st.tracks[0].now
	x, err := u.box(ctx, at.account)
	if err != nil {
		u.leave(st.tracks, false, err)
		return
	}
	if x.account.Mailbox() != at.mailbox {
		u.why(st.tracks, LeftMadeAnew, "")
		return
	}
	b := &batch{imapBox: x, folder: at.folder, files: !st.flags, asked: Batch{Op: u.o.Op, Account: at.account, Of: u.out.Change, Approved: u.q.Owner}}
	for _, t := range st.tracks {
		b.uids = append(b.uids, t.now.uid)
	}
	b.refs = []mail.Ref{x.RefTo(at.folder, at.validity, at.uid)}
	grant := imap.MoveMessages
	if st.flags {
		grant = imap.ChangeFlags
	}
	err = x.inFolder(ctx, at.folder, x.change(ctx, at.folder, grant, func(ctx context.Context, s *imap.Session) error {
		return u.inStep(ctx, b, s, st)
	}))
	if err != nil {
		u.leave(st.tracks, b.sent, err)
	}
	u.done += float64(len(st.tracks))
	x.Tell(u.done, float64(len(u.all)), "taking back messages")
}

// inStep is take in its folder.
func (u *undoing) inStep(ctx context.Context, b *batch, s *imap.Session, st *undoStep) error {
	if u.q.Owner {
		s.Reveal()
	}
	l, err := b.locate(s, true, identified)
	to := st.to
	if err == nil && st.made {
		if to, err = b.knownFor(s, "trash"); err == nil && to == "" {
			to, err = b.folderFor(s, "trash")
		}
		if err == nil && to == "" {
			u.why(st.tracks, LeftNoTrash, "")
			return nil
		}
	}
	if err == nil && !u.q.Owner {
		err = b.mayTouch(l.spaces, b.folder)
		if err == nil && !st.flags {
			err = b.mayTouch(l.spaces, to)
		}
	}
	if err != nil || to == b.folder { // what was made may be in the trash already
		return err
	}
	var there []*track
	for _, t := range st.tracks {
		g := l.found[t.now.uid]
		if g == nil {
			t.why = LeftGone
			continue
		}
		if is := identity(g); !identical(&is, &t.is) {
			t.why = LeftNotCertain
			continue
		}
		t.current = g.Flags
		there = append(there, t)
	}
	if st.flags {
		return u.setBack(ctx, b, s, l, there)
	}
	return u.moveBack(ctx, b, s, l, there, to, st.made)
}

// again is the batch of another change of the same step.
func (u *undoing) again(b *batch) *batch {
	one := *b
	one.asked.Of = u.out.Change
	one.out = &Changed{Account: b.account.Name, Folder: b.folder}
	return &one
}

// setBack sets and removes flags as they were before the changes, where they are as the changes left
// them.
func (u *undoing) setBack(ctx context.Context, b *batch, s *imap.Session, l *located, there []*track) error {
	type change struct{ add, remove []string }
	groups, all := map[string][]*track{}, map[string]change{}
	for _, t := range there {
		var c change
		for _, f := range t.flags {
			switch {
			case fetch.HasFlag(t.current, f.name) == f.had, strings.EqualFold(f.name, fetch.FlagDeleted) && f.had:
			case f.had:
				c.add = append(c.add, f.name)
			default:
				c.remove = append(c.remove, f.name)
			}
		}
		if len(c.add)+len(c.remove) == 0 {
			if t.flags = slices.DeleteFunc(t.flags, func(f flagBefore) bool { return f.unsure }); len(t.flags) > 0 && !t.moved() {
				t.why = LeftChanged
			}
			continue
		}
		key := strings.Join(c.add, " ") + "|" + strings.Join(c.remove, " ")
		groups[key], all[key] = append(groups[key], t), c
	}
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		tracks, c := groups[key], all[key]
		var steps []storeStep
		for i, flags := range [][]string{c.add, c.remove} {
			if len(flags) > 0 {
				steps = append(steps, storeStep{remove: i == 1, flags: flags})
			}
		}
		one := u.again(b)
		uids := nowOf(tracks)
		err := one.record(ctx, l, uids, mail.Change{Kind: mail.ChangeFlags, Add: c.add, Remove: c.remove, Undoes: true, Redoes: tracks[0].redoes()}, func() error {
			one.sent = true
			return one.store(s, l, uids, steps)
		})
		u.came(ctx, one, tracks, err, func(t *track, m *ChangedMessage) {
			t.restore().Added, t.restored.Removed = c.add, c.remove
			if m.Flags != nil {
				t.current = m.Flags
			}
		})
		switch {
		case imap.Refused(err):
			u.leave(tracks, false, b.wrap(ctx, err))
		case err != nil:
			b.sent = one.sent
			return err
		}
	}
	return nil
}

// moveBack moves messages to where they were, or into the trash, in the order of the tracks.
func (u *undoing) moveBack(ctx context.Context, b *batch, s *imap.Session, l *located, there []*track, to string, made bool) error {
	if len(there) == 0 {
		return nil
	}
	var runs [][]uint32
	for i, t := range there {
		if i == 0 || t.now.uid < there[i-1].now.uid {
			runs = append(runs, nil)
		}
		runs[len(runs)-1] = append(runs[len(runs)-1], t.now.uid)
	}
	one := u.again(b)
	err := one.moveRuns(ctx, s, l, runs, mail.Change{Kind: mail.ChangeMove, To: to, Undoes: true, Redoes: there[0].redoes()})
	u.came(ctx, one, there, err, func(t *track, m *ChangedMessage) {
		r := t.restore()
		if r.Ref, r.Trashed = m.New, made; r.Ref.UID == 0 {
			r.Ref = one.RefTo(to, 0, 0)
		}
	})
	b.sent = one.sent
	u.noteDrafts(ctx, one, there, to)
	return err
}

// noteDrafts remembers drafts as the caller's own that were so before they were put elsewhere.
func (u *undoing) noteDrafts(ctx context.Context, b *batch, there []*track, to string) {
	for _, t := range there {
		uid := b.copied.Target[t.now.uid]
		if t.made || uid == 0 || !fetch.HasFlag(t.current, fetch.FlagDraft) {
			continue
		}
		origin, err := u.m.draftOrigins(ctx, []mail.Ref{b.RefTo(t.then.folder, t.then.validity, t.then.uid)})
		if err == nil && origin[0].Own {
			b.noteDraft(ctx, b.RefTo(to, b.copied.UIDValidity, uid))
		}
	}
}

func nowOf(tracks []*track) (uids []uint32) {
	for _, t := range tracks {
		uids = append(uids, t.now.uid)
	}
	return uids
}

// came notes the outcome of one change: of those that it changed by note, and in the journal that
// they were taken back.
func (u *undoing) came(ctx context.Context, b *batch, tracks []*track, err error, note func(*track, *ChangedMessage)) {
	u.out.Change = cmp.Or(u.out.Change, b.out.Change)
	changed, failed := map[uint32]*ChangedMessage{}, map[uint32]*mail.Issue{}
	for i := range b.out.Messages {
		changed[b.out.Messages[i].Ref.UID] = &b.out.Messages[i]
	}
	for i := range b.out.Issues {
		failed[b.out.Issues[i].UID] = &b.out.Issues[i]
	}
	var back []part
	for _, t := range tracks {
		m, i := changed[t.now.uid], failed[t.now.uid]
		switch {
		case i != nil && i.Kind == mail.KindRefused:
			t.why, t.said = LeftRefused, i.Message
		case i != nil:
			t.why = LeftUnknown
		case m != nil:
			note(t, m)
			if back = append(back, t.flagged...); b.copied.Target != nil {
				back = append(back, t.moves...)
			}
		case err == nil:
			t.why = LeftUnknown
		}
	}
	u.back(ctx, back, u.out.Change)
}

// back says in the journal that parts of changes were taken back.
func (u *undoing) back(ctx context.Context, parts []part, by string) {
	of := map[string][]int{}
	for _, p := range parts {
		of[p.change] = append(of[p.change], p.n)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	for _, id := range slices.Sorted(maps.Keys(of)) {
		if _, err := u.m.o.Journal.AmendChange(ctx, id, func(c *mail.Change) error {
			for _, n := range of[id] {
				if n < len(c.Messages) {
					c.Messages[n].Back = cmp.Or(c.Messages[n].Back, by)
				}
			}
			return nil
		}); err != nil {
			u.m.o.Logger.LogAttrs(ctx, slog.LevelWarn, "it could not be recorded that a change was taken back", slog.String("change", id))
		}
	}
}

// why says why messages were left.
func (u *undoing) why(tracks []*track, why LeftWhy, said string) {
	for _, t := range tracks {
		if t.why == "" {
			t.why, t.said = why, said
		}
	}
}

// leave says of messages of a step that ended with an error why they were left, and ends the undo
// where others would fare no better.
func (u *undoing) leave(tracks []*track, sent bool, err error) {
	tracks = slices.DeleteFunc(slices.Clone(tracks), func(t *track) bool { return t.restored != nil && (!t.moved() || t.restored.Ref != t.restored.From) })
	e := u.o.AsError(err)
	if errors.Is(err, mail.ErrNoAccount) {
		u.why(tracks, LeftFolderGone, "")
		return
	}
	switch e.Kind {
	case mail.KindNotFound:
		u.why(tracks, LeftFolderGone, "")
	case mail.KindConflict:
		u.why(tracks, LeftMadeAnew, "")
	case mail.KindReadOnly:
		u.why(tracks, LeftNotAllowed, "")
	case mail.KindRefused, mail.KindUnsupported:
		u.why(tracks, LeftRefused, e.Message)
	case mail.KindAsks, mail.KindStopped:
		u.out.Err = e
	default:
		if sent {
			u.why(tracks, LeftUnknown, "")
		}
		u.why(tracks, LeftUnreached, "")
		u.out.Err = e
	}
}

// restore is what is told of a track that was taken back.
func (t *track) restore() *Restored {
	if t.restored == nil {
		t.restored = &Restored{}
		t.restored.From = t.now.ref()
		t.restored.Ref = t.restored.From
	}
	return t.restored
}

func (p place) ref() mail.Ref {
	return mail.Ref{Protocol: mail.IMAP, Account: p.account, Folder: p.folder, UIDValidity: p.validity, UID: p.uid}
}

// settle makes the answer of what became of the tracks.
func (u *undoing) settle(ctx context.Context) {
	open := map[string][]part{}
	for _, t := range u.all {
		if t.restored != nil {
			if !t.made {
				t.restored.Kept = differing(t.is.Flags, t.current)
			}
			u.out.Restored = append(u.out.Restored, *t.restored)
		}
		if t.why == "" && t.restored == nil && !t.moved() && len(t.flags) == 0 {
			if t.back {
				t.why = LeftTakenBack
			}
			if by := cmp.Or(t.newest.Of, t.newest.ID); t.newest.Undoes { // its process may have ended before it said so
				open[by] = append(open[by], t.open...)
			}
		}
		if t.why != "" {
			u.out.Left = append(u.out.Left, LeftAsItIs{Ref: t.now.ref(), Change: t.newest.ID, Why: t.why, Said: t.said})
		}
	}
	for by, parts := range open {
		u.back(ctx, parts, by)
	}
}

// differing are the flags in which two lists differ.
func differing(before, now []string) (differ []string) {
	for _, f := range before {
		if !fetch.HasFlag(now, f) {
			differ = append(differ, f)
		}
	}
	for _, f := range now {
		if !fetch.HasFlag(before, f) {
			differ = append(differ, f)
		}
	}
	return differ
}
