package login

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/oauth"
	"github.com/postern-mail/postern/mail/internal/wire"
)

const (
	opToken = "mail login"

	// refreshTime bounds one refresh: the wait for other processes and the request. It
	// does not end with the caller's patience, since a provider that rotates refresh
	// tokens may have spent the old one already.
	refreshTime = 2 * time.Minute

	// assumedLife is how long an access token is taken to be good when the provider does not
	// say. If it is not, a mail server refuses it, which also renews it.
	assumedLife = time.Hour

	// earlyBy is how long before its end a token is renewed, or a tenth of its life
	// if that is shorter: no login begins with a token that ends under way.
	earlyBy = time.Minute

	// refusedPause is how long a token that replaced a refused one is kept. A mail server that
	// refuses it too does so for another reason.
	refusedPause = time.Minute

	// failedPause is how long the provider is not asked again, with the same secrets
	// and settings, after it refused the client. A consent that is no longer accepted is not
	// tried again at all.
	failedPause = time.Minute
)

// oauthSource gets the access tokens of accounts with AuthOAuth2 and keeps them in
// memory. It is safe for concurrent use, and no account waits for another.
type oauthSource struct {
	store mail.TokenStore
	now   func() time.Time
	graph bool // its tokens are for Microsoft Graph, of accounts that send with it

	mu        sync.Mutex // never held while anything is waited for
	closed    bool
	accounts  map[string]*oauthAccount // by name
	refreshes sync.WaitGroup
}

// oauthAccount is the state of an account as long as its settings stay.
type oauthAccount struct {
	settings string
	token    mail.Secret // zero for none
	renewAt  time.Time

	refused bool      // the last token was dropped because a server refused it
	renewed time.Time // when token was got in place of a refused one; zero if it was not
	doubted bool      // token was refused in its turn
	consent string    // that token rests on

	running *oauthRefresh // the refresh under way, or nil
	failed  *oauthFailure
}

// oauthRefresh is one refresh for all callers that wait for it. The fields are set when
// done is closed.
type oauthRefresh struct {
	done  chan struct{}
	token mail.Secret
	err   error
}

// oauthFailure is a failure that later calls return without asking again.
type oauthFailure struct {
	err        *oauth.Error
	secrets    [sha256.Size]byte // of the secrets that were sent; a change ends it
	anySecrets bool              // until holds whatever the secrets are
	until      time.Time         // zero means that only a change ends it
}

// newOAuthSource returns a source of access tokens from the store's refresh tokens. A nil
// now means time.Now.
func newOAuthSource(store mail.TokenStore, now func() time.Time) *oauthSource {
	if now == nil {
		now = time.Now
	}
	return &oauthSource{store: store, now: now, accounts: make(map[string]*oauthAccount)}
}

// clock is without the monotonic reading, which stands still while a computer
// sleeps and a token grows old.
func (s *oauthSource) clock() time.Time { return s.now().Round(0) }

// Token returns an access token of the account that is good for a while. If there is none
// it asks the provider, once for all callers that wait; the refresh goes on when ctx ends,
// so that its token is kept. A rotated refresh token is durable before the access token
// that came with it is returned.
//
// The error is an *Error, or the TokenStore's own.
func (s *oauthSource) Token(ctx context.Context, a *mail.Account) (mail.Secret, error) {
	settings, err := oauthSettings(a)
	if err != nil {
		return mail.Secret{}, oauthUnusable(opToken, a, err)
	}
	f, token, err := s.tokenOrRefresh(ctx, a, settings)
	if f == nil {
		return token, oauthError(ctx, opToken, a, err)
	}
	select {
	case <-f.done:
		if f.err != nil {
			return mail.Secret{}, oauthError(ctx, opToken, a, f.err)
		}
		return f.token.Clone(), nil
	case <-ctx.Done():
		return mail.Secret{}, mail.Operation{Op: opToken, Account: a.Name}.Wrap(ctx, ctx.Err(), nil)
	}
}

// oauthSettings is what an access token depends on besides secrets.
func oauthSettings(a *mail.Account) (string, error) {
	if _, err := oauthConfig(a, mail.Secret{}); err != nil {
		return "", err
	}
	b, err := json.Marshal(struct {
		OAuth    mail.OAuth
		Username string
		CAPEM    []byte
		Graph    string `json:",omitempty"`
	}{a.OAuth, a.Username, a.CAPEM, graphHost(a)})
	return string(b), err
}

// graphHost is the Microsoft Graph that an account sends with, empty for none.
func graphHost(a *mail.Account) string {
	if a.Submission != mail.SubmitGraph {
		return ""
	}
	return a.SMTP.Host
}

// tokenOrRefresh returns the present token, or a failure that still holds, or the refresh
// to wait for.
func (s *oauthSource) tokenOrRefresh(ctx context.Context, a *mail.Account, settings string) (*oauthRefresh, mail.Secret, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, mail.Secret{}, &mail.Error{Op: opToken, Account: a.Name, Kind: mail.KindConnection, Stage: stageAuth,
			Message: "The program is ending.", Advice: mail.AdviceRestart}
	}
	if s.store == nil {
		return nil, mail.Secret{}, oauthUnusable(opToken, a, errors.New("there is no place for its tokens"))
	}
	x := s.accounts[a.Name]
	if x == nil || x.settings != settings {
		x = &oauthAccount{settings: settings}
		s.accounts[a.Name] = x
	}
	now := s.clock()
	if !x.token.IsZero() && now.Before(x.renewAt) && !x.doubted {
		return nil, x.token.Clone(), nil
	}
	if x.running != nil {
		return x.running, mail.Secret{}, nil
	}
	if x.failed != nil && x.failed.anySecrets && now.Before(x.failed.until) {
		return nil, mail.Secret{}, x.failed.err
	}
	f := &oauthRefresh{done: make(chan struct{})}
	x.running = f
	account := *a
	s.refreshes.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refreshTime)
		defer cancel()
		s.runRefresh(ctx, &account, x, f)
	})
	return f, mail.Secret{}, nil
}

// runRefresh carries a refresh out.
func (s *oauthSource) runRefresh(ctx context.Context, a *mail.Account, x *oauthAccount, f *oauthRefresh) {
	asked := s.clock()
	token, consent, err := s.refresh(ctx, a, x)
	// Once more with what is there now.
	if errors.Is(err, mail.ErrConsentChanged) {
		asked = s.clock()
		token, consent, err = s.refresh(ctx, a, x)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f.err = err
	switch {
	case errors.Is(err, errKept):
		if f.token, f.err = x.token.Clone(), nil; x.token.IsZero() { // dropped meanwhile
			f.err = mail.ErrConsentChanged
		}
	case err == nil:
		life := token.Life
		if life == 0 {
			life = assumedLife
		}
		f.token = mail.NewSecret([]byte(token.Access))
		x.token, x.renewAt, x.failed = f.token.Clone(), asked.Add(life-min(earlyBy, life/10)), nil
		x.doubted, x.consent = false, consent
		if x.renewed = (time.Time{}); x.refused {
			x.renewed, x.refused = s.clock(), false
		}
	}
	x.running = nil
	close(f.done)
}

// errKept says that the present token is kept, though a server refused it.
var errKept = errors.New("the token is kept")

// keeps reports whether that is so: for a while after it took the place of a refused
// one, unless the owner has agreed again.
func (s *oauthSource) keeps(x *oauthAccount, consent string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return x.doubted && !x.token.IsZero() && x.consent == consent && s.clock().Before(x.renewed.Add(refusedPause)) && s.clock().Before(x.renewAt)
}

// refresh asks the provider, unless a known failure tells its answer.
func (s *oauthSource) refresh(ctx context.Context, a *mail.Account, x *oauthAccount) (token oauth.Token, consent string, err error) {
	var asked error // of the provider; kept apart since a token may have been rotated besides
	err = s.store.RefreshToken(ctx, a.Name, func(ctx context.Context, secrets mail.OAuthSecrets) (rotated mail.Secret, err error) {
		if !secrets.OAuth.IsZero() && !secrets.OAuth.Equal(a.OAuth) {
			return mail.Secret{}, mail.ErrConsentChanged // the account's settings were read before
		}
		if s.keeps(x, secrets.Consent) {
			return mail.Secret{}, errKept
		}
		consent = secrets.Consent
		digest := secretsDigest(secrets)
		if known := s.known(x, digest); known != nil {
			return mail.Secret{}, known
		}
		c, err := oauthConfig(a, secrets.ClientSecret)
		if err != nil {
			return mail.Secret{}, oauthUnusable(opToken, a, err)
		}
		if s.graph {
			c.Scopes, c.MoreScopes = c.MoreScopes, c.Scopes
		}
		token, asked = c.Refresh(ctx, oauth.Secret(secrets.RefreshToken.Reveal()))
		rotated = mail.NewSecret([]byte(token.Rotated))
		if asked == nil {
			return rotated, nil
		}
		if rotated.IsZero() {
			s.note(x, digest, asked)
			return mail.Secret{}, asked
		}
		secrets.RefreshToken = rotated
		s.note(x, secretsDigest(secrets), asked)
		return rotated, nil
	})
	if err == nil {
		err = asked
	}
	return token, consent, err
}

func secretsDigest(s mail.OAuthSecrets) [sha256.Size]byte {
	client := sha256.Sum256([]byte(s.ClientSecret.Reveal()))
	return sha256.Sum256(append(client[:], s.RefreshToken.Reveal()...))
}

// known returns the failure that asking with these secrets would meet.
func (s *oauthSource) known(x *oauthAccount, digest [sha256.Size]byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := x.failed; f != nil && !f.anySecrets && f.secrets == digest && (f.until.IsZero() || s.clock().Before(f.until)) {
		return f.err
	}
	return nil
}

// note keeps a failure for as long as it makes no sense to ask again.
func (s *oauthSource) note(x *oauthAccount, digest [sha256.Size]byte, err error) {
	var e *oauth.Error
	if !errors.As(err, &e) {
		return
	}
	f := &oauthFailure{err: e, secrets: digest}
	switch {
	case e.Kind == wire.KindConsent:
	case e.RetryAfter > 0:
		f.anySecrets, f.until = true, s.clock().Add(e.RetryAfter)
	case !e.Temporary:
		f.until = s.clock().Add(failedPause)
	default:
		f = nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	x.failed = f
}

// Refused notes that a mail server did not accept the token, and reports whether Token
// would now return another. It drops that token alone, never a newer one. It returns false
// for a token that replaced a refused one within the last minute: then the token is not the
// reason. It does not wait for anything.
func (s *oauthSource) Refused(a *mail.Account, token mail.Secret) bool {
	settings, err := oauthSettings(a)
	if err != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.accounts[a.Name]
	switch {
	case s.closed || x == nil || x.settings != settings:
		return false
	case x.token.IsZero():
		// Dropped already; what comes is another.
		return x.failed == nil
	case x.token.Reveal() != token.Reveal():
		return true
	case !x.renewed.IsZero() && s.clock().Before(x.renewed.Add(refusedPause)):
		x.doubted = true
		return false
	}
	x.token.Wipe()
	x.token, x.refused, x.doubted = mail.Secret{}, true, false
	return true
}

// Close waits for refreshes under way, so that no rotated token is lost with the
// process, and forgets every token; each refresh ends by itself within about two
// minutes. Token fails afterwards.
func (s *oauthSource) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.refreshes.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.accounts {
		x.token.Wipe()
	}
	clear(s.accounts)
}
