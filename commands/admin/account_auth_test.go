package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault"
)

// canary is in every secret of these tests and in no answer.
const canary = "c4n4ry"

// fakeKeyring is a keyring in memory.
type fakeKeyring struct {
	kept map[string]string
	err  error // of everything
}

func (r *fakeKeyring) Set(_ context.Context, account string, s mail.Secret) error {
	if r.err == nil {
		r.kept[account] = s.Reveal()
	}
	return r.err
}

func (r *fakeKeyring) Delete(_ context.Context, account string) error {
	if r.err == nil && r.kept[account] == "" {
		return mail.ErrNotInKeyring
	}
	if r.err == nil {
		delete(r.kept, account)
	}
	return r.err
}

// newAccountBench is a fixture with a keyring, where every source of a secret gives
// its own name with the canary.
func newAccountBench(t *testing.T, accounts ...mail.Account) (*fixture, *fakeKeyring) {
	t.Helper()
	b := newFixture(t, accounts...)
	r := &fakeKeyring{kept: map[string]string{}}
	b.deps.Keyring, b.deps.Tokenize = r, gateway.Tokenize
	b.deps.ReadSecret = func(_ context.Context, source string) (mail.Secret, error) {
		return mail.NewSecret([]byte(canary + source)), nil
	}
	return b, r
}

func (b *fixture) stored(t *testing.T, name string) mail.Account {
	t.Helper()
	a, err := b.vault.Account(t.Context(), name)
	must(t, err)
	return a
}

// sealed is the password that the vault has of an account, empty for none.
func (b *fixture) sealed(t *testing.T, name string) string {
	t.Helper()
	s, err := b.vault.Secret(t.Context(), name)
	if err != nil && !errors.Is(err, vault.ErrNoSecret) {
		t.Fatal(err)
	}
	return s.Reveal()
}

func (b *fixture) client(t *testing.T, name string) string {
	t.Helper()
	s, err := b.vault.ClientSecret(t.Context(), name)
	must(t, err)
	return s.Reveal()
}

// TestEachAuthIsAddedWithWhatItNeeds adds an account of each kind and looks at where
// its secret went.
func TestEachAuthIsAddedWithWhatItNeeds(t *testing.T) {
	const base = "account add work --email ann@example.org --imap-host imap.example.org"
	for _, test := range []struct {
		name, line   string
		auth         mail.Auth
		helper       []string
		sealed, kept string
		client, next string
	}{
		{"password", " --password-from stdin", mail.AuthPassword, nil, canary + "stdin", "", "", "doctor --account work"},
		{"helper", ` --auth helper --helper '/usr/bin/biosecret get "my mail" #1'`, mail.AuthHelper, []string{"/usr/bin/biosecret", "get", "my mail", "#1"}, "", "", "", "doctor --account work"},
		{"keyring", " --auth keyring --password-from env:PW", mail.AuthKeyring, nil, "", canary + "env:PW", "", "doctor --account work"},
		{"keyring that has it", " --auth keyring", mail.AuthKeyring, nil, "", "", "", "doctor --account work"},
		{"public client", " --auth oauth2 --oauth-provider custom --oauth-client-id ID --oauth-token-url https://id.example.org/t --oauth-auth-url https://id.example.org/a",
			mail.AuthOAuth2, nil, "", "", "", "account authorize work"},
		{"client with a secret", " --auth oauth2 --oauth-provider google --oauth-client-id ID --oauth-client-secret-from file:x",
			mail.AuthOAuth2, nil, "", "", canary + "file:x", "account authorize work"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b, r := newAccountBench(t)
			e := b.OK(t, base+test.line)
			a := b.stored(t, "work")
			if a.Auth != test.auth || !slices.Equal(a.Helper, test.helper) || b.sealed(t, "work") != test.sealed || r.kept["work"] != test.kept || e.Next() != test.next {
				t.Errorf("%+v, sealed %q, kept %q, next %q", a, b.sealed(t, "work"), r.kept["work"], e.Next())
			}
			if test.auth == mail.AuthOAuth2 && b.client(t, "work") != test.client {
				t.Errorf("client secret %q", b.client(t, "work"))
			}
			for _, line := range []string{"account show work", "account list", "audit list", "policy show"} {
				if shown, _ := json.Marshal(b.OK(t, line)); strings.Contains(string(shown), canary) {
					t.Errorf("%s shows a secret: %s", line, shown)
				}
			}
			if shown, _ := json.Marshal(e); strings.Contains(string(shown), canary) {
				t.Errorf("the answer shows a secret: %s", shown)
			}
		})
	}
}

func TestOptionsOfAnotherAuthAreRefused(t *testing.T) {
	password := work("work", mail.ReadOnly)
	helper := work("helped", mail.ReadOnly)
	b, r := newAccountBench(t, password)
	helper.Auth, helper.Helper = mail.AuthHelper, []string{"biosecret"}
	must(t, b.vault.AddAccount(t.Context(), helper, mail.Secret{}))
	for _, test := range testmain.Table[struct{ Line, Says string }](t, "testdata/cases/refused_auth.txt") {
		b.Fails(t, test.Line, discovery.ValidationError, test.Says)
	}
	if a := b.stored(t, "work"); !reflect.DeepEqual(a, password) || b.sealed(t, "work") != "secret" {
		t.Errorf("a refused command changed %+v", a)
	}
	if a := b.stored(t, "helped"); !reflect.DeepEqual(a, helper) || len(r.kept) != 0 {
		t.Errorf("a refused command changed %+v, %v", a, r.kept)
	}
	if _, err := b.vault.Account(t.Context(), "new"); !errors.Is(err, mail.ErrNoAccount) {
		t.Error("a refused command added an account")
	}
}

// TestAnAccountChangesHowItLogsIn goes from each source to the next; nothing of the
// one before is left.
func TestAnAccountChangesHowItLogsIn(t *testing.T) {
	b, r := newAccountBench(t, work("work", mail.ReadOnly))
	if next := b.OK(t, "account edit work --auth helper --helper 'biosecret get'").Next(); next != "doctor --account work" {
		t.Errorf("next: %q", next)
	}
	if a := b.stored(t, "work"); b.sealed(t, "work") != "" || !slices.Equal(a.Helper, []string{"biosecret", "get"}) {
		t.Errorf("%+v %q", a, b.sealed(t, "work"))
	}
	if next := b.OK(t, "account edit work --mode RW").Next(); next != "" {
		t.Errorf("next: %q", next)
	}
	if a := b.stored(t, "work"); !slices.Equal(a.Helper, []string{"biosecret", "get"}) || a.Auth != mail.AuthHelper {
		t.Errorf("an edit of something else changed %+v", a)
	}
	if next := b.OK(t, "account edit work --auth keyring --password-from stdin").Next(); next != "doctor --account work" {
		t.Errorf("next: %q", next)
	}
	if a := b.stored(t, "work"); len(a.Helper) != 0 || !maps.Equal(r.kept, map[string]string{"work": canary + "stdin"}) {
		t.Errorf("%+v, %v", a, r.kept)
	}
	b.OK(t, "account edit work --password-from env:NEW")
	if r.kept["work"] != canary+"env:NEW" || b.sealed(t, "work") != "" {
		t.Errorf("%v, sealed %q", r.kept, b.sealed(t, "work"))
	}
	e := b.OK(t, "account edit work --auth oauth2 --oauth-provider microsoft --oauth-client-id ID --oauth-tenant contoso.example --oauth-client-secret-from stdin --oauth-scope 'a,b'")
	if len(r.kept) != 0 || b.client(t, "work") != canary+"stdin" || e.Next() != "account authorize work" || e.Data["left_in_keyring"] != nil {
		t.Errorf("%v, %q, %+v", r.kept, b.client(t, "work"), e)
	}
	want := mail.OAuth{Provider: "microsoft", ClientID: "ID", Tenant: "contoso.example", Scopes: []string{"a", "b"}}
	if a := b.stored(t, "work"); !reflect.DeepEqual(a.OAuth, want) || a.SMTP.Host != "smtp.example.org" {
		t.Errorf("%+v", a)
	}
	if e := b.OK(t, "account edit work --mode RO"); e.Next() != "" || b.client(t, "work") != canary+"stdin" {
		t.Errorf("an edit of something else suggests %q", e.Next())
	}
	b.Fails(t, "account edit work --oauth-provider google", discovery.ValidationError, "client id")
	e = b.OK(t, "account edit work --oauth-provider google --oauth-client-id OTHER")
	if a := b.stored(t, "work"); !reflect.DeepEqual(a.OAuth, mail.OAuth{Provider: "google", ClientID: "OTHER"}) || b.client(t, "work") != "" || e.Next() != "account authorize work" {
		t.Errorf("%+v %q: something of the other provider is left", a, b.client(t, "work"))
	}
	b.OK(t, "account edit work --auth password --password-from stdin")
	if a := b.stored(t, "work"); !a.OAuth.IsZero() || b.sealed(t, "work") != canary+"stdin" {
		t.Errorf("%+v", a)
	}
}

func TestAKeyringThatFailsLosesNothing(t *testing.T) {
	b, r := newAccountBench(t, work("work", mail.ReadOnly))
	r.err = &mail.Error{Op: "mail login", Kind: mail.KindConfig, Message: "The system keyring cannot be used now.", Advice: mail.AdviceUnlockKeyring}
	b.Fails(t, "account add new --email ann@example.org --imap-host imap.example.org --auth keyring --password-from stdin", discovery.ConfigError, "keyring cannot be used now")
	if _, err := b.vault.Account(t.Context(), "new"); !errors.Is(err, mail.ErrNoAccount) {
		t.Error("the account is there without its password")
	}
	b.Fails(t, "account edit work --auth keyring --password-from stdin", discovery.ConfigError, "keyring cannot be used now")
	if a := b.stored(t, "work"); a.Auth != mail.AuthPassword || b.sealed(t, "work") != "secret" {
		t.Error("the password in the vault is gone, and the keyring has none")
	}
	// Taking it out is not worth an account that cannot be removed.
	r.err = nil
	if next := b.OK(t, "account edit work --auth keyring --password-from stdin").Next(); next != "doctor --account work" {
		t.Errorf("next: %q", next)
	}
	r.err = errors.New("locked")
	e := b.OK(t, "account remove work")
	if left, _ := e.Data["left_in_keyring"].(string); !strings.Contains(left, "service postern, user work") || strings.Contains(left, canary) {
		t.Errorf("%+v", e)
	}
	// An account that exists keeps its entry when another of its name is added.
	r.err = nil
	b.OK(t, "account add work --email ann@example.org --imap-host imap.example.org --auth keyring --password-from stdin")
	b.Fails(t, "account add work --email ann@example.org --imap-host imap.example.org --auth keyring --password-from env:X", discovery.Conflict, "of that name")
	if r.kept["work"] != canary+"stdin" {
		t.Errorf("kept %q", r.kept["work"])
	}
	if e := b.OK(t, "account remove work"); len(r.kept) != 0 || e.Data["left_in_keyring"] != nil {
		t.Errorf("%v, %+v", r.kept, e)
	}
}
