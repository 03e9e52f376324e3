package commands_test

import (
	"testing"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
)

func TestMailCodeTellsACode(t *testing.T) {
	b := newFixture(t, nil, work("work", mail.ReadOnly))
	b.Compact = true
	a := b.Fails(t, "mail code --from example.org", "NOT_FOUND", "No code")
	if !b.waited.IsZero() || b.codeFrom != "example.org" {
		t.Errorf("asked %q until %v: %+v", b.codeFrom, b.waited, a)
	}
	b.given = &mailbox.GivenCode{Code: "482913", Other: 1, Summary: mailbox.Summary{Ref: mail.Ref{Protocol: mail.IMAP, Account: "work", Folder: "INBOX", UIDValidity: 7, UID: 50},
		From: []mail.Address{{Addr: "no-reply@example.org"}}, Subject: "Your [code hidden]", InternalDate: time.Date(2026, 2, 1, 9, 0, 0, 0, time.UTC)}}
	start := time.Now()
	d := b.OK(t, "mail code --from @EXAMPLE.org --wait 60s").Data
	if d["code"] != "482913" || d["from"] != "no-reply@example.org" || d["id"] != "50" || d["others"] != 1.0 {
		t.Errorf("%v", d)
	}
	if b.codeFrom != "example.org" || b.waited.Before(start.Add(59*time.Second)) || b.waited.After(time.Now().Add(61*time.Second)) {
		t.Errorf("asked %q until %v", b.codeFrom, b.waited)
	}
	for _, line := range []string{"mail code", "mail code --from org", "mail code --from ann@example.org", "mail code --from example.org --wait 1h"} {
		b.Fails(t, line, "VALIDATION_ERROR", "")
	}
}
