package agentmail

import (
	"bytes"
	"path/filepath"
	"testing"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault"
	"github.com/postern-mail/postern/vault/kv"
	"github.com/postern-mail/postern/vault/vaulttest"
)

// fixtureTime is when ../testdata/format1-full.db was written, by the version whose
// mailbox lay in eleven buckets.
var fixtureTime = time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)

func TestMailOfAnEarlierVersionIsKept(t *testing.T) {
	t.Parallel()
	path := vaulttest.Fixture(t, filepath.Join("..", "testdata", "format1-full.db"), func(from, to string) error {
		admin := mail.NewSecret([]byte("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="))
		return second(vault.Copy(t.Context(), from, to, vault.Keys{Admin: admin}))
	})
	c := &fakeClock{fixtureTime}
	v := mustOpen(t, path, vault.Keys{Agent: mail.NewSecret([]byte("ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8="))}, c.now)
	peek := func(agent string, all bool) string {
		in, err := v.Read(t.Context(), Query{Agent: agent, Peek: true, All: all})
		must(t, err)
		for _, m := range in.Messages {
			if m.Body != "body of "+m.Subject || m.Refs != `["r"]` {
				t.Errorf("%s has another text: %+v", m.Subject, m)
			}
		}
		return subjects(in.Messages)
	}
	inboxes := []struct {
		agent, unread, all string
		status             Status
	}{
		{"p:a", "reply second", "reply second", Status{"p:a", 2, 2}},
		{"p:b", "again", "read acked shared again", Status{"p:b", 1, 3}},
		{"p:c", "second", "shared second", Status{}},
		{"p:d", "shared second held", "shared second held", Status{"p:d", 3, 3}}, // some were held by a reader
		{"q:stranger", "shared second waits", "shared second waits", Status{"q:stranger", 3, 3}},
		{"p:new", "shared second", "shared second", Status{}},
	}
	for _, want := range inboxes {
		if got := peek(want.agent, false); got != want.unread {
			t.Errorf("%s has unread: %s", want.agent, got)
		}
		if got := peek(want.agent, true); got != want.all {
			t.Errorf("%s has: %s", want.agent, got)
		}
		list, err := v.Status(t.Context(), want.agent, "")
		must(t, err)
		if want.status.Agent != "" && (len(list) != 1 || list[0] != want.status) {
			t.Errorf("the status of %s: %+v", want.agent, list)
		}
	}
	in, err := v.Thread(t.Context(), Thread{Agent: "p:b", ID: "01579f69-cfa6-465c-8f86-6544d170fdb4"})
	must(t, err)
	thread := in.Messages
	if subjects(thread) != "read reply again" || thread[0].ReadAt.IsZero() || !thread[2].ReadAt.IsZero() {
		t.Errorf("the thread: %+v", thread)
	}
	acked, err := v.Ack(t.Context(), "p:b", "8e4ec23a-4551-4e07-96aa-172bdff7ae81", true)
	if err != nil || !acked.Before(fixtureTime) {
		t.Errorf("the message acked was acked at %v, %v", acked, err)
	}
	c.at = fixtureTime.Add(time.Minute)
	post(t, v, "p:new", Everyone, "later")
	for _, want := range inboxes {
		unread := want.unread + " later"
		if want.agent == "p:new" {
			unread = want.unread
		}
		reads(t, v, Query{Agent: want.agent}, unread)
		if got := peek(want.agent, false); got != "" {
			t.Errorf("%s reads again: %s", want.agent, got)
		}
	}
	c.at = c.at.Add(TTL + time.Second)
	must(t, second(v.Cleanup(t.Context(), false)))
	if list, err := v.Status(t.Context(), "", ""); err != nil || len(list) != 0 {
		t.Errorf("after a day: %+v, %v", list, err)
	}
	must(t, v.Check(t.Context()))
}

// TestAnAgentOfAnEarlierVersionIsRead has an agent record with a member that this version
// does not know. A read that changes nothing else must not try to rewrite the record.
func TestAnAgentOfAnEarlierVersionIsRead(t *testing.T) {
	t.Parallel()
	v := newBox(t, nil)
	post(t, v, "p:a", "p:b", "hello")
	must(t, v.Update(t.Context(), func(tx kv.Tx) error {
		for record, err := range kv.Each(tx, bucketAgents, kv.Range{}) {
			must(t, err)
			with := bytes.Replace(record.Value, []byte("}"), []byte(`,"claims":[{"id":"x","at":1,"seqs":[1]}]}`), 1)
			must(t, tx.Put(bucketAgents, record.Key, with))
		}
		return nil
	}))
	in, err := v.Read(t.Context(), Query{Agent: "p:b", Peek: true})
	if err != nil || subjects(in.Messages) != "hello" {
		t.Errorf("p:b has unread: %s, %v", subjects(in.Messages), err)
	}
	if list, err := v.Status(t.Context(), "", ""); err != nil || len(list) == 0 {
		t.Errorf("the status: %+v, %v", list, err)
	}
}
