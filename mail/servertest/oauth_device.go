package servertest

import (
	"crypto/rand"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// slowDown is added to an impatient client's interval (RFC 8628 section 3.5).
const slowDown = 5 * time.Second

// deviceGrant is a device's request to a person.
type deviceGrant struct {
	client, scope    string
	userCode         string
	expires          time.Time
	interval         time.Duration
	asked            time.Time // when the client last asked; zero before
	user             string
	approved, denied bool
	spent            bool
}

// deviceAuthorization is the device authorization endpoint (RFC 8628 section
// 3.1).
func (s *OAuthServer) deviceAuthorization(w http.ResponseWriter, r *http.Request) {
	form, formErr := s.form(w, r)
	record, fault := s.arrive(r.Context(), OAuthRequest{Endpoint: OAuthDevice, Client: claimedClient(r, form)})
	if s.strike(w, r, record, fault) {
		return
	}
	client, failed := s.authenticate(r, form, formErr)
	if failed != nil {
		s.refuse(w, record, failed)
		return
	}
	scope, ok := s.scope(form.Get("scope"))
	if !ok {
		s.refuse(w, record, &oauthError{code: "invalid_scope"})
		return
	}
	code := rand.Text()
	d := &deviceGrant{
		client: client.ID, scope: scope, userCode: userCode(),
		expires: s.config.Now().Add(s.config.DeviceLife), interval: s.config.DeviceInterval,
	}
	s.mu.Lock()
	s.devices[code] = d
	s.mu.Unlock()
	if fault.Lose {
		panic(http.ErrAbortHandler)
	}
	s.answer(w, map[string]any{
		"device_code": code, "user_code": d.userCode,
		"verification_uri":          s.URL + "/device",
		"verification_uri_complete": s.URL + "/device?user_code=" + url.QueryEscape(d.userCode),
		"expires_in":                int64(s.config.DeviceLife / time.Second),
		"interval":                  int64(s.config.DeviceInterval / time.Second),
	})
}

// userCode returns eight letters that spell no word, as RFC 8628 section 6.1
// advises.
func userCode() string {
	const letters = "BCDFGHJKLMNPQRSTVWXZ"
	code := make([]byte, 0, 9)
	var b [1]byte
	for len(code) < cap(code) {
		_, _ = rand.Read(b[:]) // never fails, by its own promise
		switch {
		case len(code) == 4:
			code = append(code, '-')
		case int(b[0]) < 256-256%len(letters): // each letter as likely as the next
			code = append(code, letters[int(b[0])%len(letters)])
		}
	}
	return string(code)
}

// byDevice answers a client that waits for the person (RFC 8628 section 3.5).
// The server is locked.
func (s *OAuthServer) byDevice(client OAuthClient, form url.Values) (tokens, *oauthError) {
	if form.Get("device_code") == "" {
		return tokens{}, &oauthError{code: "invalid_request"}
	}
	d := s.devices[form.Get("device_code")]
	if d == nil || d.client != client.ID || d.spent {
		return tokens{}, &oauthError{code: "invalid_grant"}
	}
	now := s.config.Now()
	early := !d.asked.IsZero() && now.Before(d.asked.Add(d.interval))
	d.asked = now
	switch {
	case !now.Before(d.expires):
		return tokens{}, &oauthError{code: "expired_token"}
	case early:
		d.interval += slowDown
		return tokens{}, &oauthError{code: "slow_down"}
	case d.denied:
		return tokens{}, &oauthError{code: "access_denied"}
	case !d.approved:
		return tokens{}, &oauthError{code: "authorization_pending"}
	}
	d.spent = true
	return s.issue(s.grant(client, d.user, d.scope), d.scope, true), nil
}

// devicePage asks the person for the code that the device shows.
func (s *OAuthServer) devicePage(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	_ = consentPage.Execute(w, consent{"A device", "the code it shows", "/device", "user_code", r.URL.Query().Get("user_code")})
}

// deviceDecide takes the person's decision, once.
func (s *OAuthServer) deviceDecide(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	if err := r.ParseForm(); err != nil {
		http.Error(w, "unreadable form", http.StatusBadRequest)
		return
	}
	user, approved, ok := person(w, r)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.devices {
		// Typed by hand: neither case nor the dash matters.
		if !strings.EqualFold(bare(d.userCode), bare(r.PostForm.Get("user_code"))) {
			continue
		}
		if d.approved || d.denied || !s.config.Now().Before(d.expires) {
			break
		}
		d.user, d.approved, d.denied = user, approved, !approved
		_, _ = w.Write([]byte("Done. Go back to the device.\n"))
		return
	}
	http.Error(w, "there is no such code", http.StatusBadRequest)
}

func bare(code string) string { return strings.ReplaceAll(strings.TrimSpace(code), "-", "") }
