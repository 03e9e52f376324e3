package rfc5322

import (
	"strings"
	"testing"
)

func TestDecodeHeaderReadsAsMailProgramsDo(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                                    "plain",
		"=?utf-8?q?Gr=C3=BC=C3=9Fe?=":              "Grüße",
		"=?UTF-8?B?R3LDvMOfZQ==?=":                 "Grüße",
		"=?UTF-8?B?R3LDvMOfZQ?=":                   "Grüße",
		"=?iso-8859-1?q?caf=E9_=80?=":              "café €",
		"=?iso-8859-15?Q?=A4?=":                    "€",
		"=?koi8-r?B?8NLJ18XU?=":                    "Привет",
		"=?gb2312?B?xOO6ww==?=":                    "你好",
		"=?iso-2022-jp?B?GyRCRnxLXBsoQg==?=":       "日本",
		"=?shift_jis?B?k/qWew==?=":                 "日本",
		"=?utf-8*en?q?a_b?=":                       "a b",
		"=?utf-8?q?a?= =?utf-8?q?b?=":              "ab",
		"=?utf-8?q?a?= \t =?utf-8?q?b?=":           "ab",
		"=?utf-8?q?a?= x =?utf-8?q?b?=":            "a x b",
		"x=?utf-8?q?a?=y":                          "xay",
		"=?utf-8?q?=C3?= =?utf-8?q?=A9t=C3=A9?=":   "été",
		"=?utf-8?b?w6k=?= =?iso-8859-1?q?=E9?=":    "éé",
		"=?utf-8?q?a b?=":                          "a b",
		"=?utf-8?q??= x":                           "x",
		"=?utf-8?q?=3D=3Futf-8=3Fq=3Fx=3F=3D?=":    "=?utf-8?q?x?=",
		"=?utf-8?q?a=0D=0Ab=00=E2=80=AE?=":         "a b",
		"=?x-nonsense?q?caf=C3=A9?=":               "café",
		"=?x-nonsense?q?caf=E9?=":                  "café",
		"=?us-ascii?q?caf=C3=A9?=":                 "café",
		"caf\xe9":                                  "café",
		"caf\xc3\xa9":                              "café",
		"=?utf-8?q?=C3=A9?= caf\xe9":               "é café",
		"\x1b$BF|K\\\x1b(B":                        "日本",
		"=?utf-8?x?abc?=":                          "=?utf-8?x?abc?=",
		"=?utf-8?q?abc":                            "=?utf-8?q?abc",
		"=?utf-8?b?!!!?=":                          "=?utf-8?b?!!!?=",
		"=?utf-8?q?a=?utf-8?q?b?=":                 "=?utf-8?q?ab",
		"=?":                                       "=?",
		"=???=":                                    "=???=",
		"=?utf-8?q?50=25 off=ZZ=?=":                "50% off=ZZ=",
		"=?" + strings.Repeat("x", 100) + "?q?a?=": "=?" + strings.Repeat("x", 100) + "?q?a?=",
		"a\r\n b":                                  "a b",
	} {
		if got := DecodeHeader(in); got != want {
			t.Errorf("DecodeHeader(%q) = %q, want %q", in, got, want)
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
