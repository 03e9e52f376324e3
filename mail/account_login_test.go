package mail

import (
	"strings"
	"testing"
)

func TestValidateOfWhereCredentialsComeFrom(t *testing.T) {
	long := func(n int) string { return strings.Repeat("é", n) }
	google := OAuth{Provider: "google", ClientID: "id.apps.googleusercontent.com"}
	custom := OAuth{Provider: "custom", ClientID: "id", TokenURL: "https://id.example.org/token", AuthURL: "https://id.example.org/auth"}
	helper := func(argv ...string) func(*Account) {
		return func(a *Account) { a.Auth, a.Helper = AuthHelper, argv }
	}
	oauth := func(o OAuth, change func(*OAuth)) func(*Account) {
		return func(a *Account) {
			if change != nil {
				change(&o)
			}
			a.Auth, a.OAuth = AuthOAuth2, o
		}
	}
	token := func(url string) func(*Account) { return oauth(custom, func(o *OAuth) { o.TokenURL = url }) }
	scopes := func(s ...string) func(*Account) { return oauth(google, func(o *OAuth) { o.Scopes = s }) }
	for name, test := range map[string]struct {
		change func(*Account)
		says   string // empty: valid
	}{
		"password":                 {func(*Account) {}, ""},
		"keyring":                  {func(a *Account) { a.Auth = AuthKeyring }, ""},
		"no auth":                  {func(a *Account) { a.Auth = "" }, "auth must be"},
		"unknown auth":             {func(a *Account) { a.Auth = "xoauth2" }, "auth must be"},
		"a display name":           {func(a *Account) { a.DisplayName = long(200) }, ""},
		"too long a display name":  {func(a *Account) { a.DisplayName = long(201) }, "display name"},
		"a line end in it":         {func(a *Account) { a.DisplayName = "Ann\r\nBcc: x" }, "display name"},
		"a C1 control in it":       {func(a *Account) { a.DisplayName = "Ann\u0085" }, "display name"},
		"no UTF-8":                 {func(a *Account) { a.DisplayName = "Ann\xff" }, "display name"},
		"sent copy never":          {func(a *Account) { a.SentCopy = SentNever }, ""},
		"sent copy maybe":          {func(a *Account) { a.SentCopy = "maybe" }, "sent copy must be"},
		"helper by path":           {helper("/usr/bin/biosecret", "get", "mail"), ""},
		"helper by name":           {helper("biosecret"), ""},
		"no helper":                {helper(), "needs a helper command"},
		"a relative helper":        {helper("bin/biosecret"), "absolute path"},
		"a helper here":            {helper("./biosecret"), "absolute path"},
		"a helper above":           {helper(".."), "absolute path"},
		"an empty argument":        {helper("biosecret", ""), ""},
		"NUL in an argument":       {helper("biosecret", "a\x00b"), "control character"},
		"a line end in one":        {helper("biosecret", "a\nb"), "control character"},
		"50 arguments":             {helper(append([]string{"x"}, make([]string, 49)...)...), ""},
		"51 arguments":             {helper(append([]string{"x"}, make([]string, 50)...)...), "more than 50"},
		"a byte more":              {helper("x", strings.Repeat("a", 16<<10-2)), "16384 bytes"},
		"google":                   {oauth(google, nil), ""},
		"microsoft":                {oauth(OAuth{Provider: "microsoft", ClientID: "id", Tenant: "contoso.onmicrosoft.com"}, nil), ""},
		"no provider":              {oauth(OAuth{ClientID: "id"}, nil), "needs a provider"},
		"an unknown one":           {oauth(OAuth{Provider: "Google", ClientID: "id"}, nil), "needs a provider"},
		"no client id":             {oauth(OAuth{Provider: "google"}, nil), "needs the client id"},
		"a client id with a space": {oauth(google, func(o *OAuth) { o.ClientID = "a b" }), "client id is not valid"},
		"too long a client id":     {oauth(google, func(o *OAuth) { o.ClientID = strings.Repeat("a", 513) }), "client id is not valid"},
		"a tenant that is a path":  {oauth(OAuth{Provider: "microsoft", ClientID: "id", Tenant: "../x"}, nil), "tenant"},
		"a bad url at google":      {oauth(google, func(o *OAuth) { o.TokenURL = "http://evil.example/token" }), "the token url cannot be used"},
		"scopes":                   {scopes("https://mail.google.com/", "openid"), ""},
		"20 scopes":                {scopes(strings.Fields(strings.Repeat("s ", 20))...), ""},
		"21 scopes":                {scopes(strings.Fields(strings.Repeat("s ", 21))...), "more than 20"},
		"two scopes in one":        {scopes("a b"), "a scope is"},
		"an empty scope":           {scopes(""), "a scope is"},
		"a quote in a scope":       {scopes(`a"b`), "a scope is"},
		"custom":                   {oauth(custom, nil), ""},
		"custom by device alone":   {oauth(custom, func(o *OAuth) { o.AuthURL, o.DeviceURL = "", "https://id.example.org/device" }), ""},
		"custom without a token":   {token(""), "needs its token url"},
		"custom without a way":     {oauth(custom, func(o *OAuth) { o.AuthURL = "" }), "auth url or its device url"},
		"http to loopback":         {token("http://127.0.0.1:8080/token"), ""},
		"http elsewhere":           {token("http://id.example.org/token"), "the token url cannot be used"},
		"a bad auth url":           {oauth(custom, func(o *OAuth) { o.AuthURL = "http://id.example.org" }), "the auth url cannot be used"},
		"a bad device url":         {oauth(custom, func(o *OAuth) { o.DeviceURL = "http://id.example.org" }), "the device url cannot be used"},
	} {
		t.Run(name, func(t *testing.T) {
			a := Account{Name: "work", Protocol: IMAP, IMAP: Endpoint{"imap.example.org", 993, TLS}, Username: "ann", Auth: AuthPassword, Mode: ReadOnly}
			test.change(&a)
			err := a.Validate()
			switch {
			case test.says == "" && err != nil:
				t.Error(err)
			case test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)):
				t.Errorf("%v; want %q", err, test.says)
			}
		})
	}
}
