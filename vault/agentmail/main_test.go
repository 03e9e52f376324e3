package agentmail

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault"
	"github.com/postern-mail/postern/vault/kv"
	"github.com/postern-mail/postern/vault/vaulttest"
)

const (
	roleVar = "AGENTMAIL_TEST_ROLE" // makes the test binary run as one of the processes of a test
	pathEnv = "AGENTMAIL_TEST_PATH"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVar); role != "" {
		if err := runRole(role); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
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
		"TestTwentyCorrespondentsReadEveryMessageOnce": "claims of processes at once are rows",
		"TestKilledCorrespondentsLoseNothing":          "a killed process leaves its transaction to the server",
		"TestWaitingReadersSeeANewMessage":             "new mail is told by a number in a row",
		"TestAWaitGetsTheMessagesOfADeadReader":        "a claim ends by time",
		"TestAgentMailAgreesWithItsModel":              "scans and deletions in one transaction",
		"TestCleanupBesideReaders":                     "removal meets readers",
		"TestCostsDoNotGrowWithTheMailOfOthers":        "each step is a round trip",
		"TestMailOfAnEarlierVersionIsKept":             "an earlier vault is moved into a database",
	})
}

func runRole(role string) error {
	ctx := context.Background()
	v, err := vault.Open(ctx, os.Getenv(pathEnv), vault.Keys{Agent: mail.NewSecret([]byte(os.Getenv(vault.AgentKeyVar)))}, nil)
	if err != nil {
		return err
	}
	box := &testBox{New(v), v}
	switch role {
	case "filler":
		return fill(ctx, box)
	case "announcer":
		return announce(ctx, box)
	case "correspondent":
		return correspond(ctx, box)
	}
	return fmt.Errorf("no role %s", role)
}

func process(t testing.TB, role, path string, agent mail.Secret) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), roleVar+"="+role, pathEnv+"="+path, vault.AgentKeyVar+"="+agent.Reveal())
	return cmd
}

var must, wantErr, size = vaulttest.Must, vaulttest.WantErr, vaulttest.Size

func second[T any](_ T, err error) error { return err }

// clock is a fake clock.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

// testBox is a mailbox and the vault that keeps it.
type testBox struct {
	*Mailbox
	*vault.Vault
}

func newPlace(t testing.TB) (path string, k vault.Keys) {
	t.Helper()
	for _, s := range []*mail.Secret{&k.Admin, &k.Agent} {
		text, err := vault.NewKey()
		must(t, err)
		*s = mail.NewSecret([]byte(text))
	}
	path = vaulttest.New(t)
	_, err := vault.Init(t.Context(), path, k)
	must(t, err)
	return path, k
}

func mustOpen(t testing.TB, path string, k vault.Keys, now func() time.Time) *testBox {
	t.Helper()
	v, err := vault.Open(t.Context(), path, k, &vault.Options{Now: now})
	must(t, err)
	return &testBox{New(v), v}
}

// newBox makes a mailbox with the clock now; nil means time.Now.
func newBox(t testing.TB, now func() time.Time) *testBox {
	t.Helper()
	path, k := newPlace(t)
	return mustOpen(t, path, vault.Keys{Agent: k.Agent}, now)
}

// each calls fn with every record of a bucket.
func each(t testing.TB, v *testBox, bucket string, fn func(key, value []byte)) {
	t.Helper()
	must(t, v.View(t.Context(), func(tx kv.Tx) error {
		for r, err := range kv.Each(tx, bucket, kv.Range{}) {
			if err != nil {
				return err
			}
			fn(r.Key, r.Value)
		}
		return nil
	}))
}

// toll is the cost of one use of a mailbox: read and write transactions, and the records
// that they looked up, changed or asked for.
type toll struct{ reads, writes, steps int }

type countingStore struct {
	Store
	toll
}

func (s *countingStore) View(ctx context.Context, fn func(kv.Tx) error) error {
	s.reads++
	return s.Store.View(ctx, func(tx kv.Tx) error { return fn(countingTx{tx, s}) })
}

func (s *countingStore) Update(ctx context.Context, fn func(kv.Tx) error) error {
	s.writes++
	return s.Store.Update(ctx, func(tx kv.Tx) error { return fn(countingTx{tx, s}) })
}

type countingTx struct {
	kv.Tx
	s *countingStore
}

func (t countingTx) Get(bucket string, key []byte) ([]byte, error) {
	t.s.steps++
	return t.Tx.Get(bucket, key)
}

func (t countingTx) Put(bucket string, key, value []byte) error {
	t.s.steps++
	return t.Tx.Put(bucket, key, value)
}

func (t countingTx) Delete(bucket string, key []byte) error {
	t.s.steps++
	return t.Tx.Delete(bucket, key)
}

func (t countingTx) Scan(bucket string, r kv.Range, limit int) ([]kv.Record, error) {
	t.s.steps += limit
	return t.Tx.Scan(bucket, r, limit)
}

// tollOf returns the cost of use.
func tollOf(v *testBox, use func()) toll {
	s := &countingStore{Store: v.store}
	v.store = s
	defer func() { v.store = s.Store }()
	use()
	return s.toll
}
