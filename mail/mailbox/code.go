package mailbox

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox/internal/reading"
)

// CodeQuery says which one-time code Code gives.
type CodeQuery struct {
	From  string    // the domain of the sender, in lower case; those below it count
	Until time.Time // how long to wait for one; zero means not at all

	// Aside runs the wait, as in WatchQuery.
	Aside func(ctx context.Context, wait func(context.Context) error) error
}

// GivenCode is the answer of Code.
type GivenCode struct {
	Summary
	Code  string
	Other int // more of what looks like a code in the same message
}

// codesLooked is how many of the newest messages of INBOX Code looks at.
const codesLooked = 20

// Code gives the one-time code of the newest message of INBOX that came from a domain within
// mail.CodeAge, whose sender is verified, and whose code was not given before. It is given
// once: that is noted before it is told. Without such a message it waits for one; then the
// error is KindNotFound. Codes that the account does not give are KindReadOnly.
func (m *Client) Code(ctx context.Context, account string, q CodeQuery) (*GivenCode, error) {
	b, err := with[notifier](ctx, m, "mail code", account, "no codes: its server only hands out whole messages", mail.AdviceMailProgram)
	if err != nil {
		return nil, err
	}
	x := b.base()
	if !x.Policy.GivesCodes() || m.o.Seen == nil {
		return nil, x.Failure(mail.KindReadOnly, "", "The account gives no one-time codes.", mail.AdviceAllowCodes)
	}
	page, err := b.list(ctx, ListQuery{Limit: codesLooked})
	if err != nil {
		return nil, err
	}
	from := func(s *Summary) bool { return len(s.From) == 1 && below(s.From[0].Addr, q.From) }
	for after := x.RefTo(inbox, page.UIDValidity, lastUID(page)); ; {
		for i := range page.Messages {
			if s := &page.Messages[i]; from(s) {
				if c, err := m.give(ctx, b, s.Ref); c != nil || err != nil {
					return c, err
				}
			}
		}
		if m.o.Now().After(q.Until) {
			return nil, x.Failure(mail.KindNotFound, "", "No message with a one-time code came from this domain within ten minutes, from a verified sender and not given before.", mail.AdviceWaitForCode)
		}
		came, err := m.Watch(ctx, account, WatchQuery{After: after, FromNow: after.UID == 0, Until: q.Until, Match: from, Aside: q.Aside})
		if err != nil {
			return nil, err
		}
		page, after = &came.Page, came.After
		slices.Reverse(page.Messages)
	}
}

// below reports whether an address is of a domain, or of one below it.
func below(addr, domain string) bool {
	normal, ok := mail.NormalAddress(addr)
	return ok && (strings.HasSuffix(normal, "@"+domain) || strings.HasSuffix(normal, "."+domain))
}

// give is the code of a message; nil without one that may be given.
func (m *Client) give(ctx context.Context, b box, ref mail.Ref) (*GivenCode, error) {
	x := b.base()
	r := &reading.Reading{Viewer: &x.Viewer, Ref: ref, Bare: true, Query: GetQuery{BodyChars: reading.MaxBodyChars, Headers: HeadersAll}}
	if err := b.get(ctx, []*reading.Reading{r}); err != nil || r.Err != nil {
		if r.Err != nil && x.AsError(r.Err).Kind == mail.KindNotFound {
			return nil, nil
		}
		return nil, cmp.Or(err, r.Err)
	}
	now, age := m.o.Now(), m.o.Now().Sub(r.Got.Internal)
	if dated, ok := r.Got.Header.Date(); ok { // what is sent on later is not what was asked for now
		age = max(age, now.Sub(dated))
	}
	if age > mail.CodeAge || len(r.Masked.Codes) == 0 || !r.Got.Whole || !x.Policy.Vouched(r.Got.Header) {
		return nil, nil
	}
	first := false
	err := m.o.Seen.UpdateSeen(ctx, x.Account, inbox, func(s *mail.SeenState) error {
		first = s.Give(r.Got.Ref.UIDValidity, r.Got.Ref.UID, now)
		return nil
	})
	if err != nil || !first {
		return nil, err
	}
	return &GivenCode{Summary: r.Message.Summary, Code: r.Masked.Codes[0], Other: len(r.Masked.Codes) - 1}, nil
}
