package mail

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/postern-mail/postern/internal/testmain"
)

// with is an account as that of a case differs from it, in JSON.
func with(t *testing.T, a Account, changes string) Account {
	t.Helper()
	a.AllowIn.Entries, a.AllowOut.Entries = slices.Clone(a.AllowIn.Entries), slices.Clone(a.AllowOut.Entries)
	must(t, json.Unmarshal([]byte(changes), &a))
	return a
}

func TestValidateOfWhereCredentialsComeFrom(t *testing.T) {
	base := Account{Name: "work", Protocol: IMAP, IMAP: Endpoint{"imap.example.org", 993, TLS}, Username: "ann", Auth: AuthPassword, Mode: ReadOnly}
	for _, c := range testmain.Table[struct{ Name, Says, Changes string }](t, "testdata/cases/account_login.txt") {
		a := with(t, base, c.Changes)
		if err := a.Validate(); (err == nil) != (c.Says == "") || err != nil && !strings.Contains(err.Error(), c.Says) {
			t.Errorf("%s: %v; want %q", c.Name, err, c.Says)
		}
	}
	if base.DisplayName = "Ann\xff"; base.Validate() == nil {
		t.Error("a display name that is no UTF-8 is taken")
	}
}
