package commands_test

import (
	"context"
	"strings"
	"testing"

	"github.com/postern-mail/postern/commands"
	"github.com/postern-mail/postern/commands/admin"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/outbox"
)

// fakeOutbox is an Outbox that says what no server says on demand: every message and deletion is
// the one entry m0, whose outcome a test sets.
type fakeOutbox struct {
	commands.Outbox // says what becomes of deletions and drafts
	entry           outbox.Decision
	becomes         mail.OutboxState  // when it is approved
	fails           error             // of Send and Approve
	draft           outbox.SavedDraft // every draft
	request         outbox.Request    // the last one, and whether it was to be foreseen offline
	offline         bool
}

// newOutboxFixture is a fixture of an agent whose person may be asked in its client.
func newOutboxFixture(t testing.TB, mode mail.Mode, state mail.OutboxState) (*fixture, *fakeOutbox) {
	t.Helper()
	b := agent(newFixture(t, nil, work("work", mode)))
	must(t, b.vault.SetSetting(t.Context(), admin.AskSetting, "on"))
	y := &fakeOutbox{Outbox: b.real(), entry: outbox.Decision{Here: true, Body: "The text.", Outgoing: mail.Outgoing{ID: "m0", Account: "work", Principal: "agent", State: state, Created: at, Changed: at,
		From: "desk@example.org", Recipients: []string{"ann@example.org"}, To: []mail.Address{{Addr: "ann@example.org"}}, Subject: "s", Digest: strings.Repeat("ab", 32)}}}
	b.deps.Outbox = y
	return b, y
}

func (y *fakeOutbox) outcome() (*mail.Outgoing, error) {
	o := y.entry.Outgoing
	return &o, y.fails
}

func (y *fakeOutbox) Send(_ context.Context, _ string, r outbox.Request) (*mail.Outgoing, error) {
	y.request = r
	return y.outcome()
}

func (y *fakeOutbox) Foresee(_ context.Context, _ string, r outbox.Request, offline bool) (*outbox.Decision, error) {
	y.request, y.offline = r, offline
	d := y.entry
	return &d, y.fails
}

func (y *fakeOutbox) HoldDeletion(context.Context, string, []mail.Ref, string) (*mail.Outgoing, error) {
	return y.outcome()
}

func (y *fakeOutbox) SaveDraft(context.Context, string, outbox.Draft) (*outbox.SavedDraft, error) {
	return &y.draft, nil
}

func (y *fakeOutbox) AppendToDraft(context.Context, mail.Ref, outbox.Draft) (*outbox.SavedDraft, error) {
	return &y.draft, nil
}

func (y *fakeOutbox) List(context.Context, mail.OutboxQuery) ([]mail.Outgoing, bool, error) {
	return []mail.Outgoing{y.entry.Outgoing}, false, nil
}

func (y *fakeOutbox) Show(context.Context, string) (*outbox.Decision, error) {
	s := y.entry
	return &s, nil
}

func (y *fakeOutbox) Approve(context.Context, string, string, string) (*mail.Outgoing, error) {
	y.entry.State = y.becomes
	return y.outcome()
}
