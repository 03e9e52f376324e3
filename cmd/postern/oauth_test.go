package main

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/servertest"
)

// bureau is an authorization server, and the mail servers that ask it about every
// token.
type bureau struct {
	oauth   *servertest.OAuthServer
	dovecot *servertest.DovecotServer
	postfix *servertest.PostfixServer // nil where nothing is sent through it
	v       testVault
	*testHouse
}

func newBureau(t testing.TB, c servertest.OAuthConfig, mechanisms ...string) *bureau {
	t.Helper()
	b := &bureau{v: newVault(t)}
	c.Plaintext = true // the mail server asks without TLS
	b.oauth = servertest.OAuth(t, c)
	b.dovecot = servertest.Dovecot(t, servertest.Config{Submission: true, Introspection: b.oauth.Introspection, Mechanisms: mechanisms})
	b.testHouse = newHouse(t, b.v)
	return b
}

func (b *bureau) account(user string) mail.Account {
	a := dovecotAccount(b.dovecot, user)
	a.Username = a.Email // where the mail is delivered
	a.Auth, a.Mode = mail.AuthOAuth2, mail.ReadWrite
	a.AllowOut = mail.AllowList{Enabled: true, Entries: []string{"*"}}
	a.OAuth = mail.OAuth{Provider: "custom", ClientID: servertest.OAuthClientID, AuthURL: b.oauth.AuthorizeURL, TokenURL: b.oauth.TokenURL, DeviceURL: b.oauth.DeviceURL}
	a.SMTP = mail.Endpoint{Host: "127.0.0.1", Port: 1, Security: mail.StartTLS}
	if b.postfix != nil {
		a.SMTP.Host, a.SMTP.Port = b.postfix.Host, b.postfix.SubmissionPort
	}
	return a
}

var (
	shownAddress = regexp.MustCompile(`https?://\S+`)
	shownCode    = regexp.MustCompile(`type the code (\S+) there`)
)

// authorize runs account authorize, while a person does what it shows.
func (b *bureau) authorize(t testing.TB, name, user string, device bool) {
	t.Helper()
	line := "account authorize " + name
	if device {
		line += " --device"
	}
	person := make(chan error, 1)
	told := func(_, _ float64, text string) {
		address := shownAddress.FindString(text)
		if address == "" {
			return
		}
		go func() {
			if device {
				person <- b.oauth.ApproveDevice(context.WithoutCancel(t.Context()), shownCode.FindStringSubmatch(text)[1], user+"@example.org")
			} else {
				person <- b.oauth.Approve(context.WithoutCancel(t.Context()), address, user+"@example.org")
			}
		}()
	}
	raw := b.Gateway.Do(t.Context(), gateway.Request{Principal: b.Principal, Line: line, Progress: told}).JSON
	var a answer
	if err := json.Unmarshal(raw, &a); err != nil || !a.Success {
		t.Fatalf("%s: %s", line, raw)
	}
	if err := <-person; err != nil {
		t.Fatal(err)
	}
}

// From consent in a browser and on another device to reading and sending, with both
// mechanisms, beyond the life of tokens, and after the server has thrown them out.
func TestOAuthFromConsentToSending(t *testing.T) {
	t.Parallel()
	slow(t, "TestInitWithConsent")
	for _, mechanism := range []string{"XOAUTH2", "OAUTHBEARER"} {
		t.Run(mechanism, func(t *testing.T) { consentToSending(t, mechanism) })
	}
}

func consentToSending(t *testing.T, mechanism string) {
	b := newBureau(t, servertest.OAuthConfig{DeviceInterval: time.Second}, mechanism)
	b.postfix = servertest.Postfix(t, servertest.PostfixConfig{Dovecot: b.dovecot})
	for i, user := range []string{"ann", "bob"} {
		a := b.account(user)
		a.Name = user
		b.v.add(t, a, "")
		if a := b.do(t, "mail list --account "+user, nil); a.Error.Code != "AUTH_FAILED" && a.Error.Code != discovery.ConfigError ||
			!strings.Contains(a.Error.Hint, "account authorize "+user) {
			t.Errorf("without consent: %s", a.raw)
		}
		b.authorize(t, user, user, i == 1)
		b.do(t, "mail verify --account "+user, &struct{}{})
	}
	var s sendData
	b.do(t, "mail send --account ann --to bob@example.org --subject Token --body x", &s)
	if s.State != "accepted" || s.SentCopy != "filed" {
		t.Errorf("%+v", s)
	}
	b.dovecot.WaitDelivered(t, "bob@example.org", strings.Trim(s.MessageID, "<>"))
	var list listData
	b.do(t, "mail list --account bob", &list)
	if len(list.Messages) != 1 {
		t.Errorf("%+v", list)
	}
	// By POP3, too.
	pop := b.account("bob")
	pop.Name, pop.Protocol, pop.IMAP = "pop", mail.POP3, mail.Endpoint{}
	pop.POP3 = mail.Endpoint{Host: b.dovecot.Host, Port: b.dovecot.POP3SPort, Security: mail.TLS}
	b.v.add(t, pop, "")
	b.authorize(t, "pop", "bob", false)
	b.do(t, "mail list --account pop", &list)
	if len(list.Messages) != 1 {
		t.Errorf("%+v", list)
	}
	before := b.oauth.Refreshes()
	b.oauth.RefuseAccessTokens()
	b.do(t, "mail send --account ann --to bob@example.org --subject 'After all' --body x", &s)
	if s.State != "accepted" {
		t.Errorf("%+v", s)
	}
	if n := b.oauth.Refreshes() - before; n != 1 {
		t.Errorf("%d refreshes after a refusal", n)
	}
	// A consent that was taken back is told as that, and asks the server no more.
	b.oauth.Revoke("ann@example.org")
	for range 3 {
		a := b.do(t, "mail send --account ann --to bob@example.org --subject 'Not any more' --body x", nil)
		if a.Success || !strings.Contains(a.Error.Hint, "account authorize ann") {
			t.Errorf("%s", a.raw)
		}
	}
	if n := b.oauth.Refreshes() - before; n > 2 {
		t.Errorf("%d refreshes", n)
	}
	b.authorize(t, "ann", "ann", false)
	b.do(t, "mail send --account ann --to bob@example.org --subject Again --body x", &s)
	if s.State != "accepted" {
		t.Errorf("%+v", s)
	}
}

// Processes that share a vault spend no refresh token twice.
func TestOAuthTokensAreRefreshedOnce(t *testing.T) {
	t.Parallel()
	slow(t, "TestInitWithConsent")
	b := newBureau(t, servertest.OAuthConfig{})
	b.v.add(t, b.account("ann"), "")
	b.authorize(t, "work", "ann", false)
	done := make(chan error, 6)
	for range 6 {
		go func() {
			out, err := program(t, b.v.environment(false), "exec", "mail folders").CombinedOutput()
			if err != nil {
				err = errors.New(string(out))
			}
			done <- err
		}()
	}
	for range 6 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	// Reuse would have revoked the grant.
	b.oauth.RefuseAccessTokens()
	if a := b.do(t, "mail folders", nil); !a.Success {
		t.Errorf("%s", a.raw)
	}
}
