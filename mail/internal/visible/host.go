package visible

import (
	"net"
	"net/url"
	"strings"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"

	"github.com/postern-mail/postern/internal/plain"
)

// maxNamed bounds the text of a link that is looked through for the names of hosts, in bytes.
const maxNamed = 2000

// otherHost returns the host that a link leads to, in ASCII, if its text or the user name in
// its address shows another one, and "" otherwise. Two hosts of one registrable domain are
// the same.
func otherHost(text, href string) string {
	href = linkable(href)
	host, shown := hostOf(href)
	if host == "" {
		return ""
	}
	text = plain.Text(text)
	for word := range strings.FieldsSeq(text[:min(len(text), maxNamed)]) {
		shown = append(shown, hostsIn(word)...)
	}
	for _, name := range shown {
		if name != "" && registrable(name) != registrable(host) {
			return host
		}
	}
	return ""
}

// hostOf returns the host of an address as a browser reads it, in ASCII, and what its user
// name shows as if it were the host.
func hostOf(href string) (host string, shown []string) {
	scheme, rest, ok := strings.Cut(href, ":")
	switch strings.ToLower(scheme) {
	case "mailto":
		rest, _, _ = strings.Cut(rest, "?")
		return ascii(rest[strings.LastIndexByte(rest, '@')+1:]), nil
	case "http", "https":
	default:
		ok = strings.HasPrefix(href, "//")
		rest = href
	}
	if !ok {
		return "", nil
	}
	user, host := authority(strings.TrimLeft(rest, `/\`))
	return ascii(host), domainsIn(user)
}

// authority splits the beginning of an address into its user name and its host.
func authority(s string) (user, host string) {
	if end := strings.IndexAny(s, `/\?#`); end >= 0 {
		s = s[:end]
	}
	at := strings.LastIndexByte(s, '@')
	user, host = s[:max(at, 0)], s[at+1:]
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return user, host
}

// hostsIn returns the hosts that a word of a text shows: in an address with a scheme, a mail
// address or a domain. A file name such as report.pdf is none.
func hostsIn(word string) []string {
	word = strings.TrimFunc(word, func(c rune) bool { return strings.ContainsRune(`()[]{}<>"'“”‘’«».,;:!`, c) })
	lower := strings.ToLower(word)
	if at := max(strings.Index(lower, "http://"), strings.Index(lower, "https://")); at >= 0 {
		host, shown := hostOf(lower[at:])
		return append(shown, host)
	}
	_, host := authority(strings.TrimPrefix(lower, "mailto:"))
	return domainsIn(host)
}

// domainsIn returns a text as a domain in ASCII, if it is one under a public suffix, or
// under the one for examples (RFC 2606). The suffixes that are file names far more often do
// not count.
func domainsIn(s string) []string {
	name := ascii(strings.TrimSuffix(s, "."))
	if !strings.Contains(name, ".") || strings.ContainsAny(name, " :_") || strings.HasSuffix(name, ".zip") || strings.HasSuffix(name, ".mov") {
		return nil
	}
	suffix, icann := publicsuffix.PublicSuffix(name)
	if name == suffix || !icann && !strings.Contains(suffix, ".") && suffix != "example" {
		return nil
	}
	return []string{name}
}

// registrable is the domain that a host belongs to; an IP address belongs to none but itself.
func registrable(host string) string {
	if d, err := publicsuffix.EffectiveTLDPlusOne(host); err == nil && net.ParseIP(host) == nil {
		return d
	}
	return host
}

// ascii is a host in the form in which hosts are compared.
func ascii(host string) string {
	if plain, err := url.PathUnescape(host); err == nil {
		host = plain
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	if a, err := idna.Lookup.ToASCII(host); err == nil {
		host = a
	}
	return strings.TrimSuffix(host, ".")
}
