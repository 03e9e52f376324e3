package agentmail

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/vault"
)

// TestNobodyFillsTheMailboxForOthers: a principal has a share of it, whatever identities it
// sends as, and gets it back when its messages end.
func TestNobodyFillsTheMailboxForOthers(t *testing.T) {
	at := clock{time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	path, k := newPlace(t)
	v, err := vault.Open(t.Context(), path, k, &vault.Options{Now: at.now})
	must(t, err)
	b := New(v)
	body := strings.Repeat("x", 120<<10)
	from := func(principal string) Message {
		return Message{Sender: "p:" + newID()[:8], Recipient: "p:b", Body: body, Principal: principal}
	}
	add := func(count int) error { // in one transaction, or this test would mostly sync the disk
		return b.update(t.Context(), func(r *room) {
			for range count {
				m := from("agent")
				m.ID, m.Created = newID(), r.now
				r.add(&m)
			}
		})
	}
	n := 0
	for ; err == nil; n += 50 {
		err = add(50)
	}
	var full *vault.ShareFull
	if !errors.As(err, &full) || full.Principal != "agent" || full.Of != vault.ShareMailbox || n < 500 || n > 600 {
		t.Fatalf("after %d messages: %v", n, err)
	}
	for err = nil; err == nil; {
		err = add(8)
	}
	for err = nil; err == nil; {
		_, err = b.Send(t.Context(), from("agent"))
	}
	if !errors.As(err, &full) {
		t.Errorf("a full share: %v", err)
	}
	must(t, second(b.Send(t.Context(), from("person"))))
	in, err := b.Read(t.Context(), Query{Agent: "p:b", Limit: 10})
	if err != nil || len(in.Messages) != 10 {
		t.Errorf("reading: %d messages, %v", len(in.Messages), err)
	}
	if list, err := b.Status(t.Context(), "", ""); err != nil || len(list) < 500 || strings.Contains(list[0].Agent, "agent") || list[0].Agent == "" {
		t.Errorf("status: %d agents, %+v, %v", len(list), list[:min(1, len(list))], err)
	}
	at.at = at.at.Add(TTL + time.Minute)
	must(t, second(b.Send(t.Context(), from("agent"))))
	must(t, b.purge(t.Context(), new(Cleanup)))
	must(t, b.look(t.Context(), func(r *room) {
		if a := r.agent(r.key("principal agent")); a.Kept != 1 || a.KeptBytes < len(body) || r.agent(r.key("principal person")).Kept != 0 {
			t.Errorf("what is counted is %+v", a.agentRecord)
		}
	}))
}
