package servertest

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/oauth2"
)

// clock is a time that passes when it is told to.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Now()} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// device is an authorization of a device that is under way.
type device struct {
	*app
	code, user string
}

func (a *app) device() device {
	a.Helper()
	conf := oauth2.Config{ClientID: OAuthClientID, Scopes: []string{"mail"}, Endpoint: oauth2.Endpoint{DeviceAuthURL: a.server.DeviceURL}}
	got, err := conf.DeviceAuth(context.WithValue(a.Context(), oauth2.HTTPClient, a.server.Client()))
	must(a, err)
	if got.VerificationURI != a.server.URL+"/device" || got.VerificationURIComplete != got.VerificationURI+"?user_code="+got.UserCode || got.Interval != 5 {
		a.Errorf("got %+v", got)
	}
	return device{a, got.DeviceCode, got.UserCode}
}

func (d device) ask() tokenAnswer {
	d.Helper()
	return d.post(d.server.TokenURL, url.Values{"grant_type": {grantDevice}, "device_code": {d.code}, "client_id": {OAuthClientID}}, nil)
}

func TestOAuthDeviceWaitsForThePerson(t *testing.T) {
	t.Parallel()
	c := newClock()
	a := newApp(t, OAuth(t, OAuthConfig{Now: c.Now}))
	d, user := a.device(), someone()
	a.wantError(d.ask(), 400, "authorization_pending")
	c.pass(4 * time.Second)
	a.wantError(d.ask(), 400, "slow_down")
	// From here on ten seconds must pass, since the last question.
	c.pass(9 * time.Second)
	a.wantError(d.ask(), 400, "slow_down")
	c.pass(15 * time.Second)
	a.wantError(d.ask(), 400, "authorization_pending")
	must(t, a.server.ApproveDevice(t.Context(), " "+strings.ToLower(strings.ReplaceAll(d.user, "-", "")), user))
	c.pass(15 * time.Second)
	got := d.ask()
	if got.status != http.StatusOK || got.RefreshToken == "" || got.Scope != "mail" {
		t.Fatalf("got %+v", got)
	}
	if err := enter(t, server(t), user, got.AccessToken); err != nil {
		t.Error(err)
	}
	c.pass(time.Minute)
	a.wantError(d.ask(), 400, "invalid_grant") // it is spent
	if err := a.server.ApproveDevice(t.Context(), d.user, user); err == nil {
		t.Error("a code is approved twice")
	}
}
