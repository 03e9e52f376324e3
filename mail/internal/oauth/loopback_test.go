package oauth

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail/internal/wire"
	"github.com/postern-mail/postern/mail/servertest"
)

func TestLoopbackConsent(t *testing.T) {
	t.Parallel()
	s := servertest.OAuth(t, servertest.OAuthConfig{OfflineScope: "offline"})
	c := of(s)
	c.Scopes, c.LoginHint, c.AuthParams = []string{"mail", "offline"}, "ann@example.org", map[string]string{"prompt": "consent"}
	var shown []string
	refresh, err := c.Loopback(t.Context(), 0, func(consent string) {
		shown = append(shown, consent)
		approves(t, s)(consent)
	})
	if err != nil || refresh == "" || len(shown) != 1 {
		t.Fatalf("%v after %d addresses", err, len(shown))
	}
	u, err := url.Parse(shown[0])
	must(t, err)
	q := u.Query()
	for name, want := range map[string]string{
		"response_type": "code", "client_id": servertest.OAuthClientID, "scope": "mail offline", "code_challenge_method": "S256",
		"login_hint": "ann@example.org", "prompt": "consent",
	} {
		if q.Get(name) != want || len(q[name]) != 1 {
			t.Errorf("%s is %q, want %q", name, q[name], want)
		}
	}
	if len(q.Get("state")) < 26 || len(q.Get("code_challenge")) != base64.RawURLEncoding.EncodedLen(sha256.Size) {
		t.Errorf("state %q, challenge %q", q.Get("state"), q.Get("code_challenge"))
	}
	if !strings.HasPrefix(q.Get("redirect_uri"), "http://127.0.0.1:") {
		t.Errorf("the browser comes back to %s", q.Get("redirect_uri"))
	}
	if token, err := c.Refresh(t.Context(), refresh); err != nil || token.Access == "" {
		t.Errorf("what was granted: %v", err)
	}
	// The listener is closed.
	back, err := url.Parse(q.Get("redirect_uri"))
	must(t, err)
	if conn, err := net.Dial("tcp", back.Host); err == nil {
		_ = conn.Close()
		t.Error("the listener still listens")
	}
}

func TestLoopbackWithoutConsent(t *testing.T) {
	t.Parallel()
	s := servertest.OAuth(t, servertest.OAuthConfig{OfflineScope: "offline"})
	deny := func(consent string) {
		if err := s.Deny(t.Context(), consent); err != nil {
			t.Error(err)
		}
	}
	_, err := of(s).Loopback(t.Context(), 0, deny)
	failed(t, err, wire.KindDenied)
	approve := approves(t, s)
	// Without the scope "offline" the server gives no refresh token.
	_, err = of(s).Loopback(t.Context(), 0, approve)
	failed(t, err, wire.KindProtocol)
	s.FailNext(servertest.OAuthTokens, servertest.OAuthFault{Error: "invalid_grant"})
	_, err = of(s).Loopback(t.Context(), 0, approve)
	failed(t, err, wire.KindConsent)
}

// get makes a request as a browser does, without following a redirection, and returns the
// page.
func get(t *testing.T, method, address, host string) (int, string, http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address, nil)
	must(t, err)
	r.Host = host
	transport := &http.Transport{DisableKeepAlives: true}
	answer, err := transport.RoundTrip(r)
	must(t, err)
	defer func() { _ = answer.Body.Close() }()
	page, err := io.ReadAll(answer.Body)
	must(t, err)
	return answer.StatusCode, string(page), answer.Header
}

// pending starts a Loopback. It returns the redirect URI and the state of the consent, and
// a func that returns the result.
func pending(t *testing.T, c *Config) (redirect, state string, wait func() (Secret, error)) {
	t.Helper()
	shown := make(chan string, 1)
	type result struct {
		token Secret
		err   error
	}
	done := make(chan result, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		token, err := c.Loopback(ctx, 0, func(consent string) { shown <- consent })
		done <- result{token, err}
	}()
	u, err := url.Parse(<-shown)
	must(t, err)
	return u.Query().Get("redirect_uri"), u.Query().Get("state"), func() (Secret, error) {
		defer cancel()
		r := <-done
		return r.token, r.err
	}
}

const codeAnswer = `{"access_token":"a","token_type":"Bearer","refresh_token":"` + canaryRefresh + `"}`

func TestOnlyTheRightRequestCounts(t *testing.T) {
	t.Parallel()
	e := startEndpoint(t, reply(200, codeAnswer))
	redirect, state, wait := pending(t, e.config())
	host := strings.TrimPrefix(redirect, "http://")
	_, port, err := net.SplitHostPort(host)
	must(t, err)
	right := "?state=" + state + "&code=" + canaryWords
	fill := strings.NewReplacer("STATE", state, "AAAA", strings.Repeat("A", len(state)), "code=c", "code="+canaryWords, "PORT", port)
	for _, r := range testmain.Table[struct{ Method, Path, Host string }](t, "testdata/cases/wrong_request.txt") {
		name := r.Method + " " + r.Path + " " + r.Host
		status, page, header := get(t, r.Method, redirect+fill.Replace(r.Path), cmp.Or(fill.Replace(r.Host), host))
		if status != http.StatusBadRequest || r.Method != "HEAD" && page != pageWrong {
			t.Errorf("%s: %d %q", name, status, page)
		}
		if header.Get("Content-Type") != "text/plain; charset=utf-8" || header.Get("Cache-Control") != "no-store" || header.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s: headers %v", name, header)
		}
	}
	if status, page, _ := get(t, "GET", redirect+"/"+right, host); status != http.StatusOK || page != pageDone {
		t.Errorf("the right one: %d %q", status, page)
	}
	token, err := wait()
	if err != nil || token != canaryRefresh {
		t.Fatal(err)
	}
	if e.count() != 1 {
		t.Errorf("%d requests at the token endpoint", e.count())
	}
	form := e.requests[0]
	if form.Get("grant_type") != "authorization_code" || form.Get("code") != canaryWords || form.Get("redirect_uri") != redirect || len(form.Get("code_verifier")) < 43 || form.Get("client_id") != "client" {
		t.Errorf("the exchange is %v", form)
	}
}

func TestOnlyTheFirstAnswerCounts(t *testing.T) {
	t.Parallel()
	b, err := (&Config{}).await(t.Context(), 0)
	must(t, err)
	defer b.close()
	var pages sync.Map
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			_, page, _ := get(t, "GET", b.redirect+"/?state="+b.state+"&code="+strconv.Itoa(i), b.host)
			pages.Store(i, page)
		})
	}
	all.Wait()
	got := <-b.brought
	pages.Range(func(i, page any) bool {
		if (page == pageDone) != (strconv.Itoa(i.(int)) == string(got.Code)) {
			t.Errorf("the code is %s and %v was told %q", string(got.Code), i, page)
		}
		return true
	})
	select {
	case <-b.brought:
		t.Error("a second answer was taken")
	default:
	}
}

func TestRedirectsWithoutACode(t *testing.T) {
	t.Parallel()
	for _, c := range testmain.Table[struct {
		In   string
		Want wire.Kind
	}](t, "testdata/cases/redirects.txt") {
		e := startEndpoint(t, reply(200, codeAnswer))
		redirect, state, wait := pending(t, e.config())
		if status, page, _ := get(t, "GET", redirect+"/?state="+state+"&"+c.In, strings.TrimPrefix(redirect, "http://")); status != http.StatusOK || page != pageDone {
			t.Errorf("%s: %d %q", c.In, status, page)
		}
		_, err := wait()
		failed(t, err, c.Want)
		if e.count() > 0 {
			t.Errorf("%s: something was exchanged", c.In)
		}
	}
}

func TestLoopbackAtAFixedPort(t *testing.T) {
	t.Parallel()
	s := servertest.OAuth(t, servertest.OAuthConfig{})
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	must(t, err)
	port := uint16(l.Addr().(*net.TCPAddr).Port)
	_, err = of(s).Loopback(t.Context(), port, func(string) { t.Error("something is shown though the port is taken") })
	failed(t, err, wire.KindConnection)
	_ = l.Close()
	if _, err = of(s).Loopback(t.Context(), port, func(consent string) {
		if !strings.Contains(consent, url.QueryEscape(":"+strconv.Itoa(int(port)))) {
			t.Errorf("the port is not in %s", consent)
		}
		approves(t, s)(consent)
	}); err != nil {
		t.Error(err)
	}
}

func TestRedirectToTheNameLocalhost(t *testing.T) {
	t.Parallel()
	b, err := (&Config{RedirectHost: "localhost"}).await(t.Context(), 0)
	must(t, err)
	defer b.close()
	u, err := url.Parse(b.redirect)
	if err != nil || u.Hostname() != "localhost" || u.Path != "" {
		t.Fatalf("the browser comes back to %s", b.redirect)
	}
	address := "http://127.0.0.1:" + u.Port() + "/"
	if status, _, _ := get(t, "GET", address+"?state="+b.state+"&code=a", "127.0.0.1:"+u.Port()); status != http.StatusBadRequest {
		t.Error("another name for it is taken")
	}
	if status, _, _ := get(t, "GET", address+"?state="+b.state+"&code=a", b.host); status != http.StatusOK {
		t.Errorf("status %d", status)
	}
	for _, ip := range elsewhere(t) {
		if conn, err := net.Dial("tcp", net.JoinHostPort(ip, u.Port())); err == nil {
			_ = conn.Close()
			t.Errorf("it listens on %s", ip)
		}
	}
}

func TestNoTwoConsentsShareAnything(t *testing.T) {
	t.Parallel()
	var seen []string
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		c := &Config{ClientID: "client", AuthURL: "https://example.org/a?b=c", TokenURL: "https://example.org/t"}
		_, _ = c.Loopback(ctx, 0, func(consent string) {
			u, err := url.Parse(consent)
			if err != nil || u.Query().Get("b") != "c" {
				t.Errorf("the address is %s", consent)
			}
			seen = append(seen, u.Query().Get("state"), u.Query().Get("code_challenge"))
			cancel()
		})
	}
	slices.Sort(seen)
	if len(slices.Compact(seen)) != 6 {
		t.Errorf("states and challenges: %v", seen)
	}
}
