package reading

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/message"
	"github.com/postern-mail/postern/mail/mailbox/internal/fetch"
)

// compose makes the message from the fetched bytes.
func (r *Reading) compose() *Message {
	body := func(p *message.Part) []byte { return r.have[p.ID] }
	r.Text = message.Read(r.Work, r.Root, body, r.chars())
	r.Masked = r.Viewer.Masked(&r.Got, r.Text.All(), message.Attachments(r.Root)...)
	if r.excerpt.whole && r.Root != nil && !r.Masked.Any() {
		for p := range r.Root.Leaves() {
			if found := r.Viewer.MaskedPart(&r.Got, p, r.have[p.ID]); found.Any() {
				r.Masked = found
			}
		}
	}
	if !r.Text.Cut && !r.cut && r.MayMask(&r.Got) {
		r.Memory.keep(r.Got.Ref, r.Masked)
	}
	if !r.Bare {
		r.Text.Mask(r.Masked.Mask)
	}
	if r.excerpt.Chars > 0 {
		if r.Text.Cut || r.cut { // what is missing can say that a number is a code
			r.Text.Mask(r.Suspected(&r.Got, r.Text.All()).Mask)
		}
		return r.excerpt.of(r)
	}
	r.Got.Root = r.Root
	out := &Message{Summary: r.summary(&r.Got)}
	out.Mask(r.Masked)
	out.Headers = r.headers(&out.Summary)
	r.Returned = message.Returned(r.Got.Header, r.Root, body)
	for i, p := range r.attachments() {
		a := Attachment{PartID: p.ID, Filename: p.Filename, ContentType: plain.Line(p.MediaType())}
		raw := r.have[p.ID]
		a.Size = r.SizeOf(p)
		if r.hides() {
			a.Filename = r.Masked.Mask(a.Filename)
			out.Attachments = append(out.Attachments, a)
			continue
		}
		if message.IsCalendar(p) {
			a.Events = message.Events(message.DecodeBody(raw, p.Encoding))
			if text, _, _, ok := message.PartText(r.Work, p, raw, MaxFromChar); ok && !r.Bare {
				found := r.Viewer.Masked(&r.Got, text)
				for i := range a.Events {
					e := &a.Events[i]
					for _, s := range []*string{&e.Summary, &e.Location, &e.Organizer, &e.Attendee, &e.Zone} {
						*s = found.Mask(*s)
					}
				}
			}
		}
		switch {
		case !r.Query.AttachmentText:
		case i < maxExtracted:
			r.attachmentText(&a, i, p, raw)
		case textOfAttachment(p, r.Query.AttachmentChars) > 0:
			out.Unread++
		}
		if r.Query.Content {
			if !r.Bare && r.Viewer.MaskedPart(&r.Got, p, raw).Any() {
				r.issues = append(r.issues, r.issue(fmt.Sprintf("The content of part %s is not shown: it has a one-time code or a link that logs in.", p.ID)))
			} else if int64(len(raw)) >= p.Size {
				a.Content = message.DecodeBody(raw, p.Encoding)
			} else {
				r.issues = append(r.issues, r.issue(fmt.Sprintf("The content of part %s was not sent along, because the message has too many or too large parts; 'mail attachment' with --part saves it with --save, and says what it says with --as-text.", p.ID)))
			}
		}
		out.Attachments = append(out.Attachments, a)
	}
	if r.hides() && (r.Query.HTML || len(out.Attachments) > 0 && (r.Query.AttachmentText || r.Query.Content)) {
		r.issues = append(r.issues, r.issue("The message has a one-time code or a link that logs in: neither its HTML nor what its attachments say is shown."))
	}
	out.Issues, out.Notes = r.issues, r.notes()
	return out
}

// lists reports whether a part is a message whose attachments are listed with those of the one
// it is in, which costs its beginning. A bounce does not list those of what came back.
func (r *Reading) lists(p *message.Part) bool {
	return !r.Bare && message.IsMessage(p) && !message.IsBounce(r.Got.Header, r.Root)
}

// attachments are those of the message, each message among them with its own.
func (r *Reading) attachments() (all []*message.Part) {
	for _, p := range message.Attachments(r.Root) {
		all = append(all, p)
		if !r.lists(p) {
			continue
		}
		raw := r.have[p.ID]
		e := message.Enclosed(p, raw)
		if e == nil {
			continue
		}
		r.keep(e)
		inner := message.Attachments(e.Root)
		if n := len(inner); n > 0 && int64(len(raw)) < p.Size { // the last one is cut
			inner[n-1].Size += p.Size - int64(len(raw))
			delete(r.have, inner[n-1].ID)
		}
		all = append(all, inner...)
	}
	return all
}

// notes say what of the message is not its text as it was written, or not read at all.
func (r *Reading) notes() (notes []string) {
	if with := message.Encrypted(r.Root, func(p *message.Part) []byte { return r.have[p.ID] }); with != "" {
		notes = append(notes, "The message is encrypted with "+with+" and cannot be read here: a mail program that has the key shows it.")
	}
	if r.signed {
		notes = append(notes, "The message was in a container that is signed with S/MIME; the signature was not checked.")
	}
	if r.Root == nil { // the server gave nothing of it, which is an issue
		return notes
	}
	for p := range r.Root.Leaves() {
		switch {
		case p.Subtype == "ms-tnef" || p.Subtype == "vnd.ms-tnef" || strings.EqualFold(p.Filename, "winmail.dat"):
			notes = append(notes, fmt.Sprintf("Part %s (winmail.dat) is a form of Outlook's own that is not read here: text and files of the message can be inside it. Its sender can send it again as plain text or HTML.", p.ID))
		case p.IsCMS() && len(notes) == 0:
			notes = append(notes, fmt.Sprintf("Part %s is a container of S/MIME that could not be read: the message is inside it.", p.ID))
		}
	}
	switch {
	case len(notes) > 0 || r.Text.Runes() > 0:
	case !r.Text.Cut:
		notes = append(notes, "The message has no text.")
	case len(r.issues) == 0:
		notes = append(notes, "The message's text is not shown: it takes too much work to tell what of its HTML a person would see.")
	}
	return notes
}

// hides reports whether something of the message is masked, so that only its text is shown.
func (r *Reading) hides() bool { return r.Masked.Any() && !r.Bare }

// Show puts at most so many characters of the text into the message, and of the HTML where it
// was asked for; behind its beginning a page is of the HTML alone.
func (r *Reading) Show(chars int) {
	m := r.Message
	m.FromChar, m.HiddenChars = r.Query.FromChar, r.Text.Hidden
	if r.Query.HTML && r.html(m, chars) && r.Query.FromChar > 0 {
		return
	}
	var next int
	m.BodyText, next = r.Text.Page(r.Query.FromChar, chars)
	m.NextChar = cmp.Or(m.NextChar, next) // pages are of the HTML where there is more of it
	m.BodyTruncated = m.BodyTruncated || next > 0
	if r.Query.FromChar > 0 && m.BodyText == "" {
		m.NextChar = 0
		text := "The text has fewer characters."
		if r.Text.Cut {
			text = "The text goes on, but no more of it is read here: fetch its part as a whole."
		}
		m.Issues = append(m.Issues, r.issue(text))
	}
}

// SizeOf is how large a part is when its transfer encoding is undone, the same whatever was
// fetched of it. Of a message that is not here as a whole it follows from the size that the
// server gives: base64 has 57 bytes on a line of 78, and up to 2 fewer on the last one.
func (r *Reading) SizeOf(p *message.Part) int64 {
	switch {
	case r.whole:
		return int64(len(message.DecodeBody(r.have[p.ID], p.Encoding)))
	case p.Encoding == "base64":
		lines, last := p.Size/78, p.Size%78
		if last%4 == 2 { // the end of the line
			last -= 2
		}
		return (lines*76 + last) / 4 * 3
	}
	return p.Size
}

// html puts a page of the HTML into the message, as its reader would see it; false where there
// is none. A page ends with no tag in two pieces.
func (r *Reading) html(out *Message, chars int) bool {
	var all []string
	cut := false
	for _, p := range message.HTMLParts(r.Root) {
		if r.hides() {
			return false // which compose has said
		}
		raw := r.have[p.ID]
		if text, _, _, _ := message.PartText(r.Work, p, raw, MaxFromChar); r.Viewer.Masked(&r.Got, text).Any() {
			out.Issues = append(out.Issues, r.issue("The HTML is not shown: it has a one-time code or a link that logs in."))
			return false
		}
		safe, unseen, more := message.SanitizeHTML(r.Work, message.DecodeBody(raw, p.Encoding), p.Param("charset"), MaxFromChar)
		out.HiddenChars, cut = max(out.HiddenChars, unseen), cut || more || int64(len(raw)) < p.Size
		if safe != "" {
			all = append(all, safe)
		}
	}
	whole := []rune(strings.Join(all, "\n"))
	from := min(max(r.Query.FromChar, 1)-1, len(whole))
	page := whole[from:min(from+chars, len(whole))]
	if from+len(page) < len(whole) {
		tag := len(page) - 1
		for tag > 0 && page[tag] != '<' && page[tag] != '>' {
			tag--
		}
		if tag > 0 && page[tag] == '<' {
			page = page[:tag]
		}
		out.NextChar, out.BodyTruncated = from+len(page)+1, true
	} else if cut {
		out.BodyTruncated = true
		out.Issues = append(out.Issues, r.issue("The HTML goes on, but no more of it is read here: fetch its part as a whole."))
	}
	out.BodyHTML = string(page)
	return len(page) > 0
}

// attachmentText reads the text of an attachment. A PDF is read later, when the session is
// given back.
func (r *Reading) attachmentText(a *Attachment, i int, p *message.Part, raw []byte) {
	switch {
	case isPDF(p):
		pdfBytes := message.DecodeBody(raw, p.Encoding)
		if int64(len(raw)) < p.Size || len(pdfBytes) > maxPDFBytes {
			r.issues = append(r.issues, r.issue(fmt.Sprintf("The text of part %s was not read: it is larger than 5 MB.", p.ID)))
			return
		}
		r.pdfs = append(r.pdfs, pdf{i, pdfBytes})
	default:
		if text, hidden, cut, ok := message.PartText(r.Work, p, raw, r.Query.AttachmentChars); ok {
			a.Text, a.HiddenChars, a.TextTruncated = r.Viewer.MaskedPart(&r.Got, p, raw).MaskLines(text), hidden, cut || int64(len(raw)) < p.Size
		}
	}
}

// ReadPDFs reads the text of PDF attachments, one after the other. A failure is an
// Issue (001 section 5).
func (r *Reading) ReadPDFs(ctx context.Context, reader PDFReader) {
	for _, f := range r.pdfs {
		a := &r.Message.Attachments[f.attachment]
		if reader == nil {
			r.Message.Issues = append(r.Message.Issues, r.issue(fmt.Sprintf("The text of part %s was not read: PDF text is not available here.", a.PartID)))
			continue
		}
		text, cut, err := reader.Text(ctx, f.bytes, r.Query.AttachmentChars)
		if err != nil {
			r.Message.Issues = append(r.Message.Issues, mail.Issue{Kind: mail.KindRefused, Stage: "extract", UID: r.Ref.UID,
				Message: fmt.Sprintf("The text of part %s could not be read: %s.", a.PartID, plain.Line(err.Error()))})
			continue
		}
		a.Text, a.TextTruncated = plain.Head(plain.Text(text), r.Query.AttachmentChars)
		a.TextTruncated = a.TextTruncated || cut
	}
}

// Headers returns the requested fields, in the message's order, without those that the
// Summary shows. It includes the second of a repeated field, and one that the summary could
// not read and left empty.
func (r *Reading) headers(s *Summary) []HeaderField {
	var out []HeaderField
	if r.Query.Headers == HeadersNone {
		return nil
	}
	_, dated := r.Got.Date()
	own := map[string]bool{"from": len(s.From) > 0, "to": len(s.To) > 0, "cc": len(s.CC) > 0, "subject": s.Subject != "",
		"date": dated, "message-id": s.InternetMessageID != ""}
	for _, f := range r.Got.Header.Fields() {
		lower := strings.ToLower(f.Name)
		if f.Name == "" || r.Query.Headers == HeadersCurated && !slices.Contains(fetch.Curated, lower) {
			continue
		}
		if own[lower] {
			delete(own, lower)
			continue
		}
		value, _ := plain.Head(r.Masked.Mask(f.Text()), maxHeaderText)
		out = append(out, HeaderField{Name: plain.Line(f.Name), Value: value})
	}
	return out
}

// Excerpt is the part of a message's text that a list or a conversation shows: what is new
// in it, or its history when nothing is. The zero value is no excerpt.
type Excerpt struct {
	Chars int    // at most so many runes, with "…" at the end where more follows
	Lines bool   // as it is written; else on one line
	whole bool   // parts of the usual size are read as Get reads them, also those that it does not show
	Words string // the line shows the place where these stand, if that was fetched
}

// maxSearched is how many characters of a text are looked through for the words of a search.
const maxSearched = 4000

// of makes a message of the excerpt: its Subject, and its Snippet or with lines its BodyText.
func (e Excerpt) of(r *Reading) *Message {
	text := r.Text
	subject := r.Masked.Mask(r.Got.Header.Text("Subject"))
	if text.Cut || r.cut {
		subject = r.Suspected(&r.Got).Mask(subject)
	}
	m := &Message{Summary: Summary{Subject: subject, HiddenChars: text.Hidden}}
	if !e.Lines {
		m.Snippet = text.Around(e.Words, e.Chars)
		return m
	}
	whole := text.New()
	if whole == "" {
		whole, _ = text.Page(0, e.Chars+1)
	}
	m.BodyText = plain.Clip(whole, e.Chars)
	m.BodyTruncated = m.BodyText != whole || text.Cut
	return m
}

// Begin begins to read the excerpt of a message.
func (e Excerpt) Begin(x *Viewer, g *fetch.Message, structure bool) *Reading {
	r := &Reading{Viewer: x, Ref: g.Ref, Query: GetQuery{BodyChars: 4 * e.Chars}, excerpt: e}
	if e.Words != "" {
		r.Query.BodyChars = max(r.Query.BodyChars, maxSearched)
	}
	r.begin(structure)
	return r
}

// ExcerptOf reads the excerpt of a message that is here as a whole, or of its beginning.
func (x *Viewer) ExcerptOf(e Excerpt, g *fetch.Message, raw []byte) *Reading {
	r := e.Begin(x, g, false)
	r.ReadWhole(*g, raw)
	return r
}
