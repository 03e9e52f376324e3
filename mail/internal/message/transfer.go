package message

import (
	"bytes"
	"encoding/base64"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// DecodeBody undoes a content transfer encoding (RFC 2045 section 6) as far as possible:
// base64 with junk or without padding, and quoted-printable with broken escapes. A body in
// any other encoding, including uuencode, is returned unchanged and without a copy. b may
// be the beginning of a body: a unit cut at its end is left out.
func DecodeBody(b []byte, encoding string) []byte {
	switch encodingName(encoding) {
	case "base64":
		return decodeBase64(b)
	case "quoted-printable":
		return decodeQuotedPrintable(b)
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

// decodeBase64 ignores characters outside the alphabet. Padding ends the text, unless
// all that follows is base64: then that is decoded too, while a plain footer is not. An
// empty line behind whole groups ends it too where words follow.
func decodeBase64(b []byte) []byte {
	if hasEmptyLine(b) {
		if at := footer().FindIndex(b); at != nil && digitsIn(b[:at[0]])%4 == 0 {
			b = b[:at[0]]
		}
	}
	text, rest, _ := bytes.Cut(b, []byte("="))
	out := appendBase64(make([]byte, 0, len(b)/4*3+3), text)
	rest = bytes.Join(bytes.Fields(bytes.TrimLeft(rest, "=")), nil)
	if len(rest)%4 == 0 && !slices.ContainsFunc(rest, func(c byte) bool { return c != '=' && !isBase64(c) }) {
		for run := range bytes.SplitSeq(rest, []byte("=")) {
			out = appendBase64(out, run)
		}
	}
	return out
}

// footer matches an empty line and the words that a list or a scanner put behind it: lines of
// base64 have no blanks between letters.
var footer = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\r?\n[ \t]{0,8}\r?\n(?:[^A-Za-z0-9\n]{0,80}\r?\n)?[^\n]{0,200}[A-Za-z,.:;][ \t]+[A-Za-z]`)
})

// hasEmptyLine spares most attachments the search for a footer, which takes longer than to decode them.
func hasEmptyLine(b []byte) bool {
	for {
		_, after, found := bytes.Cut(b, []byte("\n"))
		if !found {
			return false
		}
		if b = after; bytes.HasPrefix(bytes.TrimLeft(b[:min(len(b), 10)], " \t\r"), []byte("\n")) {
			return true
		}
	}
}

func digitsIn(b []byte) (n int) {
	for _, c := range b {
		if isBase64(c) {
			n++
		}
	}
	return n
}

// appendBase64 decodes the characters between two paddings.
func appendBase64(dst, run []byte) []byte {
	digits := make([]byte, 0, len(run))
	for _, c := range run {
		if isBase64(c) {
			digits = append(digits, c)
		}
	}
	if len(digits)%4 == 1 {
		digits = digits[:len(digits)-1] // six bits are not an octet
	}
	dst, _ = base64.RawStdEncoding.AppendDecode(dst, digits) // all are of the alphabet
	return dst
}

func isBase64(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '+' || c == '/'
}

func decodeQuotedPrintable(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for line := range bytes.Lines(b) {
		text, end := bytes.TrimRight(line, " \t\r\n"), "\n"
		if bytes.HasSuffix(line, []byte("\r\n")) {
			end = "\r\n"
		}
		cut := line[len(line)-1] != '\n'
		if cut {
			text, end = line, "" // its last space may be text
		}
		for {
			before, rest, escape := bytes.Cut(text, []byte("="))
			out = append(out, before...)
			if !escape {
				break
			}
			if len(rest) == 0 || cut && len(rest) == 1 { // a soft line break, or an escape cut in two
				end = ""
				break
			}
			text = rest
			if octet, err := strconv.ParseUint(string(rest[:min(2, len(rest))]), 16, 8); err == nil && len(rest) > 1 {
				out = append(out, byte(octet))
				text = rest[2:]
			} else {
				out = append(out, '=')
			}
		}
		out = append(out, end...)
	}
	return out
}
