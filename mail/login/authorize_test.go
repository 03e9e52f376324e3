package login

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/servertest"
)

func newLoopbackServer(t *testing.T, h http.HandlerFunc) (address string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func TestAuthorizeInABrowserAndByADevice(t *testing.T) {
	t.Parallel()
	s := servertest.OAuth(t, servertest.OAuthConfig{DeviceInterval: time.Second, Clients: []servertest.OAuthClient{{ID: "client", Secret: "canary secret: é%+"}}})
	a := oauthTestAccount(s)
	a.OAuth.ClientID, a.OAuth.Scopes = "client", []string{"mail", "offline"}
	secret := mail.NewSecret([]byte("canary secret: é%+"))
	browser, err := Authorize(t.Context(), a, secret, AuthorizeOptions{Show: func(address, code string) {
		if code != "" || !strings.Contains(address, url.QueryEscape("mail offline")) || strings.Contains(address, "canary") {
			t.Errorf("shown: %q %q", address, code)
		}
		if err := s.Approve(t.Context(), address, "ann"); err != nil {
			t.Error(err)
		}
	}})
	must(t, err)
	device, err := Authorize(t.Context(), a, secret, AuthorizeOptions{Device: true, Show: func(address, code string) {
		if address != s.URL+"/device" {
			t.Errorf("shown: %q %q", address, code)
		}
		if err := s.ApproveDevice(t.Context(), code, "ann"); err != nil {
			t.Error(err)
		}
	}})
	must(t, err)
	for _, refresh := range []mail.Secret{browser, device} {
		source := newOAuthSource(newFakeTokenStore("work", mail.OAuthSecrets{ClientSecret: secret, RefreshToken: refresh}), nil)
		if token, err := source.Token(t.Context(), a); err != nil || token.IsZero() {
			t.Errorf("what was granted: %v", err)
		}
		source.Close()
	}
	// Without its secret the client is nobody.
	_, err = Authorize(t.Context(), a, mail.NewSecret([]byte("canary")), AuthorizeOptions{Show: func(address, _ string) {
		if err := s.Approve(t.Context(), address, "ann"); err != nil {
			t.Error(err)
		}
	}})
	oauthFailed(t, err, mail.KindConfig)
}

func TestAuthorizeFails(t *testing.T) {
	t.Parallel()
	s := servertest.OAuth(t, servertest.OAuthConfig{OfflineScope: "offline", DeviceInterval: time.Second})
	shown := func(string, string) { t.Error("something is shown") }
	for name, c := range map[string]struct {
		change func(*mail.Account)
		o      AuthorizeOptions
		kind   mail.Kind
	}{
		"nobody to show it to": {func(*mail.Account) {}, AuthorizeOptions{}, mail.KindInvalid},
		"a password":           {func(a *mail.Account) { a.Auth = mail.AuthPassword }, AuthorizeOptions{Show: shown}, mail.KindConfig},
		"plain http":           {func(a *mail.Account) { a.OAuth.AuthURL = "http://example.org/" }, AuthorizeOptions{Show: shown}, mail.KindConfig},
		"no device code":       {func(a *mail.Account) { a.OAuth.DeviceURL = "" }, AuthorizeOptions{Show: shown, Device: true}, mail.KindUnsupported},
		"google's device code": {func(a *mail.Account) { a.OAuth = mail.OAuth{Provider: "google", ClientID: "c"} }, AuthorizeOptions{Show: shown, Device: true}, mail.KindUnsupported},
		"unknown authority":    {func(a *mail.Account) { a.CAPEM = nil }, AuthorizeOptions{Show: shown, Device: true}, mail.KindCertificate},
		"denied": {func(*mail.Account) {}, AuthorizeOptions{Show: func(address, _ string) {
			if err := s.Deny(t.Context(), address); err != nil {
				t.Error(err)
			}
		}}, mail.KindAuth},
		"denied by device": {func(*mail.Account) {}, AuthorizeOptions{Device: true, Show: func(_, code string) {
			if err := s.DenyDevice(t.Context(), code); err != nil {
				t.Error(err)
			}
		}}, mail.KindAuth},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := oauthTestAccount(s)
			c.change(a)
			refresh, err := Authorize(t.Context(), a, mail.NewSecret([]byte("")), c.o)
			oauthFailed(t, err, c.kind)
			if !refresh.IsZero() {
				t.Error("there is a token besides the error")
			}
		})
	}
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		_, err := Authorize(ctx, oauthTestAccount(s), mail.Secret{}, AuthorizeOptions{Show: func(string, string) { cancel() }})
		if e := oauthFailed(t, err, mail.KindTimeout); !errors.Is(e, context.Canceled) {
			t.Errorf("got %+v", e)
		}
	})
}

// What the presets send is seen in the address of the consent page.
func TestConsentPagesOfTheProviders(t *testing.T) {
	t.Parallel()
	for provider, want := range map[string]map[string]string{
		"google":    {"scope": "https://mail.google.com/", "access_type": "offline", "prompt": "consent", "login_hint": "ann@example.org"},
		"microsoft": {"scope": "https://outlook.office.com/IMAP.AccessAsUser.All https://outlook.office.com/SMTP.Send https://outlook.office.com/POP.AccessAsUser.All offline_access", "login_hint": "ann@example.org"},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		a := &mail.Account{Name: "work", Username: "ann@example.org", Auth: mail.AuthOAuth2, OAuth: mail.OAuth{Provider: provider, ClientID: "client", Tenant: "consumers"}}
		_, err := Authorize(ctx, a, mail.NewSecret([]byte("canary")), AuthorizeOptions{Show: func(address, _ string) {
			u, err := url.Parse(address)
			if err != nil || u.Scheme != "https" || strings.Contains(address, "canary") {
				t.Errorf("%s: shown %s", provider, address)
			}
			for name, value := range want {
				if got := u.Query().Get(name); got != value {
					t.Errorf("%s: %s is %q, want %q", provider, name, got, value)
				}
			}
			if provider == "microsoft" && (!strings.HasPrefix(u.Path, "/consumers/") || !strings.HasPrefix(u.Query().Get("redirect_uri"), "http://localhost:")) {
				t.Errorf("%s: shown %s", provider, address)
			}
			cancel()
		}})
		oauthFailed(t, err, mail.KindTimeout)
		cancel()
	}
}
