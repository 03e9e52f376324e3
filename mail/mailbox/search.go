package mailbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	goimap "github.com/emersion/go-imap/v2"
	"golang.org/x/net/idna"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/cursor"
	"github.com/postern-mail/postern/mail/internal/imap"
)

// The bounds of Search (001 section 4).
const (
	defaultSearchLimit = 10
	maxSearchLimit     = 50
	defaultSnippet     = 200
	minSnippet         = 50
	maxSnippet         = 500
	maxCriterion       = 256 // characters
	// DefaultMaxMatches is how many matches a search may have.
	DefaultMaxMatches = 20_000
)

// MaxCursorChars bounds the text form of a cursor. Criteria of the greatest length
// fit, in characters of four bytes.
const MaxCursorChars = cursor.MaxChars

// Search finds messages of one folder and returns the newest of them by UID. The server
// matches the text; with a policy that hides messages, or with HasAttachment, Search checks
// every match, so that Total counts only visible ones. More visible matches than
// MaxMatches, HasAttachment aside, are KindInvalid; so is a cursor that was not given for
// this account. A cursor whose folder was replaced is KindConflict. Numbers are brought
// into their bounds.
func (m *Client) Search(ctx context.Context, account string, q SearchQuery) (*SearchPage, error) {
	x, err := m.openIMAP(ctx, "mail search", account, "no folders, flags or search", mail.AdvicePOP3Read)
	if err != nil {
		return nil, err
	}
	f := &finding{imapBox: x, q: q}
	if err := f.prepare(ctx, m.cursors); err != nil {
		return nil, err
	}
	q = f.q
	err = withStructure(ctx, func(structure bool) error {
		f.want.structure = structure
		return f.run(ctx)
	})
	if err != nil {
		if f.page == nil || len(f.page.Messages) == 0 || !partial(ctx, err) {
			return nil, err
		}
		f.page.HasMore = true
		f.page.Issues = append(f.page.Issues, x.AsError(err).Issue())
	}
	if f.page.HasMore && f.last != 0 {
		at := cursor.Position{Account: account, Folder: q.Folder, UIDValidity: f.page.UIDValidity, Before: f.last, Query: q.Query, From: q.From,
			To: q.To, Subject: q.Subject, Text: q.Text, Unread: q.Unread, HasAttachment: q.HasAttachment, Start: q.Start, End: q.End}
		if f.page.NextCursor, err = m.cursors.Seal(ctx, &at); err != nil {
			return nil, err
		}
	}
	return f.page, nil
}

// finding is one Search in progress.
type finding struct {
	*imapBox
	q      SearchQuery
	before uint32 // only smaller UIDs are on the page; 0 means all
	valid  uint32 // the UIDVALIDITY a cursor is for; 0 means any
	want   wanted

	page *SearchPage
	last uint32 // the smallest UID that the page has handled
}

// breaksLine reports a control character, or one that separates lines.
func breaksLine(r rune) bool { return r < ' ' || r == 0x7f || r == 0x2028 || r == 0x2029 }

// prepare checks the query, or replaces it by the query of the cursor.
func (f *finding) prepare(ctx context.Context, cs cursor.Sealer) error {
	q := &f.q
	q.Limit = within(q.Limit, defaultSearchLimit, 1, maxSearchLimit)
	q.SnippetChars = within(q.SnippetChars, defaultSnippet, minSnippet, maxSnippet)
	if q.MaxMatches <= 0 {
		q.MaxMatches = DefaultMaxMatches
	}
	if q.Cursor != "" {
		if err := f.resume(ctx, cs); err != nil {
			return err
		}
	}
	for _, text := range []string{q.Query, q.From, q.To, q.Subject, q.Text} {
		if !utf8.ValidString(text) || strings.ContainsFunc(text, breaksLine) || utf8.RuneCountInString(text) > maxCriterion {
			return f.Invalid("A criterion holds a control character or more than 256 characters.", mail.AdviceShorterText)
		}
	}
	if !q.Start.IsZero() && !q.End.IsZero() && q.End.Before(q.Start) {
		return f.Invalid("The search ends before it starts.", mail.AdviceDates)
	}
	f.want = wanted{header: !f.policy.ShowsAll(), dates: q.Full, full: q.Full, text: q.Snippet}
	var err error
	q.Folder, err = f.folderName(cmp.Or(q.Folder, inbox))
	return err
}

// resume takes the criteria of the search that a cursor continues.
func (f *finding) resume(ctx context.Context, cs cursor.Sealer) error {
	q := &f.q
	if q.Query+q.From+q.To+q.Subject+q.Text != "" || q.Unread || q.HasAttachment || !q.Start.IsZero() || !q.End.IsZero() {
		return f.Invalid("A cursor carries its criteria; others cannot be given with it.", mail.AdviceCursor)
	}
	c, err := cs.Open(ctx, q.Cursor)
	if errors.Is(err, cursor.ErrNoCursor) {
		return f.Invalid("The cursor is not one that a search gave.", mail.AdviceCursor)
	}
	if err != nil {
		return err
	}
	if c.Account != f.account.Name || q.Folder != "" && imap.FolderName(q.Folder) != c.Folder {
		return f.Invalid("The cursor belongs to another account or folder.", mail.AdviceCursor)
	}
	q.Folder, q.Query, q.From, q.To, q.Subject, q.Text = c.Folder, c.Query, c.From, c.To, c.Subject, c.Text
	q.Unread, q.HasAttachment, q.Start, q.End = c.Unread, c.HasAttachment, c.Start, c.End
	f.before, f.valid = c.Before, c.UIDValidity
	return nil
}

// criteria is the search as the server gets it. The server knows only days, by the Date
// field, in any zone.
func (f *finding) criteria() *goimap.SearchCriteria {
	c := &goimap.SearchCriteria{}
	for _, h := range []struct{ key, value string }{{"From", f.q.From}, {"To", f.q.To}, {"Subject", f.q.Subject}} {
		if h.value != "" {
			c.Header = append(c.Header, goimap.SearchCriteriaHeaderField{Key: h.key, Value: h.value})
		}
	}
	if f.q.Query != "" {
		c.Text = []string{f.q.Query}
	}
	if f.q.Text != "" {
		c.Body = []string{f.q.Text}
	}
	if f.q.Unread {
		c.NotFlag = []goimap.Flag{goimap.FlagSeen}
	}
	day := func(t time.Time) time.Time { return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC) }
	if !f.q.Start.IsZero() {
		c.SentSince = day(f.q.Start)
	}
	if !f.q.End.IsZero() {
		c.SentBefore = day(f.q.End).AddDate(0, 0, 1)
	}
	return c
}

func (f *finding) run(ctx context.Context) error {
	return f.lend(ctx, f.q.Folder, func(s *imap.Session) error {
		f.page, f.last = &SearchPage{Page: Page{Folder: f.q.Folder}}, 0
		var examine *imap.Examining
		var search *imap.Searching
		s.Together(func() {
			examine = s.Examine(f.q.Folder)
			search = s.Search(f.criteria())
		})
		box, err := examine.Wait()
		found, searchErr := search.Wait()
		if err = cmp.Or(err, searchErr); err != nil {
			return err
		}
		if f.valid != 0 && f.valid != box.UIDValidity {
			return f.madeAnew(mail.AdviceSearchAnew)
		}
		f.page.UIDValidity = box.UIDValidity
		if f.policy.ShowsAll() {
			f.page.UIDNext = box.UIDNext
		}
		if found, err = f.sift(s, box, found); err != nil {
			return err
		}
		f.page.Total = int(imap.CountUIDs(found))
		if f.before != 0 {
			found = imap.UIDsBelow(found, f.before)
		}
		set, left := imap.SplitUIDs(found, uint32(f.q.Limit), false)
		if len(set) == 0 {
			return nil
		}
		f.page.HasMore = len(left) > 0
		s.Renew()
		got, err := f.fetchAll(s, set, f.want)
		if err != nil {
			return err
		}
		return f.fill(s, set, got)
	})
}

// sift returns the matches that are visible and meet the criteria that the server cannot
// search for. It checks each match.
func (f *finding) sift(s *imap.Session, box imap.Folder, found goimap.UIDSet) (goimap.UIDSet, error) {
	if !f.policy.ShowsAll() && len(found) > 0 {
		if senders := senders(f.policy); imap.CountUIDs(found) > maxScan && senders != nil {
			narrower := f.criteria()
			narrower.And(senders)
			var err error
			if found, err = s.Search(narrower).Wait(); err != nil || len(found) == 0 {
				return nil, err
			}
		}
		matches := found
		found = goimap.UIDSet{}
		if err := f.eachVisible(s, box, matches, func(g *fetched) { found.AddNum(goimap.UID(g.ref.UID)) }); err != nil {
			return nil, err
		}
	}
	if imap.CountUIDs(found) > uint64(f.q.MaxMatches) {
		f.page = nil
		return nil, f.Invalid(fmt.Sprintf("More than %d messages match.", f.q.MaxMatches), mail.AdviceNarrow)
	}
	if !f.q.HasAttachment {
		return found, nil
	}
	var attached goimap.UIDSet
	err := f.walk(s, source{uids: found}, false, wanted{structure: f.want.structure}, nil, func(got []fetched) bool {
		for i := range got {
			if got[i].hasAttachments() {
				attached.AddNum(goimap.UID(got[i].ref.UID))
			}
		}
		return true
	})
	return attached, err
}

// fill puts messages on the page, newest first, with snippets where asked for.
func (f *finding) fill(s *imap.Session, set goimap.UIDSet, got []fetched) error {
	f.page.Attempted = int(imap.CountUIDs(set))
	have := map[uint32]*fetched{}
	for i := range got {
		have[got[i].ref.UID] = &got[i]
	}
	var snippets map[mail.Ref]*Message
	var err error
	if f.q.Snippet {
		snippets, err = f.excerpts(s, excerpt{chars: f.q.SnippetChars}, slices.Collect(maps.Values(have)), f.want.structure)
	}
	for _, uid := range slices.Backward(imap.Numbers(set)) {
		f.last = uid
		switch g := have[uid]; {
		case g == nil || !g.visible(f.policy) && g.readable:
			f.page.Failed++
			f.page.Issues = append(f.page.Issues, mail.Issue{Kind: mail.KindNotFound, Stage: imap.StageFetch, UID: uid,
				MessageID: f.refTo(f.q.Folder, f.page.UIDValidity, uid).String(), Message: "The message was removed in the meantime."})
		case !g.readable:
			f.page.Failed++
			f.page.Issues = append(f.page.Issues, g.unreadable())
		default:
			sum := g.summary(f.q.Full)
			if m := snippets[g.ref]; m != nil {
				sum.Snippet = m.Snippet
			}
			f.page.Messages = append(f.page.Messages, sum)
		}
	}
	return err
}

// maxSenders bounds the entries from which a search is made.
const maxSenders = 30

// senders is the search criterion that leaves out most messages that the policy hides. It finds more than the list lets through, and is not relied on for a folder small
// enough to check every message. It is nil when the list cannot be searched for.
func senders(p judge) *goimap.SearchCriteria {
	entries := p.Inbound()
	if len(entries) == 0 || len(entries) > maxSenders {
		return nil
	}
	var all []goimap.SearchCriteria
	if own := p.Own(); own != "" {
		entries = append(entries, own)
	}
	for _, e := range entries {
		local, domain, _ := strings.Cut(e, "@")
		all = append(all, headerHolds("From", local+"@"+domain))
		if written, err := idna.ToUnicode(domain); err == nil && written != domain {
			all = append(all, headerHolds("From", local+"@"+written))
		}
	}
	return anyOf(all)
}
