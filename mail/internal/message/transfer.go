package message

import (
	"bytes"
	"strings"

	"github.com/postern-mail/postern/mail/internal/rfc5322"
)

// DecodeBody undoes a content transfer encoding (RFC 2045 section 6) as far as
// it can be undone: base64 with junk or without padding, quoted-printable with
// broken escapes, and uuencode. Anything else is returned as it is, without a
// copy. b may be the beginning of a body: a unit cut at its end is left out.
func DecodeBody(b []byte, encoding string) []byte {
	switch encodingName(encoding) {
	case "base64":
		return decodeBase64(b)
	case "quoted-printable":
		return decodeQuotedPrintable(b)
	case "x-uuencode", "uuencode", "x-uue", "uue":
		return decodeUU(b)
	}
	return b
}

// encodingName returns the mechanism of a Content-Transfer-Encoding value in
// lower case, without the semicolons and comments some programs add.
func encodingName(s string) string {
	s = strings.ToLower(strings.TrimSpace(s))
	if i := strings.IndexAny(s, ";("); i >= 0 {
		s = s[:i]
	}
	switch s = strings.Trim(s, " \t\"'"); s {
	case "quoted printable", "quoted_printable", "quotedprintable":
		return "quoted-printable"
	case "base-64", "base 64":
		return "base64"
	}
	return s
}

// decodeBase64 ignores everything outside the alphabet. Padding ends a run;
// what follows is read only while its lines are base64 from end to end, so that
// two encoded runs one after the other both count and a plain footer does not.
func decodeBase64(b []byte) []byte {
	out := make([]byte, 0, len(b)/4*3+3)
	var acc uint32
	bits := 0
	padded, fresh := false, false // after padding; at the start of a line after padding
	for i := 0; i < len(b); i++ {
		c := b[i]
		if padded {
			if c == '\n' || c == '\r' {
				fresh = true
				continue
			}
			if !fresh {
				if c != '=' && rfc5322.Base64Value(c) >= 0 { // glued to the padding: the next run
					padded = false
				} else {
					continue
				}
			} else {
				if !isBase64Line(b[i:]) {
					return out
				}
				padded, fresh = false, false
			}
		}
		if c == '=' {
			acc, bits, padded, fresh = 0, 0, true, false
			continue
		}
		v := rfc5322.Base64Value(c)
		if v < 0 {
			continue
		}
		acc, bits = acc<<6|uint32(v), bits+6
		if bits >= 8 {
			bits -= 8
			out = append(out, byte(acc>>bits))
		}
	}
	return out
}

// isBase64Line reports whether b begins with a line of base64. It looks at a
// bounded part of a long line, since it is asked once for each padding.
func isBase64Line(b []byte) bool {
	const window = 1024
	n := 0
	for i, c := range b {
		switch {
		case i == window:
			return true
		case c == '\n' || c == '\r':
			return n%4 == 0
		case c == ' ' || c == '\t':
		case c == '=' || rfc5322.Base64Value(c) >= 0:
			n++
		default:
			return false
		}
	}
	return true // the end of a prefix
}

func decodeQuotedPrintable(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for pos := 0; pos < len(b); {
		i := bytes.IndexByte(b[pos:], '\n')
		ended := i >= 0
		line, next := b[pos:], len(b)
		if ended {
			line, next = b[pos:pos+i+1], pos+i+1
		}
		pos = next
		text := bytes.TrimRight(line, " \t\r\n")
		if !ended {
			text = line // a cut line: its last space may be text
		}
		soft := false
		for j := 0; j < len(text); j++ {
			c := text[j]
			if c != '=' {
				out = append(out, c)
				continue
			}
			rest := text[j+1:]
			switch {
			case len(rest) >= 2 && rfc5322.HexPair(rest[0], rest[1]) >= 0:
				out = append(out, byte(rfc5322.HexPair(rest[0], rest[1])))
				j += 2
			case len(rest) == 0:
				soft = true
			case !ended && len(rest) == 1 && (rest[0] == '\r' || rfc5322.HexDigit(rest[0]) >= 0):
				j++ // an escape or a soft line break cut in two
			default:
				out = append(out, '=')
			}
		}
		if ended && !soft {
			if bytes.HasSuffix(line, []byte("\r\n")) {
				out = append(out, '\r')
			}
			out = append(out, '\n')
		}
	}
	return out
}

// decodeUU decodes every "begin" block; a body without one is returned as it is.
func decodeUU(b []byte) []byte {
	var out []byte
	inside, found := false, false
	for pos := 0; pos < len(b); {
		end, next := rfc5322.LineAt(b, pos, '\n')
		line := b[pos:end]
		pos = next
		switch {
		case !inside:
			inside = bytes.HasPrefix(line, []byte("begin "))
			found = found || inside
		case bytes.Equal(line, []byte("end")) || len(line) == 0:
			inside = false
		default:
			out = appendUULine(out, line)
		}
	}
	if !found {
		return b
	}
	return out
}

func appendUULine(out, line []byte) []byte {
	n := int(line[0]-' ') & 63
	line = line[1:]
	var acc uint32
	for i, bits := 0, 0; n > 0 && i < len(line); i++ {
		acc, bits = acc<<6|uint32(line[i]-' ')&63, bits+6
		if bits >= 8 {
			bits -= 8
			out = append(out, byte(acc>>bits))
			n--
		}
	}
	return out
}
