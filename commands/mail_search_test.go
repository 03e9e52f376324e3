package commands_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
)

func TestSearchPassesOnWhatIsAsked(t *testing.T) {
	b := newFixture(t, nil, work("work", mail.ReadOnly))
	b.Compact = true
	b.OK(t, "config set search_max_matches 500")
	b.OK(t, "config set timezone Europe/Berlin")
	berlin, err := time.LoadLocation("Europe/Berlin")
	must(t, err)
	local := func(year int, month time.Month, day int) time.Time {
		return time.Date(year, month, day, 0, 0, 0, 0, berlin)
	}
	for line, want := range map[string]mailbox.SearchQuery{
		"mail search": {Limit: 20},
		"mail search a b --folder Archive,Sent --from x --to y --subject z --text w --unread --attachments --invitations -n 50": {Folders: []string{"Archive", "Sent"},
			Words: "a b", From: "x", To: "y", Subject: "z", Text: "w", Unread: true, Attachments: true, Invitations: true, Limit: 50},
		"mail search 'a b' c,d":                                         {Limit: 20, Words: "a b c,d"},
		"mail search --folder all":                                      {Limit: 20, Everywhere: true},
		"mail search --folder All --folder 'a\\,b'":                     {Limit: 20, Folders: []string{"All", "a,b"}},
		"mail search --since 2026-02-01 --until 2026-02-01":             {Limit: 20, Since: local(2026, 2, 1), Until: local(2026, 2, 2)},
		"mail search --since 2026-02-01T10:30 --until 2026-02-01T11:00": {Limit: 20, Since: local(2026, 2, 1).Add(10*time.Hour + 30*time.Minute), Until: local(2026, 2, 1).Add(11 * time.Hour)},
		"mail search --last-days 1":                                     {Limit: 20, Since: local(2026, 3, 9)}, // in Berlin it is the 10th
		"mail search --last-days 365":                                   {Limit: 20, Since: local(2025, 3, 10)},
		"mail search --snippet 50":                                      {Limit: 20, Snippet: 50},
		"mail search --cursor abc --limit 5 --folder Archive":           {Limit: 5, Cursor: "abc", Folders: []string{"Archive"}},
	} {
		want.MaxMatches = 500
		b.OK(t, line)
		if got := b.searched; !got.Since.Equal(want.Since) || !got.Until.Equal(want.Until) {
			t.Errorf("%s: from %v to %v", line, got.Since, got.Until)
		}
		b.searched.Since, b.searched.Until, want.Since, want.Until = time.Time{}, time.Time{}, time.Time{}, time.Time{}
		if !reflect.DeepEqual(b.searched, want) {
			t.Errorf("%s:\n%+v, want\n%+v", line, b.searched, want)
		}
	}
	b.OK(t, "config set timezone America/New_York")
	if b.OK(t, "mail search --last-days 1"); b.searched.Since.Format(time.DateOnly) != "2026-03-08" {
		t.Errorf("in New York it is the 9th: %v", b.searched.Since)
	}
}

func TestALargeSearchAnswerLosesNoMessage(t *testing.T) {
	b := newFixture(t, nil, work("work", mail.ReadOnly))
	list := summaries(50, 20000, 20000)
	b.search = mailbox.SearchPage{Page: mailbox.Page{Messages: list, HasMore: true}, Total: 70, Attempted: 50, NextCursor: "c"}
	e := b.OK(t, "mail search x --limit 50 --full")
	if n := len(e.Data["messages"].([]any)); n != 50 || e.Data["truncated"] != true || e.Data["next_cursor"] != "c" || e.Data["returned"] != 50.0 {
		t.Errorf("%d messages, truncated %v", n, e.Data["truncated"])
	}
}

// What a search could not look at is told, with the command that goes on.
func TestASearchInPartSaysHowItGoesOn(t *testing.T) {
	b := newFixture(t, nil, work("work", mail.ReadOnly))
	b.search = mailbox.SearchPage{Searched: []string{"All Mail"}, NextCursor: "c", Page: mailbox.Page{Issues: []mail.Issue{{Kind: mail.KindTimeout, Message: `Folder "A" was not searched.`}}}}
	want := `{"untrusted":"issues","searched":"All Mail","total":0,"columns":[],"rows":[],"issues":["TIMEOUT: Folder \"A\" was not searched."],"more":"mail search --cursor c"}`
	if got := b.Data(t, "mail search x"); got != want {
		t.Errorf("%s, want\n%s", got, want)
	}
}
