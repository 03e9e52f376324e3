package message

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/postern-mail/postern/internal/testmain"
)

// Text returns the first page of Read and whether there was more.
func Text(root *Part, body func(*Part) []byte, maxRunes int) (text string, truncated bool) {
	r := Read(nil, root, body, maxRunes)
	text, next := r.Page(0, maxRunes)
	return text, r.Cut || next > 0
}

func TestText(t *testing.T) {
	for _, tc := range testmain.Table[struct{ Name, Raw, Want string }](t, "testdata/cases/text.txt") {
		t.Run(tc.Name, func(t *testing.T) {
			e := Parse([]byte(tc.Raw))
			got, cut := Text(e.Root, e.Raw, 10_000)
			if got != tc.Want || cut {
				t.Errorf("Text = %q, %v, want %q", got, cut, tc.Want)
			}
		})
	}
}

func TestTextIsTruncated(t *testing.T) {
	for _, tc := range testmain.Table[struct {
		Name, Raw string
		N         int
		Want      string
		Cut       bool
	}](t, "testdata/cases/text_cut.txt") {
		t.Run(tc.Name, func(t *testing.T) {
			e := Parse([]byte(tc.Raw))
			if got, cut := Text(e.Root, e.Raw, tc.N); got != tc.Want || cut != tc.Cut {
				t.Errorf("Text = %q, %v, want %q, %v", got, cut, tc.Want, tc.Cut)
			}
		})
	}
}

// A prefix of a part gives the beginning of its text, and reports that it is cut.
func TestTextOfPrefixes(t *testing.T) {
	body := strings.Repeat("Grüße aus 東京, liebe Ann. ", 50)
	encoded := base64.StdEncoding.EncodeToString([]byte(body))
	raw := "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: base64\n\n" + encoded
	e := Parse([]byte(raw))
	whole, _ := Text(e.Root, e.Raw, 100_000)
	for n := 12; n < len(encoded); n++ { // 12 are enough to recognize UTF-8
		got, cut := Text(e.Root, func(p *Part) []byte { return e.Raw(p)[:n] }, 100_000)
		if !cut || !strings.HasPrefix(whole, got) || len(got) < n*3/4-8 {
			t.Fatalf("prefix of %d octets: %d octets of text, cut %v", n, len(got), cut)
		}
	}
}

// The text of other parts is there when a body is missing.
func TestTextOfMissingBodies(t *testing.T) {
	e := Parse([]byte("Content-Type: multipart/mixed; boundary=b\n\n--b\n\none\n--b\n\ntwo\n--b--\n"))
	got, cut := Text(e.Root, func(p *Part) []byte {
		if p.ID == "1" {
			return nil
		}
		return e.Raw(p)
	}, 100)
	if got != "two" || !cut {
		t.Errorf("%q, %v", got, cut)
	}
}

// The HTML is read only when the plain text is short.
func TestTextReadsOnlyThePartsItNeeds(t *testing.T) {
	for plain, want := range map[string]string{strings.Repeat("a letter ", 50): "1", "a letter": "1 2", "": "1 2"} {
		e := Parse([]byte("Content-Type: multipart/alternative; boundary=b\n\n--b\n\n" + plain + "\n--b\nContent-Type: text/html\n\nx\n--b--\n"))
		var asked []*Part
		Text(e.Root, func(p *Part) []byte { asked = append(asked, p); return e.Raw(p) }, 100)
		if ids(asked) != want {
			t.Errorf("%q: asked for %s, want %s", plain, ids(asked), want)
		}
	}
}

func TestTextOfHugeParts(t *testing.T) {
	for name, raw := range map[string]string{
		"plain":            "\n" + strings.Repeat("hello world\n", 50_000),
		"empty lines":      "\n" + strings.Repeat("\n", maxHTML+1), // more than is read of a text
		"quoted-printable": "Content-Transfer-Encoding: quoted-printable\n\n" + strings.Repeat("=C3=A4=\n", 50_000),
		"flowed":           "Content-Type: text/plain; format=flowed\n\n" + strings.Repeat("> ", maxHTML/2+1),
		"HTML":             "Content-Type: text/html\n\n" + strings.Repeat("<p>hello", 10_000),
		"hidden HTML":      "Content-Type: text/html\n\n<div hidden>" + strings.Repeat("<p>hello", maxHTML/8), // more than is read of HTML
	} {
		e := Parse([]byte(raw))
		if got, cut := Text(e.Root, e.Raw, 100); !cut || len([]rune(got)) > 100 {
			t.Errorf("%s: cut %v, %q", name, cut, got)
		}
	}
}

func TestSanitizeHTMLCharsets(t *testing.T) {
	for _, tc := range []struct{ charset, in, want string }{
		{"iso-8859-2", "<p>\xb1</p>", "<p>ą</p>"},
		{"", "<meta charset=iso-8859-2><p>\xb1</p>", "<p>ą</p>"},
		{"utf-8", "<p>ą</p>", "<p>ą</p>"},
		{"", "<p>\xe9</p>", "<p>é</p>"},
	} {
		if got, _, _ := SanitizeHTML(nil, []byte(tc.in), tc.charset, 100); got != tc.want {
			t.Errorf("%q in %q: %q, want %q", tc.in, tc.charset, got, tc.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("Content-Type: multipart/mixed; boundary=b\n\n--b\n\none\n--b\nContent-Type: text/html\n\n<p>two\n--b--\n"), 10)
	f.Fuzz(func(t *testing.T, raw []byte, n int) {
		n = min(max(n, 0), 10_000)
		e := Parse(raw)
		seen := map[string]bool{}
		walk(e.Root, 0, func(p *Part) {
			if seen[p.ID] {
				t.Errorf("two parts are %q", p.ID)
			}
			seen[p.ID] = true
			if int64(len(e.Raw(p))) != p.Size || strings.ContainsAny(p.Filename, "/\\:\x00") {
				t.Errorf("part %+v", *p)
			}
		})
		// No part is both text and attachment.
		shown := map[*Part]int{}
		for _, p := range selectText(e.Root) {
			shown[p]++
		}
		for _, p := range Attachments(e.Root) {
			shown[p]++
		}
		for p, times := range shown {
			if times > 1 {
				t.Errorf("part %s is shown %d times", p.ID, times)
			}
		}
		checkText(t, raw, n)
		if id := Returned(e.Header, e.Root, e.Raw); strings.ContainsAny(id, "<>\r\n ") {
			t.Errorf("what came back is %q", id)
		}
	})
}
