package mailbox

import (
	"cmp"
	"context"
	"errors"
	"slices"

	goimap "github.com/emersion/go-imap/v2"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/imap"
	"github.com/postern-mail/postern/mail/internal/message"
	"github.com/postern-mail/postern/mail/internal/wire"
)

// The bounds of List.
const (
	defaultLimit = 50  // 000 section 7.3
	maxLimit     = 500 // 000 section 7.3
	maxWindow    = 500 // messages fetched at once while looking for visible ones
	minWindow    = 50
)

// List returns messages of one folder by UID, newest first unless asked
// otherwise. It fetches no more than it shows, and one more to know whether
// there are any, besides what the inbound policy or a date has to look at. Limit
// is brought into 1..500. A message whose data cannot be read is an Issue; the
// others are listed. When the server fails or the time is over after some
// messages were found, these are returned with an Issue and HasMore set.
//
// The first List of a folder notes which messages were there, and New lists those
// that came since and were not acknowledged; beyond that nothing is kept.
func (m *Client) List(ctx context.Context, account string, q ListQuery) (*Page, error) {
	b, err := m.open(ctx, "mail list", account)
	if err != nil {
		return nil, err
	}
	return b.list(ctx, q)
}

func (x *imapBox) list(ctx context.Context, q ListQuery) (*Page, error) {
	if q.Folder == "" {
		q.Folder = "INBOX"
	}
	q.Folder = imap.FolderName(q.Folder)
	if err := x.checkFolder(q.Folder); err != nil {
		return nil, err
	}
	q.Limit = within(q.Limit, defaultLimit, 1, maxLimit)

	for _, anchor := range []mail.Ref{q.Before, q.After} {
		if anchor != (mail.Ref{}) && (anchor.Protocol != mail.IMAP || anchor.Account != x.Account || imap.FolderName(anchor.Folder) != q.Folder || anchor.UID == 0) {
			return nil, x.noAnchor("")
		}
	}
	if q.Before.UID != 0 && (q.BeforeUID == 0 || q.Before.UID < q.BeforeUID) {
		q.BeforeUID = q.Before.UID
	}
	q.AfterUID = max(q.AfterUID, q.After.UID)
	if anchored := q.Before.UID != 0 || q.After.UID != 0; anchored && q.BeforeUID != 0 && q.BeforeUID-1 <= q.AfterUID {
		return nil, x.Invalid("No message lies between the bounds that were given.", mail.AdviceNoBound)
	}
	if q.New && x.m.o.Seen == nil {
		return nil, x.Unsupported("Nothing is kept here about which messages are new.", mail.AdviceListByUID)
	}
	l := x.listing(q, &seeing{store: x.m.o.Seen})
	if err := l.seen.read(ctx, x, q.Folder); err != nil {
		return nil, err
	}
	if err := l.do(ctx); err != nil {
		return nil, err
	}
	return l.page, l.seen.keep(ctx, x, q.Folder)
}

// listing begins to list a folder, whose name is good.
func (x *imapBox) listing(q ListQuery, seen *seeing) *listing {
	l := &listing{imapBox: x, q: q, seen: seen, want: wanted{header: !x.policy.ShowsAll(), dates: q.Full || dated(&q), full: q.Full}}
	// What a message is made of never changes and is most of what a list costs,
	// so it is asked for once.
	// Where the policy hides messages it is asked of the visible ones alone: what
	// a hidden one is made of may be unreadable, and must not be noticed.
	l.want.structure = x.policy.ShowsAll() && (q.Full || !x.pool.parts.begun(q.Folder))
	return l
}

// do makes the page.
func (l *listing) do(ctx context.Context) error {
	q := &l.q
	err := l.run(ctx)
	if ctx.Err() == nil && unreadable(err) {
		// One message's structure can make the whole answer unreadable. It only
		// tells whether there are attachments, which the header tells roughly; the
		// others are asked for theirs afterwards.
		l.want.structure, l.unstructured = false, true
		if err = l.run(ctx); err == nil {
			l.structures(ctx, q.Folder, l.page.UIDValidity, l.doubtful, l.structured)
		}
	}
	if err == nil {
		return nil
	}
	l.broken = true
	if l.page != nil && len(l.page.Messages) > 0 && partial(ctx, err) {
		l.page.HasMore = true
		l.page.Issues = append(l.page.Issues, l.AsError(err).Issue())
		return nil
	}
	return err
}

// noAnchor is the answer to a list that is to begin behind a message that is not
// there, or that the inbound policy hides.
func (x *access) noAnchor(reason string) error {
	return &mail.Error{Op: x.Op, Account: x.Account, Kind: mail.KindConflict, Stage: string(imap.StageList), Reason: reason,
		Message: "The message that the list was to go on from is not there.", Advice: mail.AdviceListWithoutAnchor}
}

// partial reports whether what was found before err is worth answering with: not
// when nobody waits for it any more.
func partial(ctx context.Context, err error) bool {
	var e *mail.Error
	return errors.As(err, &e) && !errors.Is(ctx.Err(), context.Canceled)
}

func dated(q *ListQuery) bool { return !q.Since.IsZero() || !q.Until.IsZero() }

// checkFolder refuses a name that no folder can have.
func (x *access) checkFolder(name string) error {
	if err := mail.CheckFolder(name); err != nil {
		return &mail.Error{Op: x.Op, Account: x.Account, Kind: mail.KindNotFound, Stage: string(imap.StageExamine), Err: err,
			Message: "There is no such folder: " + err.Error() + ".", Advice: mail.AdviceFolders}
	}
	return nil
}

// unreadable reports whether an answer of the server could not be understood or
// went over a bound, so that asking for less may help. The stage does not matter:
// commands leave together, and the first that waits meets the failure.
func unreadable(err error) bool {
	var w *wire.Error
	if !errors.As(err, &w) {
		return false
	}
	switch w.Stage {
	case wire.StageConnect, wire.StageTLS, wire.StageGreeting, wire.StageAuth:
		return false
	}
	return w.Kind == wire.KindProtocol || w.Kind == wire.KindLimit
}

// listing is one List in progress.
type listing struct {
	*imapBox
	q    ListQuery
	want wanted
	seen *seeing

	unstructured bool // a BODYSTRUCTURE cannot be read

	page     *Page
	doubtful []uint32 // on the page, perhaps with attachments
	empty    int      // windows in a row for which the server gave nothing
	looked   uint64   // messages fetched
	next     uint32   // the UID that comes next, whatever the policy; 0 when the server did not say
	reached  uint32   // the greatest UID that was looked at, visible or not
	broken   bool     // not everything that was asked for has been looked at
}

// maxEmpty is how many windows in a row may come back empty: a server that goes on
// naming messages and giving none would keep this busy for ever.
const maxEmpty = 5

// fetch gets one window.
func (l *listing) fetch(s *imap.Session, set goimap.NumSet) ([]fetched, error) {
	s.Renew()
	l.looking(l.looked, 0, l.q.Folder)
	got, err := fetchAll(s, set, l.want)
	l.looked += uint64(len(got))
	if l.empty++; len(got) > 0 {
		l.empty = 0
	}
	if err == nil && l.empty == maxEmpty {
		err = l.givesNothing()
	}
	return got, err
}

func (l *listing) run(ctx context.Context) error {
	return l.lend(ctx, l.q.Folder, func(s *imap.Session) error {
		// From the start: on a connection that turned out dead this runs again.
		l.page, l.empty, l.doubtful, l.next, l.reached = &Page{Folder: l.q.Folder}, 0, nil, 0, 0
		find := l.byNumber
		if l.q.Unread || l.q.New || dated(&l.q) {
			find = l.bySearch
		}
		if err := find(s); err != nil {
			return err
		}
		return l.settle(s)
	})
}

// settle looks at the parts of those messages on the page of which they were
// neither fetched nor known, and whose header does not tell whether there are
// attachments.
func (l *listing) settle(s *imap.Session) error {
	if len(l.doubtful) == 0 || l.unstructured {
		return nil
	}
	s.Renew()
	data, err := startStructures(s, l.doubtful).Wait()
	if err != nil {
		return err
	}
	for _, uid := range l.doubtful {
		if d := dataOf(data, uid); d != nil && d.BodyStructure != nil {
			l.structured(uid, partsOf(d.BodyStructure))
		}
	}
	return nil
}

// structured takes what a message on the page is made of, nil when that cannot be
// read, which need not be tried again.
func (l *listing) structured(uid uint32, root *message.Part) {
	for i := range l.page.Messages {
		m := &l.page.Messages[i]
		if m.Ref.UID != uid {
			continue
		}
		if root != nil {
			g := fetched{root: root}
			m.HasAttachments = g.hasAttachments()
		}
		l.pool.parts.note(l.q.Folder, l.page.UIDValidity, uid, m.HasAttachments)
	}
}

// searchable reports whether a folder of this many messages is so large that the
// server has to say which of them can be visible at all.
func (l *listing) searchable(exists uint64) bool {
	return exists > maxScan && !l.policy.ShowsAll() && senders(l.policy) != nil
}

// begin fills in what is known of the folder.
func (l *listing) begin(s *imap.Session, box imap.Folder) error {
	for _, anchor := range []mail.Ref{l.q.Before, l.q.After} {
		if anchor.UIDValidity != 0 && anchor.UIDValidity != box.UIDValidity {
			return l.gone()
		}
	}
	l.page.UIDValidity, l.next = box.UIDValidity, box.UIDNext
	if l.policy.ShowsAll() {
		l.page.UIDNext = box.UIDNext
	}
	return l.seen.begin(l.imapBox, s, box)
}

// enough is how many messages settle the page: one more than it shows.
func (l *listing) enough() int { return l.q.Limit + 1 - len(l.page.Messages) }

// window is how many messages to fetch next. Where all that is fetched is shown,
// that is what is still needed; else windows grow.
func (l *listing) window(last int) int {
	switch {
	case l.policy.ShowsAll() && !dated(&l.q):
		return l.enough()
	case last == 0:
		return max(minWindow, min(l.enough(), maxWindow))
	}
	return min(2*last, maxWindow)
}

// byNumber lists by sequence numbers, whose order is that of UIDs (RFC 9051
// section 2.3.1.2) and whose range is known without a search. They stay as they
// are while only FETCH and SEARCH are sent (section 7.5.1).
func (l *listing) byNumber(s *imap.Session) error {
	known, _ := s.Selected()
	if l.searchable(uint64(known.Exists)) && known.Name == l.q.Folder {
		return l.bySearch(s)
	}
	if known.Name == l.q.Folder && known.Exists > 0 && l.q.BeforeUID == 0 && l.q.AfterUID == 0 {
		return l.guess(s, known.Exists)
	}
	var examine *imap.Examining
	var high, low func() (uint32, error)
	s.Together(func() {
		examine = s.Examine(l.q.Folder)
		// Plain answers carry no tag: of two searches the second waits for the first.
		together := l.q.BeforeUID == 0 || l.q.AfterUID == 0 || s.Has("ESEARCH")
		high = l.position(s, max(l.q.BeforeUID, 1)-1, together)
		low = l.position(s, l.q.AfterUID, together)
	})
	box, err := examine.Wait()
	before, beforeErr := high()
	from, fromErr := low()
	if err = cmp.Or(err, beforeErr, fromErr); err != nil {
		return err
	}
	if err := l.begin(s, box); err != nil {
		return err
	}
	last := box.Exists
	if from >= last {
		return nil
	}
	if l.searchable(uint64(last)) {
		return l.bySearch(s)
	}
	if l.q.BeforeUID != 0 {
		last = min(before, last)
	}
	return l.windows(s, from+1, last, 0)
}

// guess lists one end of a folder in one round trip: the fetch leaves together
// with the EXAMINE, for a range that fits the number of messages known before.
// What came or went since is fetched, or left out, afterwards.
func (l *listing) guess(s *imap.Session, exists uint32) error {
	n := uint32(l.window(0))
	low, high := uint32(1), min(n, exists)
	var set goimap.SeqSet
	if l.q.OldestFirst {
		set.AddRange(low, high)
	} else {
		low = exists - min(n, exists) + 1
		set.AddRange(low, 0) // to the newest there is
	}
	box, data, err, fetchErr := visit(s, l.q.Folder, func() *imap.Fetching { return startWindow(s, set, l.want) })
	if err != nil {
		return err
	}
	got := readWindow(data)
	if err := l.begin(s, box); err != nil {
		return err
	}
	switch {
	case refusedByServer(fetchErr), fetchErr == nil && box.Exists < high, fetchErr == nil && box.Exists < low:
		// The range was none of the folder any more.
		return l.windows(s, 1, box.Exists, 0)
	case fetchErr != nil:
		return fetchErr
	}
	if l.take(got) {
		return nil
	}
	if l.q.OldestFirst {
		return l.windows(s, high+1, box.Exists, int(n))
	}
	return l.windows(s, 1, low-1, int(n))
}

// position starts to count the messages up to a UID, which is the sequence number
// of the last of them. UIDs have gaps, so it takes a search; counting keeps its
// answer short.
func (l *listing) position(s *imap.Session, uid uint32, now bool) func() (uint32, error) {
	if uid == 0 {
		return func() (uint32, error) { return 0, nil }
	}
	var set goimap.UIDSet
	set.AddRange(1, goimap.UID(uid))
	start := func() func() (uint32, error) { return s.Count(&goimap.SearchCriteria{UID: []goimap.UIDSet{set}}).Wait }
	if now {
		return start()
	}
	return func() (uint32, error) { return start()() }
}

// windows goes through the sequence numbers low..high from the end asked for.
func (l *listing) windows(s *imap.Session, low, high uint32, last int) error {
	for low <= high && high > 0 {
		last = l.window(last)
		n := min(uint32(last), high-low+1)
		var set goimap.SeqSet
		if l.q.OldestFirst {
			set.AddRange(low, low+n-1)
			low += n
		} else {
			set.AddRange(high-n+1, high)
			high -= n
		}
		got, err := l.fetch(s, set)
		if err != nil {
			return err
		}
		if l.take(got) {
			return nil
		}
	}
	return nil
}

// take adds what is visible and asked for, and reports whether that settles the
// page.
func (l *listing) take(got []fetched) bool {
	if !l.q.OldestFirst {
		slices.Reverse(got)
	}
	for i := range got {
		g := &got[i]
		if g.readable {
			l.reached = max(l.reached, g.uid)
		}
		if l.policy.ShowsAll() && l.page.UIDNext != 0 && g.uid >= l.page.UIDNext {
			l.page.UIDNext = g.uid + 1
		}
		if l.q.BeforeUID != 0 && g.uid >= l.q.BeforeUID || g.uid <= l.q.AfterUID ||
			slices.ContainsFunc(l.page.Messages, func(m Summary) bool { return m.Ref.UID == g.uid }) {
			continue
		}
		if !g.readable {
			if l.policy.ShowsAll() {
				l.page.Issues = append(l.page.Issues, mail.Issue{Kind: mail.KindRefused, Stage: "parse", UID: g.uid, Retryable: true,
					MessageID: l.ref(g.uid).String(), Message: "The server did not give the message's header."})
			}
			continue
		}
		if !g.visible(l.policy) || !l.inTime(g) {
			continue
		}
		if len(l.page.Messages) == l.q.Limit {
			l.page.HasMore = true
			return true
		}
		l.page.Messages = append(l.page.Messages, l.summary(g))
	}
	return false
}

func (l *listing) ref(uid uint32) mail.Ref {
	return l.refTo(l.q.Folder, l.page.UIDValidity, uid)
}

// inTime filters exactly what the server's search, which knows only days, let
// through.
func (l *listing) inTime(g *fetched) bool {
	if !dated(&l.q) {
		return true
	}
	t, ok := g.date()
	if !ok {
		t = g.internal
	}
	return !t.IsZero() && (l.q.Since.IsZero() || !t.Before(l.q.Since)) && (l.q.Until.IsZero() || t.Before(l.q.Until))
}

// bySearch lists what a search finds.
func (l *listing) bySearch(s *imap.Session) error {
	known, _ := s.Selected()
	from := known.Name == l.q.Folder && l.searchable(uint64(known.Exists))
	var examine *imap.Examining
	var search *imap.Searching
	s.Together(func() {
		examine = s.Examine(l.q.Folder)
		search = s.Search(l.criteria(from))
	})
	box, err := examine.Wait()
	found, searchErr := search.Wait()
	if err = cmp.Or(err, searchErr); err != nil {
		return err
	}
	anew := !l.seen.known(l.imapBox, box)
	if err := l.begin(s, box); err != nil {
		return err
	}
	if more := !from && l.searchable(imap.CountUIDs(found)); more || l.q.New && anew {
		// What was asked for rested on what is no longer so.
		if found, err = s.Search(l.criteria(from || more)).Wait(); err != nil {
			return err
		}
	}
	for last := 0; len(found) > 0; {
		last = l.window(last)
		var set goimap.UIDSet
		set, found = imap.SplitUIDs(found, uint32(last), l.q.OldestFirst)
		got, err := l.fetch(s, set)
		if err != nil {
			return err
		}
		got = slices.DeleteFunc(got, func(g fetched) bool {
			return !set.Contains(goimap.UID(g.uid)) || l.q.Unread && slices.Contains(g.flags, string(goimap.FlagSeen))
		})
		if l.take(got) {
			return nil
		}
	}
	return nil
}

// criteria selects at least what the query does. A search knows only days,
// without their zone, so the bounds are a day wider on either side; a message
// without a readable Date counts by its INTERNALDATE. With from the server leaves
// out what cannot be visible.
func (l *listing) criteria(from bool) *goimap.SearchCriteria {
	c := &goimap.SearchCriteria{}
	if from {
		c.And(senders(l.policy))
	}
	if l.q.New {
		c.UID = append(c.UID, l.seen.unacked())
	}
	if l.q.Unread {
		c.NotFlag = []goimap.Flag{goimap.FlagSeen}
	}
	if l.q.BeforeUID != 0 || l.q.AfterUID != 0 {
		var set goimap.UIDSet
		high := goimap.UID(1<<32 - 1)
		if l.q.BeforeUID != 0 {
			high = goimap.UID(max(l.q.BeforeUID, 2) - 1)
		}
		low := goimap.UID(min(l.q.AfterUID, 1<<32-2) + 1)
		set.AddRange(min(low, high), max(low, high))
		c.UID = append(c.UID, set)
	}
	if !l.q.Since.IsZero() {
		day := l.q.Since.UTC().AddDate(0, 0, -1)
		c.Or = append(c.Or, [2]goimap.SearchCriteria{{SentSince: day}, {Since: day}})
	}
	if !l.q.Until.IsZero() {
		day := l.q.Until.UTC().AddDate(0, 0, 2)
		c.Or = append(c.Or, [2]goimap.SearchCriteria{{SentBefore: day}, {Before: day}})
	}
	return c
}

// summary is what the page shows of a message.
func (l *listing) summary(g *fetched) Summary {
	s := g.summary(l.q.Full)
	s.Ref = l.ref(g.uid)
	if has, known := l.pool.parts.known(l.q.Folder, l.page.UIDValidity, g.uid); known && g.root == nil {
		s.HasAttachments = has
	} else if g.root != nil || !g.doubtful() {
		l.pool.parts.note(l.q.Folder, l.page.UIDValidity, g.uid, s.HasAttachments)
	} else {
		l.doubtful = append(l.doubtful, g.uid)
	}
	return s
}
