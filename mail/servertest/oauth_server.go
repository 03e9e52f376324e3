package servertest

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// OAuthClientID is the public client an authorization server knows when nothing
// else is configured.
const OAuthClientID = "desktop"

// OAuthConfig says how an authorization server differs from the plain one. The zero
// OAuthConfig serves HTTPS, knows the public client OAuthClientID, grants every requested
// scope, and rotates refresh tokens.
type OAuthConfig struct {
	// Plaintext serves http://127.0.0.1 instead.
	Plaintext bool
	// CA signs the server's certificate; nil means a fresh one.
	CA *CA
	// Leaf says what the certificate claims.
	Leaf LeafOptions
	// Clients are the registered ones; nil means the one of OAuthClientID.
	Clients []OAuthClient
	// Scopes are the scopes a client may request; nil means any. A client that requests
	// none gets all of these, or "mail".
	Scopes []string
	// OfflineScope, unless empty, must be granted for a refresh token to be
	// issued with the access token.
	OfflineScope string
	// FixedRefreshTokens lets a refresh token be used again and again, and
	// leaves it out of the answer to a refresh.
	FixedRefreshTokens bool

	// How long codes and tokens are good; zero means the value in brackets. A negative
	// value makes them expired when issued.
	AccessLife time.Duration // of an access token [1 h], in whole seconds
	CodeLife   time.Duration // of an authorization code [1 min]
	DeviceLife time.Duration // of a device code and its user code [10 min], in whole seconds

	// DeviceInterval is how long a client must wait between two questions about
	// a device code, in whole seconds; zero means 5 s.
	DeviceInterval time.Duration
	// Now is the server's clock; nil means time.Now. Dovecot has its own.
	Now func() time.Time
}

// OAuthClient is a client that was registered with the server. Its redirection
// URI is http://127.0.0.1 with any port (RFC 8252 section 7.3).
type OAuthClient struct {
	ID     string
	Secret string // empty makes it a public client (RFC 6749 section 2.1)
	Path   string // of the redirection URI; empty allows any
}

// OAuthEndpoint names what a request asks of an authorization server.
type OAuthEndpoint string

// The endpoints of an authorization server for a client, and the one for a server that got
// an access token.
const (
	OAuthAuthorize  OAuthEndpoint = "authorize"  // RFC 6749 section 3.1
	OAuthTokens     OAuthEndpoint = "token"      // RFC 6749 section 3.2
	OAuthDevice     OAuthEndpoint = "device"     // RFC 8628 section 3.1
	OAuthIntrospect OAuthEndpoint = "introspect" // RFC 7662 section 2
)

// OAuthRequest is a request that reached an authorization server.
type OAuthRequest struct {
	Endpoint OAuthEndpoint
	Grant    string // grant_type, at the token endpoint
	Client   string // client_id as it was claimed
	Error    string // error code that was answered, "fault" where one was ordered; empty for success, and until there is an answer
}

// OAuthServer is a running authorization server whose access tokens let a user into a
// DovecotServer. Any user name logs in at it with Password. It is strict: it accepts every
// choice the RFCs allow a client, and refuses what they forbid. The fields do not change;
// the methods are safe for concurrent use.
//
//   - authorization code with PKCE, S256 only (RFC 6749, 7636), redirecting to the
//     loopback interface (RFC 8252)
//   - refresh tokens, rotated; one that is used twice takes the whole grant with
//     it (RFC 9700 section 4.14.2)
//   - device authorization (RFC 8628)
//   - introspection for the mail server (RFC 7662), see Introspection
//   - a client proves who it is by a secret, in the header or the body, or is
//     public (RFC 6749 section 2.3)
type OAuthServer struct {
	URL           string // issuer, without a slash at its end
	AuthorizeURL  string
	TokenURL      string
	DeviceURL     string // device authorization endpoint
	Introspection string // for Config.Introspection; with the mail server's own credentials in it
	CAPEM         []byte // what a client must trust; nil with Plaintext
	CA            *CA    // nil with Plaintext

	config   OAuthConfig
	server   *http.Server
	resource url.Userinfo // of the mail server
	served   chan error

	mu       sync.Mutex
	requests []*OAuthRequest
	faults   map[OAuthEndpoint][]OAuthFault
	pending  map[string]*authorization // consent page, by its id
	codes    map[string]*authorization // by code, used ones too
	refresh  map[string]*refreshToken  // used ones too
	access   map[string]*accessToken
	devices  map[string]*deviceGrant // by device code
	grants   []*grant
}

// OAuth starts a server that lives as long as the test.
func OAuth(t testing.TB, config OAuthConfig) *OAuthServer {
	t.Helper()
	s, err := StartOAuth(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// StartOAuth starts a server that lives until Stop.
func StartOAuth(config OAuthConfig) (_ *OAuthServer, err error) {
	config.AccessLife = cmp.Or(config.AccessLife, time.Hour)
	config.CodeLife = cmp.Or(config.CodeLife, time.Minute)
	config.DeviceLife = cmp.Or(config.DeviceLife, 10*time.Minute)
	config.DeviceInterval = cmp.Or(config.DeviceInterval, 5*time.Second)
	config.Scopes = slices.Clone(config.Scopes)
	config.Clients = slices.Clone(config.Clients)
	if config.Clients == nil {
		config.Clients = []OAuthClient{{ID: OAuthClientID}}
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	for _, d := range []time.Duration{config.AccessLife, config.DeviceLife, config.DeviceInterval} {
		if d%time.Second != 0 {
			return nil, fmt.Errorf("start authorization server: %s is not whole seconds", d)
		}
	}
	s := &OAuthServer{
		config: config,
		served: make(chan error, 1),
		faults: map[OAuthEndpoint][]OAuthFault{}, pending: map[string]*authorization{},
		codes: map[string]*authorization{}, refresh: map[string]*refreshToken{},
		access: map[string]*accessToken{}, devices: map[string]*deviceGrant{},
		resource: *url.UserPassword("mailserver", Password),
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start authorization server: %w", err)
	}
	host := listener.Addr().String()
	at := url.URL{Scheme: "http", Host: host}
	if !config.Plaintext {
		if s.CA = config.CA; s.CA == nil {
			if s.CA, err = NewCA(); err != nil {
				return nil, errors.Join(err, listener.Close())
			}
		}
		leaf, err := s.CA.Leaf(config.Leaf)
		if err != nil {
			return nil, errors.Join(err, listener.Close())
		}
		s.CAPEM = s.CA.PEM()
		_, port, _ := net.SplitHostPort(host)
		at = url.URL{Scheme: "https", Host: net.JoinHostPort("localhost", port)}
		listener = tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{leaf}, NextProtos: []string{"http/1.1"}})
	}
	s.URL = at.String()
	s.AuthorizeURL, s.TokenURL, s.DeviceURL = s.URL+"/authorize", s.URL+"/token", s.URL+"/device_authorization"
	asking := at
	asking.User = &s.resource
	s.Introspection = asking.String() + "/introspect"
	s.server = &http.Server{
		Handler: s.routes(), ReadHeaderTimeout: startTimeout,
		// Tests want clients that refuse the certificate or hang up.
		ErrorLog: log.New(io.Discard, "", 0),
	}
	go func() { s.served <- s.server.Serve(listener) }()
	return s, nil
}

func (s *OAuthServer) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/authorize", s.authorize)
	mux.HandleFunc("POST /authorize/decide", s.decide)
	mux.HandleFunc("POST /token", s.token)
	mux.HandleFunc("POST /device_authorization", s.deviceAuthorization)
	mux.HandleFunc("GET /device", s.devicePage)
	mux.HandleFunc("POST /device", s.deviceDecide)
	mux.HandleFunc("POST /introspect", s.introspect)
	return mux
}

// Stop ends the server with every connection to it. Further calls do nothing.
func (s *OAuthServer) Stop() error {
	err := s.server.Close() // also ends the contexts of held requests
	if served := <-s.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	s.served <- http.ErrServerClosed // for a further call
	if err != nil {
		return fmt.Errorf("stop authorization server: %w", err)
	}
	return nil
}

// Client returns an HTTP client that trusts this server alone, uses no proxy and
// follows redirections.
func (s *OAuthServer) Client() *http.Client {
	transport := &http.Transport{DisableKeepAlives: true}
	if s.CA != nil {
		transport.TLSClientConfig = &tls.Config{RootCAs: s.CA.Pool()}
	}
	return &http.Client{Transport: transport}
}

// Requests returns the requests that reached the endpoints, in the order of arrival. An
// answered request is always in it.
func (s *OAuthServer) Requests() []OAuthRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]OAuthRequest, len(s.requests))
	for i, r := range s.requests {
		all[i] = *r
	}
	return all
}

// Refreshes returns how many times a client has asked for a new access token by a refresh
// token, successful or not.
func (s *OAuthServer) Refreshes() int {
	n := 0
	for _, r := range s.Requests() {
		if r.Grant == grantRefresh {
			n++
		}
	}
	return n
}

// Revoke revokes a user's grants, as a person does on the provider's page: no refresh token
// works any more, nor does an access token where the mail server asks at Introspection.
func (s *OAuthServer) Revoke(user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.grants {
		if strings.EqualFold(g.user, user) {
			g.revoked = true
		}
	}
}

// RefuseAccessTokens makes every access token that has been issued invalid
// before it expires, for a mail server that asks at Introspection. Refresh
// tokens still get new ones.
func (s *OAuthServer) RefuseAccessTokens() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.access {
		a.refused = true
	}
}

// client finds a registered client.
func (s *OAuthServer) client(id string) (OAuthClient, bool) {
	i := slices.IndexFunc(s.config.Clients, func(c OAuthClient) bool { return c.ID == id })
	if i < 0 {
		return OAuthClient{}, false
	}
	return s.config.Clients[i], true
}

// scope returns the scopes granted for a request.
func (s *OAuthServer) scope(asked string) (string, bool) {
	if asked == "" {
		return cmp.Or(strings.Join(s.config.Scopes, " "), "mail"), true
	}
	for _, one := range strings.Split(asked, " ") {
		if one == "" || strings.ContainsFunc(one, notScope) || s.config.Scopes != nil && !slices.Contains(s.config.Scopes, one) {
			return "", false
		}
	}
	return asked, true
}

// notScope reports a character that no scope token holds (RFC 6749 section 3.3).
func notScope(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }

// arrive records a request and takes the fault that was ordered for it.
func (s *OAuthServer) arrive(ctx context.Context, request OAuthRequest) (*OAuthRequest, OAuthFault) {
	s.mu.Lock()
	record := &request
	s.requests = append(s.requests, record)
	var fault OAuthFault
	if ordered := s.faults[request.Endpoint]; len(ordered) > 0 {
		fault, s.faults[request.Endpoint] = ordered[0], ordered[1:]
	}
	s.mu.Unlock()
	if fault.Hold != nil {
		fault.Hold(ctx)
	}
	return record, fault
}

// settle records how a request ends.
func (s *OAuthServer) settle(record *OAuthRequest, result string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	record.Error = result
}
