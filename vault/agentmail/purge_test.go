package agentmail

import (
	"strings"
	"testing"
	"time"
)

// That nothing is left of what was read, answered and acknowledged is in the model.
func TestCleanupTellsWhatItRemoves(t *testing.T) {
	t.Parallel()
	v, c := agentVault(t)
	v.limits.purge = 25
	start := c.at
	postMany(t, v, "p:a", "p:b", 150)
	fetch(t, v, Query{Agent: "p:b", Limit: 100})
	c.at = start.Add(TTL)
	dry, err := v.Cleanup(t.Context(), true)
	if err != nil || dry.Count != 0 {
		t.Fatalf("at 24 h to the instant: %+v, %v", dry, err)
	}
	c.at = c.at.Add(time.Microsecond)
	if dry, err = v.Cleanup(t.Context(), true); err != nil || dry.Count <= v.limits.purge || len(dry.Messages) != dry.Count || !dry.Oldest.Equal(start) {
		t.Fatalf("dry run: %d of %d, %v", dry.Count, len(dry.Messages), err)
	}
	done, err := v.Cleanup(t.Context(), false)
	if err != nil || done.Count != dry.Count || !done.Oldest.Equal(dry.Oldest) || !done.Newest.Equal(dry.Newest) {
		t.Fatalf("cleanup: %+v, %v", done, err)
	}
	onlyTheNumberRemains(t, v)
}

func onlyTheNumberRemains(t testing.TB, v *testBox) {
	t.Helper()
	for _, bucket := range []string{bucketMessages, bucketIndex, bucketBoxes} {
		if n := countRecords(t, v, bucket, 0); n > 0 {
			t.Errorf("%s has %d records left", bucket, n)
		}
	}
	each(t, v, bucketAgents, func(_, value []byte) {
		if !strings.Contains(string(value), `"name":"*"`) {
			t.Errorf("an agent is left: %s", value)
		}
	})
}

func TestEveryUseRemovesExpiredMessages(t *testing.T) {
	t.Parallel()
	for name, use := range map[string]func(*testBox) error{
		"send":   func(v *testBox) error { return second(v.Send(t.Context(), Message{Sender: "p:x", Recipient: "p:y"})) },
		"read":   func(v *testBox) error { return second(v.Read(t.Context(), Query{Agent: "p:b"})) },
		"peek":   func(v *testBox) error { return second(v.Read(t.Context(), Query{Agent: "p:b", Peek: true})) },
		"status": func(v *testBox) error { return second(v.Status(t.Context(), "", "")) },
	} {
		v, c := agentVault(t)
		v.limits.purge = 5
		postMany(t, v, "p:a", "p:b", 15)
		c.at = c.at.Add(TTL + time.Microsecond)
		left := func() (n int) {
			each(t, v, bucketMessages, func(_, value []byte) {
				if strings.Contains(string(value), `"subject":"many"`) {
					n++
				}
			})
			return n
		}
		must(t, use(v))
		// One use removes only so many, but status removes all, since it has to count.
		if want := map[bool]int{false: 10, true: 0}[name == "status"]; left() != want {
			t.Errorf("%s left %d messages, want %d", name, left(), want)
		}
		must(t, use(v))
		must(t, use(v))
		if left() != 0 {
			t.Errorf("%s left %d messages in the end", name, left())
		}
	}
}

// An expired message that is still there is in no thread and has no acknowledgement. That no
// read finds it is in the model.
func TestAnExpiredMessageCannotBeNamed(t *testing.T) {
	t.Parallel()
	v, c := agentVault(t)
	v.limits.purge = 1
	postMany(t, v, "p:a", "p:b", 20)
	direct, everyone := post(t, v, "p:a", "p:b", "old"), post(t, v, "p:a", Everyone, "old")
	c.at = c.at.Add(TTL)
	young, err := v.Send(t.Context(), Message{Sender: "p:a", Recipient: "p:b", Subject: "young", ReplyTo: direct.ID})
	must(t, err)
	c.at = c.at.Add(time.Microsecond)
	if in, err := v.Thread(t.Context(), Thread{Agent: "p:b", ID: young.ID}); err != nil || subjects(in.Messages) != "young" {
		t.Errorf("thread: %q, %v", subjects(in.Messages), err)
	}
	for _, m := range []Message{direct, everyone} {
		wantErr(t, second(v.Thread(t.Context(), Thread{Agent: "p:b", ID: m.ID})), ErrNoMessage, "thread of one that expired")
		wantErr(t, second(v.Ack(t.Context(), "p:b", m.ID, false)), ErrNoMessage, "ack of one that expired")
	}
	if countRecords(t, v, bucketMessages, 0) < 2 {
		t.Fatal("nothing had to be hidden")
	}
}
