package commands

import (
	"slices"
	"strings"
	"time"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
)

// Rest ends a compact answer: what went wrong in
// part, where else to look, and the command that goes on. All of it is left out where
// there is nothing to say.
type Rest struct {
	Issues []string `json:"issues,omitempty" acli:"untrusted"` // they name folders
	Hint   string   `json:"hint,omitempty"`
	More   string   `json:"more,omitempty"`
}

// listBrief is the compact form of a list.
type listBrief[R any] struct {
	discovery.Table[R]
	Rest
}

// listOf makes a row of each entry of a list, with what ends the answer.
func listOf[E, R any](entries []E, rest Rest, row func(*E) R) listBrief[R] {
	rows := make([]R, len(entries))
	for i := range entries {
		rows[i] = row(&entries[i])
	}
	return listBrief[R]{discovery.TableOf(rows), rest}
}

// rest is what a compact answer keeps of an outcome. more is the action that goes on
// where the answer ended; nil for none.
func (o *Outcome) rest(more *NextAction) Rest {
	var r Rest
	for _, i := range o.Issues {
		text := string(i.Code) + ": " + i.Message
		if i.MessageID != "" {
			text += " (" + o.shortID(i.MessageID) + ")"
		}
		r.Issues = append(r.Issues, text)
	}
	if more != nil {
		r.More = more.Arguments.Command
	}
	return r
}

// shortID is a long id as a compact answer writes it.
func (o *Outcome) shortID(id string) string {
	if ref, err := mail.ParseRef(id); err == nil && o.ids != nil {
		return o.ids.of(ref)
	}
	return id
}

// minute is a time as a compact answer shows it, in UTC, and as options take it back; empty
// for none.
func minute(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04Z")
}

// minuteOf is minute for a time of a full answer.
func minuteOf(timestamp string) string {
	t, _ := time.Parse(time.RFC3339, timestamp) // it is zero where there is none
	return minute(t)
}

// nowMinute is the time of a compact answer, to which its dates can be compared.
func (d *Deps) nowMinute() string { return minute(d.now()) }

// marksOf are the words that a compact answer has for a message's flags and parts, without
// those that the command implies. A message whose flags are not known is not unread.
func marksOf(s *mailbox.Summary, implied ...string) string {
	var words []string
	mark := func(is bool, word string) {
		if is && !slices.Contains(implied, word) {
			words = append(words, word)
		}
	}
	has := func(flag string) bool { return slices.Contains(s.Flags, flag) }
	mark(s.Flags != nil && !has(`\Seen`), "unread")
	mark(has(`\Answered`), "answered")
	mark(has(`\Flagged`), "flagged")
	mark(has(`\Draft`), "draft")
	mark(s.HasAttachments, "attachments")
	mark(s.Invitation, "invitation")
	return strings.Join(words, " ")
}
