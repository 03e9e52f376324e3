package rfc5322

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/postern-mail/postern/internal/plain"
)

// MaxAddrBytes is the longest address (RFC 5321 section 4.5.3.1.3, less its
// angle brackets).
const MaxAddrBytes = 254

// StrictAddresses returns every address in every field of the name, as written
// and in order, read by the narrow grammar that all mail programs agree on: a
// list, parted by commas, of
//
//	local@domain
//	phrase <local@domain>
//
// where local and domain are dot-atoms and the phrase is made of atoms, dots,
// 8-bit bytes and quoted strings. A comment may be beside the phrase or behind
// the mailbox when nothing in it could be taken for an address or a separator.
// ok is false when a field holds anything else: groups, routes, quoted local
// parts, domain literals, encoded words in an address, a stray separator or
// control character. Then programs may differ about the recipient. A missing
// field is ok and empty.
func (h Header) StrictAddresses(name string) (addrs []string, ok bool) {
	for _, v := range h.Values(name) {
		for {
			addr, rest, found := strictMailbox(v)
			if !found {
				return nil, false
			}
			addrs = append(addrs, addr)
			if rest == "" {
				break
			}
			v = rest[1:] // the comma
		}
	}
	return addrs, true
}

// strictMailbox reads one mailbox from the beginning of s. rest is empty or
// starts with a comma.
func strictMailbox(s string) (addr, rest string, ok bool) {
	i, words := 0, 0 // words of the phrase before i
	for {
		i = skipSpace(s, i)
		if i == len(s) {
			return "", "", false
		}
		switch c := s[i]; {
		case c == '<':
			end := strings.IndexByte(s[i:min(len(s), i+MaxAddrBytes+8)], '>')
			if end < 0 {
				return "", "", false
			}
			addr = strings.Trim(s[i+1:i+end], " \t")
			return strictEnd(s, i+end+1, addr)
		case c == '"':
			end, ok := strictQuoted(s, i)
			if !ok {
				return "", "", false
			}
			i, words = end, words+1
		case c == '(':
			end, ok := strictComment(s, i)
			if !ok {
				return "", "", false
			}
			i = end
		case IsAtext(c) || c == '.' || c >= utf8.RuneSelf:
			end := i
			for end < len(s) && (IsAtext(s[end]) || s[end] == '.' || s[end] >= utf8.RuneSelf) {
				end++
			}
			if end < len(s) && s[end] == '@' && words == 0 {
				domain := end + 1
				for domain < len(s) && (IsAtext(s[domain]) || s[domain] == '.' || s[domain] >= utf8.RuneSelf) {
					domain++
				}
				return strictEnd(s, domain, s[i:domain])
			}
			i, words = end, words+1
		default:
			return "", "", false
		}
	}
}

// strictEnd checks the text behind a mailbox: white space and at most one
// comment, then a comma or the end.
func strictEnd(s string, i int, addr string) (string, string, bool) {
	if _, _, ok := SplitAddr(addr); !ok {
		return "", "", false
	}
	i = skipSpace(s, i)
	if i < len(s) && s[i] == '(' {
		end, ok := strictComment(s, i)
		if !ok {
			return "", "", false
		}
		i = skipSpace(s, end)
	}
	if i < len(s) && s[i] != ',' {
		return "", "", false
	}
	return addr, s[i:], true
}

func skipSpace(s string, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\t') {
		i++
	}
	return i
}

// strictQuoted returns the index behind the quoted string at s[i]. A quoted
// pair may only hold a quote or a backslash.
func strictQuoted(s string, i int) (int, bool) {
	for j := i + 1; j < len(s); j++ {
		switch c := s[j]; {
		case c == '"':
			return j + 1, true
		case c == '\\':
			if j+1 == len(s) || s[j+1] != '"' && s[j+1] != '\\' {
				return 0, false
			}
			j++
		case c < ' ' && c != '\t' || c == 0x7f:
			return 0, false
		}
	}
	return 0, false
}

// strictComment returns the index behind the comment at s[i].
func strictComment(s string, i int) (int, bool) {
	for j := i + 1; j < len(s); j++ {
		switch c := s[j]; {
		case c == ')':
			return j + 1, true
		case c < ' ' && c != '\t' || c == 0x7f || strings.IndexByte(`(<>@,;:\"`, c) >= 0:
			return 0, false
		}
	}
	return 0, false
}

// SplitAddr splits a plain address at its @ (RFC 5322 section 3.4.1 with RFC 6532
// section 3.2, dot-atoms only). ok is false for anything else: no or several @, an
// empty part or label, white space, quotes, controls, an encoded word, bytes that
// are not UTF-8, characters that plain.Text removes, or more than MaxAddrBytes.
func SplitAddr(s string) (local, domain string, ok bool) {
	local, domain, ok = strings.Cut(s, "@")
	if !ok || len(s) > MaxAddrBytes || strings.Contains(s, "=?") || plain.Text(s) != s ||
		!isDotAtom(local) || !isDotAtom(domain) {
		return "", "", false
	}
	return local, domain, true
}

// isDotAtom reports whether s is a dot-atom-text. Characters outside ASCII
// that separate words, such as the no-break space, are not allowed.
func isDotAtom(s string) bool {
	dot := true // the last character was a dot, or this is the first
	for _, r := range s {
		switch {
		case r == '.':
			if dot {
				return false
			}
			dot = true
			continue
		case r < utf8.RuneSelf && !IsAtext(byte(r)), r == utf8.RuneError, r >= utf8.RuneSelf && !unicode.IsGraphic(r), unicode.IsSpace(r):
			return false
		}
		dot = false
	}
	return !dot
}
