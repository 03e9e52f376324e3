package message

import (
	"strings"
	"testing"

	"github.com/postern-mail/postern/internal/testmain"
)

// tree builds parts from an indented outline, two spaces a level, of lines like
// "text/plain inline a.txt c1": type, disposition, name and Content-ID. All but the type
// may be missing; "-" is an empty disposition or name.
func tree(outline string) *Part {
	var stack []*Part
	for line := range strings.Lines(strings.Trim(outline, "\n")) {
		text := strings.TrimLeft(line, " \t")
		depth := (len(line) - len(text)) / 2
		f := strings.Fields(text)
		typ, subtype, _ := strings.Cut(f[0], "/")
		p := Part{Type: typ, Subtype: subtype, Size: 1}
		params := map[string]string{}
		if len(f) > 1 && f[1] != "-" {
			p.Disposition = f[1]
		}
		if len(f) > 2 && f[2] != "-" {
			params["filename"] = f[2]
		}
		if len(f) > 3 {
			p.ContentID = f[3]
		}
		if strings.HasPrefix(f[0], "multipart/related") && len(f) > 2 {
			p.Params = map[string]string{"start": "<" + f[2] + ">"}
			params = nil
		}
		part := NewPart(p, params)
		stack = append(stack[:depth], part)
		if depth > 0 {
			stack[depth-1].Children = append(stack[depth-1].Children, part)
		}
	}
	number(stack[0], "")
	walk(stack[0], 0, func(p *Part) { p.Size = 1 })
	return stack[0]
}

func ids(parts []*Part) string {
	var s []string
	for _, p := range parts {
		s = append(s, p.ID)
	}
	return strings.Join(s, " ")
}

// alternatives returns the HTML alternatives of the text parts.
func alternatives(root *Part) (html []*Part) {
	for _, c := range choose(root).text {
		html = append(html, c.html...)
	}
	return html
}

func TestSelection(t *testing.T) {
	for _, tc := range readTable[struct {
		Name, Outline           string
		Text, HTML, Attachments string
	}](t, "select") {
		t.Run(tc.Name, func(t *testing.T) {
			root := tree(tc.Outline)
			if got := ids(selectText(root)); got != tc.Text {
				t.Errorf("text %q, want %q", got, tc.Text)
			}
			if got := ids(alternatives(root)); got != tc.HTML {
				t.Errorf("HTML %q, want %q", got, tc.HTML)
			}
			if got := ids(Attachments(root)); got != tc.Attachments {
				t.Errorf("attachments %q, want %q", got, tc.Attachments)
			}
		})
	}
}

func TestSelectionOfNothing(t *testing.T) {
	if selectText(nil) != nil || Attachments(nil) != nil {
		t.Error("parts of nothing")
	}
	if s, cut := Text(nil, func(*Part) []byte { return nil }, 10); s != "" || cut {
		t.Errorf("%q, %v", s, cut)
	}
	if a := Attachments(Parse([]byte("Content-Type: application/x-nothing\n\n")).Root); len(a) != 0 {
		t.Errorf("an empty body is an attachment: %v", a)
	}
}

func TestIncidental(t *testing.T) {
	for _, tc := range testmain.Table[struct {
		Line string
		Want bool
	}](t, "testdata/cases/incidental.txt") {
		if got := tree(tc.Line).Incidental(); got != tc.Want {
			t.Errorf("%s: %v", tc.Line, got)
		}
	}
}

// A tree from a server may be of any depth.
func TestSelectionOfDeepTrees(t *testing.T) {
	p := NewPart(Part{Type: "text", Subtype: "plain", Size: 1}, nil)
	for range 10_000 {
		p = NewPart(Part{Type: "multipart", Subtype: "alternative", Children: []*Part{p}}, nil)
	}
	if len(selectText(p)) != 0 || len(Attachments(p)) != 0 {
		t.Error("parts were found below the bound")
	}
}

func TestHTMLParts(t *testing.T) {
	for _, tc := range testmain.Table[struct{ Outline, Want string }](t, "testdata/cases/select_html.txt") {
		if got := ids(HTMLParts(tree(tc.Outline))); got != tc.Want {
			t.Errorf("%s: %q, want %q", tc.Outline, got, tc.Want)
		}
	}
	if HTMLParts(nil) != nil {
		t.Error("parts of nothing")
	}
}

// selectText returns the parts with the text that a person would read, in order: of
// alternatives text/plain, or HTML without a text/plain.
func selectText(root *Part) []*Part {
	var parts []*Part
	for _, c := range choose(root).text {
		parts = append(parts, c.parts...)
	}
	return parts
}
