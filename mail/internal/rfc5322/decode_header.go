package rfc5322

import (
	"encoding/base64"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"

	"github.com/postern-mail/postern/internal/plain"
)

// DecodeHeader returns a raw header value as a person reads it: encoded words
// (RFC 2047, RFC 2231 section 5) decoded, bytes outside ASCII read as UTF-8 if
// valid, else as Windows-1252, then made one line by plain.Line.
//
// It is as tolerant as mail programs are. Encoded words may have any length, touch other
// text and hold spaces; neighbours of one charset are joined before they are decoded,
// since senders split characters across them. A word in an unknown charset is read as
// raw bytes; text that is not an encoded word stays as written. Decoded text is not
// decoded again.
func DecodeHeader(raw string) string {
	if !strings.Contains(raw, "=?") {
		return plain.Line(rawText(raw))
	}
	var out strings.Builder
	var word []byte // decoded bytes of neighbouring encoded words
	var wordCharset string
	flush := func() {
		if word != nil {
			out.WriteString(DecodeText(word, wordCharset))
			word = nil
		}
	}
	text := 0 // start of the text not yet written
	for i := 0; i < len(raw); {
		next := strings.Index(raw[i:], "=?")
		if next < 0 {
			break
		}
		i += next
		cs, data, end, ok := readWord(raw, i)
		if !ok {
			i = end
			continue
		}
		between := raw[text:i]
		neighbours := word != nil && strings.Trim(between, " \t\r\n") == ""
		if !neighbours || !strings.EqualFold(cs, wordCharset) {
			flush()
			if !neighbours {
				out.WriteString(rawText(between))
			}
			word, wordCharset = []byte{}, cs
		}
		word = append(word, data...)
		i, text = end, end
	}
	flush()
	out.WriteString(rawText(raw[text:]))
	return plain.Line(out.String())
}

// maxCharsetName is the longest charset name that is looked up.
const maxCharsetName = 64

// readWord reads the encoded word at s[i:], which starts with "=?". Where
// there is no valid one, end is where the next can start. It reads no byte
// behind the next "=?", so that a run of attempts stays linear.
func readWord(s string, i int) (cs string, data []byte, end int, ok bool) {
	rest := s[i+2:]
	q := strings.IndexByte(rest[:min(len(rest), maxCharsetName+1)], '?')
	if q <= 0 || len(rest) < q+3 || rest[q+2] != '?' {
		return "", nil, i + 2, false
	}
	cs, _, _ = strings.Cut(rest[:q], "*") // a language may follow
	kind := rest[q+1] | 0x20
	start := i + 2 + q + 3
	for p := start; p+1 < len(s); p++ {
		switch {
		case s[p] == '?' && s[p+1] == '=':
			data, ok = decodeWord(kind, s[start:p])
			if !ok {
				return "", nil, p + 2, false
			}
			return cs, data, p + 2, true
		case s[p] == '=' && s[p+1] == '?' && (p+2 == len(s) || s[p+2] != '='):
			return "", nil, p, false
		}
	}
	return "", nil, len(s), false
}

func decodeWord(kind byte, text string) ([]byte, bool) {
	switch kind {
	case 'b':
		// Senders often get padding, white space and the last group wrong.
		text = strings.Map(func(r rune) rune {
			if r == '=' || r == ' ' || r == '\t' || r == '\r' {
				return -1
			}
			return r
		}, text)
		if len(text)%4 == 1 {
			text = text[:len(text)-1]
		}
		data, err := base64.RawStdEncoding.DecodeString(text)
		return data, err == nil
	case 'q':
		data := make([]byte, 0, len(text))
		for i := 0; i < len(text); i++ {
			c := text[i]
			if c == '_' {
				c = ' '
			} else if c == '=' && i+2 < len(text) {
				if octet, err := strconv.ParseUint(text[i+1:i+3], 16, 8); err == nil {
					c = byte(octet)
					i += 2
				}
			}
			data = append(data, c)
		}
		return data, true
	}
	return nil, false
}

// rawText reads bytes without a charset: as UTF-8 if valid, else as
// Windows-1252, which accepts any bytes. Bare ISO-2022-JP, which is ASCII to
// both, is recognized by its escape sequences.
func rawText(s string) string {
	if strings.Contains(s, "\x1b$") {
		return DecodeText([]byte(s), "")
	}
	if utf8.ValidString(s) {
		return s
	}
	var out strings.Builder
	out.Grow(len(s) + len(s)/8)
	for i := range len(s) {
		out.WriteRune(charmap.Windows1252.DecodeByte(s[i]))
	}
	return out.String()
}
