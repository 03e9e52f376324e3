package vault

import (
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
	entries, failed, left, unclear := 0, 0, map[string]int{}, 0
	stop, progress := make(chan struct{}), make(chan struct{}, 1)
	var wg sync.WaitGroup
	for w := range 3 {
		agent := mustOpen(t, place, Keys{Agent: k.Agent}, nil)
		wg.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				id, added := fmt.Sprintf("w%d-%d", w, n), 0
				for { // as a caller who sends the same again where it failed
					o := mail.Outgoing{ID: id, Account: "work", Key: id, Principal: "agent", State: mail.OutboxQueued, Created: time.Now()}
					kept, is, err := agent.AddOutgoing(t.Context(), o, []byte("message"))
					if is {
						added++
					}
					if err == nil && kept.ID == id {
						break
					}
				}
				if added > 1 {
					t.Errorf("%s was added %d times", id, added)
				}
				for range 3 { // nor does a second try at the gate send a second time
					_, err := agent.ChangeOutgoing(t.Context(), id, func(o *mail.Outgoing) (bool, error) {
						if o.State != mail.OutboxQueued {
							return false, errLeft
						}
						o.State, o.Attempt = mail.OutboxUnknown, "attempt"
						return false, nil
					})
					mu.Lock()
					switch {
					case err == nil:
						left[id]++
					case errors.Is(err, errLeft) && left[id] == 0:
						unclear++
					}
					mu.Unlock()
				}
				for second(agent.ChangeOutgoing(t.Context(), id, func(o *mail.Outgoing) (bool, error) { o.State = mail.OutboxAccepted; return true, nil })) != nil {
				}
				err := agent.Record(t.Context(), gateway.AuditEntry{Command: id, Allowed: true})
				mu.Lock()
				if entries++; err != nil {
					entries--
					failed++
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
	close(stop)
	wg.Wait()
	for id, n := range left {
		if n != 1 {
			t.Errorf("%s left %d times", id, n)
		}
	}
	must(t, admin.Check(t.Context()))
	r, err := admin.VerifyAudit(t.Context())
	if err != nil || !r.OK || r.Entries < entries || r.Entries > entries+failed {
		t.Errorf("of %d entries and %d that failed: %+v, %v", entries, failed, r, err)
	}
	t.Logf("%d kills, %d messages left, of %d it was not known; %d entries, %d failed", kills, len(left), unclear, entries, failed)
}
