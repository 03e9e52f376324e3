package vault

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail"
)

func TestSettingsHaveTheirDefaults(t *testing.T) {
	t.Parallel()
	_, agent := newVault(t, nil)
	c, err := agent.Config(t.Context())
	must(t, err)
	if c.AuditRetentionDays != 90 || c.CommandsPerMinute != 1200 || c.SendsPerHour != 20 || c.ChangesPerHour != 1000 || c.DefaultAccount != "" ||
		c.Timezone != time.Local || len(c.Deny) != 0 || c.SearchMaxMatches != 20000 || c.AskInClient || c.ExtensionsSend || c.NotifyCommand != nil {
		t.Errorf("Config = %+v", c)
	}
	all, err := agent.Settings(t.Context())
	if err != nil || len(all) != 11 {
		t.Fatalf("Settings = %v, %v", all, err)
	}
	for _, s := range all {
		if s.IsSet || s.Value != s.Default || s.Description == "" || s.Type == "" {
			t.Errorf("%+v: want the default, described", s)
		}
		if one, err := agent.Setting(t.Context(), s.Name); err != nil || one != s.Default {
			t.Errorf("Setting(%s) = %q, %v", s.Name, one, err)
		}
	}
}

func TestSetSetting(t *testing.T) {
	t.Parallel()
	admin, agent := newVault(t, nil)
	for _, c := range testmain.Table[struct{ Name, Value, Want string }](t, "testdata/cases/settings.txt") {
		before, err := agent.Setting(t.Context(), c.Name)
		must(t, err)
		err = admin.SetSetting(t.Context(), c.Name, c.Value)
		want := c.Want
		if want == "!" {
			want = before
			wantErr(t, err, ErrInvalid, "%s = %q", c.Name, c.Value)
		} else {
			must(t, err)
		}
		if got, err := agent.Setting(t.Context(), c.Name); err != nil || got != want {
			t.Errorf("%s after %q is %q, %v; want %q", c.Name, c.Value, got, err, want)
		}
	}
}

func TestConfigIsTypedAndTheCallersOwn(t *testing.T) {
	t.Parallel()
	admin, agent := newVault(t, nil)
	must(t, admin.SetSetting(t.Context(), "deny", "mail send,mail delete"))
	must(t, admin.SetSetting(t.Context(), "timezone", "Asia/Tokyo"))
	for range 2 {
		c, err := agent.Config(t.Context())
		if err != nil || !slices.Equal(c.Deny, []string{"mail delete", "mail send"}) || c.Timezone.String() != "Asia/Tokyo" {
			t.Fatalf("Config = %+v, %v", c, err)
		}
		c.Deny[0] = "changed by a caller"
	}
}

func TestAnUnknownSettingListsTheKnown(t *testing.T) {
	t.Parallel()
	admin, _ := newVault(t, nil)
	_, getErr := admin.Setting(t.Context(), "nope")
	for _, err := range []error{getErr, admin.SetSetting(t.Context(), "nope", "1")} {
		if !errors.Is(err, ErrInvalid) {
			t.Fatalf("%v, want ErrInvalid", err)
		}
		for i := range settings {
			if !strings.Contains(err.Error(), settings[i].Name) {
				t.Errorf("%v does not name %s", err, settings[i].Name)
			}
		}
	}
}

// An account that is removed is no longer the default one.
func TestARemovedAccountIsNotTheDefault(t *testing.T) {
	t.Parallel()
	path, k := newPlace(t)
	admin := mustOpen(t, path, k, nil)
	for _, name := range []string{"one", "two"} {
		must(t, admin.AddAccount(t.Context(), account(name), mail.NewSecret([]byte("x"))))
	}
	must(t, admin.SetSetting(t.Context(), "default_account", "two"))
	must(t, admin.RemoveAccount(t.Context(), "one"))
	for _, want := range []string{"two", ""} {
		if c, err := admin.Config(t.Context()); err != nil || c.DefaultAccount != want {
			t.Errorf("the default is %q, %v, want %q", c.DefaultAccount, err, want)
		}
		if want != "" {
			must(t, admin.RemoveAccount(t.Context(), want))
		}
	}
}
