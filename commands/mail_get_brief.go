package commands

import (
	"slices"
	"strings"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
)

// mailGetBrief is the compact answer of mail get.
type mailGetBrief struct {
	Messages []messageBrief `json:"messages"`
	answer.Rest
}

// messageBrief is one message. To is left out where it is the account itself alone and no header fields are asked for.
type messageBrief struct {
	ID          string                            `json:"id"`
	Date        string                            `json:"date,omitempty"`
	From        string                            `json:"from,omitempty" acli:"untrusted"`
	To          string                            `json:"to,omitempty" acli:"untrusted"`
	CC          string                            `json:"cc,omitempty" acli:"untrusted"`
	Sender      mail.Verdict                      `json:"sender,omitempty" jsonschema:"enum=verified,enum=failed" jsonschema_description:"What the account's own server says of From"`
	PosingAs    string                            `json:"posing_as,omitempty" acli:"untrusted" jsonschema_description:"Another address that the sender's name shows"`
	AnswersTo   string                            `json:"answers_to,omitempty" acli:"untrusted" jsonschema_description:"Addresses that answers go to, where they go elsewhere than to From"`
	Subject     string                            `json:"subject,omitempty" acli:"untrusted"`
	Marks       string                            `json:"marks,omitempty"`
	Headers     []string                          `json:"headers,omitempty" acli:"untrusted" jsonschema_description:"Fields of the header, as Name: value"`
	Notes       []string                          `json:"notes,omitempty" jsonschema_description:"What Postern says of the text: why it is missing, or how it came about"`
	Text        string                            `json:"text,omitempty" acli:"untrusted"`
	HTML        string                            `json:"html,omitempty" acli:"untrusted"`
	HiddenChars int                               `json:"hidden_chars,omitempty" jsonschema_description:"Characters of HTML that a person would not see, left out"`
	Events      []EventEntry                      `json:"events,omitempty"`
	Attachments *discovery.Table[attachmentBrief] `json:"attachments,omitempty"`
	Returned    string                            `json:"returned,omitempty" jsonschema_description:"Of a bounce, the sent message that came back"`
	More        string                            `json:"more,omitempty" jsonschema_description:"Of several messages, the command that goes on in this one's text"`
}

// attachmentBrief is a row of the attachments.
type attachmentBrief struct {
	Part    string `json:"part"`
	Name    string `json:"name" acli:"untrusted"`
	Type    string `json:"type" acli:"untrusted"`
	Bytes   int64  `json:"bytes"`
	Text    string `json:"text" acli:"untrusted"`
	Hidden  int    `json:"hidden_chars"`
	Content []byte `json:"content_base64" acli:"untrusted"`
}

// Brief is the compact answer.
func (r *MailGetResult) Brief() mailGetBrief {
	b := mailGetBrief{Rest: r.Rest(r.NextAction)}
	b.Hint = r.hint
	for _, e := range r.Details() {
		m := e.brief(r.own, r.IDs)
		if r.Message == nil && e.NextChar > 0 {
			m.More = e.more(e.NextChar)
		}
		b.Messages = append(b.Messages, m)
	}
	return b
}

// reports are the parts of a bounce that say what its text and the message that came back
// say.
var reports = map[string]bool{"message/delivery-status": true, "message/global-delivery-status": true, "message/rfc822": true, "text/rfc822-headers": true,
	"message/global": true, "message/global-headers": true}

// brief is the compact form of a message; of a later part of its text, what the first
// answer did not tell.
func (e *MessageDetail) brief(own string, ids *answer.IDs) messageBrief {
	if e.m.FromChar > 1 && !slices.ContainsFunc(e.Attachments, func(a AttachmentEntry) bool { return a.Text != "" || a.Content != nil }) {
		return messageBrief{ID: ids.Of(e.m.Ref), Text: e.BodyText, HTML: e.BodyHTML}
	}
	b := messageBrief{ID: ids.Of(e.m.Ref), Date: answer.Minute(e.m.Date), From: sendersWithin(e.m.From, e.From), Subject: e.Subject, Marks: marksOf(&e.m.Summary, mailbox.HasAttachments, mailbox.Invitation, mailbox.FailedSender, mailbox.PosingName, mailbox.AnswersElsewhere), PosingAs: e.PosingAs, AnswersTo: e.AnswersTo,
		Notes: e.Notes, Text: e.BodyText, HTML: e.BodyHTML, HiddenChars: e.HiddenChars, CC: e.CC}
	if to := e.m.To; e.Headers != nil || len(to) != 1 || !strings.EqualFold(to[0].Addr, own) {
		b.To = e.To
	}
	if e.Sender != mail.Unknown {
		b.Sender = e.Sender
	}
	if e.Headers != nil && e.InternetMessageID != "" {
		b.Headers = []string{"Message-ID: <" + e.InternetMessageID + ">"} // which has no field here
	}
	for _, h := range e.Headers {
		b.Headers = append(b.Headers, h.Name+": "+h.Value)
	}
	if e.Returned != "" {
		b.Returned = ids.Of(e.m.Returned)
	}
	var rows []attachmentBrief
	for i, a := range e.Attachments {
		if len(a.Events) > 0 {
			b.addEvents(e.m, e.m.Attachments[i].Events)
			continue // an invitation is told once
		}
		if b.Returned != "" && reports[a.ContentType] && a.Content == nil {
			continue
		}
		rows = append(rows, attachmentBrief{Part: a.PartID, Name: a.Filename, Type: a.ContentType, Bytes: a.Size, Text: a.Text, Hidden: a.HiddenChars, Content: a.Content})
		if row := &rows[len(rows)-1]; a.TextTruncated && !strings.HasSuffix(row.Text, "…") {
			row.Text += "…"
		}
	}
	if len(rows) > 0 {
		table := discovery.TableOf(rows)
		b.Attachments = &table
	}
	return b
}

// addEvents adds events that are not there yet: the same invitation comes as a form of the
// text and as a file.
func (b *messageBrief) addEvents(m *mailbox.Message, events []mailbox.CalendarEvent) {
	for _, v := range events[:min(maxEvents, len(events))] {
		e := EventEntry{State: v.State, Attendee: v.Attendee, Start: eventTime(&v, v.Start, answer.Minute), Zone: v.Zone, AllDay: v.AllDay, Location: v.Location, Recurring: v.Recurring}
		if !v.End.Equal(v.Start) {
			e.End = eventTime(&v, v.End, answer.Minute)
		}
		if v.Summary != m.Subject {
			e.Summary = v.Summary
		}
		if !slices.ContainsFunc(m.From, func(from mail.Address) bool { return strings.Contains(v.Organizer, from.Addr) }) {
			e.Organizer = v.Organizer
		}
		if !slices.Contains(b.Events, e) {
			b.Events = append(b.Events, e)
		}
	}
}
