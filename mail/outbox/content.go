package outbox

import (
	"cmp"
	"strings"

	"github.com/postern-mail/postern/mail/internal/compose"
	"github.com/postern-mail/postern/mail/internal/markdown"
	"github.com/postern-mail/postern/mail/internal/message"
	"github.com/postern-mail/postern/mail/internal/rfc5322"
)

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
