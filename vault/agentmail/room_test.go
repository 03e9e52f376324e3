package agentmail

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/vault"
)

// TestNobodyFillsTheMailboxForOthers: a principal has a share of it, whatever identities it
// sends as, and gets it back when its messages end.
func TestNobodyFillsTheMailboxForOthers(t *testing.T) {
	t.Parallel()
	b, at := agentVault(t)
	b.limits.shareMessages, b.limits.shareBytes = 10, 30_000
	from := func(principal string, size int) Message {
		return Message{Sender: "p:" + newID()[:8], Recipient: "p:b", Body: strings.Repeat("x", size), Principal: principal}
	}
	for principal, c := range map[string]struct{ size, fit int }{"count": {0, 10}, "agent": {9000, 3}} {
		for n := range c.fit + 1 {
			_, err := b.Send(t.Context(), from(principal, c.size))
			var full *vault.ShareFull
			if errors.As(err, &full) != (n == c.fit) || full != nil && (full.Principal != principal || full.Of != vault.ShareMailbox || full.Count != 10 || full.Bytes != 30_000) {
				t.Errorf("%s, message %d: %v", principal, n, err)
			}
		}
	}
	must(t, second(b.Send(t.Context(), from("person", 9000))))
	list, err := b.Status(t.Context(), "", "")
	if must(t, err); len(list) != 1+10+3+1 || slices.ContainsFunc(list, func(s Status) bool { return !strings.HasPrefix(s.Agent, "p:") }) {
		t.Errorf("status: %+v", list)
	}
	at.at = at.at.Add(TTL + time.Minute)
	b.limits.purge = 1 // the share is full of expired messages
	must(t, second(b.Send(t.Context(), from("agent", 9000))))
	must(t, b.purge(t.Context(), new(Cleanup)))
	must(t, b.look(t.Context(), func(r *room) {
		if a := r.agent(r.key("principal agent")); a.Kept != 1 || a.KeptBytes < 9000 || r.agent(r.key("principal person")).Kept != 0 {
			t.Errorf("what is counted is %+v", a.agentRecord)
		}
	}))
}
