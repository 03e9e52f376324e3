package vault

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/servertest"
)

// A database that is killed at random while messages leave: each is in the outbox once, each
// leaves once, every command that was told to be in the log is there, and the log verifies.
func TestADatabaseKilledWhileMessagesLeave(t *testing.T) {
	t.Parallel()
	server, k := servertest.Postgres(t), newKeys(t)
	place := server.NewSchema(t)
	must(t, second(Init(t.Context(), place, k)))
	admin := mustOpen(t, place, k, nil)
	mustAdd(t, admin, "work")
	errLeft := errors.New("it has left")
	var mu sync.Mutex
	entries, failed, left := 0, 0, map[string]int{}
	progress := make(chan struct{}, 1)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for w := range 3 {
		agent := mustOpen(t, place, Keys{Agent: k.Agent}, nil)
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				id, added, there := fmt.Sprintf("w%d-%d", w, n), 0, false
				for !there { // as a caller who sends the same again where it failed
					o := mail.Outgoing{ID: id, Account: "work", Key: id, Principal: "agent", State: mail.OutboxQueued, Created: time.Now()}
					kept, is, err := agent.AddOutgoing(t.Context(), o, []byte("message"))
					if is {
						added++
					}
					there = err == nil && kept.ID == id
				}
				if added > 1 {
					t.Errorf("%s was added %d times", id, added)
				}
				for range 3 { // nor does a second try at the gate send a second time
					if err := second(agent.ChangeOutgoing(t.Context(), id, func(o *mail.Outgoing) (bool, error) {
						if o.State != mail.OutboxQueued {
							return false, errLeft
						}
						o.State, o.Attempt = mail.OutboxUnknown, "attempt"
						return false, nil
					})); err == nil {
						mu.Lock()
						left[id]++
						mu.Unlock()
					}
				}
				for second(agent.ChangeOutgoing(t.Context(), id, func(o *mail.Outgoing) (bool, error) { o.State = mail.OutboxAccepted; return true, nil })) != nil {
				}
				err := agent.Record(t.Context(), gateway.AuditEntry{Command: id, Allowed: true})
				mu.Lock()
				if err != nil {
					failed++
				} else {
					entries++
				}
				mu.Unlock()
				select {
				case progress <- struct{}{}:
				default:
				}
			}
		})
	}
	kills := testmain.Rounds(3, 12)
	for range kills {
		<-progress
		time.Sleep(time.Duration(rand.IntN(int(100 * time.Millisecond)))) // a random moment
		must(t, errors.Join(server.Kill(), server.Start()))
		<-progress
	}
	stop()
	wg.Wait()
	for id, n := range left {
		if n != 1 {
			t.Errorf("%s left %d times", id, n)
		}
	}
	must(t, admin.Check(t.Context()))
	if r := verify(t, admin); !r.OK || r.Entries < entries || r.Entries > entries+failed {
		t.Errorf("of %d entries and %d that failed: %+v", entries, failed, r)
	}
	t.Logf("%d kills, %d messages left; %d entries, %d failed", kills, len(left), entries, failed)
}
