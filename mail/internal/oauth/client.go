package oauth

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/postern-mail/postern/mail/internal/wire"
)

const (
	// requestTimeout bounds one request besides its context. It is long: an answer that
	// came too late may have held the only good refresh token.
	requestTimeout = 60 * time.Second

	maxBody       = 1 << 20
	maxHeader     = 64 << 10
	maxRetryAfter = 5 * time.Minute
)

var errElsewhere = errors.New("the address reached is not this machine's own")

// answer is an endpoint's answer.
type answer struct {
	status     int
	retryAfter time.Duration
	fields     map[string]json.RawMessage // nil where the body is not a JSON object
}

// text returns a field that is a string; ok is false for one of another kind.
// One that is missing or null is "".
func (a *answer) text(name string) (s string, ok bool) {
	raw := a.fields[name]
	if raw == nil || string(raw) == "null" {
		return "", true
	}
	if json.Unmarshal(raw, &s) != nil {
		return "", false
	}
	return s, true
}

// number returns a field that is a number, or a string that holds one, as some
// servers send it; ok is false where it is neither.
func (a *answer) number(name string) (n float64, ok bool) {
	s, isText := a.text(name)
	if !isText {
		s = string(a.fields[name])
	}
	n, err := strconv.ParseFloat(s, 64)
	return n, err == nil
}

// seconds returns a field that is a number of seconds, at most most. It is zero
// where that is not positive, missing or unreadable.
func (a *answer) seconds(name string, most time.Duration) time.Duration {
	n, ok := a.number(name)
	switch {
	case !ok || !(n > 0): // not a number fails the comparison too
		return 0
	case n >= most.Seconds():
		return most
	}
	return time.Duration(n * float64(time.Second))
}

// request sends a form in the client's name. The error is an *Error; an answer
// without success is one.
func (c *Config) request(ctx context.Context, address string, form url.Values) (*answer, error) {
	inBody := c.ClientSecret == "" || c.SecretInBody
	a, err := c.post(ctx, address, form, inBody)
	var e *Error
	// The server checks the client before the grant, so no token was spent yet.
	if !inBody && errors.As(err, &e) && e.Code == "invalid_client" {
		return c.post(ctx, address, form, true)
	}
	return a, err
}

func (c *Config) post(ctx context.Context, address string, form url.Values, inBody bool) (*answer, error) {
	sent := make(url.Values, len(form)+2)
	for name := range form {
		sent.Set(name, form.Get(name))
	}
	if inBody {
		sent.Set("client_id", c.ClientID)
		if c.ClientSecret != "" {
			sent.Set("client_secret", string(c.ClientSecret))
		}
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(sent.Encode()))
	if err != nil {
		return nil, unusable("the provider's address cannot be used")
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Accept", "application/json")
	if !inBody {
		// Form-encoded first (RFC 6749 section 2.3.1).
		r.SetBasicAuth(url.QueryEscape(c.ClientID), url.QueryEscape(string(c.ClientSecret)))
	}
	response, err := c.client(r.URL).Do(r)
	if err != nil {
		return nil, broken(ctx, err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody+1))
	switch {
	case err != nil:
		return nil, broken(ctx, err)
	case len(body) > maxBody:
		return nil, senseless("the provider's answer is longer than any such answer is")
	}
	defer clear(body)
	a := &answer{status: response.StatusCode}
	if n, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && n > 0 {
		a.retryAfter = min(time.Duration(min(n, 1<<20))*time.Second, maxRetryAfter)
	}
	if json.Unmarshal(body, &a.fields) != nil {
		a.fields = nil
	}
	// Some servers report an error with status 200.
	if code, _ := a.text("error"); a.status != http.StatusOK || code != "" || a.fields == nil {
		return nil, a.failure()
	}
	return a, nil
}

// client is for one request. It keeps no connection: a request that can be made only once
// must not meet one that the server has closed. It follows no redirection, since the form
// holds secrets for this address alone.
//
// It uses the proxy of the environment (HTTPS_PROXY, NO_PROXY), through which TLS
// passes unopened; never for this machine, and never without TLS.
func (c *Config) client(to *url.URL) *http.Client {
	secure := to.Scheme == "https"
	dialer := net.Dialer{}
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy: func(r *http.Request) (*url.URL, error) {
				if !secure || wire.Loopback(to.Hostname()) {
					return nil, nil
				}
				return http.ProxyFromEnvironment(r)
			},
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := dialer.DialContext(ctx, network, address)
				if err != nil || secure {
					return conn, err
				}
				if a, ok := conn.RemoteAddr().(*net.TCPAddr); !ok || !a.IP.IsLoopback() {
					_ = conn.Close()
					return nil, errElsewhere
				}
				return conn, nil
			},
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: c.RootCAs},
			DisableKeepAlives:      true,
			DisableCompression:     true,
			MaxResponseHeaderBytes: maxHeader,
		},
	}
}
