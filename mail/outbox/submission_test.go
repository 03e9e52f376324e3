package outbox_test

import (
	"encoding/base64"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/outbox"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
	"github.com/postern-mail/postern/mail/servertest/scripted"
)

// submission accepts logins with the token "good", by XOAUTH2, and nothing else.
func submission(t *testing.T) mail.Endpoint {
	t.Helper()
	sv := scripted.Serve(t, scripted.AnswerLines("220 hello\r\n", func(line string) (string, bool) {
		verb, rest, _ := strings.Cut(line, " ")
		switch first, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(rest, "XOAUTH2 ")); {
		case verb == "EHLO":
			return "250-hello\r\n250-SIZE 1000\r\n250 AUTH XOAUTH2\r\n", false
		case verb == "QUIT":
			return "221 bye\r\n", true
		case string(first) == "user=oauth\x01auth=Bearer good\x01\x01":
			return "235 in\r\n", false
		case verb == "AUTH":
			return "334 e30=\r\n", false
		}
		return "535 5.7.8 no\r\n", false // to what follows a challenge, too
	}))
	return mail.Endpoint{Host: "127.0.0.1", Port: sv.Port, Security: mail.Plaintext}
}

func TestOAuthAtTheSubmissionServer(t *testing.T) {
	t.Parallel()
	a := mailtest.Settings("127.0.0.1", 1, "oauth")
	mailtest.WithOAuth(&a)
	a.SMTP = submission(t)
	d := &mailtest.Directory{Known: map[string]mail.Account{account: a}}
	for name, tc := range map[string]struct {
		tokens   []string
		refusals int
		kind     mail.Kind
	}{
		"valid":                  {[]string{"good"}, 0, ""},
		"expired, and renewed":   {[]string{"old", "good"}, 1, ""},
		"expired, and no other":  {[]string{"old"}, 1, mail.KindAuth},
		"expired more than once": {[]string{"old", "older", "good"}, 2, mail.KindAuth},
	} {
		c := &mailtest.Renewable{Tokens: tc.tokens}
		v, err := outbox.New(outbox.Options{Directory: d, Credentials: c}).Verify(t.Context(), account)
		switch {
		case err != nil || c.Refusals != tc.refusals:
			t.Errorf("%s: %v, %d refusals", name, err, c.Refusals)
		case tc.kind == "" && (len(v.Issues) > 0 || len(v.Capabilities) != 1):
			t.Errorf("%s: %+v", name, v)
		case tc.kind != "" && (len(v.Issues) != 1 || v.Issues[0].Kind != tc.kind):
			t.Errorf("%s: %+v", name, v)
		}
	}
}

// Without Credentials there are passwords alone, and what they report is passed on
// as it is.
func TestCredentialsForTheSubmissionServerThatCannotBeHad(t *testing.T) {
	t.Parallel()
	a := mailtest.Settings("127.0.0.1", 1, "nocredentials")
	mailtest.WithOAuth(&a)
	a.SMTP = submission(t)
	d := &mailtest.Directory{Known: map[string]mail.Account{account: a}}
	_, err := outbox.New(outbox.Options{Directory: d}).Verify(t.Context(), account)
	mailtest.WantKind(t, err, mail.KindUnsupported)
	c := &mailtest.Renewable{Err: mail.ErrNoConsent}
	if _, err := outbox.New(outbox.Options{Directory: d, Credentials: c}).Verify(t.Context(), account); err != mail.ErrNoConsent {
		t.Errorf("verify: %v", err)
	}
}

// The reasons are those of a server to read from; see package mailbox.
func TestWhyASubmissionServerCannotBeReached(t *testing.T) {
	t.Parallel()
	says := func(text string) func(*scripted.Conn) {
		return func(s *scripted.Conn) { s.Send(text); s.Line(); s.Send("250 mail.example.org\r\n"); s.Drain() }
	}
	for name, c := range map[string]struct {
		security mail.Security
		run      func(*scripted.Conn)
		kind     mail.Kind
		want     string
	}{
		"STARTTLS where TLS is meant": {mail.TLS, says("220 ready\r\n"), mail.KindConnection, "'s connection could not be protected with TLS: it speaks no TLS at 127.0.0.1, port PORT, and may want STARTTLS."},
		"STARTTLS not offered":        {mail.StartTLS, says("220 ready\r\n"), mail.KindConnection, "'s connection could not be protected with TLS: it offers no STARTTLS at 127.0.0.1, port PORT."},
		"unknown authority": {mail.TLS, scripted.OverTLS(scripted.Leaf(t, scripted.Authority(t), time.Time{}, "127.0.0.1"), (*scripted.Conn).Drain), mail.KindCertificate,
			"'s certificate was not accepted: it was issued by an authority that this machine does not trust."},
	} {
		port := scripted.Serve(t, c.run).Port
		a := mailtest.Settings("127.0.0.1", 1, "ann")
		a.SMTP = mail.Endpoint{Host: "127.0.0.1", Port: port, Security: c.security}
		v, err := outbox.New(outbox.Options{Directory: &mailtest.Directory{Known: map[string]mail.Account{account: a}, Password: "x"}}).Verify(t.Context(), account)
		want := "The submission server" + strings.ReplaceAll(c.want, "PORT", strconv.Itoa(int(port)))
		if err != nil || len(v.Issues) != 1 || v.Issues[0].Kind != c.kind || v.Issues[0].Message != want {
			t.Errorf("%s: %+v, %v, want %q", name, v, err, want)
		}
	}
}
