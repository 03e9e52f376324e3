package admin_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault"
)

func TestAGrantIsShownOnceAndListedWithoutItsToken(t *testing.T) {
	b := newFixture(t, work("work", mail.ReadOnly), work("home", mail.ReadOnly))
	e := b.OK(t, "grant add laptop --accounts work,home --profile full --identity my-repo:laptop --extensions x-b,x-a,x-b --expires 7d")
	token, _ := e.Data["token"].(string)
	if !strings.HasPrefix(token, vault.GrantTokenPrefix) || !strings.Contains(e.Message, "cannot be shown again") {
		t.Fatalf("%+v", e)
	}
	g, _ := e.Data["grant"].(map[string]any)
	if g["principal"] != "grant:laptop" || lasts(t, g) != 7*24*time.Hour || g["profile"] != "full" || g["identity"] != "my-repo:laptop" || fmt.Sprint(g["extensions"]) != "[x-a x-b]" {
		t.Errorf("%v", g)
	}
	b.OK(t, "grant add phone --accounts work")
	for _, line := range []string{"grant list", "audit list", "grant remove laptop", "policy show", "config list"} {
		shown, err := json.Marshal(b.Do(t, line))
		if err != nil || strings.Contains(string(shown), vault.GrantTokenPrefix) {
			t.Errorf("%s shows a token: %s", line, shown)
		}
	}
	list, _ := b.OK(t, "grant list").Data["grants"].([]any)
	if len(list) != 1 {
		t.Fatalf("%v", list)
	}
	phone, _ := list[0].(map[string]any)
	if phone["name"] != "phone" || phone["profile"] != "read" || phone["identity"] != nil || phone["extensions"] != nil {
		t.Errorf("a grant that nothing was said of: %v", phone)
	}
	entries, err := b.vault.Audit(t.Context(), vault.AuditQuery{})
	must(t, err)
	var targets []string
	for _, e := range entries {
		if e.Allowed && strings.HasPrefix(e.Parsed, "grant ") && e.Parsed != "grant list" {
			targets = append(targets, e.Principal+": "+e.Parsed+" of "+e.Target)
		}
	}
	slices.Sort(targets)
	if want := []string{"admin: grant add of grant laptop", "admin: grant add of grant phone", "admin: grant remove of grant laptop"}; !slices.Equal(targets, want) {
		t.Errorf("audited %q", targets)
	}
}

func lasts(t *testing.T, g map[string]any) time.Duration {
	t.Helper()
	created, err := time.Parse(time.RFC3339, g["created"].(string))
	must(t, err)
	expires, err := time.Parse(time.RFC3339, g["expires"].(string))
	must(t, err)
	return expires.Sub(created)
}

func TestGrantsThatAreRefused(t *testing.T) {
	b := newFixture(t, work("work", mail.ReadOnly))
	b.OK(t, "grant add laptop --accounts work")
	for _, c := range testmain.Table[struct{ Line, Code, Says string }](t, "testdata/cases/refused_grants.txt") {
		b.Fails(t, c.Line, discovery.Code(c.Code), c.Says)
	}
	b.Principal.Name, b.Principal.Admin = "agent", false
	for _, line := range []string{"grant add other --accounts work", "grant list", "grant remove laptop"} {
		b.Fails(t, line, discovery.PermissionDenied, "")
	}
}
