package commands

import "github.com/postern-mail/postern/mail"

// pageResult is the part of an answer that is a page of messages in the order in which
// they were asked for, with more behind them.
type pageResult struct {
	Messages  []MessageEntry `json:"messages"`
	HasMore   bool           `json:"has_more"`
	Truncated bool           `json:"truncated,omitempty"`

	more func(mail.Ref) *NextAction // what goes on behind a message
}

// counted is the summary of a page.
func (p *pageResult) counted() string {
	s := count(len(p.Messages), "message", "messages")
	if p.HasMore {
		s += ", and there are more"
	}
	return s
}

// truncate keeps a fraction of the messages and has o go on behind the last of them;
// false where that would leave none, or all.
func (p *pageResult) truncate(o *Outcome, fraction float64) bool {
	keep := int(float64(len(p.Messages)) * fraction)
	if keep == len(p.Messages) || keep < 1 {
		return false
	}
	p.Messages, p.Truncated, p.HasMore = p.Messages[:keep], true, true
	o.NextAction = p.more(p.Messages[keep-1].ref)
	return true
}
