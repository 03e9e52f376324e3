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
		if t, _, _, ok := message.PartText(nil, p, f.Content, MaxBodyBytes); ok {
			text.WriteString(t + "\n")
		}
	}
	return codes.Find(c.Header.Text("Subject"), text.String())
}

// secretsOf is secrets of a letter that was not written in the command alone, where the
// account masks codes. leaves is the letter as it leaves. What the message has that it answers or
// hands on counts first: beside other words it might not be found any more.
func (s *sender) secretsOf(d *Draft, leaves func() *content) codes.Found {
	switch {
	case !s.policy.MasksCodes() || d.ReplyTo == nil && d.Forward == nil && d.stored == nil && !d.FromMail:
		return codes.Found{}
	case d.original != nil && d.original.Masked.Any():
		return d.original.Masked
	}
	return leaves().secrets()
}

// noCode refuses to put a code into a draft: agents read drafts, and beside their own words they
// could tell what is masked.
func (s *sender) noCode(found codes.Found) error {
	if !s.policy.MasksCodes() || !found.Any() {
		return nil
	}
	e := s.Failure(mail.KindReadOnly, "", "It would have a one-time code or a link that logs in of another message, so it is not written as a draft.", mail.AdviceMailProgram)
	e.Reason = "codes"
	return e
}

// mask hides codes in what lists show of an entry.
func mask(e *mail.Outgoing, found codes.Found) {
	e.Subject = found.Mask(e.Subject)
	for i := range e.Attachments {
		e.Attachments[i].Name = found.Mask(e.Attachments[i].Name)
	}
}

// nameless returns people by their addresses alone: a sender may have called itself by the code.
func nameless(people []mail.Address) (bare []mail.Address) {
	for _, a := range people {
		bare = append(bare, mail.Address{Addr: a.Addr})
	}
	return bare
}
