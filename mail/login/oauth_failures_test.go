package login

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/servertest"
)

func TestConsentThatIsGoneIsAskedForOnce(t *testing.T) {
	t.Parallel()
	b := newOAuthFixture(t, servertest.OAuthConfig{})
	b.server.Revoke("ann")
	for range 10 {
		_, err := b.source.Token(t.Context(), b.a)
		e := b.refused(err, mail.KindAuth)
		if !errors.Is(err, ErrConsentGone) || e.Retryable || e.Advice != mail.AdviceAuthorize {
			t.Errorf("got %+v", e)
		}
		b.clock.advance(time.Hour)
	}
	b.refreshes(1)
	b.store.set("work", mail.OAuthSecrets{RefreshToken: authorized(t, b.server, b.a)})
	b.token()
	b.refreshes(2)
}

func TestAnAccountThatIsNotAuthorizedYet(t *testing.T) {
	t.Parallel()
	b := newOAuthFixture(t, servertest.OAuthConfig{})
	refresh := b.store.get("work")
	b.store.set("work", mail.OAuthSecrets{})
	_, err := b.source.Token(t.Context(), b.a)
	if e := b.refused(err, mail.KindConfig); !errors.Is(err, mail.ErrNoConsent) || e.Advice != mail.AdviceAuthorize {
		t.Errorf("got %+v", e)
	}
	b.refreshes(0)
	b.store.set("work", refresh)
	b.token() // at once
}

func TestAClientThatIsRefusedAsksAgainAfterAPause(t *testing.T) {
	t.Parallel()
	b := newOAuthFixture(t, servertest.OAuthConfig{FixedRefreshTokens: true})
	b.server.FailNext(servertest.OAuthTokens, servertest.OAuthFault{Error: "invalid_client"})
	for range 5 {
		_, err := b.source.Token(t.Context(), b.a)
		if e := b.refused(err, mail.KindConfig); e.Retryable || e.Advice != mail.AdviceEditOAuth {
			t.Errorf("got %+v", e)
		}
	}
	b.refreshes(1)
	t.Run("but at once with another secret", func(t *testing.T) {
		s := b.store.get("work")
		s.ClientSecret = mail.NewSecret([]byte("canary"))
		b.store.set("work", s)
		_, err := b.source.Token(t.Context(), b.a) // the server knows no such secret
		b.refused(err, mail.KindConfig)
		s.ClientSecret = mail.Secret{}
		b.store.set("work", s)
	})
	b.token()
	b.source.Refused(b.a, mail.NewSecret([]byte(b.token())))
	b.server.FailNext(servertest.OAuthTokens, servertest.OAuthFault{Error: "invalid_scope"})
	n := b.server.Refreshes()
	for range 5 {
		_, err := b.source.Token(t.Context(), b.a)
		b.refused(err, mail.KindConfig)
	}
	b.refreshes(n + 1)
	b.clock.advance(failedPause)
	b.token()
}

// What may be over at once is asked again at once, an answer that makes no sense after a
// pause.
func TestWhatIsAskedAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault     servertest.OAuthFault
		temporary bool
	}{
		"500":     {servertest.OAuthFault{Status: 500, Body: []byte("canary")}, true},
		"gone":    {servertest.OAuthFault{Lose: true}, true},
		"garbage": {servertest.OAuthFault{Body: []byte("canary")}, false},
	} {
		b := newOAuthFixture(t, servertest.OAuthConfig{FixedRefreshTokens: c.temporary}) // what is lost may have rotated
		b.server.FailNext(servertest.OAuthTokens, c.fault)
		_, err := b.source.Token(t.Context(), b.a)
		if e := b.refused(err, mail.KindConnection); e.Retryable != c.temporary {
			t.Errorf("%s: got %+v", name, e)
		}
		if !c.temporary {
			_, err = b.source.Token(t.Context(), b.a)
			b.refused(err, mail.KindConnection)
			b.refreshes(1)
			b.clock.advance(failedPause)
		}
		b.token()
	}
}

// bareEndpoint is an account whose provider is a handler of the test's.
func bareEndpoint(t *testing.T, h http.HandlerFunc) (*mail.Account, *atomic.Int64) {
	t.Helper()
	var n atomic.Int64
	s := newLoopbackServer(t, func(w http.ResponseWriter, r *http.Request) {
		n.Add(1)
		h(w, r)
	})
	return &mail.Account{Name: "work", Username: "ann", Auth: mail.AuthOAuth2, OAuth: mail.OAuth{
		Provider: "custom", ClientID: "client", AuthURL: s, TokenURL: s, DeviceURL: s,
	}}, &n
}

func TestAProviderThatWantsToBeLeftAlone(t *testing.T) {
	t.Parallel()
	busy := true
	var mu sync.Mutex
	a, n := bareEndpoint(t, func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if busy {
			busy = false
			w.Header().Set("Retry-After", "60")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		_, _ = w.Write([]byte(`{"access_token":"a","token_type":"bearer"}`))
	})
	clock := newFakeClock()
	store := newFakeTokenStore("work", mail.OAuthSecrets{RefreshToken: mail.NewSecret([]byte("canary"))})
	source := newOAuthSource(store, clock.now)
	defer source.Close()
	for range 5 {
		_, err := source.Token(t.Context(), a)
		if e := oauthFailed(t, err, mail.KindConnection); !e.Retryable {
			t.Errorf("got %+v", e)
		}
	}
	if n.Load() != 1 {
		t.Errorf("%d requests", n.Load())
	}
	clock.advance(time.Minute)
	if s, err := source.Token(t.Context(), a); err != nil || s.Reveal() != "a" {
		t.Error(err)
	}
	// Nobody said how long it is good.
	clock.advance(assumedLife - earlyBy - time.Second)
	if _, err := source.Token(t.Context(), a); err != nil || n.Load() != 2 {
		t.Errorf("%v after %d requests", err, n.Load())
	}
	clock.advance(time.Second)
	if _, err := source.Token(t.Context(), a); err != nil || n.Load() != 3 {
		t.Errorf("%v after %d requests", err, n.Load())
	}
}

func TestARotatedTokenIsKeptThoughTheAccessTokenIsUseless(t *testing.T) {
	t.Parallel()
	a, n := bareEndpoint(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"access_token":"canary","token_type":"mac","refresh_token":"canary-new"}`))
	})
	store := newFakeTokenStore("work", mail.OAuthSecrets{RefreshToken: mail.NewSecret([]byte("canary-old"))})
	source := newOAuthSource(store, nil)
	defer source.Close()
	for range 3 {
		_, err := source.Token(t.Context(), a)
		oauthFailed(t, err, mail.KindConnection)
	}
	if got := store.get("work").RefreshToken.Reveal(); got != "canary-new" {
		t.Errorf("kept %q", got)
	}
	if n.Load() != 1 {
		t.Errorf("%d requests", n.Load())
	}
}

func TestNoAccessTokenBeforeItsRefreshTokenIsDurable(t *testing.T) {
	t.Parallel()
	b := newOAuthFixture(t, servertest.OAuthConfig{})
	full := errors.New("the disk is full")
	b.store.keeping = full
	s, err := b.source.Token(t.Context(), b.a)
	if !s.IsZero() || !errors.Is(err, full) {
		t.Fatalf("a token that came with a lost one: %v", err)
	}
	// What is there is spent, and the provider says so.
	s, err = b.source.Token(t.Context(), b.a)
	if e := b.refused(err, mail.KindAuth); !s.IsZero() || !errors.Is(e, ErrConsentGone) {
		t.Errorf("got %+v", e)
	}
}

func TestAConsentThatChangesUnderWayIsUsedAtOnce(t *testing.T) {
	t.Parallel()
	b := newOAuthFixture(t, servertest.OAuthConfig{FixedRefreshTokens: true})
	b.store.changed = 1
	b.token()
	b.refreshes(2)
	b.source.Refused(b.a, mail.NewSecret([]byte(b.token())))
	b.store.changed = 2
	_, err := b.source.Token(t.Context(), b.a)
	if e := b.refused(err, mail.KindConfig); !e.Retryable || !errors.Is(err, mail.ErrConsentChanged) {
		t.Errorf("got %+v", e)
	}
	b.refreshes(4)
}

func TestSettingsThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	source := newOAuthSource(newFakeTokenStore("work", mail.OAuthSecrets{RefreshToken: mail.NewSecret([]byte("canary"))}), nil)
	defer source.Close()
	for name, o := range map[string]mail.OAuth{
		"nothing":     {},
		"no client":   {Provider: "google"},
		"no provider": {ClientID: "c"},
		"tenant":      {Provider: "microsoft", ClientID: "c", Tenant: "../x"},
	} {
		a := &mail.Account{Name: "work", Auth: mail.AuthOAuth2, OAuth: o}
		s, err := source.Token(t.Context(), a)
		if e := oauthFailed(t, err, mail.KindConfig); e.Retryable || !s.IsZero() {
			t.Errorf("%s: got %+v", name, e)
		}
		if source.Refused(a, s) {
			t.Errorf("%s: another try", name)
		}
	}
	a := &mail.Account{Name: "work", Auth: mail.AuthPassword, OAuth: mail.OAuth{Provider: "google", ClientID: "c"}}
	_, err := source.Token(t.Context(), a)
	oauthFailed(t, err, mail.KindConfig)
	a.Auth, a.CAPEM = mail.AuthOAuth2, []byte("no certificate")
	_, err = source.Token(t.Context(), a)
	oauthFailed(t, err, mail.KindConfig)
	_, err = newOAuthSource(nil, nil).Token(t.Context(), &mail.Account{Name: "work", Auth: mail.AuthOAuth2, OAuth: mail.OAuth{Provider: "google", ClientID: "c"}})
	oauthFailed(t, err, mail.KindConfig)
}

func TestOtherSettingsNeedAnotherToken(t *testing.T) {
	t.Parallel()
	b := newOAuthFixture(t, servertest.OAuthConfig{})
	first := b.token()
	b.a.Username = "bob"
	if b.token() == first {
		t.Error("one person's token for another")
	}
	b.refreshes(2)
}

// fakeStuckStore never gets its turn.
type fakeStuckStore struct{}

func (fakeStuckStore) RefreshToken(ctx context.Context, _ string, _ func(context.Context, mail.OAuthSecrets) (mail.Secret, error)) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestARefreshEndsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newOAuthSource(fakeStuckStore{}, nil)
		a := &mail.Account{Name: "work", Auth: mail.AuthOAuth2, OAuth: mail.OAuth{Provider: "google", ClientID: "c"}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := source.Token(ctx, a)
		if e := oauthFailed(t, err, mail.KindTimeout); !errors.Is(e, context.DeadlineExceeded) {
			t.Errorf("got %+v", e)
		}
		start := time.Now()
		_, err = source.Token(t.Context(), a) // joins the one that is under way
		if e := oauthFailed(t, err, mail.KindTimeout); !e.Retryable || time.Since(start) != refreshTime-time.Second {
			t.Errorf("got %+v after %v", e, time.Since(start))
		}
		source.Close() // and the bubble sees that no goroutine is left
	})
}
