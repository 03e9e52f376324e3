package mailbox

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/message"
	"github.com/postern-mail/postern/mail/mailbox/internal/fetch"
	"github.com/postern-mail/postern/mail/mailbox/internal/reading"
)

// The bounds of Thread.
const (
	maxThread      = 200 // messages that an answer shows
	maxThreadChars = 20_000

	maxCandidates   = 1000 // messages read for one conversation
	maxThreadLine   = 7000 // bytes of the ids searched for at once: servers bound a line
	maxThreadRounds = 40   // searches, each for ids that those before found
)

// Thread returns the conversation of a message, oldest first: messages linked by References,
// then In-Reply-To, then a base subject where one of the two is a reply (004 section 5). It
// looks in the message's folder, in INBOX, and in the folders for sent and archived mail;
// where the account has a folder with the role \All, in that one instead of the three. A
// message that stands twice, by Message-ID, date and size, is shown once. With q.Chars each
// message comes with what is new in its text.
//
// It searches for the ids and the subject of what it has found until nothing new is named,
// so that the answer is the same from any of its messages. Of a long conversation the newest
// messages are kept. A message that the policy hides is neither shown nor used as a link.
func (m *Client) Thread(ctx context.Context, ref mail.Ref, q ThreadQuery) (*Thread, error) {
	b, err := m.open(ctx, "mail thread", ref.Account)
	if err != nil {
		return nil, err
	}
	q.Limit = within(q.Limit, maxThread, 1, maxThread)
	q.Chars = min(max(q.Chars, 0), maxThreadChars)
	return b.thread(ctx, ref, q)
}

// threading is one Thread in progress, by IMAP or POP3.
type threading struct {
	*access
	q     ThreadQuery
	rank  func(folder string) int // of two copies of a message, that of the lower rank is shown
	first *fetch.Message          // the message asked for
	known []*fetch.Message        // visible messages that may belong to it

	group   []*fetch.Message // the conversation as far as it is known, oldest first
	parents map[mail.Ref]mail.Ref
	asked   map[string]bool // ids that were searched for, and base subjects behind "subject "
	since   time.Time       // every answer that came from then on is known; zero means not

	texts  map[mail.Ref]*reading.Reading // what is new in the messages that are shown
	cut    bool                          // there may be more messages than Thread found
	issues []mail.Issue
}

func (x *access) threading(q ThreadQuery, rank func(folder string) int) *threading {
	return &threading{access: x, q: q, rank: rank, asked: map[string]bool{}, texts: map[mail.Ref]*reading.Reading{}}
}

// dropCopies leaves each message in one folder: copies in several have the same id, date and
// size. What stands twice in one folder stays, as a list of it shows it.
func (t *threading) dropCopies() {
	slices.SortStableFunc(t.known, func(a, b *fetch.Message) int {
		return cmp.Or(cmp.Compare(t.rank(a.Ref.Folder), t.rank(b.Ref.Folder)), strings.Compare(a.Ref.Folder, b.Ref.Folder), cmp.Compare(a.Ref.UID, b.Ref.UID))
	})
	type identity struct {
		id   string
		date int64
		size int64
	}
	shown := map[identity]*fetch.Message{}
	t.known = slices.DeleteFunc(t.known, func(g *fetch.Message) bool {
		date, _ := g.Date()
		key := identity{fetch.MessageID(g.Header), date.Unix(), g.Size}
		original := shown[key]
		if key.id == "" || original == nil || original.Ref.Folder == g.Ref.Folder {
			shown[key] = cmp.Or(original, g)
			return false
		}
		if g == t.first {
			t.first = original
		}
		return true
	})
}

// link finds the messages that belong together with the one asked for, and the parent of
// every message.
func (t *threading) link() {
	t.dropCopies()
	nodes := make([]message.ThreadNode, len(t.known))
	for i, g := range t.known {
		date, ok := g.Date()
		if !ok {
			date = g.Internal
		}
		nodes[i] = message.ThreadNode{ID: fetch.MessageID(g.Header), References: g.Links(), Subject: g.Header.Text("Subject"), Date: date}
	}
	threads := message.Thread(nodes)
	first := slices.Index(t.known, t.first)
	t.group, t.parents = nil, map[mail.Ref]mail.Ref{}
	for i, p := range threads.Parent {
		if p >= 0 {
			t.parents[t.known[i].Ref] = t.known[p].Ref
		}
	}
	for _, indices := range threads.Groups {
		if slices.Contains(indices, first) {
			for _, i := range indices {
				t.group = append(t.group, t.known[i])
			}
		}
	}
}

// unasked returns what has to be searched for before the conversation is whole: the ids that
// its messages have or name, the base subject of its first message, and the ids named by
// other messages of that subject, which may belong to other conversations. Of many ids it
// returns some.
func (t *threading) unasked() (ids, subjects []string) {
	done := map[string]bool{"": true}
	for _, g := range t.known {
		if t.answersKnown(g) {
			done[fetch.MessageID(g.Header)] = true
		}
	}
	room := maxThreadLine
	ask := func(list ...string) {
		for _, id := range list {
			need := 3 * (len(id) + len("HEADER In-Reply-To") + len(` OR "" `))
			if done[id] || t.asked[id] || need > min(room, maxThreadLine/4) {
				t.cut = t.cut || need > maxThreadLine/4
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
	for _, g := range t.group {
		ask(append(g.Links(), fetch.MessageID(g.Header))...)
	}
	for _, g := range t.known {
		if other, _ := message.BaseSubject(g.Header.Text("Subject")); strings.EqualFold(other, base) && t.parents[g.Ref] == (mail.Ref{}) {
			ask(g.Links()...)
		}
	}
	return ids, subjects
}

// answersKnown reports whether every answer to a message is known. Clocks may differ by two
// days.
func (t *threading) answersKnown(g *fetch.Message) bool {
	return !t.since.IsZero() && g.Earliest().After(t.since.AddDate(0, 0, 2))
}

// subject is the base subject of the conversation's first message.
func (t *threading) subject() string {
	root := t.group[max(slices.IndexFunc(t.group, func(g *fetch.Message) bool { return t.parents[g.Ref] == mail.Ref{} }), 0)]
	base, _ := message.BaseSubject(root.Header.Text("Subject"))
	return t.Masked(root, "").Mask(base)
}

// shown are the messages of the answer: the newest of the conversation, and the one asked
// for.
func (t *threading) shown() []*fetch.Message {
	older := max(len(t.group)-t.q.Limit, 0)
	shown := slices.Clone(t.group[older:])
	if slices.Contains(t.group[:older], t.first) {
		shown[0] = t.first
	}
	return shown
}

// thread is the answer.
func (t *threading) thread() *Thread {
	shown := t.shown()
	out := &Thread{Subject: t.subject(), Truncated: t.cut || len(shown) < len(t.group), Issues: t.issues}
	for _, g := range shown {
		var m ThreadMessage
		r := t.texts[g.Ref]
		if r == nil || r.Message == nil {
			r = &reading.Reading{}
		} else {
			g.Root, m.Text, m.TextTruncated = r.Root, r.Message.BodyText, r.Message.BodyTruncated
		}
		m.Summary = t.Summary(g, t.q.Full)
		m.Mask(r.Masked)
		if r.Message != nil {
			m.HiddenChars = r.Message.HiddenChars
		}
		for _, p := range message.Attachments(g.Root) {
			if !p.Incidental() {
				m.Attachments = append(m.Attachments, Attachment{PartID: p.ID, Filename: r.Masked.Mask(p.Filename), ContentType: plain.Line(p.MediaType()), Size: r.SizeOf(p)})
			}
		}
		if p := t.parents[g.Ref]; slices.ContainsFunc(shown, func(o *fetch.Message) bool { return o.Ref == p }) {
			m.Parent = p
		}
		out.Messages = append(out.Messages, m)
	}
	return out
}
