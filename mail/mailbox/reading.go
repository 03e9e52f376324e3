package mailbox

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	goimap "github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"

	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/codes"
	"github.com/postern-mail/postern/mail/internal/message"
	"github.com/postern-mail/postern/mail/mailbox/internal/fetch"
)

// reading is one Get in progress.
type reading struct {
	*access
	ref       mail.Ref
	q         GetQuery
	structure bool    // ask for the BODYSTRUCTURE
	excerpt   excerpt // only this of the text; zero means all that q asks for

	g       fetch.Message
	root    *message.Part
	whole   bool              // all of the message is here
	have    map[string][]byte // of each part, as transferred, from its beginning
	asked   map[string]bool
	issues  []mail.Issue
	content int64 // bytes of attachments asked for
	raw     bool  // the beginning of the message has to be fetched, for want of a structure
	pdfs    []pdf

	text     *message.Reading
	masked   codes.Found // what is not shown of the message
	returned string      // of a bounce, the Message-ID of the message that came back

	message  *Message
	err      error
	finished bool
	done     chan struct{}
}

// pdf is an attachment that is still to be read.
type pdf struct {
	attachment int
	bytes      []byte
}

// begin starts anew: after a dead connection it runs again.
func (r *reading) begin(structure bool) {
	*r = reading{access: r.access, ref: r.ref, q: r.q, excerpt: r.excerpt, done: r.done, structure: structure,
		have: make(map[string][]byte), asked: make(map[string]bool)}
}

func (r *reading) finish(m *Message, err error) {
	r.message, r.err, r.finished = m, err, true
}

// failed is the Issue of a message that could not be read.
func (r *reading) failed() mail.Issue {
	i := r.AsError(r.err).Issue()
	i.UID, i.MessageID = r.ref.UID, r.ref.String()
	return i
}

// options selects the data of the first fetch. Where the policy hides messages, it judges
// the same bytes of the header as in a list; a sender is judged by all of it.
func (r *reading) options() goimap.FetchOptions {
	fields := r.policy.ShowsAll() && !r.policy.Judges() && r.q.Headers != HeadersAll && r.structure
	opts := fetch.Wanted{Header: !fields, Read: true, Structure: r.structure, Text: r.structure, Dates: true, Full: true}.Options()
	if !r.structure {
		opts.BodySection = append(opts.BodySection, prefixSection())
	}
	return opts
}

// prefixSection is the beginning of the whole message.
func prefixSection() *goimap.FetchItemBodySection {
	return &goimap.FetchItemBodySection{Partial: &goimap.SectionPartial{Size: maxPartBytes}}
}

// start takes the result of the first fetch, and applies the policy.
func (r *reading) start(g fetch.Message) {
	r.g = g
	d := g.Data
	if !r.policy.sees(&r.g) {
		r.finish(nil, r.noMessage("filtered"))
		return
	}
	head, hasHead := fetch.Section(d, goimap.PartSpecifierHeader, nil, false)
	complete := r.g.Whole
	if !hasHead {
		head, hasHead = fetch.Section(d, goimap.PartSpecifierHeader, nil, true)
		complete = hasHead && len(head) < fetch.HeaderBytes
	}
	body, hasBody := fetch.Section(d, goimap.PartSpecifierText, nil, false)
	r.root = r.g.Root
	r.whole = hasHead && hasBody && complete && len(body) < fetch.TextBytes
	if r.whole || r.root != nil && complete {
		here := message.Parse(joinMessage(head, body))
		// Where the server sees other parts than we do, its numbers count: attachments are
		// fetched by them.
		if r.whole && r.root != nil && !sameShape(here.Root, r.root) {
			r.whole = false
		} else {
			r.take(here, r.whole)
		}
	} else if r.root == nil {
		raw, ok := fetch.Section(d, goimap.PartSpecifierNone, nil, false)
		if r.raw = !ok; ok {
			r.takeRaw(raw)
		}
	}
	if hasHead && !complete {
		r.issues = append(r.issues, r.issue("The header is longer than 64 KiB; what lies beyond is not shown."))
	}
}

// sameShape reports whether two trees have the same parts under the same numbers.
func sameShape(a, b *message.Part) bool {
	if a.ID != b.ID || a.MediaType() != b.MediaType() || len(a.Children) != len(b.Children) {
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
func (r *reading) take(e *message.Entity, whole bool) {
	if whole || r.root == nil {
		r.root = e.Root
	}
	for p := range e.Root.Leaves() {
		r.have[p.ID] = e.Raw(p)
	}
}

// takeRaw uses the beginning of a message that has no structure.
func (r *reading) takeRaw(raw []byte) {
	r.raw, r.whole = false, true // no more can be fetched
	e := message.Parse(raw)
	r.take(e, true)
	if !r.g.Readable {
		r.g.Header = e.Header
	}
	if r.g.Size > int64(len(raw)) {
		r.issues = append(r.issues, r.issue("The server did not give the structure of the message; only its first 512 KiB were read."))
	}
}

func (r *reading) issue(text string) mail.Issue {
	return mail.Issue{Kind: mail.KindRefused, Stage: "parse", Message: text, UID: r.ref.UID}
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
func (r *reading) missing() []*goimap.FetchItemBodySection {
	if r.raw {
		return []*goimap.FetchItemBodySection{prefixSection()}
	}
	if r.whole {
		return nil
	}
	var sections []*goimap.FetchItemBodySection
	want := func(p *message.Part, n int64) {
		n = min(n, p.Size)
		if numbers := fetch.PartNumbers(p.ID); !r.asked[p.ID] && int64(len(r.have[p.ID])) < n && numbers != nil && len(sections) < maxSections {
			r.asked[p.ID] = true
			sections = append(sections, &goimap.FetchItemBodySection{Part: numbers, Partial: &goimap.SectionPartial{Size: n}})
		}
	}
	message.Read(r.root, func(p *message.Part) []byte {
		if b := r.have[p.ID]; !r.enough(b, p) {
			want(p, r.need(p))
		}
		return r.have[p.ID]
	}, r.chars())
	if r.excerpt.whole && r.root != nil {
		for p := range r.root.Leaves() {
			if says(p) {
				want(p, smallText)
			}
		}
	}
	if r.excerpt.chars > 0 {
		return sections
	}
	if r.q.HTML {
		for _, p := range message.HTMLParts(r.root) {
			want(p, maxHTMLBytes)
		}
	}
	message.Returned(r.g.Header, r.root, func(p *message.Part) []byte {
		want(p, message.ReturnedBytes)
		return r.have[p.ID]
	})
	for i, p := range message.Attachments(r.root) {
		switch {
		case r.q.Content && !r.asked[p.ID] && r.content+p.Size <= maxContent:
			r.content += p.Size
			want(p, p.Size)
		case message.IsCalendar(p):
			want(p, maxCalendar)
		case r.q.AttachmentText && i < maxExtracted:
			want(p, textOfAttachment(p, r.q.AttachmentChars))
		}
	}
	return sections
}

// enough reports whether the fetched bytes of a text part show as much as the caller asked
// for.
func (r *reading) enough(b []byte, p *message.Part) bool {
	if int64(len(b)) >= p.Size {
		return true
	}
	if len(b) == 0 || p.Size <= smallText && (r.excerpt.chars == 0 || r.excerpt.whole) || p.Subtype == "html" {
		return false // in HTML the end can hide text of the beginning
	}
	text := message.Read(&message.Part{ID: "1", Type: p.Type, Subtype: p.Subtype, Params: p.Params, Encoding: p.Encoding, Size: p.Size},
		func(*message.Part) []byte { return b }, r.chars())
	if r.q.FromChar > 0 {
		return text.Runes() > r.chars()
	}
	return utf8.RuneCountInString(text.New()) >= cmp.Or(r.excerpt.chars, r.q.BodyChars)
}

// chars is how many characters of the text are read, from its beginning.
func (r *reading) chars() int { return r.q.FromChar + r.q.BodyChars }

// need is how many octets of a text part hold the characters that are read, at four bytes
// each and as its encoding swells them. A small part is read whole, since new text can stand below a
// quote; so is HTML of any size.
func (r *reading) need(p *message.Part) int64 {
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
	if r.q.FromChar > 0 {
		return min(max(n, smallText), maxHTMLBytes)
	}
	return min(max(n, smallText), maxPartBytes)
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
		return min(max(int64(chars)*8, smallText), maxPartBytes)
	}
	return 0
}

func isPDF(p *message.Part) bool {
	return p.MediaType() == "application/pdf" || p.MediaType() == "application/x-pdf" ||
		p.MediaType() == "application/octet-stream" && strings.HasSuffix(strings.ToLower(p.Filename), ".pdf")
}

// accept takes the result of a further fetch.
func (r *reading) accept(d *imapclient.FetchMessageBuffer) {
	if r.raw {
		if raw, ok := fetch.Section(d, goimap.PartSpecifierNone, nil, false); ok {
			r.takeRaw(raw)
		} else {
			r.finish(nil, r.noMessage(""))
		}
		return
	}
	for _, b := range d.BodySection {
		if id := fetch.PartID(b.Section.Part); b.Section.Specifier == goimap.PartSpecifierNone && id != "" && len(b.Bytes) > len(r.have[id]) {
			r.have[id] = b.Bytes
		}
	}
}

// compose makes the message from the fetched bytes.
func (r *reading) compose() *Message {
	body := func(p *message.Part) []byte { return r.have[p.ID] }
	r.text = message.Read(r.root, body, r.chars())
	r.masked = r.access.masked(&r.g, r.text.All())
	if r.excerpt.whole && r.root != nil && !r.masked.Any() {
		for p := range r.root.Leaves() {
			if found := r.access.maskedPart(&r.g, p, r.have[p.ID]); found.Any() {
				r.masked = found
			}
		}
	}
	if !r.q.bare {
		r.text.Mask(r.masked.Mask)
	}
	if r.excerpt.chars > 0 {
		return r.excerpt.of(r)
	}
	r.g.Root = r.root
	out := &Message{Summary: r.summary(&r.g, true)}
	out.mask(r.masked)
	out.Headers = r.headers(&out.Summary)
	r.returned = message.Returned(r.g.Header, r.root, body)
	for i, p := range message.Attachments(r.root) {
		a := Attachment{PartID: p.ID, Filename: p.Filename, ContentType: plain.Line(p.MediaType())}
		raw := r.have[p.ID]
		a.Size = decodedSize(p, raw)
		if r.hides() {
			a.Filename = r.masked.Mask(a.Filename)
			out.Attachments = append(out.Attachments, a)
			continue
		}
		if message.IsCalendar(p) {
			a.Events = message.Events(message.DecodeBody(raw, p.Encoding))
			if text, _, _, ok := message.PartText(p, raw, maxFromChar); ok && !r.q.bare {
				found := r.access.masked(&r.g, text)
				for i := range a.Events {
					e := &a.Events[i]
					e.Summary, e.Location, e.Organizer = found.Mask(e.Summary), found.Mask(e.Location), found.Mask(e.Organizer)
				}
			}
		}
		switch {
		case !r.q.AttachmentText:
		case i < maxExtracted:
			r.attachmentText(&a, i, p, raw)
		case textOfAttachment(p, r.q.AttachmentChars) > 0:
			out.Unread++
		}
		if r.q.Content {
			if !r.q.bare && r.access.maskedPart(&r.g, p, raw).Any() {
				r.issues = append(r.issues, r.issue(fmt.Sprintf("The content of part %s is not shown: it has a one-time code or a link that logs in.", p.ID)))
			} else if int64(len(raw)) >= p.Size {
				a.Content = message.DecodeBody(raw, p.Encoding)
			} else {
				r.issues = append(r.issues, r.issue(fmt.Sprintf("The content of part %s was not sent along, because the message has too many or too large parts; get it with 'mail attachment'.", p.ID)))
			}
		}
		out.Attachments = append(out.Attachments, a)
	}
	if r.hides() && (r.q.HTML || len(out.Attachments) > 0 && (r.q.AttachmentText || r.q.Content)) {
		r.issues = append(r.issues, r.issue("The message has a one-time code or a link that logs in: neither its HTML nor what its attachments say is shown."))
	}
	out.Issues = r.issues
	return out
}

// hides reports whether something of the message is masked, so that only its text is shown.
func (r *reading) hides() bool { return r.masked.Any() && !r.q.bare }

// show puts at most so many characters of the text into the message.
func (r *reading) show(chars int) {
	m := r.message
	m.FromChar = r.q.FromChar
	m.BodyText, m.NextChar = r.text.Page(r.q.FromChar, chars)
	m.BodyTruncated, m.HiddenChars = m.NextChar > 0, r.text.Hidden
	if r.q.FromChar > 0 && m.BodyText == "" {
		m.NextChar = 0
		text := "The text has fewer characters."
		if r.text.Cut {
			text = "The text goes on, but no more of it is read here: fetch its part as a whole."
		}
		m.Issues = append(m.Issues, r.issue(text))
	}
	if r.q.HTML {
		r.html(m, chars)
	}
}

// decodedSize is how large a part is when its transfer encoding is undone. For one that was
// not fetched that is an estimate: base64 has 57 bytes on a line of 78.
func decodedSize(p *message.Part, raw []byte) int64 {
	switch {
	case int64(len(raw)) >= p.Size:
		return int64(len(message.DecodeBody(raw, p.Encoding)))
	case p.Encoding == "base64":
		return p.Size * 57 / 78
	}
	return p.Size
}

// html renders HTML as its reader would see it.
func (r *reading) html(out *Message, chars int) {
	left, hidden := chars, 0
	for _, p := range message.HTMLParts(r.root) {
		if r.hides() {
			break // which compose has said
		}
		if text, _, _, _ := message.PartText(p, r.have[p.ID], maxFromChar); r.access.masked(&r.g, text).Any() {
			out.Issues = append(out.Issues, r.issue("The HTML is not shown: it has a one-time code or a link that logs in."))
			break
		}
		if left <= 0 {
			out.BodyTruncated = true
			break
		}
		raw := r.have[p.ID]
		safe, unseen, cut := message.SanitizeHTML(message.DecodeBody(raw, p.Encoding), p.Param("charset"), left)
		out.BodyTruncated = out.BodyTruncated || cut || int64(len(raw)) < p.Size
		if out.BodyHTML != "" && safe != "" {
			out.BodyHTML += "\n"
		}
		out.BodyHTML += safe
		left -= utf8.RuneCountInString(safe)
		hidden += unseen
	}
	out.HiddenChars = max(out.HiddenChars, hidden)
}

// attachmentText reads the text of an attachment. A PDF is read later, when the session is
// given back.
func (r *reading) attachmentText(a *Attachment, i int, p *message.Part, raw []byte) {
	switch {
	case isPDF(p):
		pdfBytes := message.DecodeBody(raw, p.Encoding)
		if int64(len(raw)) < p.Size || len(pdfBytes) > maxPDFBytes {
			r.issues = append(r.issues, r.issue(fmt.Sprintf("The text of part %s was not read: it is larger than 5 MB.", p.ID)))
			return
		}
		r.pdfs = append(r.pdfs, pdf{i, pdfBytes})
	default:
		if text, hidden, cut, ok := message.PartText(p, raw, r.q.AttachmentChars); ok {
			a.Text, a.HiddenChars, a.TextTruncated = r.access.maskedPart(&r.g, p, raw).MaskLines(text), hidden, cut || int64(len(raw)) < p.Size
		}
	}
}

// readPDFs reads the text of PDF attachments, one after the other. A failure is an
// Issue (001 section 5).
func (r *reading) readPDFs(ctx context.Context, reader PDFReader) {
	for _, f := range r.pdfs {
		a := &r.message.Attachments[f.attachment]
		if reader == nil {
			r.message.Issues = append(r.message.Issues, r.issue(fmt.Sprintf("The text of part %s was not read: PDF text is not available here.", a.PartID)))
			continue
		}
		text, cut, err := reader.Text(ctx, f.bytes, r.q.AttachmentChars)
		if err != nil {
			r.message.Issues = append(r.message.Issues, mail.Issue{Kind: mail.KindRefused, Stage: "extract", UID: r.ref.UID,
				Message: fmt.Sprintf("The text of part %s could not be read: %s.", a.PartID, plain.Line(err.Error()))})
			continue
		}
		a.Text, a.TextTruncated = plain.Head(plain.Text(text), r.q.AttachmentChars)
		a.TextTruncated = a.TextTruncated || cut
	}
}

// headers returns the requested fields, in the message's order, without those that the
// summary shows. It includes the second of a repeated field, and one that the summary could
// not read and left empty.
func (r *reading) headers(s *Summary) []HeaderField {
	var out []HeaderField
	if r.q.Headers == HeadersNone {
		return nil
	}
	own := map[string]bool{"from": len(s.From) > 0, "to": len(s.To) > 0, "cc": len(s.CC) > 0, "subject": s.Subject != "",
		"date": !s.Date.IsZero(), "message-id": s.InternetMessageID != ""}
	for _, f := range r.g.Header.Fields() {
		lower := strings.ToLower(f.Name)
		if f.Name == "" || r.q.Headers == HeadersCurated && !slices.Contains(fetch.Curated, lower) {
			continue
		}
		if own[lower] {
			delete(own, lower)
			continue
		}
		value, _ := plain.Head(r.masked.Mask(f.Text()), maxHeaderText)
		out = append(out, HeaderField{Name: plain.Line(f.Name), Value: value})
	}
	return out
}
