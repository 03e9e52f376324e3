package vault

import (
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault/kv"
)

// A file of each format is kept for good: what it holds must stay readable. The
// flag writes the file of the present format, and is used once per format.
var writeFixture = flag.Bool("write-fixture", false, "write testdata/format1.db anew")

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

// fixtureFile returns a private copy of a file in testdata: version control does not
// keep the mode.
func fixtureFile(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	must(t, err)
	path := filepath.Join(t.TempDir(), "postern.db")
	must(t, os.WriteFile(path, b, 0o600))
	return path
}

func TestWriteFixture(t *testing.T) {
	if !*writeFixture {
		t.Skip("only with -write-fixture")
	}
	path := filepath.Join(t.TempDir(), "postern.db")
	_, err := Init(t.Context(), path, fixtureKeys())
	must(t, err)
	v := mustOpen(t, path, fixtureKeys(), &Options{Now: func() time.Time { return fixtureEntry().Time }})
	mustAdd(t, v, "work")
	must(t, v.SetSetting(t.Context(), "deny", "mail delete"))
	for range 3 {
		must(t, v.Record(t.Context(), fixtureEntry()))
	}
	must(t, v.Update(t.Context(), func(tx kv.Tx) error { return tx.Put("seen", []byte("work"), []byte("7")) }))
	_, err = v.Take(t.Context(), "agent", 5, time.Hour)
	must(t, err)
	b, err := os.ReadFile(path)
	must(t, err)
	must(t, os.WriteFile(filepath.Join("testdata", "format1.db"), b, 0o644))
}

func TestFormat1StaysReadable(t *testing.T) {
	path := fixtureFile(t, "format1.db")
	for name, keys := range map[string]Keys{"admin": fixtureKeys(), "agent": {Agent: fixtureKeys().Agent}} {
		v := mustOpen(t, path, keys, nil)
		if v.Fingerprint() != fixtureFingerprint {
			t.Errorf("%s: the fingerprint is %s", name, v.Fingerprint())
		}
		if a, err := v.Account(t.Context(), "work"); err != nil || !reflect.DeepEqual(a, account("work")) {
			t.Errorf("%s: Account = %+v, %v", name, a, err)
		}
		if s, err := v.Secret(t.Context(), "work"); err != nil || s.Reveal() != "secret of work" {
			t.Errorf("%s: Secret: %v", name, err)
		}
		if c, err := v.Config(t.Context()); err != nil || !reflect.DeepEqual(c.Deny, []string{"mail delete"}) {
			t.Errorf("%s: Config = %+v, %v", name, c, err)
		}
		if r := verify(t, v); !r.OK || r.Entries != 3 {
			t.Errorf("%s: VerifyAudit = %+v", name, r)
		}
		if all, err := v.Audit(t.Context(), AuditQuery{}); err != nil || len(all) != 3 || !reflect.DeepEqual(all[0].AuditEntry, fixtureEntry()) {
			t.Errorf("%s: Audit = %+v, %v", name, all, err)
		}
		must(t, v.View(t.Context(), func(tx kv.Tx) error {
			if b, err := tx.Get("seen", []byte("work")); err != nil || string(b) != "7" {
				t.Errorf("%s: state = %q, %v", name, b, err)
			}
			return nil
		}))
		must(t, v.Check(t.Context()))
	}
	// And it can be written on.
	v := mustOpen(t, path, fixtureKeys(), &Options{Now: func() time.Time { return fixtureEntry().Time }})
	mustAdd(t, v, "home")
	must(t, v.Record(t.Context(), fixtureEntry()))
	if r := verify(t, v); !r.OK || r.Entries != 4 {
		t.Errorf("after writing: %+v", r)
	}
}

const fixtureFingerprint = "lawr-xv5a-sbtr-7dlz-7u3j-5sk4-xq7p-nimr-jnto-ditf-ftcg-a553-btja"
