package commands

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
)

type mailThreadArgs struct {
	messageArgs
	Limit int `json:"limit,omitempty" acli:"short=n" jsonschema:"minimum=1,maximum=200,default=200" jsonschema_description:"At most this many, the newest"`
}

// MailThreadResult answers mail thread (004 section 5). Subject is that of the
// conversation; a compact entry leaves its own out where it adds only a reply
// prefix to it.
type MailThreadResult struct {
	Outcome
	Account     string        `json:"account_id"`
	Folder      string        `json:"folder"`
	UIDValidity uint32        `json:"uidvalidity,omitempty"`
	Subject     string        `json:"subject,omitempty" acli:"untrusted"`
	Messages    []ThreadEntry `json:"messages"`
	Truncated   bool          `json:"truncated,omitempty"`
}

// ThreadEntry is a message of a conversation.
type ThreadEntry struct {
	MessageEntry
	Parent string `json:"parent_message_id,omitempty"`
}

func mailThread(d *Deps) *discovery.Command {
	return newCommand(discovery.Spec{
		Path:     "mail thread",
		Summary:  "Show the conversation a message belongs to, oldest first",
		Details:  "It looks in the message's folder, in INBOX, Sent and Archive (or in the folder of all mail, where there is one), and changes nothing. " + compactDetails,
		Effect:   discovery.Read,
		Examples: []string{"mail thread --folder INBOX --uid 1", "mail thread imap:default:INBOX:1700000000:1 --limit 10"},
	}, func(ctx context.Context, call *discovery.Call, args *mailThreadArgs) (*MailThreadResult, error) {
		ref, err := d.message(ctx, call, &args.messageArgs)
		if err != nil {
			return nil, err
		}
		t, err := d.Mailboxes.Thread(mail.WithProgress(ctx, call.Progress), ref, mailbox.ThreadQuery{Limit: args.Limit, Full: call.Full})
		if err != nil {
			return nil, err
		}
		list := make([]mail.Ref, len(t.Messages))
		for i := range t.Messages {
			list[i] = t.Messages[i].Ref
		}
		ids := d.shown(ctx, call, list...)
		r := &MailThreadResult{Outcome: outcome(append(t.Issues, ids.Issues...), len(t.Messages) > 0), Account: ref.Account, Folder: t.Folder, UIDValidity: t.UIDValidity,
			Subject: t.Subject, Messages: []ThreadEntry{}, Truncated: t.Truncated}
		if n := len(t.Messages); t.Truncated && args.Limit < maxThread {
			following := *args
			following.Limit = maxThread
			r.NextAction = nextLine("Show more of the conversation", call.Again(&following))
		} else if n > 0 {
			r.NextAction = next("Read the newest of them", "mail", "get", t.Messages[n-1].Ref.String())
		}
		r.fill(t, call.Full, call)
		return r, nil
	})
}

const maxThread = 200 // messages of a conversation in one answer

func (r *MailThreadResult) fill(t *mailbox.Thread, full bool, call *discovery.Call) {
	list := make([]mailbox.Summary, len(t.Messages))
	for i := range t.Messages {
		list[i] = t.Messages[i].Summary
		if !full && repeats(list[i].Subject, t.Subject) {
			list[i].Subject = ""
		}
	}
	for i, e := range entriesOf(list, full, call) {
		e := ThreadEntry{MessageEntry: e}
		if p := t.Messages[i].Parent; p != (mail.Ref{}) {
			e.Parent = p.String()
		}
		r.Messages = append(r.Messages, e)
	}
}

// repeats reports whether a subject is the conversation's with at most a few reply
// prefixes before it.
func repeats(subject, base string) bool {
	prefix := len(subject) - len(base)
	return base != "" && prefix >= 0 && strings.EqualFold(subject[prefix:], base) && utf8.RuneCountInString(subject[:prefix]) <= 12
}

// Summary implements discovery.Summarizer.
func (r *MailThreadResult) Summary() string {
	s := count(len(r.Messages), "message", "messages")
	if r.Truncated {
		s += ", and there are older ones"
	}
	return r.withIssues(s)
}

// Truncate implements discovery.Truncator: the texts are cut, and where that is not
// enough the oldest messages go.
func (r *MailThreadResult) Truncate(fraction float64) bool {
	if clipEntries(len(r.Messages), func(i int) *MessageEntry { return &r.Messages[i].MessageEntry }, fraction) {
		r.Truncated = true
		return true
	}
	keep := int(float64(len(r.Messages)) * min(fraction, 0.95))
	if keep < 1 {
		return false
	}
	r.Messages, r.Truncated = r.Messages[len(r.Messages)-keep:], true
	return true
}
