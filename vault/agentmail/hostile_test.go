package agentmail

import (
	"fmt"
	"testing"
	"time"
)

// TestABroadcastToMany has many agents read one broadcast. Each has its own mark, and when
// the broadcast expires no call removes all of the marks.
func TestABroadcastToMany(t *testing.T) {
	t.Parallel()
	const readers = 100
	v, c := agentVault(t)
	v.limits.purge = 30
	post(t, v, "p:a", Everyone, "all")
	must(t, v.update(t.Context(), func(r *room) {
		for n := range readers {
			q := Query{Agent: fmt.Sprintf("p:r%d", n), Limit: DefaultLimit}
			in := r.claim(&q)
			if len(in.Messages) != 1 {
				r.fail(fmt.Errorf("%s got %d messages", q.Agent, len(in.Messages)))
			}
			r.confirm(q.Agent, in.Claim)
		}
	}))
	reads(t, v, Query{Agent: "p:r77"}, "")
	post(t, v, "p:r7", "p:r8", "hello")
	if s := statusOf(t, v, "p:r8"); s != (Status{"p:r8", 1, 2}) {
		t.Errorf("%+v", s)
	}
	c.at = c.at.Add(TTL + time.Microsecond)
	before := countRecords(t, v, bucketIndex, indexMark)
	post(t, v, "p:x", "p:y", "young")
	if gone := before - countRecords(t, v, bucketIndex, indexMark); before != readers || gone != v.limits.purge {
		t.Errorf("one call removed %d of %d marks, want %d", gone, before, v.limits.purge)
	}
	for _, all := range []bool{false, true} {
		reads(t, v, Query{Agent: "p:r99", All: all}, "")
	}
	if list, err := v.Status(t.Context(), "", ""); err != nil || len(list) != 2 || statusOf(t, v, "p:y") != (Status{"p:y", 1, 1}) {
		t.Errorf("left: %+v, %v", list, err)
	}
}

// The clock jumps far ahead and back. Messages of either time stay until they are a day
// old, and none is held for longer than a lease.
func TestTheClockMayJump(t *testing.T) {
	t.Parallel()
	v, c := agentVault(t)
	now := c.at
	post(t, v, "p:a", "p:b", "before")
	c.at = now.Add(TTL - time.Hour)
	ahead := post(t, v, "p:a", "p:b", "ahead")
	if in, err := v.Read(t.Context(), Query{Agent: "p:b"}); err != nil || len(in.Messages) != 2 {
		t.Fatalf("%+v, %v", in, err)
	}
	c.at = now.Add(time.Second) // back, with a claim from the future
	post(t, v, "p:a", Everyone, "after")
	reads(t, v, Query{Agent: "p:b"}, "before after ahead")
	reads(t, v, Query{Agent: "p:c"}, "after")
	if s := statusOf(t, v, "p:b"); s.Unread != 0 || s.Unacked != 3 {
		t.Errorf("%+v", s)
	}
	c.at = now.Add(TTL + time.Minute)
	reads(t, v, Query{Agent: "p:b", All: true}, "ahead")
	c.at = ahead.Created.Add(TTL + time.Microsecond)
	must(t, second(v.Cleanup(t.Context(), false)))
	if n := countRecords(t, v, bucketMessages, 0); n != 0 {
		t.Errorf("%d messages are left", n)
	}
}
