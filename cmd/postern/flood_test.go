package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
)

// TestRefusedSendsDoNotFillTheLog: an agent that tries to send to many strangers, over and
// over, has a few entries, which say how often.
func TestRefusedSendsDoNotFillTheLog(t *testing.T) {
	h, servers := sendingHouse(t, mail.ReadWrite)
	before := h.entries(t)
	var to strings.Builder
	for i := range 40 {
		fmt.Fprintf(&to, " --to %s%d@evil.example", strings.Repeat("x", 60), i)
	}
	const calls = 200
	for i := range calls {
		if a := h.as(t, gateway.Principal{Name: "agent"}, fmt.Sprintf("mail send --subject %d --body x%s", i, to.String())); a.Error.Code != "PERMISSION_DENIED" {
			t.Fatalf("call %d: %s", i, a.raw)
		}
	}
	if n := h.entries(t) - before; n > 6 || len(servers.Outgoing()) != 0 {
		t.Errorf("%d refused calls have %d entries", calls, n)
	}
	h.Close() // writes what was counted
	var list struct {
		Entries []struct {
			Code  string `json:"error_code"`
			Count int    `json:"count"`
		} `json:"entries"`
	}
	h.do(t, "audit list --limit 20", &list)
	told := 0
	for _, e := range list.Entries {
		if e.Code == "PERMISSION_DENIED" {
			told += max(1, e.Count)
		}
	}
	if told != calls {
		t.Errorf("the entries tell of %d calls, want %d", told, calls)
	}
}
