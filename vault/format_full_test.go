package vault

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/postern-mail/postern/mail"
)

// testdata/format1-full.db holds some of everything. It was written at
// fullFixtureTime by the version whose agent mailbox lay in eleven buckets.
var fullFixtureTime = time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)

const fullFixtureToken = "postern_tc2dutoxb3bg27yi45yynqsyq3b74anistw2ugroahhl5ou7oxga"

func TestFullFixtureKeepsEverything(t *testing.T) {
	t.Parallel()
	keepsFullFixture(t, fixture(t, "format1-full.db"), fixtureKeys())
}

// keepsFullFixture checks that the vault has all of the fixture.
func keepsFullFixture(t *testing.T, path string, k Keys) {
	t.Helper()
	o := &Options{Now: func() time.Time { return fullFixtureTime.Add(time.Second) }}
	ctx := t.Context()
	admin, v := mustOpen(t, path, k, o), mustOpen(t, path, Keys{Agent: k.Agent}, o)
	must(t, v.Check(ctx))

	accounts, err := v.Accounts(ctx)
	must(t, err)
	home := account("home")
	home.AllowIn = mail.AllowList{Enabled: true, Entries: []string{"ann@example.org"}}
	home.Auth, home.Mode = mail.AuthKeyring, mail.ReadOnly
	if want := []mail.Account{oauthAccount("cloud"), home, account("work")}; !reflect.DeepEqual(accounts, want) {
		t.Errorf("accounts: %+v", accounts)
	}
	// The accounts are older than the right to delete for good, and keep what they could do.
	for _, a := range accounts {
		p, err := mail.CompilePolicy(&a)
		if files := a.Mode != mail.ReadOnly; err != nil || a.Destroy != mail.DestroyUnset || p.MayFile() != files || p.MayDestroy() != files || files && p.DestroyNeedsApproval() {
			t.Errorf("account %s in mode %s: destroy %q, may destroy %v", a.Name, a.Mode, a.Destroy, p.MayDestroy())
		}
	}
	secretIs(t, v, "secret of work")
	must(t, v.RefreshToken(ctx, "cloud", func(_ context.Context, s mail.OAuthSecrets) (mail.Secret, error) {
		if s.RefreshToken.Reveal() != "second token" || s.ClientSecret.Reveal() != "client secret" {
			t.Error("the account cloud has other tokens")
		}
		return mail.Secret{}, nil
	}))
	c, err := v.Config(ctx)
	must(t, err)
	if c.SendsPerHour != 7 || c.CommandsPerMinute != 300 || c.DefaultAccount != "work" || c.Timezone.String() != "Europe/Berlin" || !slices.Equal(c.Deny, []string{"mail delete", "mail raw"}) {
		t.Errorf("settings: %+v", c)
	}
	if g, err := v.GrantOf(ctx, fullFixtureToken); err != nil || g.Name != "desk" || g.Identity != "p:desk" || !slices.Equal(g.Accounts, []string{"work"}) || !slices.Equal(g.Extensions, []string{"x-contacts"}) {
		t.Errorf("the grant: %+v, %v", g, err)
	}

	states := []mail.OutboxState{mail.OutboxWaiting, mail.OutboxQueued, mail.OutboxUnknown, mail.OutboxAccepted, mail.OutboxCancelled}
	for i, state := range states {
		o, err := v.OutgoingByKey(ctx, "work", fmt.Sprintf("key-%d", i))
		if err != nil || o.ID != fmt.Sprintf("id-%04d", i) || o.State != state || o.Subject != "quarterly figures" {
			t.Errorf("outbox %d: %+v, %v", i, o, err)
		}
		if code, err := admin.ApprovalCode(ctx, o.ID, o.Digest); err != nil || len(code) != 8 {
			t.Errorf("outbox %d cannot be approved: %q, %v", i, code, err)
		}
		b, err := v.OutgoingMessage(ctx, o.ID)
		if sent := state == mail.OutboxAccepted; sent && !errors.Is(err, mail.ErrNoOutgoing) || !sent && string(b) != fmt.Sprintf("message %d", i) {
			t.Errorf("the bytes of message %d: %q, %v", i, b, err)
		}
	}
	if s, err := v.Seen(ctx, "work", "INBOX"); err != nil || !reflect.DeepEqual(s, mail.SeenState{Mailbox: "m", UIDValidity: 7, Floor: 3, Acked: []mail.UIDRange{{First: 5, Last: 6}}}) {
		t.Errorf("what was seen: %+v, %v", s, err)
	}
	if r := verify(t, v); !r.OK || r.Entries != 3 {
		t.Errorf("the audit log: %+v", r)
	}
	// The sends were charged an hour before fullFixtureTime, the earliest time in the file.
	early := mustOpen(t, path, k, &Options{Now: func() time.Time { return fullFixtureTime.Add(-30 * time.Minute) }})
	for range 4 {
		if wait, err := early.Take(ctx, "sends:agent", 7, time.Hour); err != nil || wait != 0 {
			t.Errorf("a send more: %v, %v", wait, err)
		}
	}
	if wait, err := early.Take(ctx, "sends:agent", 7, time.Hour); err != nil || wait == 0 {
		t.Errorf("an eighth send within the hour: %v", err)
	}
	if s, err := v.Shown(ctx, "agent"); err != nil || s.Folders != nil { // from before there were short ids
		t.Errorf("what was shown: %+v, %v", s, err)
	}
	must(t, v.UpdateShown(ctx, "agent", func(s *Shown) bool { s.Folders = map[string]ShownFolder{"work:INBOX": {UIDValidity: 7}}; return true }))
	mustAdd(t, admin, "more")
	must(t, admin.Check(ctx))
}
