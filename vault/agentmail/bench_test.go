package agentmail

import (
	"fmt"
	"testing"
)

const (
	benchMessages   = 100_000
	benchIdentities = 20
)

// fullMailroom makes a mailbox of 100,000 messages of 20 agents. One in fifty is a
// broadcast, and most were read.
func fullMailroom(b *testing.B) *testBox {
	b.Helper()
	v := newBox(b, nil)
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
	m := post(b, v, "bench:agent-1", "bench:agent-2", "x")
	for name, use := range map[string]func(){
		"send":      func() { post(b, v, "bench:agent-1", "bench:agent-2", "x") },
		"broadcast": func() { post(b, v, "bench:agent-1", Everyone, "x") },
		"read1": func() {
			post(b, v, "bench:agent-1", "bench:quiet", "x")
			fetch(b, v, Query{Agent: "bench:quiet"})
		},
		"read0":  func() { fetch(b, v, Query{Agent: "bench:quiet", From: "bench:nobody"}) },
		"peek20": func() { fetch(b, v, Query{Agent: "bench:agent-19", Peek: true}) },
		"all20":  func() { fetch(b, v, Query{Agent: "bench:agent-3", All: true}) },
		"thread": func() { must(b, second(v.Thread(b.Context(), Thread{Agent: "bench:agent-1", ID: m.ID}))) },
		"status": func() { must(b, second(v.Status(b.Context(), "", ""))) },
		"ack":    func() { must(b, second(v.Ack(b.Context(), "bench:agent-2", m.ID, false))) },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				use()
			}
		})
	}
}
