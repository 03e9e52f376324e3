// Package search says what a search asks of a server, and whether its criteria stand in what is
// shown of a message. Who searches is the caller: nothing here asks a server.
package search

import (
	"cmp"
	"html"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/text/unicode/norm"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/cursor"
	"github.com/postern-mail/postern/mail/internal/imap"
	"github.com/postern-mail/postern/mail/mailbox/internal/fetch"
	"github.com/postern-mail/postern/mail/mailbox/internal/reading"
)

// Query selects messages of one folder, several or all. All criteria must hold; text
// is matched by the server as a phrase, without regard to case, anywhere in the field. With
// a Cursor every criterion comes from the search it continues, and Folders and Everywhere
// may only repeat it.
//
// Without Folders all are searched but those for junk and deleted messages; where one of
// them has the role "all", that one is searched alone.
type Query struct {
	Folders     []string // none means all
	Everywhere  bool     // with all, also the folders for junk and deleted messages
	Words       string   // in subject or text; each criterion 1..256 runes
	From        string
	To          string
	Subject     string
	Text        string // in the body
	Unread      bool
	Attachments bool
	Invitations bool      // a calendar is among the parts
	Since       time.Time // only messages dated at or after, as in a list; zero means no bound
	Until       time.Time // only messages dated before; zero means no bound
	Limit       int       // 1..50; 0 means 20
	Cursor      string
	Snippet     int // runes of the beginning of the text, 50..500; 0 means none
	Full        bool
	MaxMatches  int // more matches are refused; 0 means 20,000
}

// Position is the query as a cursor carries it.
func (q *Query) Position(accounts []string) cursor.Position {
	return cursor.Position{Accounts: accounts, Folders: q.Folders, Everywhere: q.Everywhere, Words: q.Words, From: q.From, To: q.To,
		Subject: q.Subject, Text: q.Text, Unread: q.Unread, Attachments: q.Attachments, Invitations: q.Invitations, Since: q.Since, Until: q.Until}
}

// GoOn takes the criteria that a cursor carries.
func (q *Query) GoOn(c *cursor.Position) {
	q.Folders, q.Everywhere, q.Words, q.From, q.To, q.Subject, q.Text = c.Folders, c.Everywhere, c.Words, c.From, c.To, c.Subject, c.Text
	q.Unread, q.Attachments, q.Invitations, q.Since, q.Until = c.Unread, c.Attachments, c.Invitations, c.Since, c.Until
}

// Selects reports whether the query has criteria that the server can search for.
func (q *Query) Selects() bool {
	return q.Words+q.From+q.To+q.Subject+q.Text != "" || q.Unread || q.Dated()
}

// Dated reports whether the query has a bound on when messages are dated.
func (q *Query) Dated() bool { return !q.Since.IsZero() || !q.Until.IsZero() }

// Criteria is the search as the server gets it. It finds more than the query asks for: see
// fetch.MayBeDated. With certainly it leaves out what is dated near a bound, or so long ago that
// a server may mean a message without a date.
func (q *Query) Criteria(certainly bool) imap.Criteria {
	c := imap.Criteria{Unseen: q.Unread}
	for _, h := range []imap.HeaderField{{Name: "From", Text: q.From}, {Name: "To", Text: q.To}, {Name: "Subject", Text: q.Subject}} {
		if h.Text != "" {
			c.Header = append(c.Header, h)
		}
	}
	if q.Words != "" {
		var body imap.Criteria
		bodyHolds(&body, q.Words)
		c.AnyOf = append(c.AnyOf, []imap.Criteria{imap.HeaderHolds("Subject", q.Words), body})
	}
	if q.Text != "" {
		bodyHolds(&c, q.Text)
	}
	if !certainly {
		fetch.MayBeDated(&c, q.Since, q.Until)
		return c
	}
	if c.SentSince = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC); !q.Since.IsZero() {
		c.SentSince = q.Since.UTC().AddDate(0, 0, 2)
	}
	if !q.Until.IsZero() {
		c.SentBefore = q.Until.UTC().AddDate(0, 0, -1)
	}
	return c
}

// bodyHolds adds that words stand in the body, also as HTML may write them: servers search
// its source.
func bodyHolds(c *imap.Criteria, words string) {
	var written strings.Builder
	for _, r := range words {
		written.WriteString(cmp.Or(entities()[r], string(r)))
	}
	if escaped := written.String(); escaped != words {
		c.AnyOf = append(c.AnyOf, []imap.Criteria{{Body: []string{words}}, {Body: []string{escaped}}})
	} else {
		c.Body = append(c.Body, words)
	}
}

// entities are the names that HTML gives to letters with accents, such as "&auml;".
var entities = sync.OnceValue(func() map[rune]string {
	names := map[rune]string{'ß': "&szlig;", 'æ': "&aelig;", 'Æ': "&AElig;", 'ð': "&eth;", 'þ': "&thorn;"}
	for letter := range strings.SplitSeq("AEIOUYNCaeiouync", "") {
		for accent := range strings.SplitSeq("grave acute circ tilde uml ring cedil slash", " ") {
			name := "&" + letter + accent + ";"
			if r := []rune(html.UnescapeString(name)); len(r) == 1 {
				names[r[0]] = name
			}
		}
	}
	return names
})

// Recent is the search for matches in which a code may be masked, and for a few more: servers
// know only days.
func (q *Query) Recent(now time.Time) imap.Criteria {
	c, since := q.Criteria(false), now.AddDate(0, 0, -5)
	c.AnyOf = append(c.AnyOf, []imap.Criteria{{Since: since}, {SentSince: since}})
	return c
}

// maxSenders bounds the entries from which a search is made.
const maxSenders = 30

// Senders are criteria of which each message has one that the policy shows. So have others, and
// they are not relied on for a folder small enough to check every message. They are nil when
// the list cannot be searched for.
func Senders(p reading.Judge) (all []imap.Criteria) {
	entries := p.Inbound()
	if len(entries) == 0 || len(entries) > maxSenders {
		return nil
	}
	for _, e := range append(entries, p.Own()...) {
		local, domain, _ := strings.Cut(e, "@")
		all = append(all, imap.HeaderHolds("From", local+"@"+domain))
		if written, err := idna.ToUnicode(domain); err == nil && written != domain {
			all = append(all, imap.HeaderHolds("From", local+"@"+written))
		}
	}
	return all
}

// Stands reports whether the criteria on what a message says stand in what is shown of it.
// A server matches what is masked, too.
func (q *Query) Stands(s *reading.Summary, text string) bool {
	subject, text := folded(s.Subject), folded(text)
	holds := func(words string, in ...string) bool {
		return words == "" || slices.ContainsFunc(in, func(s string) bool { return strings.Contains(s, folded(words)) })
	}
	named := func(people []mail.Address) string {
		var all []string
		for _, a := range people {
			all = append(all, a.Name+" <"+a.Addr+">")
		}
		return folded(strings.Join(all, ", "))
	}
	return holds(q.Words, subject, text) && holds(q.Subject, subject) && holds(q.Text, text) && holds(q.From, named(s.From)) && holds(q.To, named(s.To))
}

// folded is text as words are found in it: without regard to case, and to how accents are
// written.
func folded(s string) string {
	return strings.ToLower(norm.NFC.String(strings.Join(strings.Fields(s), " ")))
}

// BeyondASCII reports whether a criterion has text that a server needs a charset for.
func (q *Query) BeyondASCII() bool {
	return strings.ContainsFunc(q.Words+q.Text+q.Subject+q.From+q.To, func(r rune) bool { return r >= utf8.RuneSelf })
}

// OfText reports whether the query has criteria on what a message says, OfBody whether on more
// of it than its subject and names.
func (q *Query) OfText() bool { return q.OfBody() || q.Subject+q.From+q.To != "" }
func (q *Query) OfBody() bool { return q.Words+q.Text != "" }
