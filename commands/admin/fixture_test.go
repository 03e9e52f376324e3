package admin_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postern-mail/postern/commands/admin"
	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/vault"
)

var must = testmain.Must

// store is a vault as the commands see it.
type store struct{ *vault.Vault }

func (s store) AllSettings(ctx context.Context) ([]vault.Setting, error) { return s.Settings(ctx) }

// fakeMailboxes is Mailboxes on which every login works, unless there are issues.
type fakeMailboxes struct {
	folders    mailbox.FolderList
	judged     map[string]map[mail.Verdict]int // by entry
	authServID string
	asked      atomic.Int32 // how often for authServID
	issues     []mail.Issue
}

func (m *fakeMailboxes) JudgeSender(_ context.Context, _, entry string) (map[mail.Verdict]int, error) {
	return m.judged[entry], nil
}

func (m *fakeMailboxes) AuthServID(context.Context, string) (string, error) {
	m.asked.Add(1)
	return m.authServID, nil
}

func (m *fakeMailboxes) Verify(_ context.Context, account string) (*mail.Verification, error) {
	return &mail.Verification{Account: account, Issues: m.issues}, nil
}

func (m *fakeMailboxes) Folders(context.Context, string, mailbox.FolderQuery) (*mailbox.FolderList, error) {
	return &m.folders, nil
}

// fakeOutbox is an Outbox with these entries.
type fakeOutbox []mail.Outgoing

func (*fakeOutbox) Verify(_ context.Context, account string) (*mail.Verification, error) {
	return &mail.Verification{Account: account}, nil
}

func (y *fakeOutbox) List(_ context.Context, q mail.OutboxQuery) (entries []mail.Outgoing, more bool, err error) {
	for i := range *y {
		if q.Matches(&(*y)[i]) {
			entries = append(entries, (*y)[i])
		}
	}
	return entries, false, nil
}

// fixture is a gateway on a vault of its own and fake servers.
type fixture struct {
	vault     *vault.Vault
	mailboxes *fakeMailboxes
	folders   *mailbox.FolderList
	outbox    *fakeOutbox
	registry  *discovery.Registry
	gateway   *gateway.Gateway
	principal gateway.Principal
	compact   bool // answers without --full
	deps      *admin.Deps
}

// at is the time on a fixture.
var at = time.Date(2026, 3, 9, 23, 30, 0, 0, time.UTC)

func newFixture(t testing.TB, accounts ...mail.Account) *fixture {
	t.Helper()
	v, remove, err := vault.Temporary(t.Context(), nil)
	must(t, err)
	t.Cleanup(func() { _ = remove() })
	for _, a := range accounts {
		must(t, v.AddAccount(t.Context(), a, mail.NewSecret([]byte("secret"))))
	}
	mailboxes, outbox := &fakeMailboxes{}, &fakeOutbox{}
	b := &fixture{vault: v, mailboxes: mailboxes, folders: &mailboxes.folders, outbox: outbox, principal: gateway.Principal{Name: "admin", Admin: true}}
	b.deps = &admin.Deps{Store: store{v}, Mailboxes: mailboxes, Outbox: outbox, Exists: func(string) bool { return true }, Now: func() time.Time { return at }}
	b.registry, err = discovery.NewRegistry(discovery.Info{Name: "postern", Version: "test"}, append(admin.Commands(b.deps), admin.PolicyShow(b.deps))...)
	must(t, err)
	b.gateway, err = gateway.New(gateway.Options{Registry: b.registry, Profile: gateway.FullProfile(), Faults: answer.Faults, Auditor: v})
	must(t, err)
	return b
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
}

func (b *fixture) do(t testing.TB, line string) (e envelope) {
	t.Helper()
	a := b.gateway.Do(t.Context(), gateway.Request{Principal: b.principal, Line: line, Full: !b.compact})
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
