package agentmail

import (
	"fmt"
	"testing"
)

// An agent has the same twenty messages among a hundred messages of others and among
// twenty thousand. Each command must take the same transactions and the same steps in both.
func TestCostsDoNotGrowWithTheMailOfOthers(t *testing.T) {
	others := []int{100, size(20_000, 2000)}
	tolls := map[string][]toll{}
	for _, n := range others {
		v, _ := agentVault(t)
		thread := ""
		const batch = 250
		for start := 0; start < n; start += batch {
			must(t, v.update(t.Context(), func(r *room) {
				for i := start; i < min(start+batch, n); i++ {
					m := Message{Sender: fmt.Sprintf("other:s%d", i%9), Recipient: fmt.Sprintf("other:r%d", i%23), Subject: "others", Body: "some words", Created: r.now}
					if i%(n/20) == 0 {
						m = Message{Sender: "p:a", Recipient: "p:b", Subject: fmt.Sprint(i), Body: "some words", Created: r.now, ReplyTo: thread}
					}
					m.ID = newID()
					if m.Sender == "p:a" && thread == "" {
						thread = m.ID
					}
					r.add(&m)
				}
			}))
		}
		found := func(list []Message) {
			t.Helper()
			if len(list) != 20 {
				t.Errorf("%d messages", len(list))
			}
		}
		for _, c := range []struct {
			name string
			use  func()
		}{
			{"peek", func() { found(fetch(t, v, Query{Agent: "p:b", Peek: true})) }},
			{"await", func() { must(t, v.Await(t.Context(), Query{Agent: "p:b"})) }},
			{"read", func() { found(fetch(t, v, Query{Agent: "p:b"})) }},
			{"nothing", func() {
				if list := fetch(t, v, Query{Agent: "p:b"}); len(list) != 0 {
					t.Error("it is read twice")
				}
			}},
			{"all", func() { found(fetch(t, v, Query{Agent: "p:b", All: true, Peek: true})) }},
			{"thread", func() {
				list, err := v.Thread(t.Context(), Thread{Agent: "p:b", ID: thread})
				must(t, err)
				found(list)
			}},
			{"status", func() { statusOf(t, v, "p:b") }},
			{"ack", func() {
				_, err := v.Ack(t.Context(), "p:b", thread, true)
				must(t, err)
			}},
			{"send", func() { post(t, v, "p:a", "p:b", "x") }},
			{"broadcast", func() { post(t, v, "p:a", Everyone, "x") }},
		} {
			tolls[c.name] = append(tolls[c.name], tollOf(v, c.use))
		}
	}
	for name, want := range map[string]toll{
		"peek": {reads: 1}, "await": {reads: 1}, "read": {reads: 1, writes: 2}, "nothing": {reads: 1}, "all": {reads: 1}, "thread": {reads: 1},
		"status": {reads: 2}, "ack": {writes: 1}, "send": {writes: 1}, "broadcast": {writes: 1},
	} {
		few, many := tolls[name][0], tolls[name][1]
		t.Logf("%-9s %+v, among many %+v", name, few, many)
		if few.reads != want.reads || few.writes != want.writes || many.reads != want.reads || many.writes != want.writes {
			t.Errorf("%s takes %+v and %+v, want %d that read and %d that write", name, few, many, want.reads, want.writes)
		}
		if few.steps != many.steps {
			t.Errorf("%s takes %d steps, and %d among many", name, few.steps, many.steps)
		}
	}
}

// TestAReadStopsWhenItHasEnough compares an inbox of twenty unread messages with one
// of many more.
func TestAReadStopsWhenItHasEnough(t *testing.T) {
	var tolls []toll
	for _, n := range []int{25, 500} {
		v, _ := agentVault(t)
		postMany(t, v, "p:a", "p:b", n)
		tolls = append(tolls, tollOf(v, func() { fetch(t, v, Query{Agent: "p:b", Peek: true}) }))
		tolls = append(tolls, tollOf(v, func() { fetch(t, v, Query{Agent: "p:b"}) }))
	}
	for i := range 2 {
		if few, many := tolls[i], tolls[i+2]; few.steps != many.steps || few.writes != many.writes {
			t.Errorf("a read takes %+v, and from a full inbox %+v", few, many)
		}
	}
}
