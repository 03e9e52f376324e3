package vault

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault/vaulttest"
)

// rotator is a fake token endpoint that takes each refresh token once and rejects one
// that comes again.
type rotator struct {
	*httptest.Server
	mu      sync.Mutex
	current string
	issued  int
	reused  int
	hold    chan struct{} // unless nil, an answer is held back until it is closed
	arrived chan struct{} // gets a value for each answer that is held back
}

func startRotator(t testing.TB) *rotator {
	t.Helper()
	r := &rotator{current: "t0", arrived: make(chan struct{}, 1)}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.mu.Lock()
		if q.PostFormValue("refresh_token") != r.current {
			r.reused++
			r.mu.Unlock()
			http.Error(w, "invalid_grant", http.StatusBadRequest)
			return
		}
		r.issued++
		r.current = fmt.Sprint("t", r.issued)
		next, hold := r.current, r.hold
		r.mu.Unlock()
		if hold != nil {
			r.arrived <- struct{}{}
			<-hold
		}
		_, _ = io.WriteString(w, next)
	}))
	t.Cleanup(r.Close)
	return r
}

// seen returns how many tokens were issued, how many requests had a used token, and the
// one token that is good.
func (r *rotator) seen() (issued, reused int, current string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.issued, r.reused, r.current
}

// exchangeAt returns an exchange with the rotator at an address.
func exchangeAt(address string) func(context.Context, mail.OAuthSecrets) (mail.Secret, error) {
	return func(ctx context.Context, s mail.OAuthSecrets) (mail.Secret, error) {
		form := url.Values{"refresh_token": {s.RefreshToken.Reveal()}}
		q, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(form.Encode()))
		if err != nil {
			return mail.Secret{}, err
		}
		q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		answer, err := http.DefaultClient.Do(q)
		if err != nil {
			return mail.Secret{}, err
		}
		defer func() { _ = answer.Body.Close() }()
		b, err := io.ReadAll(answer.Body)
		if err != nil {
			return mail.Secret{}, err
		}
		if answer.StatusCode != http.StatusOK {
			return mail.Secret{}, fmt.Errorf("status %d", answer.StatusCode)
		}
		return mail.NewSecret(b), nil
	}
}

// refreshAt is the work of one process of these tests: it refreshes again and again, and
// prints a line each time.
func refreshAt(ctx context.Context, v *Vault, address string) error {
	for range turns {
		if err := v.RefreshToken(ctx, "work", exchangeAt(address)); err != nil {
			return err
		}
		fmt.Println("refreshed")
	}
	return nil
}

// TestAProcessKilledAnywhereLeavesTheLockFree kills processes while they refresh. A
// token is lost only if the process died between the provider's answer and the write; the
// provider then rejects the next process. In every other case the consent stays good.
func TestAProcessKilledAnywhereLeavesTheLockFree(t *testing.T) {
	t.Parallel()
	path, k := newPlace(t)
	admin := mustOpen(t, path, k, nil)
	addOAuth(t, admin, "work", "", "t0")
	r := startRotator(t)
	kept := 0
	rounds := size(testmain.Rounds(8, 20), 4)
	for round := range rounds {
		cmd := process(t, "refresher", path, r.URL, k.Agent)
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		lines := bufio.NewScanner(out)
		for range 1 + round%5 {
			lines.Scan()
		}
		must(t, cmd.Process.Kill())
		for lines.Scan() {
		}
		_ = cmd.Wait() // it was killed
		vaulttest.EndLeases(t, path)
		must(t, admin.Check(t.Context()))
		_, before, _ := r.seen()
		err = mustOpen(t, path, Keys{Agent: k.Agent}, nil).RefreshToken(t.Context(), "work", exchangeAt(r.URL))
		if err == nil {
			kept++
			continue
		}
		_, after, current := r.seen()
		if after != before+1 {
			t.Fatalf("round %d: %v, and the provider did not say so", round, err)
		}
		must(t, admin.SetConsent(t.Context(), "work", text(current)))
	}
	t.Logf("of %d kills %d lost nothing", rounds, kept)
	if kept == 0 && !testing.Short() { // four can all meet the moment that loses it
		t.Error("every kill lost the token")
	}
}

// TestAnAnswerLostWithItsProcessNeedsANewConsent kills a process in the one moment that
// loses a token: between the provider's rotation and the write.
func TestAnAnswerLostWithItsProcessNeedsANewConsent(t *testing.T) {
	t.Parallel() // in a database the lock of the dead is free when its time is over
	path, k := newPlace(t)
	admin := mustOpen(t, path, k, nil)
	addOAuth(t, admin, "work", "", "t0")
	r := startRotator(t)
	hold := make(chan struct{})
	r.mu.Lock()
	r.hold = hold
	r.mu.Unlock()
	cmd := process(t, "refresher", path, r.URL, k.Agent)
	must(t, cmd.Start())
	<-r.arrived // rotated, but the vault does not have it yet
	must(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	r.mu.Lock()
	r.hold = nil
	r.mu.Unlock()
	close(hold)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := admin.RefreshToken(ctx, "work", exchangeAt(r.URL))
	_, reused, current := r.seen()
	if err == nil || ctx.Err() != nil || reused != 1 {
		t.Errorf("RefreshToken: %v; the provider saw %d spent tokens", err, reused)
	}
	must(t, admin.SetConsent(t.Context(), "work", text(current)))
	must(t, admin.RefreshToken(ctx, "work", exchangeAt(r.URL)))
}
