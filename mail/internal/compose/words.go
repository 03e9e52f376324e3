package compose

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"
)

// encoding is one of the two of RFC 2047 section 4.
type encoding byte

const (
	encodingB encoding = 'B'
	encodingQ encoding = 'Q'
)

const (
	maxEncodedWord = 75                                   // octets, RFC 2047 section 2
	wordFrame      = len("=?utf-8?Q?") + len("?=")        // octets around the text
	maxCluster     = (maxEncodedWord - wordFrame) / 4 * 3 // bytes that fit one word of B
)

// chooseEncoding returns the encoding that makes s shorter, or B where Q would
// have to split a user-perceived character.
func chooseEncoding(s string) encoding {
	q := 0
	for i := 0; i < len(s); {
		n := clusterSize(s[i:])
		size := encodingQ.size(s[i : i+n])
		if size > maxEncodedWord-wordFrame {
			return encodingB
		}
		q += size
		i += n
	}
	if q <= encodingB.size(s) {
		return encodingQ
	}
	return encodingB
}

// size returns how many octets the text becomes, without the frame.
func (e encoding) size(s string) int {
	if e == encodingB {
		return base64.StdEncoding.EncodedLen(len(s))
	}
	n := 0
	for i := range len(s) {
		if plainInWord(s[i]) || s[i] == ' ' {
			n++
		} else {
			n += 3
		}
	}
	return n
}

// plainInWord reports whether Q leaves a byte unchanged: the bytes allowed in
// a display name (RFC 2047 section 5), which are fewer than in a Subject;
// readers accept them everywhere.
func plainInWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("!*+-/", c) >= 0
}

// take returns how many bytes from the front of s fit an encoded word of at most
// room octets. It does not split a cluster, and never a character.
func (e encoding) take(s string, room int) int {
	n := 0
	for n < len(s) {
		c := clusterSize(s[n:])
		if e.size(s[:n+c])+wordFrame > room {
			break
		}
		n += c
	}
	return n
}

// word returns s as one encoded word.
func (e encoding) word(s string) string {
	var b strings.Builder
	b.WriteString("=?utf-8?" + string(rune(e)) + "?")
	if e == encodingB {
		b.WriteString(base64.StdEncoding.EncodeToString([]byte(s)))
	} else {
		for i := range len(s) {
			switch c := s[i]; {
			case c == ' ':
				b.WriteByte('_')
			case plainInWord(c):
				b.WriteByte(c)
			default:
				b.WriteByte('=')
				b.WriteByte(upperHex[c>>4])
				b.WriteByte(upperHex[c&15])
			}
		}
	}
	b.WriteString("?=")
	return b.String()
}

const upperHex = "0123456789ABCDEF"

// clusterSize returns the bytes of the first user-perceived character of s (Unicode
// Standard Annex 29). One that is over maxCluster bytes long counts as its first rune
// alone.
func clusterSize(s string) int {
	first := graphemes.FromString(s[:min(len(s), maxCluster+utf8.UTFMax)])
	if first.Next() && len(first.Value()) <= maxCluster {
		return len(first.Value())
	}
	_, n := utf8.DecodeRuneInString(s)
	return n
}
