package mailbox

import (
	"cmp"
	"slices"
	"strings"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/codes"
	"github.com/postern-mail/postern/mail/internal/imap"
	"github.com/postern-mail/postern/mail/internal/message"
	"github.com/postern-mail/postern/mail/mailbox/internal/fetch"
)

// masked finds the one-time codes and links of a message that agents are not shown (see
// codes.Find): none of an older one, or where the account shows them. text is what was read
// of it.
func (x *access) masked(g *fetch.Message, text string) codes.Found {
	if !x.mayMask(g) {
		return codes.Found{}
	}
	var names []string
	for _, field := range []string{"From", "Sender", "Reply-To", "To", "Cc", "Bcc"} {
		for _, a := range g.Header.Addresses(field) {
			if a.Name != "" {
				names = append(names, a.Name)
			}
		}
	}
	return codes.Find(g.Header.Text("Subject"), text, names...)
}

// mask hides what was found where a summary says it: in the subject, and in names.
func (s *Summary) mask(found codes.Found) {
	s.Subject = found.Mask(s.Subject)
	for _, people := range [][]mail.Address{s.From, s.To, s.CC} {
		for i := range people {
			people[i].Name = found.Mask(people[i].Name)
		}
	}
}

// mayMask reports whether a message is so new that something of it may be masked.
func (x *access) mayMask(g *fetch.Message) bool {
	date, _ := g.Date()
	return x.policy.MasksCodes() && codes.Recent(date, g.Internal, x.m.o.Now())
}

// maskedIn is masked for the source of a message, or its beginning.
func (x *access) maskedIn(g *fetch.Message, raw []byte) codes.Found {
	var text strings.Builder
	e := message.Parse(raw)
	for p := range e.Root.Leaves() {
		if s, _, _, ok := message.PartText(p, e.Raw(p), maxFromChar); ok {
			text.WriteString(s + "\n")
		}
	}
	return x.masked(g, text.String())
}

// maskedPart is masked for another form of a message's text than the one that is read, and for
// a message within it. Files are not looked at: their numbers are not meant for a login.
func (x *access) maskedPart(g *fetch.Message, p *message.Part, raw []byte) codes.Found {
	if !says(p) {
		return codes.Found{}
	}
	text, _, _, _ := message.PartText(p, raw, maxFromChar)
	return x.masked(g, text)
}

// says reports whether a part is text of a message, or a message.
func says(p *message.Part) bool { return p.Type == "message" || p.Type == "text" && p.Filename == "" }

// withheld refuses what would show more of a message than its masked text.
func (x *access) withheld(what string) error {
	e := x.Failure(mail.KindReadOnly, "", "The message has a one-time code or a link that logs in, so "+what+".", mail.AdviceMailProgram)
	e.Reason = "codes"
	return e
}

// readTexts reads the texts of messages as a search needs them, together. One that cannot be
// read has none.
func (x *access) readTexts(s *imap.Session, all []*fetch.Message, structure bool) ([]*reading, error) {
	var members []*reading
	for _, g := range all {
		r := excerpt{chars: maxBodyChars, lines: true, whole: true}.reading(x, g, structure)
		r.start(*g)
		members = append(members, r)
	}
	return members, readRest(s, members)
}

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
	if l.spaces.Own(folder) || !b.policy.MasksCodes() {
		return nil
	}
	var all []*fetch.Message
	for _, u := range uids {
		all = append(all, l.found[u])
	}
	texts, err := b.readTexts(s, all, false)
	for _, r := range texts {
		if err == nil && (r.err != nil || r.masked.Any()) {
			err = cmp.Or(r.err, b.withheld("it is not put where others read it"))
		}
	}
	return err
}
