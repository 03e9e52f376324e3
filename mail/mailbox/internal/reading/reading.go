package reading

import (
	"cmp"
	"strings"
	"unicode/utf8"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/codes"
	"github.com/postern-mail/postern/mail/internal/imap"
	"github.com/postern-mail/postern/mail/internal/message"
	"github.com/postern-mail/postern/mail/mailbox/internal/fetch"
)

// What is read of a message.
const (
	MaxBodyChars  = 20_000
	MaxFromChar   = 2_000_000 // no more of a text is read
	smallText     = 64 << 10  // a text part up to here is fetched whole
	MaxPartBytes  = 512 << 10 // of one part of plain text
	maxHTMLBytes  = 2 << 20   // of one part of HTML, whose style sheet can stand anywhere
	maxPDFBytes   = 5 << 20   // 001 section 5, decoded
	maxSigned     = 8 << 20   // of one container of signed data, as transferred
	maxCalendar   = 64 << 10
	maxContent    = 24 << 20 // of all attachments of a message together, as transferred
	maxExtracted  = 20       // attachments whose text is read
	maxRounds     = 4        // fetches after the first
	maxSections   = 60       // of one message in one fetch
	maxHeaderText = 4000     // characters of one header field
)

// Reading is one Get in progress.
type Reading struct {
	*Viewer
	Ref       mail.Ref
	Query     GetQuery
	Bare      bool                                       // nothing is masked
	Ready     func(s *imap.Session, folder string) error // what Queue does first on the session
	structure bool                                       // ask for the BODYSTRUCTURE
	excerpt   Excerpt                                    // only this of the text; zero means all that q asks for

	Got     fetch.Message
	Root    *message.Part
	whole   bool              // all of the message is here
	cut     bool              // only the beginning of the message is here, which counts as the whole
	have    map[string][]byte // of each part, as transferred, from its beginning
	asked   map[string]bool
	issues  []mail.Issue
	content int64 // bytes of attachments asked for
	signed  bool  // the text was in a container of signed data
	raw     bool  // the beginning of the message has to be fetched, for want of a structure
	pdfs    []pdf

	Text     *message.Reading
	Masked   codes.Found // what is not shown of the message
	Returned string      // of a bounce, the Message-ID of the message that came back

	Message  *Message
	Err      error
	finished bool
	done     chan struct{}
}

// pdf is an attachment that is still to be read.
type pdf struct {
	attachment int
	bytes      []byte
}

// begin starts anew: after a dead connection it runs again.
func (r *Reading) begin(structure bool) {
	*r = Reading{Viewer: r.Viewer, Ready: r.Ready, Bare: r.Bare, Ref: r.Ref, Query: r.Query, excerpt: r.excerpt, done: r.done, structure: structure,
		have: make(map[string][]byte), asked: make(map[string]bool)}
}

func (r *Reading) finish(m *Message, err error) {
	r.Message, r.Err, r.finished = m, err, true
}

// Failed is the Issue of a message that could not be read.
func (r *Reading) Failed() mail.Issue {
	i := r.AsError(r.Err).Issue()
	i.UID, i.MessageID = r.Ref.UID, r.Ref.String()
	return i
}

// items selects the data of the first fetch. Where the policy hides messages, it judges
// the same bytes of the header as in a list; a sender is judged by all of it.
func (r *Reading) items() imap.Items {
	fields := r.Policy.ShowsAll() && !r.Policy.Judges() && r.Query.Headers != HeadersAll && r.structure
	items := fetch.Wanted{Header: !fields, Read: true, Structure: r.structure, Text: r.structure, Dates: true, Full: true}.Items()
	if !r.structure {
		items.Sections = append(items.Sections, prefix)
	}
	return items
}

// prefix is the beginning of the whole message.
var prefix = imap.Section{Size: MaxPartBytes}

// Start takes the result of the first fetch, and applies the policy.
func (r *Reading) Start(g fetch.Message) {
	r.Got = g
	if !r.Policy.Sees(&r.Got) {
		r.finish(nil, r.NoMessage("filtered"))
		return
	}
	complete := g.Readable && g.Headed < fetch.HeaderBytes
	if r.Root = r.Got.Root; message.Hollow(r.Root) {
		r.Root = nil // it is read here
	}
	r.whole = complete && g.Text != nil && len(g.Text) < fetch.TextBytes
	if r.whole || r.Root != nil && complete {
		here := message.Parse(joinMessage(g.Head, g.Text))
		// Where the server sees other parts than we do, its numbers count: attachments are
		// fetched by them.
		if r.whole && r.Root != nil && !sameShape(here.Root, r.Root) {
			r.whole = false
		} else {
			r.take(here, r.whole)
		}
	} else if r.Root == nil {
		if r.raw = g.Source == nil; !r.raw {
			r.takeRaw(g.Source)
		}
	}
	if g.Readable && !complete {
		r.issues = append(r.issues, r.issue("The header is longer than 64 KiB; what lies beyond is not shown."))
	}
}

// sameShape reports whether two trees have the same parts under the same numbers. What a
// server that could not read a type calls a part does not count.
func sameShape(a, b *message.Part) bool {
	if a.ID != b.ID || len(a.Children) != len(b.Children) {
		return false
	}
	for i := range a.Children {
		if !sameShape(a.Children[i], b.Children[i]) {
			return false
		}
	}
	return true
}

// take keeps the parts of a message that was parsed here. If the whole message is here, the
// tree parsed here counts, else the server's, which has the same numbers.
func (r *Reading) take(e *message.Entity, whole bool) {
	if whole || r.Root == nil {
		r.Root = e.Root
	}
	r.keep(e)
	r.open()
}

func (r *Reading) keep(e *message.Entity) {
	for p := range e.Root.Leaves() {
		r.have[p.ID] = e.Raw(p)
	}
}

// open puts what parts hold in another form into their place.
func (r *Reading) open() {
	const deepest = 3
	for range deepest {
		for p := range r.Root.Leaves() {
			if e := message.Open(p, r.have[p.ID]); e != nil {
				r.keep(e)
				r.signed = r.signed || p.IsCMS()
				p.Type, p.Subtype, p.Children = "multipart", "mixed", []*message.Part{e.Root}
			}
		}
	}
}

// takeRaw uses the beginning of a message that has no structure.
func (r *Reading) takeRaw(raw []byte) {
	r.raw, r.whole = false, true // no more can be fetched
	e := message.Parse(raw)
	r.take(e, true)
	if !r.Got.Readable {
		r.Got.Header = e.Header
	}
	if r.Got.Size > int64(len(raw)) {
		r.issues = append(r.issues, r.issue("The server did not give the structure of the message; only its first 512 KiB were read."))
	}
}

// ReadWhole reads a message that is here as a whole, or its beginning.
func (r *Reading) ReadWhole(g fetch.Message, raw []byte) {
	r.begin(false)
	r.Got, r.whole, r.cut = g, true, g.Size > int64(len(raw))
	r.take(message.Parse(raw), true)
	r.finish(r.compose(), nil)
}

func (r *Reading) issue(text string) mail.Issue {
	return mail.Issue{Kind: mail.KindRefused, Stage: "parse", Message: text, UID: r.Ref.UID}
}

// joinMessage joins a header and a body that were fetched apart. The header includes its
// empty line, unless the message ends there.
func joinMessage(head, body []byte) []byte {
	raw := make([]byte, 0, len(head)+len(body)+4)
	raw = append(raw, head...)
	if !strings.HasSuffix(string(head), "\n\r\n") && !strings.HasSuffix(string(head), "\n\n") && string(head) != "\r\n" && len(body) > 0 {
		if len(head) > 0 && head[len(head)-1] != '\n' {
			raw = append(raw, "\r\n"...)
		}
		raw = append(raw, "\r\n"...)
	}
	return append(raw, body...)
}

// missing returns the sections still to be fetched for the answer.
func (r *Reading) missing() []imap.Section {
	if r.raw {
		return []imap.Section{prefix}
	}
	if r.whole {
		return nil
	}
	var sections []imap.Section
	want := func(p *message.Part, n int64) {
		n = min(n, p.Size)
		if !r.asked[p.ID] && int64(len(r.have[p.ID])) < n && p.ID != "" && len(sections) < maxSections {
			r.asked[p.ID] = true
			sections = append(sections, imap.Section{Part: p.ID, Size: n})
		}
	}
	if r.Root != nil {
		most := int64(maxSigned)
		if r.excerpt.Chars > 0 && !r.excerpt.whole {
			most = MaxPartBytes
		}
		for p := range r.Root.Leaves() {
			if p.IsCMS() && p.Size <= most {
				want(p, p.Size)
			}
		}
	}
	message.Read(r.Work, r.Root, func(p *message.Part) []byte {
		if b := r.have[p.ID]; !r.enough(b, p) {
			want(p, r.need(p))
		}
		return r.have[p.ID]
	}, r.chars())
	if r.excerpt.whole && r.Root != nil {
		for p := range r.Root.Leaves() {
			if says(p) {
				want(p, r.need(p))
			}
		}
	}
	if r.excerpt.Chars > 0 {
		return sections
	}
	if r.Query.HTML {
		for _, p := range message.HTMLParts(r.Root) {
			want(p, maxHTMLBytes)
		}
	}
	message.Returned(r.Got.Header, r.Root, func(p *message.Part) []byte {
		want(p, message.ReturnedBytes)
		return r.have[p.ID]
	})
	for i, p := range message.Attachments(r.Root) {
		switch {
		case r.Query.Content && !r.asked[p.ID] && r.content+p.Size <= cmp.Or(r.Query.ContentBytes, maxContent):
			r.content += p.Size
			want(p, p.Size)
		case message.IsCalendar(p):
			want(p, maxCalendar)
		case r.lists(p):
			want(p, MaxPartBytes)
		case r.Query.AttachmentText && i < maxExtracted:
			want(p, textOfAttachment(p, r.Query.AttachmentChars))
		}
	}
	return sections
}

// enough reports whether the fetched bytes of a text part show as much as the caller asked
// for.
func (r *Reading) enough(b []byte, p *message.Part) bool {
	if int64(len(b)) >= p.Size {
		return true
	}
	if len(b) == 0 || p.Size <= smallText && (r.excerpt.Chars == 0 || r.excerpt.whole) || p.Subtype == "html" {
		return false // in HTML the end can hide text of the beginning
	}
	text := message.Read(r.Work, &message.Part{ID: "1", Type: p.Type, Subtype: p.Subtype, Params: p.Params, Encoding: p.Encoding, Size: p.Size},
		func(*message.Part) []byte { return b }, r.chars())
	if r.Query.FromChar > 0 {
		return text.Runes() > r.chars()
	}
	if r.excerpt.Chars > 0 && r.Suspected(&r.Got, text.All()).Any() {
		return false // the rest can say that a number is a code
	}
	return utf8.RuneCountInString(text.New()) >= cmp.Or(r.excerpt.Chars, r.Query.BodyChars)
}

// Chars is how many characters of the text are read, from its beginning.
func (r *Reading) chars() int { return r.Query.FromChar + r.Query.BodyChars }

// need is how many octets of a text part hold the characters that are read, at four bytes
// each and as its encoding swells them. A small part is read whole, since new text can stand below a
// quote; so is HTML of any size.
func (r *Reading) need(p *message.Part) int64 {
	n := int64(r.chars())*4 + 1024
	switch p.Encoding {
	case "base64":
		n = n * 3 / 2
	case "quoted-printable":
		n *= 3
	}
	if p.Subtype == "html" {
		return maxHTMLBytes
	}
	if r.Query.FromChar > 0 {
		return min(max(n, smallText), maxHTMLBytes)
	}
	return min(max(n, smallText), MaxPartBytes)
}

// textOfAttachment is how many octets of an attachment are fetched for its text.
func textOfAttachment(p *message.Part, chars int) int64 {
	switch {
	case isPDF(p):
		if p.Size > maxPDFBytes*3/2 {
			return 0
		}
		return p.Size
	case p.Type == "text", p.Type == "message", p.Subtype == "json", strings.HasSuffix(p.Subtype, "xml"):
		return min(max(int64(chars)*8, smallText), MaxPartBytes)
	}
	return 0
}

func isPDF(p *message.Part) bool {
	return p.MediaType() == "application/pdf" || p.MediaType() == "application/x-pdf" ||
		p.MediaType() == "application/octet-stream" && strings.HasSuffix(strings.ToLower(p.Filename), ".pdf")
}

// accept takes the result of a further fetch.
func (r *Reading) accept(d *imap.Fetched) {
	if r.raw {
		if raw, ok := d.Section(imap.Section{}); ok {
			r.takeRaw(raw)
		} else {
			r.finish(nil, r.NoMessage(""))
		}
		return
	}
	for _, s := range d.Sections {
		if s.Only == "" && s.Part != "" && len(s.Bytes) > len(r.have[s.Part]) {
			r.have[s.Part] = s.Bytes
		}
	}
	if r.Root != nil {
		r.open()
	}
}
