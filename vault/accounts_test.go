package vault

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/postern-mail/postern/mail"
)

func secretIs(t testing.TB, v *Vault, want string) {
	t.Helper()
	if s, err := v.Secret(t.Context(), "work"); err != nil || s.Reveal() != want {
		t.Errorf("the secret is not %q: %v", want, err)
	}
}

func TestAccountsComeBackAsTheyWereAdded(t *testing.T) {
	t.Parallel()
	admin, agent := newVault(t, nil)
	if all, err := agent.Accounts(t.Context()); err != nil || all == nil || len(all) != 0 {
		t.Fatalf("Accounts of a new vault = %v, %v; want an empty list", all, err)
	}
	for _, name := range []string{"work", "Home", "a-1"} {
		mustAdd(t, admin, name)
	}
	all, err := agent.Accounts(t.Context())
	if err != nil || len(all) != 3 || all[0].Name != "Home" || all[1].Name != "a-1" || all[2].Name != "work" {
		t.Fatalf("Accounts = %v, %v; want three by name", all, err)
	}
	got, err := agent.Account(t.Context(), "work")
	if err != nil || !reflect.DeepEqual(got, account("work")) {
		t.Errorf("Account = %+v, %v", got, err)
	}
	got.AllowOut.Entries[0] = "changed by a caller"
	if again, _ := agent.Account(t.Context(), "work"); !reflect.DeepEqual(again, account("work")) {
		t.Error("one caller's change shows in another's account")
	}
	secretIs(t, agent, "secret of work")
	wantErr(t, second(agent.Secret(t.Context(), "nobody")), mail.ErrNoAccount, "the secret of no account")
	wantErr(t, second(agent.Account(t.Context(), "nobody")), mail.ErrNoAccount, "no account")
}

func TestAddAccountRefuses(t *testing.T) {
	t.Parallel()
	admin, _ := newVault(t, nil)
	mustAdd(t, admin, "work")
	with := func(edit func(*mail.Account)) mail.Account {
		a := account("new")
		edit(&a)
		return a
	}
	helped := with(func(a *mail.Account) { a.Auth, a.Helper = mail.AuthHelper, []string{"biosecret"} })
	helper := with(func(a *mail.Account) {
		a.Name, a.Auth, a.Helper = "help", mail.AuthHelper, []string{"biosecret", "get"}
	})
	keyring := with(func(a *mail.Account) { a.Name, a.Auth = "ring", mail.AuthKeyring })
	secret := mail.NewSecret([]byte("s"))
	for name, c := range map[string]struct {
		a      mail.Account
		secret mail.Secret
		want   error
	}{
		"taken name":         {account("work"), secret, ErrExists},
		"zero account":       {mail.Account{}, secret, ErrInvalid},
		"no secret":          {account("new"), mail.Secret{}, ErrInvalid},
		"oauth2, no secret":  {oauthAccount("auth"), mail.Secret{}, nil},
		"helper with secret": {helped, secret, ErrInvalid},
		"helper":             {helper, mail.Secret{}, nil},
		"keyring":            {keyring, mail.Secret{}, nil},
	} {
		wantErr(t, admin.AddAccount(t.Context(), c.a, c.secret), c.want, "%s", name)
	}
	wantErr(t, second(admin.Secret(t.Context(), "ring")), ErrNoSecret, "the secret of a keyring account")
}

func TestUpdateAccount(t *testing.T) {
	t.Parallel()
	path, k := newPlace(t)
	admin, agent := mustOpen(t, path, k, nil), mustOpen(t, path, Keys{Agent: k.Agent}, nil)
	mustAdd(t, admin, "work")
	change := func(edit func(*mail.Account) error, secret *mail.Secret) error {
		return admin.UpdateAccount(t.Context(), "work", edit, secret)
	}
	must(t, change(func(a *mail.Account) error { a.Mode = mail.ReadOnly; return nil }, nil))
	if a, err := agent.Account(t.Context(), "work"); err != nil || a.Mode != mail.ReadOnly {
		t.Errorf("Account = %+v, %v", a, err)
	}
	secretIs(t, agent, "secret of work")
	next := mail.NewSecret([]byte("rotated"))
	must(t, change(func(*mail.Account) error { return nil }, &next))
	secretIs(t, agent, "rotated")

	failure := errors.New("no")
	zero := mail.Secret{}
	before := snapshot(t, path)
	for name, c := range map[string]struct {
		err  error
		want error
	}{
		"edit fails": {change(func(a *mail.Account) error { a.Mode = mail.ReadWrite; return failure }, nil), failure},
		"renamed":    {change(func(a *mail.Account) error { a.Name = "other"; return nil }, nil), ErrInvalid},
		"invalid":    {change(func(a *mail.Account) error { a.Mode = "x"; return nil }, nil), ErrInvalid},
		"no secret":  {change(func(*mail.Account) error { return nil }, &zero), ErrInvalid},
		"unknown":    {admin.UpdateAccount(t.Context(), "nobody", func(*mail.Account) error { return nil }, nil), mail.ErrNoAccount},
	} {
		wantErr(t, c.err, c.want, "%s", name)
	}
	unchanged(t, path, before)

	must(t, change(func(a *mail.Account) error { a.Auth = mail.AuthKeyring; return nil }, nil))
	wantErr(t, second(agent.Secret(t.Context(), "work")), ErrNoSecret, "the secret of what is a keyring account now")
	wantErr(t, change(func(a *mail.Account) error { a.Auth = mail.AuthPassword; return nil }, nil), ErrInvalid, "back to a password without one")
}

// A removed account leaves no secret, no tokens and nothing that was seen; a new one of its name
// begins anew.
func TestARemovedAccountLeavesNothing(t *testing.T) {
	t.Parallel()
	admin, agent := newVault(t, nil)
	mustAdd(t, admin, "pass")
	for _, name := range []string{"work", "work2"} {
		addOAuth(t, admin, name, "c", "r0")
		lentIs(t, agent, name, "c", "r0", "r1")
		must(t, agent.UpdateSeen(t.Context(), name, "INBOX", func(s *mail.SeenState) error { s.Begin("m", 1, 9, false); return nil }))
	}
	for _, name := range []string{"pass", "work"} {
		must(t, admin.RemoveAccount(t.Context(), name))
		wantErr(t, admin.RemoveAccount(t.Context(), name), mail.ErrNoAccount, "a second removal")
		wantErr(t, second(agent.Secret(t.Context(), name)), mail.ErrNoAccount, "Secret")
		noRecord(t, admin, name)
		must(t, admin.view(t.Context(), func(tx *transaction) error {
			if b, err := tx.get(bucketSecrets, []byte(name)); b != nil || err != nil {
				t.Errorf("the secret is still there: %v", err)
			}
			return nil
		}))
	}
	for name, floor := range map[string]uint32{"work": 0, "work2": 9} {
		if s, err := agent.Seen(t.Context(), name, "INBOX"); err != nil || s.Floor != floor {
			t.Errorf("what was seen of %s: %+v, %v", name, s, err)
		}
	}
	lentIs(t, agent, "work2", "c", "r1", "")
	addOAuth(t, admin, "work", "d", "r0")
	lentIs(t, agent, "work", "d", "r0", "")
}

// Records of the policy that a later version wrote are refused.
func TestRecordsOfALaterVersionAreRefused(t *testing.T) {
	t.Parallel()
	const digest = `"digest":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="`
	account := func(v *Vault) error { return second(v.Account(t.Context(), "work")) }
	config := func(v *Vault) error { return second(v.Config(t.Context())) }
	grants := func(v *Vault) error { return second(v.Grants(t.Context())) }
	tokens := func(v *Vault) error { return v.RefreshToken(t.Context(), "work", unlent(t)) }
	for record, c := range map[string]struct {
		bucket, key string
		use         func(*Vault) error
		want        error
	}{
		`{"only_on_mondays":true}`: {bucketAccounts, "work", account, ErrFutureFormat},
		`true`:                     {bucketSettings, "only_on_mondays", config, ErrFutureFormat},
		`{"name":"laptop","id":"x",` + digest + `,"only_from":"10.0.0.0/8"}`: {bucketGrants, "laptop", grants, ErrFutureFormat},
		`{"name":"desk","id":"x",` + digest + `}`:                            {bucketGrants, "laptop", grants, ErrDamaged},
		`{"name":"laptop","id":"x"}`:                                         {bucketGrants, "laptop", grants, ErrDamaged},
		`{"name":"laptop","id":"x",` + digest + `} {}`:                       {bucketGrants, "laptop", grants, ErrFutureFormat},
		`{"client_secret":"Yw==","refresh_token":"cg==","only":1}`:           {bucketSecrets, "work", tokens, ErrDamaged},
		`canary`: {bucketSecrets, "work", tokens, ErrDamaged},
		`{} {}`:  {bucketSecrets, "work", tokens, ErrDamaged},
		``:       {bucketSecrets, "work", tokens, ErrDamaged},
	} {
		admin, agent := newVault(t, nil)
		addOAuth(t, admin, "work", "c", "r")
		must(t, admin.change(t.Context(), func(p *policyChange) error { return p.put(c.bucket, c.key, []byte(record)) }))
		if err := c.use(agent); !errors.Is(err, c.want) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v, want %v", record, err, c.want)
		}
	}
}
