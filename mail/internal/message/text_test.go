package message

import (
	"encoding/base64"
	"strings"
	"testing"
)

// Text returns the first page of Read and whether there was more.
func Text(root *Part, body func(*Part) []byte, maxRunes int) (text string, truncated bool) {
	r := Read(root, body, maxRunes)
	text, next := r.Page(0, maxRunes)
	return text, r.Cut || next > 0
}

func TestText(t *testing.T) {
	const html = "Content-Type: text/html\n\n"
	alternative := func(plain, html string) string {
		return "Content-Type: multipart/alternative; boundary=b\n\n--b\n\n" + plain + "\n--b\nContent-Type: text/html\n\n" + html + "\n--b--\n"
	}
	for _, tc := range []struct {
		name, raw, want string
	}{
		{"plain", "\nhello  \r\n\r\n world\r\n\r\n", "hello\n\n world"},
		{"NUL, bidi and zero width", "\nhe\x00l\u202Elo\u200B\n", "hello"},
		{"Latin-1", "Content-Type: text/plain; charset=iso-8859-1\n\ncaf\xe9", "café"},
		{"charset in pieces", "Content-Type: text/plain; charset*0=iso-; charset*1=8859-2\n\n\xb1", "ą"},
		{"no charset", "\ncaf\xe9", "café"},
		{"wrong charset", "Content-Type: text/plain; charset=x-klingon\n\ncaf\xc3\xa9", "café"},
		{"quoted-printable", "Content-Transfer-Encoding: quoted-printable\n\ncaf=C3=A9 =\nau lait", "café au lait"},
		{"base64", "Content-Transfer-Encoding: base64\n\n" + base64.StdEncoding.EncodeToString([]byte("héllo")), "héllo"},
		{"flowed", "Content-Type: text/plain; format=flowed\n\none \ntwo\n> a \n> b\n", "one two\n> a b"},
		{"flowed with DelSp", "Content-Type: text/plain; format=Flowed; delsp=Yes\n\non \ne\n", "one"},
		{"fixed", "Content-Type: text/plain\n\none \ntwo\n", "one\ntwo"},
		{"many empty lines", "\none\n" + strings.Repeat("\n", 50) + "two", "one\n\n\ntwo"},
		{"HTML", html + "<p>one<p>two", "one\n\ntwo"},
		{"HTML in its own charset", html + "<meta http-equiv=Content-Type content='text/html; charset=iso-8859-2'>\xb1", "ą"},
		{"HTML in the charset of its part", "Content-Type: text/html; charset=iso-8859-1\n\n<meta charset=utf-8>\xe9", "é"},
		{"several texts", "Content-Type: multipart/mixed; boundary=b\n\n--b\n\none\n--b\nContent-Type: image/png\n\nx\n--b\nContent-Type: text/html\n\n<b>two</b>\n--b--\n", "one\n\ntwo"},
		{"empty texts", "Content-Type: multipart/mixed; boundary=b\n\n--b\n\n\n--b\n\ntwo\n--b--\n", "two"},
		{"plain and HTML", alternative("see you at nine", "<p>see you at nine, says the HTML"), "see you at nine"},
		{"empty plain", alternative(" \n", "<p>the letter"), "the letter"},
		{"plain of one non-breaking space", alternative("\xc2\xa0", "<p>the letter"), "the letter"},
		{"plain that points at the HTML", alternative("Your email client does not support HTML.", "<p>Dear Ann,<p>we have moved to Main Street 7."), "Dear Ann,\n\nwe have moved to Main Street 7."},
		{"plain that is a link", alternative("https://news.example/42", "<p>Dear Ann,<p>we have moved to Main Street 7."), "Dear Ann,\n\nwe have moved to Main Street 7."},
		{"plain that points at no more than it says", alternative("This is an HTML message.", "<p>Hi"), "This is an HTML message."},
		{"a long plain text that speaks of HTML", alternative("We discussed the HTML version. "+strings.Repeat("It is fine as it is. ", 30), "<p>x"), strings.TrimSpace("We discussed the HTML version. " + strings.Repeat("It is fine as it is. ", 30))},
		{"a short plain text", alternative("ok", "<p>ok, and much more of a signature"), "ok"},
		{"nothing to read", "Content-Type: application/pdf\n\nx", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := Parse([]byte(tc.raw))
			got, cut := Text(e.Root, e.Raw, 10_000)
			if got != tc.want || cut {
				t.Errorf("Text = %q, %v, want %q", got, cut, tc.want)
			}
		})
	}
}

func TestTextIsTruncated(t *testing.T) {
	mixed := "Content-Type: multipart/mixed; boundary=b\n\n--b\n\none\n--b\nContent-Type: text/html\n\n<p>two<p>three\n--b--\n"
	for _, tc := range []struct {
		name, raw string
		n         int
		want      string
		cut       bool
	}{
		{"exactly", "\nhello\n", 5, "hello", false},
		{"one less", "\nhello\n", 4, "hell", true},
		{"nothing", "\nhello\n", 0, "", true},
		{"negative", "\nhello\n", -1, "", true},
		{"nothing of nothing", "\n", 0, "", false},
		{"between parts", mixed, 3, "one", true},
		{"within the second", mixed, 8, "one\n\ntwo", true},
		{"all", mixed, 15, "one\n\ntwo\n\nthree", false},
		{"runes, not octets", "\nüüü\n", 3, "üüü", false},
		{"combining mark", "\nae\u0301x\n", 2, "a", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := Parse([]byte(tc.raw))
			if got, cut := Text(e.Root, e.Raw, tc.n); got != tc.want || cut != tc.cut {
				t.Errorf("Text = %q, %v, want %q, %v", got, cut, tc.want, tc.cut)
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

// The HTML is read only when the plain text is empty.
func TestTextReadsOnlyThePartsItNeeds(t *testing.T) {
	for plain, want := range map[string]string{"a letter": "1", "": "1 2"} {
		e := Parse([]byte("Content-Type: multipart/alternative; boundary=b\n\n--b\n\n" + plain + "\n--b\nContent-Type: text/html\n\nx\n--b--\n"))
		var asked []*Part
		Text(e.Root, func(p *Part) []byte { asked = append(asked, p); return e.Raw(p) }, 100)
		if ids(asked) != want {
			t.Errorf("%q: asked for %s, want %s", plain, ids(asked), want)
		}
	}
}

// many returns n, or a tenth of it with -short.
func many(n int) int {
	if testing.Short() {
		return n / 10
	}
	return n
}

func TestTextOfHugeParts(t *testing.T) {
	for name, raw := range map[string]string{
		"plain":            "\n" + strings.Repeat("hello world\n", many(500_000)),
		"empty lines":      "\n" + strings.Repeat("\n", 2_200_000),
		"quoted-printable": "Content-Transfer-Encoding: quoted-printable\n\n" + strings.Repeat("=C3=A4=\n", many(500_000)),
		"flowed":           "Content-Type: text/plain; format=flowed\n\n" + strings.Repeat("> ", 1_100_000),
		"HTML":             "Content-Type: text/html\n\n" + strings.Repeat("<p>hello", many(500_000)),
		"hidden HTML":      "Content-Type: text/html\n\n<div hidden>" + strings.Repeat("<p>hello", 300_000),
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
		if got, _, _ := SanitizeHTML([]byte(tc.in), tc.charset, 100); got != tc.want {
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
