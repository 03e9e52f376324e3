// Package autoconfig finds the mail servers of an address from the address alone: by
// the table of known providers, the domain's own description of its servers (the
// autoconfig format), its SRV records (RFC 6186, RFC 8314) and its MX records.
//
// It asks about a domain, never about a person: no query contains the part before
// the @, and it has no password. The result is a proposal. DNS is not
// authenticated, and a domain can name any host: the caller of Find shows the hosts
// to a person, and Settings.Foreign with them, before it sends them anything.
package autoconfig

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"

	"github.com/postern-mail/postern/mail"
)

// DefaultTime bounds one Find.
const DefaultTime = 15 * time.Second

// Resolver asks the DNS; *net.Resolver implements it.
type Resolver interface {
	LookupSRV(ctx context.Context, service, proto, name string) (cname string, addrs []*net.SRV, err error)
	LookupMX(ctx context.Context, name string) ([]*net.MX, error)
}

// Finder finds settings. The zero Finder uses the system's resolver and the web. It
// is safe for concurrent use.
type Finder struct {
	Resolver  Resolver          // nil means net.DefaultResolver
	Transport http.RoundTripper // nil means a transport of its own, which verifies certificates and keeps no connection
	Time      time.Duration     // 0 means DefaultTime
}

// Settings are the result of a search. A field that was not found is zero.
type Settings struct {
	Provider *mail.Provider // nil when not a known provider
	Protocol mail.Protocol  // of Incoming; empty without Incoming
	Incoming mail.Endpoint
	SMTP     mail.Endpoint
	Username string      // the login name
	Auth     []mail.Auth // login methods, the best first; empty when none was found
	Sources  []string    // where the settings were found, for a person to read
	// Foreign are the hosts outside both the address's own domain and the provider
	// that the address itself names.
	Foreign []string
}

// Complete reports whether the settings suffice to read and send mail.
func (s *Settings) Complete() bool { return !s.Incoming.IsZero() && !s.SMTP.IsZero() }

// names accepts host names: all labels present, with lengths that the DNS allows.
var names = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.StrictDomainName(true), idna.VerifyDNSLength(true))

// Split returns the parts of an address, the domain in ASCII and lower case. ok is false for
// one whose domain nobody can be asked about, and for what is no address.
func Split(address string) (local, domain string, ok bool) {
	at := strings.LastIndexByte(address, '@')
	if at <= 0 || len(address) > 320 || strings.ContainsFunc(address, func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune("<>(),;:\\\"[]", r) }) || strings.Contains(address[:at], "@") {
		return "", "", false
	}
	domain, err := names.ToASCII(strings.TrimSuffix(address[at+1:], "."))
	if err != nil || len(domain) > 253 || !strings.Contains(domain, ".") || net.ParseIP(domain) != nil {
		return "", "", false
	}
	return address[:at], strings.ToLower(domain), true
}

// Find returns the settings for the address. Finding nothing is not an error: the
// Settings then hold only the user name, as for an address whose domain nobody can be asked
// about, such as localhost. It asks all sources at once and returns when all have answered or
// the time is over, with the answers so far. The error is that of ctx.
func (f *Finder) Find(ctx context.Context, address string) (*Settings, error) {
	s := &Settings{Username: address}
	local, domain, ok := Split(address)
	if !ok {
		return s, nil
	}
	if p := mail.ProviderOf(domain); p != nil {
		s.take(&proposal{provider: p, source: "what " + p.Name + " publishes"})
		return s, nil
	}
	limit := f.Time
	if limit == 0 {
		limit = DefaultTime
	}
	asking, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	found := f.ask(asking, local, domain)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	// The domain's own answer over TLS has priority over the DNS, and the DNS over
	// a guess from the mail exchangers. A source fills the fields that those before
	// it left empty.
	for _, p := range found {
		s.take(p)
	}
	s.Foreign = foreign(s, domain)
	return s, nil
}

// ask asks all sources at once. The result is in order of preference, without the
// sources that gave no answer.
func (f *Finder) ask(ctx context.Context, local, domain string) []*proposal {
	questions := []func() *proposal{
		func() *proposal {
			return f.described(ctx, "https://autoconfig."+domain+"/mail/config-v1.1.xml", local, domain)
		},
		func() *proposal {
			return f.described(ctx, "https://"+domain+"/.well-known/autoconfig/mail/config-v1.1.xml", local, domain)
		},
		func() *proposal { return f.records(ctx, domain) },
		func() *proposal { return f.delivered(ctx, domain) },
	}
	answers := make([]*proposal, len(questions))
	var wg sync.WaitGroup
	for i, q := range questions {
		wg.Go(func() { answers[i] = q() })
	}
	wg.Wait()
	return slices.DeleteFunc(answers, func(p *proposal) bool { return p == nil })
}

// proposal is the answer of one source.
type proposal struct {
	provider *mail.Provider // if set, its servers are the proposal
	protocol mail.Protocol
	incoming mail.Endpoint
	smtp     mail.Endpoint
	username string
	auth     []mail.Auth
	source   string
}

// take fills the fields that are still empty.
func (s *Settings) take(p *proposal) {
	if p.provider != nil {
		p.protocol, p.incoming = p.provider.Incoming()
		p.smtp, p.auth = p.provider.SMTP, p.provider.Auth
	}
	used := false
	if s.Incoming.IsZero() && !p.incoming.IsZero() {
		s.Incoming, s.Protocol, s.Auth, used = p.incoming, p.protocol, p.auth, true
		if p.username != "" {
			s.Username = p.username
		}
	}
	if s.SMTP.IsZero() && !p.smtp.IsZero() {
		s.SMTP, used = p.smtp, true
	}
	if s.Provider == nil && p.provider != nil && (used || s.Incoming.IsZero() || s.Incoming == p.incoming) {
		s.Provider, used = p.provider, true // a provider that no program can log in to is an answer too
	}
	if used {
		s.Sources = append(s.Sources, p.source)
	}
}

// records looks up SRV records (RFC 6186 section 3, RFC 8314 section 5.1).
func (f *Finder) records(ctx context.Context, domain string) *proposal {
	kinds := []struct {
		service  string
		protocol mail.Protocol // empty for submission
		security mail.Security
	}{
		// TLS from the first byte goes before STARTTLS (RFC 8314 section 4.1), and IMAP
		// before POP3.
		{"imaps", mail.IMAP, mail.TLS}, {"imap", mail.IMAP, mail.StartTLS}, {"pop3s", mail.POP3, mail.TLS}, {"pop3", mail.POP3, mail.StartTLS},
		{"submissions", "", mail.TLS}, {"submission", "", mail.StartTLS},
	}
	endpoints := make([]mail.Endpoint, len(kinds))
	var wg sync.WaitGroup
	for i, k := range kinds {
		wg.Go(func() {
			_, addrs, err := f.resolver().LookupSRV(ctx, k.service, "tcp", domain)
			if err == nil {
				endpoints[i] = firstTarget(addrs, k.security)
			}
		})
	}
	wg.Wait()
	p := &proposal{source: "the DNS records of " + domain, auth: []mail.Auth{mail.AuthPassword}}
	for i, k := range kinds {
		switch {
		case k.protocol == "" && p.smtp.IsZero():
			p.smtp = endpoints[i]
		case k.protocol != "" && p.incoming.IsZero():
			p.incoming, p.protocol = endpoints[i], k.protocol
		}
	}
	if p.incoming.IsZero() && p.smtp.IsZero() {
		return nil
	}
	return p
}

// firstTarget takes the most preferred record, which the resolver puts first. The
// target "." says that the service is not offered (RFC 6186 section 3.4).
func firstTarget(addrs []*net.SRV, security mail.Security) mail.Endpoint {
	if len(addrs) == 0 {
		return mail.Endpoint{}
	}
	host, ok := hostName(addrs[0].Target)
	if !ok || addrs[0].Port == 0 {
		return mail.Endpoint{}
	}
	return mail.Endpoint{Host: host, Port: addrs[0].Port, Security: security}
}

// delivered looks up whether a known provider serves the domain.
func (f *Finder) delivered(ctx context.Context, domain string) *proposal {
	hosts, _ := f.resolver().LookupMX(ctx, domain) // it returns the valid ones beside an error
	for _, h := range hosts {
		if p := mail.ProviderServing(h.Host); p != nil {
			return &proposal{provider: p, source: fmt.Sprintf("mail for %s is delivered to %s", domain, p.Name)}
		}
	}
	return nil
}

func (f *Finder) resolver() Resolver {
	if f.Resolver == nil {
		return net.DefaultResolver
	}
	return f.Resolver
}

// hostName returns a host's name in ASCII and lower case, without the dot at its
// end. It refuses IP addresses: a person could not tell who owns one.
func hostName(s string) (string, bool) {
	s = strings.TrimSuffix(strings.TrimSpace(s), ".")
	name, err := names.ToASCII(s)
	if err != nil || name == "" || len(name) > 253 || net.ParseIP(name) != nil {
		return "", false
	}
	return strings.ToLower(name), true
}

// foreign lists the hosts outside the registered domain of the address.
func foreign(s *Settings, domain string) (hosts []string) {
	own := registered(domain)
	for _, e := range []mail.Endpoint{s.Incoming, s.SMTP} {
		if !e.IsZero() && !e.Loopback() && registered(e.Host) != own && !slices.Contains(hosts, e.Host) {
			hosts = append(hosts, e.Host)
		}
	}
	return hosts
}

// registered is the registered part of a name, such as example.co.uk.
func registered(name string) string {
	if r, err := publicsuffix.EffectiveTLDPlusOne(name); err == nil {
		return r
	}
	return name
}
