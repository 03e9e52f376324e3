package message

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"
)

func TestDecodeBody(t *testing.T) {
	for _, tc := range []struct {
		name, encoding, in, want string
	}{
		{"as is without an encoding", "", "a=3D\r\n", "a=3D\r\n"},
		{"as is with one nobody knows", "7vladi.Pimenovit", "a=3D", "a=3D"},
		{"8bit", "8BIT", "\xe9", "\xe9"},

		{"base64", "base64", "aGVsbG8gd29ybGQ=", "hello world"},
		{"base64 in folded lines", "BASE64 ", "aGVs\r\nbG8g\r\n d29ybGQ=\r\n", "hello world"},
		{"base64 without padding", "base64", "aGVsbG8gd29ybGQ", "hello world"},
		{"base64 cut inside a group", "base64", "aGVsbG8gd29yb", "hello wor"},
		{"base64 with junk inside", "base64", "aGV*sb\x00G8g-d29y_bGQ=", "hello world"},
		{"base64 with a second run", "base64", "aGVsbG8=\r\nd29ybGQ=\r\n", "helloworld"},
		{"base64 with a second run on the same line", "base64", "aGVsbG8=d29ybGQ=", "helloworld"},
		{"base64 with a list's footer under it", "base64", "aGVsbG8=\r\n\r\n--\r\nSent by the list server\r\n", "hello"},
		{"base64 with a footer that is all letters", "base64", "aGVsbG8=\r\nFooter\r\n", "hello"},
		{"nothing of base64", "base64", "", ""},
		{"only padding", "base64", "====", ""},

		{"quoted-printable", "quoted-printable", "caf=C3=A9 =3D 1\r\n", "café = 1\r\n"},
		{"lower-case digits", "Quoted-Printable;", "caf=c3=a9", "café"},
		{"with a space in its name", "quoted printable", "a=3Db", "a=b"},
		{"soft line break", "quoted-printable", "one=\r\ntwo=\nthree", "onetwothree"},
		{"soft line break with white space behind it", "quoted-printable", "one= \t\r\ntwo", "onetwo"},
		{"white space at a line's end is not text", "quoted-printable", "one \t\r\ntwo =20\r\n", "one\r\ntwo  \r\n"},
		{"white space at the end of a prefix may be", "quoted-printable", "one ", "one "},
		{"line ends stay as they are", "quoted-printable", "a\nb\r\nc", "a\nb\r\nc"},
		{"broken escapes stay", "quoted-printable", "100=ZZ, a=b, =G1, ==3D\r\n", "100=ZZ, a=b, =G1, ==\r\n"},
		{"a prefix cut inside an escape", "quoted-printable", "caf=C3=A", "caf\xc3"},
		{"a prefix cut before an escape's digits", "quoted-printable", "caf=", "caf"},
		{"a prefix cut inside a soft line break", "quoted-printable", "caf=\r", "caf"},
		{"raw eight-bit bytes stay", "quoted-printable", "caf\xe9=20!", "caf\xe9 !"},

		{"uuencode stays", "x-uuencode", "begin 644 a\n#0V%T\nend\n", "begin 644 a\n#0V%T\nend\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := string(DecodeBody([]byte(tc.in), tc.encoding)); got != tc.want {
				t.Errorf("DecodeBody(%q, %q) = %q, want %q", tc.in, tc.encoding, got, tc.want)
			}
		})
	}
}

// A part is fetched as a bounded prefix, so a decoded prefix must be a prefix of the
// decoded whole.
func TestDecodeBodyOfAPrefixIsAPrefix(t *testing.T) {
	plain := []byte("Grüße aus Köln, 100% = alles. \r\nZweite Zeile\r\n")
	for encoding, whole := range map[string][]byte{
		"base64":           []byte(base64.StdEncoding.EncodeToString(plain)),
		"quoted-printable": []byte("Gr=C3=BC=C3=9Fe aus K=C3=B6=\r\nln, 100% =3D alles.=20\r\nZweite Zeile\r\n"),
	} {
		all := DecodeBody(whole, encoding)
		if !bytes.Equal(all, plain) {
			t.Fatalf("%s decodes to %q", encoding, all)
		}
		for n := range whole {
			if part := DecodeBody(whole[:n], encoding); !bytes.HasPrefix(all, part) {
				t.Errorf("%s: %q decodes to %q", encoding, whole[:n], part)
			}
		}
	}
}

// The output is never longer than the input, for any input.
func TestDecodeBodyDoesNotGrow(t *testing.T) {
	const size = 1 << 17
	for name, unit := range map[string]string{
		"padding and CR": "AAA=\r", "padding": "=", "pairs": "A=", "escapes": "=3D", "soft breaks": "=\n", "blanks": " ", "equals and CR": "=\r",
		"letters": "M", "newlines": "\n",
	} {
		in := []byte(strings.Repeat(unit, size/len(unit)))
		for _, encoding := range []string{"base64", "quoted-printable", "8bit"} {
			if out := DecodeBody(in, encoding); len(out) > len(in) {
				t.Errorf("%s: %s grew from %d to %d bytes", name, encoding, len(in), len(out))
			}
		}
	}
}

func FuzzDecodeBody(f *testing.F) {
	f.Add([]byte("aGVsbG8=\r\nFooter"), "base64")
	f.Add([]byte("a=3D=\r\nb=Z"), "quoted-printable")
	f.Fuzz(func(t *testing.T, b []byte, encoding string) {
		before := bytes.Clone(b)
		if out := DecodeBody(b, encoding); len(out) > len(b) {
			t.Errorf("grew from %d to %d bytes", len(b), len(out))
		}
		if !bytes.Equal(b, before) {
			t.Error("the input was changed")
		}
	})
}
