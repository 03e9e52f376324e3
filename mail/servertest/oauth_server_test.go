package servertest

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/oauth2"
)

func TestOAuthAuthorizationRequests(t *testing.T) {
	t.Parallel()
	s := OAuth(t, OAuthConfig{Scopes: []string{"mail", "offline"}, Clients: []OAuthClient{{ID: OAuthClientID}, {ID: "one-path", Path: "/only"}}})
	a := newApp(t, s)
	none := []string(nil)
	for name, test := range map[string]struct {
		changes url.Values
		code    string // error the client gets; empty where only the person does
	}{
		"unknown client":          {url.Values{"client_id": {"nobody"}}, ""},
		"no client":               {url.Values{"client_id": none}, ""},
		"redirection elsewhere":   {url.Values{"redirect_uri": {"http://192.0.2.1:1/"}}, ""},
		"redirection in disguise": {url.Values{"redirect_uri": {"http://127.0.0.1:1@192.0.2.1:1/"}}, ""},
		"another path":            {url.Values{"client_id": {"one-path"}}, ""},
		"no response type":        {url.Values{"response_type": none}, "invalid_request"},
		"implicit grant":          {url.Values{"response_type": {"token"}}, "unsupported_response_type"},
		"no challenge":            {url.Values{"code_challenge": none}, "invalid_request"},
		"padded challenge":        {url.Values{"code_challenge": {base64.URLEncoding.EncodeToString(make([]byte, 32))}}, "invalid_request"},
		"plain challenge":         {url.Values{"code_challenge_method": {"plain"}}, "invalid_request"},
		"unknown scope":           {url.Values{"scope": {"mail more"}}, "invalid_scope"},
	} {
		t.Run(name, func(t *testing.T) {
			response, err := a.client.Get(a.consent(oauth2.GenerateVerifier(), test.changes))
			must(t, err)
			response.Body.Close()
			if test.code == "" {
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
			if got.Get("error") != test.code || got.Get("state") != "a state&=" || got.Get("mine") != "1" || got.Has("code") {
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
	for name, test := range map[string]struct {
		changes url.Values
		request func(*http.Request)
		status  int
		code    string
	}{
		"no grant":            {url.Values{"grant_type": nil}, nil, 400, "invalid_request"},
		"password grant":      {url.Values{"grant_type": {"password"}}, nil, 400, "unsupported_grant_type"},
		"no code":             {url.Values{"code": nil}, nil, 400, "invalid_request"},
		"invented code":       {url.Values{"code": {"x"}}, nil, 400, "invalid_grant"},
		"no verifier":         {url.Values{"code_verifier": nil}, nil, 400, "invalid_request"},
		"another verifier":    {url.Values{"code_verifier": {oauth2.GenerateVerifier()}}, nil, 400, "invalid_grant"},
		"another redirection": {url.Values{"redirect_uri": {a.redirect + "2"}}, nil, 400, "invalid_grant"},
		"no client":           {url.Values{"client_id": nil}, nil, 401, "invalid_client"},
		"unknown client":      {url.Values{"client_id": {"nobody"}}, nil, 401, "invalid_client"},
		"another client":      {url.Values{"client_id": {"other"}}, nil, 400, "invalid_grant"},
		"without its secret":  {url.Values{"client_id": {"web"}}, nil, 401, "invalid_client"},
		"wrong secret":        {url.Values{"client_id": {"web"}, "client_secret": {"x"}}, nil, 401, "invalid_client"},
		"secret of a public":  {url.Values{"client_secret": {"x"}}, nil, 401, "invalid_client"},
		"wrong secret above":  {url.Values{"client_id": nil}, func(r *http.Request) { r.SetBasicAuth("web", "x") }, 401, "invalid_client"},
		"both ways":           {url.Values{"client_id": nil, "client_secret": {"shh"}}, func(r *http.Request) { r.SetBasicAuth("web", "shh") }, 400, "invalid_request"},
		"in the address": {url.Values{"client_id": nil}, func(r *http.Request) { r.URL.RawQuery = "client_id=" + OAuthClientID },
			401, "invalid_client"},
	} {
		t.Run(name, func(t *testing.T) {
			a := *a
			a.T = t
			verifier, user := oauth2.GenerateVerifier(), someone()
			code := a.code(verifier, user)
			form := with(url.Values{
				"grant_type": {grantCode}, "code": {code}, "redirect_uri": {a.redirect}, "client_id": {OAuthClientID}, "code_verifier": {verifier},
			}, test.changes)
			got := a.post(s.TokenURL, form, test.request)
			a.wantError(got, test.status, test.code)
			challenged := got.header.Get("WWW-Authenticate") != ""
			if want := strings.HasSuffix(name, "above"); challenged != want {
				t.Errorf("asked to log in by the header: %v, want %v", challenged, want)
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
