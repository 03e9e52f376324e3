package mail

import (
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every entry can be used as it stands: its servers make a valid account, its ports
// fit its security, and no two entries claim the same domain.
func TestEveryProviderIsUsable(t *testing.T) {
	domain := regexp.MustCompile(`\A[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+\z`)
	claimed, named := map[string]string{}, map[string]bool{}
	for _, p := range Providers() {
		if p.ID == "" || p.Name == "" || named[p.ID] {
			t.Errorf("%q, %q: no name, or one that is taken", p.ID, p.Name)
		}
		named[p.ID] = true
		if len(p.Domains)+len(p.MX) == 0 {
			t.Errorf("%s is never found", p.ID)
		}
		for _, d := range p.Domains {
			if !domain.MatchString(d) || claimed[d] != "" {
				t.Errorf("%s: the domain %q is wrong or of %q", p.ID, d, claimed[d])
			}
			claimed[d] = p.ID
			if got := ProviderOf(strings.ToUpper(d) + "."); got == nil || got.ID != p.ID {
				t.Errorf("%s is not found by %s", p.ID, d)
			}
			if got := ProviderOf("x" + d); got != nil && got.ID == p.ID {
				t.Errorf("%s is found by another domain", p.ID)
			}
		}
		for _, m := range p.MX {
			if !domain.MatchString(m) {
				t.Errorf("%s: mail host %q", p.ID, m)
			}
			if got := ProviderServing("mx1." + m + "."); got == nil || got.ID != p.ID {
				t.Errorf("%s is not found by its mail hosts", p.ID)
			}
			if ProviderServing("evil"+m) != nil || ProviderServing(m+".evil.example") != nil {
				t.Errorf("%s is found by somebody else's mail hosts", p.ID)
			}
		}
		if u, err := url.Parse(p.HelpURL); err != nil || u.Scheme != "https" || u.Host == "" {
			t.Errorf("%s: help at %q", p.ID, p.HelpURL)
		}
		if p.Note != "" && !strings.HasSuffix(p.Note, ".") {
			t.Errorf("%s: the note is no sentence: %q", p.ID, p.Note)
		}
		checkServers(t, &p)
	}
	for _, id := range []string{"gmail", "outlook", "microsoft365", "fastmail", "icloud", "yahoo", "gmx", "web.de", "posteo", "mailbox.org", "proton", "zoho"} {
		if withID(id) == nil {
			t.Errorf("%s is missing", id)
		}
	}
}

func checkServers(t *testing.T, p *Provider) {
	t.Helper()
	if len(p.Auth) == 0 {
		if !p.IMAP.IsZero() || !p.POP3.IsZero() || !p.SMTP.IsZero() || p.Note == "" {
			t.Errorf("%s lets no program in, and does not say why", p.ID)
		}
		return
	}
	if slices.Contains(p.Auth, AuthOAuth2) != (p.OAuth != "") || p.OAuth != "" && OAuthServiceNamed(p.OAuth) == nil {
		t.Errorf("%s: OAuth %q with %v", p.ID, p.OAuth, p.Auth)
	}
	if p.AppPassword && (!slices.Contains(p.Auth, AuthPassword) || p.Note == "") {
		t.Errorf("%s: an app password that is not taken or not explained", p.ID)
	}
	ports := map[Security][3]uint16{TLS: {993, 995, 465}, StartTLS: {143, 110, 587}}
	for i, e := range []Endpoint{p.IMAP, p.POP3, p.SMTP} {
		if !e.IsZero() && !e.Loopback() && e.Port != ports[e.Security][i] {
			t.Errorf("%s: %s with %s", p.ID, e.Address(), e.Security)
		}
	}
	protocol, _ := p.Incoming()
	a := Account{Name: "x", Email: "ann@example.org", Username: "ann@example.org", Protocol: protocol, IMAP: p.IMAP, POP3: p.POP3, SMTP: p.SMTP, Auth: AuthHelper, Helper: []string{"/bin/true"}, Mode: ReadOnly}
	if err := a.Validate(); err != nil {
		t.Errorf("%s: %v", p.ID, err)
	}
}

// Each service is an account's with a client id alone, whatever an account says of its tenant.
func TestOAuthServices(t *testing.T) {
	for _, name := range OAuthProviders() {
		o := OAuth{Provider: name, ClientID: "client"}
		known := OAuthServiceNamed(name)
		if known == nil { // the account describes it
			o.TokenURL, o.DeviceURL = "https://token.example/", "https://device.example/"
		} else if ProviderWithOAuth(name) == nil || len(known.Scopes) == 0 || known.AuthURL == "" {
			t.Errorf("%s: no provider, no scopes or no consent page", name)
		}
		s, err := o.Service()
		used := OAuth{Provider: ProviderCustom, ClientID: "client", AuthURL: s.AuthURL, TokenURL: s.TokenURL, DeviceURL: s.DeviceURL, Scopes: s.Scopes}
		if err := errors.Join(err, o.validate(), used.validate()); err != nil || strings.Contains(s.AuthURL+s.TokenURL+s.DeviceURL, "{") {
			t.Errorf("%s: %+v: %v", name, s, err)
		}
	}
	for tenant, token := range map[string]string{"": "https://login.microsoftonline.com/common/oauth2/v2.0/token", "example.org": "https://login.microsoftonline.com/example.org/oauth2/v2.0/token",
		"a/b": "", "..": "", "/": "", "a?b": "", "a#b": "", "a b": "", "a\nb": "", "é": "", strings.Repeat("a", 300): ""} {
		o := OAuth{Provider: "microsoft", ClientID: "client", Tenant: tenant}
		if s, err := o.Service(); s.TokenURL != token || (err == nil) != (token != "") {
			t.Errorf("%q: %s, %v", tenant, s.TokenURL, err)
		}
	}
	if p := ProviderWithOAuth("microsoft"); p.SMTP.Host != "smtp.office365.com" {
		t.Errorf("an account of which only Microsoft is known sends by %s", p.SMTP.Host)
	}
}

func withID(id string) *Provider { return find(func(p *Provider) bool { return p.ID == id }) }

// What a caller gets is its own.
func TestProvidersAreCopies(t *testing.T) {
	Providers()[0].Domains[0] = "changed.example"
	withID("gmail").MX[0] = "changed.example"
	ProviderOf("gmail.com").Auth[0] = "changed"
	if p := withID("gmail"); p.Domains[0] != "gmail.com" || p.MX[0] != "google.com" || p.Auth[0] != AuthPassword {
		t.Errorf("%+v", p)
	}
}
