package outbox_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/outbox"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
)

var toTrash = mail.Action{Do: mail.DoTrash}

// newPlanFixture is a mailbox of n letters in INBOX, of which every other is a newsletter that
// the news search finds, but for the first few of them.
func newPlanFixture(t *testing.T, e mailtest.Endpoint, user string, n int, change ...func(*mail.Account)) *mailboxFixture {
	t.Helper()
	d := newMailboxFixture(t, e, user, append([]func(*mail.Account){approving}, change...)...)
	d.create("Sent", "Trash")
	var letters []mailtest.Letter
	for i := range n {
		l := mailtest.Letter{From: fmt.Sprintf("Shop %d <news@shop%d.example>", i%12, i%12), Subject: fmt.Sprintf("Offer %d", i), Date: time.Date(2026, 1, 1, 0, i, 0, 0, time.UTC).Format(time.RFC1123Z),
			Extra: "List-Unsubscribe: <https://shop.example/u>\r\nMessage-ID: <" + fmt.Sprint(i) + "@shop.example>\r\n"}
		if i%2 == 1 {
			l = mailtest.Letter{From: "Bob <bob@example.net>", Subject: fmt.Sprintf("Note %d", i)}
		}
		letters = append(letters, l)
	}
	d.box.Add("INBOX", letters...)
	return d
}

func (d *mailboxFixture) mustPlan(t *testing.T, q mailbox.SearchQuery, do mail.Action) *outbox.Decision {
	t.Helper()
	p, issues, err := d.Plan(t.Context(), account, q, do, "agent")
	if err != nil || len(issues) > 0 {
		t.Fatalf("%+v, %v", issues, err)
	}
	return p
}

// count is how many messages a folder has.
func (d *mailboxFixture) count(t *testing.T, folder string) int {
	t.Helper()
	box, err := d.box.Admin.Status(d.box.In(folder), &imap.StatusOptions{NumMessages: true}).Wait()
	must(t, err)
	return int(*box.NumMessages)
}

// TestAPlanOfManyNewslettersIsRunOnce is the errand that plans are for: two commands, and one
// question.
func TestAPlanOfManyNewslettersIsRunOnce(t *testing.T) {
	t.Parallel()
	_, e := mailtest.Shared(t, servertest.Config{})
	d := newPlanFixture(t, e, "newsletters", 1232)
	d.box.Add("INBOX", mailtest.Letter{From: "Ann's bank <bank@shop.example>", Subject: "Offer of a loan", Flags: []imap.Flag{imap.FlagFlagged}},
		mailtest.Letter{From: "Carol <carol@example.net>", Subject: "Offer accepted"})
	d.box.Add("Sent", mailtest.Letter{From: "ann@example.org", Subject: "Hi", Extra: "Cc: CAROL@example.net\r\n"})
	begin := time.Now()
	p := d.mustPlan(t, mailbox.SearchQuery{Subject: "offer"}, toTrash)
	t.Logf("planned in %s", time.Since(begin))
	text, err := json.Marshal(p.Plan)
	must(t, err)
	if p.Plan.Count != 618 || len(p.Plan.Senders) != mail.MaxPlanSenders || p.Plan.Senders[0].Count != 103 || p.Plan.Senders[7].Count != 1 || p.Plan.OtherSenders != 0 ||
		p.Plan.Personal != (mail.Personal{Any: 2, Flagged: 1, Known: 1, Unlisted: 2}) || p.Plan.Examples[0].From.Name != "Ann's bank" || !p.Waits() ||
		p.Why() != "more than 50 messages changed within ten minutes" {
		t.Errorf("%s", text)
	}
	t.Logf("%d bytes", len(text))
	e1, err := d.Run(t.Context(), p.ID, "agent")
	if err != nil || e1.State != mail.OutboxWaiting || d.count(t, "Trash") != 0 {
		t.Fatalf("%+v, %v", e1, err)
	}
	if again, err := d.Run(t.Context(), p.ID, "agent"); err != nil || again.State != mail.OutboxWaiting {
		t.Errorf("run again: %+v, %v", again, err)
	}
	d.box.Remove("INBOX", 1, 3)
	var told []string
	begin = time.Now()
	done, err := d.Approve(mail.WithProgress(t.Context(), func(done, total float64, _ string) { told = append(told, fmt.Sprint(done, " of ", total)) }), p.ID, p.Digest, "ann")
	t.Logf("run in %s", time.Since(begin))
	if err != nil || done.State != mail.OutboxDone || done.Plan.Outcome != (mail.PlanOutcome{Done: 616, Gone: 2}) || d.count(t, "Trash") != 616 || d.count(t, "INBOX") != 616 ||
		!strings.Contains(strings.Join(told, ", "), "500 of 618") {
		t.Errorf("%+v, %v; %d in the trash; told %s", done, err, d.count(t, "Trash"), told)
	}
	for _, err := range []error{second(d.Run(t.Context(), p.ID, "agent")), second(d.Approve(t.Context(), p.ID, p.Digest, "ann"))} {
		mailtest.WantKind(t, err, mail.KindConflict)
	}
}
