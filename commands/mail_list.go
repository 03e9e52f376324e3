package commands

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
)

type mailListArgs struct {
	AccountOption
	Folder      string             `json:"folder,omitempty" jsonschema:"default=INBOX,minLength=1,maxLength=256,pattern=^[^\\x00-\\x1f\\x7f]*$" jsonschema_description:"Folder to list"`
	Unread      bool               `json:"unread,omitempty" jsonschema_description:"Only messages without the \\Seen flag"`
	BeforeUID   uint32             `json:"before-uid,omitempty" jsonschema:"minimum=1,maximum=4294967295" jsonschema_description:"Only messages with a smaller UID"`
	AfterUID    uint32             `json:"after-uid,omitempty" jsonschema:"minimum=1,maximum=4294967295" jsonschema_description:"Only messages with a greater UID"`
	Since       discovery.Datetime `json:"since,omitempty" jsonschema:"example=2026-02-02" jsonschema_description:"Only messages from then on; a date alone means the start of that day"`
	Until       discovery.Datetime `json:"until,omitempty" jsonschema:"example=2026-02-07" jsonschema_description:"Only messages before then; a date alone includes that whole day"`
	Limit       int                `json:"limit,omitempty" acli:"short=n" jsonschema:"minimum=1,maximum=500,default=50" jsonschema_description:"At most this many"`
	OldestFirst bool               `json:"oldest-first,omitempty" jsonschema_description:"Start with the oldest instead of the newest"`
	Full        bool               `json:"full,omitempty" jsonschema_description:"Every field of each message, not only the compact ones"`
}

// Validate checks what one option alone cannot.
func (a *mailListArgs) Validate() error {
	switch {
	case a.BeforeUID != 0 && a.AfterUID != 0 && a.AfterUID+1 >= a.BeforeUID:
		return fmt.Errorf("no UID is greater than --after-uid and smaller than --before-uid")
	case !a.Since.IsZero() && !a.Until.IsZero() && !a.until().After(a.Since.Time):
		return fmt.Errorf("--until is not after --since")
	}
	return nil
}

// until is the first instant that is too late.
func (a *mailListArgs) until() time.Time {
	if a.Until.DateOnly {
		return a.Until.AddDate(0, 0, 1)
	}
	return a.Until.Time
}

// MailListResult answers mail list (001 section 4, 000 section 7.1).
type MailListResult struct {
	Outcome
	Account     string         `json:"account_id"`
	Folder      string         `json:"folder"`
	UIDValidity uint32         `json:"uidvalidity"`
	UIDNext     uint32         `json:"uid_next,omitempty"`
	Messages    []MessageEntry `json:"messages"`
	HasMore     bool           `json:"has_more"`
	Truncated   bool           `json:"truncated,omitempty"`

	args *mailListArgs
}

// MessageEntry is a message in a list. The fields after HasAttachments come with
// --full only.
type MessageEntry struct {
	ID             string   `json:"message_id"`
	Date           string   `json:"date,omitempty" jsonschema:"format=date-time"`
	From           string   `json:"from,omitempty" acli:"untrusted"`
	Subject        string   `json:"subject,omitempty" acli:"untrusted"`
	Flags          []string `json:"flags,omitempty"`
	HasAttachments bool     `json:"has_attachments,omitempty"`

	Folder            string `json:"folder,omitempty"`
	UIDValidity       uint32 `json:"uidvalidity,omitempty"`
	UID               uint32 `json:"uid,omitempty"`
	To                string `json:"to,omitempty" acli:"untrusted"`
	CC                string `json:"cc,omitempty" acli:"untrusted"`
	InternetMessageID string `json:"internet_message_id,omitempty" acli:"untrusted"`
	Size              int64  `json:"size_bytes,omitempty"`
	Received          string `json:"received,omitempty" jsonschema:"format=date-time"`
}

func mailList(d *Deps) *discovery.Command {
	return discovery.New(discovery.Spec{
		Path:     "mail list",
		Summary:  "List messages of a folder, newest first",
		Details:  "Listing changes nothing: unread messages stay unread.",
		Effect:   discovery.Read,
		Examples: []string{"mail list --limit 20", "mail list --folder INBOX --unread", "mail list --since 2026-02-01 --until 2026-02-07"},
	}, func(ctx context.Context, call *discovery.Call, args *mailListArgs) (*MailListResult, error) {
		name, err := d.account(ctx, call, args.AccountOption)
		if err != nil {
			return nil, err
		}
		call.Target = args.Folder
		q := mail.ListQuery{Folder: args.Folder, Unread: args.Unread, BeforeUID: args.BeforeUID, AfterUID: args.AfterUID,
			Since: args.Since.Time, Until: args.until(), Limit: args.Limit, OldestFirst: args.OldestFirst, Full: args.Full}
		page, err := d.Mailboxes.List(ctx, name, q)
		if err != nil {
			return nil, err
		}
		r := &MailListResult{Outcome: outcome(page.Issues, true), Account: name, Folder: page.Folder, UIDValidity: page.UIDValidity,
			UIDNext: page.UIDNext, Messages: []MessageEntry{}, HasMore: page.HasMore, args: args}
		for i := range page.Messages {
			r.Messages = append(r.Messages, entryOf(&page.Messages[i], args.Full))
		}
		r.suggest()
		return r, nil
	})
}

func entryOf(s *mail.Summary, full bool) MessageEntry {
	e := MessageEntry{ID: s.Ref.String(), Date: timestamp(s.Date), From: people(s.From), Subject: s.Subject, Flags: s.Flags, HasAttachments: s.HasAttachments}
	if full {
		e.Folder, e.UIDValidity, e.UID = s.Ref.Folder, s.Ref.UIDValidity, s.Ref.UID
		e.To, e.CC, e.InternetMessageID = people(s.To), people(s.CC), s.InternetMessageID
		e.Size, e.Received = s.Size, timestamp(s.InternalDate)
	}
	return e
}

// suggest sets the next action: the next page, else the first message.
func (r *MailListResult) suggest() {
	r.NextAction = nil
	if len(r.Messages) == 0 {
		return
	}
	if !r.HasMore {
		r.NextAction = next("Read the first of them", "mail", "get", r.Messages[0].ID)
		return
	}
	last, err := mail.ParseRef(r.Messages[len(r.Messages)-1].ID)
	if err != nil {
		return
	}
	tokens := []string{"mail", "list", "--account", r.Account, "--folder", r.Folder, "--limit", strconv.Itoa(r.args.Limit)}
	uid := strconv.FormatUint(uint64(last.UID), 10)
	before, after := uid, uint(r.args.AfterUID)
	if r.args.OldestFirst {
		before = ""
		tokens = append(tokens, "--oldest-first", "--after-uid", uid)
		if r.args.BeforeUID != 0 {
			before = strconv.FormatUint(uint64(r.args.BeforeUID), 10)
		}
	} else if after != 0 {
		tokens = append(tokens, "--after-uid", strconv.FormatUint(uint64(after), 10))
	}
	if before != "" {
		tokens = append(tokens, "--before-uid", before)
	}
	for _, f := range []struct {
		name string
		on   bool
	}{{"--unread", r.args.Unread}, {"--full", r.args.Full}} {
		if f.on {
			tokens = append(tokens, f.name)
		}
	}
	if !r.args.Since.IsZero() {
		tokens = append(tokens, "--since", r.args.Since.Format(time.RFC3339Nano))
	}
	if !r.args.Until.IsZero() {
		tokens = append(tokens, "--until", r.args.until().Format(time.RFC3339Nano))
	}
	r.NextAction = next("There are more: list the next page", tokens...)
}

// Summary implements discovery.Summarizer.
func (r *MailListResult) Summary() string {
	s := count(len(r.Messages), "message", "messages")
	if r.HasMore {
		s += ", and there are more"
	}
	return s
}

// Truncate implements discovery.Truncator.
func (r *MailListResult) Truncate(fraction float64) bool {
	keep := int(float64(len(r.Messages)) * fraction)
	if keep == len(r.Messages) || keep < 1 {
		return false
	}
	r.Messages, r.Truncated, r.HasMore = r.Messages[:keep], true, true
	r.suggest()
	return true
}
