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
	if !shorten(&p.Messages, &p.Truncated, fraction) {
		return false
	}
	p.HasMore, o.NextAction = true, p.more(p.Messages[len(p.Messages)-1].ref)
	return true
}

// shorten keeps about a fraction of a list, from its beginning, and notes that it did;
// false where that would leave none.
func shorten[T any](list *[]T, truncated *bool, fraction float64) bool {
	keep := int(float64(len(*list)) * min(fraction, 0.95))
	if keep < 1 {
		return false
	}
	*list, *truncated = (*list)[:keep], true
	return true
}
