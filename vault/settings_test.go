package vault

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/mail"
)

func TestSettingsHaveTheirDefaults(t *testing.T) {
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
	admin, agent := newVault(t, nil)
	for _, c := range []struct {
		name, value, want string // want "!" for a refusal
	}{
		{"audit_retention_days", "1", "1"}, {"audit_retention_days", "3650", "3650"}, {"audit_retention_days", " 007 ", "7"},
		{"audit_retention_days", "0", "!"}, {"audit_retention_days", "3651", "!"}, {"audit_retention_days", "", "!"},
		{"audit_retention_days", "1.5", "!"}, {"audit_retention_days", "0x10", "!"}, {"audit_retention_days", "99999999999999999999", "!"},
		{"commands_per_minute", "1", "1"}, {"commands_per_minute", "100000", "100000"}, {"commands_per_minute", "0", "!"}, {"commands_per_minute", "100001", "!"},
		{"changes_per_hour", "0", "0"}, {"changes_per_hour", "1000001", "!"}, {"sends_per_hour", "0", "0"}, {"sends_per_hour", "10000", "10000"}, {"sends_per_hour", "-1", "!"}, {"sends_per_hour", "10001", "!"},
		{"default_account", "work", "work"}, {"default_account", "", ""}, {"default_account", "a b", "!"}, {"default_account", "work\nx", "!"},
		{"timezone", "Europe/Berlin", "Europe/Berlin"}, {"timezone", "LOCAL", "local"}, {"timezone", "UTC", "UTC"},
		{"timezone", "", "!"}, {"timezone", "Mars/Olympus", "!"}, {"timezone", "../etc/passwd", "!"},
		{"deny", " mail   send , mail delete,mail send,", "mail delete,mail send"}, {"deny", "", ""}, {"deny", "mail", "mail"},
		{"deny", "mail --send", "!"}, {"deny", "Mail send", "!"}, {"deny", "mail send;mail get", "!"}, {"deny", "a b c d e", "!"},
		{"search_max_matches", "100", "100"}, {"search_max_matches", "1000000", "1000000"}, {"search_max_matches", "99", "!"}, {"search_max_matches", "1000001", "!"},
		{"notify_command", ` ["/bin/a b","{id}"] `, `["/bin/a b","{id}"]`}, {"notify_command", "/bin/a", "!"}, {"notify_command", `["a"]`, "!"}, {"notify_command", `["./a"]`, "!"}, {"notify_command", `[]`, "!"},
		{"notify_command", `{"a":1}`, "!"}, {"notify_command", `["/bin/a",1]`, "!"}, {"notify_command", `["/bin/a","\u0000"]`, "!"}, {"notify_command", `["/a"` + strings.Repeat(`,""`, 32) + "]", "!"}, {"notify_command", "", ""},
		{"ask_in_client", "off", "off"}, {"ask_in_client", "ON", "on"}, {"ask_in_client", "", "!"}, {"ask_in_client", "true", "!"}, {"ask_in_client", "on off", "!"},
	} {
		before, err := agent.Setting(t.Context(), c.name)
		must(t, err)
		err = admin.SetSetting(t.Context(), c.name, c.value)
		want := c.want
		if want == "!" {
			want = before
			if !errors.Is(err, ErrInvalid) {
				t.Errorf("%s = %q: %v, want ErrInvalid", c.name, c.value, err)
			}
		} else if err != nil {
			t.Errorf("%s = %q: %v", c.name, c.value, err)
		}
		if got, err := agent.Setting(t.Context(), c.name); err != nil || got != want {
			t.Errorf("%s after %q is %q, %v; want %q", c.name, c.value, got, err, want)
		}
	}
}

func TestConfigIsTypedAndTheCallersOwn(t *testing.T) {
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

func TestASettingOfALaterVersionFailsClosed(t *testing.T) {
	admin, agent := newVault(t, nil)
	must(t, admin.change(t.Context(), func(c *policyChange) error { return c.put(bucketSettings, "only_on_mondays", []byte("true")) }))
	if c, err := agent.Config(t.Context()); !errors.Is(err, ErrFutureFormat) {
		t.Errorf("Config = %+v, %v; want ErrFutureFormat", c, err)
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
