package vault

import (
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault/vaulttest"
)

const (
	fixtureAdminKey = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
	fixtureAgentKey = "ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8="
)

func fixtureKeys() Keys {
	return Keys{Admin: mail.NewSecret([]byte(fixtureAdminKey)), Agent: mail.NewSecret([]byte(fixtureAgentKey))}
}

func fixtureEntry() gateway.AuditEntry {
	e := entry("mail get imap:work:INBOX:1:7")
	e.Time = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	return e
}

// fixture returns the place of a copy of a file in testdata.
func fixture(t testing.TB, name string) string {
	t.Helper()
	return vaulttest.Fixture(t, filepath.Join("testdata", name), func(from, to string) error {
		return second(Copy(t.Context(), from, to, fixtureKeys()))
	})
}

// A file of each format is kept for good, and its content must stay readable. See
// TestFullFixtureKeepsEverything for the rest.
func TestFormat1StaysReadable(t *testing.T) {
	t.Parallel()
	path := fixture(t, "format1.db")
	o := &Options{Now: func() time.Time { return fixtureEntry().Time }}
	for _, keys := range []Keys{fixtureKeys(), {Agent: fixtureKeys().Agent}} {
		v := mustOpen(t, path, keys, o)
		if secretIs(t, v, "secret of work"); v.Fingerprint() != fixtureFingerprint {
			t.Errorf("its fingerprint is %s", v.Fingerprint())
		}
		if all, err := v.Audit(t.Context(), AuditQuery{}); err != nil || len(all) != 3 || !reflect.DeepEqual(all[0].AuditEntry, fixtureEntry()) {
			t.Errorf("Audit = %+v, %v", all, err)
		}
		must(t, v.Check(t.Context()))
	}
	// It can be written to.
	v := mustOpen(t, path, fixtureKeys(), o)
	mustAdd(t, v, "home")
	must(t, v.Record(t.Context(), fixtureEntry()))
	if r := verify(t, v); !r.OK || r.Entries != 4 {
		t.Errorf("after writing: %+v", r)
	}
}

const fixtureFingerprint = "lawr-xv5a-sbtr-7dlz-7u3j-5sk4-xq7p-nimr-jnto-ditf-ftcg-a553-btja"
