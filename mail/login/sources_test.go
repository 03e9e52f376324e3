package login

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/postern-mail/postern/mail"
)

// passwordShelf is a Directory of one account's password, which a test may change.
type passwordShelf struct {
	secret mail.Secret
	err    error
	asked  int
}

func (p *passwordShelf) Accounts(context.Context) ([]mail.Account, error) { return nil, nil }
func (p *passwordShelf) Account(context.Context, string) (mail.Account, error) {
	return mail.Account{}, nil
}
func (p *passwordShelf) Secret(_ context.Context, _ string) (mail.Secret, error) {
	p.asked++
	return p.secret, p.err
}

// tokens is a tokenSource that has one token after the other.
type tokens struct {
	given, refused int
	closed         bool
}

func (s *tokens) Token(context.Context, *mail.Account) (mail.Secret, error) {
	s.given++
	return mail.NewSecret(fmt.Appendf(nil, "token %d", s.given)), nil
}

func (s *tokens) Close() { s.closed = true }

func (s *tokens) Refused(_ *mail.Account, token mail.Secret) bool {
	s.refused++
	return token.Reveal() == "token 1"
}

func TestEachAuthHasItsSource(t *testing.T) {
	k := stubKeyring(t, nil)
	if err := k.Set(t.Context(), "work", mail.NewSecret([]byte("from the keyring"))); err != nil {
		t.Fatal(err)
	}
	directory := &passwordShelf{secret: mail.NewSecret([]byte("sealed"))}
	c := New(Options{Directory: directory, Keyring: k})
	c.oauth = &tokens{}
	defer c.Close()
	for auth, want := range map[mail.Auth]Credential{
		mail.AuthPassword: {mail.NewSecret([]byte("sealed")), false},
		mail.AuthKeyring:  {mail.NewSecret([]byte("from the keyring")), false},
		mail.AuthOAuth2:   {mail.NewSecret([]byte("token 1")), true},
	} {
		got, err := c.Credential(t.Context(), &mail.Account{Name: "work", Auth: auth})
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
	directory := &passwordShelf{secret: mail.NewSecret([]byte("sealed"))}
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
	c := New(Options{Directory: &passwordShelf{}, Keyring: stubKeyring(t, nil)})
	defer c.Close()
	a := &mail.Account{Name: "work", Auth: mail.AuthOAuth2}
	token := Credential{Secret: mail.NewSecret([]byte("token 1")), Bearer: true}
	if c.Refused(t.Context(), a, token) {
		t.Error("there is no source of tokens")
	}
	if _, err := c.Credential(t.Context(), a); err == nil {
		t.Error("there is no source of tokens")
	}
	source := &tokens{}
	c.oauth = source
	if !c.Refused(t.Context(), a, token) || source.refused != 1 {
		t.Error("a refused token is not told to its source")
	}
	if c.Refused(t.Context(), a, Credential{Secret: token.Secret}) || source.refused != 1 {
		t.Error("a password is told to the source of tokens")
	}
	if c.Refused(t.Context(), &mail.Account{Name: "work", Auth: mail.AuthPassword}, token) || source.refused != 1 {
		t.Error("a token of an account that has none now")
	}
	if err := c.Close(); err != nil || !source.closed {
		t.Error("the source of tokens is not closed")
	}
}
