package outbox_test

import (
	"os"
	"testing"

	"github.com/postern-mail/postern/mail/servertest/scripted"
	"github.com/postern-mail/postern/vault/vaulttest"
)

func TestMain(m *testing.M) { os.Exit(scripted.Main(func() int { return vaulttest.Main(m) })) }

// TestOnPostgres runs with their vaults in a database the tests of what depends on the engine.
func TestOnPostgres(t *testing.T) {
	t.Parallel()
	vaulttest.Again(t, map[string]string{
		"TestManyProcessesWithOneKeySendOnce":                "one key's entry, of processes at once",
		"TestKilledAtAnyMomentNothingIsSentTwiceOrLost":      "what a killed process leaves: states, bytes and its lease",
		"TestUnaskedRepliesOfManyProcesses":                  "a count and the entry that it allows are one step",
		"TestStoreThatFailsAtTheGateKeepsTheMessageHere":     "what fails behind a change keeps nothing of it",
		"TestMessageWaitsForAPersonWhoSeesExactlyWhatLeaves": "bytes come back as they were",
		"TestListIsBounded":                                  "order, bounds and filters of a query",
		"TestADeletionNobodyDecidesAboutExpires":             "states by time in a query",
		"TestKilledWhileAPlanIsRun":                          "how far a plan is, and what the journal has of it",
		"TestPlansAtOnceStayWithinTheBound":                  "a claim, and the count of the journal",
	})
}

// must ends the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
