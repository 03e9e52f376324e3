package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
)

// everywhere is the value of --folder for every folder.
const everywhere = "all"

type mailSearchArgs struct {
	argument.AccountsOption
	criteria
	To      string `json:"to,omitempty" acli:"form=line,value=A,also=recipient" jsonschema:"minLength=1,maxLength=256" jsonschema_description:"In the recipients"`
	Snippet int    `json:"snippet,omitempty" acli:"form=snippet" jsonschema_description:"Also the opening of each text, in characters"`
	Limit   int    `json:"limit,omitempty" acli:"form=search_limit,short=n,also=max-results|count|page-size" jsonschema_description:"At most this many"`
	Cursor  string `json:"cursor,omitempty" acli:"form=line,rare" jsonschema:"minLength=1,maxLength=8192" jsonschema_description:"Goes on, without criteria"`
}

// criteria say which messages are meant.
type criteria struct {
	Words       []string           `json:"words,omitempty" acli:"positional,form=line,also=query|q|keyword|keywords|term|search" jsonschema:"maxItems=50,minLength=1,maxLength=256" jsonschema_description:"One phrase"`
	Folders     []string           `json:"folder,omitempty" acli:"form=folder,value=all|F" jsonschema:"maxItems=50" jsonschema_description:"These; all for Junk and Trash too"`
	From        string             `json:"from,omitempty" acli:"form=line,value=A,also=sender" jsonschema:"minLength=1,maxLength=256" jsonschema_description:"In the sender"`
	Subject     string             `json:"subject,omitempty" acli:"form=line" jsonschema:"minLength=1,maxLength=256" jsonschema_description:"In the subject"`
	Text        string             `json:"text,omitempty" acli:"form=line,rare" jsonschema:"minLength=1,maxLength=256" jsonschema_description:"In the text"`
	Unread      bool               `json:"unread,omitempty" jsonschema_description:"Unread ones"`
	Attachments bool               `json:"attachments,omitempty" jsonschema_description:"With an attachment"`
	Invitations bool               `json:"invitations,omitempty" jsonschema_description:"With a calendar event"`
	Since       discovery.Datetime `json:"since,omitempty" acli:"also=start-date|start|after|from-date|date-from|today|on" jsonschema:"example=2026-02-02" jsonschema_description:"From then on; a date: from its start"`
	Until       discovery.Datetime `json:"until,omitempty" acli:"also=end-date|end|before|to-date|date-to" jsonschema:"example=2026-02-07" jsonschema_description:"Before then; a date: to its end"`
	LastDays    int                `json:"last-days,omitempty" acli:"rare" jsonschema:"minimum=1,maximum=365" jsonschema_description:"Today and this many days before"`
}

// Validate checks what one option alone cannot (001 section 4).
func (a *mailSearchArgs) Validate() error {
	if a.Cursor != "" && (a.selects() || a.To != "") {
		return &discovery.Fault{Code: discovery.ValidationError, Message: "--cursor continues a search and takes no new criteria.",
			Hint: "Leave out the criteria, or leave out --cursor to begin a new search."}
	}
	return a.criteria.Validate()
}

// Validate checks what one option alone cannot.
func (a *criteria) Validate() error {
	until := wholeDay(a.Until)
	switch {
	case utf8.RuneCountInString(strings.Join(a.Words, " ")) > 256:
		return errors.New("the words have more than 256 characters together")
	case a.LastDays != 0 && (!a.Since.IsZero() || !a.Until.IsZero()):
		return errors.New("--last-days cannot be combined with --since or --until")
	case !a.Since.IsZero() && !until.IsZero() && !until.After(a.Since.Time):
		return errors.New("--until is not after --since")
	case len(a.Folders) > 1 && slices.Contains(a.Folders, everywhere):
		return errors.New("--folder takes all alone, or the names of folders")
	}
	return nil
}

// selects reports whether any of them says which messages match.
func (a *criteria) selects() bool {
	return len(a.Words) > 0 || a.From+a.Subject+a.Text != "" || a.Unread || a.Attachments || a.Invitations || a.LastDays != 0 ||
		!a.Since.IsZero() || !a.Until.IsZero()
}

// wholeDay is the first instant that is too late for a bound; a date alone includes its
// day.
func wholeDay(t discovery.Datetime) time.Time {
	if t.DateOnly {
		return t.AddDate(0, 0, 1)
	}
	return t.Time
}

// MailSearchResult answers mail search (001 section 4). Folder and UIDValidity are those of
// the one folder that was searched.
type MailSearchResult struct {
	answer.Outcome
	Account     string         `json:"account_id"`
	Folder      string         `json:"folder,omitempty" acli:"untrusted"`
	UIDValidity uint32         `json:"uidvalidity,omitempty"`
	Searched    []string       `json:"searched" acli:"untrusted"`
	Total       int            `json:"total"`
	Attempted   int            `json:"attempted"`
	Returned    int            `json:"returned"`
	Failed      int            `json:"failed"`
	Messages    []MessageEntry `json:"messages"`
	NextCursor  string         `json:"next_cursor,omitempty"`
	HasMore     bool           `json:"has_more"`
	Truncated   bool           `json:"truncated,omitempty"`

	leftOut []string       // folders for junk and deleted messages that were not searched
	beyond  int            // matches in these, where nothing else matches; -1 where that is not known
	first   string         // of the accounts
	implied []mailbox.Mark // marks that the criteria imply
	when    map[mail.Ref]string
	args    *mailSearchArgs
}

// mailSearchBrief is the compact answer of mail search.
type mailSearchBrief struct {
	Searched string `json:"searched"` // all folders in words, else those that were named
	Total    int    `json:"total"`
	discovery.Table[searchRow]
	answer.Rest
}

// searchRow is a message that was found. When is set with --invitations: when the event
// begins, and its state where that is not a plain request.
type searchRow struct {
	messageRow
	When string `json:"when"`
}

// Brief is the answer without --full.
func (r *MailSearchResult) Brief() mailSearchBrief {
	rows := []searchRow{}
	for i, row := range rowsOf(r.Messages, r.IDs, r.implied...) {
		rows = append(rows, searchRow{row, r.when[r.Messages[i].summary.Ref]})
	}
	b := mailSearchBrief{r.scope(), r.Total, discovery.TableOf(rows), r.Rest(nil)}
	switch {
	case r.NextCursor != "":
		b.Rest = r.Rest(r.NextAction)
	case len(r.Messages) == 0 && r.args.Cursor == "":
		b.Hint = r.elsewhere()
	}
	return b
}

// scope says which folders were searched.
func (r *MailSearchResult) scope() string {
	everything := len(r.args.Folders) == 0 && len(r.Searched) > 1 || slices.Equal(r.args.Folders, []string{everywhere})
	switch {
	case !everything:
		return strings.Join(r.Searched, ", ")
	case len(r.leftOut) == 0:
		return "all folders"
	}
	return "all folders but " + listed(r.leftOut)
}

// hasOperator reports whether a word begins as other programs name a criterion.
func hasOperator(word string) bool {
	name, _, ok := strings.Cut(strings.ToLower(word), ":")
	return ok && slices.Contains([]string{"from", "to", "cc", "subject", "in", "is", "has", "label", "after", "before", "newer_than", "older_than"}, name)
}

// elsewhere says where else to look when nothing was found.
func (r *MailSearchResult) elsewhere() string {
	var ways []string
	if len(r.args.Words) > 0 {
		ways = append(ways, "fewer or other words (they match as one phrase)")
	}
	if slices.ContainsFunc(r.args.Words, hasOperator) {
		ways = []string{"options, such as --from ann: words with a colon match as they are"}
	}
	if n := strings.Count(r.args.From+r.args.To, " "); n > 0 {
		ways = append(ways, "only the address or only the name")
	}
	nothing := "Nothing matches"
	if r.beyond == 0 {
		nothing += ", in " + listed(r.leftOut) + " neither"
	} else if r.beyond > 0 {
		ways = []string{fmt.Sprintf("--folder all: in %s %s", listed(r.leftOut), answer.Count(r.beyond, "message matches", "messages match"))}
	} else if len(r.leftOut) > 0 {
		ways = append(ways, "--folder all for "+listed(r.leftOut)+" too")
	} else if len(r.args.Folders) > 0 && r.args.Folders[0] != everywhere {
		ways = append(ways, "other folders, without --folder")
	}
	if len(ways) == 0 {
		return nothing + ". Try fewer criteria."
	}
	return nothing + ". Try " + strings.Join(ways, "; ") + "."
}

// listed are names as a sentence has them.
func listed(names []string) string {
	if n := len(names) - 1; n > 0 {
		return strings.Join(names[:n], ", ") + " and " + names[n]
	}
	return strings.Join(names, "")
}

func mailSearch(d *Deps) *discovery.Command {
	return argument.Command(discovery.Spec{
		Path:     "mail search",
		Also:     []string{"find", "grep", "query", "filter"},
		Forms:    bounds,
		Summary:  "WORDS: a phrase in subject or text; all folders but Junk and Trash",
		Details:  "All criteria must hold. Newest first, as received; copies once.",
		Effect:   discovery.Read,
		Examples: []string{"mail search invoice --since 2026-02-01", "mail search 'spring meeting' --folder Archive,Sent"},
	}, func(ctx context.Context, call *discovery.Call, args *mailSearchArgs) (*MailSearchResult, error) {
		names, all, err := d.accounts(ctx, call, args.AccountsOption)
		if err != nil {
			return nil, err
		}
		call.Target = strings.Join(args.Folders, ",")
		q, err := d.searchQuery(ctx, call, args)
		if err != nil {
			return nil, err
		}
		page, err := d.Mailboxes.Search(ctx, names, q)
		if err != nil {
			return nil, err
		}
		beyond := -1
		if page.Total == 0 && len(page.Issues) == 0 && !page.HasMore && len(page.LeftOut) > 0 && args.Cursor == "" {
			q.Folders, q.Everywhere, q.Limit, q.Snippet = nil, true, 1, 0
			if p, err := d.Mailboxes.Search(ctx, names, q); err == nil {
				beyond = p.Total
			}
		}
		ids := d.shown(ctx, call, refsOf(page.Messages)...)
		r := &MailSearchResult{beyond: beyond, Outcome: answer.OutcomeOf(append(page.Issues, ids.Issues...), len(page.Messages) > 0), Account: names[0], Folder: page.Folder, UIDValidity: page.UIDValidity,
			Searched: append([]string{}, page.Searched...), Total: page.Total, Attempted: page.Attempted, Returned: len(page.Messages), Failed: page.Failed,
			NextCursor: page.NextCursor, HasMore: page.HasMore, leftOut: page.LeftOut, first: names[0], args: args}
		r.IDs = ids
		if all {
			r.Account = argument.AllAccounts
		}
		for mark, is := range map[mailbox.Mark]bool{mailbox.Unread: page.Unread, mailbox.HasAttachments: page.Attachments, mailbox.Invitation: page.Invitations} {
			if is {
				r.implied = append(r.implied, mark)
			}
		}
		if page.Invitations && !call.Full {
			r.when = d.when(ctx, page.Messages)
		}
		r.Messages = entriesOf(page.Messages)
		r.suggest(call)
		return r, nil
	})
}

// when is when the event of each invitation begins. One that cannot be read has none.
func (d *Deps) when(ctx context.Context, list []mailbox.Summary) map[mail.Ref]string {
	accounts := map[string][]mail.Ref{}
	for i := range list {
		accounts[list[i].Ref.Account] = append(accounts[list[i].Ref.Account], list[i].Ref)
	}
	when := map[mail.Ref]string{}
	for account, refs := range accounts {
		for some := range slices.Chunk(refs, 20) { // as many as one GetEach takes
			got, err := d.Mailboxes.GetEach(ctx, account, some, mailbox.GetQuery{Headers: mailbox.HeadersNone})
			if err != nil {
				continue
			}
			for _, m := range got.Messages {
				for _, a := range m.Attachments {
					for _, e := range a.Events {
						begins := strings.TrimSpace(eventTime(&e, e.Start, answer.Minute) + " " + e.Zone)
						if when[m.Ref] == "" && e.State == "requested" {
							when[m.Ref] = begins
						} else if when[m.Ref] == "" {
							when[m.Ref] = strings.TrimSpace(begins + " " + e.State)
						}
					}
				}
			}
		}
	}
	return when
}

func (d *Deps) searchQuery(ctx context.Context, call *discovery.Call, args *mailSearchArgs) (mailbox.SearchQuery, error) {
	q, err := d.query(ctx, &args.criteria)
	q.To, q.Limit, q.Cursor, q.Snippet, q.Full = args.To, args.Limit, args.Cursor, args.Snippet, call.Full
	return q, err
}

func (d *Deps) query(ctx context.Context, of *criteria) (mailbox.SearchQuery, error) {
	q := mailbox.SearchQuery{Folders: of.Folders, Words: strings.Join(of.Words, " "), From: of.From, Subject: of.Subject, Text: of.Text,
		Unread: of.Unread, Attachments: of.Attachments, Invitations: of.Invitations, Since: of.Since.Time, Until: wholeDay(of.Until)}
	if slices.Equal(q.Folders, []string{everywhere}) {
		q.Folders, q.Everywhere = nil, true
	}
	if of.LastDays > 0 {
		today, err := d.today(ctx)
		if err != nil {
			return q, err
		}
		q.Since = today.AddDate(0, 0, -of.LastDays)
	}
	bound, err := d.setting(ctx, "search_max_matches")
	if err == nil {
		q.MaxMatches, err = strconv.Atoi(bound)
	}
	return q, err
}

// suggest sets the next action: the next page, else the first message, else another search.
func (r *MailSearchResult) suggest(call *discovery.Call) {
	following := *r.args
	if call.Full {
		following.Account = r.Account
	}
	switch {
	case r.NextCursor != "":
		r.NextAction = answer.NextLine("Show the next page", call.Again(&mailSearchArgs{AccountsOption: following.AccountsOption, Limit: following.Limit,
			Cursor: r.NextCursor, Snippet: following.Snippet}))
	case len(r.Messages) > 0:
		r.NextAction = answer.Next("Read the first of them", "mail", "get", r.Messages[0].ID)
	case len(r.leftOut) > 0 && len(r.args.Folders) == 0 && r.args.Cursor == "" && r.beyond != 0:
		following.Folders = []string{everywhere}
		r.NextAction = answer.NextLine("Nothing matches: search "+listed(r.leftOut)+" too", call.Again(&following))
	default:
		r.NextAction = answer.Next(strings.TrimSuffix(r.elsewhere(), ".")+", or list the newest messages", "mail", "list", "--account", r.first)
	}
}

// Summary implements discovery.Summarizer.
func (r *MailSearchResult) Summary() string {
	return r.WithIssues(answer.Count(r.Returned, "message", "messages") + " of " + answer.Count(r.Total, "match", "matches"))
}

// Truncate implements discovery.Truncator. No message is left out, since the
// cursor goes on behind the last.
func (r *MailSearchResult) Truncate(fraction float64) bool {
	r.Truncated = true
	return clipEntries(len(r.Messages), func(i int) *MessageEntry { return &r.Messages[i] }, fraction)
}
