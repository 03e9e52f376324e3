package oauth

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail/internal/wire"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/mail/servertest/scripted"
)

func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

func reply(status int, body string) func(http.ResponseWriter, url.Values) {
	return func(w http.ResponseWriter, _ url.Values) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func oauthCode(code string) string {
	return fmt.Sprintf(`{"error":%q,"error_description":%q,"error_uri":"https://example.org/%s"}`, code, canaryWords, canaryWords)
}

const good = `{"access_token":"` + canaryAccess + `","token_type":"Bearer","expires_in":3600}`

func TestAnswersWithoutSuccess(t *testing.T) {
	t.Parallel()
	for _, c := range testmain.Table[struct {
		Status int
		Body   string
		Kind   wire.Kind
		Code   string
	}](t, "testdata/cases/answers.txt") {
		if code, ok := strings.CutPrefix(c.Body, "error:"); ok {
			c.Body = oauthCode(code)
		}
		t.Run(fmt.Sprintf("%d %.30s", c.Status, c.Body), func(t *testing.T) {
			t.Parallel()
			e := startEndpoint(t, reply(c.Status, c.Body))
			config := e.config()
			config.ClientSecret, config.SecretInBody = canaryClient, true
			token, err := config.Refresh(t.Context(), canaryRefresh)
			got := failed(t, err, c.Kind)
			if got.Code != c.Code || got.Temporary != (c.Kind == wire.KindUnavailable) || got.Status != 0 && got.Status != c.Status {
				t.Errorf("got %+v", got)
			}
			if token != (Token{}) {
				t.Error("there is a token besides the error")
			}
			if e.count() != 1 {
				t.Errorf("%d requests for one refresh", e.count())
			}
		})
	}
}

func TestRetryAfterIsBounded(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]time.Duration{
		"7": 7 * time.Second, "999999999999": maxRetryAfter, "99999999999999999999": 0, "999999": maxRetryAfter, "-1": 0, "soon": 0, "": 0,
	} {
		e := startEndpoint(t, func(w http.ResponseWriter, _ url.Values) {
			w.Header().Set("Retry-After", header)
			w.WriteHeader(http.StatusTooManyRequests)
		})
		_, err := e.config().Refresh(t.Context(), canaryRefresh)
		if got := failed(t, err, wire.KindUnavailable); got.RetryAfter != want {
			t.Errorf("%q makes %v, want %v", header, got.RetryAfter, want)
		}
	}
}

// raw starts a fake TLS server that reads a request and then runs answer with the
// connection. It returns a client of it.
func raw(t *testing.T, answer func(net.Conn)) *Config {
	t.Helper()
	ca := scripted.Authority(t)
	sv := scripted.Serve(t, scripted.OverTLS(scripted.Leaf(t, ca, time.Time{}), func(c *scripted.Conn) {
		if r, err := http.ReadRequest(c.Lines); err == nil {
			_, _ = io.Copy(io.Discard, r.Body)
			answer(c.Conn)
		}
	}))
	return &Config{ClientID: "client", ClientSecret: canaryClient, SecretInBody: true, TokenURL: fmt.Sprintf("https://127.0.0.1:%d/token", sv.Port), RootCAs: ca.Pool()}
}

func TestConnectionsThatBreak(t *testing.T) {
	t.Parallel()
	for _, c := range testmain.Table[struct {
		Sent      string
		Kind      wire.Kind
		Temporary bool
	}](t, "testdata/cases/broken.txt") {
		t.Run(fmt.Sprintf("%.40s", c.Sent), func(t *testing.T) {
			t.Parallel()
			_, err := raw(t, func(conn net.Conn) { _, _ = io.WriteString(conn, c.Sent) }).Refresh(t.Context(), canaryRefresh)
			if got := failed(t, err, c.Kind); got.Temporary != c.Temporary {
				t.Errorf("got %+v", got)
			}
		})
	}
	t.Run("silence", func(t *testing.T) {
		t.Parallel()
		asked := make(chan struct{}, 2)
		c := raw(t, func(conn net.Conn) {
			asked <- struct{}{}
			_, _ = conn.Read(make([]byte, 1)) // until the client hangs up
		})
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-asked; cancel() }()
		_, err := c.Refresh(ctx, canaryRefresh)
		if got := failed(t, err, wire.KindTimeout); got.Err != context.Canceled {
			t.Errorf("the cause is %v", got.Err)
		}
		ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err = c.Refresh(ctx, canaryRefresh)
		if got := failed(t, err, wire.KindTimeout); got.Err != context.DeadlineExceeded || !got.Temporary {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("nobody there", func(t *testing.T) {
		t.Parallel()
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		c := &Config{ClientID: "client", TokenURL: "https://" + l.Addr().String()}
		_ = l.Close()
		_, err = c.Refresh(t.Context(), canaryRefresh)
		failed(t, err, wire.KindConnection)
	})
	t.Run("no TLS", func(t *testing.T) {
		t.Parallel()
		s := httptest.NewServer(http.NotFoundHandler())
		defer s.Close()
		c := &Config{ClientID: "client", TokenURL: strings.Replace(s.URL, "http:", "https:", 1)}
		_, err := c.Refresh(t.Context(), canaryRefresh)
		failed(t, err, wire.KindProtocol)
	})
}

func TestCertificatesAreVerified(t *testing.T) {
	t.Parallel()
	e := startEndpoint(t, reply(200, good))
	other, err := servertest.NewCA()
	must(t, err)
	for name, c := range map[string]*Config{"system's authorities": {}, "another authority": {RootCAs: other.Pool()}} {
		c.ClientID, c.TokenURL = "client", e.URL
		_, err := c.Refresh(t.Context(), canaryRefresh)
		if got := failed(t, err, wire.KindCertificate); got.Temporary {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	s := servertest.OAuth(t, servertest.OAuthConfig{Leaf: servertest.LeafOptions{Hosts: []string{"elsewhere.example.org"}}})
	_, err = of(s).Refresh(t.Context(), canaryRefresh)
	failed(t, err, wire.KindCertificate)
	if n := e.count() + s.Refreshes(); n > 0 {
		t.Errorf("%d requests were made", n)
	}
}

func TestOldTLSIsRefused(t *testing.T) {
	t.Parallel()
	for version, ok := range map[uint16]bool{tls.VersionTLS11: false, tls.VersionTLS12: true} {
		e := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { reply(200, good)(w, nil) }))
		e.TLS = &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: version}
		e.Config.ErrorLog = quiet()
		e.StartTLS()
		defer e.Close()
		_, err := (&fakeEndpoint{Server: e}).config().Refresh(t.Context(), canaryRefresh)
		if (err == nil) != ok {
			t.Errorf("%s: %v", tls.VersionName(version), err)
		}
		silent(t, err)
	}
}

func TestRedirectionsAreNotFollowed(t *testing.T) {
	t.Parallel()
	elsewhere := startEndpoint(t, reply(200, good))
	for _, status := range []int{301, 302, 303, 307, 308} {
		e := startEndpoint(t, func(w http.ResponseWriter, _ url.Values) {
			w.Header().Set("Location", elsewhere.URL+"/"+canaryWords)
			w.WriteHeader(status)
		})
		_, err := e.config().Refresh(t.Context(), canaryRefresh)
		failed(t, err, wire.KindProtocol)
	}
	if n := elsewhere.count(); n > 0 {
		t.Errorf("%d requests went elsewhere", n)
	}
}

func TestProxyOfTheEnvironment(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"https://example.org/token":  aProxy,
		"https://localhost:1/token":  "",
		"https://127.0.0.1/token":    "",
		"https://[::1]/token":        "",
		"http://localhost/token":     "",
		"http://example.org/refused": "",
	} {
		u, err := url.Parse(address)
		must(t, err)
		proxy, err := (&Config{}).client(u).Transport.(*http.Transport).Proxy(&http.Request{URL: u})
		must(t, err)
		got := ""
		if proxy != nil {
			got = proxy.String()
		}
		if got != want {
			t.Errorf("%s goes through %q, want %q", address, got, want)
		}
	}
}

func TestClientAuthentication(t *testing.T) {
	t.Parallel()
	id, secret := "a client:é", "s:&=+ %/"+canaryClient
	for name, c := range map[string]struct {
		secret string
		inBody bool
		accept string // header or body
		asked  int
		ok     bool
	}{
		"public":            {"", false, "body", 1, true},
		"header":            {secret, false, "header", 1, true},
		"body at once":      {secret, true, "body", 1, true},
		"body in the end":   {secret, false, "body", 2, true},
		"never":             {secret, false, "nothing", 2, false},
		"never in the body": {secret, true, "nothing", 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var e *fakeEndpoint
			e = startEndpoint(t, func(w http.ResponseWriter, form url.Values) {
				e.mu.Lock()
				header := e.headers[len(e.headers)-1]
				e.mu.Unlock()
				user, password, basic := (&http.Request{Header: header}).BasicAuth()
				user, _ = url.QueryUnescape(user)
				password, _ = url.QueryUnescape(password)
				inHeader := basic && user == id && password == c.secret && !form.Has("client_id") && !form.Has("client_secret")
				inBody := !basic && form.Get("client_id") == id && form.Get("client_secret") == c.secret
				if c.accept == "header" && inHeader || c.accept == "body" && inBody {
					reply(200, good)(w, form)
					return
				}
				reply(401, oauthCode("invalid_client"))(w, form)
			})
			config := e.config()
			config.ClientID, config.ClientSecret, config.SecretInBody = id, Secret(c.secret), c.inBody
			_, err := config.Refresh(t.Context(), canaryRefresh)
			if (err == nil) != c.ok || e.count() != c.asked {
				t.Errorf("%v after %d requests", err, e.count())
			}
		})
	}
}

// Plain http is allowed for the names of this machine, and only if the address that is
// dialed is a loopback address too.
func TestPlainHTTPStaysOnThisMachine(t *testing.T) {
	t.Parallel()
	s := servertest.OAuth(t, servertest.OAuthConfig{Plaintext: true})
	c := of(s)
	if _, err := c.Refresh(t.Context(), consented(t, s, c)); err != nil {
		t.Error(err)
	}
	u, err := url.Parse("http://127.0.0.1:1/")
	must(t, err)
	dial := c.client(u).Transport.(*http.Transport).DialContext
	l, err := net.Listen("tcp", "0.0.0.0:0")
	must(t, err)
	defer func() { _ = l.Close() }()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	for _, ip := range elsewhere(t) {
		if conn, err := dial(t.Context(), "tcp", net.JoinHostPort(ip, port)); err == nil {
			_ = conn.Close()
			t.Errorf("a connection to %s is plain", ip)
		}
	}
}
