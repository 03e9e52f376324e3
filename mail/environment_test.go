package mail

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/postern-mail/postern/internal/testmain"
)

// one is the least that describes an account.
func one() []string {
	return []string{"PATH=/usr/bin", "MAIL_IMAP_DEFAULT_HOST=imap.example.org", "MAIL_IMAP_DEFAULT_USER=ann@example.org", "MAIL_IMAP_DEFAULT_PASS=canary=pass word"}
}

// environ is the least with the variables of a case, without those behind a -; or these alone.
func environ(words []string) (all []string) {
	if all = one(); len(words) > 0 && words[0] == "alone" {
		all, words = nil, words[1:]
	}
	for _, w := range words {
		if name, ok := strings.CutPrefix(w, "-"); ok {
			all = slices.DeleteFunc(all, func(v string) bool { return strings.HasPrefix(v, name) })
		} else {
			all = append(all, w)
		}
	}
	return all
}

func TestEnvironmentAccounts(t *testing.T) {
	least := Account{Name: "default", Email: "ann@example.org", Protocol: IMAP, IMAP: Endpoint{"imap.example.org", 993, TLS}, Username: "ann@example.org",
		Auth: AuthPassword, Mode: ReadOnly, Destroy: DestroyOff, AllowOut: AllowList{Enabled: true}, FromEnvironment: true}
	for _, c := range testmain.Table[struct {
		Name, Want string
		Environ    []string
	}](t, "testdata/cases/environment.txt") {
		var changes []json.RawMessage
		must(t, json.Unmarshal([]byte(c.Want), &changes))
		want := []Account{}
		for _, change := range changes {
			want = append(want, with(t, least, string(change)))
		}
		e, err := EnvironmentAccounts(environ(c.Environ))
		must(t, err)
		got, err := e.Accounts(t.Context())
		if err != nil || !reflect.DeepEqual(got, want) || e.Len() != len(want) {
			t.Fatalf("%s:\n got %+v\nwant %+v, %v", c.Name, got, want, err)
		}
		for _, a := range got {
			one, err := e.Account(t.Context(), a.Name)
			if err != nil || !reflect.DeepEqual(one, a) || !e.Has(a.Name) || a.Validate() != nil {
				t.Errorf("%s: %+v, %v", c.Name, one, err)
			}
		}
	}
}

func TestEnvironmentAccountsNameWhatToMend(t *testing.T) {
	for _, c := range testmain.Table[struct {
		Name, Says string
		Environ    []string
	}](t, "testdata/cases/environment_refused.txt") {
		e, err := EnvironmentAccounts(environ(c.Environ))
		var fault *Error
		if !errors.As(err, &fault) || fault.Kind != KindConfig || !strings.Contains(fault.Message, c.Says) || fault.Advice == "" {
			t.Fatalf("%s: %v; want %q", c.Name, err, c.Says)
		}
		if strings.Contains(fmt.Sprintf("%+v %v", *fault, err), "canary") {
			t.Errorf("%s: the error repeats a value: %+v", c.Name, fault)
		}
		if e.Len() != 0 {
			t.Errorf("%s: there are accounts beside the error", c.Name)
		}
	}
}

func TestEnvironmentSecretsAreLent(t *testing.T) {
	e, err := EnvironmentAccounts(one())
	must(t, err)
	for range 2 {
		s, err := e.Secret(t.Context(), "default")
		if err != nil || s.Reveal() != "canary=pass word" {
			t.Fatalf("%q, %v", s.Reveal(), err)
		}
		s.Wipe()
	}
	if text := fmt.Sprintf("%v %+v %#v", e, *e, e); strings.Contains(text, "canary") {
		t.Error("printing it shows a password")
	}
	if _, err := e.Secret(t.Context(), "DEFAULT"); !errors.Is(err, ErrNoAccount) {
		t.Error(err)
	}
	if _, err := e.Account(t.Context(), "nobody"); !errors.Is(err, ErrNoAccount) {
		t.Error(err)
	}
	var none Environment
	if accounts, err := none.Accounts(t.Context()); len(accounts) != 0 || err != nil || none.Has("default") {
		t.Error("the zero Environment has an account")
	}
}

// FuzzEnvironmentAccounts feeds one account whatever an environment may hold.
func FuzzEnvironmentAccounts(f *testing.F) {
	f.Add("DEFAULT", "imap.example.org", "993", "true", "ann", "secret", "false", "30000")
	f.Add("A_B-2", "127.0.0.1", "", "false", "ann@example.org", "p=q", "true", "")
	f.Add("", "::1", "0", "no", "", "", "", "-1")
	f.Add("x", "host name", "70000", "FALSE", "a\nb", "\x00", "yes", "1e3")
	f.Fuzz(func(t *testing.T, name, host, port, secure, user, pass, write, timeout string) {
		p := "MAIL_IMAP_" + name
		const marker = "c4n4ry"
		e, err := EnvironmentAccounts([]string{p + "_HOST=" + host, p + "_PORT=" + port, p + "_SECURE=" + secure, p + "_USER=" + user, p + "_PASS=" + marker + pass,
			"MAIL_IMAP_WRITE_ENABLED=" + write, "MAIL_IMAP_SOCKET_TIMEOUT_MS=" + timeout})
		if err != nil {
			if strings.Contains(err.Error(), marker) && !strings.Contains(name, marker) {
				t.Fatalf("the error shows the password: %v", err)
			}
			return
		}
		accounts, _ := e.Accounts(t.Context())
		for _, a := range accounts {
			s, err := e.Secret(t.Context(), a.Name)
			if err != nil || !strings.HasSuffix(s.Reveal(), pass) || a.Validate() != nil || a.Name != strings.ToLower(a.Name) {
				t.Errorf("%+v, %v", a, err)
			}
			if a.IMAP.Security == Plaintext && !a.IMAP.Loopback() || a.Mode == ReadWrite && strings.ToLower(write) != "true" || !a.SMTP.IsZero() {
				t.Errorf("unsafe: %+v", a)
			}
		}
	})
}
