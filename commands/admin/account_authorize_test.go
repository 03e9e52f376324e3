package admin_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/login"
)

const addGoogle = "account add work --email ann@gmail.com --auth oauth2 --oauth-provider google --oauth-client-id ID --oauth-client-secret-from stdin"

// lent is the refresh token that the vault would exchange now.
func (b *fixture) lent(t *testing.T, name string) (refresh string, err error) {
	t.Helper()
	err = b.vault.RefreshToken(t.Context(), name, func(_ context.Context, s mail.OAuthSecrets) (mail.Secret, error) {
		refresh = s.RefreshToken.Reveal()
		return mail.Secret{}, nil
	})
	return refresh, err
}

func TestAuthorizeShowsThePageAndKeepsTheConsent(t *testing.T) {
	b, _ := newAccountBench(t)
	b.OK(t, addGoogle)
	if _, err := b.lent(t, "work"); !errors.Is(err, mail.ErrNoConsent) {
		t.Fatal(err)
	}
	var told, progress []string
	b.deps.Tell = func(text string) { told = append(told, text) }
	for _, test := range []struct {
		line, code string
		options    login.AuthorizeOptions
		says       string
	}{
		{"account authorize work", "", login.AuthorizeOptions{}, "in a browser on this machine"},
		{"account authorize work --port 8123", "", login.AuthorizeOptions{Port: 8123}, "in a browser on this machine"},
		{"account authorize work --device", "ABCD-EFGH", login.AuthorizeOptions{Device: true}, "type the code ABCD-EFGH there"},
	} {
		told, progress = nil, nil
		b.deps.Authorize = func(ctx context.Context, a *mail.Account, client mail.Secret, o login.AuthorizeOptions) (mail.Secret, error) {
			if a.Name != "work" || client.Reveal() != canary+"stdin" || o.Device != test.options.Device || o.Port != test.options.Port {
				t.Errorf("asked with %+v %q %+v", a, client.Reveal(), o)
			}
			o.Show("https://id.example.org/consent?state=x\x1b[2J\u202e", test.code)
			return mail.NewSecret([]byte(canary + test.line)), ctx.Err()
		}
		a := b.Gateway.Do(t.Context(), gateway.Request{Principal: b.Principal, Line: test.line,
			Progress: func(_, _ float64, message string) { progress = append(progress, message) }})
		if !a.Success() || strings.Contains(string(a.JSON), canary) || !strings.Contains(string(a.JSON), `"command":"doctor --account work"`) {
			t.Fatalf("%s", a.JSON)
		}
		for _, texts := range [][]string{told, progress} {
			if len(texts) != 1 || !strings.Contains(texts[0], test.says) || !strings.Contains(texts[0], "\n  https://id.example.org/consent?state=x[2J\n") ||
				strings.ContainsAny(texts[0], "\x1b\u202e") || strings.Contains(texts[0], canary) {
				t.Errorf("%s: shown %q", test.line, texts)
			}
		}
		if got, err := b.lent(t, "work"); err != nil || got != canary+test.line {
			t.Errorf("%q, %v", got, err)
		}
	}
}

func TestAuthorizeThatFailsKeepsTheFormerConsent(t *testing.T) {
	b, _ := newAccountBench(t, work("other", mail.ReadOnly))
	b.OK(t, addGoogle)
	must(t, b.vault.SetConsent(t.Context(), "work", mail.NewSecret([]byte("former"))))
	b.deps.Authorize = func(context.Context, *mail.Account, mail.Secret, login.AuthorizeOptions) (mail.Secret, error) {
		return mail.Secret{}, &mail.Error{Op: "account authorize", Kind: mail.KindAuth, Message: "The access was refused.", Advice: mail.AdviceAuthorize}
	}
	b.Fails(t, "account authorize work", discovery.AuthFailed, "The access was refused.")
	if got, err := b.lent(t, "work"); err != nil || got != "former" {
		t.Errorf("%q, %v", got, err)
	}
	b.Fails(t, "account authorize other", discovery.ValidationError, "does not log in with oauth2")
	b.Fails(t, "account authorize nobody", discovery.NotFound, "no such account")
	b.Fails(t, "account authorize work --device --port 1", discovery.ValidationError, "give one")
	b.Principal = gateway.Principal{Name: "agent"}
	b.Fails(t, "account authorize work", discovery.PermissionDenied, "You may not run")
}

// TestAConsentIsKeptWhenTheTimeIsJustOver has the owner agree at the last moment.
func TestAConsentIsKeptWhenTheTimeIsJustOver(t *testing.T) {
	b, _ := newAccountBench(t)
	b.OK(t, addGoogle)
	ctx, cancel := context.WithCancel(t.Context())
	b.deps.Authorize = func(context.Context, *mail.Account, mail.Secret, login.AuthorizeOptions) (mail.Secret, error) {
		cancel()
		return mail.NewSecret([]byte("agreed")), nil
	}
	b.Gateway.Do(ctx, gateway.Request{Principal: b.Principal, Line: "account authorize work"})
	if got, err := b.lent(t, "work"); err != nil || got != "agreed" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestAuthorizeWaitsForAPerson(t *testing.T) {
	b, _ := newAccountBench(t)
	for line, want := range map[string]int{"account authorize work": 300, "account authorize work --timeout 5": 5, "account show work": 30} {
		words := strings.Fields(line)
		bound, err := b.Registry.Lookup(words[0]+" "+words[1]).Bind(words[2:], nil)
		if err != nil || bound.Common.Timeout != want {
			t.Errorf("%s: %+v, %v", line, bound, err)
		}
	}
}
