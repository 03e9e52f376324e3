package admin_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postern-mail/postern/commands/admin"
	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/commands/internal/commandtest"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/vault"
)

var must = testmain.Must

var work = commandtest.Work

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
	commandtest.Caller
	vault     *vault.Vault
	mailboxes *fakeMailboxes
	folders   *mailbox.FolderList
	outbox    *fakeOutbox
	deps      *admin.Deps
}

// at is the time on a fixture.
var at = time.Date(2026, 3, 9, 23, 30, 0, 0, time.UTC)

func newFixture(t testing.TB, accounts ...mail.Account) *fixture {
	t.Helper()
	v := commandtest.Vault(t, nil, accounts...)
	mailboxes, outbox := &fakeMailboxes{}, &fakeOutbox{}
	b := &fixture{vault: v, mailboxes: mailboxes, folders: &mailboxes.folders, outbox: outbox, Caller: commandtest.Caller{Principal: gateway.Principal{Name: "admin", Admin: true}}}
	b.deps = &admin.Deps{Store: commandtest.Store{Vault: v}, Mailboxes: mailboxes, Outbox: outbox, Exists: func(string) bool { return true }, Now: func() time.Time { return at }}
	var err error
	b.Registry, err = discovery.NewRegistry(discovery.Info{Name: "postern", Version: "test"}, append(admin.Commands(b.deps), admin.PolicyShow(b.deps))...)
	must(t, err)
	b.Gateway, err = gateway.New(gateway.Options{Registry: b.Registry, Profile: gateway.FullProfile(), Faults: answer.Faults, Auditor: v})
	must(t, err)
	return b
}
