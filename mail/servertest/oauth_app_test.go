package servertest

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/emersion/go-imap/v2/imapclient"
	"github.com/emersion/go-sasl"
	"golang.org/x/oauth2"
)

// app is a client application with a loopback listener that keeps what the
// browser brings.
type app struct {
	*testing.T
	server   *OAuthServer
	client   *http.Client
	redirect string
	brought  chan url.Values
}

func newApp(t *testing.T, s *OAuthServer) *app {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	a := &app{T: t, server: s, client: s.Client(), brought: make(chan url.Values, 1)}
	a.redirect = "http://" + l.Addr().String() + "/back?mine=1"
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.brought <- r.URL.Query()
		w.WriteHeader(http.StatusTeapot) // what the client says is its own affair
	})}
	var served sync.WaitGroup
	served.Go(func() { _ = server.Serve(l) })
	t.Cleanup(func() {
		_ = server.Close()
		served.Wait()
	})
	// What the server answers is looked at, not followed.
	a.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return a
}

// consent returns the address of a consent page. Changes with an empty value
// take a parameter away.
func (a *app) consent(verifier string, changes url.Values) string {
	sum := sha256.Sum256([]byte(verifier))
	query := url.Values{
		"response_type": {"code"}, "client_id": {OAuthClientID}, "redirect_uri": {a.redirect}, "state": {"a state&="},
		"scope": {"mail offline"}, "code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"},
	}
	return a.server.AuthorizeURL + "?" + with(query, changes).Encode()
}

func with(form, changes url.Values) url.Values {
	maps.Copy(form, changes)
	maps.DeleteFunc(form, func(_ string, v []string) bool { return len(v) == 0 || v[0] == "" })
	return form
}

// code has a person agree and returns the code.
func (a *app) code(verifier, user string) string {
	a.Helper()
	must(a, a.server.Approve(a.Context(), a.consent(verifier, nil), user))
	got := <-a.brought
	if got.Get("state") != "a state&=" || got.Get("mine") != "1" || got.Get("iss") != a.server.URL || got.Get("code") == "" {
		a.Fatalf("the browser brought %v", got)
	}
	return got.Get("code")
}

type tokenAnswer struct {
	status int
	header http.Header
	Error  string `json:"error"`
	tokens
}

func (a *app) post(address string, form url.Values, change func(*http.Request)) tokenAnswer {
	a.Helper()
	r, err := http.NewRequestWithContext(a.Context(), http.MethodPost, address, strings.NewReader(form.Encode()))
	must(a, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if change != nil {
		change(r)
	}
	response, err := a.client.Do(r)
	must(a, err)
	defer response.Body.Close()
	answer := tokenAnswer{status: response.StatusCode, header: response.Header}
	if response.Header.Get("Cache-Control") != "no-store" && response.StatusCode != http.StatusMethodNotAllowed {
		a.Errorf("Cache-Control is %q", response.Header.Get("Cache-Control"))
	}
	body, err := io.ReadAll(response.Body)
	must(a, err)
	if err := json.Unmarshal(body, &answer); err != nil && response.StatusCode != http.StatusMethodNotAllowed {
		a.Fatalf("%v: %s", err, body)
	}
	return answer
}

func (a *app) exchange(code, verifier string, changes url.Values) tokenAnswer {
	a.Helper()
	return a.post(a.server.TokenURL, with(url.Values{
		"grant_type": {grantCode}, "code": {code}, "redirect_uri": {a.redirect}, "client_id": {OAuthClientID}, "code_verifier": {verifier},
	}, changes), nil)
}

func (a *app) refresh(token string, changes url.Values) tokenAnswer {
	a.Helper()
	return a.post(a.server.TokenURL, with(url.Values{
		"grant_type": {grantRefresh}, "refresh_token": {token}, "client_id": {OAuthClientID},
	}, changes), nil)
}

// granted returns tokens of a user who has agreed.
func (a *app) granted(user string) tokens {
	a.Helper()
	verifier := oauth2.GenerateVerifier()
	got := a.exchange(a.code(verifier, user), verifier, nil)
	if got.status != http.StatusOK || got.AccessToken == "" {
		a.Fatalf("got %+v", got)
	}
	return got.tokens
}

func (a *app) wantError(got tokenAnswer, status int, code string) {
	a.Helper()
	if got.status != status || got.Error != code || got.AccessToken != "" || got.RefreshToken != "" {
		a.Errorf("got %d %q, want %d %q", got.status, got.Error, status, code)
	}
}

// xoauth2 is the mechanism as Google describes it.
type xoauth2 struct{ user, token string }

func (x xoauth2) Start() (string, []byte, error) {
	return "XOAUTH2", []byte("user=" + x.user + "\x01auth=Bearer " + x.token + "\x01\x01"), nil
}

func (xoauth2) Next([]byte) ([]byte, error) { return []byte{}, nil }

// enter logs in to the mail server by both mechanisms for tokens.
func enter(t *testing.T, s *DovecotServer, user, token string) error {
	t.Helper()
	var errs []error
	for _, mechanism := range []sasl.Client{
		xoauth2{user, token}, sasl.NewOAuthBearerClient(&sasl.OAuthBearerOptions{Username: user, Token: token}),
	} {
		c, err := imapclient.DialTLS(s.IMAPSAddr(), &imapclient.Options{TLSConfig: s.ClientTLS()})
		must(t, err)
		errs = append(errs, c.Authenticate(mechanism))
		c.Close()
	}
	if (errs[0] == nil) != (errs[1] == nil) {
		t.Errorf("XOAUTH2: %v, OAUTHBEARER: %v", errs[0], errs[1])
	}
	return errors.Join(errs...)
}
