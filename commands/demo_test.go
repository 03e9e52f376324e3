package commands_test

import (
	"context"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postern-mail/postern/commands/internal/commandtest"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/demo"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/outbox"
)

// tooLarge is a file that no sample server takes.
var tooLarge = make([]byte, 25<<20)

// newDemo is a fixture on real Mailboxes and the sample servers, whose account may be changed.
// More accounts of that mailbox have these names; the password of one named lost is wrong.
func newDemo(t testing.TB, more ...string) *fixture {
	t.Helper()
	servers, err := demo.Start(demo.Options{Now: func() time.Time { return at }})
	must(t, err)
	t.Cleanup(func() { _ = servers.Close() })
	b := newFixture(t, nil)
	boxes := mailbox.New(mailbox.Options{Directory: b.vault, Seen: b.vault, Journal: journal{b.vault}})
	t.Cleanup(func() { _ = boxes.Close() })
	b.deps.Mailboxes = boxes
	var asked atomic.Int64 // the clock goes on, as entries are in the order of their times
	b.deps.Outbox = outbox.New(outbox.Options{Directory: b.vault, Mailboxes: boxes, Store: b.vault, Journal: journal{b.vault},
		Now: func() time.Time { return at.Add(time.Duration(asked.Add(1)) * time.Millisecond) },
		Key: func(ctx context.Context) ([]byte, error) { return b.vault.Key(ctx, "outbox") }})
	maps.Copy(b.saved, fakeFiles{"letters/one.txt": []byte("\ufeffDear Ann,\r\n\r\nyours."), "a/b.pdf": {0, 1, 2}, "c.txt": []byte("c"),
		"latin": []byte("Gr\xfc\xdfe"), "big": tooLarge})
	a := servers.Account()
	a.Mode, a.ProcessBacklog = mail.ReadWrite, true
	for _, a.Name = range append(more, a.Name) {
		password := servers.Password
		if a.Name == "lost" {
			password = mail.NewSecret([]byte("wrong"))
		}
		must(t, b.vault.AddAccount(t.Context(), a, password))
	}
	return b
}

// TestAnswersOnTheDemo has the answers of testdata/demo.
func TestAnswersOnTheDemo(t *testing.T) {
	t.Parallel()
	commandtest.Answers(t, "testdata/demo/*.txt", *update, func(t *testing.T, name string) *commandtest.Caller {
		if name == "all" {
			return &newDemo(t, "second", "lost").Caller
		}
		return &newDemo(t).Caller
	})
}

// Fifty messages with whole subjects and senders cost a reader at most 6.6 kB.
func TestAListOfFiftyIsSmall(t *testing.T) {
	b := newDemo(t)
	b.Compact = true
	e := b.OK(t, "mail list")
	rows := e.Data["rows"].([]any)
	if len(rows) != 50 || e.Size > 6600 {
		t.Errorf("%d messages in %d bytes", len(rows), e.Size)
	}
	for _, r := range rows {
		r := r.([]any)
		if subject := r[3].(string); strings.Contains(r[2].(string), "…") || strings.Contains(subject, "…") && len([]rune(subject)) < 100 {
			t.Errorf("%v is cut", r)
		}
	}
}
