package commands_test

import (
	"context"
	"testing"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
)

func TestWatchPassesOnWhatIsAsked(t *testing.T) {
	b := newFixture(t, nil, work("work", mail.ReadOnly))
	b.Compact = true
	for line, want := range map[string]struct {
		q        mailbox.WatchQuery
		low, top time.Duration
	}{
		"mail watch":                  {mailbox.WatchQuery{Folder: "INBOX", FromNow: true, Limit: 50}, 50 * time.Second, 50 * time.Second},
		"mail watch --after 0":        {mailbox.WatchQuery{Folder: "INBOX", Limit: 50}, 50 * time.Second, 50 * time.Second},
		"mail watch --wait 4m --full": {mailbox.WatchQuery{Folder: "INBOX", FromNow: true, Limit: 50, Full: true}, 4 * time.Minute, 4 * time.Minute},
		"mail watch --after imap:work:Archive:7:4294967295 -n 3 --wait 90": {mailbox.WatchQuery{Folder: "Archive", After: mail.Ref{UIDValidity: 7, UID: 1<<32 - 1}, Limit: 3},
			90 * time.Second, 90 * time.Second},
		// The empty answer comes before the command would be stopped.
		"mail watch --wait 4m --timeout 8": {mailbox.WatchQuery{Folder: "INBOX", FromNow: true, Limit: 50}, 6 * time.Second, 7 * time.Second},
	} {
		start := time.Now()
		b.OK(t, line)
		got := b.watched
		if got.Aside == nil {
			t.Errorf("%s: the commands behind it would wait", line)
		}
		if until := got.Until; until.Before(start.Add(want.low)) || until.After(time.Now().Add(want.top)) {
			t.Errorf("%s: it waits %s", line, until.Sub(start))
		}
		got.Aside, got.Until = nil, time.Time{}
		if got.Folder != want.q.Folder || got.After.UID != want.q.After.UID || got.FromNow != want.q.FromNow || got.After.UIDValidity != want.q.After.UIDValidity ||
			got.Limit != want.q.Limit || got.Full != want.q.Full {
			t.Errorf("%s:\n%+v, want\n%+v", line, got, want.q)
		}
	}
}

// A watch of all accounts ends when something arrives in one, and goes on in each.
func TestWatchOfAllAccounts(t *testing.T) {
	b := newFixture(t, nil, work("home", mail.ReadOnly), work("lost", mail.ReadOnly), work("work", mail.ReadOnly))
	b.Compact = true
	came := mailbox.Summary{Ref: mail.Ref{Protocol: mail.IMAP, Account: "work", Folder: "INBOX", UIDValidity: 7, UID: 6}, Subject: "new", From: []mail.Address{{Addr: "ann@example.org"}}, Flags: []string{`\Seen`}}
	b.watching = func(ctx context.Context, account string, q mailbox.WatchQuery) (*mailbox.WatchPage, error) {
		p := &mailbox.WatchPage{Page: mailbox.Page{Folder: q.Folder, UIDValidity: 7}, After: mail.Ref{Protocol: mail.IMAP, Account: account, Folder: q.Folder, UIDValidity: 7, UID: q.After.UID}}
		switch {
		case account == "lost":
			return nil, &mail.Error{Kind: mail.KindConnection, Stage: "connect", Message: "Away."}
		case account == "work" && (q.Match == nil || q.Match(&came)):
			p.Messages, p.After = []mailbox.Summary{came}, came.Ref
		default:
			select {
			case <-q.Stop:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		return p, nil
	}
	got := b.Data(t, "mail watch --account all --after home:0 --subject NEW --from ann@")
	want := `{"untrusted":"from subject issues","folder":"INBOX","now":"2026-03-09T23:30Z","columns":["id","from","subject"],"rows":[["work:6","ann@example.org","new"]],` +
		`"issues":["CONNECTION_FAILED: Account lost: Away."],"more":"mail watch --account all --from ann@ --subject NEW --after home:0,work:6"}`
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
