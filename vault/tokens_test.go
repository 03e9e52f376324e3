package vault

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault/kv"
	"github.com/postern-mail/postern/vault/vaulttest"
)

func text(s string) mail.Secret { return mail.NewSecret([]byte(s)) }

func oauthAccount(name string) mail.Account {
	a := account(name)
	a.Auth, a.OAuth = mail.AuthOAuth2, mail.OAuth{
		Provider: "custom", ClientID: "client", AuthURL: "https://example.org/a", TokenURL: "https://example.org/t",
	}
	return a
}

func addOAuth(t testing.TB, v *Vault, name, clientSecret, refresh string) {
	t.Helper()
	must(t, v.AddAccount(t.Context(), oauthAccount(name), text(clientSecret)))
	if refresh != "" {
		must(t, v.SetConsent(t.Context(), name, text(refresh)))
	}
}

// lentIs checks the secrets that an exchange is lent, and rotates to next unless that is
// empty.
func lentIs(t testing.TB, v *Vault, name, clientSecret, refresh, next string) {
	t.Helper()
	lent := false
	must(t, v.RefreshToken(t.Context(), name, func(_ context.Context, s mail.OAuthSecrets) (mail.Secret, error) {
		lent = true
		if s.ClientSecret.Reveal() != clientSecret || s.RefreshToken.Reveal() != refresh {
			t.Errorf("lent %q and %q, want %q and %q", s.ClientSecret.Reveal(), s.RefreshToken.Reveal(), clientSecret, refresh)
		}
		return text(next), nil
	}))
	if !lent {
		t.Error("nothing was lent")
	}
}

func unlent(t testing.TB) func(context.Context, mail.OAuthSecrets) (mail.Secret, error) {
	return func(context.Context, mail.OAuthSecrets) (mail.Secret, error) {
		t.Error("something was lent")
		return mail.Secret{}, nil
	}
}

func TestConsentAndRotation(t *testing.T) {
	t.Parallel()
	path, k := newPlace(t)
	admin := mustOpen(t, path, k, nil)
	agent := mustOpen(t, path, Keys{Agent: k.Agent}, nil)
	addOAuth(t, admin, "work", "client secret \xff", "")
	wantErr(t, agent.RefreshToken(t.Context(), "work", unlent(t)), mail.ErrNoConsent, "before the consent")
	if s, err := admin.ClientSecret(t.Context(), "work"); err != nil || s.Reveal() != "client secret \xff" {
		t.Errorf("ClientSecret: %v", err)
	}
	must(t, admin.SetConsent(t.Context(), "work", text("r0")))
	lentIs(t, agent, "work", "client secret \xff", "r0", "r1")
	lentIs(t, admin, "work", "client secret \xff", "r1", "")
	lentIs(t, agent, "work", "client secret \xff", "r1", "r2\xfe")
	// Another process.
	lentIs(t, mustOpen(t, path, Keys{Agent: k.Agent}, nil), "work", "client secret \xff", "r2\xfe", "")
	must(t, admin.SetConsent(t.Context(), "work", text("s0")))
	lentIs(t, agent, "work", "client secret \xff", "s0", "s1")
	// The first consent again, which has not been rotated.
	must(t, admin.SetConsent(t.Context(), "work", text("r0")))
	lentIs(t, agent, "work", "client secret \xff", "r0", "")
	must(t, admin.Check(t.Context()))
}

// A failed exchange keeps the old token; one that succeeded keeps the new one, also where the
// caller has given up or the client secret was edited meanwhile.
func TestAnExchangeKeepsTheTokenThatIsGood(t *testing.T) {
	t.Parallel()
	admin, agent := newVault(t, nil)
	addOAuth(t, admin, "work", "", "r0")
	failure := errors.New("no")
	wantErr(t, agent.RefreshToken(t.Context(), "work", func(context.Context, mail.OAuthSecrets) (mail.Secret, error) {
		return text("never"), failure
	}), failure, "a failed exchange")
	panics(t, func() {
		_ = agent.RefreshToken(t.Context(), "work", func(context.Context, mail.OAuthSecrets) (mail.Secret, error) { panic("mine") })
	})
	lentIs(t, agent, "work", "", "r0", "") // and the lock is free
	ctx, cancel := context.WithCancel(t.Context())
	must(t, agent.RefreshToken(ctx, "work", func(context.Context, mail.OAuthSecrets) (mail.Secret, error) {
		cancel()
		return text("r1"), nil
	}))
	lentIs(t, agent, "work", "", "r1", "")
	next := text("new")
	must(t, agent.RefreshToken(t.Context(), "work", func(context.Context, mail.OAuthSecrets) (mail.Secret, error) {
		return text("r2"), admin.UpdateAccount(t.Context(), "work", func(*mail.Account) error { return nil }, &next)
	}))
	lentIs(t, agent, "work", "new", "r2", "")
}

func TestAccountsWithoutTokens(t *testing.T) {
	t.Parallel()
	path, k := newPlace(t)
	admin, agent := mustOpen(t, path, k, nil), mustOpen(t, path, Keys{Agent: k.Agent}, nil)
	mustAdd(t, admin, "pass")
	addOAuth(t, admin, "work", "c", "r")
	ring := account("ring")
	ring.Auth = mail.AuthKeyring
	must(t, admin.AddAccount(t.Context(), ring, mail.Secret{}))
	for name, want := range map[string]error{"pass": ErrInvalid, "ring": ErrInvalid, "nobody": mail.ErrNoAccount, "../work": mail.ErrNoAccount, "": mail.ErrNoAccount} {
		wantErr(t, agent.RefreshToken(t.Context(), name, unlent(t)), want, "RefreshToken of %q", name)
		wantErr(t, admin.SetConsent(t.Context(), name, text("r")), want, "SetConsent of %q", name)
		if want == ErrInvalid {
			want = ErrNoSecret
		}
		if s, err := admin.ClientSecret(t.Context(), name); !errors.Is(err, want) || !s.IsZero() {
			t.Errorf("ClientSecret of %q: %v, want %v", name, err, want)
		}
	}
	wantErr(t, admin.SetConsent(t.Context(), "work", mail.Secret{}), ErrInvalid, "a consent without a token")
	wantErr(t, agent.SetConsent(t.Context(), "work", text("r")), ErrAdminRequired, "an agent's consent")
	wantErr(t, second(agent.ClientSecret(t.Context(), "work")), ErrAdminRequired, "an agent asks for the client secret")
	if bytes.Contains(vaulttest.Content(t, path), []byte(".token")) {
		t.Error("a lock was made in the database")
	}
	locks, err := filepath.Glob(path + ".*.token*")
	if err != nil || len(locks) != 0 {
		t.Errorf("locks were made: %v, %v", locks, err)
	}
}

func TestTokensNeverBecomeAPassword(t *testing.T) {
	t.Parallel()
	admin, agent := newVault(t, nil)
	addOAuth(t, admin, "work", "canary-client", "canary-refresh")
	lentIs(t, agent, "work", "canary-client", "canary-refresh", "canary-rotated")
	for _, v := range []*Vault{admin, agent} {
		s, err := v.Secret(t.Context(), "work")
		if !errors.Is(err, ErrNoSecret) || !s.IsZero() || strings.Contains(err.Error(), "canary") {
			t.Errorf("Secret: %v", err)
		}
	}
	// Nor does a password become tokens.
	mustAdd(t, admin, "pass")
	must(t, admin.UpdateAccount(t.Context(), "pass", func(a *mail.Account) error {
		a.Auth, a.OAuth = mail.AuthOAuth2, oauthAccount("x").OAuth
		return nil
	}, nil))
	if s, err := admin.ClientSecret(t.Context(), "pass"); err != nil || !s.IsZero() {
		t.Errorf("the password became a client secret: %v", err)
	}
	wantErr(t, agent.RefreshToken(t.Context(), "pass", unlent(t)), mail.ErrNoConsent, "the password became a token")
	back := func(a *mail.Account) error { a.Auth = mail.AuthPassword; return nil }
	wantErr(t, admin.UpdateAccount(t.Context(), "work", back, nil), ErrInvalid, "tokens became a password")
	password := text("a password")
	must(t, admin.UpdateAccount(t.Context(), "work", back, &password))
	secretIs(t, agent, "a password")
	noRecord(t, admin, "work")
}

func noRecord(t testing.TB, v *Vault, name string) {
	t.Helper()
	must(t, v.View(t.Context(), func(tx kv.Tx) error {
		if r, err := tx.Get(tokenBucket, []byte(name)); r != nil || err != nil {
			t.Errorf("a token of %s is still there: %v", name, err)
		}
		return nil
	}))
}

func TestEditsThatEndAConsent(t *testing.T) {
	t.Parallel()
	secret, none := text("new secret"), mail.Secret{}
	for name, c := range map[string]struct {
		edit   func(*mail.Account)
		secret *mail.Secret
		kept   bool   // the consent
		client string // secret afterwards
	}{
		"nothing":       {func(*mail.Account) {}, nil, true, "old secret"},
		"the mode":      {func(a *mail.Account) { a.Mode = mail.ReadOnly }, nil, true, "old secret"},
		"the secret":    {func(*mail.Account) {}, &secret, true, "new secret"},
		"no secret":     {func(*mail.Account) {}, &none, true, ""},
		"empty scopes":  {func(a *mail.Account) { a.OAuth.Scopes = []string{} }, nil, true, "old secret"},
		"scopes":        {func(a *mail.Account) { a.OAuth.Scopes = []string{"mail"} }, nil, false, "old secret"},
		"token address": {func(a *mail.Account) { a.OAuth.TokenURL = "https://example.net/t" }, nil, false, "old secret"},
		"client":        {func(a *mail.Account) { a.OAuth.ClientID = "other" }, nil, false, ""},
		"provider":      {func(a *mail.Account) { a.OAuth = mail.OAuth{Provider: "google", ClientID: "client"} }, nil, false, ""},
		"both":          {func(a *mail.Account) { a.OAuth = mail.OAuth{Provider: "google", ClientID: "client"} }, &secret, false, "new secret"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			admin, agent := newVault(t, nil)
			a := oauthAccount("work")
			a.OAuth.DeviceURL = "https://example.org/d"
			must(t, admin.AddAccount(t.Context(), a, text("old secret")))
			must(t, admin.SetConsent(t.Context(), "work", text("r0")))
			lentIs(t, agent, "work", "old secret", "r0", "r1")
			must(t, admin.UpdateAccount(t.Context(), "work", func(a *mail.Account) error { c.edit(a); return nil }, c.secret))
			if s, err := admin.ClientSecret(t.Context(), "work"); err != nil || s.Reveal() != c.client {
				t.Errorf("the client secret is not %q: %v", c.client, err)
			}
			if c.kept {
				lentIs(t, agent, "work", c.client, "r1", "") // the rotated token, not the used one
				return
			}
			wantErr(t, agent.RefreshToken(t.Context(), "work", unlent(t)), mail.ErrNoConsent, "RefreshToken")
			noRecord(t, admin, "work")
		})
	}
}

func TestAnExchangeDuringAnAdminsChangeKeepsNothing(t *testing.T) {
	t.Parallel()
	update := func(t *testing.T, v *Vault, edit func(*mail.Account), secret *mail.Secret) error {
		return v.UpdateAccount(t.Context(), "work", func(a *mail.Account) error { edit(a); return nil }, secret)
	}
	password := text("p")
	for name, c := range map[string]struct {
		overtake func(*testing.T, *Vault) error
		want     error
		left     string // token
	}{
		"new consent": {func(t *testing.T, v *Vault) error { return v.SetConsent(t.Context(), "work", text("s0")) }, mail.ErrConsentChanged, "s0"},
		"same token":  {func(t *testing.T, v *Vault) error { return v.SetConsent(t.Context(), "work", text("r0")) }, mail.ErrConsentChanged, "r0"},
		"other client": {func(t *testing.T, v *Vault) error {
			return update(t, v, func(a *mail.Account) { a.OAuth.ClientID = "x" }, nil)
		}, mail.ErrConsentChanged, ""},
		"password": {func(t *testing.T, v *Vault) error {
			return update(t, v, func(a *mail.Account) { a.Auth = mail.AuthPassword }, &password)
		}, mail.ErrConsentChanged, ""},
		"removed": {func(t *testing.T, v *Vault) error { return v.RemoveAccount(t.Context(), "work") }, mail.ErrNoAccount, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			admin, agent := newVault(t, nil)
			addOAuth(t, admin, "work", "", "r0")
			wantErr(t, agent.RefreshToken(t.Context(), "work", func(context.Context, mail.OAuthSecrets) (mail.Secret, error) {
				return text("r1"), c.overtake(t, admin) // the admin does not wait for the provider
			}), c.want, "RefreshToken")
			if c.left == "" {
				noRecord(t, admin, "work")
			} else {
				lentIs(t, agent, "work", "", c.left, "")
			}
		})
	}
}

func TestForgedTokens(t *testing.T) {
	t.Parallel()
	admin, agent := newVault(t, nil)
	addOAuth(t, admin, "work", "", "r0")
	addOAuth(t, admin, "other", "", "o0")
	lentIs(t, agent, "other", "", "o0", "o1")
	t.Run("of another account", func(t *testing.T) {
		must(t, agent.Update(t.Context(), func(tx kv.Tx) error { return rawCopy(tx, tokenBucket, []byte("other"), []byte("work")) }))
		lentIs(t, agent, "work", "", "r0", "r1")
	})
	t.Run("nonsense", func(t *testing.T) {
		must(t, agent.Update(t.Context(), func(tx kv.Tx) error { return tx.Put(tokenBucket, []byte("work"), []byte("canary")) }))
		if err := agent.RefreshToken(t.Context(), "work", unlent(t)); !errors.Is(err, ErrDamaged) || strings.Contains(err.Error(), "canary") {
			t.Errorf("RefreshToken: %v, want ErrDamaged", err)
		}
		// A new consent repairs it.
		must(t, admin.SetConsent(t.Context(), "work", text("s0")))
		lentIs(t, agent, "work", "", "s0", "")
	})
	t.Run("the signed one", func(t *testing.T) {
		sealed(bucketSecrets, "work", `{"refresh_token":"AAAA"}`)(t, nil, agent)
		wantErr(t, agent.RefreshToken(t.Context(), "work", unlent(t)), ErrUntrustedPolicy, "RefreshToken")
	})
}

func TestTheTokenLockIsPrivateAndRegular(t *testing.T) {
	t.Parallel()
	vaulttest.OnlyFile(t, "its locks are files beside it")
	admin, agent := newVault(t, nil)
	addOAuth(t, admin, "work", "", "r0")
	path := admin.Path() + ".work.token.lock"
	lentIs(t, agent, "work", "", "r0", "")
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 || info.Size() != 0 {
		t.Errorf("the lock is %v, %v", info, err)
	}
	must(t, os.Remove(path))
	if runtime.GOOS == "windows" {
		return // links need a privilege there
	}
	must(t, os.Symlink(admin.Path(), path))
	wantErr(t, agent.RefreshToken(t.Context(), "work", unlent(t)), ErrDamaged, "a link for a lock")
}

func TestAWaitForATokenEndsWithItsContext(t *testing.T) {
	t.Parallel()
	admin, agent := newVault(t, nil)
	addOAuth(t, admin, "work", "", "r0")
	addOAuth(t, admin, "other", "", "o0")
	must(t, agent.RefreshToken(t.Context(), "work", func(context.Context, mail.OAuthSecrets) (mail.Secret, error) {
		for _, v := range []*Vault{agent, admin} {
			ctx, cancel := context.WithTimeout(t.Context(), 60*time.Millisecond)
			wantErr(t, v.RefreshToken(ctx, "work", unlent(t)), context.DeadlineExceeded, "a second loan")
			cancel()
		}
		// Neither another account nor the vault waits.
		lentIs(t, agent, "other", "", "o0", "o1")
		must(t, second(agent.Accounts(t.Context())))
		return mail.Secret{}, nil
	}))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantErr(t, agent.RefreshToken(ctx, "work", unlent(t)), context.Canceled, "after the end")
}

// A process that stood still for longer than its lock lasts in a database neither lends the
// token nor puts its own over that of the process which had the lock after it.
func TestAHolderThatStoodStillChangesNoToken(t *testing.T) {
	t.Parallel()
	admin, agent, place, _ := inDatabase(t, nil)
	_, schema, _ := strings.Cut(place, "search_path=")
	database := vaulttest.Server(t)
	addOAuth(t, admin, "work", "", "r0")
	must(t, agent.RefreshToken(t.Context(), "work", func(context.Context, mail.OAuthSecrets) (mail.Secret, error) {
		database.Exec(t, "UPDATE "+schema+".postern_leases SET until = now()")
		lentIs(t, admin, "work", "", "r0", "r2")
		return text("r1"), nil
	}))
	lentIs(t, admin, "work", "", "r2", "r3")

	// It loses the lock while it waits for another writer.
	got := make(chan error, 1)
	rawUpdate(t, admin, func(kv.Tx) error {
		go func() { got <- agent.RefreshToken(t.Context(), "work", unlent(t)) }()
		for len(database.Exec(t, "UPDATE "+schema+".postern_leases SET holder = 1 WHERE until > now() RETURNING 1")) == 0 {
		}
		return nil
	})
	wantErr(t, <-got, ErrBusy, "the lock was lost")
	database.Exec(t, "UPDATE "+schema+".postern_leases SET until = now()")
	lentIs(t, admin, "work", "", "r3", "")
}
