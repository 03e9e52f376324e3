package mailbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/imap"
	"github.com/postern-mail/postern/mail/mailbox/internal/fetch"
	"github.com/postern-mail/postern/mail/mailbox/internal/reading"
	"github.com/postern-mail/postern/mail/mailbox/internal/search"
)

// The bounds of List.
const (
	maxWindow = 500 // messages fetched at once while looking for visible ones
	minWindow = 50
)

// List returns messages of one folder by UID, newest first unless asked otherwise. It
// fetches only the messages it shows, one more to know whether others follow, and those
// that the inbound policy or a date bound must check. Limit is brought into 1..500. A
// message whose data cannot be read is an Issue; the others are listed. When the server
// fails or time runs out after some messages were found, List returns these with an Issue
// and HasMore set.
//
// The first List of a folder records its messages, and New lists those that came since and
// were not acknowledged; List keeps no other state.
func (m *Client) List(ctx context.Context, account string, q ListQuery) (*Page, error) {
	b, err := m.open(ctx, "mail list", account)
	if err != nil {
		return nil, err
	}
	if q.New && m.o.Seen == nil {
		return nil, b.base().noRecord()
	}
	page, err := b.list(ctx, q)
	if err != nil {
		return nil, err
	}
	all := make([]*Summary, len(page.Messages))
	for i := range page.Messages {
		all[i] = &page.Messages[i]
	}
	page.Issues = append(page.Issues, b.base().Unjudged()...)
	return page, m.noteDrafts(ctx, all)
}

func (x *imapBox) list(ctx context.Context, q ListQuery) (*Page, error) {
	var err error
	if q.Folder, err = x.folderName(cmp.Or(q.Folder, inbox)); err != nil {
		return nil, err
	}
	q.Limit, q.Snippet = ListLimit.of(q.Limit), SnippetChars.of(q.Snippet)

	for _, anchor := range []mail.Ref{q.Before, q.After} {
		if anchor != (mail.Ref{}) && (anchor.Protocol != mail.IMAP || anchor.Account != x.Account || imap.FolderName(anchor.Folder) != q.Folder || anchor.UID == 0) {
			return nil, x.noAnchor("")
		}
	}
	if q.Before.UID != 0 && q.Before.UID-1 <= q.After.UID {
		return nil, x.Invalid("No message lies between the bounds that were given.", mail.AdviceNoBound)
	}
	l := x.listing(q, &seeing{store: x.m.o.Seen})
	if err := l.seen.read(ctx, x, q.Folder); err != nil {
		return nil, err
	}
	if err := l.do(ctx); err != nil {
		return nil, err
	}
	if err := l.noteNewest(); err != nil {
		return nil, err
	}
	if uids := uidsOf(l.page); len(uids) > 0 {
		if l.page.Next = x.RefTo(q.Folder, l.page.UIDValidity, slices.Min(uids)); q.OldestFirst {
			l.page.Next.UID = slices.Max(uids)
		}
	}
	ctx, done := afterwards(ctx)
	defer done()
	return l.page, l.seen.keep(ctx, x, q.Folder)
}

// listing starts the listing of a folder, whose name has been checked.
func (x *imapBox) listing(q ListQuery, seen *seeing) *listing {
	l := &listing{imapBox: x, q: q, seen: seen, want: x.Policy.Headers(q.Full)}
	l.want.Dates = q.Full || dated(&q)
	return l
}

// do makes the page, also from the messages found before the server failed.
func (l *listing) do(ctx context.Context) error {
	err := fetch.WithStructure(ctx, func(structure bool) error { return l.run(ctx, structure) })
	if l.page != nil {
		for _, g := range l.shown {
			l.page.Messages = append(l.page.Messages, l.summary(g))
		}
	}
	if err == nil {
		return nil
	}
	l.broken = true
	if len(l.shown) == 0 || !partial(ctx, err) {
		return err
	}
	l.page.HasMore = true
	l.page.Issues = append(l.page.Issues, l.AsError(err).Issue())
	return nil
}

// noAnchor is the error of a list that should begin after a message that does not exist, or
// that the inbound policy hides.
func (x *access) noAnchor(reason string) error {
	e := x.Failure(mail.KindConflict, imap.StageList, "The message that the list should continue from is not there.", mail.AdviceListWithoutAnchor)
	e.Reason = reason
	return e
}

// partial reports whether to answer with the messages found before err: not if the caller
// gave up.
func partial(ctx context.Context, err error) bool {
	var e *mail.Error
	return errors.As(err, &e) && !errors.Is(ctx.Err(), context.Canceled)
}

// lastMoment is how long the store may take over an answer whose time was over.
const lastMoment = time.Second

// afterwards is ctx for what the store has to do for an answer, also where the time is over.
func afterwards(ctx context.Context) (context.Context, context.CancelFunc) {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return context.WithTimeout(context.WithoutCancel(ctx), lastMoment)
	}
	return ctx, func() {}
}

func dated(q *ListQuery) bool { return !q.Since.IsZero() || !q.Until.IsZero() }

// folderName gives INBOX its one spelling and refuses invalid names.
func (x *access) folderName(name string) (string, error) {
	name = imap.FolderName(name)
	if err := mail.CheckFolder(name); err != nil {
		return "", x.Failure(mail.KindNotFound, imap.StageExamine, "There is no such folder: "+err.Error()+".", mail.AdviceFolders)
	}
	return name, nil
}

// listing is one List in progress.
type listing struct {
	*imapBox
	q    ListQuery
	want fetch.Wanted
	seen *seeing

	structured bool // a BODYSTRUCTURE may be asked for

	page    *Page
	shown   []*fetch.Message      // the messages of the page
	opening map[mail.Ref]*Message // the Snippet of each, where the query wants it
	next    uint32                // the next UID of the folder, visible or not; 0 when the server did not say
	reached uint32                // the greatest UID that was looked at, visible or not
	listed  int                   // how many messages the server said there are to list; 0 where a search finds them
	came    int                   // how many it gave data of
	later   bool                  // the server gave no UIDNEXT: the state of the folder begins when the page is known
	broken  bool                  // some requested messages were not checked
}

func (l *listing) run(ctx context.Context, structure bool) error {
	// A message's structure never changes and is most of a list's cost, so it is fetched once.
	// Where the policy hides messages it is fetched for visible ones alone: a hidden one's
	// structure may be unreadable, and must not be noticed.
	l.structured = structure
	// A snippet needs it, too; and pages further back are mostly of messages not listed before.
	l.want.Text = l.q.Snippet > 0 && l.Policy.ShowsAll()
	l.want.Structure = structure && l.Policy.ShowsAll() && (l.q.Full || l.want.Text || l.q.Before.UID != 0 || !l.pool.parts.Begun(l.q.Folder))
	return l.lend(ctx, l.q.Folder, func(s *imap.Session) error {
		// From the start: after a dead connection this runs again.
		l.page, l.shown, l.opening, l.next, l.reached, l.listed, l.came = &Page{Folder: l.q.Folder}, nil, nil, 0, 0, 0, 0
		find := l.byNumber
		if l.q.Unread || l.q.New || dated(&l.q) || l.q.Before.UID != 0 && l.q.After.UID != 0 {
			find = l.bySearch
		}
		if err := find(s); err != nil {
			if l.q.Snippet > 0 && l.want.Text && len(l.shown) > 0 {
				l.opening, _ = l.Excerpts(s, reading.Excerpt{Chars: l.q.Snippet}, l.shown, l.structured) // of the texts that came
			}
			return err
		}
		if n := min(l.listed, l.q.Limit) - l.came; n > 0 && l.Policy.ShowsAll() {
			l.page.Issues = append(l.page.Issues, mail.Issue{Kind: mail.KindRefused, Stage: imap.StageFetch, Retryable: true,
				Message: fmt.Sprintf("The server counts %d more messages, but sent no usable data for them.", n)})
		}
		if l.q.Snippet > 0 {
			if err := l.snippets(s); err != nil {
				return err
			}
		}
		return fetch.Complete(s, l.shown, func(g *fetch.Message) bool {
			_, known := l.pool.parts.Known(g.Ref)
			return !known && g.Root == nil && g.Doubtful()
		}, structure)
	})
}

// snippets reads the opening of each message of the page, mostly from bytes that were
// fetched with it. Where the policy hides messages, those it shows are fetched once more:
// nothing of the others' texts is asked for.
func (l *listing) snippets(s *imap.Session) (err error) {
	if !l.want.Text {
		if _, err := l.FetchAgain(s, l.shown, fetch.Wanted{Header: true, Structure: l.structured, Text: true, Dates: l.want.Dates, Full: l.q.Full}); err != nil {
			return err
		}
	}
	l.opening, err = l.Excerpts(s, reading.Excerpt{Chars: l.q.Snippet}, l.shown, l.structured)
	return err
}

// searchable reports whether a folder of this many messages is so large that the server
// must first search for those that can be visible.
func (l *listing) searchable(exists uint64) bool {
	return int(exists) > l.m.bounds.judged && !l.Policy.ShowsAll() && search.Senders(l.Policy) != nil
}

// begin fills in the folder's data.
func (l *listing) begin(s *imap.Session, box imap.Folder) error {
	for _, anchor := range []mail.Ref{l.q.Before, l.q.After} {
		if anchor.UIDValidity != 0 && anchor.UIDValidity != box.UIDValidity {
			return l.MadeAnew(mail.AdviceListAgain)
		}
	}
	l.page.UIDValidity, l.next = box.UIDValidity, box.UIDNext
	if l.Policy.ShowsAll() {
		l.page.UIDNext = box.UIDNext
	}
	if l.later = box.UIDNext == 0 && l.fromTheNewest() && !l.searchable(uint64(box.Exists)); l.later {
		return nil // the page tells the greatest UID
	}
	return l.seen.begin(l.imapBox, s, box)
}

// windows says how many messages to fetch next, from last on. If every fetched message is
// shown, that is the number still needed, and one more to know whether others follow; else
// windows grow.
func (l *listing) windows(last int) func() int {
	return func() int {
		needed := l.q.Limit + 1 - len(l.shown)
		switch {
		case l.Policy.ShowsAll() && !dated(&l.q):
			last = needed
		case last == 0:
			last = max(minWindow, min(needed, maxWindow))
		default:
			last = min(2*last, maxWindow)
		}
		return last
	}
}

// numbered goes through the sequence numbers low..high from the end asked for.
func (l *listing) numbered(s *imap.Session, low, high uint32, last int) error {
	return l.Walk(s, fetch.Source{Low: low, High: high}, l.q.OldestFirst, l.want, l.windows(last), l.take)
}

// byNumber lists by sequence numbers, whose order is that of UIDs (RFC 9051 section
// 2.3.1.2) and whose range is known without a search. They do not change while only FETCH
// and SEARCH are sent (section 7.5.1).
func (l *listing) byNumber(s *imap.Session) error {
	known, _ := s.Selected()
	if l.searchable(uint64(known.Exists)) && known.Name == l.q.Folder {
		return l.bySearch(s)
	}
	if known.Name == l.q.Folder && known.Exists > 0 && l.q.Before.UID == 0 && l.q.After.UID == 0 {
		return l.guess(s, known.Exists)
	}
	if known.Name != l.q.Folder && l.fromTheNewest() && l.seen.state.Newest.Messages > 0 {
		return l.guessNewest(s)
	}
	// The number of messages up to a UID is the sequence number of the last of them. UIDs
	// have gaps, so it takes a search; counting keeps its answer short.
	bound := cmp.Or(l.q.After.UID, max(l.q.Before.UID, 1)-1)
	var examine *imap.Examining
	var counting *imap.Counting
	s.Together(func() {
		examine = s.Examine(l.q.Folder)
		if bound != 0 {
			counting = s.Count(imap.Criteria{UIDs: []imap.UIDSet{imap.UIDsBetween(1, bound)}})
		}
	})
	box, err := examine.Wait()
	var counted uint32
	var countErr error
	if counting != nil {
		counted, countErr = counting.Wait()
	}
	if err = cmp.Or(err, countErr); err != nil {
		return err
	}
	if err := l.begin(s, box); err != nil {
		return err
	}
	low, high := uint32(1), box.Exists
	if l.q.After.UID != 0 {
		low = min(counted, box.Exists) + 1
	} else if l.q.Before.UID != 0 {
		high = min(counted, high)
	}
	if l.searchable(uint64(box.Exists)) {
		return l.bySearch(s)
	}
	l.listed = max(0, int(high)-int(low)+1)
	return l.numbered(s, low, high, 0)
}

// guess lists one end of a folder in one round trip: the fetch leaves together with the
// EXAMINE, for a range that fits the number of messages known before. Messages that came
// since are fetched afterwards; those that went are left out.
func (l *listing) guess(s *imap.Session, exists uint32) error {
	n := uint32(l.windows(0)())
	low, high := uint32(1), min(n, exists)
	set := imap.SeqRange{First: low, Last: high}
	if !l.q.OldestFirst {
		low = exists - high + 1
		high = low
		set = imap.SeqRange{First: low, Last: exists}
	}
	again := false
	box, data, err, fetchErr := fetch.Now(s, l.q.Folder, func() *imap.Fetching {
		if again { // messages came or went: ask for what new ones are made of at once
			l.want.Structure = l.structured && l.Policy.ShowsAll()
		}
		again = true
		if l.q.OldestFirst {
			return s.Fetch(set, l.want.Items())
		}
		return s.FetchNewest(set, l.want.Items(), true) // to the newest there is
	})
	if err != nil {
		return err
	}
	if err := l.begin(s, box); err != nil {
		return err
	}
	l.listed = int(box.Exists)
	if imap.Refused(fetchErr) || fetchErr == nil && box.Exists < high {
		// The folder no longer has the range.
		return l.numbered(s, 1, box.Exists, 0)
	}
	got := l.Window(box, data)
	if fetchErr != nil {
		if box.Exists >= high {
			l.take(fetch.Unbroken(imap.SeqRange{First: low, Last: box.Exists}, got, l.q.OldestFirst))
		}
		return fetchErr
	}
	if !l.q.OldestFirst {
		slices.Reverse(got)
	}
	if !l.take(got) {
		return nil
	}
	if l.q.OldestFirst {
		return l.numbered(s, high+1, box.Exists, int(n))
	}
	return l.numbered(s, 1, low-1, int(n))
}

// take adds the visible messages that match the query, and reports whether the page has
// room.
func (l *listing) take(got []fetch.Message) (more bool) {
	l.came += len(got)
	for i := range got {
		g := &got[i]
		if g.Readable {
			l.reached = max(l.reached, g.Ref.UID)
		}
		if l.Policy.ShowsAll() && l.page.UIDNext != 0 && g.Ref.UID >= l.page.UIDNext {
			l.page.UIDNext = g.Ref.UID + 1
		}
		if l.q.Before.UID != 0 && g.Ref.UID >= l.q.Before.UID || g.Ref.UID <= l.q.After.UID || l.q.Unread && fetch.HasFlag(g.Flags, fetch.FlagSeen) ||
			slices.ContainsFunc(l.shown, func(shown *fetch.Message) bool { return shown.Ref == g.Ref }) {
			continue
		}
		if !g.Readable {
			if l.Policy.ShowsAll() {
				l.page.Issues = append(l.page.Issues, g.Unreadable())
			}
			continue
		}
		if !l.Policy.Sees(g) || !g.InTime(l.q.Since, l.q.Until) {
			continue
		}
		if len(l.shown) == l.q.Limit {
			l.page.HasMore = true
			return false
		}
		l.shown = append(l.shown, g)
	}
	return true
}

// bySearch lists what a search finds.
func (l *listing) bySearch(s *imap.Session) error {
	known, _ := s.Selected()
	from := known.Name == l.q.Folder && l.searchable(uint64(known.Exists))
	v := fetch.Visit{Folder: l.q.Folder, Criteria: []imap.Criteria{l.criteria(from)}}
	err := (fetch.Visits{&v}).Start(s, nil)
	if err = cmp.Or(err, v.Err, v.Errs[0]); err != nil {
		return err
	}
	box, found := v.Box, v.Found[0]
	anew := !l.seen.known(l.imapBox, box)
	if err := l.begin(s, box); err != nil {
		return err
	}
	if more := !from && l.searchable(found.Count()); more || l.q.New && anew {
		// The search used an earlier state of the folder.
		if found, err = s.Search(l.criteria(from || more)).Wait(); err != nil {
			return err
		}
	}
	first, _ := found.Split(uint32(l.q.Limit), l.q.OldestFirst)
	for _, uid := range first.Numbers() {
		if _, known := l.pool.parts.Known(l.RefTo(box.Name, box.UIDValidity, uid)); !known {
			l.want.Structure = l.structured && l.Policy.ShowsAll()
			break
		}
	}
	return l.Walk(s, fetch.Source{UIDs: found}, l.q.OldestFirst, l.want, l.windows(0), l.take)
}

// criteria selects at least what the query does. With from the server leaves out messages
// that cannot be visible.
func (l *listing) criteria(from bool) imap.Criteria {
	c := imap.Criteria{Unseen: l.q.Unread}
	if from {
		c.AnyOf = append(c.AnyOf, search.Senders(l.Policy))
	}
	if l.q.New {
		c.UIDs = append(c.UIDs, l.seen.unacked())
	}
	if l.q.Before.UID != 0 || l.q.After.UID != 0 {
		high := uint32(1<<32 - 1)
		if l.q.Before.UID != 0 {
			high = max(l.q.Before.UID, 2) - 1
		}
		low := min(l.q.After.UID, 1<<32-2) + 1
		c.UIDs = append(c.UIDs, imap.UIDsBetween(min(low, high), max(low, high)))
	}
	fetch.MayBeDated(&c, l.q.Since, l.q.Until)
	return c
}

// summary is the message as the page shows it.
func (l *listing) summary(g *fetch.Message) Summary {
	s := l.access.Summary(g, l.q.Full)
	if e := l.opening[g.Ref]; e != nil {
		s.Snippet, s.Subject, s.HiddenChars = e.Snippet, e.Subject, e.HiddenChars
	}
	if has, known := l.pool.parts.Known(g.Ref); known && g.Root == nil {
		s.HasAttachments, s.Invitation = has.Attachments, has.Invitation
	} else if g.Root != nil || !g.Doubtful() || !l.structured {
		l.pool.parts.Note(g.Ref, fetch.Parts{Attachments: s.HasAttachments, Invitation: s.Invitation})
	}
	return s
}
