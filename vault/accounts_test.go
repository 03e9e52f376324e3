package vault

import (
	"errors"
	"reflect"
	"testing"

	"github.com/postern-mail/postern/mail"
)

func TestAccountsComeBackAsTheyWereAdded(t *testing.T) {
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
	if s, err := agent.Secret(t.Context(), "work"); err != nil || s.Reveal() != "secret of work" {
		t.Errorf("Secret: %v", err)
	}
	wantErr(t, second(agent.Secret(t.Context(), "nobody")), mail.ErrNoAccount, "the secret of no account")
	wantErr(t, second(agent.Account(t.Context(), "nobody")), mail.ErrNoAccount, "no account")
}

func TestAddAccountRefuses(t *testing.T) {
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
	admin, agent := newVault(t, nil)
	mustAdd(t, admin, "work")
	change := func(edit func(*mail.Account) error, secret *mail.Secret) error {
		return admin.UpdateAccount(t.Context(), "work", edit, secret)
	}
	secretIs := func(want string) {
		t.Helper()
		if s, err := agent.Secret(t.Context(), "work"); err != nil || s.Reveal() != want {
			t.Errorf("the secret is not %q: %v", want, err)
		}
	}
	must(t, change(func(a *mail.Account) error { a.Mode = mail.ReadOnly; return nil }, nil))
	if a, err := agent.Account(t.Context(), "work"); err != nil || a.Mode != mail.ReadOnly {
		t.Errorf("Account = %+v, %v", a, err)
	}
	secretIs("secret of work")
	next := mail.NewSecret([]byte("rotated"))
	must(t, change(func(*mail.Account) error { return nil }, &next))
	secretIs("rotated")

	failure := errors.New("no")
	zero := mail.Secret{}
	before := snapshot(t, admin.Path())
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
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: %v, want %v", name, c.err, c.want)
		}
	}
	if got := snapshot(t, admin.Path()).bytes; string(got) != string(before.bytes) {
		t.Error("a refused change wrote")
	}

	must(t, change(func(a *mail.Account) error { a.Auth = mail.AuthKeyring; return nil }, nil))
	wantErr(t, second(agent.Secret(t.Context(), "work")), ErrNoSecret, "the secret of what is a keyring account now")
	wantErr(t, change(func(a *mail.Account) error { a.Auth = mail.AuthPassword; return nil }, nil), ErrInvalid, "back to a password without one")
}

func TestRemoveAccountTakesTheSecretAlong(t *testing.T) {
	admin, agent := newVault(t, nil)
	mustAdd(t, admin, "work")
	must(t, admin.RemoveAccount(t.Context(), "work"))
	wantErr(t, admin.RemoveAccount(t.Context(), "work"), mail.ErrNoAccount, "a second removal")
	wantErr(t, second(agent.Secret(t.Context(), "work")), mail.ErrNoAccount, "Secret")
	err := admin.view(t.Context(), func(tx *transaction) error {
		if b, err := tx.get(bucketSecrets, []byte("work")); b != nil || err != nil {
			t.Errorf("the secret is still there: %v", err)
		}
		return nil
	})
	must(t, err)
}

func TestAnAccountWithAFieldOfALaterVersionIsRefused(t *testing.T) {
	admin, agent := newVault(t, nil)
	mustAdd(t, admin, "work")
	must(t, admin.change(t.Context(), func(c *policyChange) error {
		record := append([]byte(`{"only_on_mondays":true,`), c.p.records[bucketAccounts]["work"][1:]...)
		return c.put(bucketAccounts, "work", record)
	}))
	wantErr(t, second(agent.Account(t.Context(), "work")), ErrFutureFormat, "Account")
}

func TestAPanicInAnEditPassesThroughAndChangesNothing(t *testing.T) {
	admin, _ := newVault(t, nil)
	mustAdd(t, admin, "work")
	panics(t, func() {
		_ = admin.UpdateAccount(t.Context(), "work", func(a *mail.Account) error { a.Mode = mail.ReadOnly; panic("mine") }, nil)
	})
	if a, err := admin.Account(t.Context(), "work"); err != nil || a.Mode != mail.ReadWrite {
		t.Errorf("Account = %v, %v", a.Mode, err)
	}
}
