package vault

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/vault/kv"
)

func take(t *testing.T, v *Vault, key string, limit int, window time.Duration) time.Duration {
	t.Helper()
	wait, err := v.Take(t.Context(), key, limit, window)
	must(t, err)
	return wait
}

func TestLimitsAreDurableSharedAndIndependent(t *testing.T) {
	t.Parallel()
	at := fakeClock{epoch}
	a, b := newVault(t, &Options{Now: at.now})
	if take(t, a, "one", 1, time.Hour) != 0 || take(t, b, "one", 1, time.Hour) != time.Hour {
		t.Error("two processes do not share a limit")
	}
	if take(t, b, "two", 1, time.Hour) != 0 {
		t.Error("one key's event counts for another")
	}
	for _, limit := range []int{0, -1} {
		if take(t, a, "none", limit, time.Hour) == 0 {
			t.Errorf("a limit of %d allows", limit)
		}
	}
	if wait, err := a.TakeSeveral(t.Context(), "many", 6, 5, time.Hour); err != nil || wait != time.Hour || take(t, a, "many", 1, time.Hour) != 0 {
		t.Errorf("more than a limit at once: wait %v, %v", wait, err)
	}
	if take(t, a, "none", 5, 0) == 0 {
		t.Error("no window allows")
	}
}

func TestAClockSetBackDelaysOneWindowAtMost(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{3, 300} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			at := fakeClock{epoch}
			v, _ := newVault(t, &Options{Now: at.now})
			for range limit {
				if take(t, v, "k", limit, time.Minute) != 0 {
					t.Fatal("refused within the limit")
				}
			}
			at.at = epoch.AddDate(-3, 0, 0)
			wait := take(t, v, "k", limit, time.Minute)
			if wait <= 0 || wait > time.Minute {
				t.Fatalf("wait %v, want up to a minute", wait)
			}
			// Further calls meanwhile do not make the wait longer.
			for range 3 {
				at.at = at.at.Add(20 * time.Second)
				if left := take(t, v, "k", limit, time.Minute); left > max(wait-20*time.Second, 0) {
					t.Fatalf("wait %v after %v 20 s ago", left, wait)
				} else if left > 0 {
					wait = left
				} else {
					return
				}
			}
			t.Errorf("wait %v after a minute", wait)
		})
	}
}

func TestALoweredLimitHoldsAtOnce(t *testing.T) {
	t.Parallel()
	at := fakeClock{epoch}
	v, _ := newVault(t, &Options{Now: at.now})
	for range 10 {
		take(t, v, "k", 10, time.Hour)
		at.at = at.at.Add(time.Minute)
	}
	// Ten events in the last ten minutes: with a limit of 2, nine must end first.
	if wait, want := take(t, v, "k", 2, time.Hour), 58*time.Minute; wait != want {
		t.Errorf("wait %v, want %v", wait, want)
	}
}

func TestExpiredLimitsAreForgotten(t *testing.T) {
	t.Parallel()
	at := fakeClock{epoch}
	v, _ := newVault(t, &Options{Now: at.now})
	for i := range 60 {
		take(t, v, fmt.Sprint("visitor ", i), 5, time.Minute)
	}
	at.at = at.at.Add(time.Hour)
	for i := range 60 {
		take(t, v, fmt.Sprint("later ", i), 5, time.Hour)
	}
	left := 0
	rawUpdate(t, v, func(tx kv.Tx) error {
		return each(tx, bucketLimits, func(_, _ []byte) error { left++; return nil })
	})
	if left >= 90 {
		t.Errorf("%d limits are kept, of which 60 expired", left)
	}
}

// TestTheLogHasAShareForEachPrincipal: what a principal causes in any process counts, and a
// process that begins knows of it once it has charged a command.
func TestTheLogHasAShareForEachPrincipal(t *testing.T) {
	t.Parallel()
	at := fakeClock{epoch}
	admin, agent := newVault(t, &Options{Now: at.now})
	long := strings.Repeat("someone@example.org, ", 390)
	full := func(v *Vault, principal string) bool {
		wait, share := v.LogFull(principal)
		if wait > time.Hour || share != logShare {
			t.Fatalf("LogFull = %v, %d", wait, share)
		}
		return wait > 0
	}
	n := 0
	for ; n < 2000 && !full(agent, "agent"); n++ {
		must(t, agent.writeTogether(t.Context(), func(tx *transaction, j *job) error {
			for range 20 { // in one transaction, or this test would mostly sync the disk
				size, err := agent.append(tx, gateway.AuditEntry{Time: epoch, Principal: "agent", Command: "mail send", Target: long})
				if err == nil {
					err = agent.chargeLog(tx, j, "agent", size)
				}
				must(t, err)
			}
			return nil
		}))
	}
	if n *= 20; n < 900 || n > 1100 {
		t.Errorf("it was full after %d entries", n)
	}
	if full(agent, "person") || full(admin, "agent") {
		t.Error("another principal is refused, or a process knows what it has not seen")
	}
	if take(t, admin, "commands:agent", 1200, time.Minute) != 0 || !full(admin, "agent") {
		t.Error("another process does not know of it after it charged a command")
	}
	must(t, admin.Record(t.Context(), gateway.AuditEntry{Time: epoch, Principal: "agent", Command: "refused", Code: "RATE_LIMITED"}))
	at.at = epoch.Add(10 * time.Minute)
	if full(agent, "agent") || full(admin, "agent") {
		t.Error("there is no room after ten minutes")
	}
	if r := verify(t, admin); !r.OK || r.Entries != n+1 {
		t.Errorf("VerifyAudit = %+v", r)
	}
}
