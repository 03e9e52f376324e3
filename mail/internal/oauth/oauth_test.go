package oauth

import (
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail/internal/wire"
	"github.com/postern-mail/postern/mail/servertest"
)

var must = testmain.Must

// aProxy is the proxy of the environment; nothing listens there.
const aProxy = "http://proxy.example.org:9"

func TestMain(m *testing.M) {
	// net/http reads these variables only once.
	for name, value := range map[string]string{"HTTPS_PROXY": aProxy, "HTTP_PROXY": aProxy, "NO_PROXY": "", "https_proxy": "", "http_proxy": "", "no_proxy": ""} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// Secrets of the tests. None may appear in anything that is printed.
const (
	canaryClient  = "canary-client-secret"
	canaryRefresh = "canary-refresh-token"
	canaryAccess  = "canary-access-token"
	canaryWords   = "canary-words-of-an-answer"
)

// silent checks that no printed or encoded form of v, or of an error that it wraps, holds
// the word canary.
func silent(t *testing.T, v any) {
	t.Helper()
	var texts []string
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		texts = append(texts, fmt.Sprintf(verb, v))
	}
	encoded, _ := json.Marshal(v)
	texts = append(texts, string(encoded))
	if err, ok := v.(error); ok {
		for e := err; e != nil; e = errors.Unwrap(e) {
			texts = append(texts, e.Error(), fmt.Sprintf("%+v", e))
		}
	}
	for _, text := range texts {
		if strings.Contains(text, "canary") || strings.Contains(text, fmt.Sprintf("%x", "canary")) {
			t.Errorf("a secret is printed: %s", text)
		}
	}
}

// fakeEndpoint is a fake server that records its requests.
type fakeEndpoint struct {
	*httptest.Server
	mu       sync.Mutex
	requests []url.Values
	headers  []http.Header
}

// startEndpoint starts a fakeEndpoint with TLS; answer answers each request.
func startEndpoint(t *testing.T, answer func(w http.ResponseWriter, form url.Values)) *fakeEndpoint {
	t.Helper()
	e := &fakeEndpoint{}
	e.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			t.Errorf("the form is unreadable: %v", err)
		}
		e.mu.Lock()
		e.requests, e.headers = append(e.requests, r.PostForm), append(e.headers, r.Header)
		e.mu.Unlock()
		answer(w, r.PostForm)
	}))
	e.Server.Config.ErrorLog = quiet()
	e.StartTLS()
	t.Cleanup(e.Close)
	return e
}

func (e *fakeEndpoint) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.requests)
}

func (e *fakeEndpoint) config() *Config {
	pool := x509.NewCertPool()
	pool.AddCert(e.Certificate())
	return &Config{
		ClientID: "client", TokenURL: e.URL + "/token", DeviceURL: e.URL + "/device", AuthURL: e.URL + "/authorize",
		RootCAs: pool,
	}
}

// of returns the Config of a client of s.
func of(s *servertest.OAuthServer) *Config {
	c := &Config{ClientID: servertest.OAuthClientID, AuthURL: s.AuthorizeURL, TokenURL: s.TokenURL, DeviceURL: s.DeviceURL}
	if s.CA != nil {
		c.RootCAs = s.CA.Pool()
	}
	return c
}

// consented returns the refresh token of a new consent.
func consented(t *testing.T, s *servertest.OAuthServer, c *Config) Secret {
	t.Helper()
	token, err := c.Loopback(t.Context(), 0, approves(t, s))
	must(t, err)
	return token
}

// approves returns a show func for Loopback that gives the consent.
func approves(t *testing.T, s *servertest.OAuthServer) func(consent string) {
	return func(consent string) {
		if err := s.Approve(t.Context(), consent, "ann"); err != nil {
			t.Error(err)
		}
	}
}

// elsewhere lists the addresses at which other machines can reach this one.
func elsewhere(t *testing.T) (addresses []string) {
	t.Helper()
	all, err := net.InterfaceAddrs()
	must(t, err)
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLoopback() && !n.IP.IsLinkLocalUnicast() {
			addresses = append(addresses, n.IP.String())
		}
	}
	return addresses
}

func failed(t *testing.T, err error, want wire.Kind) *Error {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Kind != want {
		t.Fatalf("error %#v (%v), want an *Error of kind %s", err, err, want)
	}
	if e.Text == "" || strings.ContainsAny(e.Text, "\r\n") || strings.HasSuffix(e.Text, ".") {
		t.Errorf("the text %q is not one line", e.Text)
	}
	silent(t, err)
	return e
}

func long(n int) string { return strings.Repeat("a", n) }

func TestAnInvalidConfigReachesNoServer(t *testing.T) {
	t.Parallel()
	e := startEndpoint(t, func(http.ResponseWriter, url.Values) {})
	for name, spoil := range map[string]func(*Config){
		"no client id":     func(c *Config) { c.ClientID = "" },
		"control in id":    func(c *Config) { c.ClientID = "a\nb" },
		"no token address": func(c *Config) { c.TokenURL = "" },
		"plain http": func(c *Config) {
			c.TokenURL, c.AuthURL, c.DeviceURL = "http://example.org/", "http://example.org/", "http://example.org/"
		},
		"scope":       func(c *Config) { c.Scopes = []string{"a b"} },
		"empty scope": func(c *Config) { c.Scopes = []string{""} },
	} {
		c := e.config()
		spoil(c)
		shown := func(string, string) { t.Errorf("%s: something is shown", name) }
		_, refresh := c.Refresh(t.Context(), canaryRefresh)
		_, loopback := c.Loopback(t.Context(), 0, func(string) { shown("", "") })
		_, device := c.Device(t.Context(), shown)
		for _, err := range []error{refresh, loopback, device} {
			failed(t, err, wire.KindInvalid)
		}
	}
	c := e.config()
	c.AuthURL, c.DeviceURL = "", ""
	_, err := c.Loopback(t.Context(), 0, func(string) { t.Error("something is shown") })
	failed(t, err, wire.KindInvalid)
	_, err = c.Refresh(t.Context(), "")
	failed(t, err, wire.KindInvalid)
	if n := e.count(); n > 0 {
		t.Errorf("%d requests were made", n)
	}
}

func TestSecretsDoNotPrint(t *testing.T) {
	t.Parallel()
	silent(t, Secret(canaryRefresh))
	silent(t, Token{Access: canaryAccess, Rotated: canaryRefresh})
	silent(t, &Token{Access: canaryAccess, Rotated: canaryRefresh})
	silent(t, Config{ClientSecret: canaryClient})
	silent(t, deviceCode{Code: canaryWords})
	silent(t, decision{Code: canaryWords})
	if got := fmt.Sprintf("%v", Secret("x").LogValue()); got != redacted {
		t.Errorf("a log shows %s", got)
	}
}
