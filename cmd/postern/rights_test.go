package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/servertest"
)

func plainMessages(n int) (all [][]byte) {
	for i := range n {
		all = append(all, fmt.Appendf(nil, "From: bob@example.org\r\nTo: ann@example.org\r\nSubject: %d\r\n\r\nhi\r\n", i+1))
	}
	return all
}

// An agent in mode approve destroys nothing by itself. In an account made before the right
// to delete existed it does, as it did then.
func TestAnAgentInModeApproveDestroysNothing(t *testing.T) {
	t.Parallel()
	s := servertest.SharedDovecot(t)
	agent := gateway.Principal{Name: "agent"}
	for name, destroy := range map[string]mail.Destroy{"before": mail.DestroyUnset, "off": mail.DestroyOff, "on": mail.DestroyOn} {
		t.Run(name, func(t *testing.T) {
			user := servertest.User(name)
			s.Deliver(t, user, "INBOX", plainMessages(2)...)
			v := newVault(t)
			a := dovecotAccount(s, user)
			a.Mode, a.Destroy = mail.Approve, destroy
			v.add(t, a, servertest.Password)
			h := newHouse(t, v)
			h.as(t, agent, "mail list")
			explained := h.as(t, agent, "policy explain 'mail delete 1 --confirm'")
			deleted := h.as(t, agent, "mail delete 1 --confirm")
			if destroy == mail.DestroyUnset {
				if !deleted.Success || h.as(t, agent, "mail get 1").Success {
					t.Errorf("it no longer does what it did: %s", deleted.raw)
				}
				return
			}
			code, allowed := discovery.PermissionDenied, `"allowed":false`
			if destroy == mail.DestroyOn {
				code, allowed = discovery.ApprovalRequired, `"needs_approval":true`
			} else if !strings.Contains(deleted.Error.Hint, "'mail trash'") || !strings.Contains(deleted.Error.Hint, "account edit work --destroy on") {
				t.Errorf("%s", deleted.raw)
			}
			if meant := h.as(t, agent, "mail delete 1"); destroy == mail.DestroyOff && meant.Error.Code != discovery.PermissionDenied {
				t.Errorf("without the right it asks whether that is meant: %s", meant.raw)
			}
			if deleted.Error.Code != code || !strings.Contains(string(explained.raw), allowed) {
				t.Errorf("%s\n%s", deleted.raw, explained.raw)
			}
			if got := h.as(t, agent, "mail get 1"); !got.Success {
				t.Errorf("the message is gone: %s", got.raw)
			}
			trashed := h.as(t, agent, "mail trash 2")
			if !strings.Contains(string(trashed.raw), `"destination_folder":"Trash"`) {
				t.Errorf("%s", trashed.raw)
			}
			if again := h.as(t, agent, "mail trash Trash/1"); again.Error.Code != discovery.ValidationError {
				t.Errorf("from the trash into the trash: %s", again.raw)
			}
			if back := h.as(t, agent, "mail move Trash/1 --to INBOX"); !back.Success {
				t.Errorf("and back: %s", back.raw)
			}
			if destroy == mail.DestroyOn {
				approveDeletion(t, h, agent)
			}
		})
	}
}

// approveDeletion has the person approve the one deletion that waits, of message 1, however often
// the agent asked for it. The agent cannot.
func approveDeletion(t *testing.T, h *testHouse, agent gateway.Principal) {
	t.Helper()
	for _, line := range []string{"mail delete --account work --uid 1 --confirm", "mail delete 1 --confirm --full"} {
		if a := h.as(t, agent, line); a.Error.Code != discovery.ApprovalRequired {
			t.Errorf("%s: %s", line, a.raw)
		}
	}
	var waiting struct {
		Messages []struct {
			ID string `json:"outbox_id"`
		} `json:"messages"`
	}
	if h.do(t, "outbox list --state waiting", &waiting); len(waiting.Messages) != 1 {
		t.Fatalf("%d deletions wait", len(waiting.Messages))
	}
	id := waiting.Messages[0].ID
	if a := h.as(t, agent, "outbox approve "+id+" --code 00000000"); a.Error.Code != discovery.PermissionDenied {
		t.Errorf("%s", a.raw)
	}
	var shown struct {
		Deletes     []struct{ Subject, Outcome string }
		State, Code string
	}
	if h.do(t, "outbox show "+id, &shown); len(shown.Deletes) != 1 || shown.Deletes[0].Subject != "1" {
		t.Fatalf("shown is %+v", shown)
	}
	approve := "outbox approve " + id + " --code " + shown.Code
	if h.do(t, approve, &shown); shown.State != "done" || shown.Deletes[0].Outcome != "deleted" || h.as(t, agent, "mail get 1").Success {
		t.Errorf("approved: %+v", shown)
	}
	if a := h.do(t, approve, nil); a.Error.Code != discovery.Conflict {
		t.Errorf("approved again: %s", a.raw)
	}
}

// The messages that a principal changes within an hour are bounded, in all processes.
func TestChangesPerHour(t *testing.T) {
	t.Parallel()
	s, user := servertest.SharedDovecot(t), servertest.User("ann")
	s.Deliver(t, user, "INBOX", plainMessages(3)...)
	v := newVault(t)
	a := dovecotAccount(s, user)
	a.Mode, a.Destroy = mail.Draft, mail.DestroyOff
	v.add(t, a, servertest.Password)
	h := newHouse(t, v)
	h.do(t, "config set changes_per_hour 4", &struct{}{})
	agent := gateway.Principal{Name: "agent"}
	h.as(t, agent, "mail list")
	if got := h.as(t, agent, "mail flags 1 2 3 --add flagged"); !got.Success {
		t.Fatalf("%s", got.raw)
	}
	h = newHouse(t, v)
	for _, line := range []string{"mail trash 1 2", "mail move 1 2 --to Archive", "mail copy 1 2 --to Archive", "mail mark-read 1 2"} {
		if got := h.as(t, agent, line); got.Error.Code != discovery.RateLimited || !strings.Contains(got.Error.Hint, "Wait 3") {
			t.Errorf("%s: %s", line, got.raw)
		}
	}
	if got := h.as(t, agent, "mail trash 1"); !got.Success {
		t.Errorf("what is left of the hour: %s", got.raw)
	}
	if got := h.as(t, agent, "mail draft --to ann@example.org --subject x --body y"); got.Error.Code != discovery.RateLimited {
		t.Errorf("a draft beyond it: %s", got.raw)
	}
	if got := h.as(t, agent, "mail get 2 3"); !strings.Contains(string(got.raw), `"issues":[]`) || strings.Contains(string(got.raw), "Seen") {
		t.Errorf("something was changed: %s", got.raw)
	}
	if got := h.as(t, gateway.Principal{Name: "other"}, "mail flags --uid 2 --add x"); !got.Success {
		t.Errorf("another principal: %s", got.raw)
	}
}
