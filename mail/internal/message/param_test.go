package message

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestFilename(t *testing.T) {
	for _, tc := range []struct {
		name, disposition, typ, want string
	}{
		{"none", "attachment", "text/plain", ""},
		{"plain", "attachment; filename=a.txt", "text/plain; name=b.txt", "a.txt"},
		{"of the type", "attachment", "text/plain; name=b.txt", "b.txt"},
		{"empty one gives way", `attachment; filename=""`, "text/plain; name=b.txt", "b.txt"},
		{"swapped", "attachment; name=a.txt", "text/plain", "a.txt"},
		{"quoted", `attachment; filename="a; b.txt"`, "", "a; b.txt"},
		{"quoted quotes", `attachment; filename="a \"b\".txt"`, "", `a "b".txt`},
		{"unterminated quote", `attachment; filename="a.txt`, "", "a.txt"},
		{"unquoted with spaces", "attachment; filename=this is it.txt; size=3", "", "this is it.txt"},
		{"unquoted and in brackets", "attachment; filename=a (1).txt", "", "a (1).txt"},
		{"no semicolon between", `attachment; size="3" filename="a.txt"`, "", "a.txt"},
		{"upper case", "ATTACHMENT; FileName=a.txt", "", "a.txt"},
		{"RFC 2231", "attachment; filename*=UTF-8''na%C3%AFve%20%E2%82%AC.txt", "", "naïve €.txt"},
		{"RFC 2231 with a language", "attachment; filename*=iso-8859-1'de'M%FCller.txt", "", "Müller.txt"},
		{"RFC 2231 before the plain one", "attachment; filename=x.txt; filename*=UTF-8''%C3%A4.txt", "", "ä.txt"},
		{"RFC 2231 quoted", `attachment; filename*="UTF-8''%C3%A4.txt"`, "", "ä.txt"},
		{"RFC 2231 without its quotes", "attachment; filename*=%C3%A4.txt", "", "ä.txt"},
		{"RFC 2231 with broken escapes", "attachment; filename*=UTF-8''100%25%zz%2.txt", "", "100%%zz%2.txt"},
		{"RFC 2231 in an unknown charset", "attachment; filename*=x-klingon''%C3%A4.txt", "", "ä.txt"},
		{"continuations", "attachment; filename*0=one; filename*1=two; filename*2=.txt", "", "onetwo.txt"},
		{"continuations out of order", `attachment; filename*1="two.txt"; filename*0="one"`, "", "onetwo.txt"},
		{"continuations with a hole", "attachment; filename*0=a.txt; filename*2=c", "", "a.txt"},
		{"encoded continuations", "attachment; filename*0*=UTF-8''%C3%A4; filename*1*=%20%C3%B6; filename*2=%20.txt", "", "ä ö%20.txt"},
		{"a character in two continuations", "attachment; filename*0*=UTF-8''%E2%82; filename*1*=%AC.txt", "", "€.txt"},
		{"continuations in Japanese", "attachment; filename*0*=iso-2022-jp''%1B$B%24F%249; filename*1*=%24H%1B(B.txt", "", "てすと.txt"},
		{"encoded word", "attachment; filename=\"=?utf-8?B?w6Qgw7YudHh0?=\"", "", "ä ö.txt"},
		{"encoded word without quotes", "attachment; filename==?utf-8?Q?=C3=A4.txt?=", "", "ä.txt"},
		{"two encoded words", `attachment; filename="=?utf-8?Q?=C3=A4?= =?utf-8?Q?=C3=B6.txt?="`, "", "äö.txt"},
		{"encoded word in continuations", `attachment; filename*0="=?utf-8?Q?=C3=A4"; filename*1=".txt?="`, "", "ä.txt"},
		{"raw UTF-8", "attachment; filename=\"\xc3\xa4.txt\"", "", "ä.txt"},
		{"raw Latin-1", "attachment; filename=\"\xe4 Angebot.txt\"", "", "ä Angebot.txt"},
		{"raw ISO-2022-JP", "attachment; filename=\"\x1b$B$F$9$H\x1b(B.txt\"", "", "てすと.txt"},

		{"path", "attachment; filename=../../etc/passwd", "", "___.._etc_passwd"},
		{"absolute path", "attachment; filename=/etc/passwd", "", "_etc_passwd"},
		{"Windows path", `attachment; filename="C:\dir\a.txt"`, "", "C__dir_a.txt"},
		{"path in an encoded word", "attachment; filename=\"=?utf-8?Q?..=2F..=5Ca?=\"", "", "___.._a"},
		{"path in RFC 2231", "attachment; filename*=UTF-8''..%2Fa", "", "___a"},
		{"hidden file", "attachment; filename=.bashrc", "", "_bashrc"},
		{"only dots", "attachment; filename=..", "", "__"},
		{"stream", "attachment; filename=a.txt:b", "", "a.txt_b"},
		{"dots and spaces at the end", `attachment; filename="a.exe . ."`, "", "a.exe"},
		{"device", "attachment; filename=con.txt", "", "_con.txt"},
		{"right-to-left override", "attachment; filename*=UTF-8''gpj%E2%80%AEexe.txt", "", "gpjexe.txt"},
		{"controls", "attachment; filename*=UTF-8''a%00%0D%0A%1Bb.txt", "", "a b.txt"},
		{"space alone", `attachment; filename=" "`, "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, d := splitParams(tc.disposition)
			_, p := splitParams(tc.typ)
			if got := Filename(d, p); got != tc.want {
				t.Errorf("Filename(%q, %q) = %q, want %q", tc.disposition, tc.typ, got, tc.want)
			}
		})
	}
}

func TestFilenameFitsAFileSystem(t *testing.T) {
	for _, name := range []string{strings.Repeat("ä", 400) + ".pdf", strings.Repeat("x", 400), strings.Repeat("x", 253) + "€.txt", "a." + strings.Repeat("y", 400), strings.Repeat("\xff", 400)} {
		got := Filename(map[string]string{"filename": name}, nil)
		if got == "" || len(got) > 255 || !utf8.ValidString(got) {
			t.Errorf("%d bytes become %d: %q", len(name), len(got), got)
		}
		if strings.HasSuffix(name, ".pdf") && !strings.HasSuffix(got, ".pdf") {
			t.Errorf("%q lost its extension", got)
		}
	}
}

func TestFilenameOfManyContinuations(t *testing.T) {
	params := map[string]string{}
	for i := range 100_000 {
		params[fmt.Sprintf("filename*%d", i)] = "abc"
	}
	if got := Filename(params, nil); len(got) > 255 || !strings.HasPrefix(got, "abcabc") {
		t.Errorf("%q", got)
	}
}

// A part built from a server's description is the same as one built by Parse.
func TestNewPartNormalizes(t *testing.T) {
	p := NewPart(Part{ID: "2", Type: "IMAGE", Subtype: "PNG", Params: map[string]string{"NAME": "x.png"}, Disposition: "Inline",
		Encoding: "BASE64", ContentID: "<i@x>", Size: 3}, map[string]string{"FILENAME*": "UTF-8''%C3%A4.png"})
	if p.MediaType() != "image/png" || p.Disposition != "inline" || p.Encoding != "base64" || p.ContentID != "i@x" || p.Filename != "ä.png" || p.Params["name"] != "x.png" {
		t.Errorf("%+v", *p)
	}
	if p := NewPart(Part{Type: "text"}, nil); p.Params == nil || p.Filename != "" {
		t.Errorf("%+v", *p)
	}
}

func TestSplitParams(t *testing.T) {
	for _, tc := range []struct{ in, value, params string }{
		{"", "", "map[]"},
		{"Text/Plain", "text/plain", "map[]"},
		{"text/plain; charset=us-ascii (plain); format=flowed", "text/plain", "map[charset:us-ascii format:flowed]"},
		{"text/plain; charset=us-ascii format=flowed", "text/plain", "map[charset:us-ascii format:flowed]"},
		{"text/plain;; ;charset = \"utf-8\" ;", "text/plain", "map[charset:utf-8]"},
		{"text/plain; broken; charset=a; charset=b", "text/plain", "map[charset:a]"},
		{"text/plain charset=utf-8", "text/plain", "map[charset:utf-8]"},
		{"=", "=", "map[]"},
		{"; =x; a=", "", "map[a:]"},
	} {
		value, params := splitParams(tc.in)
		if value != tc.value || fmt.Sprint(params) != tc.params {
			t.Errorf("splitParams(%q) = %q, %v, want %q, %s", tc.in, value, params, tc.value, tc.params)
		}
	}
}
