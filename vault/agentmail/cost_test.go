package agentmail

import (
	"context"
	"fmt"
	"testing"

	"github.com/postern-mail/postern/vault/kv"
)

// cost is what one use of a mailbox takes: read and write transactions, and the records
// that they looked up, changed or asked for.
type cost struct{ reads, writes, steps int }

// countingStore counts the costs of a store, and each countingTx the steps.
type countingStore struct {
	Store
	cost
}

func (s *countingStore) View(ctx context.Context, fn func(kv.Tx) error) error {
	s.reads++
	return s.Store.View(ctx, func(tx kv.Tx) error { return fn(countingTx{tx, s}) })
}

func (s *countingStore) Update(ctx context.Context, fn func(kv.Tx) error) error {
	s.writes++
	return s.Store.Update(ctx, func(tx kv.Tx) error { return fn(countingTx{tx, s}) })
}

type countingTx struct {
	kv.Tx
	s *countingStore
}

func (t countingTx) Get(bucket string, key []byte) ([]byte, error) {
	t.s.steps++
	return t.Tx.Get(bucket, key)
}

func (t countingTx) Put(bucket string, key, value []byte) error {
	t.s.steps++
	return t.Tx.Put(bucket, key, value)
}

func (t countingTx) Delete(bucket string, key []byte) error {
	t.s.steps++
	return t.Tx.Delete(bucket, key)
}

func (t countingTx) Scan(bucket string, r kv.Range, limit int) ([]kv.Record, error) {
	t.s.steps += limit
	return t.Tx.Scan(bucket, r, limit)
}

// costOf returns the cost of use.
func costOf(v *testBox, use func()) cost {
	s := &countingStore{Store: v.store}
	v.store = s
	defer func() { v.store = s.Store }()
	use()
	return s.cost
}

// An agent has the same twenty messages among a hundred messages of others and among
// two thousand. Each command must take the same transactions and the same steps in both.
func TestCostsDoNotGrowWithTheMailOfOthers(t *testing.T) {
	t.Parallel()
	costs := map[string][]cost{}
	for _, n := range []int{100, 2000} {
		v, _ := agentVault(t)
		thread := ""
		must(t, v.update(t.Context(), func(r *room) {
			for i := range n {
				m := Message{ID: newID(), Sender: fmt.Sprintf("other:s%d", i%9), Recipient: fmt.Sprintf("other:r%d", i%23), Created: r.now}
				if i%(n/20) == 0 {
					m.Sender, m.Recipient, m.ReplyTo = "p:a", "p:b", thread
					if thread == "" {
						thread = m.ID
					}
				}
				r.add(&m)
			}
		}))
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
			{"nothing", func() { fetch(t, v, Query{Agent: "p:b"}) }},
			{"all", func() { found(fetch(t, v, Query{Agent: "p:b", All: true, Peek: true})) }},
			{"thread", func() {
				in, err := v.Thread(t.Context(), Thread{Agent: "p:b", ID: thread})
				must(t, err)
				found(in.Messages)
			}},
			{"status", func() { statusOf(t, v, "p:b") }},
			{"ack", func() { must(t, second(v.Ack(t.Context(), "p:b", thread, true))) }},
			{"send", func() { post(t, v, "p:a", "p:b", "x") }},
			{"broadcast", func() { post(t, v, "p:a", Everyone, "x") }},
		} {
			costs[c.name] = append(costs[c.name], costOf(v, c.use))
		}
	}
	for name, want := range map[string]cost{
		"peek": {reads: 1}, "await": {reads: 1}, "read": {reads: 1, writes: 2}, "nothing": {reads: 1}, "all": {reads: 1}, "thread": {reads: 1},
		"status": {reads: 2}, "ack": {writes: 1}, "send": {writes: 1}, "broadcast": {writes: 1},
	} {
		few, many := costs[name][0], costs[name][1]
		if few != many || few.reads != want.reads || few.writes != want.writes {
			t.Errorf("%s takes %+v, and %+v among many; want %d that read and %d that write", name, few, many, want.reads, want.writes)
		}
	}
}

// TestAReadStopsWhenItHasEnough compares an inbox of twenty unread messages with one
// of many more.
func TestAReadStopsWhenItHasEnough(t *testing.T) {
	t.Parallel()
	var costs []cost
	for _, n := range []int{25, 500} {
		v, _ := agentVault(t)
		postMany(t, v, "p:a", "p:b", n)
		costs = append(costs, costOf(v, func() { fetch(t, v, Query{Agent: "p:b", Peek: true}) }), costOf(v, func() { fetch(t, v, Query{Agent: "p:b"}) }))
	}
	for i := range 2 {
		if few, many := costs[i], costs[i+2]; few.steps != many.steps || few.writes != many.writes {
			t.Errorf("a read takes %+v, and from a full inbox %+v", few, many)
		}
	}
}
