package mail

import (
	"slices"
	"testing"
)

func TestCopyIsLeftToProvidersThatFileIt(t *testing.T) {
	for _, c := range []struct {
		host      string
		copies    SentCopy
		protocol  Protocol
		mailboxes bool
		want      SentState
	}{
		{"smtp.gmail.com", SentAuto, IMAP, true, SentProvider},
		{"SMTP.Gmail.com.", "", IMAP, true, SentProvider},
		{"smtp.office365.com", "", IMAP, true, SentProvider},
		{"smtp-mail.outlook.com", "", IMAP, true, SentProvider},
		{"outlook.office365.com", "", IMAP, true, SentProvider},
		{"smtp.gmail.com", SentAlways, IMAP, true, SentPending},
		{"smtp.gmail.com", SentNever, IMAP, true, SentNone},
		{"smtp.gmail.com", SentAuto, POP3, true, SentNone},
		{"smtp.gmail.com.example.org", SentAuto, IMAP, true, SentPending},
		{"mail.example.org", SentAuto, IMAP, true, SentPending},
		{"mail.example.org", SentAlways, IMAP, false, SentNone},
	} {
		s := &sender{account: Account{Protocol: c.protocol, SMTP: Endpoint{Host: c.host}, SentCopy: c.copies}}
		if got := s.wantsCopy(c.mailboxes); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

func TestProvidersThatFileWhatIsSentGetNoCopy(t *testing.T) {
	for _, p := range Providers() {
		if p.FilesSent && !p.SMTP.Loopback() && !slices.Contains(selfFiling, p.SMTP.Host) {
			t.Errorf("%s files what is sent, and a copy would be filed again", p.ID)
		}
		if p.SMTP.Loopback() && slices.Contains(selfFiling, p.SMTP.Host) {
			t.Errorf("%s: any server on this machine would count as one that files", p.ID)
		}
	}
}
