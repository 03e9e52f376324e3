package commands_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/commands"
	"github.com/postern-mail/postern/commands/agents"
	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/vault"
	"github.com/postern-mail/postern/vault/agentmail"
)

var must = testmain.Must

func TestMain(m *testing.M) { os.Exit(testmain.Run(m.Run)) }

// store is a vault as the commands see it.
type store struct{ *vault.Vault }

func (s store) AllSettings(ctx context.Context) ([]vault.Setting, error) { return s.Settings(ctx) }

// fixture is a gateway on a vault of its own and fake mailboxes.
type fixture struct {
	*fakeMailboxes
	saved     fakeFiles
	vault     *vault.Vault
	gateway   *gateway.Gateway
	registry  *discovery.Registry
	principal gateway.Principal
	compact   bool // answers without --full
	deps      *commands.Deps
}

// at is the time on a fixture: in Berlin it is the next day already.
var at = time.Date(2026, 3, 9, 23, 30, 0, 0, time.UTC)

func newFixture(t testing.TB, mailboxes commands.Mailboxes, accounts ...mail.Account) *fixture {
	t.Helper()
	v, remove, err := vault.Temporary(t.Context(), &vault.Options{Now: func() time.Time { return at }})
	must(t, err)
	t.Cleanup(func() { _ = remove() })
	for _, a := range accounts {
		must(t, v.AddAccount(t.Context(), a, mail.NewSecret([]byte("secret"))))
	}
	b := &fixture{saved: fakeFiles{}, vault: v, principal: gateway.Principal{Name: "admin", Admin: true}}
	if b.fakeMailboxes, _ = mailboxes.(*fakeMailboxes); mailboxes == nil {
		b.fakeMailboxes = &fakeMailboxes{}
		mailboxes = b.fakeMailboxes
	}
	b.deps = &commands.Deps{Store: store{v}, Agents: agents.Deps{Mailbox: agentmail.New(v)}, Mailboxes: mailboxes, Attachments: b.saved, Now: func() time.Time { return at },
		Exists: func(path string) bool { return b.registry.Exists(path) },
		Explain: func(ctx context.Context, call *discovery.Call, line string) (commands.Explanation, error) {
			e, err := b.gateway.Explain(ctx, gateway.Request{Principal: gateway.Principal{Name: call.Principal, Admin: call.Admin}, Line: line})
			return commands.Explanation(e), err
		}}
	b.registry, err = discovery.NewRegistry(commands.Info(b.deps, "test"), commands.All(b.deps)...)
	must(t, err)
	b.gateway, err = gateway.New(gateway.Options{Registry: b.registry, Profile: gateway.FullProfile(), Faults: answer.Faults,
		Settings: vaultSettings{v}, Auditor: v})
	must(t, err)
	return b
}

type vaultSettings struct{ v *vault.Vault }

func (s vaultSettings) Settings(ctx context.Context, _ bool) (gateway.Settings, error) {
	c, err := s.v.Config(ctx)
	return gateway.Settings{Deny: c.Deny, CommandsPerMinute: c.CommandsPerMinute, Location: c.Timezone}, err
}

func work(name string, mode mail.Mode) mail.Account {
	return mail.Account{Name: name, Email: "desk@example.org", Protocol: mail.IMAP, Username: "desk", Auth: mail.AuthPassword, Mode: mode,
		IMAP:     mail.Endpoint{Host: "imap.example.org", Port: 993, Security: mail.TLS},
		SMTP:     mail.Endpoint{Host: "smtp.example.org", Port: 465, Security: mail.TLS},
		AllowOut: mail.AllowList{Enabled: true}}
}

// envelope is an answer taken apart.
type envelope struct {
	Success bool           `json:"success"`
	Data    map[string]any `json:"data"`
	Message string         `json:"message"`
	Error   struct {
		Code     string   `json:"code"`
		Message  string   `json:"message"`
		Hint     string   `json:"hint"`
		Examples []string `json:"examples"`
	} `json:"error"`
	Meta struct {
		Untrusted []string `json:"untrusted"`
	} `json:"_meta"`
	size int
}

func (b *fixture) do(t testing.TB, line string) envelope {
	t.Helper()
	a := b.gateway.Do(t.Context(), gateway.Request{Principal: b.principal, Line: line, Full: !b.compact})
	e := envelope{size: len(a.JSON)}
	if err := json.Unmarshal(a.JSON, &e); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return e
}

// ok is do for a command that must work.
func (b *fixture) ok(t testing.TB, line string) envelope {
	t.Helper()
	e := b.do(t, line)
	if !e.Success {
		t.Fatalf("%s: %s %s", line, e.Error.Code, e.Error.Message)
	}
	return e
}

// fails is do for a command that must fail this way.
func (b *fixture) fails(t testing.TB, line string, code discovery.Code, says string) envelope {
	t.Helper()
	e := b.do(t, line)
	if e.Success || e.Error.Code != string(code) || !strings.Contains(e.Error.Message+" "+e.Error.Hint, says) {
		t.Errorf("%s: success %v, %s %q %q; want %s with %q", line, e.Success, e.Error.Code, e.Error.Message, e.Error.Hint, code, says)
	}
	return e
}

func (e envelope) next() string {
	n, _ := e.Data["next_action"].(map[string]any)
	arguments, _ := n["arguments"].(map[string]any)
	command, _ := arguments["command"].(string)
	return command
}

func ref(uid uint32) mail.Ref {
	return mail.Ref{Protocol: mail.IMAP, Account: "work", Folder: "INBOX", UIDValidity: 7, UID: uid}
}

// summaries are n messages, the newest first, whose texts are as long as told.
func summaries(n, subject, sender int) []mailbox.Summary {
	var list []mailbox.Summary
	for i := range n {
		list = append(list, mailbox.Summary{Ref: ref(uint32(n - i)), Date: at.In(time.FixedZone("", 3600)), Flags: []string{`\Seen`},
			From:    []mail.Address{{Name: fmt.Sprintf("Ann %s Lee", strings.Repeat("N", sender)), Addr: "ann@example.org"}},
			Subject: fmt.Sprintf("%d %s", i, strings.Repeat("long ", subject/5)), To: []mail.Address{{Addr: "desk@example.org"}},
			InternetMessageID: "x@example.org", Size: 10})
	}
	return list
}

// data is the data of a compact answer, as it was written.
func (b *fixture) data(t testing.TB, line string) string {
	t.Helper()
	a := b.gateway.Do(t.Context(), gateway.Request{Principal: b.principal, Line: line})
	text := strings.TrimSuffix(strings.TrimPrefix(string(a.JSON), `{"success":true,"data":`), "}")
	if !a.Success() || strings.Contains(text, `"_meta"`) {
		t.Errorf("%s: %s", line, a.JSON)
	}
	return text
}
