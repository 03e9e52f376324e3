package autoconfig

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postern-mail/postern/mail"
)

// fakeInternet is a DNS and a web with nothing else in them, and what was asked of them.
type fakeInternet struct {
	srv map[string][]*net.SRV // by service.domain
	mx  map[string][]*net.MX
	web map[string]http.HandlerFunc // by host/path

	mu    sync.Mutex
	asked []string
}

func (w *fakeInternet) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, fmt.Sprintf(format, args...))
}

func (w *fakeInternet) LookupSRV(_ context.Context, service, proto, name string) (string, []*net.SRV, error) {
	w.note("SRV %s %s %s", service, proto, name)
	if a := w.srv[service+"."+name]; a != nil {
		return name, a, nil
	}
	return "", nil, &net.DNSError{Err: "no such host", IsNotFound: true}
}

func (w *fakeInternet) LookupMX(_ context.Context, name string) ([]*net.MX, error) {
	w.note("MX %s", name)
	if a := w.mx[name]; a != nil {
		return a, nil
	}
	return nil, &net.DNSError{Err: "no such host", IsNotFound: true}
}

// ServeHTTP is every site of the web at once.
func (w *fakeInternet) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	w.note("GET %s%s?%s auth=%q cookie=%q referer=%q", r.Host, r.URL.Path, r.URL.RawQuery, r.Header.Get("Authorization"), r.Header.Get("Cookie"), r.Header.Get("Referer"))
	if page := w.web[r.Host+r.URL.Path]; page != nil {
		page(out, r)
		return
	}
	http.NotFound(out, r)
}

// finder finds in the fakeInternet. The web is a real server behind TLS.
func (w *fakeInternet) finder(t testing.TB) *Finder {
	t.Helper()
	server := httptest.NewTLSServer(w)
	t.Cleanup(server.Close)
	transport := server.Client().Transport.(*http.Transport).Clone()
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
	}
	transport.TLSClientConfig = &tls.Config{RootCAs: transport.TLSClientConfig.RootCAs, ServerName: "example.com"} // which the certificate is for
	return &Finder{Resolver: w, Transport: transport}
}

func page(text string) http.HandlerFunc {
	return func(out http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(out, text) }
}

const described = `<?xml version="1.0" encoding="UTF-8"?>
<clientConfig version="1.1"><emailProvider id="example.org"><domain>example.org</domain>
<incomingServer type="pop3"><hostname>pop.example.org</hostname><port>995</port><socketType>SSL</socketType><username>%EMAILLOCALPART%</username><authentication>password-cleartext</authentication></incomingServer>
<incomingServer type="imap"><hostname>plain.example.org</hostname><port>143</port><socketType>plain</socketType><username>%EMAILADDRESS%</username><authentication>password-cleartext</authentication></incomingServer>
<incomingServer type="imap"><hostname>imap.%EMAILDOMAIN%</hostname><port>993</port><socketType>SSL</socketType><username>%EMAILLOCALPART%</username><authentication>password-cleartext</authentication></incomingServer>
<outgoingServer type="smtp"><hostname>smtp.example.org</hostname><port>587</port><socketType>STARTTLS</socketType><username>%EMAILADDRESS%</username><authentication>password-cleartext</authentication></outgoingServer>
</emailProvider></clientConfig>`

func at(host string, port uint16, s mail.Security) mail.Endpoint {
	return mail.Endpoint{Host: host, Port: port, Security: s}
}

func srv(host string, port uint16) []*net.SRV { return []*net.SRV{{Target: host + ".", Port: port}} }

func TestFind(t *testing.T) {
	const well, auto = "example.org/.well-known/autoconfig/mail/config-v1.1.xml", "autoconfig.example.org/mail/config-v1.1.xml"
	redirect := func(to string) http.HandlerFunc {
		return func(out http.ResponseWriter, r *http.Request) { http.Redirect(out, r, to, http.StatusFound) }
	}
	imap, smtp := at("imap.example.org", 993, mail.TLS), at("smtp.example.org", 587, mail.StartTLS)
	for name, c := range map[string]struct {
		world *fakeInternet
		want  Settings // without Sources and Provider
		from  []string // parts of Sources
		by    string   // the provider's ID
	}{
		"nothing": {&fakeInternet{}, Settings{Username: "ann@example.org"}, nil, ""},
		"described": {&fakeInternet{web: map[string]http.HandlerFunc{auto: page(described)}},
			Settings{Protocol: mail.IMAP, Incoming: imap, SMTP: smtp, Username: "ann"}, []string{"https://" + auto}, ""},
		"a login name that turns its direction": {&fakeInternet{web: map[string]http.HandlerFunc{auto: page(strings.ReplaceAll(described, "%EMAILLOCALPART%", "ann&#x202e;"))}},
			Settings{Protocol: mail.IMAP, Incoming: imap, SMTP: smtp, Username: "ann@example.org"}, []string{"https://" + auto}, ""},
		"described at the well-known place": {&fakeInternet{web: map[string]http.HandlerFunc{well: page(described)}},
			Settings{Protocol: mail.IMAP, Incoming: imap, SMTP: smtp, Username: "ann"}, []string{"https://" + well}, ""},
		"sent on": {&fakeInternet{web: map[string]http.HandlerFunc{well: redirect("https://config.example.net/x.xml"), "config.example.net/x.xml": page(described)}},
			Settings{Protocol: mail.IMAP, Incoming: imap, SMTP: smtp, Username: "ann"}, []string{"https://config.example.net/x.xml"}, ""},
		"sent on without TLS": {&fakeInternet{web: map[string]http.HandlerFunc{well: redirect("http://example.org/x.xml"), "example.org/x.xml": page(described)}},
			Settings{Username: "ann@example.org"}, nil, ""},
		"sent on with a password": {&fakeInternet{web: map[string]http.HandlerFunc{well: redirect("https://a:b@example.org/x.xml"), "example.org/x.xml": page(described)}},
			Settings{Username: "ann@example.org"}, nil, ""},
		"sent in a circle": {&fakeInternet{web: map[string]http.HandlerFunc{well: redirect("https://" + well)}},
			Settings{Username: "ann@example.org"}, nil, ""},
		"too large": {&fakeInternet{web: map[string]http.HandlerFunc{auto: page(described + strings.Repeat(" ", maxDescription))}},
			Settings{Username: "ann@example.org"}, nil, ""},
		"a web page": {&fakeInternet{web: map[string]http.HandlerFunc{auto: page("<!DOCTYPE html><html><body>Hello</body></html>")}},
			Settings{Username: "ann@example.org"}, nil, ""},
		"records": {&fakeInternet{srv: map[string][]*net.SRV{"imaps.example.org": srv("imap.example.org", 993), "imap.example.org": srv("old.example.org", 143),
			"submission.example.org": srv("smtp.example.org", 587)}},
			Settings{Protocol: mail.IMAP, Incoming: imap, SMTP: smtp, Username: "ann@example.org"}, []string{"DNS records of example.org"}, ""},
		"TLS before STARTTLS": {&fakeInternet{srv: map[string][]*net.SRV{"imap.example.org": srv("imap.example.org", 143), "pop3s.example.org": srv("pop.example.org", 995),
			"submissions.example.org": srv("smtp.example.org", 465), "submission.example.org": srv("smtp.example.org", 587)}},
			Settings{Protocol: mail.IMAP, Incoming: at("imap.example.org", 143, mail.StartTLS), SMTP: at("smtp.example.org", 465, mail.TLS), Username: "ann@example.org"}, []string{"DNS"}, ""},
		"POP3 alone": {&fakeInternet{srv: map[string][]*net.SRV{"imaps.example.org": {{Target: ".", Port: 0}}, "pop3s.example.org": srv("pop.example.org", 995)}},
			Settings{Protocol: mail.POP3, Incoming: at("pop.example.org", 995, mail.TLS), Username: "ann@example.org"}, []string{"DNS"}, ""},
		"an address in numbers": {&fakeInternet{srv: map[string][]*net.SRV{"imaps.example.org": srv("192.0.2.1", 993)}},
			Settings{Username: "ann@example.org"}, nil, ""},
		"half of each": {&fakeInternet{web: map[string]http.HandlerFunc{auto: page(`<clientConfig><emailProvider><incomingServer type="imap"><hostname>imap.example.org</hostname><port>993</port><socketType>SSL</socketType></incomingServer></emailProvider></clientConfig>`)},
			srv: map[string][]*net.SRV{"imaps.example.org": srv("other.example.org", 993), "submission.example.org": srv("smtp.example.org", 587)}},
			Settings{Protocol: mail.IMAP, Incoming: imap, SMTP: smtp, Username: "ann@example.org"}, []string{"https://" + auto, "DNS"}, ""},
		"somebody else's": {&fakeInternet{srv: map[string][]*net.SRV{"imaps.example.org": srv("imap.evil.example", 993), "submission.example.org": srv("smtp.example.org", 587)}},
			Settings{Protocol: mail.IMAP, Incoming: at("imap.evil.example", 993, mail.TLS), SMTP: smtp, Username: "ann@example.org", Foreign: []string{"imap.evil.example"}}, []string{"DNS"}, ""},
		"delivered to a provider": {&fakeInternet{mx: map[string][]*net.MX{"example.org": {{Host: "mx.example.org."}, {Host: "example-org.mail.protection.outlook.com."}}}},
			Settings{Protocol: mail.IMAP, Incoming: at("outlook.office365.com", 993, mail.TLS), SMTP: at("smtp.office365.com", 587, mail.StartTLS), Username: "ann@example.org",
				Foreign: []string{"outlook.office365.com", "smtp.office365.com"}}, []string{"Microsoft 365"}, "microsoft365"},
		"delivered where no program may": {&fakeInternet{mx: map[string][]*net.MX{"example.org": {{Host: "mail.tutanota.de."}}}},
			Settings{Username: "ann@example.org"}, []string{"Tuta"}, "tuta"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.world.finder(t).Find(t.Context(), "ann@example.org")
			if err != nil {
				t.Fatal(err)
			}
			if got.Incoming != c.want.Incoming || got.SMTP != c.want.SMTP || got.Protocol != c.want.Protocol || got.Username != c.want.Username || !slices.Equal(got.Foreign, c.want.Foreign) {
				t.Errorf("found %+v", got)
			}
			if len(got.Sources) != len(c.from) {
				t.Errorf("sources %q", got.Sources)
			}
			for i, from := range c.from {
				if i < len(got.Sources) && !strings.Contains(got.Sources[i], from) {
					t.Errorf("sources %q", got.Sources)
				}
			}
			if by := got.Provider; (by == nil) != (c.by == "") || by != nil && by.ID != c.by {
				t.Errorf("provider %+v", by)
			}
			for _, asked := range c.world.asked {
				if strings.Contains(asked, "ann") {
					t.Errorf("the person was told: %s", asked)
				}
				if strings.HasPrefix(asked, "GET") && !strings.Contains(asked, `? auth="" cookie="" referer=""`) {
					t.Errorf("more was told than needed: %s", asked)
				}
			}
		})
	}
}

// An address that names its provider causes no queries.
func TestKnownProvidersAreAskedNothing(t *testing.T) {
	w := &fakeInternet{}
	f := w.finder(t)
	for _, p := range mail.Providers() {
		for _, domain := range p.Domains {
			s, err := f.Find(t.Context(), "ann@"+domain)
			if err != nil || s.Provider == nil || s.Provider.ID != p.ID || s.SMTP != p.SMTP || len(s.Foreign) != 0 || len(p.Auth) > 0 && !s.Complete() {
				t.Errorf("%s: %+v, %v", domain, s, err)
			}
		}
	}
	for _, address := range []string{"ann@localhost", "ann@192.0.2.1"} { // nor one whose domain nobody can be asked about
		if s, err := f.Find(t.Context(), address); err != nil || s.Username != address || !s.Incoming.IsZero() {
			t.Errorf("%s: %+v, %v", address, s, err)
		}
	}
	if len(w.asked) > 0 {
		t.Errorf("asked %v", w.asked)
	}
}

func TestSplit(t *testing.T) {
	for address, want := range map[string]string{"ann@example.org": "example.org", "Ann@EXAMPLE.org": "example.org", "ann@bücher.example": "xn--bcher-kva.example", "a.b+c@x.example.org.": "x.example.org"} {
		if _, domain, ok := Split(address); !ok || domain != want {
			t.Errorf("%s: %q, %v", address, domain, ok)
		}
	}
	for _, address := range []string{"", "ann", "@example.org", "ann@", "ann@localhost", "ann@192.0.2.1", "a b@example.org", "ann@exa mple.org", "a@b@example.org", "ann@example.org\r\n",
		"Ann <ann@example.org>", "ann@-x.example", "ann@example..org", strings.Repeat("a", 320) + "@example.org", "ann@[192.0.2.1]", "ann@example.org/x"} {
		if _, domain, ok := Split(address); ok {
			t.Errorf("%q is taken for one at %q", address, domain)
		}
	}
}

// A silent source costs the whole time, but no answer of the others.
func TestSlowOnesCostTheirOwnAnswerAlone(t *testing.T) {
	w := &fakeInternet{srv: map[string][]*net.SRV{"imaps.example.org": srv("imap.example.org", 993)}, web: map[string]http.HandlerFunc{
		"autoconfig.example.org/mail/config-v1.1.xml": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }}}
	f := w.finder(t)
	f.Time = 200 * time.Millisecond
	s, err := f.Find(t.Context(), "ann@example.org")
	if err != nil || s.Incoming.Host != "imap.example.org" {
		t.Errorf("%+v, %v", s, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Find(ctx, "ann@example.org"); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
}

// Whatever a domain answers, what comes of it is a server that an account can have,
// behind TLS, and never one on this machine by its number.
func FuzzParse(f *testing.F) {
	f.Add(described)
	f.Add(strings.Repeat("<a>", 1000))
	f.Add(`<!DOCTYPE x [<!ENTITY a "b">]><clientConfig><emailProvider>&a;</emailProvider></clientConfig>`)
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parse([]byte(text), "ann", "example.org")
		if err != nil {
			return
		}
		for _, e := range []mail.Endpoint{p.incoming, p.smtp} {
			if e.IsZero() {
				continue
			}
			a := mail.Account{Name: "x", Protocol: mail.IMAP, IMAP: e, Username: "x", Auth: mail.AuthHelper, Helper: []string{"/bin/true"}, Mode: mail.ReadOnly}
			if err := a.Validate(); err != nil || e.Security == mail.Plaintext || net.ParseIP(e.Host) != nil {
				t.Errorf("%+v: %v", e, err)
			}
		}
		if p.username != "" && !plainName(p.username) {
			t.Errorf("user name %q", p.username)
		}
	})
}
