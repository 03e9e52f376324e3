package mailbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/cursor"
	"github.com/postern-mail/postern/mail/internal/imap"
	"github.com/postern-mail/postern/mail/mailbox/internal/fetch"
	"github.com/postern-mail/postern/mail/mailbox/internal/reading"
)

// The bounds of Search (001 section 4).
const (
	maxCriterion = 256 // characters
	// DefaultMaxMatches is how many matches a search may have.
	DefaultMaxMatches = 20_000
)

// Search finds messages in folders of one account or several, at least one. The server
// matches the text; with a policy that hides messages, and for criteria that no server
// knows, Search checks the matches itself, so that Total counts only visible ones. Without
// criteria for the server it checks only as many as the page needs. A folder or one of
// several accounts that fails is an Issue. When half the time is over, Search answers with
// what it has, and the cursor continues.
//
// More matches than MaxMatches are KindInvalid; so is a cursor that was not given for these
// accounts and folders. A cursor of which a folder was replaced is KindConflict. Numbers are
// brought into their bounds.
func (m *Client) Search(ctx context.Context, accounts []string, q SearchQuery) (*SearchPage, error) {
	f := &finding{m: m, op: mail.Operation{Op: "mail search", Account: accounts[0]}, accounts: accounts, q: q}
	boxes := make([]searcher, len(accounts))
	for i, name := range accounts {
		var err error
		if boxes[i], err = with[searcher](ctx, m, f.op.Op, name, "no search: its server only hands out whole messages", mail.AdvicePOP3Read); err != nil {
			if len(accounts) == 1 || errors.Is(err, context.Canceled) {
				return nil, err
			}
			f.failed(name, err)
		}
	}
	if err := f.prepare(ctx); err != nil {
		return nil, err
	}
	within := ctx
	if len(accounts) > 1 {
		var cancel context.CancelFunc
		within, cancel = mail.Sooner(ctx)
		defer cancel()
	}
	var all sync.WaitGroup
	panicked := make([]any, len(boxes))
	for i, x := range boxes {
		if x == nil {
			continue
		}
		a := &matches{access: x.base(), index: i}
		if len(f.accounts) > 1 {
			a.whose = " of " + a.Account
		}
		at := slices.DeleteFunc(slices.Clone(f.at.Places), func(p cursor.Place) bool { return p.Account != i })
		f.parts = append(f.parts, a)
		all.Go(func() {
			defer func() { panicked[i] = recover() }()
			a.err = x.search(within, &f.q, at, a)
		})
	}
	all.Wait()
	for _, p := range panicked {
		if p != nil {
			panic(p) // where the caller expects it
		}
	}
	return f.answer(ctx)
}

// finding is one Search in progress.
type finding struct {
	m        *Client
	op       mail.Operation
	accounts []string
	q        SearchQuery
	at       cursor.Position // where the search continues; zero at its beginning
	parts    []*matches
	page     SearchPage
	err      error // the first of those that failed
}

// matches is what one account has of a Search, as far as it was found in time.
type matches struct {
	*access
	index int    // of the account
	whose string // " of" and its name, for what is told where there are several accounts; else empty
	err   error  // it failed

	folders []*folderMatches
	leftOut []string     // the folders for junk and deleted messages that were not searched
	issues  []mail.Issue // what was not searched, or not in time
	// snippets reads the beginning of the texts of some of the messages found.
	snippets func(ctx context.Context, all []*fetch.Message) (map[mail.Ref]*Message, error)
}

// folderMatches is what one folder has.
type folderMatches struct {
	*access
	name    string
	valid   uint32 // its UIDVALIDITY; 0 until it has answered, and then that of the cursor
	uidNext uint32
	before  uint32 // only smaller UIDs are left for the pages to come; 0 means all
	err     error  // it failed

	list   []candidate // the newest below before, as many as a page has
	coming uint64      // how many are known for this page and those to come
	unsure bool        // there may be more
	count  int         // how many are known
}

func (f *folderMatches) answered() bool { return f.valid != 0 && f.err == nil }

// hasMore reports whether there are matches for another page.
func (f *folderMatches) hasMore() bool {
	return f.err == nil && (f.valid == 0 || f.coming > 0 || f.unsure)
}

// reached are the places where the next page continues.
func (a *matches) reached() []cursor.Place {
	var at []cursor.Place
	for _, f := range a.folders {
		if unsearched := f.valid == 0 && f.err == nil; unsearched || f.before != 0 {
			at = append(at, cursor.Place{Account: a.index, Folder: f.name, UIDValidity: f.valid, Before: f.before})
		}
	}
	return at
}

// failed notes that one of several accounts cannot be searched.
func (f *finding) failed(account string, err error) {
	f.err = cmp.Or(f.err, err)
	issue := f.op.AsError(err).Issue()
	if errors.Is(err, mail.ErrNoAccount) {
		issue.Kind, issue.Message = mail.KindNotFound, "There is no such account."
	}
	issue.Message = "Account " + account + ": " + issue.Message
	f.page.Issues = append(f.page.Issues, issue)
}

// breaksLine reports a control character, or one that separates lines.
func breaksLine(r rune) bool { return r < ' ' || r == 0x7f || r == 0x2028 || r == 0x2029 }

// prepare checks the query, or replaces it by the query of the cursor.
func (f *finding) prepare(ctx context.Context) error {
	q := &f.q
	q.Limit, q.Snippet = SearchLimit.of(q.Limit), SnippetChars.of(q.Snippet)
	if q.MaxMatches <= 0 {
		q.MaxMatches = DefaultMaxMatches
	}
	q.Folders = slices.Clone(q.Folders)
	for i, name := range q.Folders {
		if q.Folders[i] = imap.FolderName(name); mail.CheckFolder(name) != nil {
			_, err := (&access{Viewer: reading.Viewer{Operation: f.op}}).folderName(name)
			return err
		}
	}
	if q.Cursor != "" {
		if err := f.resume(ctx); err != nil {
			return err
		}
	}
	for _, text := range []string{q.Words, q.From, q.To, q.Subject, q.Text} {
		if !utf8.ValidString(text) || strings.ContainsFunc(text, breaksLine) || utf8.RuneCountInString(text) > maxCriterion {
			return f.op.Invalid("A criterion holds a control character or more than 256 characters.", mail.AdviceShorterText)
		}
	}
	if !q.Since.IsZero() && !q.Until.IsZero() && !q.Until.After(q.Since) {
		return f.op.Invalid("The search ends before it starts.", mail.AdviceDates)
	}
	return nil
}

// resume takes the criteria of the search that a cursor continues.
func (f *finding) resume(ctx context.Context) error {
	q := &f.q
	if q.Selects() || q.Attachments || q.Invitations {
		return f.op.Invalid("A cursor carries its criteria; others cannot be given with it.", mail.AdviceCursor)
	}
	c, err := f.m.cursors.Open(ctx, q.Cursor)
	if errors.Is(err, cursor.ErrNoCursor) {
		return f.op.Invalid("The cursor is not one that a search gave.", mail.AdviceCursor)
	}
	if err != nil {
		return err
	}
	if !slices.Equal(c.Accounts, f.accounts) || len(q.Folders) > 0 && !slices.Equal(c.Folders, q.Folders) || q.Everywhere && !c.Everywhere {
		return f.op.Invalid("The cursor belongs to another account or folder.", mail.AdviceCursor)
	}
	q.GoOn(c)
	f.at = *c
	return nil
}

// answer makes the page of what the accounts have.
func (f *finding) answer(ctx context.Context) (*SearchPage, error) {
	f.page.Unread, f.page.Attachments, f.page.Invitations = f.q.Unread, f.q.Attachments, f.q.Invitations
	var folders []*folderMatches
	searched := 0
	for _, a := range f.parts {
		if a.err != nil {
			if len(f.accounts) == 1 || errors.Is(a.err, context.Canceled) || f.op.AsError(a.err).Kind == mail.KindInvalid || f.op.AsError(a.err).Kind == mail.KindConflict {
				return nil, a.err
			}
			f.failed(a.Account, a.err)
			continue
		}
		searched++
		f.page.Issues = append(f.page.Issues, a.issues...)
		for _, name := range a.leftOut {
			f.page.LeftOut = append(f.page.LeftOut, f.named(a, name))
		}
		for _, s := range a.folders {
			if s.answered() {
				folders = append(folders, s)
				f.page.Searched = append(f.page.Searched, f.named(a, s.name))
			}
		}
	}
	if searched == 0 {
		return nil, f.err
	}
	if len(folders) == 1 {
		f.page.Folder, f.page.UIDValidity = folders[0].name, folders[0].valid
		if folders[0].Policy.ShowsAll() {
			f.page.UIDNext = folders[0].uidNext
		}
	}
	total := 0
	for _, s := range folders {
		total += s.count
	}
	if total > f.q.MaxMatches && f.q.Selects() {
		return nil, f.op.Invalid(tooMany(&f.q), mail.AdviceNarrow)
	}
	shown := f.choose(folders)
	f.fill(ctx, shown)
	for _, a := range f.parts {
		f.page.HasMore = f.page.HasMore || a.err == nil && slices.ContainsFunc(a.folders, (*folderMatches).hasMore)
	}
	if f.page.Total = total; !f.page.HasMore && f.q.Cursor == "" {
		f.page.Total = f.page.Attempted
	}
	if !f.page.HasMore {
		return &f.page, nil
	}
	at := f.q.Position(f.accounts)
	for _, a := range f.parts {
		at.Places = append(at.Places, a.reached()...)
	}
	ctx, done := afterwards(ctx)
	defer done()
	var err error
	f.page.NextCursor, err = f.m.cursors.Seal(ctx, &at)
	if errors.Is(err, cursor.ErrTooLong) {
		f.page.Issues = append(f.page.Issues, mail.Issue{Kind: mail.KindLimit, Stage: imap.StageSearch,
			Message: "The matches stand in too many folders to continue: narrow the search."})
		err = nil
	}
	return &f.page, err
}

// named is a folder's name, with its account where several are searched.
func (f *finding) named(a *matches, folder string) string {
	if len(f.accounts) > 1 {
		return a.Account + ":" + folder
	}
	return folder
}

// candidate is a message that may be on the page.
type candidate struct {
	*fetch.Message // nil: it vanished
	folder         *folderMatches
	ref            mail.Ref
	key            time.Time // when the newest was received of those from here on in its folder
}

// choose takes the messages of the page: time and again the next of the folder that has the
// newest. So each folder is left at one UID, wherever a message of it was moved there late.
func (f *finding) choose(folders []*folderMatches) (shown []candidate) {
	lists := make([][]candidate, len(folders))
	first := make(map[string]mail.Ref) // of the copies of a message
	for i, s := range folders {
		lists[i] = s.list
		for _, c := range lists[i] {
			if id := c.identity(); id != "" && first[id] == (mail.Ref{}) {
				first[id] = c.Ref
			}
		}
	}
	for {
		best := -1
		for i, list := range lists {
			if len(list) > 0 && (best < 0 || list[0].key.After(lists[best][0].key)) {
				best = i
			}
		}
		if best < 0 {
			break
		}
		c := lists[best][0]
		id := c.identity()
		copied := id != "" && first[id] != c.Ref
		if !copied && len(shown) == f.q.Limit {
			break
		}
		lists[best], c.folder.before = lists[best][1:], c.ref.UID
		c.folder.coming--
		if !copied {
			shown = append(shown, c)
		}
	}
	slices.SortStableFunc(shown, func(a, b candidate) int { return b.received().Compare(a.received()) })
	return shown
}

// identity is what copies of a message in one account have in common; empty where it
// cannot be told.
func (c *candidate) identity() string {
	if c.Message == nil || fetch.MessageID(c.Header) == "" || c.Size == 0 {
		return ""
	}
	date, _ := c.Date()
	return fmt.Sprint(c.folder.Account, "\x00", fetch.MessageID(c.Header), "\x00", date.Unix(), c.Size)
}

// received is when the message came, as far as it is known.
func (c *candidate) received() time.Time {
	if c.Message == nil {
		return c.key
	}
	if c.Internal.IsZero() {
		date, _ := c.Date()
		return date
	}
	return c.Internal
}

// fill puts messages on the page, with snippets where asked for.
func (f *finding) fill(ctx context.Context, shown []candidate) {
	snippets := f.snippets(ctx, shown)
	f.page.Attempted = len(shown)
	for _, c := range shown {
		switch {
		case c.Message == nil:
			f.page.Failed++
			f.page.Issues = append(f.page.Issues, mail.Issue{Kind: mail.KindNotFound, Stage: imap.StageFetch, UID: c.ref.UID,
				MessageID: c.ref.String(), Message: "The message was removed in the meantime."})
		case !c.Readable:
			f.page.Failed++
			f.page.Issues = append(f.page.Issues, c.Unreadable())
		default:
			sum := c.folder.Summary(c.Message, f.q.Full)
			if e := snippets[c.Ref]; e != nil {
				sum.Snippet, sum.Subject, sum.HiddenChars = e.Snippet, e.Subject, e.HiddenChars
			}
			f.page.Messages = append(f.page.Messages, sum)
		}
	}
}

// snippets reads the beginning of each message's text as Get reads it, mostly from bytes
// fetched before. What cannot be read is an Issue.
func (f *finding) snippets(ctx context.Context, shown []candidate) map[mail.Ref]*Message {
	out := map[mail.Ref]*Message{}
	if f.q.Snippet == 0 {
		return out
	}
	for _, a := range f.parts {
		if a.err != nil {
			continue
		}
		var all []*fetch.Message
		for _, c := range shown {
			if c.folder.access == a.access && c.Message != nil && c.Readable {
				all = append(all, c.Message)
			}
		}
		texts, err := a.snippets(ctx, all)
		maps.Copy(out, texts)
		if err != nil {
			f.page.Issues = append(f.page.Issues, a.AsError(a.wrap(ctx, err)).Issue())
		}
		f.page.Issues = append(f.page.Issues, a.Unjudged()...)
	}
	return out
}
