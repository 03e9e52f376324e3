package mail

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	goimap "github.com/emersion/go-imap/v2"

	"github.com/postern-mail/postern/mail/internal/imap"
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
// there are any; where the inbound policy or a date has to look at each message
// it looks at 20,000 at most and says so. Limit is brought into 1..500. A message
// whose data cannot be read is an Issue; the others are listed. When the server
// fails after some messages were found, these are returned with an Issue and
// HasMore set.
func (m *Mailboxes) List(ctx context.Context, account string, q ListQuery) (*Page, error) {
	x, err := m.open(ctx, "mail list", account)
	if err != nil {
		return nil, err
	}
	if q.Folder == "" {
		q.Folder = "INBOX"
	}
	q.Folder = imap.FolderName(q.Folder)
	if err := x.checkFolder(q.Folder); err != nil {
		return nil, err
	}
	if q.Limit == 0 {
		q.Limit = defaultLimit
	}
	q.Limit = min(max(q.Limit, 1), maxLimit)

	l := &listing{access: x, q: q, want: wanted{header: !x.policy.ShowsAll(), structure: true, dates: q.Full || q.dated(), full: q.Full}}
	err = l.run(ctx)
	if l.want.structure && ctx.Err() == nil && unreadable(err) {
		// One message's structure can make the whole answer unreadable. It only
		// tells whether there are attachments, which the header tells roughly.
		l.want.structure = false
		err = l.run(ctx)
	}
	if err == nil {
		return l.page, nil
	}
	if ctx.Err() == nil && l.page != nil && len(l.page.Messages) > 0 {
		var e *Error
		if errors.As(err, &e) {
			l.page.HasMore = true
			l.page.Issues = append(l.page.Issues, e.issue())
			return l.page, nil
		}
	}
	return nil, err
}

func (q *ListQuery) dated() bool { return !q.Since.IsZero() || !q.Until.IsZero() }

// checkFolder refuses a name that no folder can have.
func (x *access) checkFolder(name string) error {
	if err := CheckFolder(name); err != nil {
		return &Error{Op: x.op, Account: x.account.Name, Kind: KindNotFound, Stage: string(imap.StageExamine), Err: err,
			Message: "There is no such folder: " + err.Error() + ".", Hint: "Run 'mail folders' for the folders there are."}
	}
	return nil
}

// unreadable reports whether an answer of the server could not be understood or
// went over a bound, so that asking for less may help. The stage does not matter:
// commands leave together, and the first that waits meets the failure.
func unreadable(err error) bool {
	var w *imap.Error
	return errors.As(err, &w) && w.Op == "lend" && (w.Kind == imap.KindProtocol || w.Kind == imap.KindLimit)
}

// listing is one List in progress.
type listing struct {
	*access
	q    ListQuery
	want wanted

	page    *Page
	scanned int
}

func (l *listing) run(ctx context.Context) error {
	return l.lend(ctx, l.q.Folder, func(s *imap.Session) error {
		// From the start: on a connection that turned out dead this runs again.
		l.page, l.scanned = &Page{Folder: l.q.Folder}, 0
		if l.q.Unread || l.q.dated() {
			return l.bySearch(s)
		}
		return l.byNumber(s)
	})
}

// begin fills in what is known of the folder.
func (l *listing) begin(box imap.Folder) {
	l.page.UIDValidity = box.UIDValidity
	if l.policy.ShowsAll() {
		l.page.UIDNext = box.UIDNext
	}
}

// enough is how many messages settle the page: one more than it shows.
func (l *listing) enough() int { return l.q.Limit + 1 - len(l.page.Messages) }

// window is how many messages to fetch next. Where all that is fetched is shown,
// that is what is still needed; else windows grow, up to the end of the scan.
func (l *listing) window(last int) int {
	left := max(maxScan-l.scanned, 1)
	switch {
	case l.policy.ShowsAll() && !l.q.dated():
		return min(l.enough(), left)
	case last == 0:
		return max(minWindow, min(l.enough(), maxWindow))
	}
	return min(2*last, maxWindow, left)
}

// byNumber lists by sequence numbers, whose order is that of UIDs (RFC 9051
// section 2.3.1.2) and whose range is known without a search. They stay as they
// are while only FETCH and SEARCH are sent (section 7.5.1).
//
// The folder is EXAMINEd each time, in one write with what follows, which costs
// no round trip. A NOOP would not do: Dovecot answers a FETCH that came with it
// from what the session knew before. And an EXAMINE notices a folder that was
// made anew.
func (l *listing) byNumber(s *imap.Session) error {
	known, _ := s.Selected()
	if known.Name == l.q.Folder && known.Exists > 0 && l.q.BeforeUID == 0 && l.q.AfterUID == 0 {
		return l.guess(s, known.Exists)
	}
	var examine *imap.Examining
	var high, low func() (uint32, error)
	s.Together(func() {
		examine = s.Examine(l.q.Folder)
		high = l.position(s, max(l.q.BeforeUID, 1)-1)
		low = l.position(s, l.q.AfterUID)
	})
	box, err := examine.Wait()
	before, beforeErr := high()
	from, fromErr := low()
	if err = firstError(err, beforeErr, fromErr); err != nil {
		return err
	}
	l.begin(box)
	last := box.Exists
	if from >= last {
		return nil
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
	var examine *imap.Examining
	var fetch *imap.Fetching
	s.Together(func() {
		examine = s.Examine(l.q.Folder)
		fetch = startWindow(s, set, l.want)
	})
	box, err := examine.Wait()
	got, fetchErr := finishWindow(fetch)
	if err != nil {
		return err
	}
	l.begin(box)
	switch {
	case refusedByServer(fetchErr), fetchErr == nil && box.Exists < high, fetchErr == nil && box.Exists < low:
		// The range was none of the folder any more.
		return l.windows(s, 1, box.Exists, 0)
	case fetchErr != nil:
		return fetchErr
	}
	l.scanned += len(got)
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
func (l *listing) position(s *imap.Session, uid uint32) func() (uint32, error) {
	if uid == 0 {
		return func() (uint32, error) { return 0, nil }
	}
	var set goimap.UIDSet
	set.AddRange(1, goimap.UID(uid))
	start := func() func() (uint32, error) { return s.Count(&goimap.SearchCriteria{UID: []goimap.UIDSet{set}}).Wait }
	if s.Has("ESEARCH") {
		return start()
	}
	return func() (uint32, error) { return start()() } // plain answers carry no tag: one at a time
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
		s.Renew()
		got, err := fetchWindow(s, set, l.want)
		if err != nil {
			return err
		}
		l.scanned += int(n)
		if l.take(got) || l.exhausted(low <= high && high > 0) {
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
		if l.policy.ShowsAll() && l.page.UIDNext != 0 && g.uid >= l.page.UIDNext {
			l.page.UIDNext = g.uid + 1
		}
		if l.q.BeforeUID != 0 && g.uid >= l.q.BeforeUID || g.uid <= l.q.AfterUID ||
			slices.ContainsFunc(l.page.Messages, func(m Summary) bool { return m.Ref.UID == g.uid }) {
			continue
		}
		if !g.readable {
			if l.policy.ShowsAll() {
				l.page.Issues = append(l.page.Issues, Issue{Code: "EXECUTION_ERROR", Stage: "parse", UID: g.uid, Retryable: true,
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

func (l *listing) ref(uid uint32) Ref {
	return Ref{Protocol: IMAP, Account: l.account.Name, Folder: l.q.Folder, UIDValidity: l.page.UIDValidity, UID: uid}
}

// exhausted reports whether the scan has to stop though there are messages left.
func (l *listing) exhausted(left bool) bool {
	if !left || l.scanned < maxScan {
		return false
	}
	l.page.HasMore = true
	l.page.Issues = append(l.page.Issues, Issue{Code: "EXECUTION_ERROR", Stage: "fetch",
		Message: "The listing stopped after looking at 20,000 messages; narrow it by UID or date to look further."})
	return true
}

// inTime filters exactly what the server's search, which knows only days, let
// through.
func (l *listing) inTime(g *fetched) bool {
	if !l.q.dated() {
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
	var examine *imap.Examining
	var search *imap.Searching
	s.Together(func() {
		examine = s.Examine(l.q.Folder)
		search = s.Search(l.criteria())
	})
	box, err := examine.Wait()
	found, searchErr := search.Wait()
	if err = firstError(err, searchErr); err != nil {
		return err
	}
	l.begin(box)
	for last := 0; len(found) > 0; {
		last = l.window(last)
		var set goimap.UIDSet
		set, found = split(found, uint32(last), l.q.OldestFirst)
		s.Renew()
		got, err := fetchWindow(s, set, l.want)
		if err != nil {
			return err
		}
		got = slices.DeleteFunc(got, func(g fetched) bool {
			return !set.Contains(goimap.UID(g.uid)) || l.q.Unread && slices.Contains(g.flags, string(goimap.FlagSeen))
		})
		l.scanned += last
		if l.take(got) || l.exhausted(len(found) > 0) {
			return nil
		}
	}
	return nil
}

// criteria selects at least what the query does. A search knows only days,
// without their zone, so the bounds are a day wider on either side; a message
// without a readable Date counts by its INTERNALDATE.
func (l *listing) criteria() *goimap.SearchCriteria {
	c := &goimap.SearchCriteria{}
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
		c.UID = []goimap.UIDSet{set}
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

// split takes n UIDs from one end of a set, without expanding what is left.
func split(set goimap.UIDSet, n uint32, oldest bool) (taken, left goimap.UIDSet) {
	set = slices.Clone(set)
	slices.SortFunc(set, func(a, b goimap.UIDRange) int { return cmp.Compare(a.Start, b.Start) })
	for n > 0 && len(set) > 0 {
		i := len(set) - 1
		if oldest {
			i = 0
		}
		r := set[i]
		if size := uint64(r.Stop) - uint64(r.Start) + 1; size <= uint64(n) {
			taken.AddRange(r.Start, r.Stop)
			set = slices.Delete(set, i, i+1)
			n -= uint32(size)
			continue
		}
		if oldest {
			taken.AddRange(r.Start, r.Start+goimap.UID(n)-1)
			set[i].Start += goimap.UID(n)
		} else {
			taken.AddRange(r.Stop-goimap.UID(n)+1, r.Stop)
			set[i].Stop -= goimap.UID(n)
		}
		n = 0
	}
	return taken, set
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// summary is what the page shows of a message.
func (l *listing) summary(g *fetched) Summary {
	s := g.summary()
	s.Ref = l.ref(g.uid)
	if !l.q.Full {
		s.To, s.CC, s.InternetMessageID, s.Size, s.InternalDate = nil, nil, "", 0, time.Time{}
	}
	return s
}
