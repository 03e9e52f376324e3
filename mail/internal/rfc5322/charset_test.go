package rfc5322

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestDecodeText(t *testing.T) {
	for _, tc := range []struct {
		name, charset, in, want string
	}{
		{"UTF-8", "utf-8", "café", "café"},
		{"UTF-8 with a byte order mark", "UTF8", "\ufeffcafé", "café"},
		{"UTF-8 in quotes", `"UTF-8"`, "café", "café"},
		{"UTF-8 with one broken byte", "utf-8", "café, thé, \xff na\u00efve", "café, thé, \ufffd naïve"},
		{"UTF-8 that is windows-1252", "utf-8", "caf\xe9 \x93quoted\x94", "café “quoted”"},
		{"UTF-8 cut inside a character", "utf-8", "café th\xc3", "café th"},
		{"no charset, UTF-8", "", "café", "café"},
		{"no charset, windows-1252", "", "caf\xe9", "café"},
		{"no charset, ISO-2022-JP", "", "\x1b$B$3$s\x1b(B!", "こん!"},
		{"ASCII that is UTF-8", "us-ascii", "café", "café"},
		{"ASCII that is windows-1252", "US-ASCII", "it\x92s", "it’s"},
		{"unknown charset, UTF-8", "x-klingon", "café", "café"},
		{"unknown charset, windows-1252", "x-klingon", "caf\xe9", "café"},
		{"a name too long to be one", strings.Repeat("a", 1000), "caf\xe9", "café"},
		{"Latin-1 means windows-1252", "iso-8859-1", "\x93caf\xe9\x94 \x80", "“café” €"},
		{"Latin-9", "ISO-8859-15", "\xa4", "€"},
		{"windows-1251", "windows-1251", "\xcf\xf0\xe8\xe2\xe5\xf2", "Привет"},
		{"KOI8-R", "koi8-r", "\xf0\xd2\xc9\xd7\xc5\xd4", "Привет"},
		{"GB2312 means GBK", "gb2312", "\xc4\xe3\xba\xc3\x96\xa7", "你好枾"},
		{"GB18030", "gb18030", "\xc4\xe3\xba\xc3", "你好"},
		{"Big5", "big5", "\xa7\x41\xa6\x6e", "你好"},
		{"EUC-KR", "EUC-KR", "\xbe\xc8\xb3\xe7", "안녕"},
		{"ks_c_5601-1987", "ks_c_5601-1987", "\xbe\xc8\xb3\xe7", "안녕"},
		{"Shift_JIS", "Shift_JIS", "\x82\xb1\x82\xf1", "こん"},
		{"ISO-2022-JP", "iso-2022-jp", "\x1b$B$3$s\x1b(B", "こん"},
		{"EUC-JP", "euc-jp", "\xa4\xb3\xa4\xf3", "こん"},
		{"Shift_JIS that is UTF-8", "shift_jis", "naïve 日本語", "naïve 日本語"},
		{"UTF-16 with a byte order mark", "utf-16", "\xfe\xff\x00h\x00i", "hi"},
		{"UTF-16LE", "utf-16le", "h\x00i\x00", "hi"},
		{"a charset browsers refuse to read", "iso-2022-kr", "plain enough", "plain enough"},
		{"a charset for other ends", "x-user-defined", "caf\xe9", "café"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := DecodeText([]byte(tc.in), tc.charset); got != tc.want {
				t.Errorf("DecodeText(%q, %q) = %q, want %q", tc.in, tc.charset, got, tc.want)
			}
		})
	}
}

func TestDecodeTextIsBounded(t *testing.T) {
	const size = 1 << 17
	for _, unit := range []string{"+", "+A", "+AAA-", "\x1b$B", "\xff", "\xc3", "\xe4\xbd", "a\xe9", "\x00"} {
		in := []byte(strings.Repeat(unit, size/len(unit)))
		for _, charset := range []string{"", "utf-8", "utf-16", "iso-2022-jp", "gb18030", "latin1", "big5"} {
			if out := DecodeText(in, charset); len(out) > 3*len(in) || !utf8.ValidString(out) {
				t.Errorf("%q as %q: %d bytes from %d, valid UTF-8 %t", unit, charset, len(out), len(in), utf8.ValidString(out))
			}
		}
	}
}

func FuzzDecodeText(f *testing.F) {
	f.Add([]byte("caf\xe9"), "")
	f.Add([]byte("\x1b$B$3$s\x1b(B"), "iso-2022-jp")
	f.Add([]byte("\xfe\xff\x00h"), "utf-16")
	f.Add([]byte("x"), "iso-2022-kr")
	f.Fuzz(func(t *testing.T, b []byte, charset string) {
		if out := DecodeText(b, charset); !utf8.ValidString(out) {
			t.Errorf("DecodeText(%q, %q) = %q, which is not valid UTF-8", b, charset, out)
		}
	})
}
