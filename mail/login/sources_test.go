package login

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/servertest"
)

var must = testmain.Must

func TestMain(m *testing.M) {
	os.Exit(testmain.Run(m.Run))
}

// fakeDirectory is a Directory of one account's password, which a test may change.
type fakeDirectory struct {
	secret mail.Secret
	err    error
	asked  int
}

func (p *fakeDirectory) Accounts(context.Context) ([]mail.Account, error) { return nil, nil }
func (p *fakeDirectory) Account(context.Context, string) (mail.Account, error) {
	return mail.Account{}, nil
}
func (p *fakeDirectory) Secret(_ context.Context, _ string) (mail.Secret, error) {
	p.asked++
	return p.secret, p.err
}

func TestEachAuthHasItsSource(t *testing.T) {
	k := stubKeyring(t, nil)
	must(t, k.Set(t.Context(), "work", mail.NewSecret([]byte("from the keyring"))))
	directory := &fakeDirectory{secret: mail.NewSecret([]byte("sealed"))}
	c := New(Options{Directory: directory, Keyring: k})
	defer c.Close()
	b := newOAuthFixture(t, servertest.OAuthConfig{})
	c.oauth = b.source
	for auth, want := range map[mail.Auth]Credential{
		mail.AuthPassword: {mail.NewSecret([]byte("sealed")), false},
		mail.AuthKeyring:  {mail.NewSecret([]byte("from the keyring")), false},
		mail.AuthOAuth2:   {mail.NewSecret([]byte(b.token())), true},
	} {
		a := *b.a
		a.Auth = auth
		got, err := c.Credential(t.Context(), &a)
		if err != nil || got.Secret.Reveal() != want.Secret.Reveal() || got.Bearer != want.Bearer {
			t.Errorf("%s: %q %v, %v", auth, got.Secret.Reveal(), got.Bearer, err)
		}
	}
	for _, auth := range []mail.Auth{"", "xoauth2"} {
		_, err := c.Credential(t.Context(), &mail.Account{Name: "work", Auth: auth})
		var e *mail.Error
		if !errors.As(err, &e) || e.Kind != mail.KindConfig {
			t.Errorf("%q: %v", auth, err)
		}
	}
}

func TestAPasswordIsFetchedAnewAndNeverTriedTwice(t *testing.T) {
	directory := &fakeDirectory{secret: mail.NewSecret([]byte("sealed"))}
	c := New(Options{Directory: directory, Keyring: stubKeyring(t, nil)})
	defer c.Close()
	for _, auth := range []mail.Auth{mail.AuthPassword, mail.AuthKeyring} {
		a := &mail.Account{Name: "work", Auth: auth}
		got, _ := c.Credential(t.Context(), a)
		if c.Refused(t.Context(), a, got) {
			t.Errorf("%s: a refused password is worth another try", auth)
		}
	}
	a := &mail.Account{Name: "work", Auth: mail.AuthPassword}
	directory.secret = mail.NewSecret([]byte("changed"))
	if got, err := c.Credential(t.Context(), a); err != nil || got.Secret.Reveal() != "changed" || directory.asked != 2 {
		t.Errorf("%v, %v, asked %d times", got, err, directory.asked)
	}
	directory.err = mail.ErrNoAccount
	if _, err := c.Credential(t.Context(), a); !errors.Is(err, mail.ErrNoAccount) {
		t.Error(err)
	}
}

func TestARefusalReachesTheSourceOfItsKindAlone(t *testing.T) {
	c := New(Options{Directory: &fakeDirectory{}, Keyring: stubKeyring(t, nil)})
	defer c.Close()
	b := newOAuthFixture(t, servertest.OAuthConfig{})
	token := Credential{Secret: mail.NewSecret([]byte(b.token())), Bearer: true}
	if c.Refused(t.Context(), b.a, token) {
		t.Error("there is no source of tokens")
	}
	if _, err := c.Credential(t.Context(), b.a); err == nil {
		t.Error("there is no source of tokens")
	}
	c.oauth = b.source
	password := *b.a
	password.Auth = mail.AuthPassword
	if c.Refused(t.Context(), b.a, Credential{Secret: token.Secret}) || c.Refused(t.Context(), &password, token) || b.token() != token.Secret.Reveal() {
		t.Error("a password, or an account with one, reaches the source of tokens")
	}
	if !c.Refused(t.Context(), b.a, token) || b.token() == token.Secret.Reveal() {
		t.Error("a refused token is not told to its source")
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	_, err := b.source.Token(t.Context(), b.a)
	b.refused(err, mail.KindConnection)
}
