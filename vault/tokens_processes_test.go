package vault

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault/vaulttest"
)

// fakeProvider is a token endpoint that takes each refresh token once and rejects one that
// comes again.
type fakeProvider struct {
	*httptest.Server
	mu             sync.Mutex
	current        string // the one token that is good
	issued, reused int
	hold           chan struct{} // unless nil, an answer is held back until it is closed
	arrived        chan struct{} // gets a value for each answer that is held back
}

func startProvider(t testing.TB, hold chan struct{}) *fakeProvider {
	t.Helper()
	p := &fakeProvider{current: "t0", hold: hold, arrived: make(chan struct{}, 1)}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		p.mu.Lock()
		if q.FormValue("refresh_token") != p.current {
			p.reused++
			p.mu.Unlock()
			http.Error(w, "invalid_grant", http.StatusBadRequest)
			return
		}
		p.issued++
		p.current = fmt.Sprint("t", p.issued)
		next, hold := p.current, p.hold
		p.mu.Unlock()
		if hold != nil {
			p.arrived <- struct{}{}
			<-hold
		}
		_, _ = io.WriteString(w, next)
	}))
	t.Cleanup(p.Close)
	return p
}

// seen returns how many requests had a used token, and the token that is good.
func (p *fakeProvider) seen() (reused int, current string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reused, p.current
}

// exchangeAt returns an exchange with the provider at an address.
func exchangeAt(address string) func(context.Context, mail.OAuthSecrets) (mail.Secret, error) {
	return func(_ context.Context, s mail.OAuthSecrets) (mail.Secret, error) {
		answer, err := http.PostForm(address, url.Values{"refresh_token": {s.RefreshToken.Reveal()}})
		if err != nil {
			return mail.Secret{}, err
		}
		defer func() { _ = answer.Body.Close() }()
		b, err := io.ReadAll(answer.Body)
		if err == nil && answer.StatusCode != http.StatusOK {
			err = errors.New(answer.Status)
		}
		return mail.NewSecret(b), err
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
	r := startProvider(t, nil)
	kept := 0
	rounds := size(testmain.Rounds(8, 20), 4)
	for round := range rounds {
		cmd := process("refresher", path, r.URL, k.Agent)
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
		before, _ := r.seen()
		err = mustOpen(t, path, Keys{Agent: k.Agent}, nil).RefreshToken(t.Context(), "work", exchangeAt(r.URL))
		if err == nil {
			kept++
			continue
		}
		after, current := r.seen()
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
	hold := make(chan struct{})
	r := startProvider(t, hold)
	cmd := process("refresher", path, r.URL, k.Agent)
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
	reused, current := r.seen()
	if err == nil || ctx.Err() != nil || reused != 1 {
		t.Errorf("RefreshToken: %v; the provider saw %d spent tokens", err, reused)
	}
	must(t, admin.SetConsent(t.Context(), "work", text(current)))
	must(t, admin.RefreshToken(ctx, "work", exchangeAt(r.URL)))
}
