package commands

import (
	"context"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
)

type outboxShowArgs struct {
	OutboxOption
}

// OutboxShowResult answers outbox show: all that a person must see before saying
// yes.
type OutboxShowResult struct {
	Sending
	Principal   string           `json:"principal"`
	Created     string           `json:"created" jsonschema:"format=date-time"`
	Changed     string           `json:"changed" jsonschema:"format=date-time"`
	To          []string         `json:"to" acli:"untrusted"`
	CC          []string         `json:"cc" acli:"untrusted"`
	BCC         []string         `json:"bcc" acli:"untrusted"`
	Attempts    int              `json:"attempts"`
	ServerCode  int              `json:"server_code,omitempty"`
	Attachments []AttachmentSent `json:"attachments"`
	Text        string           `json:"text" acli:"untrusted"`
	TextMissing bool             `json:"text_missing,omitempty"`
	Truncated   bool             `json:"truncated,omitempty"`
	NextAction  *NextAction      `json:"next_action,omitempty"`
}

// AttachmentSent is a file of an outgoing message.
type AttachmentSent struct {
	Name   string `json:"name" acli:"untrusted"`
	Type   string `json:"content_type"`
	Size   int64  `json:"size_bytes"`
	SHA256 string `json:"sha256,omitempty"`
}

func outboxShow(d *Deps) *discovery.Command {
	return discovery.New(discovery.Spec{
		Path:     "outbox show",
		Summary:  "Show one message of the outbox, with all that would leave",
		Details:  "The digest stands for exactly what would leave: sender, recipients and every byte. The text of a message that was sent is not kept.",
		Effect:   discovery.Read,
		Examples: []string{"outbox show 0123abcd"},
	}, func(ctx context.Context, call *discovery.Call, args *outboxShowArgs) (*OutboxShowResult, error) {
		s, err := d.outgoing(ctx, call, args.ID)
		if err != nil {
			return nil, err
		}
		r := shownOutgoing(s)
		if s.State == mail.OutboxWaiting {
			if r.NextAction = next("Take it back, if it is no longer wanted", "outbox", "cancel", s.ID); call.Admin {
				r.NextAction = nextLine("Send exactly this", approveCommand(&s.Outgoing))
			}
		}
		return r, nil
	})
}

// Summary implements discovery.Summarizer.
func (r *OutboxShowResult) Summary() string {
	switch r.State {
	case mail.OutboxWaiting:
		return "It waits for a person; nothing of it left"
	case mail.OutboxQueued:
		return "It is to be sent; nothing of it left yet"
	case mail.OutboxAccepted:
		return "It was sent"
	case mail.OutboxUnknown:
		return "It is not known whether it left"
	}
	return "It was not sent"
}

// Truncate implements discovery.Truncator: the text alone is long.
func (r *OutboxShowResult) Truncate(fraction float64) bool {
	n := int(float64(len([]rune(r.Text))) * fraction * 0.9)
	if n < 100 {
		return false
	}
	r.Text, r.Truncated = clip(r.Text, n), true
	return true
}
