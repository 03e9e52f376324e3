package reading

import (
	"slices"

	"github.com/postern-mail/postern/mail"
)

// Mark is a word for what is worth knowing of a message at a glance.
type Mark string

// The marks, in the order in which they are told.
const (
	Unread           Mark = "unread"
	Answered         Mark = "answered"
	Flagged          Mark = "flagged"
	Draft            Mark = "draft"
	ByAgent          Mark = "by-agent" // an agent wrote the draft
	HasAttachments   Mark = "attachments"
	Invitation       Mark = "invitation"
	FailedSender     Mark = "failed-sender"     // the account's own server says that From is forged
	PosingName       Mark = "posing-name"       // the name shows another address than From has
	AnswersElsewhere Mark = "answers-elsewhere" // not to From
)

// Marks are those of the message. One whose flags are not known is not unread.
func (s *Summary) Marks() (marks []Mark) {
	has := func(flag string) bool { return slices.Contains(s.Flags, flag) }
	for _, m := range []struct {
		Mark
		is bool
	}{
		{Unread, s.Flags != nil && !has(`\Seen`)}, {Answered, has(`\Answered`)}, {Flagged, has(`\Flagged`)}, {Draft, has(`\Draft`)}, {ByAgent, s.ByAgent},
		{HasAttachments, s.HasAttachments}, {Invitation, s.Invitation},
		{FailedSender, s.Verdict == mail.Failed}, {PosingName, s.PosingAs() != ""}, {AnswersElsewhere, len(s.Answers) > 0},
	} {
		if m.is {
			marks = append(marks, m.Mark)
		}
	}
	return marks
}

// PosingAs is the address that the name of a sender shows in place of their own, "" for none.
func (s *Summary) PosingAs() string {
	for _, a := range s.From {
		if other := mail.Poses(a); other != "" {
			return other
		}
	}
	return ""
}
