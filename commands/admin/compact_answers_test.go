package admin_test

import (
	"strings"
	"testing"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
)

// What an administrator asks for is answered with what is news.
func TestCompactAnswersOfTheAdministrator(t *testing.T) {
	pop := work("pop", mail.Approve)
	pop.Protocol, pop.Email = mail.POP3, "pop@example.org"
	pop.POP3 = mail.Endpoint{Host: "pop.example.org", Port: 995, Security: mail.TLS}
	pop.AllowIn = mail.AllowList{Enabled: true, Entries: []string{"@example.org", "ann@example.com"}}
	b := newFixture(t, work("work", mail.ReadWrite), pop)
	for _, test := range []struct{ line, want string }{
		{"account list", `{"columns":["name","email","server","mode","destroy","allow_in","allow_out"],"rows":[` +
			`["pop","pop@example.org","pop.example.org:995 tls","approve","before","@example.org ann@example.com","nobody"],` +
			`["work","desk@example.org","imap.example.org:993 tls","RW","before","","nobody"]]}`},
		{"account show work", `{"name":"work","email":"desk@example.org","imap":"imap.example.org:993 tls","smtp":"smtp.example.org:465 tls","username":"desk","mode":"RW","destroy":"before","allow_out":"nobody"}`},
		{"account edit work --mode approve --username desk@example.org", `{"name":"work","email":"desk@example.org","imap":"imap.example.org:993 tls","smtp":"smtp.example.org:465 tls","mode":"approve","allow_out":"nobody","more":"doctor --account work"}`},
		{"account show pop", `{"name":"pop","email":"pop@example.org","pop3":"pop.example.org:995 tls","smtp":"smtp.example.org:465 tls","username":"desk","mode":"approve","destroy":"before","allow_in":"@example.org ann@example.com","allow_out":"nobody"}`},
		{"allow in add ann@example.org --account work", `{"account":"work","on":false,"entries":["ann@example.org"],"added":["ann@example.org"],"hint":"The list is off: account edit work --allow-in on turns it on."}`},
		{"account list --fields name,allow_in", `{"columns":["name","allow_in"],"rows":[["pop","@example.org ann@example.com"],["work","off, with 1 entry"]]}`},
		{"allow in remove ann@example.org --account work", `{"account":"work","on":false,"entries":[],"removed":["ann@example.org"]}`},
		{"allow out list --account work", `{"account":"work","on":true,"entries":[],"hint":"The list is on and empty: it lets nothing pass."}`},
		{"config set sends_per_hour 7", `{"name":"sends_per_hour","value":"7"}`},
		{"config get sends_per_hour", `{"name":"sends_per_hour","value":"7"}`},
		{"config list --fields name,value,default", `["sends_per_hour","7","`},
		{"policy show", `"accounts":{"columns":["account","mode","may","hides","recipients"],"rows":[["pop","approve","read change send-when-approved destroy","senders","nobody"],["work","approve","read change send-when-approved","","nobody"]]}}`},
		{"doctor --account work", `{"status":"ok","columns":["check","result","detail"],"rows":[["vault","ok","The key opens it, and its policy is signed."],`},
		{"audit list --limit 1", `"columns":["seq","time","principal","account","command"`},
		{"audit list --limit 1", `,"more":"audit list --limit 1 --before-seq `},
		{"grant add laptop --accounts work --profile read --expires 1h", `"laptop"`},
		{"grant list", `{"columns":["name","accounts","profile","expires"],"rows":[["laptop","work","read","20`},
	} {
		if got := b.data(t, test.line); got != test.want && (test.want[0] == '{' && strings.HasSuffix(test.want, "}") || !strings.Contains(got, test.want)) {
			t.Errorf("%s:\n%s\nwant\n%s", test.line, got, test.want)
		}
	}
	b.compact = true
	if got := b.ok(t, "audit list").Message; got != "" {
		t.Errorf("a compact answer says %q", got)
	}
}

// Without an option account edit changes nothing, and says what it takes.
func TestAccountEditWithoutOptionsIsAnError(t *testing.T) {
	b := newFixture(t, work("work", mail.ReadWrite))
	for _, option := range []string{"--mode", "--allow-in", "--password-from", "--ca-file", "--oauth-client-id"} {
		b.fails(t, "account edit work", discovery.ValidationError, option)
	}
	b.ok(t, "account edit work --display-name ''")
	b.ok(t, "account edit work --process-backlog=false")
}
