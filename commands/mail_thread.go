package commands

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
)

type mailThreadArgs struct {
	messageArgs
	Chars int `json:"chars,omitempty" acli:"form=thread_chars" jsonschema:"default=1000" jsonschema_description:"At most this many characters of each message's new text; 0 shows none"`
	Limit int `json:"limit,omitempty" acli:"form=thread_limit,short=n,rare" jsonschema_description:"At most this many, the newest"`
}

// MailThreadResult answers mail thread (004 section 5). Subject is that of the
// conversation.
type MailThreadResult struct {
	answer.Outcome
	Account     string        `json:"account_id"`
	Folder      string        `json:"folder" acli:"untrusted"`
	UIDValidity uint32        `json:"uidvalidity,omitempty"`
	Subject     string        `json:"subject,omitempty" acli:"untrusted"`
	Messages    []ThreadEntry `json:"messages"`
	Truncated   bool          `json:"truncated,omitempty"`

	all *answer.NextAction // shows more of it; nil where it cannot
}

// ThreadEntry is a message of a conversation, with what is new in it.
type ThreadEntry struct {
	MessageEntry
	Parent        string            `json:"parent_message_id,omitempty"`
	BodyText      string            `json:"body_text,omitempty" acli:"untrusted"`
	BodyTruncated bool              `json:"body_truncated,omitempty"`
	Attachments   []AttachmentEntry `json:"attachments,omitempty"`
}

// mailThreadBrief is the compact answer of mail thread.
type mailThreadBrief struct {
	Subject string `json:"subject,omitempty" acli:"untrusted"`
	discovery.Table[threadRow]
	answer.Rest
}

// threadRow is a message of a conversation. Subject is empty where it adds nothing but a
// reply prefix to the conversation's.
type threadRow struct {
	ID          string `json:"id"`
	Date        string `json:"date"`
	From        string `json:"from" acli:"untrusted"`
	AnswersTo   string `json:"answers_to" acli:"untrusted"`
	Subject     string `json:"subject" acli:"untrusted"`
	Marks       string `json:"marks"`
	Text        string `json:"text" acli:"untrusted"`
	Hidden      int    `json:"hidden_chars"`
	Attachments string `json:"attachments" acli:"untrusted"`
}

func mailThread(d *Deps) *discovery.Command {
	return argument.Command(discovery.Spec{
		Path:    "mail thread",
		Also:    []string{"conversation"},
		Forms:   bounds,
		Summary: "Its conversation",
		Details: "Oldest first. It looks in the message's folder, in INBOX, Sent and Archive, or in the folder of all mail where there is one. " +
			"Quoted history is left out; a text that ends with '…' goes on in 'mail get'. It changes nothing.",
		Effect:   discovery.Read,
		Examples: []string{"mail thread 41", "mail thread Sent/1 --chars 300"},
	}, func(ctx context.Context, call *discovery.Call, args *mailThreadArgs) (*MailThreadResult, error) {
		ref, err := d.message(ctx, call, &args.messageArgs)
		if err != nil {
			return nil, err
		}
		t, err := d.Mailboxes.Thread(ctx, ref, mailbox.ThreadQuery{Limit: args.Limit, Chars: args.Chars, Full: call.Full})
		if err != nil {
			return nil, err
		}
		list := make([]mailbox.Summary, len(t.Messages))
		for i := range t.Messages {
			list[i] = t.Messages[i].Summary
		}
		ids := d.shown(ctx, call, refsOf(list)...)
		r := &MailThreadResult{Outcome: answer.OutcomeOf(append(t.Issues, ids.Issues...), len(t.Messages) > 0), Account: ref.Account, Folder: t.Folder, UIDValidity: t.UIDValidity,
			Subject: t.Subject, Messages: []ThreadEntry{}, Truncated: t.Truncated}
		r.IDs = ids
		if t.Truncated && args.Limit < maxThread {
			following := *args
			following.Limit = maxThread
			r.all = answer.NextLine("Show more of the conversation", call.Again(&following))
			r.NextAction = r.all
		} else if n := len(t.Messages); n > 0 {
			r.NextAction = answer.Next("Read the newest of them", "mail", "get", t.Messages[n-1].Ref.String())
		}
		for i := range t.Messages {
			r.Messages = append(r.Messages, threadEntry(&t.Messages[i]))
		}
		return r, nil
	})
}

const maxThread = 200 // messages of a conversation in one answer

func threadEntry(m *mailbox.ThreadMessage) ThreadEntry {
	e := ThreadEntry{MessageEntry: entryOf(&m.Summary), BodyText: m.Text, BodyTruncated: m.TextTruncated}
	if m.Parent != (mail.Ref{}) {
		e.Parent = m.Parent.String()
	}
	for i := range m.Attachments {
		e.Attachments = append(e.Attachments, attachmentEntry(&m.Attachments[i]))
	}
	return e
}

// Brief is the compact answer.
func (r *MailThreadResult) Brief() *mailThreadBrief {
	rows := make([]threadRow, len(r.Messages))
	for i, e := range r.Messages {
		told := []mailbox.Mark{mailbox.AnswersElsewhere} // their columns tell it
		m, attached := e.summary, e.Attachments
		if m.Invitation { // the mark tells it, and mail get when the event is
			attached = slices.DeleteFunc(slices.Clone(attached), AttachmentEntry.calendar)
		}
		if slices.ContainsFunc(attached, func(a AttachmentEntry) bool { return strings.HasSuffix(a.ContentType, "delivery-status") }) { // the text of a bounce tells it
			attached = slices.DeleteFunc(slices.Clone(attached), func(a AttachmentEntry) bool { return reports[a.ContentType] })
		}
		if len(attached) > 0 { // their column tells it
			told = append(told, mailbox.HasAttachments)
		}
		rows[i] = threadRow{ID: r.IDs.Of(m.Ref), Date: answer.Minute(m.Date), From: sendersWithin(m.From, e.From), AnswersTo: e.AnswersTo, Marks: marksOf(m, told...), Text: e.BodyText, Hidden: e.HiddenChars, Attachments: inWords(attached)}
		if !repeats(e.Subject, r.Subject) {
			rows[i].Subject = plain.Clip(e.Subject, answer.MaxShownChars)
		}
	}
	b := &mailThreadBrief{Subject: plain.Clip(r.Subject, answer.MaxShownChars), Table: discovery.TableOf(rows), Rest: r.Rest(r.all)}
	if r.Truncated && r.all == nil {
		b.Hint = "The conversation has more messages than these; 'mail search --subject' finds others."
	}
	return b
}

// calendar reports whether the attachment is a calendar: by its type, or its name.
func (a AttachmentEntry) calendar() bool {
	return a.ContentType == "text/calendar" || a.ContentType == "application/ics" || strings.EqualFold(path.Ext(a.Filename), ".ics")
}

// inWords is attachments as one text: name, type, size and part of each.
func inWords(list []AttachmentEntry) string {
	words := make([]string, len(list))
	for i, a := range list {
		words[i] = strings.TrimSpace(fmt.Sprintf("%s %s %s (part %s)", plain.Clip(a.Filename, answer.MaxShownChars), a.ContentType, bytesInWords(a.Size), a.PartID))
	}
	return strings.Join(words, ", ")
}

// bytesInWords is a size in the unit that a person would use.
func bytesInWords(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1e6:
		return fmt.Sprintf("%d kB", (n+500)/1000)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}

// repeats reports whether a subject is the conversation's with at most a few reply
// prefixes before it.
func repeats(subject, base string) bool {
	prefix := len(subject) - len(base)
	return base != "" && prefix >= 0 && strings.EqualFold(subject[prefix:], base) && utf8.RuneCountInString(subject[:prefix]) <= 12
}

// Summary implements discovery.Summarizer.
func (r *MailThreadResult) Summary() string {
	s := answer.Count(len(r.Messages), "message", "messages")
	if r.Truncated {
		s += ", and there are more"
	}
	return r.WithIssues(s)
}

// Truncate implements discovery.Truncator: the texts are cut, and where that is not
// enough the oldest messages go.
func (r *MailThreadResult) Truncate(fraction float64) bool {
	var texts []*string
	for i := range r.Messages {
		e := &r.Messages[i]
		texts = append(texts, &e.BodyText, &e.From, &e.To, &e.CC, &e.Subject, &e.InternetMessageID)
	}
	fields := len(texts) / max(len(r.Messages), 1)
	if clipTexts(texts, fraction, func(i int) {
		if i%fields == 0 {
			r.Messages[i/fields].BodyTruncated = true
		} else {
			r.Truncated = true
		}
	}) {
		return true
	}
	keep := int(float64(len(r.Messages)) * min(fraction, 0.95))
	if keep < 1 {
		return false
	}
	r.Messages, r.Truncated = slices.Clone(r.Messages[len(r.Messages)-keep:]), true
	return true
}
