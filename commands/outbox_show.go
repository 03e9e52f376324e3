package commands

import (
	"cmp"
	"context"
	"strconv"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/outbox"
)

type outboxShowArgs struct {
	OutboxOption
	Offset int `json:"offset,omitempty" acli:"rare" jsonschema:"minimum=0,maximum=10000000" jsonschema_description:"Characters of the text to pass over, where it did not fit one answer"`
}

// OutboxShowResult answers outbox show: all that a person must see before saying
// yes.
type OutboxShowResult struct {
	Sending
	Digest      string             `json:"digest,omitempty"` // for the administrator alone
	Code        string             `json:"code,omitempty"`   // approves exactly this; for the administrator alone, with the end of the text
	Principal   string             `json:"principal"`
	Created     string             `json:"created" jsonschema:"format=date-time"`
	Changed     string             `json:"changed" jsonschema:"format=date-time"`
	To          []string           `json:"to" acli:"untrusted"`
	CC          []string           `json:"cc" acli:"untrusted"`
	BCC         []string           `json:"bcc" acli:"untrusted"`
	NotPlain    []string           `json:"not_plain,omitempty" acli:"untrusted"`                                                                           // recipients with letters that may look like others, and what those are
	New         []string           `json:"new_recipients,omitempty" jsonschema_description:"Recipients to whom nothing is known to have been sent before"` // for the administrator alone, as in the question that a person is asked
	Answers     string             `json:"answers,omitempty" jsonschema_description:"The message that it answers"`
	Attempts    int                `json:"attempts"`
	ServerCode  int                `json:"server_code,omitempty"`
	Attachments []AttachmentSent   `json:"attachments"`
	Why         string             `json:"why,omitempty"`     // what made it wait, or why a person refused it
	Asks        []string           `json:"asks,omitempty"`    // all that made it wait in mode reply
	Unasked     bool               `json:"unasked,omitempty"` // mode reply let it go without a person's word
	Folder      string             `json:"folder,omitempty" acli:"untrusted"`
	Lists       []ListToLeave      `json:"lists,omitempty" jsonschema_description:"The lists that are left"`
	Deletes     []ToDelete         `json:"deletes,omitempty"`
	Plan        *PlanShown         `json:"plan,omitempty"`
	Undo        string             `json:"undo,omitempty" jsonschema_description:"The command that takes it back"`
	HTML        string             `json:"html,omitempty"` // what the HTML of the message is; empty without any
	Text        string             `json:"text" acli:"untrusted"`
	TextChars   int                `json:"text_chars"`
	TextMissing bool               `json:"text_missing,omitempty"`
	Truncated   bool               `json:"truncated,omitempty"`
	Issues      []answer.Issue     `json:"issues,omitempty"` // what went wrong after it was sent
	NextAction  *answer.NextAction `json:"next_action,omitempty"`

	decision *outbox.Decision
	whole    *OutboxShowResult // where it was cut
	offset   int               // of Text in the whole text, in characters
}

// AttachmentSent is a file of an outgoing message.
type AttachmentSent struct {
	Name   string `json:"name" acli:"untrusted"`
	Type   string `json:"content_type"`
	Size   int64  `json:"size_bytes"`
	SHA256 string `json:"sha256,omitempty"`
}

func outboxShow(d *Deps) *discovery.Command {
	return argument.Command(discovery.Spec{
		Path:     "outbox show",
		Also:     []string{"read", "get"},
		Summary:  "One",
		Details:  "It shows all that would leave, or which messages would be deleted or changed. The text of a message that was sent is not kept.",
		Effect:   discovery.Read,
		Standing: true,
		Examples: []string{"outbox show 0123abcd"},
	}, func(ctx context.Context, call *discovery.Call, args *outboxShowArgs) (*OutboxShowResult, error) {
		s, err := d.outgoing(ctx, call, args.ID)
		if err != nil {
			return nil, err
		}
		r := shownOutgoing(s)
		r.from(args.Offset)
		if s.State == mail.OutboxRejected {
			r.Why, r.Reason = r.Reason, "" // a person's word, and not a server's
		}
		if s.Waits() {
			r.Why, r.Asks = s.Why(), s.Reasons()
			r.NextAction = answer.Next("Take it back, if it is no longer wanted", "outbox", "cancel", s.ID)
		}
		if !call.Admin {
			return r, nil
		}
		// What approves it stands here alone: who has it has looked, with the
		// administrator's key.
		r.New = s.New
		if r.Digest = s.Digest; s.Step == outbox.StepNone {
			return r, nil
		}
		if r.Code, err = d.Store.ApprovalCode(ctx, s.ID, s.Digest); err != nil {
			return nil, err
		}
		approve := discovery.JoinCommand([]string{"outbox", "approve", s.ID, "--code", r.Code})
		switch s.Step {
		case outbox.StepDelete:
			r.NextAction = answer.NextLine("Delete exactly these for good", approve)
		case outbox.StepDeleteRest:
			r.NextAction = answer.NextLine("Delete what is left of these for good", approve)
		case outbox.StepUnsubscribe:
			r.NextAction = answer.NextLine("Unsubscribe from exactly these", approve)
		case outbox.StepUnsubscribeRest:
			r.NextAction = answer.NextLine("Ask once more where no answer is known", approve)
		case outbox.StepRun:
			r.NextAction = answer.NextLine("Change exactly these", approve)
		case outbox.StepRunRest:
			r.NextAction = answer.NextLine("Change what is left of these", approve)
		case outbox.StepSend:
			r.NextAction = answer.NextLine("Send exactly this", approve)
		case outbox.StepSendAgain:
			r.NextAction = answer.Next("If it did arrive, or is no longer wanted, let it rest; '"+approve+"' sends it again", "outbox", "reject", s.ID)
		}
		return r, nil
	})
}

// Decision is what is shown, as a value.
func (r *OutboxShowResult) Decision() *outbox.Decision { return r.decision }

// Whole is the answer before it was made smaller to fit.
func (r *OutboxShowResult) Whole() *OutboxShowResult { return cmp.Or(r.whole, r) }

// outboxShowBrief is a message of the outbox as the person who decides has to see it.
type outboxShowBrief struct {
	ID          string                             `json:"id"`
	State       mail.OutboxState                   `json:"state"`
	Result      string                             `json:"result"`
	Account     string                             `json:"account"`
	Folder      string                             `json:"folder,omitempty" acli:"untrusted"`
	Lists       *discovery.Table[listRow]          `json:"lists,omitempty"`
	Deletes     *discovery.Table[deletionRow]      `json:"deletes,omitempty"`
	Plan        *planBrief                         `json:"plan,omitempty"`
	Undo        string                             `json:"undo,omitempty"`
	From        string                             `json:"from,omitempty"`
	To          []string                           `json:"to,omitempty" acli:"untrusted"`
	CC          []string                           `json:"cc,omitempty" acli:"untrusted"`
	BCC         []string                           `json:"bcc,omitempty" acli:"untrusted"`
	Recipients  []string                           `json:"recipients,omitempty"`
	NotPlain    []string                           `json:"not_plain,omitempty" acli:"untrusted"`
	New         []string                           `json:"new_recipients,omitempty" jsonschema_description:"Recipients to whom nothing is known to have been sent before"`
	Answers     string                             `json:"answers,omitempty" jsonschema_description:"The message that it answers"`
	Subject     string                             `json:"subject,omitempty" acli:"untrusted"`
	Principal   string                             `json:"principal"`
	Date        string                             `json:"date"`
	Why         string                             `json:"why,omitempty"`
	Unasked     bool                               `json:"unasked,omitempty"`
	Reason      string                             `json:"reason,omitempty" acli:"untrusted"`
	DecidedBy   string                             `json:"decided_by,omitempty"`
	Attachments *discovery.Table[outboxAttachment] `json:"attachments,omitempty"`
	HTML        string                             `json:"html,omitempty"`
	Text        string                             `json:"text,omitempty" acli:"untrusted"`
	TextMissing bool                               `json:"text_missing,omitempty"`
	Next        string                             `json:"next,omitempty"`
	answer.Rest
}

// outboxAttachment is a file of an outgoing message.
type outboxAttachment struct {
	Name  string `json:"name" acli:"untrusted"`
	Type  string `json:"type"`
	Bytes int64  `json:"bytes"`
}

// Brief leaves out what no decision needs. Next is what can be done about it.
func (r *OutboxShowResult) Brief() outboxShowBrief {
	b := outboxShowBrief{ID: r.ID, State: r.State, Result: r.Summary(), Account: r.Account, From: r.From, To: r.To, CC: r.CC, BCC: r.BCC, Subject: r.Subject,
		Principal: r.Principal, Date: answer.MinuteOf(r.Created), Why: r.Why, Unasked: r.Unasked, Reason: r.Reason, DecidedBy: r.DecidedBy, HTML: r.HTML, Text: r.Text, TextMissing: r.TextMissing}
	if len(r.To)+len(r.CC)+len(r.BCC) != len(r.Recipients) {
		b.Recipients = r.Recipients // the header does not say all of it
	}
	b.NotPlain, b.New, b.Answers = r.NotPlain, r.New, r.Answers
	b.Lists = listRows(r.Lists, func(id string) string { return id })
	if b.Folder, b.Deletes, b.Undo = r.Folder, r.deletionRows(), r.Undo; r.Plan != nil {
		plan := r.Plan.brief(func(id string) string { return id }, mail.MaxPlanExamples)
		b.Plan = &plan
	}
	var files []outboxAttachment
	for _, a := range r.Attachments {
		files = append(files, outboxAttachment{a.Name, a.Type, a.Size})
	}
	if len(files) > 0 {
		t := discovery.TableOf(files)
		b.Attachments = &t
	}
	b.Rest = (&answer.Outcome{Issues: r.Issues}).Rest(nil)
	switch {
	case r.Truncated:
		b.More = r.NextAction.Arguments.Command
	case r.NextAction != nil:
		b.Next = r.NextAction.Arguments.Command
	}
	return b
}

// Summary implements discovery.Summarizer.
func (r *OutboxShowResult) Summary() string {
	switch r.Kind {
	case mail.OutboxDelete:
		return r.deletionSummary()
	case mail.OutboxUnsubscribe:
		return unsubscriptionSummary(&r.decision.Outgoing)
	case mail.OutboxPlan:
		return planSummary(r.State, r.decision.Plan)
	}
	switch r.State {
	case mail.OutboxWaiting:
		return "It waits for a person; nothing of it left"
	case mail.OutboxQueued:
		return "It is to be sent; nothing of it left yet"
	case mail.OutboxAccepted:
		return "It was sent"
	case mail.OutboxUnknown:
		if r.DecidedBy != "" {
			return "It is not known whether it left, and it is not sent again"
		}
		return "It is not known whether it left"
	}
	return "It was not sent"
}

// Truncate implements discovery.Truncator: the text alone is long.
func (r *OutboxShowResult) Truncate(fraction float64) bool {
	text := []rune(r.Text)
	n := int(float64(len(text)) * fraction * 0.9)
	if n < 100 {
		return false
	}
	if r.whole == nil {
		whole := *r
		r.whole = &whole
	}
	r.Text, r.Truncated, r.Code = string(text[:n]), true, ""
	// Nothing is offered to be sent of which not all was shown.
	r.NextAction = answer.Next("See the rest of the text", "outbox", "show", r.ID, "--offset", strconv.Itoa(r.offset+n))
	return true
}

// from leaves out the beginning of the text.
func (r *OutboxShowResult) from(offset int) {
	text := []rune(r.Text)
	r.offset = min(offset, len(text))
	r.Text, r.TextChars = string(text[r.offset:]), len(text)
}
