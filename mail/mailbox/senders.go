package mailbox

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/imap"
	"github.com/postern-mail/postern/mail/mailbox/internal/fetch"
)

// recentMessages is how many messages JudgeSender and AuthServID look at.
const recentMessages = 50

// JudgeSender counts the verdicts on the newest 50 messages of INBOX that an entry of an
// allow-list matches. It looks at messages that the inbound list hides, too: what it answers
// is for the administrator. It is empty with POP3.
func (m *Client) JudgeSender(ctx context.Context, account, entry string) (map[mail.Verdict]int, error) {
	b, got, err := m.recent(ctx, account, strings.TrimPrefix(entry, "*"))
	counts := map[mail.Verdict]int{}
	for _, g := range got {
		if slices.ContainsFunc(g.Header.Addresses("From"), func(a mail.Address) bool {
			addr, ok := mail.NormalAddress(a.Addr)
			return ok && (entry == "*" || addr == entry || strings.HasPrefix(entry, "@") && strings.HasSuffix(addr, entry))
		}) {
			counts[b.base().Policy.VerdictOn(&g)]++
		}
	}
	return counts, err
}

// AuthServID returns the authserv-id that the account's own mail servers seem to write: the one
// that stands where only they write in four of five of the newest messages of INBOX that have
// any Authentication-Results, five at least, and nowhere else. It is empty where there is
// none, and with POP3. It proves nothing, and is for the administrator to decide.
func (m *Client) AuthServID(ctx context.Context, account string) (string, error) {
	const least = 5
	_, got, err := m.recent(ctx, account, "")
	within, outside, all := map[string]int{}, map[string]bool{}, 0
	for _, g := range got {
		results := g.Header.Values("Authentication-Results")
		if len(results) == 0 {
			continue
		}
		all++
		ids := mail.ProposedAuthServIDs(g.Header)
		if len(ids) > 0 {
			within[strings.ToLower(ids[0])]++
		}
		for _, r := range results {
			id, _, _ := strings.Cut(r, ";")
			id = strings.ToLower(append(strings.Fields(id), "")[0])
			outside[id] = outside[id] || !slices.ContainsFunc(ids, func(inside string) bool { return strings.EqualFold(inside, id) })
		}
	}
	for id, n := range within {
		if n >= least && 5*n >= 4*all && !outside[id] {
			return id, err
		}
	}
	return "", err
}

// recent is searcher.recent, without messages where no server searches.
func (m *Client) recent(ctx context.Context, account, from string) (box, []fetch.Message, error) {
	b, err := m.open(ctx, "mail list", account)
	x, ok := b.(searcher)
	if err != nil || !ok {
		return nil, nil, err
	}
	got, err := x.recent(ctx, from)
	return x, got, err
}

func (x *imapBox) recent(ctx context.Context, from string) (got []fetch.Message, err error) {
	err = x.lend(ctx, inbox, func(s *imap.Session) error {
		var criteria imap.Criteria
		if from != "" {
			criteria = imap.HeaderHolds("From", from)
		}
		v := fetch.Visit{Folder: inbox, Criteria: []imap.Criteria{criteria}}
		err := (fetch.Visits{&v}).Start(s, nil)
		if err = cmp.Or(err, v.Err, v.Errs[0]); err != nil {
			return err
		}
		if newest := v.Found[0].Newest(recentMessages); len(newest) > 0 {
			got, err = x.FetchAll(s, newest, fetch.Wanted{Header: true}.Items(), false)
		}
		return err
	})
	return got, err
}
