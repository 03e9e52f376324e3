package admin_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
)

func TestPolicyShowTellsNothingOfWhatIsHidden(t *testing.T) {
	hiding := work("hiding", mail.Approve)
	hiding.AllowIn = mail.AllowList{Enabled: true, Entries: []string{"ann@example.org"}}
	hiding.SubjectPattern = "canary"
	hiding.AllowOut.Entries = []string{"@example.com"}
	hiding.Destroy = mail.DestroyOn
	reading := work("reading", mail.ReadOnly)
	reading.AllowOut.Enabled = false
	b := newFixture(t, hiding, reading)
	b.OK(t, "config set deny 'mail delete,mail move'")
	b.OK(t, "config set sends_per_hour 3")
	b.Principal = gateway.Principal{Name: "agent"}
	e := b.OK(t, "policy show")
	raw, err := json.Marshal(e)
	if err != nil || strings.Contains(string(raw), "ann@example.org") || strings.Contains(string(raw), "canary") {
		t.Errorf("it tells who is on the inbound list: %s", raw)
	}
	if e.Data["principal"] != "agent" || e.Data["admin"] != false || e.Data["profile"] != "full" || fmt.Sprint(e.Data["deny"]) != "[mail delete mail move]" ||
		e.Data["sends_per_hour"] != 3.0 || e.Data["commands_per_minute"] != 1200.0 {
		t.Errorf("%v", e.Data)
	}
	for i, want := range []map[string]any{
		{"account_id": "hiding", "mode": "approve", "may_change": true, "may_send": true, "sends_need_approval": true, "may_destroy": true, "destroying_needs_approval": true, "inbound_list": true, "subject_filter": true,
			"outbound_list": map[string]any{"enabled": true, "entries": []any{"@example.com"}}},
		{"account_id": "reading", "mode": "RO", "may_change": false, "may_send": false, "may_destroy": false, "inbound_list": false, "subject_filter": false,
			"outbound_list": map[string]any{"enabled": false, "entries": []any{}}},
	} {
		if got := e.Data["accounts"].([]any)[i]; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
	if got := b.OK(t, "policy show --account reading").Data["accounts"].([]any); len(got) != 1 {
		t.Errorf("one account: %v", got)
	}
	b.Fails(t, "policy show --account nobody", discovery.NotFound, "no such account")
}
