package outbox

import (
	"strings"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/codes"
	"github.com/postern-mail/postern/mail/internal/message"
)

// secrets finds the one-time codes, and links that log in, of a message that leaves. An agent
// does not know them: they come from what it answers, hands on or wrote as a draft before.
func (c *content) secrets() codes.Found {
	var text strings.Builder
	for _, t := range append(c.texts, c.html) {
		text.WriteString(t + "\n")
	}
	for _, f := range c.files {
		kind, subtype, _ := strings.Cut(f.Type, "/")
		p := &message.Part{Type: kind, Subtype: subtype, Size: int64(len(f.Content))}
		if t, _, _, ok := message.PartText(p, f.Content, MaxBodyBytes); ok {
			text.WriteString(t + "\n")
		}
	}
	return codes.Find(c.Header.Text("Subject"), text.String())
}

// secretsOf is secrets of a letter that was not written in the command alone, where the
// account masks codes. raw is the letter as it leaves.
func (s *sender) secretsOf(d *Draft, raw []byte) codes.Found {
	if !s.policy.MasksCodes() || d.ReplyTo == nil && d.Forward == nil && d.stored == nil {
		return codes.Found{}
	}
	return contentOf(raw).secrets()
}

// mask hides codes in what lists show of an entry.
func mask(e *mail.Outgoing, found codes.Found) {
	e.Subject = found.Mask(e.Subject)
	for i := range e.Attachments {
		e.Attachments[i].Name = found.Mask(e.Attachments[i].Name)
	}
}

// Mask hides codes and links that log in from an agent, which sees its own entries. The
// person who decides sees them.
func (s *Shown) Mask() {
	mask(&s.Outgoing, s.secrets)
	s.Body, s.HTML = s.secrets.MaskLines(s.Body), s.secrets.MaskLines(s.HTML)
	for i := range s.Files {
		s.Files[i].Name = s.secrets.Mask(s.Files[i].Name)
	}
}
