package admin_test

import (
	"strings"
	"testing"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail"
)

// What an administrator asks for is answered with what is news.
func TestCompactAnswersOfTheAdministrator(t *testing.T) {
	pop := work("pop", mail.Approve)
	pop.Protocol, pop.Email = mail.POP3, "pop@example.org"
	pop.POP3 = mail.Endpoint{Host: "pop.example.org", Port: 995, Security: mail.TLS}
	pop.AllowIn = mail.AllowList{Enabled: true, Entries: []string{"@example.org", "ann@example.com"}}
	b := newFixture(t, work("work", mail.ReadWrite), pop)
	for _, test := range testmain.Table[struct{ Line, Want string }](t, "testdata/cases/compact_answers.txt") {
		if got := b.Data(t, test.Line); got != test.Want && (test.Want[0] == '{' && strings.HasSuffix(test.Want, "}") || !strings.Contains(got, test.Want)) {
			t.Errorf("%s:\n%s\nwant\n%s", test.Line, got, test.Want)
		}
	}
	b.Compact = true
	if got := b.OK(t, "audit list").Message; got != "" {
		t.Errorf("a compact answer says %q", got)
	}
}
