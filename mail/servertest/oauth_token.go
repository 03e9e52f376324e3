package servertest

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

const (
	grantCode    = "authorization_code"
	grantRefresh = "refresh_token"
	grantDevice  = "urn:ietf:params:oauth:grant-type:device_code"
)

// grant is a person's grant to a client. Every token that descends from it is revoked with
// it.
type grant struct {
	client, user, scope string
	revoked             bool
}

// refreshLife is how long a refresh token is good after it was issued.
const refreshLife = 30 * 24 * time.Hour

type refreshToken struct {
	grant   *grant
	expires time.Time
	used    bool
}

type accessToken struct {
	grant   *grant
	scope   string
	expires time.Time
	refused bool
}

// oauthError is an error of RFC 6749 section 5.2 or RFC 8628 section 3.5.
type oauthError struct {
	code  string
	basic bool // the client sent its credentials in the header
}

// tokens is a successful answer of the token endpoint (RFC 6749 section 5.1).
type tokens struct {
	AccessToken  string `json:"access_token"`
	TokenType    string `json:"token_type"`
	ExpiresIn    int64  `json:"expires_in"`
	RefreshToken string `json:"refresh_token,omitempty"`
	Scope        string `json:"scope"`
}

// token is the token endpoint (RFC 6749 section 3.2).
func (s *OAuthServer) token(w http.ResponseWriter, r *http.Request) {
	form, formErr := s.form(w, r)
	record, fault := s.arrive(r.Context(), OAuthRequest{
		Endpoint: OAuthTokens, Grant: form.Get("grant_type"), Client: claimedClient(r, form),
	})
	if s.strike(w, r, record, fault) {
		return
	}
	var answer tokens
	client, failed := s.authenticate(r, form, formErr)
	if failed == nil {
		answer, failed = s.exchange(client, form)
	}
	if fault.Lose {
		s.settle(record, errorCode(failed))
		panic(http.ErrAbortHandler)
	}
	if failed != nil {
		s.refuse(w, record, failed)
		return
	}
	s.answer(w, answer)
}

// form reads a request of a client. No parameter may come twice, and one without a value
// counts as missing (RFC 6749 section 3.2), as Get does.
func (s *OAuthServer) form(w http.ResponseWriter, r *http.Request) (url.Values, error) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/x-www-form-urlencoded" {
		return nil, errors.New("not a form")
	}
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	if err := r.ParseForm(); err != nil {
		return nil, err
	}
	for _, values := range r.PostForm {
		if len(values) != 1 {
			return r.PostForm, errors.New("a parameter is repeated")
		}
	}
	return r.PostForm, nil
}

func claimedClient(r *http.Request, form url.Values) string {
	if id, _, ok := r.BasicAuth(); ok {
		return id
	}
	return form.Get("client_id")
}

// authenticate identifies the client (RFC 6749 section 2.3).
func (s *OAuthServer) authenticate(r *http.Request, form url.Values, formErr error) (OAuthClient, *oauthError) {
	if formErr != nil {
		return OAuthClient{}, &oauthError{code: "invalid_request"}
	}
	id, secret := form.Get("client_id"), form.Get("client_secret")
	inHeader := r.Header.Get("Authorization") != ""
	if inHeader {
		user, password, ok := r.BasicAuth()
		// Both are form-encoded before they are base64-encoded (section 2.3.1).
		user, errUser := url.QueryUnescape(user)
		password, errPassword := url.QueryUnescape(password)
		if !ok || errUser != nil || errPassword != nil {
			return OAuthClient{}, &oauthError{code: "invalid_client", basic: true}
		}
		// One way at a time.
		if secret != "" || id != "" && id != user {
			return OAuthClient{}, &oauthError{code: "invalid_request"}
		}
		id, secret = user, password
	}
	client, known := s.client(id)
	if !known || subtle.ConstantTimeCompare([]byte(client.Secret), []byte(secret)) != 1 {
		return OAuthClient{}, &oauthError{code: "invalid_client", basic: inHeader}
	}
	return client, nil
}

// exchange gives tokens for any grant type the client uses.
func (s *OAuthServer) exchange(client OAuthClient, form url.Values) (tokens, *oauthError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch form.Get("grant_type") {
	case grantCode:
		return s.byCode(client, form)
	case grantRefresh:
		return s.byRefresh(client, form)
	case grantDevice:
		return s.byDevice(client, form)
	case "":
		return tokens{}, &oauthError{code: "invalid_request"}
	default:
		return tokens{}, &oauthError{code: "unsupported_grant_type"}
	}
}

// byCode exchanges an authorization code (RFC 6749 section 4.1.3, RFC 7636
// section 4.6).
func (s *OAuthServer) byCode(client OAuthClient, form url.Values) (tokens, *oauthError) {
	code, verifier := form.Get("code"), form.Get("code_verifier")
	if code == "" || verifier == "" || form.Get("redirect_uri") == "" {
		return tokens{}, &oauthError{code: "invalid_request"}
	}
	a := s.codes[code]
	if a == nil || a.client != client.ID {
		return tokens{}, &oauthError{code: "invalid_grant"}
	}
	if a.used != nil {
		// Somebody else has the code too: its tokens are revoked (RFC 6749 section 4.1.2).
		a.used.revoked = true
		return tokens{}, &oauthError{code: "invalid_grant"}
	}
	sum := sha256.Sum256([]byte(verifier))
	if !goodVerifier(verifier) || base64.RawURLEncoding.EncodeToString(sum[:]) != a.challenge ||
		form.Get("redirect_uri") != a.redirect.String() || !s.config.Now().Before(a.expires) {
		return tokens{}, &oauthError{code: "invalid_grant"}
	}
	a.used = s.grant(client, a.user, a.scope)
	return s.issue(a.used, a.scope, true), nil
}

// goodVerifier reports whether a code verifier has the form of RFC 7636 section 4.1.
func goodVerifier(v string) bool {
	return len(v) >= 43 && len(v) <= 128 && !strings.ContainsFunc(v, func(r rune) bool {
		return (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && (r < '0' || r > '9') && !strings.ContainsRune("-._~", r)
	})
}

// byRefresh exchanges a refresh token (RFC 6749 section 6).
func (s *OAuthServer) byRefresh(client OAuthClient, form url.Values) (tokens, *oauthError) {
	raw := form.Get("refresh_token")
	if raw == "" {
		return tokens{}, &oauthError{code: "invalid_request"}
	}
	t := s.refresh[raw]
	if t == nil || t.grant.client != client.ID {
		return tokens{}, &oauthError{code: "invalid_grant"}
	}
	if t.used {
		// Two clients hold it, and the rightful one is unknown: both lose it (RFC 9700
		// section 4.14.2).
		t.grant.revoked = true
	}
	if t.grant.revoked || !s.config.Now().Before(t.expires) {
		return tokens{}, &oauthError{code: "invalid_grant"}
	}
	scope := cmp.Or(form.Get("scope"), t.grant.scope)
	for one := range strings.SplitSeq(scope, " ") {
		if !slices.Contains(strings.Split(t.grant.scope, " "), one) {
			return tokens{}, &oauthError{code: "invalid_scope"}
		}
	}
	if s.config.FixedRefreshTokens {
		return s.issue(t.grant, scope, false), nil
	}
	t.used = true
	return s.issue(t.grant, scope, true), nil
}

// grant records a person's consent. The server is locked.
func (s *OAuthServer) grant(client OAuthClient, user, scope string) *grant {
	g := &grant{client: client.ID, user: user, scope: scope}
	s.grants = append(s.grants, g)
	return g
}

// issue makes an access token, and a refresh token with it. The server is
// locked.
func (s *OAuthServer) issue(g *grant, scope string, refreshable bool) tokens {
	now := s.config.Now()
	expires := now.Add(s.config.AccessLife)
	access := OAuthToken(g.user, expires)
	s.access[access] = &accessToken{grant: g, scope: scope, expires: expires}
	answer := tokens{
		AccessToken: access, TokenType: "Bearer", Scope: scope,
		ExpiresIn: int64(s.config.AccessLife / time.Second),
	}
	if refreshable && (s.config.OfflineScope == "" || slices.Contains(strings.Split(g.scope, " "), s.config.OfflineScope)) {
		answer.RefreshToken = rand.Text()
		s.refresh[answer.RefreshToken] = &refreshToken{grant: g, expires: now.Add(refreshLife)}
	}
	return answer
}

// introspect tells the mail server about an access token (RFC 7662 section 2).
func (s *OAuthServer) introspect(w http.ResponseWriter, r *http.Request) {
	form, formErr := s.form(w, r)
	record, fault := s.arrive(r.Context(), OAuthRequest{Endpoint: OAuthIntrospect})
	if s.strike(w, r, record, fault) {
		return
	}
	user, password, ok := r.BasicAuth()
	want, _ := s.resource.Password()
	switch {
	case !ok || user != s.resource.Username() || password != want:
		s.refuse(w, record, &oauthError{code: "invalid_client", basic: true})
		return
	case formErr != nil || form.Get("token") == "":
		s.refuse(w, record, &oauthError{code: "invalid_request"})
		return
	}
	answer := map[string]any{"active": false}
	s.mu.Lock()
	if a := s.access[form.Get("token")]; a != nil && !a.refused && !a.grant.revoked && s.config.Now().Before(a.expires) {
		answer = map[string]any{
			"active": true, "client_id": a.grant.client, "scope": a.scope, "token_type": "Bearer",
			"username": a.grant.user, "email": a.grant.user, "sub": a.grant.user, "exp": a.expires.Unix(),
		}
	}
	s.mu.Unlock()
	if fault.Lose {
		panic(http.ErrAbortHandler)
	}
	s.answer(w, answer)
}

// answer sends JSON that may not be cached (RFC 6749 section 5.1).
func (s *OAuthServer) answer(w http.ResponseWriter, v any) {
	s.write(w, http.StatusOK, v)
}

func (s *OAuthServer) refuse(w http.ResponseWriter, record *OAuthRequest, e *oauthError) {
	s.settle(record, e.code)
	status := http.StatusBadRequest
	if e.code == "invalid_client" {
		status = http.StatusUnauthorized
		if e.basic {
			w.Header().Set("WWW-Authenticate", `Basic realm="token"`)
		}
	}
	s.write(w, status, map[string]string{"error": e.code, "error_description": "The request was refused."})
}

func (s *OAuthServer) write(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json;charset=UTF-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Pragma", "no-cache")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func errorCode(e *oauthError) string {
	if e == nil {
		return ""
	}
	return e.code
}
