package login

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/servertest"
)

// fakeTokenStore is a TokenStore in memory.
type fakeTokenStore struct {
	turn chan struct{} // one place

	mu      sync.Mutex
	secrets map[string]mail.OAuthSecrets
	keeping error // what keeping a rotated token fails with
	changed int   // how many loans are overtaken by another consent
}

func newFakeTokenStore(account string, s mail.OAuthSecrets) *fakeTokenStore {
	return &fakeTokenStore{turn: make(chan struct{}, 1), secrets: map[string]mail.OAuthSecrets{account: s}}
}

func (f *fakeTokenStore) set(account string, s mail.OAuthSecrets) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.secrets[account] = s
}

func (f *fakeTokenStore) get(account string) mail.OAuthSecrets {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.secrets[account]
}

func (f *fakeTokenStore) RefreshToken(ctx context.Context, account string, exchange func(context.Context, mail.OAuthSecrets) (mail.Secret, error)) error {
	if account != "other" { // which has a place of its own
		select {
		case f.turn <- struct{}{}:
			defer func() { <-f.turn }()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s := f.get(account)
	if s.RefreshToken.IsZero() {
		return fmt.Errorf("%w: %s", mail.ErrNoConsent, account)
	}
	rotated, err := exchange(ctx, s)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.changed > 0 {
		f.changed--
		return fmt.Errorf("%w: %s", mail.ErrConsentChanged, account)
	}
	if !rotated.IsZero() {
		if f.keeping != nil {
			return f.keeping
		}
		s.RefreshToken = rotated
		f.secrets[account] = s
	}
	return nil
}

// fakeClock is a clock that a test sets, safe for concurrent use.
type fakeClock struct{ at atomic.Int64 }

func newFakeClock() *fakeClock {
	h := &fakeClock{}
	h.at.Store(time.Now().UnixNano())
	return h
}

func (h *fakeClock) now() time.Time          { return time.Unix(0, h.at.Load()) }
func (h *fakeClock) advance(d time.Duration) { h.at.Add(int64(d)) }

func oauthTestAccount(s *servertest.OAuthServer) *mail.Account {
	return &mail.Account{Name: "work", Username: "ann", Auth: mail.AuthOAuth2, CAPEM: s.CAPEM, OAuth: mail.OAuth{
		Provider: "custom", ClientID: servertest.OAuthClientID, AuthURL: s.AuthorizeURL, TokenURL: s.TokenURL, DeviceURL: s.DeviceURL,
	}}
}

// authorized returns a refresh token that a person agreed to.
func authorized(t testing.TB, s *servertest.OAuthServer, a *mail.Account) mail.Secret {
	t.Helper()
	refresh, err := Authorize(t.Context(), a, mail.Secret{}, AuthorizeOptions{Show: func(url, code string) {
		if err := s.Approve(t.Context(), url, a.Username); err != nil || code != "" {
			t.Errorf("%v; code %q", err, code)
		}
	}})
	must(t, err)
	return refresh
}

type oauthFixture struct {
	*testing.T
	server *servertest.OAuthServer
	a      *mail.Account
	store  *fakeTokenStore
	clock  *fakeClock
	source *oauthSource
}

func newOAuthFixture(t *testing.T, c servertest.OAuthConfig) *oauthFixture {
	t.Helper()
	clock := newFakeClock()
	c.Now = clock.now
	s := servertest.OAuth(t, c)
	a := oauthTestAccount(s)
	store := newFakeTokenStore(a.Name, mail.OAuthSecrets{RefreshToken: authorized(t, s, a)})
	b := &oauthFixture{T: t, server: s, a: a, store: store, clock: clock, source: newOAuthSource(store, clock.now)}
	t.Cleanup(b.source.Close)
	return b
}

func (b *oauthFixture) token() string {
	b.Helper()
	s, err := b.source.Token(b.Context(), b.a)
	must(b, err)
	if s.IsZero() {
		b.Fatal("an empty token")
	}
	return s.Reveal()
}

func (b *oauthFixture) refreshes(want int) {
	b.Helper()
	if got := b.server.Refreshes(); got != want {
		b.Errorf("%d refreshes, want %d", got, want)
	}
}

// refused checks a failure, and that nothing of it tells a secret.
func (b *oauthFixture) refused(err error, kind mail.Kind) *mail.Error {
	b.Helper()
	return oauthFailed(b, err, kind)
}

func oauthFailed(t testing.TB, err error, kind mail.Kind) *mail.Error {
	t.Helper()
	var e *mail.Error
	if !errors.As(err, &e) || e.Kind != kind {
		t.Fatalf("error %#v (%v), want an *Error of kind %s", err, err, kind)
	}
	if e.Op == "" || e.Account != "work" || !strings.HasSuffix(e.Message, ".") || e.Advice == "" {
		t.Errorf("the error is incomplete: %+v", e)
	}
	encoded, _ := json.Marshal(e)
	text := fmt.Sprintf("%v %+v %#v %q %s %s", e, e, e, e, encoded, e.Message+string(e.Advice))
	for cause := error(e); cause != nil; cause = errors.Unwrap(cause) {
		text += cause.Error() + fmt.Sprintf("%+v", cause)
	}
	if strings.Contains(text, "canary") {
		t.Errorf("the error tells a secret: %s", text)
	}
	return e
}

func TestOAuthTokenIsKeptUntilShortlyBeforeItsEnd(t *testing.T) {
	t.Parallel()
	for life, early := range map[time.Duration]time.Duration{time.Hour: time.Minute, 100 * time.Second: 10 * time.Second} {
		b := newOAuthFixture(t, servertest.OAuthConfig{AccessLife: life})
		first := b.token()
		b.clock.advance(life - early - time.Second)
		if b.token() != first {
			t.Errorf("life %v: renewed too early", life)
		}
		b.refreshes(1)
		b.clock.advance(time.Second)
		if second := b.token(); second == first {
			t.Errorf("life %v: not renewed %v before the end", life, early)
		}
		b.refreshes(2)
	}
}

func TestOAuthTokenBelongsToWhoGotIt(t *testing.T) {
	t.Parallel()
	b := newOAuthFixture(t, servertest.OAuthConfig{})
	for range 2 { // fresh, and from memory
		s, err := b.source.Token(t.Context(), b.a)
		must(t, err)
		s.Wipe()
	}
	if strings.ContainsRune(b.token(), 0) {
		t.Error("who wipes a token wipes everybody's")
	}
	b.refreshes(1)
}

func TestFiftyCallersAtTheEndOfATokenRefreshOnce(t *testing.T) {
	t.Parallel()
	b := newOAuthFixture(t, servertest.OAuthConfig{})
	b.token()
	b.clock.advance(2 * time.Hour)
	held, release := make(chan struct{}), make(chan struct{})
	b.server.FailNext(servertest.OAuthTokens, servertest.OAuthFault{Hold: func(context.Context) { close(held); <-release }})
	var all sync.WaitGroup
	var tokens sync.Map
	started := make(chan struct{}, 50)
	for range 50 {
		all.Go(func() {
			started <- struct{}{}
			s, err := b.source.Token(t.Context(), b.a)
			if err != nil {
				t.Error(err)
			}
			tokens.Store(s.Reveal(), true)
		})
	}
	for range 50 {
		<-started
	}
	<-held
	close(release)
	all.Wait()
	n := 0
	tokens.Range(func(any, any) bool { n++; return true })
	if n != 1 {
		t.Errorf("%d different tokens", n)
	}
	b.refreshes(2)
}

// A refresh goes on when its caller gives up: the next one gets what it brings, and
// Close waits for it, so that a rotated token is not lost.
func TestARefreshSurvivesItsCaller(t *testing.T) {
	t.Parallel()
	for _, ends := range []bool{false, true} {
		b := newOAuthFixture(t, servertest.OAuthConfig{})
		before := b.store.get("work").RefreshToken.Reveal()
		held, release := make(chan struct{}), make(chan struct{})
		b.server.FailNext(servertest.OAuthTokens, servertest.OAuthFault{Hold: func(context.Context) { close(held); <-release }})
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-held; cancel() }()
		_, err := b.source.Token(ctx, b.a)
		if e := b.refused(err, mail.KindTimeout); !errors.Is(e, context.Canceled) {
			t.Errorf("the cause is %v", e.Err)
		}
		done := make(chan error, 1)
		go func() {
			if ends {
				b.source.Close()
				done <- nil
				return
			}
			s, err := b.source.Token(t.Context(), b.a)
			if s.IsZero() && err == nil {
				err = errors.New("an empty token")
			}
			done <- err
		}()
		close(release)
		if err := <-done; err != nil {
			t.Errorf("the next caller: %v", err)
		}
		if b.store.get("work").RefreshToken.Reveal() == before {
			t.Error("the rotated token is lost")
		}
		if ends {
			_, err := b.source.Token(t.Context(), b.a)
			b.refused(err, mail.KindConnection)
			if b.source.Refused(b.a, mail.NewSecret([]byte("x"))) {
				t.Error("another token after the end")
			}
		}
		b.refreshes(1)
	}
}

func TestNoAccountWaitsForAnother(t *testing.T) {
	t.Parallel()
	b := newOAuthFixture(t, servertest.OAuthConfig{})
	other := *b.a
	other.Name = "other"
	b.store.set("other", mail.OAuthSecrets{RefreshToken: authorized(t, b.server, &other)})
	held, release := make(chan struct{}), make(chan struct{})
	b.server.FailNext(servertest.OAuthTokens, servertest.OAuthFault{Hold: func(context.Context) { close(held); <-release }})
	done := make(chan error, 1)
	go func() {
		_, err := b.source.Token(t.Context(), b.a)
		done <- err
	}()
	<-held
	if _, err := b.source.Token(t.Context(), &other); err != nil {
		t.Error(err)
	}
	if b.source.Refused(b.a, mail.NewSecret([]byte("x"))) != true {
		t.Error("Refused does not expect the token that is on its way")
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestRefusedTokens(t *testing.T) {
	t.Parallel()
	b := newOAuthFixture(t, servertest.OAuthConfig{})
	secret := func(s string) mail.Secret { return mail.NewSecret([]byte(s)) }
	if b.source.Refused(b.a, secret("x")) {
		t.Error("a token for an account that never had one")
	}
	first := b.token()
	if !b.source.Refused(b.a, secret(first)) {
		t.Fatal("the only token was refused, and no other is tried")
	}
	// A second connection was refused with the same one.
	if !b.source.Refused(b.a, secret(first)) {
		t.Error("no other is tried on a second connection")
	}
	second := b.token()
	if second == first {
		t.Fatal("the refused token again")
	}
	// A third connection is late: the newer one stays.
	if !b.source.Refused(b.a, secret(first)) || b.token() != second {
		t.Error("a newer token was thrown away")
	}
	b.refreshes(2)
	// The server does not like the new one either: it is not the token.
	for range 5 {
		if b.source.Refused(b.a, secret(second)) {
			t.Error("another try after another token was refused at once")
		}
		if b.token() != second {
			t.Error("the token is renewed for nothing")
		}
	}
	b.refreshes(2)
	// The owner has agreed anew: what that gives is tried at once.
	again := b.store.get("work")
	again.Consent = "another"
	b.store.set("work", again)
	third := b.token()
	if third == second {
		t.Error("a refused token outlives the consent it rests on")
	}
	b.refreshes(3)
	// What was read of the account is older than the consent.
	moved := again
	moved.RefreshToken, moved.Consent = b.store.get("work").RefreshToken, "yet another"
	moved.OAuth = mail.OAuth{Provider: "google", ClientID: "x"}
	b.store.set("work", moved)
	if !b.source.Refused(b.a, secret(third)) {
		t.Error("the first token of a consent is kept when it is refused")
	}
	if _, err := b.source.Token(t.Context(), b.a); !errors.Is(err, mail.ErrConsentChanged) {
		t.Errorf("the token of another provider was sent to this one: %v", err)
	}
	b.refreshes(3)
	moved.OAuth = b.a.OAuth
	b.store.set("work", moved)
	second = b.token()
	b.refreshes(4)
	// Much later that token has been taken back.
	b.clock.advance(refusedPause)
	if !b.source.Refused(b.a, secret(second)) || b.token() == second {
		t.Error("no other token after a while")
	}
	b.refreshes(5)
	// A token that took the place of one that had simply ended is like the first.
	b.clock.advance(2 * time.Hour)
	if old := b.token(); !b.source.Refused(b.a, secret(old)) {
		t.Error("a token that was never refused before is kept")
	}
	changed := *b.a
	changed.OAuth.Scopes = []string{"mail"}
	if b.source.Refused(&changed, secret("x")) {
		t.Error("another token for settings that were never used")
	}
}
