package agentmail

import (
	"fmt"
	"testing"

	"github.com/postern-mail/postern/vault"
)

const (
	benchMessages   = 100_000
	benchIdentities = 20
)

var benchKeys vault.Keys

// fullMailroom is a mailbox of 100,000 messages of 20 agents, one in fifty of them to
// everyone, most of which were read.
func fullMailroom(b *testing.B) *testBox {
	b.Helper()
	path, k := newVaultFile(b)
	benchKeys = vault.Keys{Agent: k.Agent}
	v := mustOpen(b, path, benchKeys, nil)
	who := func(n int) string { return fmt.Sprintf("bench:agent-%d", n%benchIdentities) }
	const batch = 5000
	for start := 0; start < benchMessages; start += batch {
		must(b, v.update(b.Context(), func(r *room) {
			for i := start; i < start+batch; i++ {
				m := Message{Sender: who(i), Recipient: who(i/benchIdentities + i + 1), Subject: "a subject", Body: "a body of a few words", Created: r.now}
				if i%50 == 0 {
					m.Recipient = Everyone
				}
				m.ID = newID()
				r.add(&m)
			}
		}))
	}
	for n := range benchIdentities - 1 { // the last one reads nothing
		for range 4 {
			fetch(b, v, Query{Agent: who(n), Limit: 1000})
		}
	}
	b.ResetTimer()
	return v
}

func BenchmarkAgentMail100k(b *testing.B) {
	v := fullMailroom(b)
	b.Run("send", func(b *testing.B) {
		for b.Loop() {
			post(b, v, "bench:agent-1", "bench:agent-2", "x")
		}
	})
	b.Run("broadcast", func(b *testing.B) {
		for b.Loop() {
			post(b, v, "bench:agent-1", Everyone, "x")
		}
	})
	b.Run("read20", func(b *testing.B) {
		for unread := 0; b.Loop(); unread -= 20 {
			if unread == 0 {
				unread = 5000
				b.StopTimer()
				for range 5 {
					postMany(b, v, "bench:agent-1", "bench:agent-19", 1000)
				}
				b.StartTimer()
			}
			if n := len(fetch(b, v, Query{Agent: "bench:agent-19"})); n != 20 {
				b.Fatalf("read %d messages", n)
			}
		}
	})
	b.Run("read1", func(b *testing.B) {
		fetch(b, v, Query{Agent: "bench:quiet", Limit: 10_000})
		for b.Loop() {
			b.StopTimer()
			post(b, v, "bench:agent-1", "bench:quiet", "x")
			b.StartTimer()
			if n := len(fetch(b, v, Query{Agent: "bench:quiet"})); n != 1 {
				b.Fatalf("read %d messages", n)
			}
		}
	})
	b.Run("read0", func(b *testing.B) {
		for b.Loop() {
			fetch(b, v, Query{Agent: "bench:quiet"})
		}
	})
	b.Run("thread5", func(b *testing.B) {
		m := post(b, v, "bench:agent-1", "bench:agent-2", "x")
		for range 4 {
			_, err := v.Send(b.Context(), Message{Sender: "bench:agent-2", Recipient: "bench:agent-1", ReplyTo: m.ID})
			must(b, err)
		}
		for b.Loop() {
			if list, err := v.Thread(b.Context(), Thread{Agent: "bench:agent-1", ID: m.ID}); err != nil || len(list) != 5 {
				b.Fatal(len(list), err)
			}
		}
	})
	b.Run("peek20", func(b *testing.B) {
		for b.Loop() {
			fetch(b, v, Query{Agent: "bench:agent-19", Peek: true})
		}
	})
	b.Run("all20", func(b *testing.B) {
		for b.Loop() {
			fetch(b, v, Query{Agent: "bench:agent-3", All: true})
		}
	})
	b.Run("status", func(b *testing.B) {
		for b.Loop() {
			if _, err := v.Status(b.Context(), "", ""); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("ack", func(b *testing.B) {
		m := post(b, v, "bench:agent-1", "bench:agent-2", "x")
		for b.Loop() {
			if _, err := v.Ack(b.Context(), "bench:agent-2", m.ID, false); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("open", func(b *testing.B) {
		path, keys := v.Path(), benchKeys
		for b.Loop() {
			mustOpen(b, path, keys, nil)
		}
	})
}
