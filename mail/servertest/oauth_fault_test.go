package servertest

import (
	"strings"
	"testing"
)

// A token that has not expired is refused by the mail server from one moment to
// the next.
func TestOAuthRevokedTokenIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	s := OAuth(t, OAuthConfig{Plaintext: true})
	d := Dovecot(t, Config{Introspection: s.Introspection})
	a := newApp(t, s)
	user := someone()
	first := a.granted(user)
	check := func(what string, user, token string, ok bool) {
		t.Helper()
		if err := enter(t, d, user, token); (err == nil) != ok {
			t.Errorf("%s: %v, want success %v", what, err, ok)
		}
	}
	check("a new token", user, first.AccessToken, true)
	check("another user", someone(), first.AccessToken, false)
	check("an invented token", user, "invented", false)
	s.RefuseAccessTokens()
	check("a refused token", user, first.AccessToken, false)
	second := a.refresh(first.RefreshToken, nil)
	check("the next token", user, second.AccessToken, true)
	s.Revoke(strings.ToUpper(user))
	check("a token of a revoked grant", user, second.AccessToken, false)
	a.wantError(a.refresh(second.RefreshToken, nil), 400, "invalid_grant")
}
