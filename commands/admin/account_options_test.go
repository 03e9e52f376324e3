package admin_test

import (
	"context"
	"strings"
	"testing"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
)

// A new account may not delete for good, and one in mode approve may write to everybody.
func TestWhatANewAccountMayDo(t *testing.T) {
	b := newFixture(t)
	b.deps.ReadSecret = func(context.Context, string) (mail.Secret, error) { return mail.NewSecret([]byte("secret")), nil }
	const add = "account add new --email ann@example.org --imap-host imap.example.org --password-from stdin "
	for options, want := range map[string]string{
		"":                            `"mode":"RO","allow_out":"nobody"`,
		"--mode draft":                `"mode":"draft","allow_out":"nobody"`,
		"--mode draft --destroy on":   `"mode":"draft","destroy":"on","allow_out":"nobody"`,
		"--mode approve":              `"mode":"approve","allow_out":"*"`,
		"--mode RW --destroy on":      `"mode":"RW","destroy":"on","allow_out":"nobody"`,
		"--mode approve --destroy on": `"mode":"approve","destroy":"on","allow_out":"*"`,
	} {
		if got := b.Data(t, add+options); !strings.Contains(got, want) {
			t.Errorf("%q: %s, want %s", options, got, want)
		}
		b.OK(t, "account remove new")
	}
	b.OK(t, add+"--mode approve")
	if got := b.Data(t, "account edit new --mode RW"); !strings.Contains(got, `"more":"allow out remove * --account new"`) {
		t.Errorf("mail goes to everybody unasked, and nothing says so: %s", got)
	}
	if got := b.Data(t, "allow out add @example.org --account new"); !strings.Contains(got, "lets everybody pass") {
		t.Errorf("an entry beside *: %s", got)
	}
}

// An account made before the right to delete existed keeps it until its mode or right is set.
func TestDoctorTellsOfRightsFromBefore(t *testing.T) {
	read := work("read", mail.ReadOnly)
	b := newFixture(t, work("old", mail.Approve), work("work", mail.ReadWrite), read)
	const line = `["rights","ok","Older than the right to delete for good, and may do so unasked: `
	if got := b.Data(t, "doctor"); !strings.Contains(got, line+`old, work.","The administrator settles it with 'account edit old --destroy off' (or on)."]`) {
		t.Errorf("doctor: %s", got)
	}
	if got := b.Data(t, "account edit old --destroy on"); !strings.Contains(got, `"destroy":"on"`) {
		t.Errorf("%s", got)
	}
	if got := b.Data(t, "doctor"); !strings.Contains(got, line+`work.",`) {
		t.Errorf("doctor: %s", got)
	}
	b.OK(t, "account edit work --display-name Ann")
	if got := b.Data(t, "doctor"); !strings.Contains(got, line+`work.",`) {
		t.Errorf("a name takes the right away: %s", got)
	}
	b.OK(t, "account edit work --mode RW")
	if got := b.Data(t, "doctor"); strings.Contains(got, "rights") {
		t.Errorf("doctor: %s", got)
	}
	if got := b.Data(t, "policy show"); !strings.Contains(got, `["old","approve","read change send-when-approved destroy-when-approved"`) || !strings.Contains(got, `["work","RW","read change send",`) {
		t.Errorf("policy show: %s", got)
	}
}

// The host none is no submission server, as in init, for a new account and for one that had one.
func TestAnAccountWithoutASubmissionServer(t *testing.T) {
	b := newFixture(t)
	b.deps.ReadSecret = func(context.Context, string) (mail.Secret, error) { return mail.NewSecret([]byte("secret")), nil }
	for _, line := range []string{
		"account add new --email ann@gmail.com --auth oauth2 --oauth-provider google --oauth-client-id 1 --oauth-client-secret-from stdin --smtp-host none",
		"account add other --email ann@example.org --imap-host imap.example.org --password-from stdin --smtp-host none",
		"account edit other --smtp-host smtp.example.org --smtp-port 2525",
		"account edit other --smtp-host none",
		"account edit other --mode draft",
	} {
		sends := strings.Contains(line, "2525")
		if got := b.Data(t, line); strings.Contains(got, `"smtp":`) != sends || strings.Contains(got, `none`) {
			t.Errorf("%s: %s", line, got)
		}
	}
	b.Fails(t, "account edit other --smtp-host none --smtp-port 25", discovery.ValidationError, "--smtp-host is missing")
}

// A mistake in a command of many options is told in a line or two, with what was likely meant.
func TestAMistakeInAnAccountIsToldShortly(t *testing.T) {
	b := newFixture(t, work("work", mail.ReadOnly))
	for typed, meant := range map[string]string{"--mode readonly": "RO", "--mode read-write": "RW", "--mode aprove": "approve", "--destroy of": "off", "--mod RO": "--mode"} {
		e := b.Fails(t, "account edit work "+typed, discovery.ValidationError, " Did you mean "+meant+"? 'help account edit' lists what it takes.")
		if said := e.Error.Message + e.Error.Hint; len(said) > 160 {
			t.Errorf("%s: %s", typed, said)
		}
	}
	b.Fails(t, "account edit work --mode sideways", discovery.ValidationError, "--mode must be one of RO, draft, approve, reply, RW. 'help account edit' lists what it takes.")
}
