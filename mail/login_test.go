package mail_test

import (
	"testing"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/servertest"
)

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

// Without Credentials there are passwords alone, and what they report is passed on
// as it is.
func TestCredentialsThatCannotBeHad(t *testing.T) {
	settle(t)
	_, e := dovecot(t, servertest.Config{})
	b := open(t, e, "nocredentials", withOAuth)
	_, err := b.List(t.Context(), account, mail.ListQuery{})
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
	own := &mail.Error{Op: "credential", Account: account, Kind: mail.KindConfig, Message: "The helper failed."}
	c.mu.Lock()
	c.err = own
	c.mu.Unlock()
	if _, err := m.List(t.Context(), account, mail.ListQuery{}); err != own {
		t.Errorf("list: %v", err)
	}
}
