package outbox_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/outbox"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
)

func TestMessageWaitsForAPersonWhoSeesExactlyWhatLeaves(t *testing.T) {
	t.Parallel()
	o := newFixture(t, newFakeSubmission(t), approving)
	body := "Hello, Bob.\n\n> quoted\n\nA long line that has to be wrapped because it goes on and on and on, far beyond what fits a line of mail.\n-- \nAnn\n"
	e := o.mustSend(hello(func(r *outbox.Request) {
		r.Draft.CC, r.Draft.BCC, r.Draft.Body = []mail.Address{{Addr: "carol@example.com"}}, []mail.Address{{Name: "Dan", Addr: "dan@example.net"}}, body
		r.Draft.Attachments = []outbox.Attachment{{Name: "figures.csv", Content: []byte("a,b\r\n1,2\r\n")}, {Name: "x.py", Content: []byte("1")}} // no table of the machine says their types
	}))
	if e.State != mail.OutboxWaiting || e.Attempts != 0 || o.taken != 1 || len(o.server.commands()) > 0 {
		t.Fatalf("entry %+v, charged %d", e, o.taken)
	}
	shown, err := o.Show(t.Context(), e.ID)
	must(t, err)
	sum := sha256.Sum256([]byte("a,b\r\n1,2\r\n"))
	switch {
	case !shown.Here || shown.Digest != e.Digest || shown.HeaderFrom != mail.Address{Name: "Ann Lee", Addr: "ann@example.org"} || shown.Subject != "Hello":
		t.Errorf("shown %+v", shown)
	case !slices.Equal(shown.To, []mail.Address{{Name: "Bob", Addr: "bob@example.net"}}) || !slices.Equal(shown.CC, []mail.Address{{Addr: "carol@example.com"}}) ||
		!slices.Equal(shown.BCC, []mail.Address{{Name: "Dan", Addr: "dan@example.net"}}) || len(shown.Recipients) != 3:
		t.Errorf("shown to %v cc %v bcc %v of %v", shown.To, shown.CC, shown.BCC, shown.Recipients)
	case strings.TrimRight(strings.ReplaceAll(shown.Body, "\r\n", "\n"), "\n") != strings.TrimRight(body, "\n"):
		t.Errorf("body %q, want %q", shown.Body, body)
	case len(shown.Files) != 2 || shown.Files[1].Type != "application/octet-stream" || shown.Files[0] != (outbox.ShownFile{FileName: mail.FileName{Name: "figures.csv", Type: "text/csv", Size: 10}, SHA256: hex.EncodeToString(sum[:])}):
		t.Errorf("files %+v", shown.Files)
	}
	for _, digest := range []string{"", "x", strings.ToUpper(e.Digest), e.Digest[:16], e.Request} {
		mailtest.WantKind(t, second(o.Approve(t.Context(), e.ID, digest, "ann")), mail.KindConflict)
	}
	if len(o.server.messages()) > 0 {
		t.Fatal("it left without its digest")
	}
	sent, err := o.Approve(t.Context(), e.ID, e.Digest, "ann")
	if err != nil || sent.State != mail.OutboxAccepted || sent.Decided != "ann" || o.taken != 1 {
		t.Fatalf("Approve = %+v, %v, charged %d", sent, err, o.taken)
	}
	if got := o.server.messages(); len(got) != 1 || !slices.Equal(got[0].to, e.Recipients) || int64(len(got[0].raw)) != e.Size {
		t.Errorf("the server has %+v", got)
	}
	if _, err := o.Approve(t.Context(), e.ID, e.Digest, "ann"); kind(err) != mail.KindConflict || len(o.server.messages()) != 1 {
		t.Errorf("approved twice: %v", err)
	}
	if shown, err := o.Show(t.Context(), e.ID); err != nil || shown.Here || shown.Body != "" {
		t.Errorf("shown after it left: %+v, %v", shown, err)
	}
}

func TestWhatAPersonDecidedStands(t *testing.T) {
	t.Parallel()
	o := newFixture(t, newFakeSubmission(t), approving)
	reject := o.mustSend(hello(keyed("a")))
	e, err := o.Reject(t.Context(), reject.ID, "ann", "not\r\nnow\x07 "+strings.Repeat("x", 500))
	if err != nil || e.State != mail.OutboxRejected || e.Decided != "ann" || !strings.HasPrefix(e.Reason, "not now xxx") || len(e.Reason) != 200 {
		t.Errorf("Reject = %+v, %v", e, err)
	}
	cancel := o.mustSend(hello(keyed("b")))
	if _, err := o.Cancel(t.Context(), cancel.ID, "other"); !errors.Is(err, mail.ErrNoOutgoing) {
		t.Errorf("another agent cancelled it: %v", err)
	}
	if e, err := o.Cancel(t.Context(), cancel.ID, "agent"); err != nil || e.State != mail.OutboxCancelled || e.Decided != "agent" {
		t.Errorf("Cancel = %+v, %v", e, err)
	}
	byAdmin := o.mustSend(hello(keyed("c")))
	if e, err := o.Cancel(t.Context(), byAdmin.ID, ""); err != nil || e.State != mail.OutboxCancelled || e.Decided == "" {
		t.Errorf("Cancel = %+v, %v", e, err)
	}
	for key, gone := range map[string]*mail.Outgoing{"a": reject, "b": cancel} {
		if e, err := o.Send(t.Context(), account, hello(keyed(key))); kind(err) != mail.KindConflict || e == nil || e.ID != gone.ID || !e.Ended() {
			t.Errorf("asked for again: %+v, %v", e, err)
		} else if said := strings.Contains(err.Error(), "The person said: not now xxx"); said != (gone == reject) {
			t.Errorf("it says the person's reason: %v: %v", said, err)
		}
		mailtest.WantKind(t, second(o.Approve(t.Context(), gone.ID, gone.Digest, "ann")), mail.KindConflict)
		if _, err := o.vault.OutgoingMessage(t.Context(), gone.ID); !errors.Is(err, mail.ErrNoOutgoing) {
			t.Errorf("its bytes are still there: %v", err)
		}
	}
	// To decide the same again is no error; to decide otherwise is.
	if e, err := o.Reject(t.Context(), reject.ID, "bob", ""); err != nil || e.Decided != "ann" {
		t.Errorf("rejected again: %+v, %v", e, err)
	}
	if e, err := o.Cancel(t.Context(), cancel.ID, "agent"); err != nil || e.State != mail.OutboxCancelled {
		t.Errorf("cancelled again: %+v, %v", e, err)
	}
	mailtest.WantKind(t, second(o.Cancel(t.Context(), reject.ID, "")), mail.KindConflict)
	mailtest.WantKind(t, second(o.Reject(t.Context(), cancel.ID, "ann", "")), mail.KindConflict)
	if len(o.server.messages()) > 0 {
		t.Error("something left")
	}
	for _, id := range []string{"nothing", ""} {
		_, showErr := o.Show(t.Context(), id)
		_, cancelErr := o.Cancel(t.Context(), id, "")
		_, rejectErr := o.Reject(t.Context(), id, "ann", "")
		_, approveErr := o.Approve(t.Context(), id, "d", "ann")
		for _, err := range []error{showErr, cancelErr, rejectErr, approveErr} {
			if !errors.Is(err, mail.ErrNoOutgoing) {
				t.Errorf("%q: %v", id, err)
			}
		}
	}
}

// TestPolicyIsJudgedAgainWhenTheMessageLeaves changes what is allowed while a
// message waits.
func TestPolicyIsJudgedAgainWhenTheMessageLeaves(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*mail.Account)
		is     func(error) bool
	}{
		"mode": {func(a *mail.Account) { a.Mode = mail.ReadOnly }, refusedFor(mail.ReasonReadOnly)},
		"list": {func(a *mail.Account) { a.AllowOut.Entries = []string{"carol@example.com"} }, refusedFor(mail.ReasonAllowList)},
		"from": {func(a *mail.Account) { a.Email = "eve@example.org" }, func(err error) bool { return kind(err) == mail.KindConflict }},
		"gone": {func(a *mail.Account) { a.Name = "other" }, func(err error) bool { return errors.Is(err, mail.ErrNoAccount) }},
		"smtp": {func(a *mail.Account) { a.SMTP = mail.Endpoint{} }, func(err error) bool { return kind(err) == mail.KindConfig }},
	} {
		t.Run(name, func(t *testing.T) {
			o := newFixture(t, newFakeSubmission(t), approving)
			e := o.mustSend(hello())
			a := o.dir.Known[account]
			before := a
			c.change(&a)
			delete(o.dir.Known, account)
			o.dir.Set(a)
			if _, err := o.Approve(t.Context(), e.ID, e.Digest, "ann"); err == nil || !c.is(err) {
				t.Errorf("Approve: %v", err)
			}
			if got := o.entry(e.ID); got.State != mail.OutboxWaiting || got.Attempt != "" || len(o.server.commands()) > 0 {
				t.Errorf("entry %+v", got)
			}
			o.dir.Set(before)
			if sent, err := o.Approve(t.Context(), e.ID, e.Digest, "ann"); err != nil || sent.State != mail.OutboxAccepted {
				t.Errorf("Approve after all: %+v, %v", sent, err)
			}
		})
	}
}

func refusedFor(reason string) func(error) bool {
	return func(err error) bool {
		var e *mail.SendRefused
		return errors.As(err, &e) && e.Reason == reason
	}
}

func TestApprovedMessageThatCannotLeaveNowStillWaits(t *testing.T) {
	t.Parallel()
	o := newFixture(t, newFakeSubmission(t), approving)
	e := o.mustSend(hello())
	o.server.fault(stepMail, fault{reply: "451 4.3.0 later"})
	got, err := o.Approve(t.Context(), e.ID, e.Digest, "ann")
	if kind(err) != mail.KindRefused || got.State != mail.OutboxWaiting || got.Decided != "" || !got.Temporary || got.Code != 451 || got.Reason == "" {
		t.Errorf("Approve = %+v, %v", got, err)
	}
	o.server.fault(stepMail, fault{reply: "550 5.3.0 never"})
	if got, err = o.Approve(t.Context(), e.ID, e.Digest, "ann"); kind(err) != mail.KindRefused || got.State != mail.OutboxRefused || got.Attempts != 2 {
		t.Errorf("Approve = %+v, %v", got, err)
	}
	if shown, err := o.Show(t.Context(), e.ID); err != nil || !shown.Here {
		t.Errorf("the text of a refused message is gone: %v", err)
	}
}

// What is sent again by itself is judged again: a person's word holds for the attempt it was given for.
func TestAnApprovalEndsWithItsAttempt(t *testing.T) {
	t.Parallel()
	o := newFixture(t, newFakeSubmission(t))
	o.server.fault(stepMail, fault{reply: "451 4.3.0 later"})
	e, err := o.Send(t.Context(), account, hello(keyed("k")))
	if err == nil || e.State != mail.OutboxQueued {
		t.Fatalf("Send = %+v, %v", e, err)
	}
	got, err := o.Approve(t.Context(), e.ID, e.Digest, "ann")
	if kind(err) != mail.KindRefused || got.State != mail.OutboxQueued || got.Attempts != 2 || o.entry(e.ID).Decided != "" {
		t.Errorf("Approve = %+v, %v", got, err)
	}
}

func TestUnknownIsSentAgainOnlyByAPerson(t *testing.T) {
	t.Parallel()
	o := newFixture(t, newFakeSubmission(t))
	o.server.fault(stepTaken, fault{cut: true})
	e := o.mustSend(hello(keyed("k")))
	o.server.at(nil)
	if e.State != mail.OutboxUnknown || e.Reason == "" || !e.Until.IsZero() {
		t.Fatalf("entry %+v", e)
	}
	for range 3 {
		if again := o.mustSend(hello(keyed("k"))); again.State != mail.OutboxUnknown || !again.Replayed {
			t.Errorf("again %+v", again)
		}
	}
	mailtest.WantKind(t, second(o.Cancel(t.Context(), e.ID, "")), mail.KindConflict)
	// A second attempt that fails tells nothing of the first.
	o.server.fault(stepMail, fault{reply: "550 5.3.0 never"})
	if got, err := o.Approve(t.Context(), e.ID, e.Digest, "ann"); err == nil || got.State != mail.OutboxUnknown || got.Code != 550 {
		t.Errorf("Approve = %+v, %v", got, err)
	}
	o.server.at(nil)
	if got, err := o.Approve(t.Context(), e.ID, e.Digest, "ann"); err != nil || got.State != mail.OutboxAccepted || got.Attempts != 3 || len(o.server.messages()) != 2 {
		t.Errorf("Approve = %+v, %v, server has %d", got, err, len(o.server.messages()))
	}
}

// What a person lets rest stays unknown, which is the truth, and is never sent.
func TestUnknownIsLetRest(t *testing.T) {
	t.Parallel()
	o := newFixture(t, newFakeSubmission(t))
	o.server.fault(stepTaken, fault{cut: true})
	e := o.mustSend(hello(keyed("k")))
	o.server.at(nil)
	for range 2 {
		got, err := o.Reject(t.Context(), e.ID, "ann", "it arrived")
		if err != nil || got.State != mail.OutboxUnknown || !got.Settled || !got.Ended() || got.Decided != "ann" || got.Reason != "it arrived" {
			t.Fatalf("Reject = %+v, %v", got, err)
		}
	}
	if _, err := o.vault.OutgoingMessage(t.Context(), e.ID); !errors.Is(err, mail.ErrNoOutgoing) {
		t.Errorf("its bytes are kept: %v", err)
	}
	if got, err := o.Approve(t.Context(), e.ID, e.Digest, "ann"); kind(err) != mail.KindConflict {
		t.Errorf("Approve = %+v, %v", got, err)
	}
	if again := o.mustSend(hello(keyed("k"))); again.State != mail.OutboxUnknown || !again.Replayed {
		t.Errorf("again %+v", again)
	}
	if n := len(o.server.messages()); n != 1 {
		t.Errorf("the server has %d", n)
	}
}

// TestNobodyTakesOverWhileSomebodyMaySend leaves entries as processes that died
// leave them.
func TestNobodyTakesOverWhileSomebodyMaySend(t *testing.T) {
	t.Parallel()
	for _, state := range []mail.OutboxState{mail.OutboxQueued, mail.OutboxUnknown} {
		t.Run(string(state), func(t *testing.T) {
			o := newFixture(t, newFakeSubmission(t))
			now := time.Now()
			o.now = func() time.Time { return now }
			o.server.fault(stepConnect, fault{cut: true})
			e, err := o.Send(t.Context(), account, hello(keyed("k")))
			if err == nil || e.State != mail.OutboxQueued {
				t.Fatalf("%+v, %v", e, err)
			}
			o.server.at(nil)
			if _, err := o.vault.ChangeOutgoing(t.Context(), e.ID, func(e *mail.Outgoing) (bool, error) {
				e.State, e.Attempt, e.Until = state, "dead", now.Add(time.Minute)
				return false, nil
			}); err != nil {
				t.Fatal(err)
			}
			o.server.commands()
			for range 2 {
				_, sendErr := o.Send(t.Context(), account, hello(keyed("k")))
				_, approveErr := o.Approve(t.Context(), e.ID, e.Digest, "ann")
				for _, err := range []error{sendErr, approveErr} {
					var told *mail.Error
					if !errors.As(err, &told) || told.Kind != mail.KindConflict || !told.Retryable {
						t.Errorf("while somebody may be sending: %v", err)
					}
					if d, err := o.Show(t.Context(), e.ID); err != nil || d.Step != outbox.StepNone || d.WhyNot != told.Message {
						t.Errorf("shown as %q, %q: %v", d.Step, d.WhyNot, err)
					}
				}
				now = now.Add(59 * time.Second)
			}
			if len(o.server.commands()) > 0 || o.entry(e.ID).Attempt != "dead" {
				t.Error("somebody went to the server meanwhile")
			}
			now = now.Add(time.Minute)
			got, err := o.Send(t.Context(), account, hello(keyed("k")))
			if state == mail.OutboxUnknown {
				if err != nil || got.State != mail.OutboxUnknown || len(o.server.messages()) != 0 {
					t.Errorf("sent anew by itself: %+v, %v", got, err)
				}
				got, err = o.Approve(t.Context(), e.ID, e.Digest, "ann")
			}
			if err != nil || got.State != mail.OutboxAccepted || len(o.server.messages()) != 1 {
				t.Errorf("afterwards: %+v, %v", got, err)
			}
		})
	}
}

func TestChangedBytesAreNotSent(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*mail.Outgoing){
		"recipient": func(e *mail.Outgoing) { e.Recipients = append(e.Recipients, "carol@example.com") },
		"sender":    func(e *mail.Outgoing) { e.From = "eve@example.org" },
	} {
		t.Run(name, func(t *testing.T) {
			o := newFixture(t, newFakeSubmission(t), approving)
			e := o.mustSend(hello())
			must(t, second(o.vault.ChangeOutgoing(t.Context(), e.ID, func(e *mail.Outgoing) (bool, error) { change(e); return false, nil })))
			mailtest.WantKind(t, second(o.Show(t.Context(), e.ID)), mail.KindConflict)
			if _, err := o.Approve(t.Context(), e.ID, e.Digest, "ann"); kind(err) != mail.KindConflict || len(o.server.commands()) > 0 {
				t.Errorf("Approve: %v", err)
			}
		})
	}
}

// TestCancelWhileTheMessageIsOnItsWay takes a message back between the login and the gate.
func TestCancelWhileTheMessageIsOnItsWay(t *testing.T) {
	t.Parallel()
	o := newFixture(t, newFakeSubmission(t), approving)
	e := o.mustSend(hello())
	o.server.fault(stepRcpt, fault{do: func() {
		if _, err := o.Cancel(o.t.Context(), e.ID, "agent"); err != nil {
			t.Error(err)
		}
	}})
	got, err := o.Approve(t.Context(), e.ID, e.Digest, "bob")
	if kind(err) != mail.KindConflict || !got.Ended() || len(o.server.messages()) > 0 {
		t.Errorf("Approve = %+v, %v", got, err)
	}
	if said := strings.Join(o.server.commands(), " "); strings.Contains(said, "DATA") {
		t.Errorf("commands %s", said)
	}
}

func TestModeApproveHoldsWhatWasQueuedBefore(t *testing.T) {
	t.Parallel()
	o := newFixture(t, newFakeSubmission(t))
	o.server.fault(stepConnect, fault{cut: true})
	if e, err := o.Send(t.Context(), account, hello(keyed("k"))); err == nil || e.State != mail.OutboxQueued {
		t.Fatalf("%+v, %v", e, err)
	}
	o.server.at(nil)
	o.dir.Edit(approving)
	o.server.commands()
	e := o.mustSend(hello(keyed("k")))
	if e.State != mail.OutboxWaiting || len(o.server.commands()) > 0 {
		t.Errorf("entry %+v", e)
	}
	if _, err := o.Approve(t.Context(), e.ID, e.Digest, "ann"); err != nil || len(o.server.messages()) != 1 {
		t.Errorf("Approve: %v", err)
	}
}

// fakeFailingStore is a store that fails where a test says.
type fakeFailingStore struct {
	mail.OutboxStore
	change func(o *mail.Outgoing) error // after the change, before it is kept
}

var errStore = errors.New("the disk is full")

func (s *fakeFailingStore) ChangeOutgoing(ctx context.Context, id string, change func(*mail.Outgoing) (bool, error)) (mail.Outgoing, error) {
	return s.OutboxStore.ChangeOutgoing(ctx, id, func(o *mail.Outgoing) (bool, error) {
		drop, err := change(o)
		if err == nil && s.change != nil {
			err = s.change(o)
		}
		return drop, err
	})
}

func TestStoreThatFailsAtTheGateKeepsTheMessageHere(t *testing.T) {
	t.Parallel()
	o := newFixture(t, newFakeSubmission(t))
	store := &fakeFailingStore{OutboxStore: o.vault}
	b := outbox.New(outbox.Options{Directory: o.dir, Store: store, Key: func(ctx context.Context) ([]byte, error) { return o.vault.Key(ctx, "outbox") }})
	store.change = func(e *mail.Outgoing) error {
		if e.State == mail.OutboxUnknown {
			return errStore
		}
		return nil
	}
	e, err := b.Send(t.Context(), account, hello(keyed("k")))
	if !errors.Is(err, errStore) || e == nil || e.State != mail.OutboxQueued || len(o.server.messages()) > 0 {
		t.Errorf("%+v, %v", e, err)
	}
	store.change = func(e *mail.Outgoing) error {
		if e.State == mail.OutboxAccepted {
			return errStore
		}
		return nil
	}
	// What was sent and cannot be recorded is told, and stays unknown in the record.
	if e, err = b.Send(t.Context(), account, hello(keyed("k"))); err != nil || e.State != mail.OutboxAccepted || e.Reason == "" {
		t.Errorf("%+v, %v", e, err)
	}
	if kept := o.entry(e.ID); kept.State != mail.OutboxUnknown || len(o.server.messages()) != 1 {
		t.Errorf("kept %+v", kept)
	}
}

// Where nobody knows whether a message left, nobody is told that it did not, also when
// even that cannot be recorded.
func TestAnUnknownThatCannotBeRecordedIsStillUnknown(t *testing.T) {
	t.Parallel()
	o := newFixture(t, newFakeSubmission(t))
	full := false
	store := &fakeFailingStore{OutboxStore: o.vault, change: func(e *mail.Outgoing) error {
		if full {
			return errStore
		}
		full = e.State == mail.OutboxUnknown
		return nil
	}}
	b := outbox.New(outbox.Options{Directory: o.dir, Store: store, Key: func(ctx context.Context) ([]byte, error) { return o.vault.Key(ctx, "outbox") }})
	o.server.fault(stepTaken, fault{cut: true})
	e, err := b.Send(t.Context(), account, hello(keyed("k")))
	if err != nil || e.State != mail.OutboxUnknown || !strings.Contains(e.Reason, "not known") {
		t.Fatalf("%+v, %v", e, err)
	}
	if stored, taken := o.entry(e.ID).State, len(o.server.messages()); stored != mail.OutboxUnknown || taken != 1 {
		t.Errorf("the outbox says %s, and the server took %d", stored, taken)
	}
	o.server.at(nil)
	full, store.change = false, nil
	// The attempt could not be ended either, so nobody may go on with it for now.
	mailtest.WantKind(t, second(b.Send(t.Context(), account, hello(keyed("k")))), mail.KindConflict)
	if n := len(o.server.messages()); n != 1 {
		t.Errorf("the server has %d", n)
	}
}
