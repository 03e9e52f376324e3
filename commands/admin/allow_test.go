package admin_test

import (
	"fmt"
	"testing"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
)

func TestAllowListsAreKeptInOneForm(t *testing.T) {
	b := newFixture(t, work("work", mail.ReadWrite), work("other", mail.ReadWrite))
	entries := func(account, list string) string {
		t.Helper()
		a, err := b.vault.Account(t.Context(), account)
		if err != nil {
			t.Fatal(err)
		}
		if list == "in" {
			return fmt.Sprint(a.AllowIn.Entries)
		}
		return fmt.Sprint(a.AllowOut.Entries)
	}
	for _, list := range []string{"in", "out"} {
		other := map[string]string{"in": "out", "out": "in"}[list]
		e := b.ok(t, "allow "+list+" add Ann@EXAMPLE.org @Bücher.example ann@example.org --account work")
		if fmt.Sprint(e.Data["added"]) != "[ann@example.org @xn--bcher-kva.example]" || e.Data["list"] != list || e.Data["enabled"] != (list == "out") {
			t.Errorf("add: %v", e.Data)
		}
		if e = b.ok(t, "whitelist "+list+" add ann@example.org --account work"); e.Data["added"] != nil || len(e.Data["entries"].([]any)) != 2 {
			t.Errorf("add again: %v", e.Data)
		}
		b.fails(t, "allow "+list+" remove ann@example.org bob@example.org --account work", discovery.NotFound, "none was removed")
		if got := entries("work", list); got != "[ann@example.org @xn--bcher-kva.example]" {
			t.Errorf("after a removal that failed: %s", got)
		}
		if e = b.ok(t, "allow "+list+" remove @bücher.EXAMPLE --account work"); fmt.Sprint(e.Data["removed"]) != "[@xn--bcher-kva.example]" {
			t.Errorf("remove: %v", e.Data)
		}
		if e = b.ok(t, "whitelist "+list+" list --account work"); fmt.Sprint(e.Data["entries"]) != "[ann@example.org]" || e.Message == "" {
			t.Errorf("list: %v", e.Data)
		}
		if entries("other", list) != "[]" || list == "in" && entries("work", other) != "[]" {
			t.Errorf("%s: another list changed", list)
		}
	}
	for _, entry := range []string{"ann", "*@example.org", "'ann lee@example.org'", "@", `"a@b.example\nc@d.example"`} {
		e := b.fails(t, "allow in add ok@example.org "+entry+" --account work", discovery.ValidationError, "Entry 2 cannot be used")
		if len(e.Error.Examples) == 0 {
			t.Errorf("%s: no example", entry)
		}
	}
	if got := entries("work", "in"); got != "[ann@example.org]" {
		t.Errorf("after entries that were refused: %s", got)
	}
	b.fails(t, "allow in add x@example.org", discovery.ValidationError, "several accounts")
	b.fails(t, "allow in add x@example.org --account nobody", discovery.NotFound, "no such account")
	b.principal.Admin = false
	for _, line := range []string{"allow in list --account work", "whitelist out add x@example.org --account work", "allow out remove ann@example.org --account work"} {
		b.fails(t, line, discovery.PermissionDenied, "You may not run")
	}
}
