package mailbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/cursor"
	"github.com/postern-mail/postern/mail/internal/imap"
	"github.com/postern-mail/postern/mail/mailbox/internal/fetch"
	"github.com/postern-mail/postern/mail/mailbox/internal/folders"
	"github.com/postern-mail/postern/mail/mailbox/internal/search"
)

// accountSearch is a Search in one account. It opens and searches every folder in one
// write, and fetches from each that has matches in another; where matches have to be
// checked, it goes on in windows.
type accountSearch struct {
	*imapBox
	q    *SearchQuery
	out  *matches
	want fetch.Wanted
	at   []cursor.Place // where the search continues in this account

	folders []*folderSearch
	all     bool // every match is wanted, and no page of them
	until   time.Time
	loose   bool  // the server searched for less than the query has: each match is read
	late    bool  // until passed before every match was checked
	cut     error // what ended the search after some matches were found; nil if nothing did
	empty   int   // fetches in a row that brought nothing
}

// folderSearch is the search of one folder.
type folderSearch struct {
	*accountSearch
	*folderMatches

	found  imap.UIDSet               // the matches
	recent imap.UIDSet               // of these, the ones in which a code may be masked
	doubt  imap.UIDSet               // of these, the ones that are still to be checked
	wants  []uint32                  // of these, the ones to fetch now
	judged imap.UIDSet               // of these, the ones that were checked
	looked map[uint32]*fetch.Message // of these, the newest below before; nil for one that vanished
}

func (x *imapBox) search(ctx context.Context, q *SearchQuery, at []cursor.Place, out *matches) error {
	a := &accountSearch{imapBox: x, q: q, out: out, at: at, want: x.Policy.Headers(q.Full)}
	a.want.Dates = true
	err := a.run(ctx)
	for _, f := range a.folders {
		f.list, f.coming, f.unsure, f.count = f.candidates(), f.ahead(), len(f.doubt) > 0, f.total()
		out.folders = append(out.folders, f.folderMatches)
	}
	out.issues, out.snippets = a.issues(), a.snippets
	return err
}

// issues tell what was not searched, or not in time.
func (a *accountSearch) issues() []mail.Issue {
	var issues []mail.Issue
	for _, f := range a.folders {
		switch {
		case f.err != nil:
			issue := a.AsError(a.wrap(context.Background(), f.err)).Issue()
			issue.Message = fmt.Sprintf("Folder %q%s was not searched: %s", f.name, a.out.whose, issue.Message)
			issues = append(issues, issue)
		case f.valid == 0:
			issues = append(issues, mail.Issue{Kind: mail.KindTimeout, Stage: imap.StageSearch, Retryable: true,
				Message: fmt.Sprintf("Folder %q%s was not searched in time: the next page begins with it.", f.name, a.out.whose)})
		}
	}
	if a.cut != nil {
		issues = append(issues, a.AsError(a.cut).Issue())
	}
	if a.late {
		issues = append(issues, mail.Issue{Kind: mail.KindTimeout, Stage: imap.StageFetch, Retryable: true,
			Message: fmt.Sprintf("There was no time to check every match%s: the next page goes on.", a.out.whose)})
	}
	return issues
}

// run searches the account.
func (a *accountSearch) run(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok {
		a.until = time.Now().Add(time.Until(deadline) / 2)
	}
	return fetch.WithStructure(ctx, func(structure bool) error {
		a.want.Structure = structure
		return a.search(ctx)
	})
}

// search asks every folder, and goes on with those that have answered by half the time, else
// with the first that answers, or until the connection broke.
func (a *accountSearch) search(ctx context.Context) error {
	half, end := context.WithCancel(ctx)
	defer end()
	prefer := ""
	if len(a.q.Folders) == 1 {
		prefer = a.q.Folders[0]
	}
	asked := false
	err := a.pool.Lend(half, prefer, func(_ context.Context, s *imap.Session) error {
		asked = false // from the start: after a dead connection this runs again
		if err := a.findOwn(s, prefer); err != nil {
			return err
		}
		if err := a.scope(s); err != nil {
			return err
		}
		var answered, overdue atomic.Bool
		if !a.until.IsZero() {
			watch := time.AfterFunc(max(time.Until(a.until), 0), func() {
				if overdue.Store(true); answered.Load() {
					end()
				}
			})
			defer watch.Stop()
		}
		err := a.ask(s, func() {
			if answered.Store(true); overdue.Load() {
				end()
			}
		})
		if err = cmp.Or(err, half.Err()); err != nil {
			return err
		}
		answered.Store(false) // every folder has answered: nothing is to end any more
		asked = true
		return a.check(s)
	})
	if err == nil || asked || ctx.Err() != nil || errors.As(err, new(*mail.Error)) {
		return a.end(ctx, a.inFolder(ctx, prefer, err))
	}
	if !slices.ContainsFunc(a.folders, (*folderSearch).answered) {
		return a.inFolder(ctx, prefer, err)
	}
	return a.end(ctx, a.lend(ctx, "", a.check))
}

// end keeps what was found before an error, but for one that a search without structures
// may not meet.
func (a *accountSearch) end(ctx context.Context, err error) error {
	err = a.wrap(ctx, err)
	found := slices.ContainsFunc(a.folders, func(f *folderSearch) bool { return f.answered() && len(f.candidates()) > 0 })
	if err == nil || !found || !partial(ctx, err) || a.want.Structure && imap.Unreadable(err) {
		return err
	}
	if kind := a.AsError(err).Kind; kind == mail.KindConflict || kind == mail.KindInvalid {
		return err
	}
	a.cut = err
	return nil
}

// scope chooses the folders to search: first those that were not searched in time before,
// then INBOX, then the others as the server lists them.
func (a *accountSearch) scope(s *imap.Session) error {
	a.folders, a.out.leftOut, a.late, a.cut, a.empty = nil, nil, false, nil, 0
	names := a.q.Folders
	if len(names) == 0 {
		all, err := a.allFolders(s)
		if err != nil {
			return err
		}
		junk := slices.Concat(folders.WithRole(all, "junk"), folders.WithRole(all, "trash"))
		whole := slices.IndexFunc(all, func(f Folder) bool { return f.Role == "all" && !f.NoSelect() && !f.Others })
		if whole < 0 {
			names = []string{inbox}
		}
		for i, f := range all {
			switch {
			case f.NoSelect():
			case slices.Contains(junk, f.Name) || f.Others && (f.Role == "junk" || f.Role == "trash"):
				if !a.q.Everywhere {
					a.out.leftOut = append(a.out.leftOut, f.Name)
				} else {
					names = append(names, f.Name)
				}
			case whole < 0 && f.Role != "inbox" || whole == i:
				names = append(names, f.Name)
			}
		}
	}
	for _, name := range names {
		f := &folderSearch{accountSearch: a, folderMatches: &folderMatches{access: a.access, name: name}, looked: map[uint32]*fetch.Message{}}
		if !slices.ContainsFunc(a.folders, func(o *folderSearch) bool { return o.name == name }) {
			a.folders = append(a.folders, f)
		}
	}
	a.want.Copies = len(a.folders) > 1
	slices.SortStableFunc(a.folders, func(f, g *folderSearch) int { return f.turn() - g.turn() })
	return nil
}

// turn is 0 for a folder that was not searched in time before.
func (f *folderSearch) turn() int {
	if slices.ContainsFunc(f.at, func(p cursor.Place) bool { return p.Folder == f.name && p.UIDValidity == 0 }) {
		return 0
	}
	return 1
}

// ask opens and searches all the folders in one write. It calls answered when one has
// answered and others have not.
func (a *accountSearch) ask(s *imap.Session, answered func()) error {
	var all fetch.Visits
	certain := a.q.Dated() && s.HasAlready("ESEARCH") // the other servers would have to open each folder again
	for _, f := range a.folders {
		v := all.To(f.name, 0)
		if v.Criteria = append(v.Criteria, a.q.Criteria(false)); certain {
			v.Criteria = append(v.Criteria, a.q.Criteria(true))
		}
		if a.unmasks() {
			v.Criteria = append(v.Criteria, a.q.Recent(a.m.o.Now()))
		}
	}
	a.Looking(0, a.folders[0].name)
	a.loose = s.InASCII() && a.q.BeyondASCII()
	var anew error
	var refused []error
	matches := uint64(0)
	broken := all.Start(s, func(i int, v *fetch.Visit) {
		f := a.folders[i]
		if f.err = cmp.Or(slices.Concat([]error{v.Err}, v.Errs)...); f.err != nil {
			refused = append(refused, f.err)
			return
		}
		for _, p := range a.at {
			if p.Folder == f.name {
				if f.before = p.Before; p.UIDValidity != 0 && p.UIDValidity != v.Box.UIDValidity {
					anew = a.MadeAnew(mail.AdviceSearchAnew)
				}
			}
		}
		f.valid, f.uidNext, f.found = v.Box.UIDValidity, v.Box.UIDNext, v.Found[0]
		switch {
		case !a.Policy.ShowsAll() || a.q.Attachments || a.q.Invitations || a.q.Dated() && !certain:
			f.doubt = f.found
		case a.q.Dated():
			f.doubt = f.found.Without(v.Found[1])
		}
		if a.unmasks() {
			f.recent = v.Found[len(v.Found)-1]
			f.doubt = f.doubt.With(f.recent)
		}
		if a.loose {
			f.recent, f.doubt = f.found, f.found
		}
		matches += f.found.Without(f.recent).Count() // how many recent ones match by what is masked is not told
		if i < len(a.folders)-1 {
			answered()
		}
	})
	switch {
	case broken != nil || anew != nil:
		return cmp.Or(broken, anew)
	case len(refused) == len(a.folders):
		return errors.Join(refused...) // perhaps only their charset
	case a.Policy.ShowsAll() && (a.q.Selects() || a.all) && matches > uint64(a.q.MaxMatches):
		return a.Invalid(tooMany(a.q), mail.AdviceNarrow)
	}
	return a.narrow(s)
}

func tooMany(q *SearchQuery) string { return fmt.Sprintf("More than %d messages match.", q.MaxMatches) }

// narrow searches folders again, where there are too many matches to check each whether
// the policy shows it, for those that can be visible.
func (a *accountSearch) narrow(s *imap.Session) error {
	senders := search.Senders(a.Policy)
	for _, f := range a.folders {
		if a.Policy.ShowsAll() || senders == nil || f.found.Count() <= uint64(a.m.bounds.judged) {
			continue
		}
		if _, err := s.Examine(f.name).Wait(); err != nil {
			return err
		}
		narrower := a.q.Criteria(false)
		narrower.AnyOf = append(narrower.AnyOf, senders)
		found, err := s.Search(narrower).Wait()
		if err != nil {
			return err
		}
		f.found, f.doubt = found, found
	}
	return nil
}

// check checks the matches that are in doubt, and fetches the newest that match. Where the
// policy hides messages, it judges their headers first and fetches the rest of visible ones
// alone. Without criteria for the server it stops when each folder has enough for a page.
func (a *accountSearch) check(s *imap.Session) error {
	for {
		var folders []*folderSearch
		room := uint32(maxWindow)
		doubt := make([]imap.UIDSet, len(a.folders))
		for i, f := range a.folders {
			if doubt[i] = f.doubt; !f.answered() {
				continue
			}
			f.wants = f.window(room)
			room -= min(room, uint32(len(f.wants)))
			for _, uid := range f.newest() {
				if !slices.Contains(f.wants, uid) {
					f.wants = append(f.wants, uid)
				}
			}
			if len(f.wants) > 0 {
				folders = append(folders, f)
			}
		}
		if len(folders) == 0 {
			return nil
		}
		a.Looking(0, a.folders[0].name)
		if err := a.look(s, folders); err != nil {
			for i, f := range a.folders { // what was not judged is no match
				f.doubt = doubt[i].Without(f.judged.With(doubt[i].Without(f.found)))
			}
			return err
		}
		if a.late = !a.until.IsZero() && time.Now().After(a.until) && slices.ContainsFunc(a.folders, (*folderSearch).doubtful); a.late {
			return nil
		}
	}
}

func (f *folderSearch) doubtful() bool { return f.answered() && !f.enough() && len(f.doubt) > 0 }

// enough reports whether a folder has more than a page needs, and is not to be counted.
func (f *folderSearch) enough() bool {
	return !f.all && !f.q.Selects() && f.ahead() > uint64(f.q.Limit)
}

// total is how many matches are known. Where the policy hides messages and the folder is not
// counted, it is no more than a page ahead: how many of a window are visible would tell how
// many of it are hidden.
func (f *folderSearch) total() int {
	known := f.found.Without(f.doubt).Count()
	if ahead, page := f.ahead(), uint64(f.q.Limit)+1; !f.Policy.ShowsAll() && !f.q.Selects() && ahead > page {
		known -= ahead - page
	}
	return int(known)
}

// ahead is how many of them are for this page and those to come, down to the first in doubt.
func (f *folderSearch) ahead() uint64 { return f.left().Count() }

// window takes the newest matches in doubt, as far as there is room.
func (f *folderSearch) window(room uint32) (uids []uint32) {
	if f.enough() || room == 0 {
		return nil
	}
	var set imap.UIDSet
	set, f.doubt = f.doubt.Split(room, false)
	return set.Numbers()
}

// newest are the UIDs of the newest matches that are known to match and were not fetched.
func (f *folderSearch) newest() (uids []uint32) {
	return slices.DeleteFunc(f.left().Newest(f.q.Limit).Numbers(), func(uid uint32) bool {
		_, ok := f.looked[uid]
		return ok
	})
}

// left are the matches for this page and those to come, down to the first in doubt.
func (f *folderSearch) left() imap.UIDSet {
	left := f.found
	if f.before != 0 {
		left = left.Without(imap.UIDsBetween(f.before, 1<<32-1))
	}
	if newest := f.doubt.Newest(1); len(newest) > 0 {
		left = left.Without(imap.UIDsBetween(1, newest[0].First))
	}
	return left
}

// candidates are the newest of them, as far as they were fetched.
func (f *folderSearch) candidates() (list []candidate) {
	for _, uid := range slices.Backward(f.left().Newest(f.q.Limit).Numbers()) {
		g, ok := f.looked[uid]
		if !ok {
			break
		}
		list = append(list, candidate{Message: g, folder: f.folderMatches, ref: f.RefTo(f.name, f.valid, uid)})
	}
	var newest time.Time
	for i := range slices.Backward(list) {
		if at := list[i].received(); at.After(newest) {
			newest = at
		}
		list[i].key = newest
	}
	return list
}
