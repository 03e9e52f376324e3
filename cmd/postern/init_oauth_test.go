package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail/servertest"
)

// fakePerson opens the address that is shown, once.
type fakePerson struct {
	agree func(address string)

	mu   sync.Mutex
	seen bytes.Buffer
	once sync.Once
}

func (p *fakePerson) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen.Write(b)
	if address := shownAddress.FindString(p.seen.String()); address != "" && bytes.HasSuffix(p.seen.Bytes(), []byte("\n")) {
		p.once.Do(func() { go p.agree(address) })
	}
	return len(b), nil
}

// Consent is asked for before anything is stored, once, and what is kept of it works
// beyond the tokens of the trial, also where each refresh token is good for one use.
func TestInitWithConsent(t *testing.T) {
	t.Parallel()
	b := newBureau(t, servertest.OAuthConfig{}, "XOAUTH2")
	home := t.TempDir()
	ca := writeFile(t, filepath.Join(home, "ca.pem"), string(b.dovecot.CAPEM))
	p := newProcess(t)
	db := filepath.Join(home, "postern", "postern.db")
	env := map[string]string{"POSTERN_DB": db}
	p.getenv, p.ring, p.self = func(name string) string { return env[name] }, brokenKeyring{}, "/opt/postern/postern"
	var out bytes.Buffer
	p.stdout = &out
	agreed := make(chan error, 1)
	p.stderr = &fakePerson{agree: func(address string) {
		agreed <- b.oauth.Approve(context.WithoutCancel(t.Context()), address, "ann@example.org")
	}}
	a := b.account("ann")
	line := []string{"--admin-key", "file", "--agent-key", "file", "work", "--email=" + a.Email, "--username=" + a.Username,
		"--imap-host=" + a.IMAP.Host, fmt.Sprintf("--imap-port=%d", a.IMAP.Port), "--imap-security=" + string(a.IMAP.Security), "--ca-file=" + ca,
		"--auth=oauth2", "--oauth-provider=" + a.OAuth.Provider, "--oauth-client-id=" + a.OAuth.ClientID,
		"--oauth-auth-url=" + a.OAuth.AuthURL, "--oauth-token-url=" + a.OAuth.TokenURL}
	if err := p.init(t.Context(), line); err != nil {
		t.Fatal(err)
	}
	if err := <-agreed; err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "the consent you gave") {
		t.Errorf("%s", &out)
	}
	b.oauth.RefuseAccessTokens()
	h := wired(t)(p.asAgent(gateway.FullProfile()))
	if a := h.do(t, "mail list", nil); !a.Success {
		t.Errorf("%s", a.raw)
	}
	// Nobody agrees: nothing is left.
	env["POSTERN_DB"] = filepath.Join(home, "other", "postern.db")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	p.stderr, p.shown = &fakePerson{agree: func(string) { stop() }}, nil
	if err := p.init(ctx, line); err == nil {
		t.Error("it went on without consent")
	}
	if entries, err := os.ReadDir(home); err != nil || len(entries) != 3 { // the authority, the vault, its administrator's key
		t.Errorf("%v, %v", entries, err)
	}
}
