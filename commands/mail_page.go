package commands

import (
	"slices"
	"time"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
)

// pageResult is the part of a full answer that is a page of messages in the order in which
// they were asked for, with more behind them.
type pageResult struct {
	Messages  []MessageEntry `json:"messages"`
	HasMore   bool           `json:"has_more"`
	Truncated bool           `json:"truncated,omitempty"`

	accounts []accountPage
	now      string
	implied  []mailbox.Mark // marks that the command implies

	// more is the next action that goes on behind the messages at these positions, one of
	// each account at most; id writes their ids.
	more func(at []mail.Ref, id func(mail.Ref) string) *answer.NextAction
}

// accountPage is what one account has for a page.
type accountPage struct {
	mailbox.Page
	account string
	from    mail.Ref // what the page began behind; zero for the end of the folder
	beyond  mail.Ref // how far it came when all of it is shown; zero where that is not known
}

// merge takes the messages that come first of the pages, in the order of their dates, but
// those of one account in the order that its page has. There a message that is older than those
// behind it, as one that was moved back, is as new as they are, so that it holds up none of them.
func (p *pageResult) merge(pages []accountPage, limit int, oldestFirst bool) []mailbox.Summary {
	p.accounts = pages
	before := func(a, b time.Time) bool {
		if oldestFirst {
			a, b = b, a
		}
		return a.After(b)
	}
	var list []mailbox.Summary
	left, dates := make([][]mailbox.Summary, len(pages)), make([][]time.Time, len(pages))
	for i := range pages {
		left[i], dates[i] = pages[i].Messages, make([]time.Time, len(pages[i].Messages))
		for j, m := range slices.Backward(left[i]) {
			if dates[i][j] = m.Date; j+1 < len(left[i]) && before(dates[i][j+1], m.Date) {
				dates[i][j] = dates[i][j+1]
			}
		}
		p.HasMore = p.HasMore || pages[i].HasMore
	}
	for {
		first := -1
		for i := range left {
			if len(left[i]) > 0 && (first < 0 || before(dates[i][0], dates[first][0])) {
				first = i
			}
		}
		switch {
		case first < 0:
			return list
		case len(list) == limit:
			p.HasMore = true
			return list
		}
		list, left[first], dates[first] = append(list, left[first][0]), left[first][1:], dates[first][1:]
	}
}

// positions are how far the answer came in each account.
func (p *pageResult) positions() (at []mail.Ref) {
	for _, a := range p.accounts {
		last, shown := a.from, 0
		for i := range p.Messages {
			if ref := p.Messages[i].summary.Ref; ref.Account == a.account {
				last = ref
				shown++
			}
		}
		if shown == len(a.Messages) && a.beyond != (mail.Ref{}) {
			last = a.beyond
		}
		if last != (mail.Ref{}) {
			at = append(at, last)
		}
	}
	return at
}

// next is the action that goes on behind the page.
func (p *pageResult) next(id func(mail.Ref) string) *answer.NextAction {
	return p.more(p.positions(), id)
}

// counted is the summary of a page.
func (p *pageResult) counted() string {
	s := answer.Count(len(p.Messages), "message", "messages")
	if p.HasMore {
		s += ", and there are more"
	}
	return s
}

// truncate keeps a fraction of the messages and has o go on behind the last of them;
// false where that would leave none, or all.
func (p *pageResult) truncate(o *answer.Outcome, fraction float64) bool {
	if !answer.Shorten(&p.Messages, &p.Truncated, fraction) {
		return false
	}
	p.HasMore, o.NextAction = true, p.next(mail.Ref.String)
	return true
}

// pageBrief is the compact form of a page.
type pageBrief struct {
	Folder string `json:"folder"`
	Now    string `json:"now"`
	discovery.Table[messageRow]
	answer.Rest
}

// brief is the page in short; goesOn says that there is something to go on to.
func (p *pageResult) brief(folder string, o *answer.Outcome, goesOn bool) pageBrief {
	var more *answer.NextAction
	if goesOn {
		more = p.next(o.IDs.Of)
	}
	return pageBrief{folder, p.now, discovery.TableOf(rowsOf(p.Messages, o.IDs, p.implied...)), o.Rest(more)}
}

// refs are the messages of an answer and how far its pages came, for shown.
func (p *pageResult) refs(list []mailbox.Summary) []mail.Ref {
	refs := refsOf(list)
	for _, a := range p.accounts {
		refs = append(refs, a.beyond)
	}
	return refs
}
