package commands

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
)

type mailGetArgs struct {
	IDs    []string `json:"id,omitempty" acli:"positional,form=id,needed" jsonschema:"maxItems=20,minLength=1,maxLength=600" jsonschema_description:"1 to 20 ids as a list shows them, such as 50 or Sent/5, of one account"`
	Folder string   `json:"folder,omitempty" acli:"form=folder,rare" jsonschema_description:"Folder of --uid; INBOX if left out"`
	UIDs   []uint32 `json:"uid,omitempty" acli:"rare" jsonschema:"maxItems=20,minimum=1,maximum=4294967295" jsonschema_description:"UIDs in place of ids"`
	argument.AccountOption
	Chars           int                 `json:"chars,omitempty" acli:"form=chars" jsonschema_description:"At most this many characters of text, shared by the messages; each gets 100"`
	FromChar        int                 `json:"from-char,omitempty" acli:"form=from_char" jsonschema_description:"The rest of a long text, from this character on; with --html of the HTML"`
	Headers         mailbox.HeaderScope `json:"headers,omitempty" acli:"rare" jsonschema:"enum=none,enum=curated,enum=all" jsonschema_description:"Further header fields; none if left out, with --full curated"`
	HTML            bool                `json:"html,omitempty" acli:"rare" jsonschema_description:"Also the sanitized HTML"`
	AttachmentText  bool                `json:"attachment-text,omitempty" jsonschema_description:"Also the text of attachments, of PDF too"`
	AttachmentChars int                 `json:"attachment-chars,omitempty" acli:"form=attachment_chars,rare,requires=attachment-text" jsonschema_description:"At most this many characters of each"`
	WithContent     bool                `json:"with-content,omitempty" acli:"rare" jsonschema_description:"Also the content of small attachments, in base64"`

	named messagesArgs // since Validate
}

// Validate checks how the messages are named.
func (a *mailGetArgs) Validate() error {
	a.named = messagesArgs{IDs: a.IDs, Folder: a.Folder, UIDs: a.UIDs, AccountOption: a.AccountOption, anyFolder: true}
	if a.FromChar > 0 && len(a.IDs)+len(a.UIDs) > 1 {
		return &discovery.Fault{Code: discovery.ValidationError, Message: "The rest of a text is read of one message at a time.",
			Hint: "Use --from-char with one id."}
	}
	return a.named.Validate()
}

func (a *mailGetArgs) which() *messagesArgs { return &a.named }

// MailGetResult answers mail get (001 section 5).
type MailGetResult struct {
	answer.Outcome
	Account  string          `json:"account_id"`
	Message  *MessageDetail  `json:"message,omitempty" jsonschema_description:"The message, where one was named"`
	Messages []MessageDetail `json:"messages,omitzero" jsonschema_description:"The messages in the order named, where several were"`

	hint string
	own  string // the account's own address
}

// MessageDetail is one message. Headers leave out what has a field of its own. With POP3
// there is no folder and no UID.
type MessageDetail struct {
	ID                string                `json:"message_id"`
	Folder            string                `json:"folder,omitempty" acli:"untrusted"`
	UIDValidity       uint32                `json:"uidvalidity,omitempty"`
	UID               uint32                `json:"uid,omitempty"`
	Date              string                `json:"date,omitempty" jsonschema:"format=date-time"`
	From              string                `json:"from,omitempty" acli:"untrusted"`
	To                string                `json:"to,omitempty" acli:"untrusted"`
	CC                string                `json:"cc,omitempty" acli:"untrusted"`
	Sender            mail.Verdict          `json:"sender" jsonschema:"enum=verified,enum=failed,enum=unknown" jsonschema_description:"What the account's own server says of From: verified, failed, or unknown"`
	PosingAs          string                `json:"posing_as,omitempty" acli:"untrusted" jsonschema_description:"Another address that the sender's name shows"`
	AnswersTo         string                `json:"answers_to,omitempty" acli:"untrusted" jsonschema_description:"Addresses that answers go to, where they go elsewhere than to From"`
	Subject           string                `json:"subject,omitempty" acli:"untrusted"`
	ByAgent           bool                  `json:"by_agent,omitempty" jsonschema_description:"An agent wrote this draft"`
	Flags             []string              `json:"flags" acli:"untrusted"`
	InternetMessageID string                `json:"internet_message_id,omitempty" acli:"untrusted"`
	Headers           []mailbox.HeaderField `json:"headers,omitzero" acli:"untrusted"`
	Notes             []string              `json:"notes,omitempty" jsonschema_description:"What Postern says of the text: why it is missing, or how it came about"`
	BodyText          string                `json:"body_text" acli:"untrusted"`
	BodyHTML          string                `json:"body_html,omitempty" acli:"untrusted"`
	Truncated         bool                  `json:"truncated,omitempty"`
	NextChar          int                   `json:"next_char,omitempty" jsonschema_description:"The --from-char that goes on in the text"`
	HiddenChars       int                   `json:"hidden_chars,omitempty" jsonschema_description:"Characters of HTML that a person would not see, left out"`
	Attachments       []AttachmentEntry     `json:"attachments"`
	AttachmentsTotal  int                   `json:"attachments_total,omitempty" jsonschema_description:"How many there are, where not all are listed"`
	Returned          string                `json:"returned_message_id,omitempty" jsonschema_description:"Of a bounce, the sent message that came back"`

	m    *mailbox.Message
	more func(next int) string // the command that goes on in the text
}

// AttachmentEntry describes an attachment.
type AttachmentEntry struct {
	Filename      string       `json:"filename,omitempty" acli:"untrusted"`
	ContentType   string       `json:"content_type" acli:"untrusted"`
	Size          int64        `json:"size_bytes"`
	PartID        string       `json:"part_id"`
	Text          string       `json:"extracted_text,omitempty" acli:"untrusted"`
	TextTruncated bool         `json:"extracted_text_truncated,omitempty"`
	HiddenChars   int          `json:"hidden_chars,omitempty" jsonschema_description:"Characters of HTML that a person would not see, left out"`
	Events        []EventEntry `json:"events,omitempty"`
	Encoding      string       `json:"content_encoding,omitempty" jsonschema:"enum=base64"`
	Content       []byte       `json:"content_base64,omitzero" acli:"untrusted"`
}

// EventEntry is one event that a calendar part announces. Where AllDay, start and end are
// days, the first and the last. Without an offset or Z they are in a zone that is not known.
type EventEntry struct {
	Method    string `json:"method,omitempty" acli:"untrusted"`
	State     string `json:"state,omitempty"`
	Summary   string `json:"summary,omitempty" acli:"untrusted"`
	Location  string `json:"location" acli:"untrusted"`
	Organizer string `json:"organizer,omitempty" acli:"untrusted"`
	Attendee  string `json:"attendee,omitempty" acli:"untrusted" jsonschema_description:"Whose answer the state is"`
	Start     string `json:"start,omitempty"`
	End       string `json:"end,omitempty"`
	Zone      string `json:"zone,omitempty" acli:"untrusted" jsonschema_description:"What the sender calls the zone of start and end, where that is not known"`
	AllDay    bool   `json:"all_day,omitempty"`
	Recurring bool   `json:"recurring,omitempty"`
}

// Bounds of what is shown of one message.
const (
	maxAttachments = 50 // 001 section 5
	maxHeaderBytes = 64 << 10
	maxEvents      = 20      // of one attachment
	contentBytes   = 200_000 // of the attachments of all messages together, as of mail raw

)

func mailGet(d *Deps) *discovery.Command {
	return argument.Command(discovery.Spec{
		Path:     "mail get",
		Also:     []string{"read", "show", "open", "view", "cat", "fetch", "display", "print"},
		Forms:    bounds,
		Summary:  "Read; --chars in all",
		Details:  "Reading changes nothing: an unread message stays unread.",
		Effect:   discovery.Read,
		Examples: []string{"mail get 50 49", "mail get 33 --from-char 2000", "mail get 28 --attachment-text"},
	}, func(ctx context.Context, call *discovery.Call, args *mailGetArgs) (*MailGetResult, error) {
		call.Bytes = args.WithContent
		refs, err := d.messages(ctx, call, &args.named)
		if err != nil {
			return nil, err
		}
		account, err := d.Store.Account(ctx, refs[0].Account)
		if err != nil {
			return nil, err
		}
		q := mailbox.GetQuery{BodyChars: args.Chars, FromChar: args.FromChar, Headers: args.Headers, HTML: args.HTML, AttachmentText: args.AttachmentText, Content: args.WithContent}
		if args.AttachmentText {
			q.AttachmentChars = args.AttachmentChars
		}
		if args.WithContent {
			q.ContentBytes = contentBytes * 4 / 3 / int64(len(refs)) // as transferred
		}
		if q.Headers == "" && !call.Full {
			q.Headers = mailbox.HeadersNone
		}
		all, err := d.Mailboxes.GetEach(ctx, account.Name, refs, q)
		if err != nil {
			return nil, err
		}
		withheld(call, all.Issues)
		r := &MailGetResult{Account: account.Name, own: account.Email}
		d.got(ctx, call, args, r, q.Headers != mailbox.HeadersNone, all)
		if len(refs) == 1 {
			r.Message, r.Messages = &r.Messages[0], nil
			r.goOn()
		}
		return r, nil
	})
}

// got puts messages into the answer.
func (d *Deps) got(ctx context.Context, call *discovery.Call, args *mailGetArgs, r *MailGetResult, headers bool, all *mailbox.Messages) {
	var shown []mail.Ref
	for _, m := range all.Messages {
		shown = append(shown, m.Ref, m.Returned)
	}
	r.IDs = d.shown(ctx, call, shown...)
	issues := slices.Concat(all.Issues, r.IDs.Issues)
	for _, m := range all.Messages {
		e := detailOf(m, headers)
		e.more = func(next int) string {
			id := r.IDs.Of(m.Ref)
			if call.Full {
				id = m.Ref.String()
			}
			return call.Again(&mailGetArgs{IDs: []string{id}, Chars: args.Chars, FromChar: next, HTML: args.HTML, AttachmentChars: mailbox.AttachmentChars.Default})
		}
		for _, i := range append(m.Issues, notShown(m)...) {
			i.UID, i.MessageID = m.Ref.UID, m.Ref.String()
			issues = append(issues, i)
		}
		if slices.ContainsFunc(m.Attachments, func(a mailbox.Attachment) bool { return a.TextTruncated }) {
			r.hint = "'mail attachment' with --as-text and --from-char reads the rest of an attachment's text."
		}
		r.Messages = append(r.Messages, e)
	}
	ids := r.IDs
	r.Outcome = answer.OutcomeOf(issues, true)
	if again := unreached(all.Issues); len(again) > 0 {
		rest := *args
		rest.IDs, rest.UIDs, rest.Folder, rest.AccountOption = again, nil, "", argument.AccountOption{}
		r.NextAction = answer.NextLine("Read the others", call.Again(&rest))
	}
	r.IDs = ids
}

// unreached are the ids of messages that the end of the connection or of the time left out.
func unreached(issues []mail.Issue) (ids []string) {
	for _, i := range issues {
		if i.Kind == mail.KindConnection || i.Kind == mail.KindTimeout {
			ids = append(ids, i.MessageID)
		}
	}
	return ids
}

// goOn names the command that goes on in the text of the one message.
func (r *MailGetResult) goOn() {
	if m := r.Message; m != nil && m.NextChar > 0 {
		r.NextAction = answer.NextLine("The text was cut: read the rest", m.more(m.NextChar))
	}
}

// notShown are the issues that tell what of a message's attachments is left out.
func notShown(m *mailbox.Message) (issues []mail.Issue) {
	left := func(text string) {
		issues = append(issues, mail.Issue{Kind: mail.KindRefused, Stage: "parse", Message: text})
	}
	if n := len(m.Attachments); n > maxAttachments {
		left(fmt.Sprintf("Not listed: %s, parts %s to %s; 'mail attachment' with --part gets each.", answer.Count(n-maxAttachments, "further attachment", "further attachments"),
			m.Attachments[maxAttachments].PartID, m.Attachments[n-1].PartID))
	}
	if m.Unread > 0 {
		left(fmt.Sprintf("The text of %s was not read: 'mail attachment' with --part and --as-text reads one.", answer.Count(m.Unread, "further attachment", "further attachments")))
	}
	return issues
}

func detailOf(m *mailbox.Message, headers bool) MessageDetail {
	e := MessageDetail{m: m, ID: m.Ref.String(), Folder: m.Ref.Folder, UIDValidity: m.Ref.UIDValidity, UID: m.Ref.UID,
		Date: answer.Timestamp(m.Date), From: answer.People(m.From), To: answer.People(m.To), CC: answer.People(m.CC), Subject: m.Subject, Flags: shownFlags(m.Flags), Sender: cmp.Or(m.Verdict, mail.Unknown), PosingAs: m.PosingAs(), AnswersTo: answersTo(&m.Summary), ByAgent: m.ByAgent,
		InternetMessageID: m.InternetMessageID, Notes: m.Notes, BodyText: m.BodyText, BodyHTML: m.BodyHTML, Truncated: m.BodyTruncated, NextChar: m.NextChar, HiddenChars: m.HiddenChars,
		Attachments: []AttachmentEntry{}}
	if e.Flags == nil {
		e.Flags = []string{}
	}
	if headers {
		e.addHeaders(m.Headers)
	}
	for i := range m.Attachments[:min(maxAttachments, len(m.Attachments))] {
		e.Attachments = append(e.Attachments, attachmentEntry(&m.Attachments[i]))
	}
	if n := len(m.Attachments); n > maxAttachments {
		e.AttachmentsTotal = n
	}
	if m.Returned != (mail.Ref{}) {
		e.Returned = m.Returned.String()
	}
	return e
}

// addHeaders takes header fields, as many as fit.
func (e *MessageDetail) addHeaders(fields []mailbox.HeaderField) {
	e.Headers = []mailbox.HeaderField{}
	size := 0
	for _, h := range fields {
		if size += len(h.Name) + len(h.Value); size > maxHeaderBytes {
			e.Truncated = true
			break
		}
		e.Headers = append(e.Headers, h)
	}
}

func attachmentEntry(a *mailbox.Attachment) AttachmentEntry {
	e := AttachmentEntry{Filename: a.Filename, ContentType: a.ContentType, Size: a.Size, PartID: a.PartID, Text: a.Text, TextTruncated: a.TextTruncated, HiddenChars: a.HiddenChars}
	if a.Content != nil {
		e.Encoding, e.Content = "base64", a.Content
	}
	for _, v := range a.Events[:min(maxEvents, len(a.Events))] {
		e.Events = append(e.Events, EventEntry{Method: v.Method, State: v.State, Summary: v.Summary, Location: v.Location, Organizer: v.Organizer, Attendee: v.Attendee,
			Start: eventTime(&v, v.Start, answer.Timestamp), End: eventTime(&v, v.End, answer.Timestamp), Zone: v.Zone, AllDay: v.AllDay, Recurring: v.Recurring})
	}
	return e
}

// eventTime is when an event begins or ends: a day, or a time in the form of the answer,
// without Z where its zone is not known.
func eventTime(e *mailbox.CalendarEvent, t time.Time, form func(time.Time) string) string {
	switch {
	case t.IsZero():
		return ""
	case e.AllDay:
		return t.Format(time.DateOnly)
	case e.Local:
		return strings.TrimSuffix(form(t), "Z")
	}
	return form(t)
}

// Details are the messages of the answer, whether it has one or several.
func (r *MailGetResult) Details() []*MessageDetail {
	if r.Message != nil {
		return []*MessageDetail{r.Message}
	}
	all := make([]*MessageDetail, len(r.Messages))
	for i := range r.Messages {
		all[i] = &r.Messages[i]
	}
	return all
}

// Truncate implements discovery.Truncator: the longest texts are cut, and where all are
// short the last header fields are left out.
func (r *MailGetResult) Truncate(fraction float64) bool {
	var texts []*string
	cut := map[int]func(){}
	text := func(truncated *bool, list ...*string) {
		for _, s := range list {
			cut[len(texts)] = func() { *truncated = true }
			texts = append(texts, s)
		}
	}
	all := r.Details()
	for _, m := range all {
		text(&m.Truncated, &m.From, &m.To, &m.CC, &m.Subject, &m.InternetMessageID)
		for i := range m.Headers {
			text(&m.Truncated, &m.Headers[i].Value)
		}
		for i := range m.Attachments {
			a := &m.Attachments[i]
			text(&m.Truncated, &a.Filename, &a.ContentType)
			text(&a.TextTruncated, &a.Text)
			for j := range a.Events {
				v := &a.Events[j]
				text(&m.Truncated, &v.Summary, &v.Location, &v.Organizer, &v.Attendee, &v.Zone, &v.Method)
			}
		}
		for _, s := range []*string{&m.BodyText, &m.BodyHTML} {
			cut[len(texts)] = func() { m.cutText(s) }
			texts = append(texts, s)
		}
	}
	if clipTexts(texts, fraction, func(i int) { cut[i]() }) {
		r.goOn()
		return true
	}
	helped := false
	for _, m := range all {
		if n := len(m.Headers); n > 0 {
			m.Headers, m.Truncated, helped = m.Headers[:int(float64(n)*min(fraction, 0.9))], true, true
		}
	}
	return helped
}

// cutText notes that the text or the HTML was cut: the rest begins at its end, where a mark
// stands, if not before. Where there is HTML, pages are of it.
func (e *MessageDetail) cutText(text *string) {
	e.Truncated = true
	if text == &e.BodyText && e.BodyHTML != "" {
		return
	}
	end := max(e.m.FromChar, 1) + max(utf8.RuneCountInString(*text)-1, 0)
	e.NextChar = min(cmp.Or(e.NextChar, end), end)
}

// Summary implements discovery.Summarizer.
func (r *MailGetResult) Summary() string {
	if r.Message == nil {
		return r.WithIssues(answer.Count(len(r.Messages), "message", "messages"))
	}
	if n := max(len(r.Message.Attachments), r.Message.AttachmentsTotal); n > 0 {
		return r.WithIssues("Message with " + answer.Count(n, "attachment", "attachments"))
	}
	return r.WithIssues("")
}
