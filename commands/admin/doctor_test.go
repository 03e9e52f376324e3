package admin_test

import (
	"context"
	"strings"
	"testing"

	"github.com/postern-mail/postern/commands/admin"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
)

// TestDoctorTellsOfTheProcessItself adds checks that are not of a server: one that
// fails leaves the whole no better than partial, and one account's doctor has none.
func TestDoctorTellsOfTheProcessItself(t *testing.T) {
	good := admin.Check{Name: "extensions", OK: true, Detail: "There are x-a."}
	bad := admin.Check{Name: "extension x-b", Detail: "It is left out.", Code: discovery.ConfigError, Hint: "Mend it."}
	for _, c := range []struct {
		line   string
		checks []admin.Check
		want   mail.Status
		n      int
		status int // of a process that ends with it
	}{
		{"doctor", nil, mail.StatusOK, 2, 0}, {"doctor", []admin.Check{good}, mail.StatusOK, 3, 0},
		{"doctor", []admin.Check{good, bad}, mail.StatusPartial, 4, 8}, {"doctor --account work", []admin.Check{good, bad}, mail.StatusOK, 2, 0},
	} {
		a := work("work", mail.ReadOnly)
		a.SMTP = mail.Endpoint{} // the servers are asked at once, which the fake is not made for
		b := newFixture(t, a)
		b.deps.Checks = func(context.Context) []admin.Check { return c.checks }
		data := b.OK(t, c.line).Data
		if checks, _ := data["checks"].([]any); data["status"] != string(c.want) || len(checks) != c.n {
			t.Errorf("%s with %d: %v", c.line, len(c.checks), data)
		}
		if a := b.Gateway.Do(t.Context(), gateway.Request{Principal: b.Principal, Line: c.line}); !a.Success() || a.ExitStatus() != c.status {
			t.Errorf("%s with %d: status %d, want %d", c.line, len(c.checks), a.ExitStatus(), c.status)
		}
	}
}

func TestDoctorTellsWhereEveryReplyAsks(t *testing.T) {
	for want, change := range map[string]func(*mail.Account){
		"": func(*mail.Account) {},
		"In mode reply, but every reply asks: work, where nobody is known to judge senders.": func(a *mail.Account) { a.AuthServIDs = nil },
		"In mode reply, but every reply asks: work, whose inbound list names nobody.":        func(a *mail.Account) { a.AllowIn.Entries = []string{"*"} },
	} {
		a := work("work", mail.Reply)
		a.SMTP, a.AuthServIDs, a.AllowIn.Entries = mail.Endpoint{}, []string{"mx.example.org"}, []string{"ann@example.org"}
		change(&a)
		data := newFixture(t, a).Data(t, "doctor")
		if strings.Contains(data, "every reply asks") != (want != "") || !strings.Contains(data, want) {
			t.Errorf("%q: %s", want, data)
		}
	}
}

func TestFailedChecksGiveTheirStatus(t *testing.T) {
	const auth, connection, timeout = discovery.AuthFailed, discovery.ConnectionFailed, discovery.Timeout
	for _, c := range []struct {
		failed []discovery.Code
		want   discovery.Code
	}{
		{nil, ""}, {[]discovery.Code{auth}, auth}, {[]discovery.Code{auth, auth}, auth}, {[]discovery.Code{connection}, connection},
		{[]discovery.Code{auth, connection}, connection}, {[]discovery.Code{timeout}, connection}, {[]discovery.Code{discovery.ConfigError}, connection},
	} {
		r := admin.DoctorResult{Checks: []admin.Check{{OK: true}}}
		for _, code := range c.failed {
			r.Checks = append(r.Checks, admin.Check{Code: code})
		}
		if got := r.Failed(); got != c.want {
			t.Errorf("%q: %q, want %q", c.failed, got, c.want)
		}
	}
}

// A person is told how much waits and where they decide, an agent how much of its own does.
func TestDoctorTellsWhatWaits(t *testing.T) {
	b := newFixture(t, work("work", mail.Approve))
	for i, e := range []struct {
		account, by string
		state       mail.OutboxState
	}{{"work", "agent", mail.OutboxWaiting}, {"work", "grant:desk", mail.OutboxWaiting}, {"other", "agent", mail.OutboxWaiting}, {"work", "agent", mail.OutboxAccepted}} {
		*b.outbox = append(*b.outbox, mail.Outgoing{ID: string(rune('a' + i)), Account: e.account, Principal: e.by, State: e.state})
	}
	for _, c := range []struct {
		principal gateway.Principal
		line      string
		waits     string
	}{
		{b.Principal, "doctor", "3 messages wait for a person."},
		{gateway.Principal{Name: mail.PersonPrincipal}, "doctor --account work", "2 messages wait for a person."},
		{gateway.Principal{Name: mail.AgentPrincipal}, "doctor", "2 messages wait for a person."},
		{gateway.Principal{Name: "grant:desk"}, "doctor", "1 message waits for a person."},
		{gateway.Principal{Name: "grant:other"}, "doctor", ""},
	} {
		b.Principal = c.principal
		data := b.Data(t, c.line)
		person := c.principal.Admin || c.principal.Name == mail.PersonPrincipal
		if strings.Contains(data, "'postern approve'") != person || !strings.Contains(data, c.waits) || !strings.Contains(data, `"status":"ok"`) {
			t.Errorf("%s of %s: %s", c.line, c.principal.Name, data)
		}
	}
}

// TestDoctorTriesARefusedPasswordOnce asks a server that refused the login for nothing more:
// providers count wrong passwords.
func TestDoctorTriesARefusedPasswordOnce(t *testing.T) {
	for asked, issues := range [][]mail.Issue{{{Kind: mail.KindAuth, Message: "The mail server did not accept the login."}}, nil} {
		a := work("work", mail.ReadOnly)
		a.SMTP = mail.Endpoint{}
		b := newFixture(t, a)
		b.mailboxes.issues = issues
		b.OK(t, "doctor")
		if n := b.mailboxes.asked.Load(); n != int32(asked) {
			t.Errorf("with %d issues the server was asked %d times more, want %d", len(issues), n, asked)
		}
	}
}

// doctor proposes to the administrator alone whom to believe, and sets nothing.
func TestDoctorProposesWhomToBelieve(t *testing.T) {
	b := newFixture(t, work("work", mail.ReadOnly))
	b.mailboxes.authServID = "mx.example.org"
	if got := b.Data(t, "doctor"); !strings.Contains(got, "'account edit work --authserv-id mx.example.org'") {
		t.Errorf("%s", got)
	}
	if a, err := b.vault.Account(t.Context(), "work"); err != nil || a.AuthServIDs != nil {
		t.Errorf("%v %v", a.AuthServIDs, err)
	}
	b.Principal.Admin = false
	b.mailboxes.asked.Store(0)
	if got := b.Data(t, "doctor"); strings.Contains(got, "authserv") || b.mailboxes.asked.Load() > 0 {
		t.Errorf("an agent: %s, %v", got, b.mailboxes.asked.Load())
	}
	b.Principal.Admin = true
	b.OK(t, "account edit work --authserv-id mx.example.org")
	if got := b.Data(t, "doctor"); strings.Contains(got, "senders") {
		t.Errorf("where it is set: %s", got)
	}
}
