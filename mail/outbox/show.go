package outbox

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/codes"
	"github.com/postern-mail/postern/mail/internal/compose"
	"github.com/postern-mail/postern/mail/internal/markdown"
	"github.com/postern-mail/postern/mail/internal/message"
	"github.com/postern-mail/postern/mail/internal/rfc5322"
)

// Shown is an entry of the outbox with what a person has to see before saying yes.
// HeaderFrom, To, CC, Subject, Body and Files are read from the bytes that leave, and not
// from the request. Recipients are the envelope's, whatever the header says.
type Shown struct {
	mail.Outgoing
	// Here tells whether the bytes are still there: those of a message that ended
	// are forgotten, and then Body and Files are empty.
	Here       bool
	HeaderFrom mail.Address // as the recipients see it
	Body       string       // the whole text
	Markdown   bool         // HTML that was made of exactly this text goes beside it
	HTML       string       // what a person sees of HTML that was not made of it; empty for none
	Files      []ShownFile  // all other parts

	secrets codes.Found
	kept    string // the stored subject, in which codes are masked, where it is Coded
}

// ShownFile is an attachment as it leaves.
type ShownFile struct {
	mail.FileName
	SHA256 string // of the decoded bytes, in hexadecimal
}

// Show returns an entry with its content. The error matches ErrNoOutgoing when the entry
// does not exist, and is KindConflict when its bytes do not match Digest.
func (b *Outbox) Show(ctx context.Context, id string) (*Shown, error) {
	const op = "outbox show"
	e, err := b.o.Store.Outgoing(ctx, id)
	if err != nil {
		return nil, wrapStore(ctx, op, err)
	}
	shown := &Shown{Outgoing: present(e, b.now())}
	if e.Kind == mail.OutboxDelete {
		shown.Here = true
		return shown, unchanged(op, &e)
	}
	raw, err := b.bytes(ctx, op, &e)
	if errors.Is(err, mail.ErrNoOutgoing) {
		return shown, nil
	}
	if err != nil {
		return nil, err
	}
	shown.Here = true
	shown.read(raw)
	return shown, nil
}

// read shows a message that compose has built, or that was a draft.
func (s *Shown) read(raw []byte) {
	c := contentOf(raw)
	s.secrets, s.kept = c.secrets(), s.Subject
	h := c.Header
	s.To, s.CC = h.Addresses("To"), h.Addresses("Cc")
	if from := h.Addresses("From"); len(from) == 1 {
		s.HeaderFrom = from[0]
	}
	s.Subject, s.Body, s.Markdown, s.HTML = h.Text("Subject"), strings.Join(c.texts, "\n"), c.markdown, c.html
	for _, f := range c.files {
		sum := sha256.Sum256(f.Content)
		s.Files = append(s.Files, ShownFile{FileName: mail.FileName{Name: f.Name, Type: f.Type, Size: int64(len(f.Content))}, SHA256: hex.EncodeToString(sum[:])})
	}
}

// content is what a message says: every part of it, but for HTML that was made of its text.
type content struct {
	*message.Entity
	texts    []string // with LF
	markdown bool     // HTML was made of the only text
	quoted   int      // last lines of that text that were not Markdown
	html     string   // what a person sees of other HTML; empty for none
	files    []compose.Attachment

	documents []string // of HTML, with LF
}

// contentOf takes any message apart.
func contentOf(raw []byte) *content {
	c := &content{Entity: message.Parse(raw)}
	var seen []string
	for p := range c.Root.Leaves() {
		data, kind := message.DecodeBody(c.Raw(p), p.Encoding), p.MediaType()
		if p.Disposition == "attachment" || p.Filename != "" {
			kind = "file"
		}
		text := func() string {
			return strings.ReplaceAll(rfc5322.DecodeText(data, p.Param("charset")), "\r\n", "\n")
		}
		switch kind {
		case "text/plain":
			if p.Param("format") == "flowed" {
				c.texts = append(c.texts, message.Flowed(text(), p.Param("delsp") == "yes"))
			} else {
				c.texts = append(c.texts, text())
			}
			continue
		case "text/html":
			if shown, _, cut, ok := message.PartText(nil, p, c.Raw(p), MaxBodyBytes); ok && !cut {
				c.documents, seen = append(c.documents, text()), append(seen, cmp.Or(shown, "(nothing)"))
				continue
			}
		}
		c.files = append(c.files, compose.Attachment{Name: p.Filename, Type: p.MediaType(), Content: data})
	}
	if len(c.texts) == 1 && len(c.documents) == 1 {
		c.quoted, c.markdown = markdown.Made(c.texts[0], c.documents[0])
	}
	if !c.markdown {
		c.html = strings.Join(seen, "\n")
	}
	return c
}
