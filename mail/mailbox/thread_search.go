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
// for what was found does.
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
// answers that came from then on. A folder that cannot be opened is left out from then on.
func (c *conversing) search(criteria *goimap.SearchCriteria, since time.Time) (found, answers map[string]goimap.UIDSet, broken error) {
	type searching struct {
		opening *imap.Examining // nil where the folder is open
		search  *imap.Searching
	}
	open := func(folder string, criteria *goimap.SearchCriteria) searching {
		return searching{c.s.Examine(folder), c.s.Search(criteria)}
	}
	tagged := c.s.Has("ESEARCH")
	first, second := make([]searching, len(c.folders)), make([]searching, len(c.folders))
	c.s.Renew()
	c.s.Together(func() {
		for i, folder := range c.folders {
			first[i] = open(folder, criteria)
			switch {
			case since.IsZero():
			case tagged:
				second[i].search = c.s.Search(answersAfter(since))
			default:
				second[i] = open(folder, answersAfter(since)) // answers without tags need an EXAMINE between them
			}
		}
	})
	found, answers = map[string]goimap.UIDSet{}, map[string]goimap.UIDSet{}
	for i, folder := range slices.Clone(c.folders) {
		box, err := first[i].opening.Wait()
		uids, searchErr := first[i].search.Wait()
		if second[i].opening != nil {
			_, _ = second[i].opening.Wait() // as the first
		}
		if second[i].search != nil {
			if set, err := second[i].search.Wait(); err == nil {
				answers[folder] = set
			} else if !refusedByServer(err) {
				searchErr = cmp.Or(searchErr, err)
			}
		}
		switch {
		case refusedByServer(err) && folder != c.first.ref.Folder:
			c.folders = slices.DeleteFunc(c.folders, func(f string) bool { return f == folder })
			c.issues = append(c.issues, mail.Issue{Kind: mail.KindRefused, Stage: imap.StageExamine, Retryable: true,
				Message: fmt.Sprintf("Folder %q was left out: the server did not open it.", folder)})
		case err != nil || searchErr != nil:
			broken = cmp.Or(broken, err, searchErr)
		default:
			if found[folder] = uids; len(uids) > 0 { // Courier gives an empty folder a new UIDVALIDITY each time
				broken = cmp.Or(broken, c.same(box))
			}
		}
	}
	return found, answers, broken
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
		if !ok || imap.CountUIDs(named) > maxThread+maxAnswers {
			return false
		}
		for _, uid := range imap.Numbers(named) {
			if !c.look(folder)[uid] {
				return false
			}
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
