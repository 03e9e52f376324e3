package message

import (
	"fmt"
	"strings"
	"testing"
)

// outline writes a tree as "type/subtype(children)" with section numbers.
func outline(p *Part) string {
	s := p.ID + ":" + p.MediaType()
	if len(p.Children) == 0 {
		return s
	}
	var children []string
	for _, c := range p.Children {
		children = append(children, outline(c))
	}
	return s + "(" + strings.Join(children, " ") + ")"
}

// bodies writes the raw bodies of the leaves.
func bodies(e *Entity) []string {
	var all []string
	walk(e.Root, 0, func(p *Part) {
		if len(p.Children) == 0 {
			all = append(all, string(e.Raw(p)))
		}
	})
	return all
}

func TestParseTree(t *testing.T) {
	const multi = "Content-Type: multipart/mixed; boundary=b\n\n"
	for _, tc := range []struct {
		name, raw, tree string
		bodies          []string
	}{
		{"empty message", "", "1:text/plain", []string{""}},
		{"header only", "Subject: x\n", "1:text/plain", []string{""}},
		{"body only", "no header here\nat all\n", "1:text/plain", []string{"no header here\nat all\n"}},
		{"body only with an empty line", "Dear Ann\n\nhello: there\n", "1:text/plain", []string{"Dear Ann\n\nhello: there\n"}},
		{"mbox line before the header", "From ann Mon Jan 1\nSubject: x\n\ny", "1:text/plain", []string{"y"}},
		{"empty lines before the header", "\r\n\r\nContent-Type: text/html\r\n\r\ny", "1:text/html", []string{"y"}},
		{"junk line in the header", "Subject: x\njunk\nContent-Type: text/html\n\ny", "1:text/html", []string{"y"}},
		{"single part", "Content-Type: TEXT/HTML; charset=utf-8\r\n\r\n<p>", "1:text/html", []string{"<p>"}},
		{"type without a subtype", "Content-Type: text\n\nx", "1:text/plain", []string{"x"}},
		{"type that is nonsense", "Content-Type: a b/c d\n\nx", "1:text/plain", []string{"x"}},
		{"two parts", multi + "pre\n--b\n\none\n--b\nContent-Type: text/html\n\ntwo\n--b--\npost\n", ":multipart/mixed(1:text/plain 2:text/html)", []string{"one", "two"}},
		{"CRLF", strings.ReplaceAll(multi+"--b\n\none\n\n--b\n\ntwo\n--b--\n", "\n", "\r\n"), ":multipart/mixed(1:text/plain 2:text/plain)", []string{"one\r\n", "two"}},
		{"nested", multi + "--b\nContent-Type: multipart/alternative; boundary=c\n\n--c\n\none\n--c\n\ntwo\n--c--\n--b\n\nthree\n--b--", ":multipart/mixed(1:multipart/alternative(1.1:text/plain 1.2:text/plain) 2:text/plain)", []string{"one", "two", "three"}},
		{"a boundary that begins like another", "Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: multipart/alternative; boundary=b_alt\n\n--b_alt\n\none\n--b_alt--\n--b\n\ntwo\n--b--", ":multipart/mixed(1:multipart/alternative(1.1:text/plain) 2:text/plain)", []string{"one", "two"}},
		{"a boundary that ends like a closing one", "Content-Type: multipart/mixed; boundary=\"b--\"\n\n--b--\n\none\n--b----\nx", ":multipart/mixed(1:text/plain)", []string{"one"}},
		{"white space behind the boundary", multi + "--b \t\n\none\n--b--  \n", ":multipart/mixed(1:text/plain)", []string{"one"}},
		{"a longer line is no boundary", multi + "--b\n\none\n--bb\n--b x\n--b--", ":multipart/mixed(1:text/plain)", []string{"one\n--bb\n--b x"}},
		{"no closing boundary", multi + "--b\n\none\n--b\n\ntwo\n", ":multipart/mixed(1:text/plain 2:text/plain)", []string{"one", "two\n"}},
		{"closed by the boundary around it", multi + "--b\nContent-Type: multipart/alternative; boundary=c\n\n--c\n\none\n--b\n\ntwo\n--b--", ":multipart/mixed(1:multipart/alternative(1.1:text/plain) 2:text/plain)", []string{"one", "two"}},
		{"an inner boundary after its end is text", multi + "--b\nContent-Type: multipart/alternative; boundary=c\n\n--c\n\none\n--b\n\ntwo\n--c\nx\n--b--", ":multipart/mixed(1:multipart/alternative(1.1:text/plain) 2:text/plain)", []string{"one", "two\n--c\nx"}},
		{"same boundary inside and outside", multi + "--b\nContent-Type: multipart/alternative; boundary=b\n\n--b\n\none\n--b--", ":multipart/mixed(1:text/plain 2:text/plain)", []string{"", "one"}},
		{"a part behind the closing boundary", multi + "--b\n\none\n--b--\n--b\n\ntwo\n", ":multipart/mixed(1:text/plain)", []string{"one"}},
		{"no boundary parameter", "Content-Type: multipart/mixed\n\nhello\n", "1:text/plain", []string{"hello\n"}},
		{"no boundary parameter, but boundaries", "Content-Type: multipart/mixed\n\n--b\nContent-Type: text/html\n\none\n--b--\n", "1:text/plain", []string{"--b\nContent-Type: text/html\n\none\n--b--\n"}},
		{"no boundary in the body", multi + "hello\n", "1:text/plain", []string{"hello\n"}},
		{"boundary with nothing behind it", multi + "--b", ":multipart/mixed(1:text/plain)", []string{""}},
		{"empty part", multi + "--b\n--b\n\n--b--", ":multipart/mixed(1:text/plain 2:text/plain)", []string{"", ""}},
		{"part without the empty line", multi + "--b\nhello\nworld\n--b--", ":multipart/mixed(1:text/plain)", []string{"hello\nworld"}},
		{"part without the empty line behind its header", multi + "--b\nContent-Type: text/html\n<p>x\n--b--", ":multipart/mixed(1:text/html)", []string{"<p>x"}},
		{"part whose empty line has a space", multi + "--b\nContent-Type: text/html\n \nx\n--b--", ":multipart/mixed(1:text/html)", []string{"x"}},
		{"folded type", "Content-Type:\r\n multipart/mixed;\r\n\tboundary=\"b\"\r\n\r\n--b\r\n\r\none\r\n--b--", ":multipart/mixed(1:text/plain)", []string{"one"}},
		{"boundary in pieces", "Content-Type: multipart/mixed; boundary*0=ab; boundary*1=cd\n\n--abcd\n\none\n--abcd--", ":multipart/mixed(1:text/plain)", []string{"one"}},
		{"comment in the type", "Content-Type: multipart/mixed (really); boundary=b\n\n--b\n\none\n--b--", ":multipart/mixed(1:text/plain)", []string{"one"}},
		{"semicolon forgotten", "Content-Type: multipart/mixed boundary=b\n\n--b\n\none\n--b--", ":multipart/mixed(1:text/plain)", []string{"one"}},
		{"second type is ignored", "Content-Type: multipart/mixed; boundary=b\nContent-Type: text/plain\n\n--b\n\none\n--b--", ":multipart/mixed(1:text/plain)", []string{"one"}},
		{"encoded multipart is read as it stands", "Content-Type: multipart/mixed; boundary=b\nContent-Transfer-Encoding: base64\n\n--b\n\none\n--b--", ":multipart/mixed(1:text/plain)", []string{"one"}},
		{"digest", "Content-Type: multipart/digest; boundary=b\n\n--b\n\nSubject: x\n\ny\n--b--", ":multipart/digest(1:message/rfc822)", []string{"Subject: x\n\ny"}},
		{"message in a message is a leaf", multi + "--b\nContent-Type: message/rfc822\n\nContent-Type: multipart/mixed; boundary=c\n\n--c\n\nx\n--c--\n--b--", ":multipart/mixed(1:message/rfc822)", []string{"Content-Type: multipart/mixed; boundary=c\n\n--c\n\nx\n--c--"}},
		{"NUL and high bytes", "Content-Type: text/\x00\xff\n\n\x00\xff", "1:text/plain", []string{"\x00\xff"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := Parse([]byte(tc.raw))
			if got := outline(e.Root); got != tc.tree {
				t.Errorf("tree %s, want %s", got, tc.tree)
			}
			if got := fmt.Sprintf("%q", bodies(e)); got != fmt.Sprintf("%q", tc.bodies) {
				t.Errorf("bodies %s, want %q", got, tc.bodies)
			}
			if e.Incomplete {
				t.Error("the tree says it is incomplete")
			}
			walk(e.Root, 0, func(p *Part) {
				if p.Size != int64(len(e.Raw(p))) {
					t.Errorf("part %q: size %d, body of %d octets", p.ID, p.Size, len(e.Raw(p)))
				}
			})
		})
	}
}

func TestParsePartFields(t *testing.T) {
	e := Parse([]byte("Content-Type: Image/PNG; Name=\"a b.png\"; X=1\n" +
		"Content-Transfer-Encoding: BASE64 (sic)\nContent-ID: <i@x>\nContent-Disposition: INLINE; filename=c.png\n\nx"))
	p := e.Root
	if p.MediaType() != "image/png" || p.Encoding != "base64" || p.ContentID != "i@x" || p.Disposition != "inline" || p.Filename != "c.png" || p.Param("x") != "1" {
		t.Errorf("%+v", *p)
	}
	if e.Header.Get("Content-ID") != "<i@x>" {
		t.Errorf("header %q", e.Header.Get("Content-ID"))
	}
}

// These hostile messages repeat one piece very often.
func TestParseIsBounded(t *testing.T) {
	var deep strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&deep, "Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n", i, i)
	}
	deep.WriteString("\nthe end")
	const multi = "Content-Type: multipart/mixed; boundary=b\n\n"
	for _, tc := range []struct {
		name, raw  string
		incomplete bool
	}{
		{"10,000 nested multiparts", deep.String(), true},
		{"100,000 parts", multi + strings.Repeat("--b\n\nx\n", 100_000), true},
		{"100,000 empty parts", multi + strings.Repeat("--b\n", 100_000), true},
		{"100,000 multiparts of one boundary", multi + strings.Repeat("--b\nContent-Type: multipart/mixed; boundary=b\n\n", 100_000), true},
		{"5 MB of lines like a boundary", multi + "--b\n\n" + strings.Repeat("--bb\n", many(1_000_000)), false},
		{"5 MB of hyphens", multi + "--b\n\n" + strings.Repeat("-", many(5_000_000)), false},
		{"closing boundaries", multi + strings.Repeat("--b--\n", many(1_000_000)), false},
		{"a header of 5 MB in a part", multi + "--b\n" + strings.Repeat("X: y\n", many(1_000_000)), false},
		{"a field of 5 MB", multi + "--b\nContent-Type: text/plain" + strings.Repeat("; a=b\n ", many(700_000)) + "\n\nx", false},
		{"parameters", "Content-Type: multipart/mixed; " + strings.Repeat("boundary*0=b;", 300_000) + "\n\n--b\n\nx", false},
		{"no end of a quoted parameter", "Content-Type: multipart/mixed; boundary=\"" + strings.Repeat("\\", 1_000_000) + "\n\n--b\n\nx", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := Parse([]byte(tc.raw))
			parts, deepest := 0, 0
			var count func(p *Part, depth int)
			count = func(p *Part, depth int) {
				parts++
				deepest = max(deepest, depth)
				for _, c := range p.Children {
					count(c, depth+1)
				}
			}
			count(e.Root, 0)
			if parts > MaxParts || deepest > MaxDepth {
				t.Errorf("%d parts, %d deep", parts, deepest)
			}
			if e.Incomplete != tc.incomplete {
				t.Errorf("Incomplete = %v", e.Incomplete)
			}
			Attachments(e.Root)
			Text(e.Root, e.Raw, 1000)
		})
	}
}

// The part at which the tree was cut is an attachment, so its content can be fetched.
func TestParseKeepsWhatIsTooDeepAsAnAttachment(t *testing.T) {
	var deep strings.Builder
	for i := range MaxDepth + 3 {
		fmt.Fprintf(&deep, "Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n", i, i)
	}
	deep.WriteString("\nthe end")
	e := Parse([]byte(deep.String()))
	a := Attachments(e.Root)
	if !e.Incomplete || len(a) != 1 || !strings.HasSuffix(string(e.Raw(a[0])), "the end") {
		t.Errorf("incomplete %v, attachments %v", e.Incomplete, a)
	}
}

func TestRawOfForeignParts(t *testing.T) {
	e := Parse([]byte("\nx"))
	for _, p := range []*Part{nil, {start: 1, end: 99}, {start: 2, end: 1}} {
		if got := e.Raw(p); got != nil {
			t.Errorf("Raw(%v) = %q", p, got)
		}
	}
}
