package vault

import (
	"bufio"
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
	"github.com/postern-mail/postern/vault/vaulttest"
)

// logIn is the work of one process of these tests: it gets an access token again and again,
// each time as a program that has just been started, and prints a line each time.
func logIn(ctx context.Context, v *Vault, name string) error {
	for range turns {
		if err := logInOnce(ctx, v, name); err != nil {
			return err
		}
		fmt.Println("logged in")
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

// consented makes a vault with an account at a provider that revokes a grant when it gets a
// refresh token twice. authorize gives it a consent, also the first one.
func consented(t *testing.T) (path string, k Keys, admin *Vault, s *servertest.OAuthServer, authorize func()) {
	path, k = newPlace(t)
	admin = mustOpen(t, path, k, nil)
	s = servertest.OAuth(t, servertest.OAuthConfig{Clients: []servertest.OAuthClient{{ID: "client", Secret: "client secret"}}})
	a := account("work")
	a.Auth, a.CAPEM, a.OAuth = mail.AuthOAuth2, s.CAPEM, mail.OAuth{
		Provider: "custom", ClientID: "client", AuthURL: s.AuthorizeURL, TokenURL: s.TokenURL, DeviceURL: s.DeviceURL,
	}
	must(t, admin.AddAccount(t.Context(), a, text("client secret")))
	wantErr(t, logInOnce(t.Context(), admin, "work"), mail.ErrNoConsent, "before the consent")
	authorize = func() {
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
	return path, k, admin, s, authorize
}

// TestProcessesLogInWithOneConsent covers consent, vault, and the access tokens of many
// processes and goroutines.
func TestProcessesLogInWithOneConsent(t *testing.T) {
	t.Parallel()
	path, k, admin, s, authorize := consented(t)
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
			for range turns {
				if err := logInOnce(t.Context(), admin, "work"); err != nil {
					t.Error(err)
				}
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

// TestAProcessKilledAnywhereLeavesTheLockFree kills processes while they refresh. A token is
// lost only if the process died between the provider's answer and the write; the provider then
// rejects the next process. In every other case the consent stays good.
func TestAProcessKilledAnywhereLeavesTheLockFree(t *testing.T) {
	t.Parallel()
	path, k, admin, s, authorize := consented(t)
	kept := 0
	rounds := size(testmain.Rounds(8, 20), 4)
	for round := range rounds {
		cmd := process("login", path, "work", k.Agent)
		out, err := cmd.StdoutPipe()
		must(t, errors.Join(err, cmd.Start()))
		lines := bufio.NewScanner(out)
		for range 1 + round%3 {
			lines.Scan()
		}
		must(t, cmd.Process.Kill())
		_ = cmd.Wait() // it was killed
		vaulttest.EndLeases(t, path)
		must(t, admin.Check(t.Context()))
		if err := logInOnce(t.Context(), mustOpen(t, path, Keys{Agent: k.Agent}, nil), "work"); err != nil {
			wantErr(t, err, login.ErrConsentGone, "round %d", round)
			authorize()
		} else {
			kept++
		}
	}
	t.Logf("of %d kills %d lost nothing", rounds, kept)
	if kept == 0 && rounds > 4 { // four can all meet the moment that loses it
		t.Error("every kill lost the token")
	}
	// The one moment that loses a token: the provider has rotated it, and nobody writes it.
	cmd := process("login", path, "work", k.Agent)
	started, killed := make(chan struct{}), make(chan struct{})
	s.FailNext(servertest.OAuthTokens, servertest.OAuthFault{Lose: true, Hold: func(context.Context) {
		<-started
		_ = cmd.Process.Kill()
		close(killed)
	}})
	must(t, cmd.Start())
	close(started)
	<-killed
	_ = cmd.Wait()
	vaulttest.EndLeases(t, path)
	err := logInOnce(t.Context(), admin, "work")
	if err == nil { // it came before the dead one's request was carried out
		err = logInOnce(t.Context(), admin, "work")
	}
	wantErr(t, err, login.ErrConsentGone, "with a token that was lost")
	authorize()
	must(t, logInOnce(t.Context(), admin, "work"))
}
