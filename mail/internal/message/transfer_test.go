package message

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/postern-mail/postern/internal/testmain"
)

func TestDecodeBody(t *testing.T) {
	for _, tc := range testmain.Table[struct{ Name, Encoding, In, Want string }](t, "testdata/cases/transfer.txt") {
		t.Run(tc.Name, func(t *testing.T) {
			if got := string(DecodeBody([]byte(tc.In), tc.Encoding)); got != tc.Want {
				t.Errorf("DecodeBody(%q, %q) = %q, want %q", tc.In, tc.Encoding, got, tc.Want)
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
	for _, tc := range testmain.Table[struct{ Name, Unit string }](t, "testdata/cases/transfer_size.txt") {
		in := []byte(strings.Repeat(tc.Unit, size/len(tc.Unit)))
		for _, encoding := range []string{"base64", "quoted-printable", "8bit"} {
			if out := DecodeBody(in, encoding); len(out) > len(in) {
				t.Errorf("%s: %s grew from %d to %d bytes", tc.Name, encoding, len(in), len(out))
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
