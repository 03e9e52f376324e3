package outbox

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
)

// Plan freezes what a search matches now, of the messages that the account's policy shows, and what
// is to be done to them: an entry that is queued until Run, for mail.PlanWaits. Nothing is changed. The
// errors are those of mailbox.Client.Select, and of a direct change that the account's mode does not
// allow. The Decision is that of ForeseeRun. Issues are folders that could not be searched.
func (b *Outbox) Plan(ctx context.Context, account string, q mailbox.SearchQuery, do mail.Action, principal string) (d *Decision, issues []mail.Issue, err error) {
	const op = "mail plan"
	found, err := b.o.Mailboxes.Select(ctx, account, q, do)
	if err != nil {
		return nil, nil, err
	}
	e, list, err := b.planned(ctx, op, account, found.Messages, do, principal)
	if err != nil {
		return nil, nil, err
	}
	e.State = mail.OutboxQueued
	kept, _, err := b.o.Store.AddOutgoing(ctx, e, list)
	if err != nil {
		return nil, nil, wrapStore(ctx, op, err)
	}
	b.log(ctx, "plan made", &kept)
	d, err = b.ForeseeRun(ctx, kept.ID, principal)
	return d, found.Issues, err
}

// HoldChange puts a change that was KindAsks into the outbox, as a plan of its messages that waits
// for a person, where ForeseeChange says so. Nothing is changed. A message that does not exist is an
// error, and nothing waits then. Where the same change of the same principal waits
// already, that entry is returned, with Replayed.
func (b *Outbox) HoldChange(ctx context.Context, of mailbox.Batch, principal string) (*mail.Outgoing, error) {
	found, err := b.o.Mailboxes.SelectThese(ctx, of)
	if err != nil {
		return nil, err
	}
	e, list, err := b.planned(ctx, of.Op, of.Account, found.Messages, of.Action, principal)
	if err != nil {
		return nil, err
	}
	e.Plan.Held, e.State = true, mail.OutboxWaiting
	if e.Plan.Bound, _, err = b.asks(ctx, of.Op, of.Account, principal, len(found.Messages)); err != nil {
		return nil, err
	}
	e.Digest = workOf(e.Kind).digest(&e)
	return b.hold(ctx, of.Op, e, list)
}

// ForeseeChange says what becomes of a direct change of messages, without a word to a server:
// where it Waits the change would be KindAsks, and HoldChange is the way.
func (b *Outbox) ForeseeChange(ctx context.Context, of mailbox.Batch, principal string) (*Decision, error) {
	if err := b.o.Mailboxes.MayChange(ctx, of.Op, of.Account, of.Refs, ""); err != nil {
		return nil, err
	}
	d := &Decision{Outgoing: mail.Outgoing{Kind: mail.OutboxPlan, Account: of.Account, Principal: principal, State: mail.OutboxQueued, Plan: &mail.Plan{Action: of.Action, Held: true, Count: len(of.Refs)}}}
	return d, b.foresee(ctx, of.Op, d, principal)
}

// ForeseeRun is Show of a plan of the principal's, see Run, with the state that Run would make of it before it
// begins: OutboxWaiting where a person would have to decide, while it is still queued, or was
// begun.
func (b *Outbox) ForeseeRun(ctx context.Context, id, principal string) (*Decision, error) {
	const op = "mail run"
	d, err := b.Show(ctx, id)
	switch {
	case err != nil:
		return d, err
	case principal != "" && !mail.Owns(principal, d.Principal):
		return nil, mail.ErrNoOutgoing
	case d.Kind == mail.OutboxUnsubscribe:
		return d, b.foreseeLeaving(ctx, d)
	case d.Kind != mail.OutboxPlan:
		return nil, mail.Operation{Op: op, Account: d.Account}.Invalid("The entry of the outbox is no plan.", mail.AdviceShowEntry).About(id)
	case d.Step == StepNone, d.Waits(), d.Decided != "", principal == "":
		return d, nil
	}
	return d, b.foresee(ctx, op, d, principal)
}

// foresee makes a plan wait that goes beyond what the principal may change unasked.
func (b *Outbox) foresee(ctx context.Context, op string, d *Decision, principal string) error {
	bound, asks, err := b.asks(ctx, op, d.Account, principal, d.Plan.Count-d.Plan.Outcome.Tried())
	if asks {
		p := *d.Plan
		p.Bound, d.Plan = bound, &p
		d.Wait()
	}
	return err
}

// asks reports whether a person has to decide about a change of n messages by a principal now, and
// the bound that says so. The step that begins each piece decides it once more.
func (b *Outbox) asks(ctx context.Context, op, account, principal string, n int) (bound int, asks bool, err error) {
	o := mail.Operation{Op: op, Account: account}
	_, policy, err := o.LookUp(ctx, b.o.Directory)
	if err != nil || b.o.Journal == nil {
		return 0, false, err
	}
	if bound = policy.AskChanges(); bound < 0 {
		return bound, false, nil
	}
	made, err := b.o.Journal.ChangesMade(ctx, mail.ChangeQuery{Since: b.now().Add(-mail.AskWithin), Only: func(c *mail.Change) bool {
		return mail.AskedAs(c.Principal) == mail.AskedAs(principal)
	}})
	for i := range made {
		n += made[i].Counts()
	}
	return bound, n > bound, wrapStore(ctx, op, err)
}

// Run does to the messages of a plan of the principal's what it says, in pieces, and tells the
// progress of ctx; once. An empty principal is the administrator, who may run any and is not
// asked. It waits for a person instead where with them the principal would have
// changed more than Policy.AskChanges unasked: then the entry is waiting, which is no error. What
// left its folder since is left alone and counted. Another principal's plan is
// mail.ErrNoOutgoing, see mail.Owns; one that ended, and one that is run at this moment, are
// KindConflict. One that was cut off is unknown: Run, or Approve, goes on with the rest, once
// nobody can be at it any more. With an error the entry, where there is one, is what is kept.
func (b *Outbox) Run(ctx context.Context, id, principal string) (*mail.Outgoing, error) {
	const op = "mail run"
	d, err := b.ForeseeRun(ctx, id, principal)
	if err != nil {
		return nil, wrapStore(ctx, op, err)
	}
	if d.Step == StepNone {
		_, err := b.next(mail.Operation{Op: op, Account: d.Account}, &d.Outgoing)
		return &d.Outgoing, err
	}
	waits := func(e *mail.Outgoing) bool { return e.State == mail.OutboxWaiting || e.Digest != d.Digest }
	if !d.Waits() {
		if d.Kind == mail.OutboxUnsubscribe {
			if err := b.take(ctx, d.Principal, true); err != nil {
				return nil, wrapStore(ctx, op, err)
			}
		}
		return b.attempt(ctx, op, id, func(e *mail.Outgoing) error {
			if waits(e) {
				return errNotHeld
			}
			if principal == "" {
				e.Decided = byAdmin
			}
			return nil
		})
	}
	kept, err := b.o.Store.ChangeOutgoing(ctx, id, func(e *mail.Outgoing) (bool, error) {
		switch {
		case waits(e), e.Ended(), busy(e, b.now()):
			return false, errNotHeld
		}
		if e.Plan != nil {
			p := *e.Plan
			p.Bound, e.Plan = d.Plan.Bound, &p
		}
		e.Wait()
		release(e, b.now())
		return false, nil
	})
	if errors.Is(err, errNotHeld) {
		return b.late(ctx, op, id)
	}
	if err != nil {
		return nil, wrapStore(ctx, op, err)
	}
	b.log(ctx, "plan waits for a person", &kept)
	return &kept, nil
}

// frozen are messages of one folder, as the bytes of a plan name them.
type frozen struct {
	Folder      string      `json:"folder"`
	UIDValidity uint32      `json:"uidvalidity"`
	UIDs        [][2]uint32 `json:"uids"` // ranges, ascending, both ends of them
}

// freeze is the list of messages, which are those of one folder after the other, each by ascending
// UID.
func freeze(messages []mailbox.Selected) []byte {
	var list []frozen
	for i := range messages {
		r := messages[i].Ref
		if n := len(list); n == 0 || list[n-1].Folder != r.Folder || list[n-1].UIDValidity != r.UIDValidity {
			list = append(list, frozen{Folder: r.Folder, UIDValidity: r.UIDValidity})
		}
		f := &list[len(list)-1]
		if n := len(f.UIDs); n > 0 && f.UIDs[n-1][1]+1 == r.UID {
			f.UIDs[n-1][1] = r.UID
		} else {
			f.UIDs = append(f.UIDs, [2]uint32{r.UID, r.UID})
		}
	}
	record, _ := json.Marshal(list) // strings and numbers: it never fails
	return record
}

// pieces are the messages of a plan from the one at tried on, as they are changed at once.
func (b *Outbox) pieces(ctx context.Context, op string, e *mail.Outgoing, tried int) (all [][]mail.Ref, err error) {
	record, err := b.o.Store.OutgoingMessage(ctx, e.ID)
	if err != nil {
		return nil, wrapStore(ctx, op, err)
	}
	var list []frozen
	if hash(record) != e.Plan.List || json.Unmarshal(record, &list) != nil {
		return nil, workOf(e.Kind).altered(op, e)
	}
	for _, f := range list {
		var refs []mail.Ref
		for _, r := range f.UIDs {
			for u := r[0]; ; u++ {
				if tried > 0 {
					tried--
				} else {
					refs = append(refs, mail.Ref{Protocol: mail.IMAP, Account: e.Account, Folder: f.Folder, UIDValidity: f.UIDValidity, UID: u})
				}
				if u >= r[1] {
					break
				}
			}
		}
		all = slices.AppendSeq(all, slices.Chunk(refs, mailbox.MaxPiece))
	}
	return all, nil
}

func hash(record []byte) string {
	sum := sha256.Sum256(record)
	return hex.EncodeToString(sum[:])
}

// planned is the entry of a plan, and its bytes.
func (b *Outbox) planned(ctx context.Context, op, account string, messages []mailbox.Selected, do mail.Action, principal string) (e mail.Outgoing, list []byte, err error) {
	written := map[string]bool{} // to whom a message of the outbox went
	if _, _, err := b.o.Store.ListOutgoing(ctx, mail.OutboxQuery{Account: account, States: []mail.OutboxState{mail.OutboxAccepted}, Limit: 1, Only: func(o *mail.Outgoing) bool {
		for _, r := range o.Recipients {
			written[addressKey(r)] = true
		}
		return false
	}}); err != nil {
		return e, nil, wrapStore(ctx, op, err)
	}
	now := b.now()
	list = freeze(messages)
	p := &mail.Plan{Action: do, List: hash(list), Count: len(messages)}
	folders, senders := map[string]*mail.PlanFolder{}, map[string]*mail.PlanSender{}
	personal := func(i int) bool { return len(marksOf(&messages[i])) > 0 }
	order := make([]int, len(messages))
	for i := range messages {
		m := &messages[i]
		m.Known = m.Known || written[addressKey(m.From.Addr)]
		count(folders, m.Ref.Folder, mail.PlanFolder{Name: shortLine(m.Ref.Folder, maxShown)}).Count++
		count(senders, addressKey(m.From.Addr), mail.PlanSender{Address: shown(m.From)}).Count++
		if at := m.Date.UTC().Round(0); !m.Date.IsZero() {
			if p.Oldest.IsZero() || at.Before(p.Oldest) {
				p.Oldest = at
			}
			if at.After(p.Newest) {
				p.Newest = at
			}
		}
		for _, c := range []struct {
			is bool
			n  *int
		}{{personal(i), &p.Personal.Any}, {m.Flagged, &p.Personal.Flagged}, {m.Answered, &p.Personal.Answered}, {m.Known, &p.Personal.Known}, {m.Attachments, &p.Personal.Attachments}, {!m.Bulk, &p.Personal.Unlisted}} {
			if c.is {
				*c.n++
			}
		}
		order[i] = i
	}
	p.Folders, p.OtherFolders = most(folders, mail.MaxPlanFolders, func(f *mail.PlanFolder) (int, string) { return f.Count, f.Name })
	p.Senders, p.OtherSenders = most(senders, mail.MaxPlanSenders, func(s *mail.PlanSender) (int, string) { return s.Count, s.Address.Addr })
	slices.SortStableFunc(order, func(i, j int) int {
		switch {
		case personal(i) != personal(j) && personal(i):
			return -1
		case personal(i) != personal(j):
			return 1
		}
		return messages[j].Date.Compare(messages[i].Date)
	})
	for _, i := range order[:min(len(order), mail.MaxPlanExamples)] {
		m := &messages[i]
		p.Examples = append(p.Examples, mail.PlanMessage{ID: m.Ref.String(), Date: m.Date.UTC().Round(0), From: shown(m.From), Subject: shortLine(m.Subject, maxShown), Marks: marksOf(m)})
	}
	e = mail.Outgoing{ID: mail.NewID(now), Kind: mail.OutboxPlan, Account: account, Principal: principal, Created: now, Changed: now, Sent: mail.SentNone, Plan: p}
	e.Digest = workOf(e.Kind).digest(&e)
	return e, list, nil
}

// maxShown bounds a subject, a name and a folder's name in a plan, in characters.
const maxShown = 60

func shown(a mail.Address) mail.Address {
	return mail.Address{Name: shortLine(a.Name, maxShown), Addr: shortLine(a.Addr, 2*maxShown)}
}

// marksOf says why a message is no bulk mail.
func marksOf(m *mailbox.Selected) (marks []string) {
	for _, c := range []struct {
		is   bool
		mark string
	}{{m.Flagged, "flagged"}, {m.Answered, "answered"}, {m.Known, "known"}, {m.Attachments, "attachments"}} {
		if c.is {
			marks = append(marks, c.mark)
		}
	}
	return marks
}

func count[T any](all map[string]*T, key string, first T) *T {
	if all[key] == nil {
		all[key] = &first
	}
	return all[key]
}

// most are those with the highest counts, and how many others there are.
func most[T any](all map[string]*T, n int, of func(*T) (int, string)) (list []T, others int) {
	for _, x := range all {
		list = append(list, *x)
	}
	slices.SortFunc(list, func(x, y T) int {
		nx, sx := of(&x)
		ny, sy := of(&y)
		return cmp.Or(ny-nx, cmp.Compare(sx, sy))
	})
	n = min(n, len(list))
	return list[:n:n], len(list) - n
}

func shownPlan(e *mail.Outgoing) any {
	p := *e.Plan
	p.Bound, p.Outcome = 0, mail.PlanOutcome{}
	return []any{"plan", e.Account, p}
}

// runPlan does what a plan says, piece by piece, and keeps how far it is before each.
func (b *Outbox) runPlan(ctx context.Context, op string, e *mail.Outgoing, a attempt) (t tally, failed error) {
	now := e.Plan.Outcome
	all, failed := b.pieces(ctx, op, e, now.Tried())
	if failed != nil {
		return t, failed
	}
	begun := map[mail.Ref]bool{}
	if e.Attempts > 1 { // from whichever state this one came
		if begun, failed = b.begun(ctx, op, e); failed != nil {
			return t, failed
		}
	}
	bound := e.Plan.Bound
	t.write = func(e *mail.Outgoing) {
		p := *e.Plan
		p.Bound, p.Outcome, e.Plan = bound, now, &p
	}
	tell := mail.Progress(ctx)
	var refused error // what the server or a rule says to whole pieces
	cut := false      // whether a piece was changed is not known
	for _, refs := range all {
		// Whoever took it over is noticed here; a stop ends the command after it.
		if _, failed = b.record(ctx, e.ID, func(e *mail.Outgoing) (bool, error) {
			if e.Attempt != a.id || e.Ended() {
				return false, errNotHeld
			}
			t.write(e)
			e.Until = b.lease(ctx, b.now())
			return false, nil
		}); failed != nil {
			break
		}
		tell(float64(now.Tried()), float64(e.Plan.Count), "messages of the plan")
		err := b.piece(ctx, op, e, refs, begun, &now)
		if err != nil && !final(err) {
			var known *mail.Error
			cut = errors.As(err, &known) && known.Unknown
			t.asks, failed = errors.Is(err, mail.ErrManyChanges), err
			break
		}
		refused = cmp.Or(refused, err)
	}
	if t.asks {
		var err error
		if bound, _, err = b.asks(ctx, op, e.Account, e.Principal, 0); err != nil {
			return t, err
		}
	}
	t.done, t.left, t.unknown = now.Done+now.Gone, now.Left, e.Plan.Count-now.Tried()
	if t.tried = t.done > 0 || cut || failed == nil && refused == nil; !t.tried {
		now = e.Plan.Outcome
		return t, cmp.Or(failed, refused)
	}
	return t, failed
}

// final reports whether an error will be the same for these messages at any time, and others may
// still be changed.
func final(err error) bool {
	var known *mail.Error
	if !errors.As(err, &known) || known.Unknown || known.Retryable {
		return false
	}
	switch known.Kind {
	case mail.KindNotFound, mail.KindConflict, mail.KindRefused, mail.KindReadOnly, mail.KindInvalid:
		return true
	}
	return false
}

// piece changes messages of one folder and counts what became of each. With a final error all of
// them are left as they are; with another one nothing is counted.
func (b *Outbox) piece(ctx context.Context, op string, e *mail.Outgoing, refs []mail.Ref, begun map[mail.Ref]bool, now *mail.PlanOutcome) error {
	counted := *now
	leave := func(n int, reason string) {
		counted.Left += n
		if counted.Reason == "" {
			counted.Reason = shortLine(reason, maxReason)
		}
	}
	if e.Plan.Do == mail.DoCopy { // a copy that may be there is not made again
		before := len(refs)
		refs = slices.DeleteFunc(refs, func(r mail.Ref) bool { return begun[r] })
		if n := before - len(refs); n > 0 {
			leave(n, "Whether they were copied is not known.")
		}
	}
	var known *mail.Error
	changed, err := &mailbox.Changed{}, error(nil)
	if len(refs) > 0 {
		changed, err = b.change(ctx, mailbox.Batch{Op: op, Account: e.Account, Refs: refs, Action: e.Plan.Action, Of: e.ID, Approved: e.Decided != ""})
	}
	gone := allGone(err, &known)
	switch {
	case gone:
		err = nil
	case err != nil && final(err):
		leave(len(refs), known.Message)
	case err != nil:
		return err
	default:
		issues, done := map[uint32]mail.Issue{}, map[uint32]bool{}
		for _, i := range changed.Issues {
			issues[i.UID] = i
		}
		for _, m := range changed.Messages {
			done[m.Ref.UID] = true
		}
		refs = slices.DeleteFunc(refs, func(r mail.Ref) bool {
			i, told := issues[r.UID]
			switch {
			case told && i.Kind == mail.KindNotFound:
				return false
			case done[r.UID] && !told:
				counted.Done++
			default:
				leave(1, cmp.Or(i.Message, issues[0].Message)) // that of none is why the others were cut off
			}
			return true
		})
		gone = true
	}
	if gone {
		for _, r := range refs {
			if begun[r] { // by an attempt before, which did not come to write it down
				counted.Done++
			} else {
				counted.Gone++
			}
		}
	}
	*now = counted
	return err
}

// begun are the messages that an attempt of a plan before has changed, or was about to change.
func (b *Outbox) begun(ctx context.Context, op string, e *mail.Outgoing) (map[mail.Ref]bool, error) {
	all := map[mail.Ref]bool{}
	if b.o.Journal == nil {
		return all, nil
	}
	made, err := b.o.Journal.ChangesMade(ctx, mail.ChangeQuery{Account: e.Account, ID: e.ID})
	for _, c := range made {
		for _, m := range c.Messages {
			if m.Done || c.Ended.IsZero() {
				all[mail.Ref{Protocol: mail.IMAP, Account: c.Account, Folder: c.Folder, UIDValidity: c.UIDValidity, UID: m.UID}] = true
			}
		}
	}
	return all, wrapStore(ctx, op, err)
}
