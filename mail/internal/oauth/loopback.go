package oauth

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/postern-mail/postern/mail/internal/wire"
	"golang.org/x/oauth2"
)

const (
	maxConsent = 15 * time.Minute // how long to wait for a person when ctx has no deadline
	maxCode    = 8 << 10          // of an authorization code
	goodbye    = 2 * time.Second  // for the browser to take its page
)

// The pages for a browser. They hold no part of its request.
const (
	pageDone  = "Your answer has arrived. You can close this window and go back to the program that sent you here.\n"
	pageWrong = "This address is for one answer of a consent page only, and this is not it.\n"
)

// Loopback asks a person for consent in a browser (RFC 8252) and returns the refresh token.
// show gets the address of the consent page, once, and should open or print it; it must
// return soon. The provider sends the browser back to a listener on 127.0.0.1 that ends
// with this call, at port, or at any free port if that is 0.
//
// It returns when the person has decided, when ctx ends, or after 15 minutes. The
// error is an *Error: KindDenied when the person does not agree.
func (c *Config) Loopback(ctx context.Context, port uint16, show func(consent string)) (refresh Secret, err error) {
	if err := c.check(map[string]string{"authorization": c.AuthURL}); err != nil {
		return "", err
	}
	waiting, cancel := context.WithTimeout(ctx, maxConsent)
	defer cancel()
	b, err := c.await(waiting, port)
	if err != nil {
		return "", err
	}
	defer b.close()
	verifier := oauth2.GenerateVerifier()
	show(c.consentURL(b, verifier))
	select {
	case got := <-b.brought:
		if got.failed != nil {
			return "", got.failed
		}
		// The code is good once and for a short while; the wait for the person is over.
		return c.first(ctx, url.Values{
			"grant_type": {"authorization_code"}, "code": {string(got.Code)},
			"redirect_uri": {b.redirect}, "code_verifier": {verifier},
		})
	case <-waiting.Done():
		return "", gaveUp(ctx)
	}
}

// gaveUp is the failure when the wait for a person has ended.
func gaveUp(ctx context.Context) *Error {
	if ctx.Err() == nil {
		return &Error{Kind: wire.KindExpired, Text: "nobody decided in time"}
	}
	e := &Error{Kind: wire.KindTimeout, Temporary: true, Err: ctx.Err(), Text: "nobody decided in time"}
	if errors.Is(ctx.Err(), context.Canceled) {
		e.Text = "the wait for the consent was cancelled"
	}
	return e
}

func (c *Config) consentURL(b *browser, verifier string) string {
	endpoint := oauth2.Config{
		ClientID: c.ClientID, RedirectURL: b.redirect, Scopes: c.allScopes(),
		Endpoint: oauth2.Endpoint{AuthURL: c.AuthURL},
	}
	options := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(verifier)}
	if c.LoginHint != "" {
		options = append(options, oauth2.SetAuthURLParam("login_hint", c.LoginHint))
	}
	for name, value := range c.AuthParams {
		options = append(options, oauth2.SetAuthURLParam(name, value))
	}
	return endpoint.AuthCodeURL(b.state, options...)
}

// browser receives the decision from a person's browser. Only the first request with the
// right state counts.
type browser struct {
	redirect, host string
	state          string
	brought        chan decision // one place
	server         *http.Server
	serving        sync.WaitGroup

	first sync.Once // right request
}

type decision struct {
	Code   Secret // exported, so that it prints as every Secret does
	failed *Error
}

func (c *Config) await(ctx context.Context, port uint16) (*browser, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
	if err != nil {
		return nil, &Error{Kind: wire.KindConnection, Err: err, Text: "no port of this machine could be opened for the browser's answer"}
	}
	at := strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
	listeners := []net.Listener{listener}
	host := "127.0.0.1"
	if c.RedirectHost == "localhost" {
		host = c.RedirectHost
		// A browser may try this address first. Without it, it tries the other.
		if second, err := config.Listen(ctx, "tcp6", net.JoinHostPort("::1", at)); err == nil {
			listeners = append(listeners, second)
		}
	}
	b := &browser{
		host: net.JoinHostPort(host, at), state: rand.Text(), brought: make(chan decision, 1),
	}
	b.redirect = "http://" + b.host
	b.server = &http.Server{
		Handler: b, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second,
		MaxHeaderBytes: 32 << 10, ErrorLog: log.New(io.Discard, "", 0),
	}
	b.server.SetKeepAlivesEnabled(false)
	for _, l := range listeners {
		b.serving.Go(func() { _ = b.server.Serve(l) })
	}
	return b, nil
}

// close ends the listener. A browser that is being answered gets its page.
func (b *browser) close() {
	ctx, cancel := context.WithTimeout(context.Background(), goodbye)
	defer cancel()
	_ = b.server.Shutdown(ctx)
	_ = b.server.Close()
	b.serving.Wait()
}

// ServeHTTP takes the person's decision (RFC 6749 section 4.1.2).
func (b *browser) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'")
	got, ok := b.read(r)
	if ok {
		ok = false
		b.first.Do(func() { ok = true; b.brought <- got })
	}
	if !ok {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, pageWrong)
		return
	}
	_, _ = io.WriteString(w, pageDone)
}

// read returns the decision that a request brings; ok is false for a request without
// the right state.
func (b *browser) read(r *http.Request) (got decision, ok bool) {
	// Another name for this machine could belong to another site's page.
	if r.Method != http.MethodGet || r.Host != b.host || r.URL.Path != "/" && r.URL.Path != "" {
		return got, false
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil || len(query["state"]) != 1 ||
		subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(b.state)) != 1 {
		return got, false
	}
	code := query.Get("code")
	switch {
	case query.Has("error"):
		got.failed = coded(query.Get("error"))
	case len(query["code"]) != 1 || code == "" || len(code) > maxCode:
		got.failed = senseless("the provider sent the browser back with neither a code nor an error")
	default:
		got.Code = Secret(code)
	}
	return got, true
}
