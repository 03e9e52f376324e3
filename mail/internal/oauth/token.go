package oauth

import (
	"context"
	"net/url"
	"strings"
	"time"
)

const (
	// maxToken bounds a token in bytes; the longest that providers make are a few
	// thousand.
	maxToken = 16 << 10

	// maxLife is the longest life an access token is believed to have.
	maxLife = 24 * time.Hour
)

// Token is the answer of the token endpoint.
type Token struct {
	Access Secret
	// Life is how long Access is good, counted from before the request; zero where the
	// provider did not say, and at most a day.
	Life time.Duration
	// Rotated is the refresh token to use from now on; empty where the one that was
	// sent stays good (RFC 6749 section 6).
	Rotated Secret
}

// Refresh gets an access token for a refresh token. If the provider rotates refresh tokens,
// the request can be made only once: the refresh token is then spent, and the Token's
// Rotated replaces it. Rotated is also set when an error says that the rest of the answer
// cannot be used. The error is an *Error.
func (c *Config) Refresh(ctx context.Context, refresh Secret) (Token, error) {
	if err := c.check(nil); err != nil {
		return Token{}, err
	}
	if refresh == "" {
		return Token{}, unusable("there is no refresh token")
	}
	a, err := c.request(ctx, c.TokenURL, c.narrow(url.Values{"grant_type": {"refresh_token"}, "refresh_token": {string(refresh)}}))
	if err != nil {
		return Token{}, err
	}
	t, err := a.token()
	if t.Rotated == refresh {
		t.Rotated = ""
	}
	return t, err
}

// first gets the refresh token for a consent.
func (c *Config) first(ctx context.Context, form url.Values) (Secret, error) {
	a, err := c.request(ctx, c.TokenURL, c.narrow(form))
	if err != nil {
		return "", err
	}
	t, err := a.token()
	if err != nil {
		return "", err
	}
	if t.Rotated == "" {
		return "", senseless("the provider gave no refresh token, without which the consent ends within the hour; the scopes may lack the one for offline access")
	}
	return t.Rotated, nil
}

// token reads a successful answer (RFC 6749 section 5.1). The refresh token is read first
// and by itself: it may be the only good one, even if the rest is invalid.
func (a *answer) token() (t Token, err error) {
	rotated, ok := a.text("refresh_token")
	if !ok || len(rotated) > maxToken || strings.ContainsFunc(rotated, func(r rune) bool { return r < ' ' || r > '~' }) {
		return t, senseless("the provider's refresh token is not valid")
	}
	t.Rotated = Secret(rotated)
	access, ok := a.text("access_token")
	if !ok || access == "" || len(access) > maxToken || strings.ContainsFunc(access, notGraphic) {
		return t, senseless("the provider gave no access token")
	}
	if kind, ok := a.text("token_type"); !ok || kind != "" && !strings.EqualFold(kind, "bearer") {
		return t, senseless("the provider's access token is not of a kind that mail servers take")
	}
	t.Access, t.Life = Secret(access), a.seconds("expires_in", maxLife)
	return t, nil
}
