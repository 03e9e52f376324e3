package vault

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/login"
	"github.com/postern-mail/postern/mail/servertest"
)

// logIn is the work of one process of the test below: it gets an access token again and
// again, each time as a program that has just been started.
func logIn(ctx context.Context, v *Vault, name string) error {
	for range turns {
		if err := logInOnce(ctx, v, name); err != nil {
			return err
		}
	}
	return nil
}

func logInOnce(ctx context.Context, v *Vault, name string) (err error) {
	a, err := v.Account(ctx, name)
	if err != nil {
		return err
	}
	c := login.New(login.Options{Directory: v, Tokens: v})
	defer func() { err = errors.Join(err, c.Close()) }()
	got, err := c.Credential(ctx, &a)
	if err == nil && (got.Secret.IsZero() || !got.Bearer) {
		err = fmt.Errorf("the credential is no token")
	}
	return err
}

// TestProcessesLogInWithOneConsent covers consent, vault, and the access tokens of many
// processes and goroutines, against a provider that revokes a grant when it gets a
// refresh token twice.
func TestProcessesLogInWithOneConsent(t *testing.T) {
	t.Parallel()
	path, k := newPlace(t)
	admin := mustOpen(t, path, k, nil)
	s := servertest.OAuth(t, servertest.OAuthConfig{Clients: []servertest.OAuthClient{{ID: "client", Secret: "client secret"}}})
	a := account("work")
	a.Auth, a.CAPEM, a.OAuth = mail.AuthOAuth2, s.CAPEM, mail.OAuth{
		Provider: "custom", ClientID: "client", AuthURL: s.AuthorizeURL, TokenURL: s.TokenURL, DeviceURL: s.DeviceURL,
	}
	must(t, admin.AddAccount(t.Context(), a, text("client secret")))
	wantErr(t, logInOnce(t.Context(), admin, "work"), mail.ErrNoConsent, "before the consent")
	authorize := func() {
		t.Helper()
		client, err := admin.ClientSecret(t.Context(), "work")
		must(t, err)
		refresh, err := login.Authorize(t.Context(), &a, client, login.AuthorizeOptions{Show: func(url, _ string) {
			if err := s.Approve(t.Context(), url, "ann"); err != nil {
				t.Error(err)
			}
		}})
		must(t, err)
		must(t, admin.SetConsent(t.Context(), "work", refresh))
	}
	authorize()
	processes := size(testmain.Rounds(3, 5), 2)
	var all sync.WaitGroup
	for i := range processes {
		cmd := process("login", path, "work", k.Agent)
		all.Go(func() {
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("process %d: %v: %s", i, err, out)
			}
		})
	}
	for range 4 {
		all.Go(func() {
			if err := logIn(t.Context(), admin, "work"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got, want := s.Refreshes(), (processes+4)*turns; got != want {
		t.Errorf("%d refreshes, want %d", got, want)
	}
	if i := slices.IndexFunc(s.Requests(), func(r servertest.OAuthRequest) bool { return r.Error != "" }); i >= 0 {
		t.Errorf("request %d was answered %s", i, s.Requests()[i].Error)
	}
	s.Revoke("ann")
	wantErr(t, logInOnce(t.Context(), admin, "work"), login.ErrConsentGone, "after the owner took it back")
	authorize()
	must(t, logInOnce(t.Context(), admin, "work"))
}
