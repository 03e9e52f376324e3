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
		if err != nil {
			t.Fatal(err)
		}
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
	got := a.refresh(token, nil)
	if got.status != http.StatusOK {
		t.Fatalf("got %+v", got)
	}
	var errs []string
	for _, r := range s.Requests()[2:] {
		if r.Endpoint != OAuthTokens || r.Grant != grantRefresh || r.Client != OAuthClientID {
			t.Errorf("recorded is %+v", r)
		}
		errs = append(errs, r.Error)
	}
	if want := []string{"fault", "fault", "fault", "invalid_grant", "fault", ""}; !reflect.DeepEqual(errs, want) {
		t.Errorf("recorded are %q, want %q", errs, want)
	}
}

// The answer is lost, and with it the only refresh token that would still work:
// what a client fears most.
func TestOAuthLostAnswerHasUsedTheToken(t *testing.T) {
	t.Parallel()
	s := OAuth(t, OAuthConfig{})
	a := newApp(t, s)
	token := a.granted("u@example.org").RefreshToken
	s.FailNext(OAuthTokens, OAuthFault{Lose: true})
	if response, err := a.client.PostForm(s.TokenURL, url.Values{
		"grant_type": {grantRefresh}, "refresh_token": {token}, "client_id": {OAuthClientID},
	}); err == nil {
		response.Body.Close()
		t.Fatalf("got %s", response.Status)
	}
	a.wantError(a.refresh(token, nil), 400, "invalid_grant")
	if n := s.Refreshes(); n != 2 {
		t.Errorf("%d refreshes, want 2", n)
	}
}

func TestOAuthHeldRequest(t *testing.T) {
	t.Parallel()
	s := OAuth(t, OAuthConfig{})
	a := newApp(t, s)
	token := a.granted("u@example.org").RefreshToken
	form := url.Values{"grant_type": {grantRefresh}, "refresh_token": {token}, "client_id": {OAuthClientID}}
	post := func(ctx context.Context) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.TokenURL, strings.NewReader(form.Encode()))
		if err != nil {
			return err
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
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
	// Afterwards all goes well.
	s.FailNext(OAuthTokens, OAuthFault{Hold: func(context.Context) {
		if n := s.Refreshes(); n != 2 {
			t.Errorf("%d refreshes have arrived, want 2", n)
		}
	}})
	if got := a.refresh(token, nil); got.status != http.StatusOK {
		t.Errorf("got %+v", got)
	}
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
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
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
	if err := enter(t, d, user, first.AccessToken); err != nil {
		t.Fatal(err)
	}
	if err := enter(t, d, someone(), first.AccessToken); err == nil {
		t.Error("another user got in with it")
	}
	if err := enter(t, d, user, "invented"); err == nil {
		t.Error("an invented token was accepted")
	}
	s.RefuseAccessTokens()
	if err := enter(t, d, user, first.AccessToken); err == nil {
		t.Error("a refused token was accepted")
	}
	second := a.refresh(first.RefreshToken, nil)
	if err := enter(t, d, user, second.AccessToken); err != nil {
		t.Error(err)
	}
	s.Revoke(user)
	if err := enter(t, d, user, second.AccessToken); err == nil {
		t.Error("a token of a revoked grant was accepted")
	}
	asked := 0
	for _, r := range s.Requests() {
		if r.Endpoint == OAuthIntrospect {
			asked++
		}
	}
	if asked != 12 {
		t.Errorf("the mail server asked %d times, want 12", asked)
	}
}

func TestOAuthIntrospectionIsForTheMailServer(t *testing.T) {
	t.Parallel()
	s := OAuth(t, OAuthConfig{AccessLife: -1e9})
	a := newApp(t, s)
	token := a.granted("u@example.org").AccessToken
	at, err := url.Parse(s.Introspection)
	if err != nil {
		t.Fatal(err)
	}
	credentials := at.User
	at.User = nil
	a.wantError(a.post(at.String(), url.Values{"token": {token}}, nil), 401, "invalid_client")
	at.User = credentials
	a.wantError(a.post(at.String(), url.Values{}, nil), 400, "invalid_request")
	// Expired as it is, it still is no error to ask.
	if got := a.post(at.String(), url.Values{"token": {token}}, nil); got.status != http.StatusOK {
		t.Errorf("got %+v", got)
	}
	if err := enter(t, server(t), "u@example.org", token); err == nil {
		t.Error("an expired token was accepted")
	}
}

func TestOAuthIsTrustedByItsAuthorityAlone(t *testing.T) {
	t.Parallel()
	s := OAuth(t, OAuthConfig{})
	if response, err := http.Get(s.AuthorizeURL); err == nil {
		response.Body.Close()
		t.Error("a client that does not know the authority gets an answer")
	}
	if err := s.Approve(t.Context(), "https://localhost:1/authorize", "u"); err == nil {
		t.Error("a person is sent to another server")
	}
	if err := s.Approve(t.Context(), s.AuthorizeURL, "u"); !errors.Is(err, errPage) {
		t.Errorf("got %v", err)
	}
}
