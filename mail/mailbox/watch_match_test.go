package mailbox_test

import (
	"strings"
	"testing"

	"github.com/postern-mail/postern/mail/mailbox"
)

// A watch with a condition passes over what does not meet it, whether it was there before or
// arrives, however little it may list at once.
func TestWatchWaitsForWhatMatches(t *testing.T) {
	matches := func(s *mailbox.Summary) bool { return strings.HasPrefix(s.Subject, "wanted") }
	onWatchable(t, "match", func(t *testing.T, b *box) {
		first := b.Add("INBOX", letter{Subject: "other"}, letter{Subject: "other"}, letter{Subject: "wanted 1"}, letter{Subject: "other"})
		p := b.watch(mailbox.WatchQuery{Match: matches}).wants("wanted 1")
		if p.After < first[2] {
			t.Errorf("goes on behind %d", p.After)
		}
		b.watch(mailbox.WatchQuery{Match: matches, Limit: 1}).wants("wanted 1")
		w := b.watch(mailbox.WatchQuery{Match: matches, AfterUID: p.After, Limit: 1})
		everything := b.watch(mailbox.WatchQuery{FromNow: true})
		b.Add("INBOX", letter{Subject: "unwanted"})
		everything.wants("unwanted")
		b.Add("INBOX", letter{Subject: "wanted 2"})
		w.wants("wanted 2")
	})
}

// A watch that is stopped answers as one whose time is up, and misses nothing.
func TestAWatchIsStopped(t *testing.T) {
	onWatchable(t, "stop", func(t *testing.T, b *box) {
		uid := b.Add("INBOX", letter{Subject: "old"})[0]
		stop := make(chan struct{})
		w := b.watch(mailbox.WatchQuery{FromNow: true, Stop: stop})
		close(stop)
		if p := w.wants(); p.After != uid {
			t.Errorf("%+v", p)
		}
		if p := b.watch(mailbox.WatchQuery{FromNow: true, Stop: stop}).wants(); p.After != uid {
			t.Errorf("stopped before it began: %+v", p)
		}
		b.Add("INBOX", letter{Subject: "new"})
		b.watch(mailbox.WatchQuery{AfterUID: uid, Stop: stop}).wants("new")
	})
}
