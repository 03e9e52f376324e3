package oauth

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postern-mail/postern/mail/internal/wire"
	"github.com/postern-mail/postern/mail/servertest"
)

// fakeClock is a fake clock that moves only by waits.
type fakeClock struct {
	mu    sync.Mutex
	at    time.Time
	waits []time.Duration
	// turned is called after each wait with the number of waits so far.
	turned func(n int)
}

func newFakeClock() *fakeClock { return &fakeClock{at: time.Now()} }

func (h *fakeClock) now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.at
}

func (h *fakeClock) wait(ctx context.Context, d time.Duration) error {
	h.mu.Lock()
	h.at = h.at.Add(d)
	h.waits = append(h.waits, d)
	n := len(h.waits)
	h.mu.Unlock()
	if h.turned != nil {
		h.turned(n)
	}
	return ctx.Err()
}

func TestDeviceWithoutConsent(t *testing.T) {
	t.Parallel()
	h := newFakeClock()
	s := servertest.OAuth(t, servertest.OAuthConfig{DeviceLife: time.Minute, Now: h.now})
	c := of(s)
	c.now, c.wait = h.now, h.wait
	_, err := c.Device(t.Context(), func(string, string) {})
	failed(t, err, wire.KindExpired)
	if len(h.waits) != 12 {
		t.Errorf("%d questions in a minute, 5 s apart", len(h.waits))
	}
	s = servertest.OAuth(t, servertest.OAuthConfig{})
	ctx, cancel := context.WithCancel(t.Context())
	// The real clock, so that the wait itself must end.
	_, err = of(s).Device(ctx, func(string, string) { cancel() })
	failed(t, err, wire.KindTimeout)
}

// deviceServer starts a fake server that answers a device authorization with start and
// then each poll with the next of polls; after those it grants the consent.
func deviceServer(t *testing.T, start string, polls ...func(http.ResponseWriter, url.Values)) (*fakeEndpoint, *Config, *fakeClock) {
	t.Helper()
	e := startEndpoint(t, func(w http.ResponseWriter, form url.Values) {
		if form.Get("grant_type") == "" {
			reply(200, start)(w, form)
			return
		}
		if form.Get("device_code") != canaryWords || form.Get("grant_type") != "urn:ietf:params:oauth:grant-type:device_code" {
			t.Errorf("asked with %v", form)
		}
		if len(polls) == 0 {
			reply(200, codeAnswer)(w, form)
			return
		}
		next := polls[0]
		polls = polls[1:]
		next(w, form)
	})
	h := newFakeClock()
	c := e.config()
	c.now, c.wait = h.now, h.wait
	return e, c, h
}

const deviceStart = `{"device_code":"` + canaryWords + `","user_code":"ABCD-EFGH","verification_uri":"https://example.org/device","expires_in":1800,"interval":3}`

func TestDevicePollingKeepsTheServersInterval(t *testing.T) {
	t.Parallel()
	code := func(code string) func(http.ResponseWriter, url.Values) { return reply(400, oauthCode(code)) }
	hangUp := func(http.ResponseWriter, url.Values) { panic(http.ErrAbortHandler) }
	later := func(w http.ResponseWriter, f url.Values) {
		w.Header().Set("Retry-After", "100")
		reply(503, "")(w, f)
	}
	_, c, h := deviceServer(t, deviceStart, code(codePending), code(codeSlowDown), code(codePending), code(codeSlowDown), hangUp, reply(500, ""), hangUp, later)
	refresh, err := c.Device(t.Context(), func(string, string) {})
	if err != nil || refresh != canaryRefresh {
		t.Fatal(err)
	}
	want := "[3s 3s 8s 8s 13s 26s 52s 1m0s 1m40s]"
	if got := fmt.Sprint(h.waits); got != want {
		t.Errorf("waited %s, want %s", got, want)
	}
}

func TestDevicePollingEndsAtAPermanentError(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]wire.Kind{
		oauthCode("access_denied"): wire.KindDenied, oauthCode("expired_token"): wire.KindExpired, oauthCode("invalid_grant"): wire.KindConsent,
		oauthCode("invalid_client"): wire.KindRefused, canaryWords: wire.KindProtocol, `{"access_token":"a"}`: wire.KindProtocol,
	} {
		e, c, _ := deviceServer(t, deviceStart, func(w http.ResponseWriter, f url.Values) {
			status := 400
			if answer == `{"access_token":"a"}` {
				status = 200
			}
			reply(status, answer)(w, f)
		})
		_, err := c.Device(t.Context(), func(string, string) {})
		failed(t, err, want)
		if e.count() != 2 {
			t.Errorf("%s: %d requests", answer, e.count())
		}
	}
}

func TestHostileDeviceAuthorizations(t *testing.T) {
	t.Parallel()
	with := func(name, value string) string {
		fields := map[string]string{
			"device_code": `"` + canaryWords + `"`, "user_code": `"ABCD"`, "verification_uri": `"https://example.org/device"`, "expires_in": "1800", "interval": "5",
		}
		fields[name] = value
		text, comma := "{", ""
		for n, v := range fields {
			if v != "" {
				text += comma + `"` + n + `":` + v
				comma = ","
			}
		}
		return text + "}"
	}
	for _, c := range []struct{ name, value string }{
		{"device_code", ``}, {"device_code", `""`}, {"device_code", `7`}, {"device_code", `"` + long(maxCode+1) + `"`},
		{"user_code", ``}, {"user_code", `""`}, {"user_code", `"\u001b[2J"`}, {"user_code", `"a\nb"`}, {"user_code", `"\u202eabc"`}, {"user_code", `"` + long(65) + `"`}, {"user_code", `12345`},
		{"verification_uri", ``}, {"verification_uri", `"http://example.org/"`}, {"verification_uri", `"javascript:alert(1)"`}, {"verification_uri", `"https://example.org/\u001b]8;;"`}, {"verification_uri", `"https://bank.example@example.org/"`}, {"verification_uri", `["https://example.org/"]`},
	} {
		e, config, _ := deviceServer(t, with(c.name, c.value))
		_, err := config.Device(t.Context(), func(string, string) { t.Errorf("%s %s is shown", c.name, c.value) })
		failed(t, err, wire.KindProtocol)
		if e.count() != 1 {
			t.Errorf("%s %s: %d requests", c.name, c.value, e.count())
		}
	}
	for _, c := range []struct {
		name, value string
		wait        time.Duration
	}{
		{"interval", ``, 5 * time.Second}, {"interval", `0`, 5 * time.Second}, {"interval", `-5`, 5 * time.Second}, {"interval", `null`, 5 * time.Second},
		{"interval", `0.001`, time.Second}, {"interval", `"7"`, 7 * time.Second}, {"interval", `1e18`, maxInterval}, {"interval", `"x"`, 5 * time.Second},
		{"expires_in", ``, 5 * time.Second}, {"expires_in", `-1`, 5 * time.Second}, {"expires_in", `1e300`, 5 * time.Second},
	} {
		_, config, h := deviceServer(t, with(c.name, c.value))
		if _, err := config.Device(t.Context(), func(string, string) {}); err != nil || h.waits[0] != c.wait {
			t.Errorf("%s %s: %v after %v, want %v", c.name, c.value, err, h.waits, c.wait)
		}
	}
	// The address in Google's field, and a code with a space.
	_, google, _ := deviceServer(t, `{"device_code":"`+canaryWords+`","user_code":"A B","verification_url":"https://example.org/d"}`)
	shown := ""
	if _, err := google.Device(t.Context(), func(verification, code string) { shown = verification + " " + code }); err != nil || shown != "https://example.org/d A B" {
		t.Errorf("%q: %v", shown, err)
	}
	// The wait is bounded for any lifetime of the code.
	for start, most := range map[string]time.Duration{with("expires_in", "1e300"): maxPatience, with("expires_in", ""): defaultPatience} {
		start = strings.Replace(start, `"interval":5`, `"interval":60`, 1)
		h := newFakeClock()
		began := h.now()
		h.turned = func(n int) {
			if n > 5000 {
				panic("it never ends")
			}
		}
		forever := startEndpoint(t, func(w http.ResponseWriter, form url.Values) {
			if form.Get("grant_type") == "" {
				reply(200, start)(w, form)
				return
			}
			reply(400, oauthCode(codePending))(w, form)
		}).config()
		forever.now, forever.wait = h.now, h.wait
		_, err := forever.Device(t.Context(), func(string, string) {})
		failed(t, err, wire.KindExpired)
		if waited := h.now().Sub(began); waited > most+maxInterval {
			t.Errorf("it took %v", waited)
		}
	}
}
