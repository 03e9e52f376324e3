package login

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/postern-mail/postern/mail"
)

// How a HelperOnce treats logins that a server refuses: each is followed by a pause
// that is twice as long as the one before, until none was refused for a while.
const (
	onceFirstPause = 30 * time.Second
	onceMostPause  = 15 * time.Minute
	onceForgiven   = time.Hour
)

// HelperOnceOptions sets a HelperOnce up. Only Account is needed.
type HelperOnceOptions struct {
	Account mail.Account     // whose Helper is run
	Environ []string         // NAME=value, of which the helper gets the harmless part; nil means the process's own
	Now     func() time.Time // nil means time.Now
}

// HelperOnce is the Credentials of one account whose helper is run once and never
// again: its password is kept in memory until Close, and a failure stays (004
// section 5, Credential Flow and Credential Ghost). It is safe for concurrent use.
//
// After a login that the server refused no other is tried until a pause is over, so that a
// caller in a loop reaches neither the server nor a person; meanwhile callers get an *Error
// that says how many seconds are left.
type HelperOnce struct {
	account string
	argv    []string
	now     func() time.Time

	done chan struct{}      // closed when the run is over
	end  context.CancelFunc // ends the run

	mu     sync.Mutex
	closed bool
	secret mail.Secret
	failed *mail.Error // why there is no secret
	paused time.Time
	pause  time.Duration // the last one
}

var _ Credentials = (*HelperOnce)(nil)

// NewHelperOnce begins to run the account's helper. It does not wait for it; call
// Close to end it and to forget what it gave.
func NewHelperOnce(o HelperOnceOptions) *HelperOnce {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Environ == nil {
		o.Environ = os.Environ()
	}
	h := &HelperOnce{account: o.Account.Name, argv: slices.Clone(o.Account.Helper), now: o.Now, done: make(chan struct{})}
	ctx, cancel := context.WithTimeout(context.Background(), HelperTime)
	h.end = cancel
	go func() {
		defer close(h.done)
		defer cancel()
		h.run(ctx, helperEnviron(o.Environ))
	}()
	return h
}

func (h *HelperOnce) run(ctx context.Context, environ []string) {
	var s mail.Secret
	err := error(&helperFailure{err: credentialError(h.account, mail.KindConfig, "The account has no helper command.", mail.AdviceHelperOnceFailed, nil)})
	if len(h.argv) > 0 {
		s, err = runHelper(ctx, h.account, h.argv, environ)
	}
	if err == nil && !s.IsText() {
		s.Wipe()
		err = &helperFailure{err: credentialError(h.account, mail.KindConfig, "The first line of the output of the account's helper is not a password: it holds control characters or is not UTF-8.", mail.AdviceHelperOnceFailed, nil)}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var failed *helperFailure
	switch {
	case errors.As(err, &failed):
		e := *failed.err
		e.Advice = mail.AdviceHelperOnceFailed
		e.Retryable = false
		h.failed = &e
	case h.closed:
		s.Wipe()
	default:
		h.secret = s
	}
}

// Ready waits until the helper is done, no longer than ctx lasts, and returns nil when
// there is a credential that may be tried now; else an *Error.
func (h *HelperOnce) Ready(ctx context.Context, a *mail.Account) error {
	if a.Name != h.account {
		return credentialError(a.Name, mail.KindConfig, "There is no helper for the account here.", mail.AdviceOtherAccount, nil)
	}
	// A moment earlier than the caller gives up, so that these words are the answer.
	waiting, cancel := ctx, context.CancelFunc(func() {})
	if end, bounded := ctx.Deadline(); bounded {
		waiting, cancel = context.WithDeadline(ctx, end.Add(-min(time.Until(end)/5, time.Second)))
	}
	defer cancel()
	select {
	case <-h.done:
	case <-waiting.Done():
		return helperLate(a.Name, waiting.Err())
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ready()
}

// ready is Ready once the helper is done. The lock is held.
func (h *HelperOnce) ready() error {
	switch left := h.paused.Sub(h.now()); {
	case h.failed != nil:
		e := *h.failed
		return &e
	case h.closed || h.secret.IsZero():
		return credentialError(h.account, mail.KindConnection, "The program is ending.", mail.AdviceRestart, nil)
	case left > 0:
		return credentialError(h.account, mail.KindAuth, fmt.Sprintf("The mail server did not accept the login. No other is tried for the next %d s.", int64((left+time.Second-1)/time.Second)),
			mail.AdviceHelperOnce, nil)
	}
	return nil
}

// Credential implements Credentials. The caller wipes what it gets.
func (h *HelperOnce) Credential(ctx context.Context, a *mail.Account) (Credential, error) {
	if err := h.Ready(ctx, a); err != nil {
		return Credential{}, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.ready(); err != nil {
		return Credential{}, err
	}
	return Credential{Secret: h.secret.Clone()}, nil
}

// Refused implements Credentials: there is never another credential, and a pause
// begins.
func (h *HelperOnce) Refused(context.Context, *mail.Account, Credential) (again bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.now()
	switch {
	case now.Before(h.paused):
		return false // of a login that began before this pause
	case h.pause == 0 || now.Sub(h.paused) > onceForgiven:
		h.pause = onceFirstPause
	default:
		h.pause = min(2*h.pause, onceMostPause)
	}
	h.paused = now.Add(h.pause)
	return false
}

// Failed waits until the helper is done and returns why it gave nothing; nil where it gave
// a password. ctx bounds the wait; its end is not a failure.
func (h *HelperOnce) Failed(ctx context.Context) *mail.Error {
	select {
	case <-h.done:
	case <-ctx.Done():
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.failed
}

// Format implements fmt.Formatter for every verb: fmt would print the bytes of a
// Secret that lies in a field of its own accord.
func (h *HelperOnce) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "the helper of account %s, %v", h.account, mail.Secret{})
}

// Holds reports whether a byte of the helper's password is still in memory here.
func (h *HelperOnce) Holds() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.secret.IsWiped()
}

// Close ends the helper if it still runs, and overwrites what it gave. It returns
// when both are done.
func (h *HelperOnce) Close() error {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.end()
	<-h.done
	h.mu.Lock()
	defer h.mu.Unlock()
	h.secret.Wipe()
	return nil
}
