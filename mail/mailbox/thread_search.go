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
	var all visits
	for _, folder := range c.folders {
		v := all.to(folder, 0)
		if v.criteria = append(v.criteria, criteria); !since.IsZero() {
			v.criteria = append(v.criteria, answersAfter(since))
		}
	}
	missing, w := c.missing()
	for _, g := range missing {
		if slices.Contains(c.folders, g.ref.Folder) {
			all.to(g.ref.Folder, 0).fetch(g.ref.UID, w.options())
		}
	}
	found, answers = map[string]goimap.UIDSet{}, map[string]goimap.UIDSet{}
	err := all.start(c.s, func(_ int, v *visit) {
		if len(v.errs) > 1 && v.errs[1] == nil {
			answers[v.folder] = v.found[1]
		}
		switch before := c.opened[v.folder]; {
		case v.err != nil && v.folder != c.first.ref.Folder:
			c.folders = slices.DeleteFunc(c.folders, func(f string) bool { return f == v.folder })
			c.issues = append(c.issues, mail.Issue{Kind: mail.KindRefused, Stage: imap.StageExamine, Retryable: true,
				Message: fmt.Sprintf("Folder %q was left out: the server did not open it.", v.folder)})
		case v.err != nil || v.errs[0] != nil:
			refused = cmp.Or(refused, v.err, v.errs[0])
		case len(v.found[0])+len(v.data) > 0 && before != 0 && before != v.box.UIDValidity: // Courier gives an empty folder a new one each time
			refused = cmp.Or(refused, error(c.madeAnew(mail.AdviceListAgain)))
		default:
			if found[v.folder] = v.found[0]; len(v.found[0])+len(answers[v.folder]) > 0 {
				c.opened[v.folder] = v.box.UIDValidity
			}
			for _, g := range replace(missing, c.box.readWindow(v.box, v.data)) {
				c.whole[g.ref] = v.refused == nil
			}
		}
	})
	return found, answers, cmp.Or(err, refused)
}

// answersAfter matches messages that came from a day on and name another message.
func answersAfter(day time.Time) *goimap.SearchCriteria {
	c := anyOf([]goimap.SearchCriteria{headerHolds("References", ""), headerHolds("In-Reply-To", "")})
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
	return !slices.ContainsFunc(c.known, func(g *fetched) bool {
		return len(g.links()) > 0 && g.internal.After(since.AddDate(0, 0, 2)) && slices.Contains(c.folders, g.ref.Folder) && !answers[g.ref.Folder].Contains(goimap.UID(g.ref.UID))
	})
}

// threadCriteria matches messages that have or name one of the ids, or have all words of one
// of the subjects: between words a server may see other white space.
func threadCriteria(ids, subjects []string) *goimap.SearchCriteria {
	var all []goimap.SearchCriteria
	for _, id := range ids {
		all = append(all, headerHolds("Message-ID", id), headerHolds("References", id), headerHolds("In-Reply-To", id))
	}
	for _, s := range subjects {
		words := strings.Fields(s)
		ascii := slices.DeleteFunc(slices.Clone(words), func(w string) bool { return strings.ContainsFunc(w, func(r rune) bool { return r >= utf8.RuneSelf }) })
		if len(strings.Join(ascii, "")) >= minASCII {
			words = ascii // they need no CHARSET, which not every server takes
		}
		var c goimap.SearchCriteria
		for _, word := range words[:min(len(words), maxSubjectWords)] {
			c.Header = append(c.Header, headerHolds("Subject", word).Header...)
		}
		all = append(all, c)
	}
	return anyOf(all)
}
