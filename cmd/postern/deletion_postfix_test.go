package main

import (
	"strings"
	"testing"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/servertest"
)

// An agent that sends and then wants the evidence gone, the copy in Sent and what it was asked
// in, waits for a person with both in mode approve.
func TestAnAgentDestroysNothingInModeApprove(t *testing.T) {
	o := newOffice(t, servertest.PostfixConfig{}, func(a *mail.Account) {
		if a.Name == "ann" {
			a.Mode, a.Destroy = mail.Approve, mail.DestroyOn
		}
	})
	agent := gateway.Principal{Name: "agent"}
	o.send(t, "ann", "--account", "bob", "--to", "ann@example.org", "--subject", "Your one-time code", "--body", "482913")
	subjects := func() string {
		var list listData
		o.do(t, "mail list --account ann", &list)
		var all []string
		for _, m := range list.Messages {
			all = append(all, m.Subject)
		}
		return strings.Join(all, ",")
	}
	o.as(t, agent, "mail list --account ann")
	for _, line := range []string{"mail delete ann:1 --confirm", "mail delete --account ann --uid 1 --confirm", "mail delete ann:1 --confirm --full"} {
		if a := o.as(t, agent, line); a.Error.Code != discovery.ApprovalRequired {
			t.Errorf("%s: %s", line, a.raw)
		}
	}
	if got := subjects(); got != "Your one-time code" {
		t.Fatalf("INBOX holds %q", got)
	}
	var waiting struct {
		Messages []struct {
			ID string `json:"outbox_id"`
		} `json:"messages"`
	}
	o.do(t, "outbox list --state waiting", &waiting)
	if len(waiting.Messages) != 1 {
		t.Fatalf("%d deletions wait", len(waiting.Messages))
	}
	id := waiting.Messages[0].ID
	if a := o.as(t, agent, "outbox approve "+id+" --code 00000000"); a.Error.Code != discovery.PermissionDenied {
		t.Errorf("%s", a.raw)
	}
	var shown struct {
		Deletes []struct{ Subject, Outcome string } `json:"deletes"`
		State   string                              `json:"state"`
		Code    string                              `json:"code"`
	}
	o.do(t, "outbox show "+id, &shown)
	if len(shown.Deletes) != 1 || shown.Deletes[0].Subject != "Your one-time code" {
		t.Fatalf("shown is %+v", shown)
	}
	o.do(t, "outbox approve "+id+" --code "+shown.Code, &shown)
	if got := subjects(); got != "" || shown.State != "done" || shown.Deletes[0].Outcome != "deleted" {
		t.Errorf("approved, INBOX holds %q, %+v", got, shown)
	}
	if a := o.do(t, "outbox approve "+id+" --code "+shown.Code, nil); a.Error.Code != discovery.Conflict {
		t.Errorf("approved again: %s", a.raw)
	}
}
