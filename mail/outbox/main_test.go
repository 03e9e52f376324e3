package outbox_test

import (
	"os"
	"testing"

	"github.com/postern-mail/postern/vault/vaulttest"
)

func TestMain(m *testing.M) { os.Exit(vaulttest.Main(m)) }

// TestOnPostgres runs the other tests with their vaults in a database.
func TestOnPostgres(t *testing.T) {
	t.Parallel()
	vaulttest.Again(t, "")
}
