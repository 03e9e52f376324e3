package servertest

import (
	"crypto/rand"
	"encoding/base64"
	"html/template"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// authorization is a client's request to a person.
type authorization struct {
	client    string
	redirect  *url.URL
	state     string
	stated    bool // state was there, though it may be empty
	scope     string
	challenge string

	user    string // who has agreed
	expires time.Time
	used    *grant // the grant the code was exchanged for
}

var consentPage = template.Must(template.New("").Parse(`<!DOCTYPE html><title>Consent</title>
<p>{{.Client}} asks for: {{.Scope}}</p>
<form method="post" action="{{.Action}}">
<input type="hidden" name="{{.Field}}" value="{{.Value}}">
<input name="user"><input name="password" type="password">
<button name="decision" value="approve">Allow</button><button name="decision" value="deny">Deny</button>
</form>
`))

type consent struct{ Client, Scope, Action, Field, Value string }

// authorize is the authorization endpoint (RFC 6749 section 3.1). The person sees a page,
// and decide gets their decision.
func (s *OAuthServer) authorize(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodPost {
		w.Header().Set("Allow", "GET, POST")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	form, formErr := r.URL.Query(), error(nil)
	if _, err := url.ParseQuery(r.URL.RawQuery); err != nil {
		formErr = err
	}
	if r.Method == http.MethodPost {
		r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
		if formErr = r.ParseForm(); formErr == nil {
			form = r.PostForm
		}
	}
	record, fault := s.arrive(r.Context(), OAuthRequest{Endpoint: OAuthAuthorize, Client: form.Get("client_id")})
	if s.strike(w, r, record, fault) {
		return
	}
	client, known := s.client(form.Get("client_id"))
	redirect := loopback(form.Get("redirect_uri"), client.Path)
	// If these are in doubt, the redirection URI gets no answer (RFC 6749 section 4.1.2.1):
	// the person is told instead.
	if formErr != nil || !known || redirect == nil || len(form["client_id"]) != 1 || len(form["redirect_uri"]) != 1 {
		s.settle(record, "invalid_request")
		http.Error(w, "The application that sent you here is not known, or asks for an answer elsewhere.", http.StatusBadRequest)
		return
	}
	a := &authorization{client: client.ID, redirect: redirect, state: form.Get("state"), stated: form.Has("state")}
	refuse := func(code string) {
		s.settle(record, code)
		s.redirect(w, r, a, url.Values{"error": {code}})
	}
	for name, values := range form {
		if len(values) > 1 {
			if name == "state" {
				a.stated = false // neither of them is the client's
			}
			refuse("invalid_request")
			return
		}
	}
	var ok bool
	if a.scope, ok = s.scope(form.Get("scope")); !ok {
		refuse("invalid_scope")
		return
	}
	a.challenge = form.Get("code_challenge")
	sum, err := base64.RawURLEncoding.Strict().DecodeString(a.challenge)
	switch {
	case form.Get("response_type") == "":
		refuse("invalid_request")
	case form.Get("response_type") != "code":
		refuse("unsupported_response_type")
	// A challenge without a method is a plain one (RFC 7636 section 4.3).
	case form.Get("code_challenge_method") != "S256", err != nil, len(sum) != 32:
		refuse("invalid_request")
	default:
		id := rand.Text()
		s.mu.Lock()
		s.pending[id] = a
		s.mu.Unlock()
		w.Header().Set("Cache-Control", "no-store")
		_ = consentPage.Execute(w, consent{a.client, a.scope, "/authorize/decide", "request", id})
	}
}

// decide takes the person's decision, once.
func (s *OAuthServer) decide(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	if err := r.ParseForm(); err != nil {
		http.Error(w, "unreadable form", http.StatusBadRequest)
		return
	}
	user, approved, ok := person(w, r)
	if !ok {
		return
	}
	id := r.PostForm.Get("request")
	s.mu.Lock()
	a := s.pending[id]
	delete(s.pending, id)
	s.mu.Unlock()
	if a == nil {
		http.Error(w, "this page has been used", http.StatusBadRequest)
		return
	}
	if !approved {
		s.redirect(w, r, a, url.Values{"error": {"access_denied"}})
		return
	}
	code := rand.Text()
	s.mu.Lock()
	a.user, a.expires = user, s.config.Now().Add(s.config.CodeLife)
	s.codes[code] = a
	s.mu.Unlock()
	s.redirect(w, r, a, url.Values{"code": {code}})
}

// person reads a filled-in consent page.
func person(w http.ResponseWriter, r *http.Request) (user string, approved, ok bool) {
	user = r.PostForm.Get("user")
	switch r.PostForm.Get("decision") {
	case "approve":
		if user == "" || r.PostForm.Get("password") != Password {
			http.Error(w, "wrong user name or password", http.StatusForbidden)
			return "", false, false
		}
		return user, true, true
	case "deny":
		return "", false, true
	default:
		http.Error(w, "no decision", http.StatusBadRequest)
		return "", false, false
	}
}

// redirect sends the person back to the client. It is a 303, so that no browser
// posts what the person typed to the client (RFC 9700 section 4.12).
func (s *OAuthServer) redirect(w http.ResponseWriter, r *http.Request, a *authorization, answer url.Values) {
	if a.stated {
		answer.Set("state", a.state)
	}
	answer.Set("iss", s.URL) // RFC 9207
	to := *a.redirect
	if to.RawQuery != "" {
		to.RawQuery += "&" // the client's own query stays (RFC 6749 section 3.1.2)
	}
	to.RawQuery += answer.Encode()
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	http.Redirect(w, r, to.String(), http.StatusSeeOther)
}

// loopback returns a redirection URI that is allowed: http to 127.0.0.1 with a
// port (RFC 8252 section 7.3), without a fragment (RFC 6749 section 3.1.2). It
// returns nil for any other.
func loopback(raw, path string) *url.URL {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "http" || u.User != nil || u.Opaque != "" || strings.Contains(raw, "#") {
		return nil
	}
	at, err := netip.ParseAddrPort(u.Host)
	if err != nil || at.Addr() != netip.AddrFrom4([4]byte{127, 0, 0, 1}) || at.Port() == 0 {
		return nil
	}
	if path != "" && u.Path != path {
		return nil
	}
	return u
}
