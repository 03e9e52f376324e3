package main

import (
	"crypto/rand"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail/servertest"
)

// TestAFloodFillsNothingForOthers: an agent that tries to send to many strangers, over and
// over, has a few entries in the log, which say how often; and when it has used up what may wait of
// it, the person goes on.
func TestAFloodFillsNothingForOthers(t *testing.T) {
	t.Parallel()
	o := newOffice(t, servertest.PostfixConfig{})
	o.do(t, "account edit bob --mode approve", nil)
	agent, person := gateway.Principal{Name: "agent"}, gateway.Principal{Name: "person"}
	before := o.entries(t)
	var to strings.Builder
	for i := range 40 {
		fmt.Fprintf(&to, " --to %s%d@evil.example", strings.Repeat("x", 60), i)
	}
	const calls = 60
	for i := range calls {
		if a := o.as(t, agent, fmt.Sprintf("mail send --account ann --subject %d --body x%s", i, to.String())); a.Error.Code != "PERMISSION_DENIED" {
			t.Fatalf("call %d: %s", i, a.raw)
		}
	}
	if n := o.entries(t) - before; n > 6 {
		t.Errorf("%d refused calls have %d entries", calls, n)
	}

	o.do(t, "config set sends_per_hour 100", &struct{}{})
	content := make([]byte, 24<<20)
	_, _ = rand.Read(content)
	writeFile(t, filepath.Join(o.files, "large"), string(content))
	const waiting = "mail send --account bob --to ann@example.org --subject x --body x --attach large"
	for n, want := range []string{"APPROVAL_REQUIRED", "APPROVAL_REQUIRED", "APPROVAL_REQUIRED", "STORE_ERROR"} {
		if a := o.as(t, agent, waiting); string(a.Error.Code) != want {
			t.Fatalf("the agent's large message %d: %s", n+1, a.raw)
		}
	}
	if a := o.as(t, person, waiting); a.Error.Code != "APPROVAL_REQUIRED" {
		t.Errorf("the person's large message: %s", a.raw)
	}
	o.postfix.WaitQueueEmpty(t)
	if got := len(o.dovecot.Files(t, "bob@example.org")); got != 0 {
		t.Errorf("bob has %d messages", got)
	}

	o.Close() // writes what was counted
	var list struct {
		Entries []struct {
			Code  string `json:"error_code"`
			Count int    `json:"count"`
		} `json:"entries"`
	}
	o.do(t, "audit list --limit 40", &list)
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
