package login

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/postern-mail/postern/mail"
)

// How an account's helper is run (004, credential flow).
const (
	// HelperTime is how long a helper may take. A person may have to walk to a fingerprint
	// reader. A command that gives up earlier does not end the helper: the next command gets
	// the helper's password.
	HelperTime = 60 * time.Second
	// HelperPause is how long a helper is not run after it failed, or after the server refused
	// its password twice: a caller that tries again and again must not pester the server or a
	// person.
	HelperPause = 30 * time.Second
)

// helperSource runs the helper of each account once and keeps what it gave, in
// memory alone. It is safe for concurrent use.
type helperSource struct {
	environ []string
	now     func() time.Time
	limit   time.Duration // HelperTime

	life    context.Context // ends with Close
	end     context.CancelFunc
	running sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	accounts map[string]*helped
}

// helped is the state of one account's helper. helperSource.mu guards it.
//
// Invariants: a secret is only there while no run is under way; it is never one
// that the server refused, save after a pause.
type helped struct {
	argv     []string
	gone     bool // the account has another helper now
	secret   mail.Secret
	obtained time.Time
	run      *helperRun // nil when none is under way

	refused mail.Secret // the password that the server refused last; zero when it may be tried
	suspect bool        // the server refused one, and no later one was in use for as long as a pause
	paused  time.Time   // not run before
	why     *mail.Error // the reason for the pause; nil: the server refused
}

// helperRun is one run of a helper. err is read after done.
type helperRun struct {
	done   chan struct{}
	cancel context.CancelFunc
	err    error
}

func newHelperSource(environ []string, now func() time.Time) *helperSource {
	h := &helperSource{environ: helperEnviron(environ), now: now, limit: HelperTime, accounts: make(map[string]*helped)}
	h.life, h.end = context.WithCancel(context.Background())
	return h
}

// Secret returns a copy of the password that the account's helper gave, and runs the helper
// if it gave none yet. Concurrent callers share a run, which goes on when ctx ends for all
// of them.
func (h *helperSource) Secret(ctx context.Context, a *mail.Account) (mail.Secret, error) {
	if len(a.Helper) == 0 {
		return mail.Secret{}, credentialError(a.Name, mail.KindConfig, "The account has no helper command.", mail.AdviceSetHelper, nil)
	}
	var e *helped
	for {
		h.mu.Lock()
		if e == nil {
			e = h.entry(a)
		}
		switch {
		case h.closed:
			h.mu.Unlock()
			return mail.Secret{}, credentialError(a.Name, mail.KindConnection, "The program is ending.", mail.AdviceRestart, nil)
		case e.gone:
			h.mu.Unlock()
			return mail.Secret{}, credentialError(a.Name, mail.KindConfig, "The account's helper was changed meanwhile.", mail.AdviceTryAgain, nil)
		case !e.secret.IsZero():
			s := e.secret.Clone()
			h.mu.Unlock()
			return s, nil
		case e.run == nil && h.now().Before(e.paused):
			err := e.waits(a.Name, e.paused.Sub(h.now()))
			h.mu.Unlock()
			return mail.Secret{}, err
		case e.run == nil:
			h.start(a.Name, e)
		}
		r := e.run
		h.mu.Unlock()
		select {
		case <-r.done:
		case <-ctx.Done():
			return mail.Secret{}, helperLate(a.Name, ctx.Err())
		}
		if r.err != nil {
			return mail.Secret{}, r.err
		}
	}
}

// entry returns the state of the account's helper. Another helper's password is forgotten.
// The lock is held.
func (h *helperSource) entry(a *mail.Account) *helped {
	e := h.accounts[a.Name]
	if e != nil && slices.Equal(e.argv, a.Helper) {
		return e
	}
	if e != nil {
		e.forget()
	}
	e = &helped{argv: slices.Clone(a.Helper)}
	h.accounts[a.Name] = e
	return e
}

// forget ends the run and wipes. The lock is held.
func (e *helped) forget() {
	e.gone = true
	if e.run != nil {
		e.run.cancel()
	}
	e.secret.Wipe()
	e.refused.Wipe()
	e.secret, e.refused = mail.Secret{}, mail.Secret{}
}

// helperLate is the answer to a caller who could not wait for the helper any longer.
func helperLate(account string, cause error) *mail.Error {
	e := credentialError(account, mail.KindTimeout, "The account's helper did not answer in time.", mail.AdviceHelperGoesOn, cause)
	e.Detail = strconv.Itoa(int(HelperTime.Seconds()))
	return e
}

// waits is the answer while the helper is left alone.
func (e *helped) waits(account string, left time.Duration) *mail.Error {
	nextRun := fmt.Sprintf("It is run again in %d s at the earliest.", int((left+time.Second-1)/time.Second))
	if e.why == nil {
		return credentialError(account, mail.KindAuth, "The mail server did not accept the password that the account's helper gave. "+nextRun,
			mail.AdviceHelperPassword, nil)
	}
	c := *e.why
	c.Message += " " + nextRun
	return &c
}

// start begins a run. The lock is held.
func (h *helperSource) start(account string, e *helped) {
	if !e.paused.IsZero() {
		// The pause is over: the refused password may be tried once more.
		e.paused, e.why = time.Time{}, nil
		e.refused.Wipe()
		e.refused = mail.Secret{}
	}
	ctx, cancel := context.WithTimeout(h.life, h.limit)
	r := &helperRun{done: make(chan struct{}), cancel: cancel}
	e.run = r
	h.running.Go(func() {
		defer cancel()
		s, err := runHelper(ctx, account, e.argv, h.environ)
		h.mu.Lock()
		defer h.mu.Unlock()
		e.run = nil
		h.settle(account, e, r, s, err)
		close(r.done)
	})
}

// settle keeps the result of a run. The lock is held.
func (h *helperSource) settle(account string, e *helped, r *helperRun, s mail.Secret, err error) {
	var failed *helperFailure
	switch {
	case errors.As(err, &failed):
		r.err = failed.err
		if failed.started {
			e.paused, e.why = h.now().Add(HelperPause), failed.err
		}
	case e.gone || h.closed:
		s.Wipe()
	case !e.refused.IsZero() && e.refused.Equal(s):
		// Trying it would only count as one more wrong password.
		s.Wipe()
		e.paused, e.why = h.now().Add(HelperPause), nil
		r.err = e.waits(account, HelperPause)
	default:
		e.secret, e.obtained = s, h.now()
	}
}

// Refused tells that the server did not accept s, and reports whether Secret may
// give another: once after each that was in use for as long as a pause, or that
// was the first.
func (h *helperSource) Refused(a *mail.Account, s mail.Secret) (again bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.accounts[a.Name]
	switch {
	case h.closed || e == nil || !slices.Equal(e.argv, a.Helper):
		return false
	case e.run != nil:
		return true
	case e.secret.IsZero():
		return !h.now().Before(e.paused)
	case !e.secret.Equal(s):
		return true // s is from before the present one
	}
	e.refused.Wipe()
	e.refused, e.secret = e.secret, mail.Secret{}
	if e.suspect && h.now().Sub(e.obtained) < HelperPause {
		e.paused, e.why = h.now().Add(HelperPause), nil
		return false
	}
	e.suspect = true
	return true
}

// Close ends the helpers that run, waits for them and forgets everything.
func (h *helperSource) Close() {
	h.mu.Lock()
	h.closed = true
	for _, e := range h.accounts {
		e.forget()
	}
	h.mu.Unlock()
	h.end()
	h.running.Wait()
}
