// Package authres judges who wrote a message by what the account's own mail border saw: the
// Authentication-Results (RFC 8601) that it wrote. Where such a field stands decides whether
// it is believed, for a stranger can write the same field with the same name into a message.
// Whoever can hand a message to the border from a private or loopback address is within it.
//
// Every function is pure, takes any bytes, and costs time linear in them. What cannot be read
// strictly, contradicts itself or stands elsewhere than the border writes is Unknown.
package authres

import (
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/net/publicsuffix"

	"github.com/postern-mail/postern/mail/internal/rfc5322"
)

// Verdict is whether a message comes from the domain of its From field.
type Verdict string

// Verified: the border saw DMARC pass for that domain, or an aligned DKIM signature where the
// domain has no DMARC. Failed: it saw that fail. Unknown is everything else.
const (
	Verified Verdict = "verified"
	Failed   Verdict = "failed"
	Unknown  Verdict = "unknown"
)

// Border is the authority whose word counts for an account, and where it writes it: above
// the edge, the topmost Received that took the message from outside. A name that begins with
// *. stands for every name beneath. The zero Border believes nothing.
type Border struct {
	IDs  []string // trusted authserv-ids; the empty one stands for a field without any
	Edge []string // what the edge calls itself in its by clause; nil: not known
	// Inside is what hosts within the border call themselves, and Net where they are, for
	// providers whose hosts talk over public addresses or write theirs in a way of their own.
	// It needs Edge.
	Inside []string
	Net    netip.Prefix
	// ARC says that the results are read from ARC-Authentication-Results (RFC 8617): Gmail
	// writes them there above the edge, and below it, where a stranger's begin, once more.
	ARC bool
}

// FieldNames are the fields that a verdict needs, beside From.
var FieldNames = []string{"Received", "Authentication-Results", "ARC-Authentication-Results"}

// Verdict judges a message by its whole header. from is the domain of the only From
// address, lower case and ASCII.
func (b *Border) Verdict(h rfc5322.Header, from string) Verdict {
	found, ok := b.said(h)
	return judge(found, ok && from != "", from)
}

// said are the results that count of a whole header. ok is false where there is no place of which
// it is sure that the border wrote there, and where what stands there cannot be read.
func (b *Border) said(h rfc5322.Header) (found []results, ok bool) {
	if b == nil || !h.Certain("Authentication-Results") || !h.Certain("ARC-Authentication-Results") || !h.Certain("Received") {
		return nil, false
	}
	fields := h.Fields()
	edge := b.edge(fields)
	if edge < 0 {
		return nil, false
	}
	return b.trusted(fields[:edge])
}

func named(f rfc5322.Field, name string) bool { return strings.EqualFold(f.Name, name) }

// edge returns the index of the edge, or -1 where there is none to be sure of.
func (b *Border) edge(fields []rfc5322.Field) int {
	for i, f := range fields {
		if !named(f, "Received") {
			continue
		}
		hop := parseHop(f.Value)
		switch {
		case b.Edge == nil && !hop.inside():
			return i
		case hop.ok && under(hop.by, b.Edge):
			return i
		case b.Edge != nil && !hop.inside() && !b.within(hop) && !(b.ARC && internalAtGoogle(hop)):
			return -1
		}
	}
	return -1
}

// within reports whether a hop is between two hosts of Inside.
func (b *Border) within(h hop) bool {
	n, ok := addresses(h.from, b.Net.Contains)
	return h.ok && under(h.by, b.Inside) && ok && n > 0
}

// internalAtGoogle: Gmail's own hops have no from clause, and an address for a name.
func internalAtGoogle(h hop) bool {
	return h.ok && h.from == "" && h.with == "smtp" && (strings.HasPrefix(h.by, "2002:a") || strings.HasPrefix(h.by, "10."))
}

// trusted returns the results with a trusted id. ok is false where a field that may have one
// cannot be read.
func (b *Border) trusted(fields []rfc5322.Field) (found []results, ok bool) {
	name := "Authentication-Results"
	if b.ARC {
		name = "ARC-Authentication-Results"
	}
	for _, f := range fields {
		if !named(f, name) {
			continue
		}
		value := f.Value
		if b.ARC { // the instance comes first (RFC 8617 section 4.1.1)
			_, value, _ = strings.Cut(value, ";")
		}
		r, ok := parseResults(value)
		if !ok {
			return nil, false
		}
		if r.id == "" && slices.Contains(b.IDs, "") || r.id != "" && under(r.id, b.IDs) {
			found = append(found, r)
		}
	}
	return found, true
}

// judge makes one verdict of all that the border says.
func judge(found []results, ok bool, from string) Verdict {
	if !ok {
		return Unknown
	}
	dmarc, signed, aligned, spf := "", false, false, Unknown
	for _, f := range found {
		for _, r := range f.list {
			switch r.method {
			case "dmarc":
				of, outcome := domainOf(r.props["header.from"]), r.outcome
				if r.twice || of != "" && of != from || of == "" && outcome == "pass" || dmarc != "" && dmarc != outcome {
					return Unknown
				}
				dmarc = outcome
			case "dkim":
				signed = signed || r.outcome != "none" && r.outcome != "unknown"
				aligned = aligned || r.outcome == "pass" && !r.twice && relatives(r.signer(), from)
			case "spf":
				if of := domainOf(r.props["smtp.mailfrom"]); r.outcome == "fail" || of != "" && !relatives(of, from) {
					spf = Failed
				}
			}
		}
	}
	switch {
	case dmarc == "pass":
		return Verified
	case dmarc == "fail":
		return Failed
	case dmarc != "" && dmarc != "none" && dmarc != "bestguesspass" && dmarc != "unknown": // the last two are Microsoft's and Yahoo's none
		return Unknown // it could not be found out
	case aligned:
		return Verified
	case signed && spf == Failed:
		return Failed
	}
	return Unknown
}

// signer is the domain that a DKIM result is about: header.d, or where the border gives only
// that, the domain of header.i, which is at or below it (RFC 6376 section 3.5).
func (r *result) signer() string {
	d, there := r.props["header.d"]
	if !there {
		d = r.props["header.i"]
	}
	return domainOf(d)
}

// domainOf returns the domain of an address or a domain, "" for anything else.
func domainOf(s string) string {
	if inner, ok := strings.CutPrefix(s, "<"); ok {
		s = strings.TrimSuffix(inner, ">")
	}
	if at := strings.LastIndexByte(s, '@'); at >= 0 {
		s = s[at+1:]
	}
	if strings.Trim(strings.ToLower(s), "abcdefghijklmnopqrstuvwxyz0123456789-._") != "" || !strings.Contains(s, ".") {
		return ""
	}
	return strings.ToLower(s)
}

// relatives reports whether two domains belong to one organization (RFC 7489 section 3.2): the
// relaxed alignment.
func relatives(a, b string) bool {
	return a != "" && b != "" && (a == b || organization(a) == organization(b))
}

func organization(domain string) string {
	if org, err := publicsuffix.EffectiveTLDPlusOne(domain); err == nil {
		return org
	}
	return domain
}

// IDs returns the authserv-ids of the fields above the edge, as an administrator may want to
// trust them; none where the edge is not known.
func IDs(h rfc5322.Header) []string {
	var ids []string
	fields, b := h.Fields(), &Border{}
	if !h.Certain("Authentication-Results") || !h.Certain("Received") {
		return nil
	}
	for _, f := range fields[:max(b.edge(fields), 0)] {
		if r, ok := parseResults(f.Value); ok && named(f, "Authentication-Results") && r.id != "" && !slices.Contains(ids, r.id) {
			ids = append(ids, r.id)
		}
	}
	return ids
}
