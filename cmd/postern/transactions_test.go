package main

import "testing"

// TestAReadTakesTwoTransactionsAtMost counts them through the whole house: what it asks
// of the vault, and its audit entry.
func TestAReadTakesTwoTransactionsAtMost(t *testing.T) {
	t.Parallel()
	h := demoHouse(t)
	var list listData
	h.do(t, "mail list --limit 3", &list)
	if len(list.Messages) == 0 {
		t.Fatal("there is no message")
	}
	id := list.Messages[0].ID
	reads := []string{"mail list", "mail list --new", "mail get " + id, "mail get 50", "mail search invoice", "mail folders", "mail thread " + id, "mail raw " + id, "mail accounts", "policy show", "outbox list", "version"}
	for round := range 3 { // the first opens a session and begins to count
		for _, line := range reads {
			before := h.Transactions()
			if a := h.do(t, line, nil); !a.Success {
				t.Errorf("%s: %s", line, a.raw)
			}
			if n := h.Transactions() - before; round == 2 && n > 2 {
				t.Errorf("%s takes %d transactions", line, n)
			} else if round == 2 {
				t.Logf("%-20s %d", line, n)
			}
		}
	}
}
