package vault

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault/kv"
	"github.com/postern-mail/postern/vault/vaulttest"
)

// roleVar makes the test binary run as one of the processes of a test.
const roleVar = "VAULT_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVar); role != "" {
		if err := runRole(role); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	// The person who runs the tests may have a vault.
	for _, name := range []string{AdminKeyVar, AgentKeyVar, "POSTERN_DB"} {
		for _, form := range []string{"", "_FILE", "_COMMAND"} {
			_ = os.Unsetenv(name + form)
		}
	}
	// Built with the race detector each of the tests' processes would wait a second
	// before it ends.
	_ = os.Setenv("GORACE", "atexit_sleep_ms=10")
	os.Exit(vaulttest.Main(m))
}

// TestOnPostgres runs with their vaults in a database the tests of what the engine decides.
func TestOnPostgres(t *testing.T) {
	t.Parallel()
	vaulttest.Again(t, map[string]string{
		"TestInitsAtOnceMakeOneVault":                             "there is no lock on a file",
		"TestAReplacedVaultIsRefusedByARunningProcess":            "it is told by its rows and not by its file",
		"TestAnOlderPolicyIsRefusedByARunningProcess":             "rows can be put back one by one",
		"TestKilledWritersLoseNothingTheyAcknowledged":            "writers take turns by a row, and a killed one leaves its transaction to the server",
		"TestAnyKeyStopsAndTheAdminResumes":                       "a process learns of a stop by a row",
		"TestRekeyKeepsEverything":                                "an earlier vault is moved into a database, and every row is sealed anew",
		"TestAnOpenVaultIsRekeyed":                                "every row is sealed anew beside its readers",
		"TestEntriesOfCallsAtOnceShareATransaction":               "the transaction is a round trip",
		"TestThePolicyIsReadAgainOnlyAfterAWriteOfAnotherProcess": "a write elsewhere is told by a number in a row",
		"TestProcessesThatChangeAreBoundedTogether":               "writers take turns by a row",
		"TestProcessesLogInWithOneConsent":                        "a lease with fencing in place of a lock on a file",
		"TestAProcessKilledAnywhereLeavesTheLockFree":             "the lease ends by time",
	})
}

var must, wantErr, size = vaulttest.Must, vaulttest.WantErr, vaulttest.Size

func second[T any](_ T, err error) error { return err }

// panics checks that the panic of fn, "mine", passes through.
func panics(t testing.TB, fn func()) {
	t.Helper()
	defer func() {
		if r := recover(); r != "mine" {
			t.Errorf("recovered %v, want the caller's panic", r)
		}
	}()
	fn()
}

func newKey(t testing.TB) mail.Secret {
	t.Helper()
	k, err := NewKey()
	must(t, err)
	return mail.NewSecret([]byte(k))
}

func newKeys(t testing.TB) Keys { return Keys{Admin: newKey(t), Agent: newKey(t)} }

// fakeClock is a clock that stands still.
type fakeClock struct{ at time.Time }

func (c *fakeClock) now() time.Time { return c.at }

// newPlace makes a vault and returns its place, a file or an address.
func newPlace(t testing.TB) (path string, k Keys) {
	t.Helper()
	path, k = vaulttest.New(t), newKeys(t)
	must(t, second(Init(t.Context(), path, k)))
	return path, k
}

func mustOpen(t testing.TB, path string, k Keys, o *Options) *Vault {
	t.Helper()
	v, err := Open(t.Context(), path, k, o)
	must(t, err)
	return v
}

// newVault returns an admin's and an agent's vault of one new place.
func newVault(t testing.TB, o *Options) (admin, agent *Vault) {
	t.Helper()
	path, k := newPlace(t)
	return mustOpen(t, path, k, o), mustOpen(t, path, Keys{Agent: k.Agent}, o)
}

func account(name string) mail.Account {
	return mail.Account{
		Name: name, Email: name + "@example.org", Protocol: mail.IMAP, Username: name, Auth: mail.AuthPassword,
		IMAP:     mail.Endpoint{Host: "imap.example.org", Port: 993, Security: mail.TLS},
		SMTP:     mail.Endpoint{Host: "smtp.example.org", Port: 465, Security: mail.TLS},
		Mode:     mail.ReadWrite,
		AllowOut: mail.AllowList{Enabled: true, Entries: []string{"ann@example.org", "@example.net"}},
		CAPEM:    []byte("certificate"),
		Timeouts: mail.Timeouts{Connect: 3 * time.Second},
	}
}

func mustAdd(t testing.TB, v *Vault, name string) {
	t.Helper()
	must(t, v.AddAccount(t.Context(), account(name), mail.NewSecret([]byte("secret of "+name))))
}

// rawUpdate changes the records as a process without any key can.
func rawUpdate(t testing.TB, v *Vault, fn func(kv.Tx) error) {
	t.Helper()
	must(t, second(v.engine.Transact(t.Context(), true, fn)))
}

// rawDelete deletes all records of a bucket.
func rawDelete(tx kv.Tx, bucket string) error {
	return each(tx, bucket, func(key, _ []byte) error { return tx.Delete(bucket, key) })
}

// rawCopy puts the value of one record into another one.
func rawCopy(tx kv.Tx, bucket string, from, to []byte) error {
	value, err := tx.Get(bucket, from)
	return errors.Join(err, tx.Put(bucket, to, value))
}

// each calls fn with every record of a bucket.
func each(tx kv.Tx, bucket string, fn func(key, value []byte) error) error {
	for r, err := range kv.Each(tx, bucket, kv.Range{}) {
		if err == nil {
			err = fn(r.Key, r.Value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func seqKey(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// forge changes the records as a process with the agent key can.
func forge(t testing.TB, agent *Vault, fn func(*transaction) error) {
	t.Helper()
	if agent.Admin() {
		t.Fatal("a forger has no admin key")
	}
	must(t, agent.update(context.Background(), fn))
}
