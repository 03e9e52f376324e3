package commands_test

import (
	"context"
	"testing"

	"github.com/postern-mail/postern/commands"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
)

// TestDoctorTellsOfTheProcessItself adds checks that are not of a server: one that
// fails leaves the whole no better than partial, and one account's doctor has none.
func TestDoctorTellsOfTheProcessItself(t *testing.T) {
	good := commands.Check{Name: "extensions", OK: true, Detail: "There are x-a."}
	bad := commands.Check{Name: "extension x-b", Detail: "It is left out.", Code: discovery.ConfigError, Hint: "Mend it."}
	for _, c := range []struct {
		line   string
		checks []commands.Check
		want   mail.Status
		n      int
	}{
		{"doctor", nil, mail.StatusOK, 2}, {"doctor", []commands.Check{good}, mail.StatusOK, 3},
		{"doctor", []commands.Check{good, bad}, mail.StatusPartial, 4}, {"doctor --account work", []commands.Check{good, bad}, mail.StatusOK, 2},
	} {
		a := work("work", mail.ReadOnly)
		a.SMTP = mail.Endpoint{} // the servers are asked at once, which the fake is not made for
		b := newBench(t, &fakeMailboxes{}, a)
		b.deps.Checks = func(context.Context) []commands.Check { return c.checks }
		data := b.ok(t, c.line).Data
		if checks, _ := data["checks"].([]any); data["status"] != string(c.want) || len(checks) != c.n {
			t.Errorf("%s with %d: %v", c.line, len(c.checks), data)
		}
	}
}
