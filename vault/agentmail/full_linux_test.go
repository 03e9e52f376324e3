package agentmail

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/postern-mail/postern/vault"
	"github.com/postern-mail/postern/vault/vaulttest"
)

func init() { roles["filler"] = fill }

// fill limits the size of the file, which is like a full disk. It sends until that fails,
// then reads, confirms and checks, and prints what it sent and read.
func fill(ctx context.Context, v *testBox) error {
	info, err := os.Stat(v.Path())
	if err != nil {
		return err
	}
	signal.Ignore(syscall.SIGXFSZ) // so that a write fails instead of ending the process
	limit := uint64(info.Size()) + 300<<10
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
		return err
	}
	// A message may fit although the one before did not, since it needs another number of
	// pages.
	for refused := 0; refused < 3; {
		switch m, err := v.Send(ctx, Message{Sender: "p:a", Recipient: "p:b", Body: strings.Repeat("x", 9000)}); {
		case err == nil:
			fmt.Println("sent", m.ID)
			refused = 0
		case errors.Is(err, vault.ErrDamaged):
			return fmt.Errorf("a full disk: %w", err)
		default:
			refused++
		}
	}
	in, err := v.Read(ctx, Query{Agent: "p:b", Peek: true, Limit: 1000})
	if err != nil {
		return err
	}
	// A read may find no room for its hold either, and then takes no message.
	if in, err := v.Read(ctx, Query{Agent: "p:b", Limit: 1}); err == nil {
		err = v.Confirm(ctx, "p:b", in.Claim)
		fmt.Println("confirmed", in.Messages[0].ID, err == nil)
	}
	fmt.Println("peeked", len(in.Messages))
	return v.Check(ctx)
}

// TestAFullDiskLosesNothing sends until there is no room. Every message for which Send
// succeeded is there, nothing is damaged, and sending works when there is room again.
func TestAFullDiskLosesNothing(t *testing.T) {
	t.Parallel()
	vaulttest.OnlyFile(t, "the disk is the process's own")
	path, k := newPlace(t)
	cmd := process("filler", path, k.Agent)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	v := mustOpen(t, path, vault.Keys{Agent: k.Agent}, nil)
	post(t, v, "p:a", "p:b", "room again")
	found := map[string]bool{}
	in, err := v.Read(t.Context(), Query{Agent: "p:b", All: true, Peek: true, Limit: 1000})
	must(t, err)
	for _, m := range in.Messages {
		found[m.ID] = true
	}
	sent := 0
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		if id, ok := strings.CutPrefix(lines.Text(), "sent "); ok {
			sent++
			if !found[id] {
				t.Errorf("%s was lost", id)
			}
		}
	}
	if sent < 5 || len(found) != sent+1 || !strings.Contains(string(out), fmt.Sprintf("peeked %d\n", sent)) {
		t.Errorf("%d were sent and %d are there: %s", sent, len(found), out)
	}
	must(t, v.Check(t.Context()))
}
