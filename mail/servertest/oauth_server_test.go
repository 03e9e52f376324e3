package servertest

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/postern-mail/postern/internal/testmain"
)

func TestOAuthAuthorizationRequests(t *testing.T) {
	t.Parallel()
	s := OAuth(t, OAuthConfig{Scopes: []string{"mail", "offline"}, Clients: []OAuthClient{{ID: OAuthClientID}, {ID: "one-path", Path: "/only"}}})
	a := newApp(t, s)
	for _, test := range testmain.Table[struct{ Code, Changes string }](t, "testdata/cases/authorization.txt") {
		t.Run(test.Changes, func(t *testing.T) {
			changes, err := url.ParseQuery(test.Changes)
			must(t, err)
			response, err := a.client.Get(a.consent(oauth2.GenerateVerifier(), changes))
			must(t, err)
			response.Body.Close()
			if test.Code == "" {
				if response.StatusCode != http.StatusBadRequest || response.Header.Get("Location") != "" {
					t.Errorf("got %s to %q", response.Status, response.Header.Get("Location"))
				}
				return
			}
			to, err := response.Location()
			if err != nil || response.StatusCode != http.StatusSeeOther {
				t.Fatalf("got %s, %v", response.Status, err)
			}
			got := to.Query()
			if got.Get("error") != test.Code || got.Get("state") != "a state&=" || got.Get("mine") != "1" || got.Has("code") {
				t.Errorf("the client gets %v", got)
			}
		})
	}
	t.Run("the person does not agree", func(t *testing.T) {
		must(t, s.Deny(t.Context(), a.consent(oauth2.GenerateVerifier(), nil)))
		if got := <-a.brought; got.Get("error") != "access_denied" || got.Get("state") != "a state&=" || got.Has("code") {
			t.Errorf("the client gets %v", got)
		}
	})
}

func TestOAuthTokenRequests(t *testing.T) {
	t.Parallel()
	s := OAuth(t, OAuthConfig{Clients: []OAuthClient{{ID: OAuthClientID}, {ID: "other"}, {ID: "web", Secret: "shh"}}})
	a := newApp(t, s)
	for _, test := range testmain.Table[struct {
		Changes, Login, Query string
		Status                int
		Code                  string
		Challenged            bool
	}](t, "testdata/cases/token.txt") {
		t.Run(test.Changes, func(t *testing.T) {
			changes, err := url.ParseQuery(test.Changes)
			must(t, err)
			request := func(r *http.Request) {
				r.URL.RawQuery = strings.Replace(test.Query, "CLIENT", OAuthClientID, 1)
				if user, password, ok := strings.Cut(test.Login, ":"); ok {
					r.SetBasicAuth(user, password)
				}
			}
			a := *a
			a.T = t
			verifier, user := oauth2.GenerateVerifier(), someone()
			code := a.code(verifier, user)
			form := with(url.Values{
				"grant_type": {grantCode}, "code": {code}, "redirect_uri": {a.redirect}, "client_id": {OAuthClientID}, "code_verifier": {verifier},
			}, changes)
			got := a.post(s.TokenURL, form, request)
			a.wantError(got, test.Status, test.Code)
			if challenged := got.header.Get("WWW-Authenticate") != ""; challenged != test.Challenged {
				t.Errorf("asked to log in by the header: %v", challenged)
			}
			// A refused request has not spent the code.
			if got := a.exchange(code, verifier, nil); got.status != http.StatusOK {
				t.Errorf("the right request afterwards: %d %s", got.status, got.Error)
			}
		})
	}
}

func TestOAuthCodeIsGoodOnceAndNotForLong(t *testing.T) {
	t.Parallel()
	var passed atomic.Int64
	s := OAuth(t, OAuthConfig{Now: func() time.Time { return time.Now().Add(time.Duration(passed.Load())) }})
	a := newApp(t, s)
	verifier := oauth2.GenerateVerifier()
	code := a.code(verifier, "u@example.org")
	first := a.exchange(code, verifier, nil)
	a.wantError(a.exchange(code, verifier, nil), 400, "invalid_grant")
	// Whoever used it first may be a thief.
	a.wantError(a.refresh(first.RefreshToken, nil), 400, "invalid_grant")

	code = a.code(verifier, "u@example.org")
	passed.Store(int64(time.Minute))
	a.wantError(a.exchange(code, verifier, nil), 400, "invalid_grant")
}

func TestOAuthRefreshTokenUsedTwiceEndsTheGrant(t *testing.T) {
	t.Parallel()
	s := OAuth(t, OAuthConfig{Clients: []OAuthClient{{ID: OAuthClientID}, {ID: "other"}}})
	a := newApp(t, s)
	mine, unrelated := a.granted("u@example.org"), a.granted("u@example.org")
	a.wantError(a.refresh("invented", nil), 400, "invalid_grant")
	a.wantError(a.refresh("", nil), 400, "invalid_request")
	a.wantError(a.refresh(mine.RefreshToken, url.Values{"client_id": {"other"}}), 400, "invalid_grant")
	second := a.refresh(mine.RefreshToken, nil)
	third := a.refresh(second.RefreshToken, nil)
	if third.status != http.StatusOK {
		t.Fatalf("got %+v", third)
	}
	a.wantError(a.refresh(mine.RefreshToken, nil), 400, "invalid_grant")
	a.wantError(a.refresh(third.RefreshToken, nil), 400, "invalid_grant")
	if got := a.refresh(unrelated.RefreshToken, nil); got.status != http.StatusOK {
		t.Errorf("another grant fell with it: %s", got.Error)
	}
	if n := s.Refreshes(); n != 8 {
		t.Errorf("%d refreshes counted, want 8", n)
	}
}

// A client somebody else wrote gets through all of it, with a secret and without.
func TestOAuthGrantLetsTheUserReadMail(t *testing.T) {
	t.Parallel()
	web := OAuthClient{ID: "a client", Secret: "an odd:secret+%"}
	s := OAuth(t, OAuthConfig{Clients: []OAuthClient{web, {ID: OAuthClientID}}})
	a := newApp(t, s)
	for _, test := range []struct {
		client OAuthClient
		style  oauth2.AuthStyle
	}{{web, oauth2.AuthStyleInHeader}, {web, oauth2.AuthStyleInParams}, {OAuthClient{ID: OAuthClientID}, oauth2.AuthStyleInParams}} {
		user := someone()
		conf := oauth2.Config{
			ClientID: test.client.ID, ClientSecret: test.client.Secret, RedirectURL: a.redirect, Scopes: []string{"mail"},
			Endpoint: oauth2.Endpoint{AuthURL: s.AuthorizeURL, TokenURL: s.TokenURL, AuthStyle: test.style},
		}
		ctx := context.WithValue(t.Context(), oauth2.HTTPClient, s.Client())
		verifier := oauth2.GenerateVerifier()
		must(t, s.Approve(ctx, conf.AuthCodeURL("st", oauth2.S256ChallengeOption(verifier)), user))
		token, err := conf.Exchange(ctx, (<-a.brought).Get("code"), oauth2.VerifierOption(verifier))
		must(t, err)
		first := *token
		token.Expiry = time.Now().Add(-time.Hour)
		token, err = conf.TokenSource(ctx, token).Token()
		if err != nil || token.AccessToken == first.AccessToken || token.RefreshToken == first.RefreshToken {
			t.Fatalf("the refresh gave nothing new: %v", err)
		}
		if err := enter(t, server(t), user, token.AccessToken); err != nil {
			t.Error(err)
		}
		if err := enter(t, server(t), someone(), token.AccessToken); err == nil {
			t.Error("another user got in with it")
		}
	}
}
