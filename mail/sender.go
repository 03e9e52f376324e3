package mail

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/text/unicode/norm"

	"github.com/postern-mail/postern/mail/internal/authres"
	"github.com/postern-mail/postern/mail/internal/rfc5322"
)

// Verdict is whether a message comes from the domain that its From field names, as the
// account's own mail border saw it. The zero Verdict means that nobody judged.
type Verdict = authres.Verdict

// Verified, Failed and Unknown are what Policy.Verdict returns.
const (
	Verified = authres.Verified
	Failed   = authres.Failed
	Unknown  = authres.Unknown
)

// Border is the authority whose Authentication-Results count, and where it writes them.
type Border = authres.Border

// NoAuthServ as the only one of Account.AuthServIDs turns the judging of senders off.
const NoAuthServ = "none"

// VerdictFields are the header fields that Policy.Verdict reads.
func VerdictFields() []string { return append([]string{"From"}, authres.FieldNames...) }

// ProposedAuthServIDs returns the authserv-ids that stand in a header where an account's own
// border writes: what an administrator may want to trust.
func ProposedAuthServIDs(h rfc5322.Header) []string { return authres.IDs(h) }

// Judges reports whether the account has an authority to judge senders by, so that the fields
// of VerdictFields are worth fetching. Without one every verdict is Unknown.
func (p *Policy) Judges() bool { return p != nil && p.border != nil }

// Verdict judges the sender of a message by its header, which must be whole. A message is
// Unknown unless one From field names one address that every reader takes for the same.
func (p *Policy) Verdict(h rfc5322.Header) Verdict {
	if !p.Judges() || len(h.Values("From")) != 1 {
		return Unknown
	}
	from, ok := authors(h)
	if !ok || len(from) != 1 {
		return Unknown
	}
	return p.border.Verdict(h, from[0][strings.LastIndexByte(from[0], '@')+1:])
}

// maxTransit is how long before its arrival a message may be dated for its verdict to count.
const maxTransit = 4 * 24 * time.Hour

// Vouched reports whether a message is Verified and its verdict counts for what the account's
// owner gets: a signature still holds on a message that somebody who once got it sends on.
func (p *Policy) Vouched(h rfc5322.Header) bool {
	return p.Verdict(h) == Verified && p.addressed(h) && timely(h)
}

// addressed reports whether To or Cc names an address of the account's own, also one with a
// detail behind a plus sign (RFC 5233). A signature may be about one of several such fields, and
// whoever sends the message on has written the others.
func (p *Policy) addressed(h rfc5322.Header) bool {
	if !atMostOne(h, "To") || !atMostOne(h, "Cc") {
		return false
	}
	for _, field := range []string{"To", "Cc"} {
		for _, a := range h.Addresses(field) {
			local, domain, _ := strings.Cut(a.Addr, "@")
			local, _, _ = strings.Cut(local, "+")
			if p.Owns(a.Addr) || p.Owns(local+"@"+domain) {
				return true
			}
		}
	}
	return false
}

// timely reports whether a message was dated at most maxTransit before it came, by the topmost
// Received field.
func timely(h rfc5322.Header) bool {
	dated, ok := h.Date()
	received := h.Get("Received")
	came, read := rfc5322.ParseDate(received[strings.LastIndexByte(received, ';')+1:])
	return ok && read && atMostOne(h, "Date") && came.Sub(dated) <= maxTransit
}

func atMostOne(h rfc5322.Header, field string) bool {
	return len(h.Values(field)) <= 1 && h.Certain(field)
}

var shownAddress = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`[^\s<>()\[\]{}"'` + "`" + `,;:|/=@]+@[\pL\pN](?:[\pL\pN.-]*[\pL\pN])?\.\pL[\pL\pN-]*`)
})

// Poses returns the first address that a display name shows and that is not the address
// itself, "" where it shows none.
func Poses(a Address) string {
	own, _ := NormalAddress(a.Addr)
	for _, shown := range shownAddress().FindAllString(norm.NFKC.String(a.Name), -1) {
		if n, ok := NormalAddress(shown); !ok || n != own {
			return shown
		}
	}
	return ""
}

// border returns who judges for the account, nil for nobody: the ids that the administrator
// trusts, else the provider's. The place is the provider's in both cases.
func (a *Account) border() *Border {
	var b Border
	in := a.Incoming()
	if p := find(func(p *Provider) bool {
		_, its := p.Incoming()
		// Many things listen on this machine.
		return p.Border.IDs != nil && (strings.EqualFold(its.Host, in.Host) || strings.EqualFold(p.POP3.Host, in.Host)) && (!its.Loopback() || its.Port == in.Port)
	}); p != nil {
		b = p.Border
	}
	if a.AuthServIDs != nil {
		b.IDs = a.AuthServIDs
	}
	if len(b.IDs) == 0 || slices.Equal(b.IDs, []string{NoAuthServ}) {
		return nil
	}
	return &b
}

var authServID = regexp.MustCompile(`\A(?:\*\.)?[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,253}[A-Za-z0-9])?\z`)

func (a *Account) validateAuthServIDs() error {
	for _, id := range a.AuthServIDs {
		if !authServID.MatchString(id) || strings.EqualFold(id, NoAuthServ) && (id != NoAuthServ || len(a.AuthServIDs) > 1) {
			return errors.New("a trusted authentication server must be the name that it writes, such as mx.example.org, *.example.org for every name beneath, or none alone")
		}
	}
	return nil
}
