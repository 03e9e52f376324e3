package outbox

import (
	"testing"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail"
)

func TestCopyIsLeftToProvidersThatFileIt(t *testing.T) {
	t.Parallel()
	for _, c := range testmain.Table[struct {
		Host      string
		Copies    mail.SentCopy
		Protocol  mail.Protocol
		Mailboxes bool
		Want      mail.SentState
	}](t, "testdata/cases/copies.txt") {
		s := &sender{account: mail.Account{Protocol: c.Protocol, SMTP: mail.Endpoint{Host: c.Host}, SentCopy: c.Copies}}
		if got := s.wantsCopy(c.Mailboxes); got != c.Want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
