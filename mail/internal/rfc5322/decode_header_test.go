package rfc5322

import (
	"strings"
	"testing"

	"github.com/postern-mail/postern/internal/testmain"
)

func TestDecodeHeaderReadsAsMailProgramsDo(t *testing.T) {
	for _, tc := range testmain.Table[struct{ In, Want string }](t, "testdata/cases/decode_header.txt") {
		if got := DecodeHeader(tc.In); got != tc.Want {
			t.Errorf("DecodeHeader(%q) = %q, want %q", tc.In, got, tc.Want)
		}
	}
}

// Every one of these is slow for a decoder that searches the rest of the value
// at each start of a word; the benchmark shows the time per byte.
func BenchmarkDecodeHeaderHostile(b *testing.B) {
	for name, unit := range map[string]string{
		"starts": "=?", "cut words": "=?utf-8?q?x", "bad words": "=?utf-8?x?y?=", "words": "=?utf-8?q?=C3=A9?= ",
		"charsets": "=?a?q?x?= =?b?q?x?= ", "questions": "?", "bad base64": "=?utf-8?b?!?=",
	} {
		s := strings.Repeat(unit, MaxFieldBytes/len(unit))
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(s)))
			for b.Loop() {
				DecodeHeader(s)
			}
		})
	}
}
