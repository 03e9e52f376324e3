package commands

import (
	"context"
	"strings"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/outbox"
)

// Outbox sends messages and keeps those that wait; *outbox.Outbox implements it.
type Outbox interface {
	// Verify connects to the account's submission server, logs in and sends nothing.
	Verify(ctx context.Context, account string) (*mail.Verification, error)
	Send(ctx context.Context, account string, r outbox.Request) (*mail.Outgoing, error)
	Foresee(ctx context.Context, account string, r outbox.Request, offline bool) (*outbox.Decision, error)
	ForeseeDeletion(ctx context.Context, account string, refs []mail.Ref) (*outbox.Decision, error)
	HoldDeletion(ctx context.Context, account string, refs []mail.Ref, principal string) (*mail.Outgoing, error)
	ForeseeChange(ctx context.Context, of mailbox.Batch, principal string) (*outbox.Decision, error)
	HoldChange(ctx context.Context, of mailbox.Batch, principal string) (*mail.Outgoing, error)
	Plan(ctx context.Context, account string, q mailbox.SearchQuery, do mail.Action, principal string) (d *outbox.Decision, issues []mail.Issue, err error)
	ForeseeRun(ctx context.Context, id, principal string) (*outbox.Decision, error)
	Run(ctx context.Context, id, principal string) (*mail.Outgoing, error)
	SaveDraft(ctx context.Context, account string, d outbox.Draft) (*outbox.SavedDraft, error)
	AppendToDraft(ctx context.Context, ref mail.Ref, more outbox.Draft) (*outbox.SavedDraft, error)
	List(ctx context.Context, q mail.OutboxQuery) (entries []mail.Outgoing, more bool, err error)
	ForeseeUnsubscribe(ctx context.Context, account string) (*outbox.Decision, error)
	Unsubscribe(ctx context.Context, account string, refs []mail.Ref, principal string) (*outbox.Unsubscribed, error)
	PlanUnsubscribe(ctx context.Context, account string, q mailbox.SearchQuery, principal string) (*outbox.Decision, []mail.Issue, error)
	Show(ctx context.Context, id string) (*outbox.Decision, error)
	Cancel(ctx context.Context, id, principal string) (*mail.Outgoing, error)
	Approve(ctx context.Context, id, digest, by string) (*mail.Outgoing, error)
	Reject(ctx context.Context, id, by, reason string) (*mail.Outgoing, error)
}

// OutboxOption names one message of the outbox.
type OutboxOption struct {
	ID string `json:"id" acli:"form=outbox,positional" jsonschema_description:"outbox_id as 'outbox list' or 'mail send' gave it"`
}

// Sending is an entry of the outbox and what is known of it.
type Sending struct {
	ID                string           `json:"outbox_id,omitempty"`
	Kind              mail.OutboxKind  `json:"kind,omitempty" jsonschema:"enum=delete,enum=plan,enum=unsubscribe"` // empty for a message to send
	Account           string           `json:"account_id"`
	State             mail.OutboxState `json:"state,omitempty" jsonschema:"enum=waiting,enum=queued,enum=accepted,enum=unknown,enum=refused,enum=cancelled,enum=rejected,enum=done,enum=partly,enum=expired"`
	InternetMessageID string           `json:"internet_message_id,omitempty"`
	From              string           `json:"from"`
	Recipients        []string         `json:"recipients"`
	Subject           string           `json:"subject" acli:"untrusted"`
	Size              int64            `json:"size_bytes"`
	SentCopy          mail.SentState   `json:"sent_copy,omitempty" jsonschema:"enum=pending,enum=filed,enum=provider,enum=none,enum=failed"`
	Reason            string           `json:"reason,omitempty" acli:"untrusted"`
	DecidedBy         string           `json:"decided_by,omitempty"`
}

func sendingOf(o *mail.Outgoing) Sending {
	s := Sending{ID: o.ID, Kind: o.Kind, Account: o.Account, State: o.State, InternetMessageID: strings.Trim(o.MessageID, "<>"), From: o.From, Recipients: append([]string{}, o.Recipients...),
		Subject: o.Subject, Size: o.Size, SentCopy: o.Sent, Reason: o.Reason, DecidedBy: o.Decided}
	if s.State != mail.OutboxAccepted {
		s.SentCopy = "" // a message that was not sent has none
	}
	return s
}

// outgoing returns a message of the outbox to a caller that may see it: the administrator,
// or the agent that sent it. For others it does not exist.
func (d *Deps) outgoing(ctx context.Context, call *discovery.Call, id string) (*outbox.Decision, error) {
	call.Target = "outbox " + id
	s, err := d.Outbox.Show(ctx, id)
	if err != nil {
		return nil, err
	}
	if !call.Admin && !mail.Owns(call.Principal, s.Principal) {
		return nil, mail.ErrNoOutgoing
	}
	if !call.Admin {
		s.Mask()
	}
	noteOutgoing(call, &s.Outgoing)
	return s, nil
}

// htmlMade says of a message's HTML that it shows nothing which its text does not say.
const htmlMade = "made of this text as Markdown, goes beside it"

// shownOutgoing is all of a message, its text included.
func shownOutgoing(s *outbox.Decision) *OutboxShowResult {
	if s.Kind != mail.OutboxSend {
		r := shownDeletion(&s.Outgoing)
		r.Lists = listsOf(&s.Outgoing)
		if r.decision = s; s.Kind == mail.OutboxPlan {
			if r.Plan = shownPlan(s.Plan); s.Plan.Outcome.Done > 0 {
				r.Undo = undoOf(s.ID)
			}
		}
		return r
	}
	r := &OutboxShowResult{decision: s, Sending: sendingOf(&s.Outgoing), Principal: s.Principal, Created: answer.UTC(s.Created), Changed: answer.UTC(s.Changed),
		To: answer.Written(s.To), CC: answer.Written(s.CC), BCC: answer.Written(s.BCC), Attempts: s.Attempts, ServerCode: s.Code,
		Answers: s.ReplyTo, Attachments: []AttachmentSent{}, Text: plain.LineEnds(s.Body), TextMissing: !s.Here, Unasked: s.Unasked != ""}
	switch {
	case s.Markdown:
		r.HTML = htmlMade
	case s.HTML != "":
		r.HTML = "not made of the text; what it shows stands below the text"
		r.Text += "\n\nWhat the HTML shows:\n\n" + plain.LineEnds(s.HTML)
	}
	for _, a := range s.Recipients {
		if shown := addressShown(a); shown != a {
			r.NotPlain = append(r.NotPlain, shown)
		}
	}
	var files []outbox.ShownFile
	if s.Here {
		r.From, files = s.HeaderFrom.String(), s.Files
	} else {
		for _, f := range s.Attachments {
			files = append(files, outbox.ShownFile{FileName: f})
		}
	}
	for _, f := range files {
		r.Attachments = append(r.Attachments, AttachmentSent{Name: f.Name, Type: f.Type, Size: f.Size, SHA256: f.SHA256})
	}
	return r
}
