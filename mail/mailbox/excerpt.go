package mailbox

import (
	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/imap"
	"github.com/postern-mail/postern/mail/internal/message"
	"github.com/postern-mail/postern/mail/mailbox/internal/fetch"
)

// excerpt is the part of a message's text that a list or a conversation shows: what is new
// in it, or its history when nothing is. The zero value is no excerpt.
type excerpt struct {
	chars int    // at most so many runes, with "…" at the end where more follows
	lines bool   // as it is written; else on one line
	whole bool   // parts of the usual size are read as Get reads them, also those that it does not show
	words string // the line shows the place where these stand, if that was fetched
}

// maxSearched is how many characters of a text are looked through for the words of a search.
const maxSearched = 4000

// of makes a message of the excerpt: its Subject, and its Snippet or with lines its BodyText.
func (e excerpt) of(r *reading) *Message {
	text := r.text
	m := &Message{Summary: Summary{Subject: r.masked.Mask(r.g.Header.Text("Subject")), HiddenChars: text.Hidden}}
	if !e.lines {
		m.Snippet = text.Around(e.words, e.chars)
		return m
	}
	whole := text.New()
	if whole == "" {
		whole, _ = text.Page(0, e.chars+1)
	}
	m.BodyText = plain.Clip(whole, e.chars)
	m.BodyTruncated = m.BodyText != whole || text.Cut
	return m
}

// reading begins to read the excerpt of a message.
func (e excerpt) reading(x *access, g *fetch.Message, structure bool) *reading {
	r := &reading{access: x, ref: g.Ref, q: GetQuery{BodyChars: 4 * e.chars}, excerpt: e}
	if e.words != "" {
		r.q.BodyChars = max(r.q.BodyChars, maxSearched)
	}
	r.begin(structure)
	return r
}

// excerpts reads the excerpt of each message that the policy shows, out of messages that
// were fetched with fetch.Wanted.Text; what is missing it fetches for all of them at once. A
// message that cannot be read has none.
func (x *imapBox) excerpts(s *imap.Session, e excerpt, got []*fetch.Message, structure bool) (map[mail.Ref]*Message, error) {
	var members []*reading
	for _, g := range got {
		if g.Readable && x.policy.sees(g) {
			r := e.reading(x.access, g, structure)
			r.start(*g)
			members = append(members, r)
		}
	}
	err := readRest(s, members)
	out := make(map[mail.Ref]*Message, len(members))
	for _, r := range members {
		if r.message != nil {
			out[r.ref] = r.message
		}
	}
	return out, err
}

// excerptOf reads the excerpt of a message that is here as a whole, or of its beginning.
func (x *access) excerptOf(e excerpt, g *fetch.Message, raw []byte) *reading {
	r := e.reading(x, g, false)
	r.g = *g
	r.take(message.Parse(raw), true)
	r.message = r.compose()
	return r
}
