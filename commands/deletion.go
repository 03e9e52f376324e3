package commands

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/outbox"
)

// Deletions for good about which a person decides stand in the outbox beside messages to send,
// and are shown, approved and refused by the same commands.

// ToDelete is a message that a deletion names, as it was shown when that was asked for.
type ToDelete struct {
	ID      string               `json:"message_id"`
	Date    string               `json:"date,omitempty" jsonschema:"format=date-time"`
	From    []string             `json:"from,omitempty" acli:"untrusted"`
	Subject string               `json:"subject" acli:"untrusted"`
	Outcome mail.DeletionOutcome `json:"outcome,omitempty" jsonschema:"enum=deleted,enum=gone,enum=kept,enum=unknown"`
	Reason  string               `json:"reason,omitempty"`
}

// deletionRow is the same in a compact answer.
type deletionRow struct {
	ID      string               `json:"id"`
	Date    string               `json:"date"`
	From    string               `json:"from" acli:"untrusted"`
	Subject string               `json:"subject" acli:"untrusted"`
	Outcome mail.DeletionOutcome `json:"outcome"`
	Reason  string               `json:"reason"`
}

// deletionTitle names a deletion in one line.
func deletionTitle(o *mail.Outgoing) string {
	return fmt.Sprintf("delete %s of %s", answer.Count(len(o.Deletes), "message", "messages"), o.Folder)
}

// shownDeletion is all of a deletion, and what a plan has too.
func shownDeletion(o *mail.Outgoing) *OutboxShowResult {
	r := &OutboxShowResult{Sending: sendingOf(o), Principal: o.Principal, Created: answer.UTC(o.Created), Changed: answer.UTC(o.Changed), To: []string{}, CC: []string{}, BCC: []string{},
		Attempts: o.Attempts, Attachments: []AttachmentSent{}, Folder: o.Folder}
	for _, m := range o.Deletes {
		r.Deletes = append(r.Deletes, ToDelete{ID: m.ID, Date: answer.UTC(m.Date), From: answer.Written(m.From), Subject: m.Subject, Outcome: m.Outcome, Reason: m.Reason})
	}
	return r
}

func (r *OutboxShowResult) deletionRows() *discovery.Table[deletionRow] {
	if len(r.Deletes) == 0 {
		return nil
	}
	var rows []deletionRow
	for _, m := range r.Deletes {
		rows = append(rows, deletionRow{m.ID, answer.MinuteOf(m.Date), strings.Join(m.From, ", "), m.Subject, m.Outcome, m.Reason})
	}
	t := discovery.TableOf(rows)
	return &t
}

func (r *OutboxShowResult) deletionSummary() string {
	switch r.State {
	case mail.OutboxWaiting:
		return "It waits for a person; nothing was deleted"
	case mail.OutboxDone:
		return "None of the messages is there any more"
	case mail.OutboxPartly:
		return "Some of the messages were deleted, and some are still there"
	case mail.OutboxUnknown:
		return "It is not known which of the messages were deleted"
	}
	return "Nothing was deleted"
}

// deleted is the answer of mail delete about a deletion that a person was asked about.
func (d *Deps) deleted(ctx context.Context, call *discovery.Call, o *mail.Outgoing) (*MailDeleteResult, error) {
	if f := notDeleted(o); f != nil {
		return nil, f
	}
	r := &MailDeleteResult{batchResult{Account: o.Account, Folder: o.Folder, changed: []string{}}, []Deleted{}, Steps{}}
	var issues []mail.Issue
	for _, m := range o.Deletes {
		if m.Outcome == mail.DeletionDone {
			r.Messages, r.changed = append(r.Messages, Deleted{m.ID}), append(r.changed, m.ID)
			continue
		}
		kind := mail.KindRefused
		if m.Outcome == mail.DeletionGone {
			kind = mail.KindNotFound
		}
		issues = append(issues, mail.Issue{Kind: kind, Stage: "expunge", MessageID: m.ID, Message: m.Reason})
	}
	r.Outcome = answer.OutcomeOf(issues, len(r.Messages) > 0)
	r.Steps = Steps{Attempted: len(o.Deletes), Succeeded: len(r.Messages)}
	return r, nil
}

// endOf is the fault that deletions, plans and lists to leave have in common, nil for one that came
// to its end. all is false where the kind has its own words.
func endOf(o *mail.Outgoing) (f *discovery.Fault, all bool) {
	switch o.State {
	case mail.OutboxDone, mail.OutboxPartly:
		return nil, true
	case mail.OutboxWaiting:
		return approvalRequired(o, true), true
	case mail.OutboxRejected:
		return rejectedFault(o), true
	}
	return nil, false
}

// notDeleted is the fault of a deletion that did not come to its end, or nil.
func notDeleted(o *mail.Outgoing) *discovery.Fault {
	f := &discovery.Fault{Code: discovery.ExecutionError, Examples: []string{"outbox show " + o.ID}}
	reason := ""
	if i := slices.IndexFunc(o.Deletes, func(m mail.Deletion) bool { return m.Outcome == mail.DeletionKept }); o.Reason == "" && i >= 0 {
		reason = " " + o.Deletes[i].Reason
	} else if o.Reason != "" {
		reason = " " + plain.Clip(answer.Capital(o.Reason), 500)
	}
	if said, all := endOf(o); all {
		return said
	}
	switch o.State {
	case mail.OutboxUnknown:
		f.Message = fmt.Sprintf("It is not known which messages of the deletion %s were deleted.%s", o.ID, reason)
		f.Hint = "Look into the folder. A person can approve it again, which deletes what is left of them."
	case mail.OutboxCancelled, mail.OutboxExpired:
		f.Code, f.Message = discovery.Conflict, fmt.Sprintf("The deletion %s is %s. Nothing was deleted.", o.ID, o.State)
		f.Hint = "Ask for it again if it is still wanted."
	default:
		f.Message, f.Hint = fmt.Sprintf("The deletion %s failed: nothing was deleted.%s", o.ID, reason), "List the folder again, and ask anew if it is still wanted."
	}
	return f
}

// deletionQuestion is questionText for a deletion.
func deletionQuestion(o *outbox.Decision) (question string, ok bool) {
	var b strings.Builder
	b.WriteString("Delete these messages for good? They cannot be brought back.\nNothing is deleted unless you approve it.\n\n")
	questionRow(&b, "Account:", o.Account)
	questionRow(&b, "Folder:", quoted(o.Folder))
	questionRow(&b, "Count:", answer.Count(len(o.Deletes), "message", "messages"))
	questionRow(&b, "Outbox:", o.ID)
	questionRow(&b, "Why:", o.Why())
	b.WriteString("\nWhat their senders wrote stands on the lines that begin with >:\n\n")
	for _, m := range o.Deletes {
		var from []string
		for _, a := range m.From {
			from = append(from, personShown(a))
		}
		for _, part := range []string{dated(m.Date) + "  " + strings.Join(from, ", "), "    " + quoted(m.Subject)} {
			for _, l := range wrapped(part, questionWidth) {
				b.WriteString("> " + l + "\n")
			}
		}
	}
	return b.String(), fits(b.String())
}
