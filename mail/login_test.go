package mail_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/servertest"
)

// renewable are Credentials that have one token after the other: the next one when
// one was refused.
type renewable struct {
	mu       sync.Mutex
	tokens   []string
	refusals int
	err      error
}

func (r *renewable) Credential(context.Context, *mail.Account) (mail.Credential, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return mail.Credential{}, r.err
	}
	return mail.Credential{Secret: mail.NewSecret([]byte(r.tokens[0])), Bearer: true}, nil
}

func (r *renewable) Refused(_ context.Context, _ *mail.Account, c mail.Credential) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refusals++
	if c.Bearer && c.Secret.Reveal() == r.tokens[0] && len(r.tokens) > 1 {
		r.tokens = r.tokens[1:]
	}
	return c.Secret.Reveal() != r.tokens[0]
}

func withOAuth(a *mail.Account) {
	a.Auth = mail.AuthOAuth2
	a.OAuth = mail.OAuth{Provider: "google", ClientID: "client"}
}

// A token that has expired on the way is replaced by the next without anybody
// noticing, in a pool and on a connection of its own.
func TestOAuthTokenIsRenewedWhenItIsRefused(t *testing.T) {
	settle(t)
	_, e := dovecot(t, servertest.Config{})
	b := open(t, e, "oauth", withOAuth)
	b.add("INBOX", letter{subject: "one"})
	token := func(lasts time.Duration) string { return servertest.OAuthToken("oauth", time.Now().Add(lasts)) }
	for name, tc := range map[string]struct {
		tokens   []string
		refusals int
		ok       bool
	}{
		"valid":                  {[]string{token(time.Hour)}, 0, true},
		"expired, and renewed":   {[]string{token(-time.Hour), token(time.Hour)}, 1, true},
		"expired, and no other":  {[]string{token(-time.Hour)}, 1, false},
		"expired more than once": {[]string{token(-time.Hour), token(-time.Minute), token(time.Hour)}, 2, false},
	} {
		mailboxes := func() (*mail.Mailboxes, *renewable) {
			c := &renewable{tokens: tc.tokens}
			m := mail.NewMailboxes(mail.MailboxesOptions{Directory: b.dir, Credentials: c})
			t.Cleanup(func() { _ = m.Close() })
			return m, c
		}
		m, c := mailboxes()
		l, err := m.List(t.Context(), account, mail.ListQuery{})
		if !tc.ok {
			wantKind(t, err, mail.KindAuth)
		} else if err != nil || len(l.Messages) != 1 {
			t.Errorf("%s: listed %v, %v", name, l, err)
		}
		if c.refusals != tc.refusals {
			t.Errorf("%s: %d refusals", name, c.refusals)
		}
		m, c = mailboxes()
		v, err := m.Verify(t.Context(), account)
		if err != nil || (len(v.Issues) == 0) != tc.ok || !tc.ok && v.Issues[0].Code != "AUTH_FAILED" || c.refusals != tc.refusals {
			t.Errorf("%s: verified %+v, %v, %d refusals", name, v, err, c.refusals)
		}
	}
}

// submission accepts logins with the token "good", by XOAUTH2, and nothing else.
func submission(t *testing.T) mail.Endpoint {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				_, _ = io.WriteString(c, "220 hello\r\n")
				for lines := bufio.NewScanner(c); lines.Scan(); {
					verb, rest, _ := strings.Cut(lines.Text(), " ")
					answer := "535 5.7.8 no\r\n" // to what follows a challenge, too
					switch first, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(rest, "XOAUTH2 ")); {
					case verb == "EHLO":
						answer = "250-hello\r\n250-SIZE 1000\r\n250 AUTH XOAUTH2\r\n"
					case verb == "QUIT":
						answer = "221 bye\r\n"
					case string(first) == "user=oauth\x01auth=Bearer good\x01\x01":
						answer = "235 in\r\n"
					case verb == "AUTH":
						answer = "334 e30=\r\n"
					}
					_, _ = io.WriteString(c, answer)
				}
			})
		}
	})
	t.Cleanup(func() { _ = ln.Close(); wg.Wait() })
	return mail.Endpoint{Host: "127.0.0.1", Port: uint16(ln.Addr().(*net.TCPAddr).Port), Security: mail.Plaintext}
}

func TestOAuthAtTheSubmissionServer(t *testing.T) {
	settle(t)
	a := settings("127.0.0.1", 1, "oauth")
	withOAuth(&a)
	a.SMTP = submission(t)
	d := &directory{accounts: map[string]mail.Account{account: a}}
	for name, tc := range map[string]struct {
		tokens   []string
		refusals int
		code     string
	}{
		"valid":                  {[]string{"good"}, 0, ""},
		"expired, and renewed":   {[]string{"old", "good"}, 1, ""},
		"expired, and no other":  {[]string{"old"}, 1, "AUTH_FAILED"},
		"expired more than once": {[]string{"old", "older", "good"}, 2, "AUTH_FAILED"},
	} {
		c := &renewable{tokens: tc.tokens}
		m := mail.NewMailboxes(mail.MailboxesOptions{Directory: d, Credentials: c})
		v, err := m.VerifySubmission(t.Context(), account)
		switch {
		case err != nil || c.refusals != tc.refusals:
			t.Errorf("%s: %v, %d refusals", name, err, c.refusals)
		case tc.code == "" && (len(v.Issues) > 0 || len(v.Capabilities) != 1):
			t.Errorf("%s: %+v", name, v)
		case tc.code != "" && (len(v.Issues) != 1 || v.Issues[0].Code != tc.code):
			t.Errorf("%s: %+v", name, v)
		}
		_ = m.Close()
	}
}

// Without Credentials there are passwords alone, and what they report is passed on
// as it is.
func TestCredentialsThatCannotBeHad(t *testing.T) {
	settle(t)
	_, e := dovecot(t, servertest.Config{})
	b := open(t, e, "nocredentials", withOAuth, func(a *mail.Account) { a.SMTP = submission(t) })
	_, err := b.List(t.Context(), account, mail.ListQuery{})
	wantKind(t, err, mail.KindUnsupported)
	_, err = b.VerifySubmission(t.Context(), account)
	wantKind(t, err, mail.KindUnsupported)

	c := &renewable{err: mail.ErrNoConsent}
	m := mail.NewMailboxes(mail.MailboxesOptions{Directory: b.dir, Credentials: c})
	defer m.Close()
	if _, err := m.List(t.Context(), account, mail.ListQuery{}); err != mail.ErrNoConsent {
		t.Errorf("list: %v", err)
	}
	if _, err := m.Verify(t.Context(), account); err != mail.ErrNoConsent {
		t.Errorf("verify: %v", err)
	}
	if _, err := m.VerifySubmission(t.Context(), account); err != mail.ErrNoConsent {
		t.Errorf("verify the submission server: %v", err)
	}
	own := &mail.Error{Op: "credential", Account: account, Kind: mail.KindConfig, Message: "The helper failed."}
	c.mu.Lock()
	c.err = own
	c.mu.Unlock()
	if _, err := m.List(t.Context(), account, mail.ListQuery{}); err != own {
		t.Errorf("list: %v", err)
	}
}
