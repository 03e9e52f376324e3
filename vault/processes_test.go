package vault

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault/kv"
	"github.com/postern-mail/postern/vault/vaulttest"
)

// The environment variables of a test's processes, besides roleVar, and the number of
// rounds that each works.
const (
	pathEnv = "VAULT_TEST_PATH"
	nameEnv = "VAULT_TEST_NAME"
	turns   = 4
)

// runRole runs the test binary as one of those processes.
func runRole(role string) error {
	switch role {
	case "print-key":
		fmt.Println(fixtureAgentKey + "\nanother line")
		return nil
	case "print-key-and-fail":
		fmt.Println(fixtureAgentKey)
		return errors.New("it fails")
	case "leave-a-child", "hang-with-a-child":
		self, err := os.Executable()
		if err != nil {
			return err
		}
		child := exec.Command(self)
		child.Env = append(os.Environ(), roleVar+"=child")
		child.Stdout = os.Stdout
		if err := child.Start(); err != nil {
			return err
		}
		if role == "hang-with-a-child" {
			return child.Wait()
		}
		fmt.Println(fixtureAgentKey)
		return nil
	case "child": // lives for as long as the test wants
		conn, err := net.Dial("tcp", os.Getenv(pathEnv))
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, conn)
		return err
	}
	ctx, name := context.Background(), os.Getenv(nameEnv)
	keys, err := KeysFrom(ctx, os.Getenv, nil, nil)
	if err != nil {
		return err
	}
	if role == "copier" {
		return second(Copy(ctx, os.Getenv(pathEnv), name, keys))
	}
	v, err := Open(ctx, os.Getenv(pathEnv), keys, nil)
	if err != nil {
		return err
	}
	return map[string]func(context.Context, *Vault, string) error{"writer": writeForever, "login": logIn, "change": change}[role](ctx, v, name)
}

// count reads and writes one record that every process shares, and adds one.
func count(tx kv.Tx, name string, i int) error {
	now, err := tx.Get("counter", []byte("all"))
	if err != nil {
		return err
	}
	var n uint64
	if now != nil {
		n = binary.BigEndian.Uint64(now)
	}
	return errors.Join(tx.Put("counter", []byte("all"), uint64Bytes(n+1)), tx.Put("counter", fmt.Append(nil, name, " ", i), bytes.Repeat([]byte(name), 50)))
}

// writeForever reads, counts, records and takes, as a serving process does, and prints each command
// once it is durable, until it is killed.
func writeForever(ctx context.Context, v *Vault, name string) error {
	for i := 0; ; i++ {
		command := fmt.Sprint(name, " ", i)
		if err := errors.Join(
			second(v.Account(ctx, "work")),
			second(v.Take(ctx, "shared", 100_000, time.Hour)),
			v.Update(ctx, func(tx kv.Tx) error { return count(tx, name, i) }),
			v.Record(ctx, gateway.AuditEntry{Principal: name, Command: command}),
		); err != nil {
			return err
		}
		fmt.Println(command)
	}
}

func process(role, path, name string, agent mail.Secret) *exec.Cmd {
	return vaulttest.Process(roleVar+"="+role, pathEnv+"="+path, nameEnv+"="+name, AgentKeyVar+"="+agent.Reveal())
}

func commands(t testing.TB, v *Vault) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	must(t, v.view(t.Context(), func(tx *transaction) error {
		for record, err := range kv.Each(tx, bucketAudit, kv.Range{}) {
			if err != nil {
				return err
			}
			r, err := tx.openLink(record)
			if err != nil {
				return err
			}
			all[r.Command] = true
		}
		return nil
	}))
	return all
}

func counter(t testing.TB, v *Vault) (n, records uint64) {
	t.Helper()
	must(t, v.View(t.Context(), func(tx kv.Tx) error {
		return each(tx, "counter", func(k, value []byte) error {
			if string(k) == "all" {
				n = binary.BigEndian.Uint64(value)
			} else {
				records++
			}
			return nil
		})
	}))
	return n, records
}

// TestKilledWritersLoseNothingTheyAcknowledged has processes write at once to one vault, of which each
// is killed and followed by another, while the administrator edits the policy.
func TestKilledWritersLoseNothingTheyAcknowledged(t *testing.T) {
	t.Parallel()
	path, k := newPlace(t)
	v := mustOpen(t, path, k, nil)
	mustAdd(t, v, "work")
	var mu sync.Mutex
	var acknowledged []string
	var wg sync.WaitGroup
	writers, rounds := 4, size(testmain.Rounds(4, 12), 2)
	for w := range writers {
		wg.Go(func() {
			for round := range rounds {
				cmd := process("writer", path, fmt.Sprint("w", w, "r", round), k.Agent)
				var errOut bytes.Buffer
				cmd.Stderr = &errOut
				out, err := cmd.StdoutPipe()
				if err = errors.Join(err, cmd.Start()); err != nil {
					t.Error(err)
					return
				}
				lines := bufio.NewReader(out)
				for n := 0; err == nil; n++ {
					if n == 1+(w+round)%7 {
						_ = cmd.Process.Kill()
					}
					// Its last complete lines were acknowledged too; an unfinished line was not.
					var line string
					if line, err = lines.ReadString('\n'); err == nil {
						mu.Lock()
						acknowledged = append(acknowledged, strings.TrimSpace(line))
						mu.Unlock()
					}
				}
				if _ = cmd.Wait(); errOut.Len() > 0 {
					t.Errorf("a writer failed: %s", errOut.String())
				}
				if r, err := v.VerifyAudit(t.Context()); err != nil || !r.OK {
					t.Errorf("after a kill: %+v, %v", r, err)
				}
			}
		})
	}
	for i := range 10 { // every process goes on verifying
		must(t, v.SetSetting(t.Context(), "sends_per_hour", strconv.Itoa(i)))
	}
	wg.Wait()
	if len(acknowledged) < writers*rounds {
		t.Fatalf("only %d entries were acknowledged", len(acknowledged))
	}
	if n, records := counter(t, v); n != records || n < uint64(len(acknowledged)) {
		t.Errorf("counted %d with %d records, and %d were acknowledged", n, records, len(acknowledged))
	}
	all := commands(t, v)
	for _, command := range acknowledged {
		if !all[command] {
			t.Errorf("%q was acknowledged and is missing", command)
		}
	}
	must(t, v.Check(t.Context()))
}
