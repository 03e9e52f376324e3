package commands_test

import (
	"context"
	"maps"
	"slices"
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
	boxes := mailbox.New(mailbox.Options{Directory: b.vault, Seen: b.vault})
	t.Cleanup(func() { _ = boxes.Close() })
	b.deps.Mailboxes = boxes
	var asked atomic.Int64 // the clock goes on, as entries are in the order of their times
	b.deps.Outbox = outbox.New(outbox.Options{Directory: b.vault, Mailboxes: boxes, Store: b.vault,
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

// idsOf are those of the messages of an answer.
func idsOf(e envelope) []string {
	var ids []string
	for _, m := range e.Data["messages"].([]any) {
		ids = append(ids, m.(map[string]any)["message_id"].(string))
	}
	return ids
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

func TestPagingGoesThroughAllOfTheDemo(t *testing.T) {
	b := newDemo(t)
	var listed []string
	for line := "mail list --limit 7 --oldest-first"; strings.HasPrefix(line, "mail list"); {
		e := b.OK(t, line)
		listed = append(listed, idsOf(e)...)
		if line = e.Next(); len(listed) > 60 {
			t.Fatal("paging does not end")
		}
	}
	if len(listed) != 50 || !slices.IsSortedFunc(listed, func(a, b string) int {
		x, _ := mail.ParseRef(a)
		y, _ := mail.ParseRef(b)
		return int(x.UID) - int(y.UID)
	}) {
		t.Errorf("paging gives %d messages: %q", len(listed), listed)
	}
	var found []string
	for line := "mail search --text the --limit 5 --snippet 60"; strings.HasPrefix(line, "mail search"); {
		e := b.OK(t, line)
		found = append(found, idsOf(e)...)
		if line = e.Next(); float64(len(found)) > e.Data["total"].(float64) {
			t.Fatal("paging does not end")
		}
		if line == "" || !strings.HasPrefix(line, "mail search") {
			if float64(len(found)) != e.Data["total"].(float64) || len(found) < 6 {
				t.Errorf("%d messages of %v", len(found), e.Data["total"])
			}
		}
	}
	if e := b.OK(t, "mail thread "+listed[len(listed)-10]); len(idsOf(e)) < 2 {
		t.Errorf("a conversation of %q", idsOf(e))
	}
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
	marks := map[string]int{}
	for _, r := range rows {
		r := r.([]any)
		if subject := r[3].(string); strings.Contains(r[2].(string), "…") || strings.Contains(subject, "…") && len([]rune(subject)) < 100 {
			t.Errorf("%v is cut", r)
		}
		for _, word := range strings.Fields(r[4].(string)) {
			marks[word]++
		}
	}
	for _, word := range []string{"unread", "answered", "flagged", "attachments", "invitation"} {
		if marks[word] == 0 || marks[word] == 50 {
			t.Errorf("%d messages are marked %s", marks[word], word)
		}
	}
	if more := b.OK(t, "mail list --limit 3").Data["more"].(string); more != "mail list --before 48 --limit 3" {
		t.Errorf("goes on with %s", more)
	}
	cut := 0
	for _, r := range b.OK(t, "mail list --snippet 60 --fields snippet").Data["rows"].([]any) {
		s := r.([]any)[0].(string)
		if strings.HasSuffix(s, "…") {
			cut++
		}
		if len([]rune(s)) > 60 || strings.Contains(s, "\n") {
			t.Errorf("snippet %q", s)
		}
	}
	if cut < 40 {
		t.Errorf("%d snippets are cut", cut)
	}
	if strings.Contains(b.Data(t, "mail list --unread"), `unread"`) {
		t.Error("every message of the unread says that it is unread")
	}
	t.Logf("%d bytes; with snippets of 120 characters %d", b.OK(t, "mail list").Size, b.OK(t, "mail list --snippet 120").Size)
}
