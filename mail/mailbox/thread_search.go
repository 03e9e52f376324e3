package mailbox

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	goimap "github.com/emersion/go-imap/v2"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/imap"
	"github.com/postern-mail/postern/mail/mailbox/internal/fetch"
)

// What tells at once which messages answer those of a conversation: the answers that came
// since shortly before, where they are so few and it was not long ago. Else another search
// for what was found does, which costs a round trip: an answer can have come at any time
// since, so that fewer of them would leave messages out, and the headers of more would cost
// every conversation more bytes than the round trip is worth.
const (
	maxAnswers   = 80
	answersFrom  = -14 * 24 * time.Hour
	answersSince = 400 * 24 * time.Hour
)

// A search for a subject names so many of its words, and only those in ASCII where they are
// so many characters.
const (
	maxSubjectWords = 12
	minASCII        = 6
)

// search returns the UIDs that match in each folder and, unless since is zero, those of all
// answers that came from then on. With it come the texts that are missing of the messages
// found until now. A folder that cannot be opened is left out from then on.
func (c *conversing) search(criteria *goimap.SearchCriteria, since time.Time) (found, answers map[string]goimap.UIDSet, refused error) {
	var all fetch.Visits
	for _, folder := range c.folders {
		v := all.To(folder, 0)
		if v.Criteria = append(v.Criteria, criteria); !since.IsZero() {
			v.Criteria = append(v.Criteria, answersAfter(since))
		}
	}
	missing, w := c.missing()
	for _, g := range missing {
		if slices.Contains(c.folders, g.Ref.Folder) {
			all.To(g.Ref.Folder, 0).Fetch(g.Ref.UID, w.Options())
		}
	}
	found, answers = map[string]goimap.UIDSet{}, map[string]goimap.UIDSet{}
	err := all.Start(c.s, func(_ int, v *fetch.Visit) {
		if len(v.Errs) > 1 && v.Errs[1] == nil {
			answers[v.Folder] = v.Found[1]
		}
		switch before := c.opened[v.Folder]; {
		case v.Err != nil && v.Folder != c.first.Ref.Folder:
			c.folders = slices.DeleteFunc(c.folders, func(f string) bool { return f == v.Folder })
			c.issues = append(c.issues, mail.Issue{Kind: mail.KindRefused, Stage: imap.StageExamine, Retryable: true,
				Message: fmt.Sprintf("Folder %q was left out: the server did not open it.", v.Folder)})
		case v.Err != nil || v.Errs[0] != nil:
			refused = cmp.Or(refused, v.Err, v.Errs[0])
		case len(v.Found[0])+len(v.Data) > 0 && before != 0 && before != v.Box.UIDValidity: // Courier gives an empty folder a new one each time
			refused = cmp.Or(refused, error(c.MadeAnew(mail.AdviceListAgain)))
		default:
			if found[v.Folder] = v.Found[0]; len(v.Found[0])+len(answers[v.Folder]) > 0 {
				c.opened[v.Folder] = v.Box.UIDValidity
			}
			for _, g := range fetch.Replace(missing, c.box.readWindow(v.Box, v.Data)) {
				c.whole[g.Ref] = v.Refused == nil
			}
		}
	})
	return found, answers, cmp.Or(err, refused)
}

// answersAfter matches messages that came from a day on and name another message.
func answersAfter(day time.Time) *goimap.SearchCriteria {
	c := fetch.AnyOf([]goimap.SearchCriteria{fetch.HeaderHolds("References", ""), fetch.HeaderHolds("In-Reply-To", "")})
	c.Since = day
	return c
}

// allAnswers reports whether all answers of the folders are known: they were few enough to
// be fetched, and the server named those among them that were found otherwise.
func (c *conversing) allAnswers(answers map[string]goimap.UIDSet, since time.Time) bool {
	for _, folder := range c.folders {
		named, ok := answers[folder]
		if !ok || len(imap.UIDsWithout(named, c.looked[folder])) > 0 {
			return false
		}
	}
	return !slices.ContainsFunc(c.known, func(g *fetch.Message) bool {
		return len(g.Links()) > 0 && g.Internal.After(since.AddDate(0, 0, 2)) && slices.Contains(c.folders, g.Ref.Folder) && !answers[g.Ref.Folder].Contains(goimap.UID(g.Ref.UID))
	})
}

// threadCriteria matches messages that have or name one of the ids, or have all words of one
// of the subjects: between words a server may see other white space.
func threadCriteria(ids, subjects []string) *goimap.SearchCriteria {
	var all []goimap.SearchCriteria
	for _, id := range ids {
		all = append(all, fetch.HeaderHolds("Message-ID", id), fetch.HeaderHolds("References", id), fetch.HeaderHolds("In-Reply-To", id))
	}
	for _, s := range subjects {
		words := strings.Fields(s)
		ascii := slices.DeleteFunc(slices.Clone(words), func(w string) bool { return strings.ContainsFunc(w, func(r rune) bool { return r >= utf8.RuneSelf }) })
		if len(strings.Join(ascii, "")) >= minASCII {
			words = ascii // they need no CHARSET, which not every server takes
		}
		var c goimap.SearchCriteria
		for _, word := range words[:min(len(words), maxSubjectWords)] {
			c.Header = append(c.Header, fetch.HeaderHolds("Subject", word).Header...)
		}
		all = append(all, c)
	}
	return fetch.AnyOf(all)
}
