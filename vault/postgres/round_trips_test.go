package postgres_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault"
	"github.com/postern-mail/postern/vault/postgres"
	"github.com/postern-mail/postern/vault/vaulttest"
)

// What a process does again and again with a vault costs a round trip to begin and one to end.
// Nobody who waits is woken for each command.
func TestRoundTripsOfAVault(t *testing.T) {
	t.Parallel()
	must := vaulttest.Must
	direct, through, sent := postgres.NewProxy(t)
	var k vault.Keys
	for _, key := range []*mail.Secret{&k.Admin, &k.Agent} {
		text, err := vault.NewKey()
		must(t, err)
		*key = mail.NewSecret([]byte(text))
	}
	_, err := vault.Init(t.Context(), direct, k)
	must(t, err)
	open := func(address string) *vault.Vault {
		v, err := vault.Open(t.Context(), address, vault.Keys{Agent: k.Agent}, nil)
		must(t, err)
		return v
	}
	v, machine := open(through), open(direct)
	record := func(v *vault.Vault, principal string) error {
		return v.Record(t.Context(), gateway.AuditEntry{Command: "mail list", Principal: principal})
	}
	o := mail.Outgoing{
		ID: "id", Account: "work", Principal: "agent", State: mail.OutboxQueued, Created: time.Now(), Changed: time.Now(), MessageID: "<one@example.org>",
		From: "ann@example.org", Recipients: []string{"bob@example.net"}, Digest: "d", Request: "r", Sent: mail.SentPending,
	}
	add := func(v *vault.Vault) {
		t.Helper()
		_, _, err := v.AddOutgoing(t.Context(), o, []byte("m"))
		must(t, err)
	}
	add(machine)
	// The other machine writes before each.
	for _, c := range []struct {
		what string
		do   func(i int) error
		want []string
	}{
		{"an entry of the log", func(int) error { return record(v, "agent") }, []string{"begin to write", "commit"}},
		{"the policy", func(int) error { _, err := v.Config(t.Context()); return err }, []string{"version", "begin to read", "end"}},
		{"a charge", func(int) error {
			_, err := v.Take(t.Context(), gateway.CommandsKey+"agent", 50, time.Minute)
			return err
		}, []string{"begin to write", "commit"}},
		{"a change of the outbox", func(int) error {
			_, err := v.ChangeOutgoing(t.Context(), "id", func(o *mail.Outgoing) (bool, error) { o.Attempts++; return false, nil })
			return err
		}, []string{"begin to write", "commit and notify"}},
		{"an entry of another principal", func(i int) error { return record(v, fmt.Sprint("grant:", i)) }, []string{"begin to write", "get", "commit"}},
	} {
		for i := range 5 {
			must(t, record(machine, "agent"))
			sent()
			must(t, c.do(i))
			if got := sent(); i >= 2 && !slices.Equal(got, c.want) {
				t.Errorf("%s sends %q, not %q", c.what, got, c.want)
			}
		}
	}
	// However many messages of others are kept.
	for i := range 150 {
		o.ID, o.Principal = fmt.Sprintf("id-%03d", i), fmt.Sprint("grant:", i%10)
		add(machine)
	}
	o.ID, o.Principal = "id-last", "grant:1"
	sent()
	add(v)
	if got := sent(); len(got) > 8 {
		t.Errorf("a message beside 150 sends %q", got)
	}
}
