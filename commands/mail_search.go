package commands

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
)

type mailSearchArgs struct {
	AccountOption
	Folder        string         `json:"folder,omitempty" acli:"form=folder" jsonschema_description:"Folder to search; INBOX if left out"`
	Query         string         `json:"query,omitempty" acli:"form=line" jsonschema:"minLength=1,maxLength=256" jsonschema_description:"Only messages with this anywhere in header or text"`
	From          string         `json:"from,omitempty" acli:"form=line" jsonschema:"minLength=1,maxLength=256" jsonschema_description:"Only messages with this in the sender"`
	To            string         `json:"to,omitempty" acli:"form=line" jsonschema:"minLength=1,maxLength=256" jsonschema_description:"Only messages with this in the recipients"`
	Subject       string         `json:"subject,omitempty" acli:"form=line" jsonschema:"minLength=1,maxLength=256" jsonschema_description:"Only messages with this in the subject"`
	Text          string         `json:"text,omitempty" acli:"form=line" jsonschema:"minLength=1,maxLength=256" jsonschema_description:"Only messages with this in the body"`
	Unread        bool           `json:"unread,omitempty" jsonschema_description:"Only messages without the \\Seen flag"`
	HasAttachment bool           `json:"has-attachment,omitempty" jsonschema_description:"Only messages with an attachment"`
	LastDays      int            `json:"last-days,omitempty" jsonschema:"minimum=1,maximum=365" jsonschema_description:"Only messages of today and of this many days before"`
	StartDate     discovery.Date `json:"start-date,omitempty" jsonschema:"example=2026-02-01" jsonschema_description:"Only messages dated this day or later, as YYYY-MM-DD"`
	EndDate       discovery.Date `json:"end-date,omitempty" jsonschema:"example=2026-02-07" jsonschema_description:"Only messages dated this day or earlier, as YYYY-MM-DD"`
	Limit         int            `json:"limit,omitempty" acli:"short=n" jsonschema:"minimum=1,maximum=50,default=10" jsonschema_description:"At most this many"`
	Cursor        string         `json:"cursor,omitempty" acli:"form=line" jsonschema:"minLength=1,maxLength=8192" jsonschema_description:"next_cursor of an earlier answer, in place of the criteria"`
	Snippet       bool           `json:"snippet,omitempty" jsonschema_description:"Also the beginning of each text"`
	SnippetChars  int            `json:"snippet-chars,omitempty" acli:"requires=snippet" jsonschema:"minimum=50,maximum=500,default=200" jsonschema_description:"At most this many characters of it, with --snippet"`
}

// Validate checks what one option alone cannot (001 section 4).
func (a *mailSearchArgs) Validate() error {
	switch {
	case a.Cursor != "" && a.criteria() != (mailSearchArgs{}):
		return &discovery.Fault{Code: discovery.ValidationError, Message: "--cursor continues a search and takes no new criteria.",
			Hint: "Leave out the criteria, or leave out --cursor to begin a new search."}
	case a.LastDays != 0 && (!a.StartDate.IsZero() || !a.EndDate.IsZero()):
		return errors.New("--last-days cannot be combined with --start-date or --end-date")
	case !a.StartDate.IsZero() && !a.EndDate.IsZero() && a.EndDate.Before(a.StartDate.Time):
		return errors.New("--end-date is before --start-date")
	}
	return nil
}

// criteria are the arguments that say which messages match.
func (a *mailSearchArgs) criteria() mailSearchArgs {
	c := *a
	c.AccountOption = AccountOption{}
	c.Folder, c.Cursor, c.Limit, c.Snippet, c.SnippetChars = "", "", 0, false, 0
	return c
}

// MailSearchResult answers mail search (001 section 4).
type MailSearchResult struct {
	Outcome
	Account     string         `json:"account_id"`
	Folder      string         `json:"folder"`
	UIDValidity uint32         `json:"uidvalidity"`
	Total       int            `json:"total"`
	Attempted   int            `json:"attempted"`
	Returned    int            `json:"returned"`
	Failed      int            `json:"failed"`
	Messages    []MessageEntry `json:"messages"`
	NextCursor  string         `json:"next_cursor,omitempty"`
	HasMore     bool           `json:"has_more"`
	Truncated   bool           `json:"truncated,omitempty"`
}

func mailSearch(d *Deps) *discovery.Command {
	return newCommand(discovery.Spec{
		Path:    "mail search",
		Summary: "Search a folder on the server, newest first",
		Details: "All criteria must hold; each is matched without regard to case. A message's day is that of its Date field; --last-days counts in the zone of 'config timezone'.",
		Effect:  discovery.Read,
		Examples: []string{"mail search --query invoice", "mail search --from ann@example.org --last-days 30 --snippet",
			"mail search --folder Archive --subject 'spring meeting' --start-date 2026-02-01 --end-date 2026-02-28"},
	}, func(ctx context.Context, call *discovery.Call, args *mailSearchArgs) (*MailSearchResult, error) {
		name, err := d.account(ctx, call, args.AccountOption)
		if err != nil {
			return nil, err
		}
		call.Target = args.Folder
		q, err := d.searchQuery(ctx, call, args)
		if err != nil {
			return nil, err
		}
		page, err := d.Mailboxes.Search(mail.WithProgress(ctx, call.Progress), name, q)
		if err != nil {
			return nil, err
		}
		call.Target = page.Folder
		ids := d.shown(ctx, call, refsOf(page.Messages)...)
		r := &MailSearchResult{Outcome: outcome(append(page.Issues, ids.Issues...), len(page.Messages) > 0), Account: name, Folder: page.Folder, UIDValidity: page.UIDValidity,
			Total: page.Total, Attempted: page.Attempted, Returned: len(page.Messages), Failed: page.Failed, NextCursor: page.NextCursor,
			HasMore: page.HasMore}
		r.suggest(call, args, page.Messages)
		r.Messages = entriesOf(page.Messages)
		return r, nil
	})
}

func (d *Deps) searchQuery(ctx context.Context, call *discovery.Call, args *mailSearchArgs) (mailbox.SearchQuery, error) {
	q := mailbox.SearchQuery{Folder: args.Folder, Query: args.Query, From: args.From, To: args.To, Subject: args.Subject, Text: args.Text,
		Unread: args.Unread, HasAttachment: args.HasAttachment, Start: args.StartDate.Time, End: args.EndDate.Time, Limit: args.Limit,
		Cursor: args.Cursor, Snippet: args.Snippet, Full: call.Full}
	if args.Snippet {
		q.SnippetChars = args.SnippetChars
	}
	if args.LastDays > 0 {
		year, month, day, err := d.today(ctx)
		if err != nil {
			return q, err
		}
		q.Start = time.Date(year, month, day-args.LastDays, 0, 0, 0, 0, time.UTC)
	}
	bound, err := d.setting(ctx, "search_max_matches")
	if err == nil {
		q.MaxMatches, err = strconv.Atoi(bound)
	}
	return q, err
}

// suggest sets the next action: the next page, else the first message.
func (r *MailSearchResult) suggest(call *discovery.Call, args *mailSearchArgs, list []mailbox.Summary) {
	switch {
	case r.NextCursor != "":
		following := mailSearchArgs{AccountOption: AccountOption{r.Account}, Folder: r.Folder, Limit: args.Limit, Cursor: r.NextCursor,
			Snippet: args.Snippet, SnippetChars: args.SnippetChars}
		r.NextAction = nextLine("Show the next page", call.Again(&following))
	case len(list) > 0:
		r.NextAction = next("Read the first of them", "mail", "get", list[0].Ref.String())
	default:
		r.NextAction = next("Nothing matches: list the folder", "mail", "list", "--account", r.Account, "--folder", r.Folder)
	}
}

// Summary implements discovery.Summarizer.
func (r *MailSearchResult) Summary() string {
	return r.withIssues(count(r.Returned, "message", "messages") + " of " + count(r.Total, "match", "matches"))
}

// Truncate implements discovery.Truncator. No message is left out, since the
// cursor goes on behind the last.
func (r *MailSearchResult) Truncate(fraction float64) bool {
	r.Truncated = true
	return clipEntries(len(r.Messages), func(i int) *MessageEntry { return &r.Messages[i] }, fraction)
}
