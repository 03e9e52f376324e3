package commands_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/commands"
	"github.com/postern-mail/postern/commands/agents"
	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/commands/internal/commandtest"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/outbox"
	"github.com/postern-mail/postern/vault"
	"github.com/postern-mail/postern/vault/agentmail"
)

var must = testmain.Must

func TestMain(m *testing.M) { os.Exit(testmain.Run(m.Run)) }

type envelope = commandtest.Envelope

var work = commandtest.Work

// fixture is a gateway on a vault of its own and fake mailboxes.
type fixture struct {
	*fakeMailboxes
	commandtest.Caller
	saved fakeFiles
	vault *vault.Vault
	deps  *commands.Deps
}

type principalKey struct{}

func onBehalfOf(ctx context.Context, p gateway.Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}

// journal is a vault's for the principal of a command, as the program has it.
type journal struct{ *vault.Vault }

func (j journal) BeginChange(ctx context.Context, c *mail.Change, unasked int) error {
	p, _ := ctx.Value(principalKey{}).(gateway.Principal)
	if c.Principal = p.Name; p.Admin {
		c.Approved, unasked = true, -1
		if plan, err := j.Outgoing(ctx, c.Of); c.Of != "" && err == nil {
			c.Principal = plan.Principal
		}
	}
	return j.Vault.BeginChange(ctx, c, unasked)
}

func (j journal) ChangesMade(ctx context.Context, q mail.ChangeQuery) ([]mail.Change, error) {
	if p, _ := ctx.Value(principalKey{}).(gateway.Principal); !p.Admin {
		q.Principal = p.Name
	}
	return j.Vault.ChangesMade(ctx, q)
}

// Do runs a command; fakeMailboxes has another Do.
func (b *fixture) Do(t testing.TB, line string) envelope { return b.Caller.Do(t, line) }

// at is the time on a fixture: in Berlin it is the next day already.
var at = time.Date(2026, 3, 9, 23, 30, 0, 0, time.UTC)

func newFixture(t testing.TB, mailboxes commands.Mailboxes, accounts ...mail.Account) *fixture {
	t.Helper()
	v := commandtest.Vault(t, &vault.Options{Now: func() time.Time { return at }}, accounts...)
	b := &fixture{saved: fakeFiles{}, vault: v, Caller: commandtest.Caller{Principal: gateway.Principal{Name: "admin", Admin: true}}}
	if b.fakeMailboxes, _ = mailboxes.(*fakeMailboxes); mailboxes == nil {
		b.fakeMailboxes = &fakeMailboxes{Mailboxes: mailbox.New(mailbox.Options{Directory: v})}
		mailboxes = b.fakeMailboxes
	}
	b.deps = &commands.Deps{Store: commandtest.Store{Vault: v}, Agents: agents.Deps{Mailbox: agentmail.New(v)}, Mailboxes: mailboxes, Outbox: b.real(), Attachments: b.saved, Now: func() time.Time { return at },
		Exists: func(path string) bool { return b.Registry.Exists(path) },
		Explain: func(ctx context.Context, call *discovery.Call, line string) (commands.Explanation, error) {
			e, err := b.Gateway.Explain(ctx, gateway.Request{Principal: gateway.Principal{Name: call.Principal, Admin: call.Admin}, Line: line})
			return commands.Explanation(e), err
		}}
	var err error
	b.Registry, err = discovery.NewRegistry(commands.Info(b.deps, "test"), commands.All(b.deps)...)
	must(t, err)
	b.Gateway, err = gateway.New(gateway.Options{Registry: b.Registry, Context: onBehalfOf, Profile: gateway.FullProfile(), Faults: answer.Faults,
		Settings: vaultSettings{v}, Auditor: v})
	must(t, err)
	return b
}

// real is an outbox whose mail servers do not exist: it says what it would do.
func (b *fixture) real() *outbox.Outbox {
	return outbox.New(outbox.Options{Directory: b.vault, Mailboxes: mailbox.New(mailbox.Options{Directory: b.vault}), Store: b.vault, Now: func() time.Time { return at }})
}

type vaultSettings struct{ v *vault.Vault }

func (s vaultSettings) Settings(ctx context.Context, _ bool) (gateway.Settings, error) {
	c, err := s.v.Config(ctx)
	return gateway.Settings{Deny: c.Deny, CommandsPerMinute: c.CommandsPerMinute, Location: c.Timezone}, err
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
