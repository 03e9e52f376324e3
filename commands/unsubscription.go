package commands

import (
	"fmt"
	"strings"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/outbox"
)

// Lists to leave about which a person decides stand in the outbox beside messages to send, and
// are shown, approved and refused by the same commands.

// ListToLeave is a list that an entry leaves, by a message of it. The address that is asked names
// the reader, and is not shown beyond its server.
type ListToLeave struct {
	ID      string                  `json:"message_id"`
	List    string                  `json:"list,omitempty" acli:"untrusted"`
	From    string                  `json:"from" acli:"untrusted"` // verified
	Host    string                  `json:"host" acli:"untrusted" jsonschema_description:"The server that is asked"`
	Date    string                  `json:"date,omitempty" jsonschema:"format=date-time"`
	Subject string                  `json:"subject" acli:"untrusted"`
	Outcome mail.UnsubscribeOutcome `json:"outcome,omitempty" jsonschema:"enum=unsubscribed,enum=refused,enum=unsent,enum=unknown"`
	Reason  string                  `json:"reason,omitempty"`
}

type listRow struct {
	ID      string                  `json:"id"`
	Date    string                  `json:"date"`
	From    string                  `json:"from" acli:"untrusted"`
	Subject string                  `json:"subject" acli:"untrusted"`
	List    string                  `json:"list" acli:"untrusted"`
	Host    string                  `json:"host" acli:"untrusted"`
	Outcome mail.UnsubscribeOutcome `json:"outcome"`
	Reason  string                  `json:"reason"`
}

// listsOf are the lists of an entry.
func listsOf(o *mail.Outgoing) (all []ListToLeave) {
	for i := range o.Unsubscribes {
		l := &o.Unsubscribes[i]
		all = append(all, ListToLeave{l.ID, l.List, l.From.String(), l.Host(), answer.UTC(l.Date), l.Subject, l.Outcome, l.Reason})
	}
	return all
}

func listRefs(all []ListToLeave) (refs []mail.Ref) {
	for _, l := range all {
		if ref, err := mail.ParseRef(l.ID); err == nil {
			refs = append(refs, ref)
		}
	}
	return refs
}

// listRows are the same in a compact answer.
func listRows(all []ListToLeave, id func(string) string) *discovery.Table[listRow] {
	if len(all) == 0 {
		return nil
	}
	var rows []listRow
	for _, l := range all {
		rows = append(rows, listRow{id(l.ID), answer.MinuteOf(l.Date), l.From, plain.Clip(l.Subject, maxBriefChars), plain.Clip(l.List, maxBriefChars), l.Host, l.Outcome, l.Reason})
	}
	t := discovery.TableOf(rows)
	return &t
}

// unsubscriptionTitle names lists to leave in one line.
func unsubscriptionTitle(o *mail.Outgoing) string {
	if len(o.Unsubscribes) == 1 {
		return "unsubscribe from " + o.Unsubscribes[0].From.Addr
	}
	return "unsubscribe from " + answer.Count(len(o.Unsubscribes), "list", "lists")
}

func unsubscriptionSummary(o *mail.Outgoing) string {
	switch o.State {
	case mail.OutboxWaiting:
		return "It waits for a person; nobody was asked"
	case mail.OutboxQueued:
		return "Nobody was asked yet"
	case mail.OutboxDone:
		return "Unsubscribed from " + answer.Count(len(o.Unsubscribes), "list", "lists")
	case mail.OutboxPartly:
		return "Unsubscribed from some of the lists, and not from others"
	case mail.OutboxUnknown:
		return "It is not known of all lists whether they were left"
	}
	return "No list was left"
}

// notLeft is the fault of lists none of which was left, or nil.
func notLeft(o *mail.Outgoing) *discovery.Fault {
	f := &discovery.Fault{Code: discovery.ExecutionError, Examples: []string{"outbox show " + o.ID}}
	var reasons []string
	for i := range o.Unsubscribes {
		if l := &o.Unsubscribes[i]; l.Reason != "" && len(reasons) < 3 {
			reasons = append(reasons, fmt.Sprintf(" %s: %s.", l.Host(), l.Reason))
		}
	}
	reason := strings.Join(reasons, "")
	if said, all := endOf(o); all {
		return said
	}
	switch o.State {
	case mail.OutboxUnknown:
		f.Message = fmt.Sprintf("It is not known of all lists of %s whether they were left.%s", o.ID, reason)
		f.Hint = "Wait whether more comes. A person can approve it again, which asks once more where no answer is known; it is never asked again by itself."
	case mail.OutboxCancelled, mail.OutboxExpired:
		f.Code, f.Message, f.Hint = discovery.Conflict, fmt.Sprintf("The unsubscription %s is %s. Nobody was asked.", o.ID, o.State), "Ask for it again if it is still wanted."
	default:
		f.Message, f.Hint = fmt.Sprintf("No list of %s was left.%s", o.ID, reason), "The person can unsubscribe on the list's own page, in a mail program."
	}
	return f
}

// unsubscriptionQuestion is questionText for lists to leave.
func unsubscriptionQuestion(o *outbox.Decision) (question string, ok bool) {
	var b strings.Builder
	b.WriteString("Unsubscribe from these lists? Their servers are asked once each, and nobody is asked unless you approve it.\n\n")
	questionRow(&b, "Account:", o.Account)
	questionRow(&b, "Outbox:", o.ID)
	questionRow(&b, "Why:", o.Why())
	b.WriteString("\nWhat their senders wrote stands on the lines that begin with >:\n\n")
	for i := range o.Unsubscribes {
		l := &o.Unsubscribes[i]
		for _, part := range []string{dated(l.Date) + "  " + personShown(l.From), "    " + quoted(l.Subject), "    list " + quoted(l.List), "    asks " + harmless(l.Host())} {
			if part == `    list ""` {
				continue
			}
			for _, line := range wrapped(part, questionWidth) {
				b.WriteString("> " + line + "\n")
			}
		}
	}
	return b.String(), fits(b.String())
}
