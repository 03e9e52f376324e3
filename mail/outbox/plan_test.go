package outbox_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/outbox"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
	"github.com/postern-mail/postern/vault"
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

// inTwo are a plan of what is in two folders, and so of two pieces.
var inTwo = mailbox.SearchQuery{Folders: []string{"INBOX", "Box"}}

func twoFolders(d *mailboxFixture) {
	d.create("Trash", "Box")
	d.box.Add("INBOX", mailtest.Letter{Subject: "One"}, mailtest.Letter{Subject: "Two"})
	d.box.Add("Box", mailtest.Letter{Subject: "Three"})
}

// A process that is killed while it runs a plan leaves one that goes on with the rest. What was
// moved before it was written down is known from the journal.
func TestKilledWhileAPlanIsRun(t *testing.T) {
	t.Parallel()
	for moment, trashed := range map[string]int{"before gate": 0, "after gate": 0, "before piece": 2, "after piece": 2, "before outcome": 3, "after outcome": 3} {
		t.Run(moment, func(t *testing.T) {
			t.Parallel()
			c := newCrashFixture(t, mail.Approve)
			d := c.mailbox
			twoFolders(d)
			p := d.mustPlan(t, inTwo, toTrash)
			c.kill(moment, orders{Approve: true})
			if got := d.count(t, "Trash"); got != trashed {
				t.Fatalf("%d were moved", got)
			}
			if moment == "before piece" { // whoever has the lease may still be at it
				mailtest.WantKind(t, second(d.Run(t.Context(), p.ID, "agent")), mail.KindConflict)
			}
			d.now = func() time.Time { return time.Now().Add(time.Hour) }
			got, err := d.Run(t.Context(), p.ID, "agent")
			if moment == "after outcome" {
				mailtest.WantKind(t, err, mail.KindConflict)
			} else {
				must(t, err)
			}
			if got.State != mail.OutboxDone || got.Plan.Outcome != (mail.PlanOutcome{Done: 3}) || d.count(t, "Trash") != 3 {
				t.Errorf("%+v, %+v", got, got.Plan.Outcome)
			}
			must(t, d.vault.Check(t.Context()))
		})
	}
}

// fakeOtherBytes is a store that has other bytes than were put into it.
type fakeOtherBytes struct{ *vault.Vault }

func (fakeOtherBytes) OutgoingMessage(context.Context, string) ([]byte, error) {
	return []byte(`[{"folder":"INBOX","uidvalidity":1,"uids":[[1,2]]}]`), nil
}

// TestWhatAPlanIsNotRunFor has what happens to a plan before it is run, and what running it comes
// to then.
func TestWhatAPlanIsNotRunFor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mode   mail.Mode
		do     mail.Action
		meddle func(t *testing.T, d *mailboxFixture, p *outbox.Decision)
		by     string
		kind   mail.Kind
		state  mail.OutboxState
		is     mail.PlanOutcome
		left   int // in INBOX
	}{
		"nothing": {by: "agent", state: mail.OutboxDone, is: mail.PlanOutcome{Done: 3}},
		"expired": {by: "agent", kind: mail.KindConflict, state: mail.OutboxExpired, left: 2, meddle: func(_ *testing.T, d *mailboxFixture, _ *outbox.Decision) {
			d.now = func() time.Time { return time.Now().Add(mail.PlanWaits + time.Minute) }
		}},
		"cancelled": {by: "agent", kind: mail.KindConflict, state: mail.OutboxCancelled, left: 2, meddle: func(t *testing.T, d *mailboxFixture, p *outbox.Decision) {
			must(t, second(d.Cancel(t.Context(), p.ID, "agent")))
		}},
		"by another": {by: "grant:other", left: 2},
		"made another action": {by: "agent", kind: mail.KindConflict, left: 2, meddle: func(t *testing.T, d *mailboxFixture, p *outbox.Decision) {
			must(t, second(d.vault.ChangeOutgoing(t.Context(), p.ID, func(e *mail.Outgoing) (bool, error) {
				e.Plan.Action = mail.Action{Do: mail.DoMove, To: "Sent"}
				return false, nil
			})))
		}},
		"given other bytes": {by: "agent", kind: mail.KindConflict, state: mail.OutboxRefused, left: 2, meddle: func(t *testing.T, d *mailboxFixture, _ *outbox.Decision) {
			boxes := mailbox.New(mailbox.Options{Directory: d.dir})
			t.Cleanup(func() { _ = boxes.Close() })
			d.Outbox = outbox.New(outbox.Options{Directory: d.dir, Mailboxes: boxes, Store: fakeOtherBytes{d.vault}})
		}},
		"a message left": {by: "agent", state: mail.OutboxDone, is: mail.PlanOutcome{Done: 2, Gone: 1}, meddle: func(t *testing.T, d *mailboxFixture, _ *outbox.Decision) {
			d.box.Remove("INBOX", 1)
		}},
		"all left": {by: "agent", state: mail.OutboxDone, is: mail.PlanOutcome{Done: 1, Gone: 2}, meddle: func(t *testing.T, d *mailboxFixture, _ *outbox.Decision) {
			d.box.Remove("INBOX", 1, 2)
		}},
		"a folder was replaced": {by: "agent", state: mail.OutboxPartly, left: 2,
			is: mail.PlanOutcome{Done: 2, Left: 1, Reason: "The folder was replaced since then: its messages have other ids now."}, meddle: replaceBox},
		"the only folder was replaced": {by: "agent", kind: mail.KindConflict, state: mail.OutboxRefused, left: 2, do: mail.Action{Do: mail.DoMove, To: "INBOX"}, meddle: replaceBox},
		"the mode is RO by now": {by: "agent", kind: mail.KindReadOnly, state: mail.OutboxQueued, left: 2, meddle: func(_ *testing.T, d *mailboxFixture, _ *outbox.Decision) {
			d.dir.Edit(func(a *mail.Account) { a.Mode = mail.ReadOnly })
		}},
		"no folder to move to": {by: "agent", kind: mail.KindNotFound, state: mail.OutboxQueued, left: 2, do: mail.Action{Do: mail.DoMove, To: "Trash"}, meddle: func(t *testing.T, d *mailboxFixture, _ *outbox.Decision) {
			must(t, d.box.Admin.Delete(d.box.In("Trash")).Wait())
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newMailboxFixture(t, mailtest.InMemory(t), "meddled", approving)
			twoFolders(d)
			if c.do.Do == "" {
				c.do = toTrash
			}
			p := d.mustPlan(t, inTwo, c.do)
			if c.meddle != nil {
				c.meddle(t, d, p)
			}
			e, err := d.Run(t.Context(), p.ID, c.by)
			if kind(err) != c.kind || c.state == "" && err == nil {
				t.Errorf("%v", err)
			}
			if c.state != "" && (e.State != c.state || e.Plan.Outcome != c.is) || c.kind != "" && d.count(t, "INBOX") != 2 || e != nil && e.State == mail.OutboxDone && d.count(t, "INBOX") != 0 {
				t.Errorf("%+v, %+v; %d left", e, e.Plan.Outcome, d.count(t, "INBOX"))
			}
		})
	}
}

// replaceBox makes Box anew, with another message under the same number.
func replaceBox(t *testing.T, d *mailboxFixture, _ *outbox.Decision) {
	must(t, d.box.Admin.Delete(d.box.In("Box")).Wait())
	d.create("Box")
	d.box.Add("Box", mailtest.Letter{Subject: "Another"})
}

// However plans and commands of a principal come together, no more than the bound is changed
// unasked; what waits is done once a person says so, with all that it names.
func TestPlansAtOnceStayWithinTheBound(t *testing.T) {
	t.Parallel()
	d := newMailboxFixture(t, mailtest.InMemory(t), "bound", approving)
	d.create("Trash")
	var plans []*outbox.Decision
	for i := range 4 {
		folder := fmt.Sprint("F", i)
		d.create(folder)
		d.box.Add(folder, slices.Repeat([]mailtest.Letter{{Subject: "Offer"}}, 20)...)
		plans = append(plans, d.mustPlan(t, mailbox.SearchQuery{Folders: []string{folder}}, toTrash))
	}
	var all sync.WaitGroup
	for _, p := range slices.Repeat(plans, 2) { // each twice at once
		all.Go(func() {
			if e, err := d.Run(t.Context(), p.ID, "agent"); err != nil && kind(err) != mail.KindConflict || e == nil {
				t.Errorf("%+v, %v", e, err)
			}
		})
	}
	all.Wait()
	if got := d.count(t, "Trash"); got != 40 {
		t.Errorf("%d messages were changed unasked", got)
	}
	// A command over the bound waits in the same way.
	u := d.box.Add("INBOX", slices.Repeat([]mailtest.Letter{{Subject: "Offer"}}, 11)...)
	of := mailbox.Batch{Op: "mail trash", Account: account, Action: toTrash}
	for _, uid := range u {
		of.Refs = append(of.Refs, d.box.Ref("INBOX", uid))
	}
	_, err := d.boxes.Do(t.Context(), of)
	mailtest.WantKind(t, err, mail.KindAsks)
	if f, err := d.ForeseeChange(t.Context(), of, "agent"); err != nil || !f.Waits() || f.Why() != "more than 50 messages changed within ten minutes" {
		t.Errorf("foreseen as %+v, %v", f, err)
	}
	held, err := d.HoldChange(t.Context(), of, "agent")
	must(t, err)
	if again, err := d.HoldChange(t.Context(), of, "agent"); err != nil || again.ID != held.ID || !again.Replayed || !held.Plan.Held || held.Plan.Bound != 50 {
		t.Errorf("held as %+v, then %+v, %v", held, again, err)
	}
	of.Refs[3].UID = 99
	mailtest.WantKind(t, second(d.HoldChange(t.Context(), of, "agent")), mail.KindNotFound)
	waiting, _, err := d.List(t.Context(), mail.OutboxQuery{States: []mail.OutboxState{mail.OutboxWaiting}})
	must(t, err)
	for _, e := range waiting {
		if e, err := d.Approve(t.Context(), e.ID, e.Digest, "ann"); err != nil || e.State != mail.OutboxDone {
			t.Errorf("approved: %+v, %v", e, err)
		}
	}
	if got := d.count(t, "Trash"); got != 91 || len(waiting) != 3 {
		t.Errorf("%d of %d waiting: %d in the trash", len(waiting), 3, got)
	}
	d.dir.Edit(func(a *mail.Account) { a.Mode = mail.ReadWrite })
	d.box.Add("INBOX", slices.Repeat([]mailtest.Letter{{Subject: "Offer"}}, 60)...)
	p := d.mustPlan(t, mailbox.SearchQuery{Subject: "offer"}, mail.Action{Do: mail.DoMarkRead})
	if e, err := d.Run(t.Context(), p.ID, "agent"); err != nil || p.Waits() || e.State != mail.OutboxDone || e.Plan.Outcome.Done != 60 {
		t.Errorf("in mode RW: %+v, %v", e, err)
	}
}
