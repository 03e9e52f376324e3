package main

import (
	"strings"
	"testing"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/servertest"
)

// A database that falls silent is named when a command's time is over, nothing leaves meanwhile,
// and when it is back the process goes on.
func TestADatabaseThatFallsSilent(t *testing.T) {
	t.Parallel()
	server := servertest.Postgres(t)
	v, servers := newVaultAt(t, server.NewSchema(t)), sampleServers(t)
	account := servers.Account()
	account.Mode, account.AllowOut.Entries = mail.ReadWrite, []string{"*"}
	v.add(t, account, servers.Password.Reveal())
	h := newHouse(t, v)
	lines := []string{"mail list", "outbox list", "mail send --to ann@example.org --subject s --body b"}
	if a := h.do(t, lines[0], nil); !a.Success {
		t.Fatalf("%s", a.raw)
	}
	for _, frozen := range []bool{true, false} {
		if err := server.Freeze(frozen); err != nil {
			t.Fatal(err)
		}
		for _, line := range lines {
			if frozen {
				line += " --timeout 2"
			}
			if a := h.do(t, line, nil); a.Success == frozen || frozen && (a.Error.Code != discovery.StoreError || !strings.HasSuffix(a.Error.Message, "/postgres: it did not answer in time.")) {
				t.Errorf("frozen %v: %s: %s", frozen, line, a.raw)
			}
		}
	}
	if n := len(servers.Outgoing()); n != 1 {
		t.Errorf("%d left", n)
	}
}
