//go:build unix

package main

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/postern-mail/postern/gateway/gatewaytest"
)

// A watch lets everything pass that came behind it on the same connection: what makes
// the message arrive that it waits for, twenty other watches and fifty reads.
func TestAWatchHoldsUpNothing(t *testing.T) {
	slow(t, "TestAWaitingReadHoldsUpNobody")
	c := gatewaytest.Start(t, program(t, nil, "demo", "--serve"))
	c.Progress = true
	const watches, reads = 20, 50
	for range watches {
		c.Begin("mail watch --wait 2m")
	}
	for i := range reads {
		c.Begin(fmt.Sprintf("mail get --uid %d", 1+i))
	}
	copying := c.Begin("mail copy --folder Archive --uid 1 --to INBOX")
	answer := func() (id int, text string) {
		for {
			if m := c.Next(); m.ID != nil {
				return *m.ID, m.Text()
			}
		}
	}
	copied := false
	for range watches + reads + 1 {
		id, text := answer()
		switch {
		case !strings.HasPrefix(text, `{"success":true`):
			t.Fatalf("%d: %.300s", id, text)
		case id == copying:
			copied = true
		case id > watches:
		case !copied && !strings.Contains(text, `"messages":[{"message_id":"imap:demo:INBOX:1:51"`):
			t.Errorf("watch %d ended without a message: %.300s", id, text)
		}
	}
	// A client that gives a watch up gets no answer to it, and the connection goes on.
	given, first := c.Begin("mail watch --wait 2m"), c.Begin("mail list --limit 1")
	c.Cancel(given)
	last := c.Begin("mail list --limit 1")
	for range 2 {
		if id, text := answer(); id != first && id != last || !strings.HasPrefix(text, `{"success":true`) {
			t.Errorf("answer %d (%.200s), want %d or %d", id, text, first, last)
		}
	}
	// While one waits it says so to who asked; the process ends when it is told to.
	waiting := c.Begin("mail watch --wait 4m")
	for m := c.Next(); m.Method != "notifications/progress" || m.Params.ProgressToken != waiting || m.Params.Message != "waiting for mail in INBOX"; m = c.Next() {
	}
	if err := c.Process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	if status := c.Process.ProcessState.ExitCode(); status != 0 {
		t.Errorf("status %d", status)
	}
}
