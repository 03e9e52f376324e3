package mail

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// one is the least that describes an account.
func one(more ...string) []string {
	return append([]string{"PATH=/usr/bin", "MAIL_IMAP_DEFAULT_HOST=imap.example.org", "MAIL_IMAP_DEFAULT_USER=ann@example.org", "MAIL_IMAP_DEFAULT_PASS=canary=pass word"}, more...)
}

func TestEnvironmentAccounts(t *testing.T) {
	tls := Account{Name: "default", Email: "ann@example.org", Protocol: IMAP, IMAP: Endpoint{"imap.example.org", 993, TLS}, Username: "ann@example.org",
		Auth: AuthPassword, Mode: ReadOnly, Destroy: DestroyOff, AllowOut: AllowList{Enabled: true}, FromEnvironment: true}
	with := func(change func(*Account)) Account {
		a := tls
		change(&a)
		return a
	}
	for name, test := range map[string]struct {
		environ []string
		want    []Account
	}{
		"nothing":           {nil, []Account{}},
		"nothing of ours":   {[]string{"PATH=/bin", "MAIL_IMAP", "MAIL_SMTP_DEFAULT_HOST=x", "XMAIL_IMAP_DEFAULT_HOST=x", "="}, []Account{}},
		"only general ones": {[]string{"MAIL_IMAP_WRITE_ENABLED=nonsense"}, []Account{}},
		"the least":         {one(), []Account{tls}},
		"unknown ones":      {one("MAIL_IMAP_DEFAULT_COLOUR=red", "MAIL_IMAP_X=y"), []Account{tls}},
		"empty ones":        {one("MAIL_IMAP_DEFAULT_PORT=", "MAIL_IMAP_OTHER_HOST=", "MAIL_IMAP_WRITE_ENABLED="), []Account{tls}},
		"the last counts":   {one("MAIL_IMAP_DEFAULT_PORT=1", "MAIL_IMAP_DEFAULT_PORT=994"), []Account{with(func(a *Account) { a.IMAP.Port = 994 })}},
		"writing":           {one("MAIL_IMAP_WRITE_ENABLED=true"), []Account{with(func(a *Account) { a.Mode, a.Destroy = ReadWrite, DestroyOn })}},
		"Writing":           {one("MAIL_IMAP_WRITE_ENABLED=True"), []Account{with(func(a *Account) { a.Mode, a.Destroy = ReadWrite, DestroyOn })}},
		"no writing":        {one("MAIL_IMAP_WRITE_ENABLED=false"), []Account{tls}},
		"secure":            {one("MAIL_IMAP_DEFAULT_SECURE=TRUE"), []Account{tls}},
		"not from the start": {one("MAIL_IMAP_DEFAULT_SECURE=false"),
			[]Account{with(func(a *Account) { a.IMAP.Port, a.IMAP.Security = 143, StartTLS })}},
		"STARTTLS elsewhere": {one("MAIL_IMAP_DEFAULT_SECURE=false", "MAIL_IMAP_DEFAULT_PORT=1143"),
			[]Account{with(func(a *Account) { a.IMAP.Port, a.IMAP.Security = 1143, StartTLS })}},
		"this machine": {one("MAIL_IMAP_DEFAULT_SECURE=false", "MAIL_IMAP_DEFAULT_HOST=127.0.0.1"),
			[]Account{with(func(a *Account) { a.IMAP = Endpoint{"127.0.0.1", 143, Plaintext} })}},
		"this machine with TLS": {one("MAIL_IMAP_DEFAULT_HOST=localhost"),
			[]Account{with(func(a *Account) { a.IMAP.Host = "localhost" })}},
		"a name that looks like this machine": {one("MAIL_IMAP_DEFAULT_SECURE=false", "MAIL_IMAP_DEFAULT_HOST=localhost.example.org"),
			[]Account{with(func(a *Account) { a.IMAP = Endpoint{"localhost.example.org", 143, StartTLS} })}},
		"timeouts": {one("MAIL_IMAP_CONNECT_TIMEOUT_MS=1", "MAIL_IMAP_GREETING_TIMEOUT_MS=2500", "MAIL_IMAP_SOCKET_TIMEOUT_MS=3600000"),
			[]Account{with(func(a *Account) { a.Timeouts = Timeouts{time.Millisecond, 2500 * time.Millisecond, time.Hour} })}},
		"a login that is no address": {one("MAIL_IMAP_DEFAULT_USER=ann"),
			[]Account{with(func(a *Account) { a.Username, a.Email = "ann", "" })}},
		"names": {append(one(), "MAIL_IMAP_A_HOST_HOST=a", "MAIL_IMAP_A_HOST_USER=u", "MAIL_IMAP_A_HOST_PASS=p", "MAIL_IMAP__X-2_HOST=b", "MAIL_IMAP__X-2_USER=u", "MAIL_IMAP__X-2_PASS=p"),
			[]Account{with(func(a *Account) { a.Name, a.Username, a.Email, a.IMAP.Host = "_x-2", "u", "", "b" }),
				with(func(a *Account) { a.Name, a.Username, a.Email, a.IMAP.Host = "a_host", "u", "", "a" }), tls}},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := EnvironmentAccounts(test.environ)
			must(t, err)
			got, err := e.Accounts(t.Context())
			if err != nil || !reflect.DeepEqual(got, test.want) || e.Len() != len(test.want) {
				t.Fatalf("\n got %+v\nwant %+v, %v", got, test.want, err)
			}
			for _, a := range got {
				one, err := e.Account(t.Context(), a.Name)
				if err != nil || !reflect.DeepEqual(one, a) || !e.Has(a.Name) || a.Validate() != nil {
					t.Errorf("%+v, %v", one, err)
				}
			}
		})
	}
}

func TestEnvironmentAccountsNameWhatToMend(t *testing.T) {
	without := func(name string) []string {
		return slices.DeleteFunc(one(), func(v string) bool { return strings.HasPrefix(v, name) })
	}
	for name, test := range map[string]struct {
		environ []string
		says    string
	}{
		"no host":            {without("MAIL_IMAP_DEFAULT_HOST"), "MAIL_IMAP_DEFAULT_HOST is not set"},
		"no user":            {without("MAIL_IMAP_DEFAULT_USER"), "MAIL_IMAP_DEFAULT_USER is not set"},
		"no password":        {without("MAIL_IMAP_DEFAULT_PASS"), "MAIL_IMAP_DEFAULT_PASS is not set"},
		"an empty password":  {append(without("MAIL_IMAP_DEFAULT_PASS"), "MAIL_IMAP_DEFAULT_PASS="), "MAIL_IMAP_DEFAULT_PASS is not set"},
		"only a port":        {[]string{"MAIL_IMAP_WORK_PORT=993"}, "MAIL_IMAP_WORK_HOST is not set"},
		"port 0":             {one("MAIL_IMAP_DEFAULT_PORT=0"), "MAIL_IMAP_DEFAULT_PORT must"},
		"port 65536":         {one("MAIL_IMAP_DEFAULT_PORT=65536"), "MAIL_IMAP_DEFAULT_PORT must"},
		"port canary":        {one("MAIL_IMAP_DEFAULT_PORT=canary"), "MAIL_IMAP_DEFAULT_PORT must"},
		"secure canary":      {one("MAIL_IMAP_DEFAULT_SECURE=canary"), "MAIL_IMAP_DEFAULT_SECURE must be true or false"},
		"secure 0":           {one("MAIL_IMAP_DEFAULT_SECURE=0"), "MAIL_IMAP_DEFAULT_SECURE must be true or false"},
		"writing canary":     {one("MAIL_IMAP_WRITE_ENABLED=canary"), "MAIL_IMAP_WRITE_ENABLED must be true or false"},
		"a timeout of 0":     {one("MAIL_IMAP_CONNECT_TIMEOUT_MS=0"), "MAIL_IMAP_CONNECT_TIMEOUT_MS must"},
		"a timeout canary":   {one("MAIL_IMAP_SOCKET_TIMEOUT_MS=canary"), "MAIL_IMAP_SOCKET_TIMEOUT_MS must"},
		"a timeout too long": {one("MAIL_IMAP_GREETING_TIMEOUT_MS=3600001"), "MAIL_IMAP_GREETING_TIMEOUT_MS must"},
		"no account":         {[]string{"MAIL_IMAP_HOST=canary"}, "MAIL_IMAP_HOST names no account: it is MAIL_IMAP_DEFAULT_HOST"},
		"an empty account":   {[]string{"MAIL_IMAP__HOST=canary"}, "MAIL_IMAP__HOST names no account"},
		"lower case":         {[]string{"MAIL_IMAP_work_HOST=canary"}, "MAIL_IMAP_work_HOST names no account"},
		"odd":                {[]string{"MAIL_IMAP_A B\n_HOST=canary"}, "MAIL_IMAP_A B\ufffd_HOST names no account"},
		"long":               {[]string{"MAIL_IMAP_" + strings.Repeat("A", 65) + "_HOST=canary"}, "names no account"},
		"a host that is none": {append(without("MAIL_IMAP_DEFAULT_HOST"), "MAIL_IMAP_DEFAULT_HOST=canary/x"),
			"MAIL_IMAP_DEFAULT_* describes cannot be used: imap host is not a host name"},
		"a user with a line end":    {one("MAIL_IMAP_DEFAULT_USER=canary\n"), "MAIL_IMAP_DEFAULT_*"},
		"the second of two is half": {one("MAIL_IMAP_OTHER_USER=canary"), "MAIL_IMAP_OTHER_HOST is not set"},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := EnvironmentAccounts(test.environ)
			var fault *Error
			if !errors.As(err, &fault) || fault.Kind != KindConfig || !strings.Contains(fault.Message, test.says) || fault.Advice == "" {
				t.Fatalf("%v; want %q", err, test.says)
			}
			if strings.Contains(fmt.Sprintf("%+v %v", *fault, err), "canary") {
				t.Errorf("the error repeats a value: %+v", fault)
			}
			if e.Len() != 0 {
				t.Error("there are accounts beside the error")
			}
		})
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
