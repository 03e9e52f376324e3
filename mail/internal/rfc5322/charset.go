package rfc5322

import (
	"bytes"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/emersion/go-message/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
)

// DecodeText turns text of a charset into UTF-8. Where the charset is
// unknown, empty or plainly wrong, the bytes are read as UTF-8 if they are
// valid UTF-8, else as windows-1252. b may be cut anywhere; an unfinished
// last character is left out. The result is not cleaned.
func DecodeText(b []byte, name string) string {
	name = strings.ToLower(strings.Trim(name, " \t\"'"))
	if len(name) > maxCharsetName {
		name = ""
	}
	if _, err := htmlindex.Get(name); err != nil {
		name = respelled(name)
	}
	switch name {
	case "utf-8", "utf8", "unicode-1-1-utf-8", "", "us-ascii", "ascii", "7bit", "8bit", "default", "unknown-8bit", "x-unknown", "unknown", "x-user-defined":
		if name == "" && bytes.Contains(b, []byte("\x1b$")) {
			return decodeNamed(b, "iso-2022-jp")
		}
		return decodeUTF8(b)
	case "iso-8859-1", "latin1", "iso8859-1", "l1", "windows-1252", "cp1252", "x-ansi":
		return decode1252(b) // senders say Latin-1 and mean windows-1252
	}
	return decodeNamed(b, name)
}

// respelled gives a charset whose name has other dashes than it should, or none, its own.
func respelled(name string) string {
	short, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(name, "charset="), "x-"), ":")
	short = strings.NewReplacer("-", "", "_", "", " ", "").Replace(short)
	for _, form := range [][2]string{{"utf", "utf-"}, {"windows", "windows-"}, {"win", "windows-"}, {"cp125", "windows-125"}, {"iso8859", "iso-8859-"},
		{"koi8", "koi8-"}, {"latin", "latin"}, {"gb", "gb"}, {"euc", "euc-"}, {"big", "big"}, {"shiftjis", "shift_jis"}} {
		if rest, ok := strings.CutPrefix(short, form[0]); ok {
			return form[1] + rest
		}
	}
	return name
}

// decodeNamed reads a charset by the name that web browsers give it, since mail
// that says GB2312 or ISO-8859-9 means the larger Windows code page, else by
// its IANA name.
func decodeNamed(b []byte, name string) string {
	var out []byte
	enc, err := htmlindex.Get(name)
	if err == nil && enc != encoding.Replacement && !strings.HasPrefix(name, "utf-16") {
		out, err = enc.NewDecoder().Bytes(b)
	} else {
		out, err = decodeIANA(b, name)
	}
	// Bytes that do not fit the charset but are UTF-8 beyond ASCII were labelled
	// wrongly. Some old charsets decode any bytes to one U+FFFD.
	if err != nil || bytes.Contains(out, []byte("\uFFFD")) && (hasHighByte(b) && utf8.Valid(b) || len(b) > 8 && string(out) == "\uFFFD") {
		return decodeUTF8(b)
	}
	return strings.TrimPrefix(string(out), "\uFEFF")
}

func decodeIANA(b []byte, name string) ([]byte, error) {
	r, err := charset.Reader(name, bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

func hasHighByte(b []byte) bool {
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return true
		}
	}
	return false
}

// decodeUTF8 keeps UTF-8 with a few broken bytes, each becoming U+FFFD, and
// reads text with more broken bytes than characters as windows-1252.
func decodeUTF8(b []byte) string {
	b = bytes.TrimPrefix(b, []byte("\uFEFF"))
	if utf8.Valid(b) {
		return string(b)
	}
	good, bad := 0, 0
	for i := 0; i < len(b); {
		if b[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			if good > 0 && !utf8.FullRune(b[i:]) {
				b = b[:i] // a character cut at the end of the prefix
				break
			}
			bad++
		} else {
			good++
		}
		i += n
	}
	if bad > good {
		return decode1252(b)
	}
	return strings.ToValidUTF8(string(b), "\uFFFD")
}

func decode1252(b []byte) string {
	var out strings.Builder
	out.Grow(len(b) + len(b)/8)
	for _, c := range b {
		out.WriteRune(charmap.Windows1252.DecodeByte(c))
	}
	return out.String()
}
