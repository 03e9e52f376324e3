package admin_test

import (
	"strings"
	"testing"

	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
)

// TestARunOfRefusedCallsShowsItsNumber, in both answers.
func TestARunOfRefusedCallsShowsItsNumber(t *testing.T) {
	b := newFixture(t, work("work", mail.ReadOnly))
	must(t, b.vault.Record(t.Context(), gateway.AuditEntry{Principal: "agent", Command: "mail list", Code: "RATE_LIMITED", Reason: "rate", Count: 5}))
	for want, full := range map[string]bool{`"RATE_LIMITED x5"`: false, `"count":5`: true} {
		a := b.Gateway.Do(t.Context(), gateway.Request{Principal: b.Principal, Line: "audit list", Full: full})
		if !strings.Contains(string(a.JSON), want) {
			t.Errorf("%s lacks %s", a.JSON, want)
		}
	}
}
