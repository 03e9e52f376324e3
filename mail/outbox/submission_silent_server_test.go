package outbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/outbox"
)

func TestLogHoldsIdsAndStatesAlone(t *testing.T) {
	o := newOffice(t, newSubmissionServer(t), approving)
	var log bytes.Buffer
	b := outbox.New(outbox.Options{Directory: o.dir, Store: o.vault, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Key: func(ctx context.Context) ([]byte, error) { return o.vault.Key(ctx, "outbox") }})
	e, err := b.Send(t.Context(), account, hello(keyed("order-17"), withBCC))
	if err != nil {
		t.Fatal(err)
	}
	o.server.fault(stepRcpt, interference{reply: "451 4.3.0 not now, bob@example.net"})
	if _, err := b.Approve(t.Context(), e.ID, e.Digest, "ann"); err == nil {
		t.Error("approved in vain")
	}
	o.server.fault(stepAuth, interference{reply: "535 5.7.8 no"})
	if _, err := b.Approve(t.Context(), e.ID, e.Digest, "ann"); kind(err) != mail.KindAuth {
		t.Errorf("a refused login: %v", err)
	}
	if _, err := b.Reject(t.Context(), e.ID, "ann", "rude words"); err != nil {
		t.Error(err)
	}
	text := log.String()
	if strings.Count(text, e.ID) < 3 || !strings.Contains(text, "state=rejected") || !strings.Contains(text, "code=451") {
		t.Errorf("the log tells too little:\n%s", text)
	}
	for _, secret := range []string{"example.net", "example.org", "Hello", "order-17", "secret", "rude", "More of it", e.MessageID} {
		if strings.Contains(text, secret) {
			t.Errorf("the log holds %q:\n%s", secret, text)
		}
	}
}

func TestOnlyBCCIsARecipientToo(t *testing.T) {
	o := newOffice(t, newSubmissionServer(t))
	o.mustSend(hello(func(r *outbox.Request) { r.Draft.To, r.Draft.BCC = nil, []mail.Address{{Addr: "bob@example.net"}} }))
	if got := o.server.messages(); len(got) != 1 || !slices.Equal(got[0].to, []string{"bob@example.net"}) || strings.Contains(got[0].raw, "bob") {
		t.Errorf("the server has %+v", got)
	}
}

func TestAddressesBeyondASCIINeedAServerThatTakesThem(t *testing.T) {
	request := func(typed string) outbox.Request {
		to, err := outbox.ParseAddress(typed)
		if err != nil {
			t.Fatal(err)
		}
		return hello(func(r *outbox.Request) { r.Draft.To = []mail.Address{to} })
	}
	open := func(a *mail.Account) { a.AllowOut = mail.AllowList{} }
	plain := newOffice(t, newSubmissionServer(t), open)
	e, err := plain.Send(t.Context(), account, request("jörg@example.net"))
	if kind(err) != mail.KindUnsupported || e.State != mail.OutboxRefused || e.Temporary || slices.Contains(plain.server.commands(), "MAIL") {
		t.Errorf("%+v, %v", e, err)
	}
	// A domain beyond ASCII has a form inside it.
	e = plain.mustSend(request("bob@bücher.example"))
	if got := plain.server.messages(); len(got) != 1 || got[0].to[0] != "bob@xn--bcher-kva.example" || e.SMTPUTF8 {
		t.Errorf("the server has %+v", got)
	}
	able := newOffice(t, newSubmissionServer(t, "SMTPUTF8", "8BITMIME"), open)
	if e := able.mustSend(request("jörg@example.net")); !e.SMTPUTF8 || able.server.messages()[0].to[0] != "jörg@example.net" {
		t.Errorf("entry %+v", e)
	}
}

func TestDryRunOfAMessageThatWouldWait(t *testing.T) {
	o := newOffice(t, newSubmissionServer(t), approving)
	e := o.mustSend(hello(func(r *outbox.Request) { r.DryRun = true }))
	if e.State != mail.OutboxWaiting || e.ID != "" || len(o.entries()) > 0 || len(o.server.commands()) == 0 {
		t.Errorf("entry %+v", e)
	}
}

func TestKeysNeedSomethingThatNamesThem(t *testing.T) {
	o := newOffice(t, newSubmissionServer(t))
	for name, key := range map[string]func(context.Context) ([]byte, error){
		"none":  nil,
		"short": func(context.Context) ([]byte, error) { return make([]byte, 31), nil },
		"fails": func(context.Context) ([]byte, error) { return nil, errStore },
	} {
		b := outbox.New(outbox.Options{Directory: o.dir, Store: o.vault, Key: key})
		if e, err := b.Send(t.Context(), account, hello(keyed("k"))); e != nil || err == nil || name == "none" && kind(err) != mail.KindUnsupported || name == "fails" && !errors.Is(err, errStore) {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
		if e, err := b.Send(t.Context(), account, hello()); err != nil || e.State != mail.OutboxAccepted {
			t.Errorf("%s, without a key: %+v, %v", name, e, err)
		}
	}
}

func TestEveryMessageHasItsOwnNames(t *testing.T) {
	o := newOffice(t, newSubmissionServer(t))
	at := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	o.now = func() time.Time { return at }
	seen := map[string]bool{}
	var ids []string
	for i := range 20 {
		at = at.Add(time.Millisecond)
		e := o.mustSend(hello(func(r *outbox.Request) { r.Draft.Subject = fmt.Sprint(i) }))
		if seen[e.ID] || seen[e.MessageID] || len(e.ID) != 16 {
			t.Errorf("%s, %s", e.ID, e.MessageID)
		}
		seen[e.ID], seen[e.MessageID] = true, true
		ids = append(ids, e.ID)
	}
	if !slices.IsSorted(ids) {
		t.Errorf("ids do not sort by age: %v", ids)
	}
}

func TestKeyUsedAnewForAnotherMessageHasAnotherMessageID(t *testing.T) {
	at := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	o := newOffice(t, newSubmissionServer(t))
	other := newOffice(t, newSubmissionServer(t))
	key := func(context.Context) ([]byte, error) { return bytes.Repeat([]byte{7}, 32), nil }
	send := func(o *office, subject string) *mail.Outgoing {
		b := outbox.New(outbox.Options{Directory: o.dir, Store: o.vault, Key: key, Now: func() time.Time { return at }})
		e, err := b.Send(t.Context(), account, hello(keyed("k"), func(r *outbox.Request) { r.Draft.Subject = subject }))
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	first := send(o, "one")
	if again := send(other, "one"); again.MessageID != first.MessageID {
		t.Errorf("the same message is %s and %s", first.MessageID, again.MessageID)
	}
	third := newOffice(t, newSubmissionServer(t))
	if another := send(third, "two"); another.MessageID == first.MessageID {
		t.Errorf("two messages are %s", first.MessageID)
	}
}

func TestListIsBounded(t *testing.T) {
	o := newOffice(t, newSubmissionServer(t), approving)
	start := time.Now()
	for i := range 3 {
		o.now = func() time.Time { return start.Add(time.Duration(i) * time.Millisecond) } // entries are told apart by it
		o.mustSend(hello(func(r *outbox.Request) { r.Principal = fmt.Sprint("p", i) }))
	}
	for _, limit := range []int{-1, mail.MaxOutboxLimit + 1} {
		if _, _, err := o.List(t.Context(), mail.OutboxQuery{Limit: limit}); kind(err) != mail.KindInvalid {
			t.Errorf("limit %d: %v", limit, err)
		}
	}
	first, more, err := o.List(t.Context(), mail.OutboxQuery{Limit: 2})
	if err != nil || len(first) != 2 || !more || first[0].Principal != "p2" {
		t.Fatalf("%+v, %v, %v", first, more, err)
	}
	if own, _, err := o.List(t.Context(), mail.OutboxQuery{Principal: "p0"}); err != nil || len(own) != 1 {
		t.Errorf("own: %+v, %v", own, err)
	}
	if rest, more, err := o.List(t.Context(), mail.OutboxQuery{Before: first[1].ID}); err != nil || len(rest) != 1 || more {
		t.Errorf("rest: %+v, %v, %v", rest, more, err)
	}
}

// TestLeaseEndsWithTheCallersTime looks at the entry while it is on its way.
func TestLeaseEndsWithTheCallersTime(t *testing.T) {
	o := newOffice(t, newSubmissionServer(t))
	var seen mail.Outgoing
	o.server.fault(stepData, interference{do: func() { seen = o.entries()[0] }})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if _, err := o.Send(ctx, account, hello()); err != nil {
		t.Fatal(err)
	}
	deadline, _ := ctx.Deadline()
	if seen.State != mail.OutboxUnknown || seen.Attempt == "" || seen.Until.Before(deadline) || seen.Until.After(deadline.Add(time.Minute)) {
		t.Errorf("on its way it is %s until %s, and the caller's time ends %s", seen.State, seen.Until, deadline)
	}
}

func BenchmarkSend(b *testing.B) {
	for _, size := range []int{1 << 10, 10 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			o := newOffice(b, newSubmissionServer(b))
			content := bytes.Repeat([]byte("0123456789abcde\n"), size/16)
			b.SetBytes(int64(size))
			for b.Loop() {
				o.mustSend(hello(func(r *outbox.Request) {
					r.Draft.Attachments = []outbox.Attachment{{Name: "a.txt", Content: content}}
				}))
			}
		})
	}
}
