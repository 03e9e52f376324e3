package outbox

import (
	"testing"

	"github.com/postern-mail/postern/mail"
)

func TestCopyIsLeftToProvidersThatFileIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		host      string
		copies    mail.SentCopy
		protocol  mail.Protocol
		mailboxes bool
		want      mail.SentState
	}{
		{"smtp.gmail.com", mail.SentAuto, mail.IMAP, true, mail.SentProvider},
		{"SMTP.Gmail.com.", "", mail.IMAP, true, mail.SentProvider},
		{"smtp.office365.com", "", mail.IMAP, true, mail.SentProvider},
		{"smtp-mail.outlook.com", "", mail.IMAP, true, mail.SentProvider},
		{"outlook.office365.com", "", mail.IMAP, true, mail.SentProvider},
		{"smtp.gmail.com", mail.SentAlways, mail.IMAP, true, mail.SentPending},
		{"smtp.gmail.com", mail.SentNever, mail.IMAP, true, mail.SentNone},
		{"smtp.gmail.com", mail.SentAuto, mail.POP3, true, mail.SentNone},
		{"smtp.gmail.com.example.org", mail.SentAuto, mail.IMAP, true, mail.SentPending},
		{"mail.example.org", mail.SentAuto, mail.IMAP, true, mail.SentPending},
		{"127.0.0.1", mail.SentAuto, mail.IMAP, true, mail.SentPending}, // any server may listen there
		{"mail.example.org", mail.SentAlways, mail.IMAP, false, mail.SentNone},
	} {
		s := &sender{account: mail.Account{Protocol: c.protocol, SMTP: mail.Endpoint{Host: c.host}, SentCopy: c.copies}}
		if got := s.wantsCopy(c.mailboxes); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
