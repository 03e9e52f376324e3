package authres

import (
	"net/netip"
	"regexp"
	"strings"
)

// hop is what one Received field (RFC 5321 section 4.4) says of who handed the message to whom.
type hop struct {
	from    string // everything of the from clause, comments included
	comment string // what stands in the from clause's comments
	by      string // the host, in lower case
	with    string // the protocol, in lower case
	ok      bool   // it was read, and each clause stands there once
}

// parseHop reads a Received field up to the semicolon before its date. Clauses are told by
// their words outside comments, so that a word in a comment, where a HELO name and an
// envelope address may stand, is no clause.
func parseHop(value string) (h hop) {
	seen := make(map[string]bool)
	clause := ""
	s := scanner{s: value}
	for {
		start := s.i
		if !s.space() {
			return h
		}
		if gap := s.s[start:s.i]; clause == "from" {
			h.from, h.comment = h.from+gap, h.comment+gap
		}
		if c := s.peek(); c == ';' || s.i == len(s.s) {
			h.ok = h.by != "" && receivedDate.MatchString(s.s[s.i:])
			return h
		}
		start = s.i
		if s.word(receivedByte) == "" {
			return h
		}
		word := s.s[start:s.i]
		switch lower := strings.ToLower(word); {
		case lower == "from" || lower == "by" || lower == "with" || lower == "via" || lower == "id" || lower == "for":
			if seen[lower] || lower == "from" && len(seen) > 0 {
				return h
			}
			clause, seen[lower] = lower, true
		case clause == "":
			return h
		case clause == "from":
			h.from += word
		case clause == "by" && h.by == "":
			h.by = lower
		case clause == "with" && h.with == "":
			h.with = lower
		}
	}
}

// receivedDate is all that may follow the clauses. Other text is a stranger's, who made
// the clauses end before their end, or whose message begins with a folded line.
var receivedDate = regexp.MustCompile(`\A;\s*(?:[A-Z][a-z]{2},\s*)?[0-9]{1,2}\s+[A-Z][a-z]{2}\s+[0-9]{4}\s+[0-9:]{5,8}(?:\s+[-+0-9A-Z]{1,5})?(?:\s+\([A-Z0-9+-]{1,5}\))?\s*\z`)

func receivedByte(c byte) bool { return c > ' ' && c != 0x7f && c != ';' && c != '(' && c != ')' }

// inside reports whether the border itself handed the message on: to its store by LMTP, or
// between hosts whose addresses are private. The address must stand in a comment, where the
// receiving host writes it; the name outside is the other side's own. Whoever logged in, and
// whoever used a program on the host, is a stranger too.
func (h hop) inside() bool {
	if !h.ok {
		return false
	}
	switch h.with {
	case "lmtp", "lmtps", "lmtpa", "lmtpsa", "utf8lmtp", "utf8lmtps", "utf8lmtpa", "utf8lmtpsa":
		return true
	case "esmtpa", "esmtpsa", "utf8smtpa", "utf8smtpsa", "asmtp", "local", "http", "https", "pop3", "imap":
		return false
	}
	within, ok := addresses(h.comment, private)
	all, only := addresses(h.from, private)
	return ok && only && within > 0 && all > 0
}

func private(a netip.Addr) bool { return a.IsLoopback() || a.IsPrivate() }

// addresses counts the addresses in a text. ok is false where one does not pass, or where
// something may be an address that this cannot read.
func addresses(text string, pass func(netip.Addr) bool) (n int, ok bool) {
	for _, word := range strings.FieldsFunc(text, func(c rune) bool {
		return !(c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '.' || c == ':' || c == '-')
	}) {
		if len(word) > 5 && strings.EqualFold(word[:5], "IPv6:") {
			word = word[5:]
		}
		a, err := netip.ParseAddr(word)
		if p, e := netip.ParseAddrPort(word); e == nil {
			a, err = p.Addr(), nil
		}
		switch {
		case err == nil && pass(a.Unmap()):
			n++
		case err == nil, strings.Count(word, ":") > 1, strings.Count(word, ".") >= 3 && strings.Trim(word, "0123456789.:-") == "":
			return n, false
		}
	}
	return n, true
}

// under reports whether a host is one of the names, where *.example.net stands for every
// name that ends so, and 10.* for every one that begins so.
func under(host string, names []string) bool {
	host = strings.ToLower(host)
	for _, n := range names {
		n = strings.ToLower(n)
		suffix, ends := strings.CutPrefix(n, "*")
		prefix, begins := strings.CutSuffix(n, "*")
		if host == n || ends && len(host) > len(suffix) && strings.HasSuffix(host, suffix) || begins && strings.HasPrefix(host, prefix) {
			return true
		}
	}
	return false
}
