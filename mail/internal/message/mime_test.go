package message

import (
	"fmt"
	"strings"
	"testing"

	"github.com/postern-mail/postern/internal/testmain"
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
	for _, tc := range testmain.Table[struct {
		Name, Raw, Tree string
		Bodies          []string
	}](t, "testdata/cases/tree.txt") {
		t.Run(tc.Name, func(t *testing.T) {
			e := Parse([]byte(tc.Raw))
			if got := outline(e.Root); got != tc.Tree {
				t.Errorf("tree %s, want %s", got, tc.Tree)
			}
			if got := fmt.Sprintf("%q", bodies(e)); got != fmt.Sprintf("%q", tc.Bodies) {
				t.Errorf("bodies %s, want %q", got, tc.Bodies)
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
	type hostile struct {
		Name       string
		Incomplete bool
		Raw        string
	}
	all := testmain.Table[hostile](t, "testdata/cases/tree_hostile.txt")
	for _, tc := range append(all, hostile{"10,000 nested multiparts", true, deep.String()}) {
		t.Run(tc.Name, func(t *testing.T) {
			e := Parse([]byte(tc.Raw))
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
			if e.Incomplete != tc.Incomplete {
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
