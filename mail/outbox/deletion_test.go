package outbox_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
)

// deleting lets an account delete for good when a person has said so.
func deleting(a *mail.Account) { a.Mode, a.Destroy = mail.Approve, mail.DestroyOn }

// deletionFixture is a mailbox with three letters, and their references.
func deletionFixture(t *testing.T, e mailtest.Endpoint, user string) (*mailboxFixture, []mail.Ref) {
	t.Helper()
	d := newMailboxFixture(t, e, user, deleting)
	return d, lettersIn(d)
}

func lettersIn(d *mailboxFixture) (refs []mail.Ref) {
	for _, u := range d.box.Add("INBOX", mailtest.Letter{From: "Bob <bob@example.net>", Subject: "One"}, mailtest.Letter{From: "eve@example.net", Subject: "Two"}, mailtest.Letter{From: "carol@example.net", Subject: "Three"}) {
		refs = append(refs, d.box.Ref("INBOX", u))
	}
	return refs
}

// left are the subjects of what is in INBOX.
func (d *mailboxFixture) left() string {
	var subjects []string
	for _, m := range d.In("INBOX") {
		for _, s := range []string{"One", "Two", "Three"} {
			if strings.Contains(m.raw, "Subject: "+s+"\r\n") {
				subjects = append(subjects, s)
			}
		}
	}
	return strings.Join(subjects, " ")
}

func (d *mailboxFixture) mustHold(t *testing.T, refs ...mail.Ref) *mail.Outgoing {
	t.Helper()
	e, err := d.HoldDeletion(t.Context(), account, refs, "agent")
	if err != nil || e.State != mail.OutboxWaiting || e.Kind != mail.OutboxDelete {
		t.Fatalf("%+v, %v", e, err)
	}
	return e
}

// outcomes are those of the messages, in one line.
func outcomes(e *mail.Outgoing) string {
	words := []string{string(e.State)}
	for _, d := range e.Deletes {
		words = append(words, string(d.Outcome))
	}
	return strings.TrimSpace(strings.Join(words, " "))
}

func TestADeletionWaitsForAPerson(t *testing.T) {
	t.Parallel()
	_, dovecot := mailtest.Shared(t, servertest.Config{})
	for _, e := range []mailtest.Endpoint{mailtest.InMemory(t), dovecot} {
		d, refs := deletionFixture(t, e, "waits")
		held := d.mustHold(t, refs[0], refs[1])
		if d.left() != "One Two Three" {
			t.Fatalf("left is %s", d.left())
		}
		s, err := d.Show(t.Context(), held.ID)
		if err != nil || s.Folder != "INBOX" || len(s.Deletes) != 2 || s.Deletes[0].Subject != "One" || s.Deletes[0].From[0] != (mail.Address{Name: "Bob", Addr: "bob@example.net"}) ||
			!strings.HasSuffix(s.Deletes[1].ID, fmt.Sprint(":", refs[1].UID)) || s.Deletes[0].Date.IsZero() {
			t.Fatalf("shown as %+v, %v", s, err)
		}
		if again := d.mustHold(t, refs[0], refs[1]); again.ID != held.ID || !again.Replayed {
			t.Errorf("asked for twice it waits as %s and %s", held.ID, again.ID)
		}
		if _, err := d.Approve(t.Context(), held.ID, strings.Repeat("0", 64), "ann"); kind(err) != mail.KindConflict || d.left() != "One Two Three" {
			t.Errorf("another digest: %v", err)
		}
		gone, err := d.Approve(t.Context(), held.ID, held.Digest, "ann")
		if err != nil || outcomes(gone) != "done deleted deleted" || gone.Decided != "ann" || d.left() != "Three" {
			t.Errorf("%+v, %v; left is %s", gone, err, d.left())
		}
		mailtest.WantKind(t, second(d.Approve(t.Context(), held.ID, held.Digest, "ann")), mail.KindConflict)
		if len(d.server.messages()) != 0 {
			t.Error("something was sent")
		}
	}
}

// What is not there, and what may not be deleted, is never asked about.
func TestWhichDeletionsAreHeld(t *testing.T) {
	t.Parallel()
	d, refs := deletionFixture(t, mailtest.InMemory(t), "held")
	missing := refs[0]
	missing.UID = 999
	if _, err := d.HoldDeletion(t.Context(), account, []mail.Ref{refs[0], missing}, "agent"); kind(err) != mail.KindNotFound || !strings.Contains(err.Error(), "999") {
		t.Errorf("with a missing message: %v", err)
	}
	other := refs[0]
	other.UIDValidity = 987654
	mailtest.WantKind(t, second(d.HoldDeletion(t.Context(), account, []mail.Ref{other}, "agent")), mail.KindConflict)
	if e := d.entries(); len(e) != 0 {
		t.Errorf("%+v", e)
	}
	for _, id := range []func(*mail.Outgoing) error{
		func(e *mail.Outgoing) error { return second(d.Cancel(t.Context(), e.ID, "agent")) },
		func(e *mail.Outgoing) error { return second(d.Reject(t.Context(), e.ID, "ann", "no")) },
	} {
		e := d.mustHold(t, refs[0])
		must(t, id(e))
		if _, err := d.Approve(t.Context(), e.ID, e.Digest, "ann"); kind(err) != mail.KindConflict || d.left() != "One Two Three" {
			t.Errorf("approved afterwards: %v", err)
		}
	}
	e := d.mustHold(t, refs[0])
	d.dir.Known[account] = func() mail.Account { a := d.dir.Known[account]; a.Destroy = mail.DestroyOff; return a }()
	if kept, err := d.Approve(t.Context(), e.ID, e.Digest, "ann"); kind(err) != mail.KindReadOnly || kept.State != mail.OutboxWaiting || d.left() != "One Two Three" {
		t.Errorf("the right was taken away: %+v, %v", kept, err)
	}
}

// second is the error of a call whose answer does not matter.
func second[T any](_ T, err error) error { return err }

// What happened to the messages meanwhile is told, and only what was shown is deleted.
func TestADeletionTellsWhatBecameOfEachMessage(t *testing.T) {
	t.Parallel()
	d, refs := deletionFixture(t, mailtest.InMemory(t), "meanwhile")
	e := d.mustHold(t, refs[0], refs[1])
	d.box.Remove("INBOX", refs[0].UID)
	if got, err := d.Approve(t.Context(), e.ID, e.Digest, "ann"); err != nil || outcomes(got) != "done gone deleted" || got.Deletes[0].Reason == "" || d.left() != "Three" {
		t.Errorf("%+v, %v", got, err)
	}
	e = d.mustHold(t, refs[2])
	d.box.Remove("INBOX", refs[2].UID)
	if got, err := d.Approve(t.Context(), e.ID, e.Digest, "ann"); err != nil || outcomes(got) != "done gone" {
		t.Errorf("all of them gone: %+v, %v", got, err)
	}
	// One that is in the way of its own digest is not what was shown.
	refs = lettersIn(d)
	e = d.mustHold(t, refs[0])
	if _, err := d.vault.ChangeOutgoing(t.Context(), e.ID, func(o *mail.Outgoing) (bool, error) {
		o.Deletes = slices.Clone(o.Deletes)
		o.Deletes[0].ID = refs[1].String()
		return false, nil
	}); err != nil {
		t.Fatal(err)
	}
	mailtest.WantKind(t, second(d.Show(t.Context(), e.ID)), mail.KindConflict)
	if _, err := d.Approve(t.Context(), e.ID, e.Digest, "ann"); kind(err) != mail.KindConflict || d.left() != "One Two Three" {
		t.Errorf("another message: %v, left is %s", err, d.left())
	}
}

// A folder that was made anew has other messages under the same numbers.
func TestADeletionHoldsToItsFolder(t *testing.T) {
	t.Parallel()
	d := newMailboxFixture(t, mailtest.InMemory(t), "anew", deleting)
	d.create("Box")
	u := d.box.Add("Box", mailtest.Letter{From: "eve@example.net", Subject: "One"})
	e := d.mustHold(t, d.box.Ref("Box", u[0]))
	must(t, d.box.Admin.Delete(d.box.In("Box")).Wait())
	d.create("Box")
	d.box.Add("Box", mailtest.Letter{From: "bob@example.net", Subject: "Two"})
	got, err := d.Approve(t.Context(), e.ID, e.Digest, "ann")
	if kind(err) != mail.KindConflict || got.State != mail.OutboxRefused || len(d.In("Box")) != 1 {
		t.Errorf("%+v, %v; %d left", got, err, len(d.In("Box")))
	}
}

func TestADeletionNobodyDecidesAboutExpires(t *testing.T) {
	t.Parallel()
	d, refs := deletionFixture(t, mailtest.InMemory(t), "late")
	e := d.mustHold(t, refs[0])
	d.now = func() time.Time { return time.Now().Add(mail.DeletionWaits + time.Minute) }
	if _, err := d.Approve(t.Context(), e.ID, e.Digest, "ann"); kind(err) != mail.KindConflict || d.left() != "One Two Three" {
		t.Errorf("approved too late: %v", err)
	}
	if s, err := d.Show(t.Context(), e.ID); err != nil || s.Step != "" || s.WhyNot != "The deletion is expired; nothing more is deleted." {
		t.Errorf("shown as %q, %q: %v", s.Step, s.WhyNot, err)
	}
	if _, err := d.Reject(t.Context(), e.ID, "ann", ""); kind(err) != mail.KindConflict || !strings.Contains(err.Error(), "The deletion is expired") {
		t.Errorf("rejected too late: %v", err)
	}
	for state, want := range map[mail.OutboxState]int{mail.OutboxWaiting: 0, mail.OutboxExpired: 1} {
		if list, _, err := d.List(t.Context(), mail.OutboxQuery{States: []mail.OutboxState{state}}); err != nil || len(list) != want || want == 1 && list[0].State != state {
			t.Errorf("%s: %+v, %v", state, list, err)
		}
	}
	if again := d.mustHold(t, refs[0]); again.ID == e.ID {
		t.Error("what expired is asked about again")
	}
}

// A process that is killed while it deletes leaves an entry that says what is known; the rest is
// deleted when a person says so again, and nothing else ever.
func TestKilledWhileItDeletes(t *testing.T) {
	t.Parallel()
	for moment, want := range map[string]struct {
		state mail.OutboxState
		left  string
		again string
	}{
		"before gate":    {mail.OutboxWaiting, "One Two Three", "done deleted deleted"},
		"after gate":     {mail.OutboxUnknown, "One Two Three", "done deleted deleted"},
		"before outcome": {mail.OutboxUnknown, "Three", "done gone gone"},
		"after outcome":  {mail.OutboxDone, "Three", ""},
	} {
		t.Run(moment, func(t *testing.T) {
			t.Parallel()
			c := newCrashFixture(t, mail.Approve, deleting)
			d := c.mailbox
			refs := lettersIn(d)
			e := d.mustHold(t, refs[0], refs[1])
			c.kill(moment, orders{Approve: true})
			s, err := d.Show(t.Context(), e.ID)
			if err != nil || s.State != want.state || d.left() != want.left {
				t.Fatalf("it left %+v, %v and %s", s, err, d.left())
			}
			if want.state == mail.OutboxUnknown { // the dead one may still be at work
				if _, err := d.Approve(t.Context(), e.ID, e.Digest, "ann"); kind(err) != mail.KindConflict || d.left() != want.left {
					t.Errorf("approved at once: %v", err)
				}
				if _, err := d.Cancel(t.Context(), e.ID, "agent"); kind(err) != mail.KindConflict || !strings.Contains(err.Error(), "may have happened already") {
					t.Errorf("taken back: %v", err)
				}
			}
			d.now = func() time.Time { return time.Now().Add(time.Hour) }
			again, err := d.Approve(t.Context(), e.ID, e.Digest, "ann")
			if want.again == "" {
				if kind(err) != mail.KindConflict {
					t.Errorf("approved again: %+v, %v", again, err)
				}
			} else if err != nil || outcomes(again) != want.again {
				t.Errorf("approved again: %+v, %v", again, err)
			}
			if d.left() != "Three" {
				t.Errorf("left is %s", d.left())
			}
			must(t, d.vault.Check(t.Context()))
		})
	}
}
