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
	turns   = 8
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
	return map[string]func(context.Context, *Vault, string) error{
		"worker": work, "writer": writeForever, "refresher": refreshAt, "login": logIn,
	}[role](ctx, v, name)
}

// work reads, counts, records and takes, as a serving process does.
func work(ctx context.Context, v *Vault, name string) error {
	for i := range turns {
		if err := errors.Join(
			second(v.Account(ctx, "work")),
			second(v.Take(ctx, "shared", 100_000, time.Hour)),
			v.Update(ctx, func(tx kv.Tx) error { return count(tx, name, i) }),
			v.Record(ctx, gateway.AuditEntry{Principal: name, Command: fmt.Sprint(name, " ", i)}),
		); err != nil {
			return err
		}
	}
	return nil
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

// writeForever records commands and prints each once it is durable, until it is killed.
func writeForever(ctx context.Context, v *Vault, name string) error {
	for i := 0; ; i++ {
		command := fmt.Sprint(name, " ", i)
		err := v.Update(ctx, func(tx kv.Tx) error { return count(tx, name, i) })
		if err = errors.Join(err, v.Record(ctx, gateway.AuditEntry{Principal: name, Command: command})); err != nil {
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

func TestProcessesAtOnceLoseNothing(t *testing.T) {
	t.Parallel()
	path, k := newPlace(t)
	admin := mustOpen(t, path, k, nil)
	mustAdd(t, admin, "work")
	processes := size(testmain.Rounds(10, 20), 4)
	var wg sync.WaitGroup
	for i := range processes {
		cmd := process("worker", path, fmt.Sprint("p", i), k.Agent)
		wg.Go(func() {
			if i < 2 { // two are goroutines of this process
				if err := work(t.Context(), admin, fmt.Sprint("p", i)); err != nil {
					t.Error(err)
				}
			} else if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("process %d: %v: %s", i, err, out)
			}
		})
	}
	// The admin edits the policy meanwhile; every process must go on verifying.
	for i := range 10 {
		must(t, admin.SetSetting(t.Context(), "sends_per_hour", strconv.Itoa(i)))
	}
	wg.Wait()
	if n, records := counter(t, admin); n != uint64(processes*turns) || records != n {
		t.Errorf("counted %d with %d records, want %d", n, records, processes*turns)
	}
	all := commands(t, admin)
	for i := range processes {
		for j := range turns {
			if !all[fmt.Sprintf("p%d %d", i, j)] {
				t.Errorf("entry %d of process %d is missing", j, i)
			}
		}
	}
	if r := verify(t, admin); !r.OK || r.Entries != processes*turns {
		t.Errorf("VerifyAudit = %+v", r)
	}
	must(t, admin.Check(t.Context()))
}

// TestAKilledWriterLosesNothingItAcknowledged kills writing processes one after another
// on one file.
func TestAKilledWriterLosesNothingItAcknowledged(t *testing.T) {
	t.Parallel()
	path, k := newPlace(t)
	v := mustOpen(t, path, k, nil)
	var acknowledged []string
	rounds := size(testmain.Rounds(12, 50), 4)
	for round := range rounds {
		cmd := process("writer", path, fmt.Sprint("r", round), k.Agent)
		var errOut bytes.Buffer
		cmd.Stderr = &errOut
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		lines := bufio.NewScanner(out)
		for range 1 + round%7 {
			if !lines.Scan() {
				break
			}
			acknowledged = append(acknowledged, lines.Text())
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatalf("the writer ended by itself: %v: %s", err, errOut.String())
		}
		// Its last complete lines were acknowledged too; an unfinished line was not.
		for lines.Scan() {
			acknowledged = append(acknowledged, lines.Text())
		}
		_ = cmd.Wait() // it was killed
		if errOut.Len() > 0 {
			t.Fatalf("the writer failed: %s", errOut.String())
		}
		mustOpen(t, path, Keys{Agent: k.Agent}, nil)
		must(t, v.engine.Check(t.Context()))
		if r := verify(t, v); !r.OK {
			t.Fatalf("after kill %d: %+v", round, r)
		}
		if n, records := counter(t, v); n != records {
			t.Fatalf("after kill %d: counted %d with %d records", round, n, records)
		}
	}
	if len(acknowledged) < rounds {
		t.Fatalf("only %d entries were acknowledged", len(acknowledged))
	}
	all := commands(t, v)
	for _, command := range acknowledged {
		if !all[strings.TrimSpace(command)] {
			t.Errorf("%q was acknowledged and is missing", command)
		}
	}
	must(t, v.Check(t.Context()))
}
