package commands

import (
	"strings"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
)

// batchArgs are what every command shares that works on several messages.
type batchArgs struct {
	MessagesOption
	AccountOption
}

// Validate checks how the messages are named.
func (a *batchArgs) Validate() error { return a.check() }

// outcomeOf is how far a change of several messages got.
func outcomeOf(c *mailbox.Changed) Outcome { return outcome(c.Issues, len(c.Messages) > 0) }

// Steps are what was tried and what worked on the servers, summed over the
// messages (001 sections 8 to 10).
type Steps struct {
	Attempted int `json:"steps_attempted"`
	Succeeded int `json:"steps_succeeded"`
}

// Placed is a message that is at another place now; its new id is there where the
// server told it.
type Placed struct {
	ID  string `json:"message_id"`
	New string `json:"new_message_id,omitempty"`
}

func placed(c *mailbox.Changed) []Placed {
	list := []Placed{}
	for _, m := range c.Messages {
		p := Placed{ID: m.Ref.String()}
		if m.New != (mail.Ref{}) {
			p.New = m.New.String()
		}
		list = append(list, p)
	}
	return list
}

// done says in a sentence what happened to how many messages, whose number takes the
// place of the # in what.
func done(what string, n int, issues []Issue) string {
	s := strings.Replace(what, "#", count(n, "message", "messages"), 1)
	if len(issues) > 0 {
		s += "; see the issues for the others"
	}
	return s
}
