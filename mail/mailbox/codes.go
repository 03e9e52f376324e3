package mailbox

import (
	"cmp"
	"slices"
	"strings"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/imap"
	"github.com/postern-mail/postern/mail/mailbox/internal/fetch"
)

// stands reports whether the criteria on what a message says stand in what is shown of it.
// A server matches what is masked, too.
func (q *SearchQuery) stands(s *Summary, text string) bool {
	subject, text := folded(s.Subject), folded(text)
	holds := func(words string, in ...string) bool {
		return words == "" || slices.ContainsFunc(in, func(s string) bool { return strings.Contains(s, folded(words)) })
	}
	named := func(people []mail.Address) string {
		var all []string
		for _, a := range people {
			all = append(all, a.Name+" <"+a.Addr+">")
		}
		return folded(strings.Join(all, ", "))
	}
	return holds(q.Words, subject, text) && holds(q.Subject, subject) && holds(q.Text, text) && holds(q.From, named(s.From)) && holds(q.To, named(s.To))
}

func folded(s string) string { return strings.ToLower(strings.Join(strings.Fields(s), " ")) }

// ofText reports whether the query has criteria on what a message says, ofBody whether on more
// of it than its subject and names.
func (q *SearchQuery) ofText() bool { return q.ofBody() || q.Subject+q.From+q.To != "" }
func (q *SearchQuery) ofBody() bool { return q.Words+q.Text != "" }

// mayTell refuses to put codes and links that are masked here where others read them.
func (b *batch) mayTell(s *imap.Session, l *located, uids []uint32, folder string) error {
	if l.spaces.Own(folder) || !b.Policy.MasksCodes() {
		return nil
	}
	var all []*fetch.Message
	for _, u := range uids {
		all = append(all, l.found[u])
	}
	texts, err := b.ReadTexts(s, all, false)
	for _, r := range texts {
		if err == nil && (r.Err != nil || r.Masked.Any()) {
			err = cmp.Or(r.Err, b.Withheld("it is not put where others read it"))
		}
	}
	return err
}
