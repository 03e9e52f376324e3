package admin_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
)

// An account that judges senders adds entries that demand a verified one, and tells how the
// newest messages would fare; entries that exist stay as they are.
func TestEntriesThatDemandAVerifiedSender(t *testing.T) {
	b := newFixture(t, work("work", mail.ReadWrite))
	b.mailboxes.judged = map[string]map[mail.Verdict]int{"@bank.example": {mail.Verified: 7, mail.Failed: 1, mail.Unknown: 2}}
	kept := func(entries, verified string) {
		t.Helper()
		a, err := b.vault.Account(t.Context(), "work")
		if err != nil || fmt.Sprint(a.AllowIn.Entries) != entries || fmt.Sprint(a.AllowIn.Verified) != verified {
			t.Errorf("entries %v, verified %v, %v; want %s and %s", a.AllowIn.Entries, a.AllowIn.Verified, err, entries, verified)
		}
	}
	b.Fails(t, "allow in add @bank.example --verified --account work", discovery.ValidationError, "whose word on senders")
	b.OK(t, "allow in add old@example.org --account work")
	kept("[old@example.org]", "[]")
	if e := b.OK(t, "account edit work --authserv-id mx.example.org --allow-in on"); fmt.Sprint(e.Data["account"].(map[string]any)["authserv_ids"]) != "[mx.example.org]" {
		t.Errorf("%v", e.Data)
	}
	b.Fails(t, "account edit work --authserv-id 'mx example'", discovery.ValidationError, "name that it writes")

	e := b.OK(t, "allow in add @bank.example old@example.org '*' --account work")
	kept("[old@example.org *]", "[@bank.example]")
	if fmt.Sprint(e.Data["senders"]) != "[map[entry:@bank.example failed:1 unknown:2 verified:7]]" || fmt.Sprint(e.Data["verified"]) != "[@bank.example]" || fmt.Sprint(e.Data["added"]) != "[@bank.example *]" {
		t.Errorf("%v", e.Data)
	}
	b.OK(t, "allow in remove '*' --account work")
	b.Compact = true
	if got := b.Data(t, "allow in add @bank.example --account work"); strings.Contains(got, "hidden") || strings.Contains(got, "added") {
		t.Errorf("an entry that is there: %s", got)
	}
	b.OK(t, "allow in remove @bank.example --account work")
	kept("[old@example.org]", "[]")
	if got := b.Data(t, "allow in add @bank.example --account work"); !strings.Contains(got, "hidden while the list is on: 3 of 10 messages of @bank.example") {
		t.Errorf("the report: %s", got)
	}
	b.OK(t, "allow in add @bank.example --verified=false --account work")
	kept("[old@example.org @bank.example]", "[]")
	b.OK(t, "allow in add old@example.org --verified --account work")
	kept("[@bank.example]", "[old@example.org]")
	for line, want := range map[string]string{
		"allow in list --account work": `"verified":["old@example.org"]`,
		"account show work":            `"allow_in":"@bank.example only verified: old@example.org"`,
		"account list":                 `only verified: old@example.org`,
		"policy show --account work":   `"judged"`,
	} {
		if got := b.Data(t, line); !strings.Contains(got, want) {
			t.Errorf("%s: %s", line, got)
		}
	}
	b.OK(t, "account edit work --authserv-id none")
	if got := b.Data(t, "account show work"); !strings.Contains(got, `"authserv_ids":["none"]`) || strings.Contains(got, "judges_senders") {
		t.Errorf("turned off: %s", got)
	}
	b.OK(t, "account edit work --authserv-id ''")
	if got := b.Data(t, "account show work"); strings.Contains(got, "authserv_ids") {
		t.Errorf("back to the provider: %s", got)
	}
}

// doctor proposes to the administrator alone whom to believe, and sets nothing.
func TestDoctorProposesWhomToBelieve(t *testing.T) {
	b := newFixture(t, work("work", mail.ReadOnly))
	b.mailboxes.authServID = "mx.example.org"
	if got := b.Data(t, "doctor"); !strings.Contains(got, "'account edit work --authserv-id mx.example.org'") {
		t.Errorf("%s", got)
	}
	if a, err := b.vault.Account(t.Context(), "work"); err != nil || a.AuthServIDs != nil {
		t.Errorf("%v %v", a.AuthServIDs, err)
	}
	b.Principal.Admin = false
	b.mailboxes.asked.Store(0)
	if got := b.Data(t, "doctor"); strings.Contains(got, "authserv") || b.mailboxes.asked.Load() > 0 {
		t.Errorf("an agent: %s, %v", got, b.mailboxes.asked.Load())
	}
	b.Principal.Admin = true
	b.OK(t, "account edit work --authserv-id mx.example.org")
	if got := b.Data(t, "doctor"); strings.Contains(got, "senders") {
		t.Errorf("where it is set: %s", got)
	}
}
