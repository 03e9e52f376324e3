package main

import (
	"testing"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/vault/kv"
)

// TestNothingIsChangedThatTheJournalDoesNotTake: what could not be taken back is not done.
func TestNothingIsChangedThatTheJournalDoesNotTake(t *testing.T) {
	t.Parallel()
	h := demoHouse(t)
	mailbox := func() (all string) {
		for _, folder := range []string{"INBOX", "Drafts", "Sent", "Trash", "Archive"} {
			all += string(h.Gateway.Do(t.Context(), gateway.Request{Principal: gateway.Principal{Name: "admin", Admin: true}, Line: "mail list --fields id,subject,marks --folder " + folder}).JSON)
		}
		return all
	}
	before := mailbox()
	if a := h.asAgent(t, "mail list"); !a.Success() {
		t.Fatalf("%s", a.JSON)
	}
	if err := h.vault.Update(t.Context(), func(tx kv.Tx) error { return tx.Put("journal.share", []byte("agent"), []byte("damaged")) }); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"mail mark-read 1 2", "mail flags 1 --add flagged", "mail move 1 --to Archive", "mail trash 1", "mail copy 1 --to Archive", "mail draft --body x"} {
		if a := h.asAgent(t, line); a.Code != discovery.StoreError {
			t.Errorf("%s: %s", line, a.JSON)
		}
	}
	if after := mailbox(); after != before {
		t.Errorf("it was\n%s\nand is\n%s", before, after)
	}
}
