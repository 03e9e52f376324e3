package commands_test

import (
	"testing"
	"time"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
)

func day(month time.Month, day int) time.Time {
	return time.Date(2026, month, day, 0, 0, 0, 0, time.UTC)
}

func TestSearchPassesOnWhatIsAsked(t *testing.T) {
	b := newBench(t, nil, work("work", mail.ReadOnly))
	b.compact = true
	b.ok(t, "config set search_max_matches 500")
	b.ok(t, "config set timezone Europe/Berlin")
	for line, want := range map[string]mailbox.SearchQuery{
		"mail search": {Limit: 10},
		"mail search --folder Archive --query 'a b' --from x --to y --subject z --text w --unread --has-attachment -n 50 --full": {Folder: "Archive", Query: "a b",
			From: "x", To: "y", Subject: "z", Text: "w", Unread: true, HasAttachment: true, Limit: 50, Full: true},
		"mail search --start-date 2026-02-01 --end-date 2026-02-01": {Limit: 10, Start: day(2, 1), End: day(2, 1)},
		"mail search --last-days 1":                                 {Limit: 10, Start: day(3, 9)}, // in Berlin it is the 10th
		"mail search --last-days 365":                               {Limit: 10, Start: time.Date(2025, 3, 10, 0, 0, 0, 0, time.UTC)},
		"mail search --snippet":                                     {Limit: 10, Snippet: true, SnippetChars: 200},
		"mail search --snippet --snippet-chars 50":                  {Limit: 10, Snippet: true, SnippetChars: 50},
		"mail search --cursor abc --limit 5 --folder Archive":       {Limit: 5, Cursor: "abc", Folder: "Archive"},
	} {
		want.MaxMatches = 500
		b.ok(t, line)
		if b.searched != want {
			t.Errorf("%s:\n%+v, want\n%+v", line, b.searched, want)
		}
	}
	b.ok(t, "config set timezone America/New_York")
	if b.ok(t, "mail search --last-days 1"); !b.searched.Start.Equal(day(3, 8)) {
		t.Errorf("in New York it is the 9th: %v", b.searched.Start)
	}
}

func TestSearchRefuses(t *testing.T) {
	b := newBench(t, nil, work("work", mail.ReadOnly))
	for line, says := range map[string]string{
		"mail search --cursor abc --query x":                        "--cursor",
		"mail search --cursor abc --from x":                         "--cursor",
		"mail search --cursor abc --unread":                         "--cursor",
		"mail search --cursor abc --has-attachment":                 "--cursor",
		"mail search --cursor abc --last-days 1":                    "--cursor",
		"mail search --cursor abc --start-date 2026-02-01":          "--cursor",
		"mail search --cursor abc --end-date 2026-02-01":            "--cursor",
		"mail search --last-days 1 --start-date 2026-02-01":         "--last-days",
		"mail search --last-days 1 --end-date 2026-02-01":           "--last-days",
		"mail search --start-date 2026-02-02 --end-date 2026-02-01": "--end-date is before",
		"mail search --start-date 2026-02-30":                       "must be a day",
		"mail search --start-date 2026-02-03T10:00:00Z":             "must be a day",
		"mail search --snippet-chars 100":                           "only together with --snippet",
		"mail search --snippet --snippet-chars 49":                  "between 50 and 500",
		"mail search --query \"a\\nb\"":                             "must be one line",
		"mail search --query ''":                                    "must not be empty",
		"mail search --limit 51":                                    "between 1 and 50",
		"mail search --last-days 366":                               "between 1 and 365",
	} {
		b.fails(t, line, discovery.ValidationError, says)
	}
	if len(b.calls) != 0 {
		t.Errorf("searched all the same: %q", b.calls)
	}
}

func TestALargeSearchAnswerLosesNoMessage(t *testing.T) {
	b := newBench(t, nil, work("work", mail.ReadOnly))
	list := summaries(50, 20000, 20000)
	b.search = mailbox.SearchPage{Page: mailbox.Page{Messages: list, HasMore: true}, Total: 70, Attempted: 50, NextCursor: "c"}
	e := b.ok(t, "mail search --query x --limit 50 --full")
	if n := len(e.Data["messages"].([]any)); n != 50 || e.Data["truncated"] != true || e.Data["next_cursor"] != "c" || e.Data["returned"] != 50.0 {
		t.Errorf("%d messages, truncated %v", n, e.Data["truncated"])
	}
}
