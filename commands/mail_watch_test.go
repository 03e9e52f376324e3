package commands_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
)

func TestWatchPassesOnWhatIsAsked(t *testing.T) {
	b := newBench(t, nil, work("work", mail.ReadOnly))
	b.compact = true
	for line, want := range map[string]struct {
		q        mailbox.WatchQuery
		low, top time.Duration
	}{
		"mail watch":                  {mailbox.WatchQuery{Folder: "INBOX", FromNow: true, Limit: 50}, 50 * time.Second, 50 * time.Second},
		"mail watch --after-uid=-1":   {mailbox.WatchQuery{Folder: "INBOX", FromNow: true, Limit: 50}, 50 * time.Second, 50 * time.Second},
		"mail watch --after-uid 0":    {mailbox.WatchQuery{Folder: "INBOX", Limit: 50}, 50 * time.Second, 50 * time.Second},
		"mail watch --wait 4m --full": {mailbox.WatchQuery{Folder: "INBOX", FromNow: true, Limit: 50, Full: true}, 4 * time.Minute, 4 * time.Minute},
		"mail watch --folder Archive --after-uid 4294967295 --uidvalidity 7 -n 3 --wait 90": {mailbox.WatchQuery{Folder: "Archive", AfterUID: 1<<32 - 1, UIDValidity: 7, Limit: 3},
			90 * time.Second, 90 * time.Second},
		// The empty answer comes before the command would be stopped.
		"mail watch --wait 4m --timeout 8": {mailbox.WatchQuery{Folder: "INBOX", FromNow: true, Limit: 50}, 6 * time.Second, 7 * time.Second},
	} {
		start := time.Now()
		b.ok(t, line)
		got := b.watched
		if got.Aside == nil {
			t.Errorf("%s: the commands behind it would wait", line)
		}
		if until := got.Until; until.Before(start.Add(want.low)) || until.After(time.Now().Add(want.top)) {
			t.Errorf("%s: it waits %s", line, until.Sub(start))
		}
		got.Aside, got.Until = nil, time.Time{}
		if got.Folder != want.q.Folder || got.AfterUID != want.q.AfterUID || got.FromNow != want.q.FromNow || got.UIDValidity != want.q.UIDValidity ||
			got.Limit != want.q.Limit || got.Full != want.q.Full {
			t.Errorf("%s:\n%+v, want\n%+v", line, got, want.q)
		}
	}
}

func TestWatchRefuses(t *testing.T) {
	b := newBench(t, nil, work("work", mail.ReadOnly))
	for line, says := range map[string]string{
		"mail watch --uidvalidity 7":                   "--after-uid",
		"mail watch --uidvalidity 7 --after-uid=-1":    "--uidvalidity",
		"mail watch --after-uid=-2":                    "between -1 and 4294967295",
		"mail watch --after-uid 4294967296":            "between -1 and 4294967295",
		"mail watch --wait 291s":                       "at most 4m50s",
		"mail watch --wait 0":                          "must be a number of seconds",
		"mail watch --wait 1h":                         "must be a number of seconds",
		"mail watch --after-uid 1 --uidvalidity 0":     "between 1 and",
		"mail watch --limit 501":                       "between 1 and 500",
		"mail watch --folder ''":                       "must not be empty",
		"mail watch --after-uid 1 --uidvalidity 7 x":   "one value too many",
		"mail watch --after-uid 1 --after-uid 2":       "--after-uid",
		"mail watch --wait 5s --wait 6s --folder Sent": "--wait",
	} {
		b.fails(t, line, discovery.ValidationError, says)
	}
	if len(b.calls) > 0 {
		t.Errorf("it was watched all the same: %v", b.calls)
	}
}

func TestWatchShowsWhatMailListShows(t *testing.T) {
	b := newBench(t, nil, work("work", mail.ReadOnly))
	list := summaries(2, 20, 0)
	b.watch = mailbox.WatchPage{Page: mailbox.Page{UIDValidity: 7, Messages: list}, After: 4}
	b.page = mailbox.Page{UIDValidity: 7, Messages: list}
	messages := func(line string) string { return fmt.Sprint(b.ok(t, line+" --fields messages").Data) }
	if w, l := messages("mail watch"), messages("mail list"); w != l || !strings.Contains(w, "imap:work:INBOX:7:") {
		t.Errorf("watch shows %s\nlist shows  %s", w, l)
	}
	b.watch = mailbox.WatchPage{Page: mailbox.Page{UIDValidity: 7}, After: 4}
	if got := messages("mail watch"); got != "map[messages:[]]" {
		t.Errorf("nothing: %s", got)
	}
}
