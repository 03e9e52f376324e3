// Package thread ties the messages of a conversation together, says what has to be searched for
// before it is whole, and makes the answer. Who searches and fetches is the caller: nothing here
// asks a server.
package thread

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/imap"
	"github.com/postern-mail/postern/mail/internal/message"
	"github.com/postern-mail/postern/mail/mailbox/internal/fetch"
	"github.com/postern-mail/postern/mail/mailbox/internal/reading"
)

// Query bounds Thread.
type Query struct {
	Limit int // 1..200; 0 means 200
	Chars int // of the new text of each message, 0..20000; 0 means no texts
	Full  bool
}

// Thread is a conversation, oldest first (004 section 5).
type Thread struct {
	Folder      string // of the message asked for
	UIDValidity uint32
	Subject     string // base subject of its first message, without reply prefixes
	Messages    []Message
	Truncated   bool // there are more, or may be; the newest are here
	Issues      []mail.Issue
}

// Message is a message and the one it answers.
type Message struct {
	reading.Summary
	Parent        mail.Ref // zero for a root, or when the parent is not here
	Text          string   // what is new in it, without quoted history; only with Chars
	TextTruncated bool     // Text was cut at the bound
	Attachments   []reading.Attachment
}

// Threading is one Thread in progress, by IMAP or POP3.
type Threading struct {
	*reading.Viewer
	Query Query
	rank  func(folder string) int // of two copies of a message, that of the lower rank is shown
	First *fetch.Message          // the message asked for
	Known []*fetch.Message        // visible messages that may belong to it

	Group   []*fetch.Message // the conversation as far as it is known, oldest first
	parents map[mail.Ref]mail.Ref
	asked   map[string]bool // ids that were searched for, and base subjects behind "subject "
	Since   time.Time       // every answer that came from then on is known; zero means not

	Texts  map[mail.Ref]*reading.Reading // what is new in the messages that are shown
	Cut    bool                          // there may be more messages than Thread found
	Issues []mail.Issue
}

// New begins a conversation. Of two copies of a message, that in the folder of the lower rank is
// shown.
func New(x *reading.Viewer, q Query, rank func(folder string) int) *Threading {
	return &Threading{Viewer: x, Query: q, rank: rank, asked: map[string]bool{}, Texts: map[mail.Ref]*reading.Reading{}}
}

// dropCopies leaves each message in one folder: copies in several have the same id, date and
// size. What stands twice in one folder stays, as a list of it shows it.
func (t *Threading) dropCopies() {
	slices.SortStableFunc(t.Known, func(a, b *fetch.Message) int {
		return cmp.Or(cmp.Compare(t.rank(a.Ref.Folder), t.rank(b.Ref.Folder)), strings.Compare(a.Ref.Folder, b.Ref.Folder), cmp.Compare(a.Ref.UID, b.Ref.UID))
	})
	type identity struct {
		id   string
		date int64
		size int64
	}
	shown := map[identity]*fetch.Message{}
	t.Known = slices.DeleteFunc(t.Known, func(g *fetch.Message) bool {
		date, _ := g.Date()
		key := identity{fetch.MessageID(g.Header), date.Unix(), g.Size}
		original := shown[key]
		if key.id == "" || original == nil || original.Ref.Folder == g.Ref.Folder {
			shown[key] = cmp.Or(original, g)
			return false
		}
		if g == t.First {
			t.First = original
		}
		return true
	})
}

// Link finds the messages that belong together with the one asked for, and the parent of
// every message.
func (t *Threading) Link() {
	t.dropCopies()
	nodes := make([]message.ThreadNode, len(t.Known))
	for i, g := range t.Known {
		date, ok := g.Date()
		if !ok {
			date = g.Internal
		}
		nodes[i] = message.ThreadNode{ID: fetch.MessageID(g.Header), References: g.Links(), Subject: g.Header.Text("Subject"), Date: date}
	}
	threads := message.Thread(nodes)
	first := slices.Index(t.Known, t.First)
	t.Group, t.parents = nil, map[mail.Ref]mail.Ref{}
	for i, p := range threads.Parent {
		if p >= 0 {
			t.parents[t.Known[i].Ref] = t.Known[p].Ref
		}
	}
	for _, indices := range threads.Groups {
		if slices.Contains(indices, first) {
			for _, i := range indices {
				t.Group = append(t.Group, t.Known[i])
			}
		}
	}
}

// maxThreadLine bounds the bytes of the ids searched for at once: servers bound a line.
const maxThreadLine = 7000

// Unasked returns what has to be searched for before the conversation is whole: the ids that
// its messages have or name, the base subject of its first message, and the ids named by
// other messages of that subject, which may belong to other conversations. Of many ids it
// returns some.
func (t *Threading) Unasked() (ids, subjects []string) {
	done := map[string]bool{"": true}
	for _, g := range t.Known {
		if t.answersKnown(g) {
			done[fetch.MessageID(g.Header)] = true
		}
	}
	room := maxThreadLine
	ask := func(list ...string) {
		for _, id := range list {
			need := 3 * (len(id) + len("HEADER In-Reply-To") + len(` OR "" `))
			if done[id] || t.asked[id] || need > min(room, maxThreadLine/4) {
				t.Cut = t.Cut || need > maxThreadLine/4
				continue
			}
			t.asked[id] = true
			ids = append(ids, id)
			room -= need
		}
	}
	base := t.subject()
	if base != "" && !t.asked["subject "+base] {
		t.asked["subject "+base] = true // no id has a space in it
		subjects = append(subjects, base)
	}
	for _, g := range t.Group {
		ask(append(g.Links(), fetch.MessageID(g.Header))...)
	}
	for _, g := range t.Known {
		if other, _ := message.BaseSubject(g.Header.Text("Subject")); strings.EqualFold(other, base) && t.parents[g.Ref] == (mail.Ref{}) {
			ask(g.Links()...)
		}
	}
	return ids, subjects
}

// answersKnown reports whether every answer to a message is known. Clocks may differ by two
// days.
func (t *Threading) answersKnown(g *fetch.Message) bool {
	return !t.Since.IsZero() && g.Earliest().After(t.Since.AddDate(0, 0, 2))
}

// subject is the base subject of the conversation's first message.
func (t *Threading) subject() string {
	root := t.Group[max(slices.IndexFunc(t.Group, func(g *fetch.Message) bool { return t.parents[g.Ref] == mail.Ref{} }), 0)]
	base, _ := message.BaseSubject(root.Header.Text("Subject"))
	return t.Listed(root).Mask(base)
}

// Shown are the messages of the answer: the newest of the conversation, and the one asked
// for.
func (t *Threading) Shown() []*fetch.Message {
	older := max(len(t.Group)-t.Query.Limit, 0)
	shown := slices.Clone(t.Group[older:])
	if slices.Contains(t.Group[:older], t.First) {
		shown[0] = t.First
	}
	return shown
}

// Thread is the answer.
func (t *Threading) Thread() *Thread {
	shown := t.Shown()
	out := &Thread{Subject: t.subject(), Truncated: t.Cut || len(shown) < len(t.Group), Issues: t.Issues}
	for _, g := range shown {
		var m Message
		r := t.Texts[g.Ref]
		if r == nil || r.Message == nil {
			r = &reading.Reading{}
		} else {
			g.Root, m.Text, m.TextTruncated = r.Root, r.Message.BodyText, r.Message.BodyTruncated
		}
		m.Summary = t.Summary(g, t.Query.Full)
		m.Mask(r.Masked)
		out.Subject = r.Masked.Mask(out.Subject)
		if r.Message != nil {
			m.HiddenChars = r.Message.HiddenChars
		}
		for _, p := range message.Attachments(g.Root) {
			if !p.Incidental() {
				found := r.Masked
				if r.Message == nil {
					found = t.Suspected(g, p.Filename)
				}
				m.Attachments = append(m.Attachments, reading.Attachment{PartID: p.ID, Filename: found.Mask(p.Filename), ContentType: plain.Line(p.MediaType()), Size: r.SizeOf(p)})
			}
		}
		if p := t.parents[g.Ref]; slices.ContainsFunc(shown, func(o *fetch.Message) bool { return o.Ref == p }) {
			m.Parent = p
		}
		out.Messages = append(out.Messages, m)
	}
	return out
}

// A search for a subject names so many of its words, and only those in ASCII where they are
// so many characters.
const (
	maxSubjectWords = 12
	minASCII        = 6
)

// AnswersAfter matches messages that came from a day on and name another message.
func AnswersAfter(day time.Time) imap.Criteria {
	return imap.Criteria{Since: day, AnyOf: [][]imap.Criteria{{imap.HeaderHolds("References", ""), imap.HeaderHolds("In-Reply-To", "")}}}
}

// Criteria matches messages that have or name one of the ids, or have all words of one
// of the subjects: between words a server may see other white space.
func Criteria(ids, subjects []string) imap.Criteria {
	var all []imap.Criteria
	for _, id := range ids {
		all = append(all, imap.HeaderHolds("Message-ID", id), imap.HeaderHolds("References", id), imap.HeaderHolds("In-Reply-To", id))
	}
	for _, s := range subjects {
		words := strings.Fields(s)
		ascii := slices.DeleteFunc(slices.Clone(words), func(w string) bool { return strings.ContainsFunc(w, func(r rune) bool { return r >= utf8.RuneSelf }) })
		if len(strings.Join(ascii, "")) >= minASCII {
			words = ascii // they need no CHARSET, which not every server takes
		}
		var c imap.Criteria
		for _, word := range words[:min(len(words), maxSubjectWords)] {
			c.Header = append(c.Header, imap.HeaderField{Name: "Subject", Text: word})
		}
		all = append(all, c)
	}
	return imap.Criteria{AnyOf: [][]imap.Criteria{all}}
}
