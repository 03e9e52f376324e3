package compose

import (
	"bytes"
	"encoding/base64"
	"unicode/utf8"
)

const (
	maxTextLine   = 998 // octets of a line on the wire, RFC 5322 section 2.1.1
	encodedColumn = 76  // octets of an encoded line, RFC 2045 section 6.7 and 6.8
	encodedBytes  = encodedColumn / 4 * 3
)

// textPart is the text, alone or with the HTML made of it, with the fields that describe
// it. The body ends with a line end unless it is base64 or empty.
type textPart struct {
	header, body []byte
}

// encodeText gives text of a subtype, in lines of CRLF, its transfer encoding: none
// where the text is ASCII that every server leaves unchanged, else the shorter of
// quoted-printable and base64.
func encodeText(text []byte, subtype string, flowed bool) textPart {
	var h header
	params := []string{"text/" + subtype, "charset=utf-8"}
	if flowed {
		params = append(params, "format=flowed")
	}
	h.params("Content-Type", params)
	encoding, body := "7bit", text
	if !is7bit(text) {
		least, size := len(text), base64Size(len(text)) // octets in either encoding
		for _, c := range text {
			if c >= utf8.RuneSelf {
				least += 2
			}
		}
		if least <= size {
			encoding, body = "quoted-printable", appendQuotedPrintable(make([]byte, 0, least+least/16), text)
		}
		if size < max(least, len(body)) {
			encoding, body = "base64", appendBase64(make([]byte, 0, size), text)
		}
	}
	h.field("Content-Transfer-Encoding", encoding)
	return textPart{header: h.b, body: body}
}

// is7bit reports whether text can be sent unencoded: ASCII, no line too long,
// and no line that begins with "From ", which a mailbox file would change.
func is7bit(text []byte) bool {
	for line := range bytes.Lines(text) {
		if len(line)-len("\r\n") > maxTextLine || bytes.HasPrefix(line, []byte("From ")) {
			return false
		}
		for _, c := range line {
			if c >= utf8.RuneSelf {
				return false
			}
		}
	}
	return true
}

// appendQuotedPrintable appends text in quoted-printable (RFC 2045 section 6.7).
// Its lines of CRLF stay lines. No line end splits a character, and no line
// begins with "From " or a dot, which transport might change.
func appendQuotedPrintable(dst, text []byte) []byte {
	for line := range bytes.Lines(text) {
		line = bytes.TrimSuffix(line, []byte("\r\n"))
		col := 0
		for len(line) > 0 {
			r, n := utf8.DecodeRune(line)
			last := len(line) == n
			literal := r > ' ' && r < 0x7f && r != '=' || (r == ' ' || r == '\t') && !last
			size := 3 * n
			if literal {
				size = 1
			}
			room := encodedColumn - col
			if !last {
				room-- // for the "=" of a soft line break
			}
			if size > room {
				dst = append(dst, "=\r\n"...)
				col = 0
			}
			if col == 0 && (r == '.' || bytes.HasPrefix(line, []byte("From "))) {
				literal, size = false, 3
			}
			if literal {
				dst = append(dst, byte(r))
			} else {
				for _, c := range line[:n] {
					dst = append(dst, '=', upperHex[c>>4], upperHex[c&15])
				}
			}
			col += size
			line = line[n:]
		}
		dst = append(dst, "\r\n"...)
	}
	return dst
}

// base64Size returns the octets that n bytes become in lines of base64, without
// the end of the last one.
func base64Size(n int) int {
	if n == 0 {
		return 0
	}
	lines := (n + encodedBytes - 1) / encodedBytes
	return base64.StdEncoding.EncodedLen(n) + (lines-1)*len("\r\n")
}

// appendBase64 appends content in lines of base64 (RFC 2045 section 6.8), without
// the end of the last one.
func appendBase64(dst, content []byte) []byte {
	for len(content) > encodedBytes {
		dst = base64.StdEncoding.AppendEncode(dst, content[:encodedBytes])
		dst = append(dst, "\r\n"...)
		content = content[encodedBytes:]
	}
	return base64.StdEncoding.AppendEncode(dst, content)
}
