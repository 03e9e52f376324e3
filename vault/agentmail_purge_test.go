package vault

import (
	"errors"
	"testing"
	"time"
)

func TestExpiryLeavesNothingBehind(t *testing.T) {
	v, c := agentVault(t)
	start := c.at
	for i, m := range postMany(t, v, "p:a", "p:b", 4*maxPurge+50) {
		if i%20 < 2 {
			_, err := v.AckAgentMail(t.Context(), "p:c", m.ID, false)
			must(t, err)
			_, err = v.SendAgentMail(t.Context(), AgentMessage{Sender: "p:d", Recipient: "p:a", ReplyTo: m.ID})
			must(t, err)
		}
	}
	fetch(t, v, AgentQuery{Agent: "p:b", Limit: 100})
	fetch(t, v, AgentQuery{Agent: "p:c", From: "p:d"}) // passes every broadcast
	_, err := v.ReadAgentMail(t.Context(), AgentQuery{Agent: "p:b", Limit: 10})
	must(t, err)

	c.at = start.Add(AgentMailTTL)
	dry, err := v.CleanupAgentMail(t.Context(), true)
	if err != nil || dry.Count != 0 {
		t.Fatalf("at 24 h to the instant: %+v, %v", dry, err)
	}
	c.at = c.at.Add(time.Microsecond)
	if dry, err = v.CleanupAgentMail(t.Context(), true); err != nil || dry.Count <= maxPurge || len(dry.Messages) != dry.Count || !dry.Oldest.Equal(start) {
		t.Fatalf("dry run: %d of %d, %v", dry.Count, len(dry.Messages), err)
	}
	done, err := v.CleanupAgentMail(t.Context(), false)
	if err != nil || done.Count != dry.Count || !done.Oldest.Equal(dry.Oldest) || !done.Newest.Equal(dry.Newest) {
		t.Fatalf("cleanup: %+v, %v", done, err)
	}
	onlyTheNumberRemains(t, v)
}

func onlyTheNumberRemains(t testing.TB, v *Vault) {
	t.Helper()
	must(t, v.viewTx(t.Context(), func(tx *Tx) error {
		for _, bucket := range []string{agentMessages, agentIDs, agentExpiry, agentReceived, agentBroadcasts, agentInbox, agentReplies, agentMarks, agentAgents, agentClaims} {
			n := 0
			err := tx.Bucket(bucket).ForEach(nil, func(_, value []byte) error {
				n++
				return nil
			})
			if err != nil || n > 0 {
				t.Errorf("%s has %d records left, %v", bucket, n, err)
			}
		}
		return nil
	}))
}

func TestEveryUseRemovesWhatExpired(t *testing.T) {
	for name, use := range map[string]func(*Vault) error{
		"send": func(v *Vault) error {
			_, err := v.SendAgentMail(t.Context(), AgentMessage{Sender: "p:x", Recipient: "p:y"})
			return err
		},
		"read": func(v *Vault) error { _, err := v.ReadAgentMail(t.Context(), AgentQuery{Agent: "p:b"}); return err },
		"peek": func(v *Vault) error {
			_, err := v.ReadAgentMail(t.Context(), AgentQuery{Agent: "p:b", Peek: true})
			return err
		},
		"status": func(v *Vault) error { _, err := v.AgentMailStatus(t.Context(), "", ""); return err },
	} {
		v, c := agentVault(t)
		c.at = c.at.Add(-AgentMailTTL - time.Microsecond)
		postMany(t, v, "p:a", "p:b", 3*maxPurge)
		c.at = c.at.Add(AgentMailTTL + time.Microsecond)
		left := func() (n int) {
			must(t, v.viewTx(t.Context(), func(tx *Tx) error {
				return tx.Bucket(agentMessages).ForEach(nil, func(_, value []byte) error {
					if m, err := parseRecord[messageRecord](agentMessages, value); err != nil || m.Subject == "many" {
						n++
					}
					return nil
				})
			}))
			return n
		}
		must(t, use(v))
		// One use removes so many and no more; but status has to count.
		if want := map[bool]int{false: 2 * maxPurge, true: 0}[name == "status"]; left() != want {
			t.Errorf("%s left %d messages, want %d", name, left(), want)
		}
		must(t, use(v))
		must(t, use(v))
		if left() != 0 {
			t.Errorf("%s left %d messages in the end", name, left())
		}
	}
}

// TestWhatExpiredIsSeenByNobodyBeforeItIsRemoved leaves more expired messages than one
// call removes, and looks at them in every way.
func TestWhatExpiredIsSeenByNobodyBeforeItIsRemoved(t *testing.T) {
	v, c := agentVault(t)
	old := postMany(t, v, "p:a", "p:b", 12*maxPurge)
	direct, everyone := old[len(old)-2], old[len(old)-1]
	if direct.Broadcast() {
		direct, everyone = everyone, direct
	}
	c.at = c.at.Add(AgentMailTTL)
	young, err := v.SendAgentMail(t.Context(), AgentMessage{Sender: "p:a", Recipient: "p:b", Subject: "young", ReplyTo: direct.ID})
	must(t, err)
	c.at = c.at.Add(time.Microsecond)
	for _, q := range []AgentQuery{{Agent: "p:b", Peek: true}, {Agent: "p:b", All: true, Peek: true}, {Agent: "p:b"}} {
		if got := subjects(fetch(t, v, q)); got != "young" {
			t.Errorf("%+v: %q", q, got)
		}
	}
	if got := subjects(fetch(t, v, AgentQuery{Agent: "p:c"})); got != "" {
		t.Errorf("of everyone's: %q", got)
	}
	if list, err := v.AgentThread(t.Context(), AgentThread{Agent: "p:b", ID: young.ID}); err != nil || subjects(list) != "young" {
		t.Errorf("thread: %q, %v", subjects(list), err)
	}
	for _, m := range []AgentMessage{direct, everyone} {
		if _, err := v.AgentThread(t.Context(), AgentThread{Agent: "p:b", ID: m.ID}); !errors.Is(err, ErrNoAgentMessage) {
			t.Errorf("thread of one that expired: %v", err)
		}
		if _, err := v.AckAgentMail(t.Context(), "p:b", m.ID, false); !errors.Is(err, ErrNoAgentMessage) {
			t.Errorf("ack of one that expired: %v", err)
		}
	}
	there := 0
	must(t, v.viewTx(t.Context(), func(tx *Tx) error {
		return tx.Bucket(agentMessages).ForEach(nil, func(_, _ []byte) error { there++; return nil })
	}))
	if there < 2 {
		t.Fatal("nothing had to be hidden")
	}
	if s := statusOf(t, v, "p:b"); s.Unread != 0 || s.Unacked != 1 {
		t.Errorf("%+v", s)
	}
}
