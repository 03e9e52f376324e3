package outbox_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/outbox"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
	"github.com/postern-mail/postern/mail/servertest/scripted"
)

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
