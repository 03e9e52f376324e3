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

// roles are what those processes do.
var roles = map[string]func(context.Context, *testBox) error{"announcer": announce, "correspondent": correspond}

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVar); role != "" {
		v, err := vault.Open(context.Background(), os.Getenv(pathEnv), vault.Keys{Agent: mail.NewSecret([]byte(os.Getenv(vault.AgentKeyVar)))}, nil)
		if err == nil {
			err = roles[role](context.Background(), &testBox{New(v), v})
		}
		if err != nil {
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
		"TestTwentyCorrespondentsReadEveryMessageOnce": "claims of processes at once are rows, and removal meets them",
		"TestKilledCorrespondentsLoseNothing":          "a killed process leaves its transaction to the server",
		"TestWaitingReadersSeeANewMessage":             "new mail is told by a number in a row",
		"TestAgentMailAgreesWithItsModel":              "scans and deletions in one transaction",
	})
}

func process(role, path string, agent mail.Secret, env ...string) *exec.Cmd {
	return vaulttest.Process(append(env, roleVar+"="+role, pathEnv+"="+path, vault.AgentKeyVar+"="+agent.Reveal())...)
}

var must, wantErr, size = vaulttest.Must, vaulttest.WantErr, vaulttest.Size

func second[T any](_ T, err error) error { return err }

// fakeClock is a clock that stands still.
type fakeClock struct{ at time.Time }

func (c *fakeClock) now() time.Time { return c.at }

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
	must(t, second(vault.Init(t.Context(), path, k)))
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

// countRecords counts the records of a bucket whose keys begin with a kind; 0 is any.
func countRecords(t testing.TB, v *testBox, bucket string, kind byte) (n int) {
	t.Helper()
	each(t, v, bucket, func(key, _ []byte) {
		if kind == 0 || key[0] == kind {
			n++
		}
	})
	return n
}
