package mailbox_test

import (
	"testing"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
)

// A token that has expired on the way is replaced by the next without anybody
// noticing, in a pool and on a connection of its own.
func TestOAuthTokenIsRenewedWhenItIsRefused(t *testing.T) {
	e := dovecot(t)
	b := open(t, e, "oauth", mailtest.WithOAuth)
	b.Add("INBOX", letter{Subject: "one"})
	token := func(lasts time.Duration) string { return servertest.OAuthToken(e.User("oauth"), time.Now().Add(lasts)) }
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
		mailboxes := func() (*mailbox.Client, *mailtest.Renewable) {
			c := &mailtest.Renewable{Tokens: tc.tokens}
			m := mailbox.New(mailbox.Options{Directory: b.Dir, Credentials: c})
			t.Cleanup(func() { _ = m.Close() })
			return m, c
		}
		m, c := mailboxes()
		l, err := m.List(t.Context(), account, mailbox.ListQuery{})
		if !tc.ok {
			mailtest.WantKind(t, err, mail.KindAuth)
		} else if err != nil || len(l.Messages) != 1 {
			t.Errorf("%s: listed %v, %v", name, l, err)
		}
		if c.Refusals != tc.refusals {
			t.Errorf("%s: %d refusals", name, c.Refusals)
		}
		m, c = mailboxes()
		v, err := m.Verify(t.Context(), account)
		if err != nil || (len(v.Issues) == 0) != tc.ok || !tc.ok && v.Issues[0].Kind != mail.KindAuth || c.Refusals != tc.refusals {
			t.Errorf("%s: verified %+v, %v, %d refusals", name, v, err, c.Refusals)
		}
	}
}

// Without Credentials there are passwords alone, and what they report is passed on
// as it is.
func TestCredentialsThatCannotBeHad(t *testing.T) {
	b := onDovecot(t, "nocredentials", mailtest.WithOAuth)
	_, err := b.List(t.Context(), account, mailbox.ListQuery{})
	mailtest.WantKind(t, err, mail.KindUnsupported)

	c := &mailtest.Renewable{Err: mail.ErrNoConsent}
	m := mailbox.New(mailbox.Options{Directory: b.Dir, Credentials: c})
	defer m.Close()
	if _, err := m.List(t.Context(), account, mailbox.ListQuery{}); err != mail.ErrNoConsent {
		t.Errorf("list: %v", err)
	}
	if _, err := m.Verify(t.Context(), account); err != mail.ErrNoConsent {
		t.Errorf("verify: %v", err)
	}
	own := &mail.Error{Op: "credential", Account: account, Kind: mail.KindConfig, Message: "The helper failed."}
	c.Mu.Lock()
	c.Err = own
	c.Mu.Unlock()
	if _, err := m.List(t.Context(), account, mailbox.ListQuery{}); err != own {
		t.Errorf("list: %v", err)
	}
}
