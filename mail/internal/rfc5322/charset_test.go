package rfc5322

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/postern-mail/postern/internal/testmain"
)

func TestDecodeText(t *testing.T) {
	for _, tc := range testmain.Table[struct{ Name, Charset, In, Want string }](t, "testdata/cases/charset.txt") {
		t.Run(tc.Name, func(t *testing.T) {
			if got := DecodeText([]byte(tc.In), tc.Charset); got != tc.Want {
				t.Errorf("DecodeText(%q, %q) = %q, want %q", tc.In, tc.Charset, got, tc.Want)
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
