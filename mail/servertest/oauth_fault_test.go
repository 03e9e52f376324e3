package servertest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
)

func TestOAuthFaults(t *testing.T) {
	t.Parallel()
	s := OAuth(t, OAuthConfig{})
	a := newApp(t, s)
	token := a.granted("u@example.org").RefreshToken
	form := url.Values{"grant_type": {grantRefresh}, "refresh_token": {token}, "client_id": {OAuthClientID}}
	s.FailNext(OAuthTokens,
		OAuthFault{Status: http.StatusInternalServerError, Body: []byte("<html>")},
		OAuthFault{Body: []byte("{garbage")},
		OAuthFault{Redirect: "http://127.0.0.1:1/"})
	s.FailNext(OAuthTokens, OAuthFault{Error: "invalid_grant"}, OAuthFault{Endless: true})
	for i, want := range []struct {
		status         int
		body, location string
	}{
		{500, "<html>", ""}, {200, "{garbage", ""}, {307, "", "http://127.0.0.1:1/"}, {400, `{"error":"invalid_grant"`, ""},
		{200, `{"access_token":"` + strings.Repeat("a", 1<<20), ""},
	} {
		response, err := a.client.PostForm(s.TokenURL, form)
		must(t, err)
		body := make([]byte, len(want.body))
		if _, err := io.ReadFull(response.Body, body); err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != want.status || string(body) != want.body || response.Header.Get("Location") != want.location {
			t.Errorf("fault %d: got %s, %.40q", i, response.Status, body)
		}
	}
	// None of them has used up the token.
	next := a.refresh(token, nil)
	if next.status != http.StatusOK {
		t.Fatalf("got %+v", next)
	}
	// But the one of which the answer is lost has: what a client fears most.
	s.FailNext(OAuthTokens, OAuthFault{Lose: true})
	form.Set("refresh_token", next.RefreshToken)
	if response, err := a.client.PostForm(s.TokenURL, form); err == nil {
		response.Body.Close()
		t.Errorf("got %s", response.Status)
	}
	a.wantError(a.refresh(next.RefreshToken, nil), 400, "invalid_grant")
	var errs []string
	for _, r := range s.Requests()[2:] {
		if r.Endpoint != OAuthTokens || r.Grant != grantRefresh || r.Client != OAuthClientID {
			t.Errorf("recorded is %+v", r)
		}
		errs = append(errs, r.Error)
	}
	if want := []string{"fault", "fault", "fault", "invalid_grant", "fault", "", "", "invalid_grant"}; !reflect.DeepEqual(errs, want) {
		t.Errorf("recorded are %q, want %q", errs, want)
	}
}

func TestOAuthHeldRequest(t *testing.T) {
	t.Parallel()
	s := OAuth(t, OAuthConfig{})
	a := newApp(t, s)
	post := func(ctx context.Context) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.TokenURL, nil)
		if err != nil {
			return err
		}
		response, err := a.client.Do(r)
		if err == nil {
			response.Body.Close()
		}
		return err
	}
	// The client hangs up while it waits.
	ctx, cancel := context.WithCancel(t.Context())
	noticed := make(chan struct{})
	s.FailNext(OAuthTokens, OAuthFault{Error: "temporarily_unavailable", Hold: func(held context.Context) {
		cancel()
		<-held.Done()
		close(noticed)
	}})
	if err := post(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	<-noticed
	// A request that is held does not keep the server from stopping.
	held := make(chan struct{})
	s.FailNext(OAuthTokens, OAuthFault{Error: "server_error", Hold: func(ctx context.Context) {
		close(held)
		<-ctx.Done()
	}})
	done := make(chan error, 1)
	go func() { done <- post(t.Context()) }()
	<-held
	for range 2 {
		must(t, s.Stop())
	}
	if err := <-done; err == nil {
		t.Error("a request outlived the server")
	}
}

// A token that has not expired is refused by the mail server from one moment to
// the next.
func TestOAuthRevokedTokenIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	s := OAuth(t, OAuthConfig{Plaintext: true})
	d := Dovecot(t, Config{Introspection: s.Introspection})
	a := newApp(t, s)
	user := someone()
	first := a.granted(user)
	check := func(what string, user, token string, ok bool) {
		t.Helper()
		if err := enter(t, d, user, token); (err == nil) != ok {
			t.Errorf("%s: %v, want success %v", what, err, ok)
		}
	}
	check("a new token", user, first.AccessToken, true)
	check("another user", someone(), first.AccessToken, false)
	check("an invented token", user, "invented", false)
	s.RefuseAccessTokens()
	check("a refused token", user, first.AccessToken, false)
	second := a.refresh(first.RefreshToken, nil)
	check("the next token", user, second.AccessToken, true)
	s.Revoke(strings.ToUpper(user))
	check("a token of a revoked grant", user, second.AccessToken, false)
	a.wantError(a.refresh(second.RefreshToken, nil), 400, "invalid_grant")
}
