package mailbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	goimap "github.com/emersion/go-imap/v2"
	"golang.org/x/net/idna"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/cursor"
	"github.com/postern-mail/postern/mail/internal/imap"
	"github.com/postern-mail/postern/mail/internal/message"
	"github.com/postern-mail/postern/mail/internal/quoted"
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

	snippetBytes = 4 << 10  // of the text, fetched with the rest
	snippetPart  = 48 << 10 // of a text part that begins further down
)

// MaxCursorChars bounds the text form of a cursor. Criteria of the greatest length
// fit, in characters of four bytes.
const MaxCursorChars = cursor.MaxChars

// Search finds messages of one folder and returns the newest of them by UID. The
// server matches the text; a policy that hides messages, and HasAttachment, make
// every match be looked at, so that Total counts only what is visible. A search
// with more visible matches than MaxMatches, HasAttachment aside, is KindInvalid, a cursor that was not
// given for this account KindInvalid too, and one whose folder was made anew
// KindConflict. Numbers are brought into their bounds.
func (m *Client) Search(ctx context.Context, account string, q SearchQuery) (*SearchPage, error) {
	x, err := m.openIMAP(ctx, "mail search", account, "folders, flags or search", mail.AdvicePOP3Read)
	if err != nil {
		return nil, err
	}
	f := &finding{imapBox: x, q: q}
	if err := f.prepare(ctx, m.cursors); err != nil {
		return nil, err
	}
	q = f.q
	err = f.run(ctx)
	if f.want.structure && ctx.Err() == nil && unreadable(err) {
		f.want.structure = false // see List
		err = f.run(ctx)
	}
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
	last uint32 // the smallest UID the page has dealt with
}

// breaksLine reports a control character, or one that separates lines.
func breaksLine(r rune) bool { return r < ' ' || r == 0x7f || r == 0x2028 || r == 0x2029 }

// prepare checks the query, and takes that of a cursor in its place.
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
	if q.Folder == "" {
		q.Folder = "INBOX"
	}
	q.Folder = imap.FolderName(q.Folder)
	for _, text := range []string{q.Query, q.From, q.To, q.Subject, q.Text} {
		if !utf8.ValidString(text) || strings.ContainsFunc(text, breaksLine) || utf8.RuneCountInString(text) > maxCriterion {
			return f.Invalid("A criterion holds a control character or more than 256 characters.", mail.AdviceShorterText)
		}
	}
	if !q.Start.IsZero() && !q.End.IsZero() && q.End.Before(q.Start) {
		return f.Invalid("The search ends before it starts.", mail.AdviceDates)
	}
	f.want = wanted{header: !f.policy.ShowsAll(), structure: true, dates: q.Full, full: q.Full, text: q.Snippet}
	return f.checkFolder(q.Folder)
}

// resume takes the criteria of the search that a cursor continues.
func (f *finding) resume(ctx context.Context, cs cursor.Sealer) error {
	q := &f.q
	if q.Query+q.From+q.To+q.Subject+q.Text != "" || q.Unread || q.HasAttachment || !q.Start.IsZero() || !q.End.IsZero() {
		return f.Invalid("A cursor carries its criteria; others cannot be given with it.", mail.AdviceCursorAlone)
	}
	c, err := cs.Open(ctx, q.Cursor)
	if errors.Is(err, cursor.ErrNoCursor) {
		return f.Invalid("The cursor is not one that a search gave.", mail.AdviceCopyCursor)
	}
	if err != nil {
		return err
	}
	if c.Account != f.account.Name || q.Folder != "" && imap.FolderName(q.Folder) != c.Folder {
		return f.Invalid("The cursor belongs to another account or folder.", mail.AdviceCursorPlace)
	}
	q.Folder, q.Query, q.From, q.To, q.Subject, q.Text = c.Folder, c.Query, c.From, c.To, c.Subject, c.Text
	q.Unread, q.HasAttachment, q.Start, q.End = c.Unread, c.HasAttachment, c.Start, c.End
	f.before, f.valid = c.Before, c.UIDValidity
	return nil
}

// criteria is the search as the server gets it. It knows only days, as a message
// dates itself, in whatever zone.
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
			return &mail.Error{Op: f.Op, Account: f.Account, Kind: mail.KindConflict, Stage: string(imap.StageExamine),
				Message: "The folder was made anew since this cursor was given.", Advice: mail.AdviceSearchAnew}
		}
		f.page.UIDValidity = box.UIDValidity
		if f.policy.ShowsAll() {
			f.page.UIDNext = box.UIDNext
		}
		if f.policy.ShowsAll() && !f.q.HasAttachment {
			return f.show(s, found)
		}
		return f.sift(s, box, found)
	})
}

// show fills the page where every match counts.
func (f *finding) show(s *imap.Session, found goimap.UIDSet) error {
	total := imap.CountUIDs(found)
	if total > uint64(f.q.MaxMatches) {
		return f.tooMany()
	}
	f.page.Total = int(total)
	if f.before != 0 {
		found = imap.UIDsBelow(found, f.before)
	}
	set, left := imap.SplitUIDs(found, uint32(f.q.Limit), false)
	if len(set) == 0 {
		return nil
	}
	f.page.HasMore = len(left) > 0
	s.Renew()
	got, err := fetchAll(s, set, f.want)
	if err != nil {
		return err
	}
	return f.fill(s, set, got)
}

func (f *finding) tooMany() error {
	return f.Invalid(fmt.Sprintf("More than %d messages match.", f.q.MaxMatches),
		mail.AdviceNarrow)
}

// sift looks at every match, counts those that are visible and meet what the
// server cannot search for, and fills the page with the newest below the cursor.
func (f *finding) sift(s *imap.Session, box imap.Folder, found goimap.UIDSet) error {
	if f.policy.ShowsAll() && imap.CountUIDs(found) > uint64(f.q.MaxMatches) {
		return f.tooMany()
	}
	if senders := senders(f.policy); imap.CountUIDs(found) > maxScan && senders != nil {
		narrower := f.criteria()
		narrower.And(senders)
		var err error
		if found, err = s.Search(narrower).Wait(); err != nil {
			return err
		}
	}
	if found == nil {
		found = goimap.UIDSet{} // nothing, and not everything
	}
	visible := found
	if !f.policy.ShowsAll() {
		visible = goimap.UIDSet{}
		if err := f.eachVisible(s, box, found, wanted{header: true}, func(g *fetched) bool {
			visible.AddNum(goimap.UID(g.uid))
			return true
		}); err != nil {
			return err
		}
	}
	var set goimap.UIDSet
	shown := 0
	take := func(uid goimap.UID) bool {
		if f.page.Total++; f.page.Total > f.q.MaxMatches {
			return false
		}
		switch {
		case f.before != 0 && uid >= goimap.UID(f.before):
		case shown < f.q.Limit:
			shown++
			set.AddNum(uid)
		default:
			f.page.HasMore = true
		}
		return true
	}
	for len(visible) > 0 && f.page.Total <= f.q.MaxMatches {
		var window goimap.UIDSet
		window, visible = imap.SplitUIDs(visible, maxWindow, false)
		nums, _ := window.Nums()
		has := map[uint32]bool{}
		if f.q.HasAttachment {
			s.Renew()
			f.looking(uint64(f.page.Total), 0, f.q.Folder)
			got, err := fetchAll(s, window, wanted{structure: f.want.structure})
			if err != nil {
				return err
			}
			for i := range got {
				has[got[i].uid] = got[i].hasAttachments()
			}
		}
		for i := len(nums) - 1; i >= 0; i-- {
			if f.q.HasAttachment && !has[uint32(nums[i])] {
				continue
			}
			if !take(nums[i]) {
				break
			}
		}
	}
	if f.page.Total > f.q.MaxMatches {
		f.page = nil
		return f.tooMany()
	}
	if shown == 0 {
		return nil
	}
	s.Renew()
	got, err := fetchAll(s, set, f.want)
	if err != nil {
		return err
	}
	return f.fill(s, set, got)
}

// fill puts messages on the page, newest first, with snippets where asked for.
func (f *finding) fill(s *imap.Session, set goimap.UIDSet, got []fetched) error {
	f.page.Attempted = int(imap.CountUIDs(set))
	have := map[uint32]*fetched{}
	for i := range got {
		have[got[i].uid] = &got[i]
	}
	snippets, err := f.snippets(s, got)
	nums, _ := set.Nums()
	for i := len(nums) - 1; i >= 0; i-- {
		uid := uint32(nums[i])
		if f.last == 0 || uid < f.last {
			f.last = uid
		}
		ref := f.refTo(f.q.Folder, f.page.UIDValidity, uid)
		g := have[uid]
		switch {
		case g == nil || !g.visible(f.policy) && g.readable:
			f.page.Failed++
			f.page.Issues = append(f.page.Issues, mail.Issue{Kind: mail.KindNotFound, Stage: string(imap.StageFetch), UID: uid, MessageID: ref.String(),
				Message: "The message was removed in the meantime."})
			continue
		case !g.readable:
			f.page.Failed++
			f.page.Issues = append(f.page.Issues, mail.Issue{Kind: mail.KindRefused, Stage: "parse", UID: uid, MessageID: ref.String(), Retryable: true,
				Message: "The server did not give the message's header."})
			continue
		}
		sum := g.summary(f.q.Full)
		sum.Ref, sum.Snippet = ref, snippets[uid]
		f.page.Messages = append(f.page.Messages, sum)
	}
	return err
}

// snippets reads the beginning of each message's text, mostly from what came with
// the rest, and fetches the part where the text begins further down.
func (f *finding) snippets(s *imap.Session, got []fetched) (map[uint32]string, error) {
	out := map[uint32]string{}
	if !f.q.Snippet {
		return out, nil
	}
	var requests requestSet
	missing := map[uint32]*message.Part{}
	for i := range got {
		g := &got[i]
		if !g.readable || !g.visible(f.policy) {
			continue
		}
		text, more := g.snippet(f.q.SnippetChars)
		out[g.uid] = text
		if more != nil {
			missing[g.uid] = more
			requests.add(g.uid, goimap.FetchOptions{BodySection: []*goimap.FetchItemBodySection{{Part: partNumbers(more.ID),
				Partial: &goimap.SectionPartial{Size: min(more.Size, snippetSize(more))}}}})
		}
	}
	if len(missing) == 0 {
		return out, nil
	}
	s.Renew()
	data, err := requests.start(s).Wait()
	if err != nil {
		return out, err
	}
	for uid, p := range missing {
		d := dataOf(data, uid)
		if d == nil {
			continue
		}
		if b, ok := section(d, goimap.PartSpecifierNone, partNumbers(p.ID), false); ok {
			if text, _ := snippetOf(p, b, f.q.SnippetChars); text != "" {
				out[uid] = text
			}
		}
	}
	return out, nil
}

// snippet reads the beginning of the text from the beginning of the message. more
// is the part to fetch when that does not tell enough.
func (g *fetched) snippet(chars int) (text string, more *message.Part) {
	root := g.root
	entity := message.Parse(joinMessage(g.head, g.text))
	if root == nil || len(g.text) < snippetBytes {
		root = entity.Root
	}
	for _, p := range message.SelectText(root) {
		var raw []byte
		for l := range leaves(entity.Root) {
			if l.ID == p.ID {
				raw = entity.Raw(l)
			}
		}
		if p.Subtype == "html" && int64(len(raw)) < p.Size && len(g.text) == snippetBytes && partNumbers(p.ID) != nil {
			return "", p // its end can hide what its beginning shows
		}
		enough := false
		text, enough = snippetOf(p, raw, chars)
		if !enough && int64(len(raw)) < p.Size && len(g.text) == snippetBytes && partNumbers(p.ID) != nil {
			return text, p
		}
		if text != "" {
			return text, nil
		}
	}
	return "", nil
}

// snippetSize is how much of a part is fetched for a snippet.
func snippetSize(p *message.Part) int64 {
	if p.Subtype == "html" {
		return maxHTMLBytes
	}
	return snippetPart
}

// snippetOf is one line of the new text in the beginning of a part, and whether
// there was enough of it.
func snippetOf(p *message.Part, raw []byte, chars int) (text string, enough bool) {
	alone := *p
	alone.ID, alone.Children, alone.Disposition, alone.Filename = "1", nil, "", ""
	whole, _ := message.Text(&alone, func(*message.Part) []byte { return raw }, chars*4)
	return quoted.Snippet(whole, chars), utf8.RuneCountInString(quoted.New(whole)) >= chars
}

// maxSenders bounds the entries of which a search is made.
const maxSenders = 30

// senders is what a server can be asked for so that it leaves out most of what
// the inbound list hides. It finds more than the list lets through, and is not
// relied on for a folder in which every message can be looked at. It is nil when
// the list cannot be asked for.
func senders(p *mail.Policy) *goimap.SearchCriteria {
	entries := p.Inbound()
	if len(entries) == 0 || len(entries) > maxSenders {
		return nil
	}
	var all []goimap.SearchCriteria
	for _, e := range entries {
		local, domain, _ := strings.Cut(e, "@")
		all = append(all, headerHolds("From", local+"@"+domain))
		if written, err := idna.ToUnicode(domain); err == nil && written != domain {
			all = append(all, headerHolds("From", local+"@"+written))
		}
	}
	return anyOf(all)
}
