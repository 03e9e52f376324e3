package visible

import (
	"io"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/postern-mail/postern/mail/internal/quoted"
)

// MaxBytes is the number of bytes of a document that are read.
const MaxBytes = 2 << 20

// Bounds of the parser's input. It opens unclosed formatting again in every block
// and merges the attributes of repeated body tags, so that a short document can
// ask for gigabytes.
const (
	maxTreeNodes  = 600_000
	maxTreeRoots  = 8   // html and body tags
	maxAttributes = 100 // of one tag
)

// stepsFor bounds the work of matching and cascading for a document of some
// length: far more than any mail needs that a person wrote.
func stepsFor(length int) int { return 500_000 + 32*min(length, MaxBytes) }

var sheetPattern = regexp.MustCompile(`(?i)<style|stylesheet`)

// openHTML makes a tree of a document and reads its style sheets. cut
// reports that the end of the document is not in the tree, because the document or the
// tree would be too large or too deep. When that end holds style sheets, nothing can be
// judged.
func openHTML(s string) (p *page, root *html.Node, cut bool) {
	if cut = len(s) > MaxBytes; cut {
		s = strings.ToValidUTF8(s[:MaxBytes], "")
	}
	ends := affordable(s)
	end := ends[len(ends)-1]
	for slack := chunkSize; slack < 4*MaxBytes; slack *= 4 {
		chunks := &chunkReader{s: s[:end]}
		var err error
		// It fails when more than 512 elements are open.
		if root, err = html.ParseWithOptions(chunks, html.ParseOptionEnableScripting(false)); err == nil {
			break
		}
		root = nil
		i, _ := slices.BinarySearch(ends, chunks.read-slack)
		end = ends[max(i-1, 0)]
	}
	if root == nil {
		root, end = &html.Node{Type: html.DocumentNode}, 0
	}
	p = &page{matcher: matcher{steps: stepsFor(len(s))}, best: make([]candidate, len(rules)), root: rootStyle()}
	p.sheet = sheet{rules: map[string][]styleRule{}, inline: map[string][]declaration{}, tooLarge: sheetPattern.MatchString(s[end:])}
	for n := range root.Descendants() {
		p.sheet.read(n)
	}
	return p, root, cut || end < len(s)
}

// read reads the style sheet of a style or link element.
func (sh *sheet) read(n *html.Node) {
	switch {
	case n.Type != html.ElementNode:
	case n.Data == "style" && (n.Namespace == "" || n.Namespace == "svg") && !inTemplate(n):
		var css strings.Builder
		for c := range n.ChildNodes() {
			if c.Type == html.TextNode {
				css.WriteString(c.Data)
			}
		}
		sh.addBlock(css.String(), n.Attr)
	case n.Data == "link" && strings.Contains(strings.ToLower(attr(n.Attr, "rel")), "stylesheet") && holdsSheet(attr(n.Attr, "href")):
		sh.tooLarge = true
	}
}

func inTemplate(n *html.Node) bool {
	for n = parent(n); n != nil && n.Data != "template"; n = parent(n) {
	}
	return n != nil
}

// chunkSize is the number of bytes that the parser gets at a time, which tells roughly where it
// fails. Behind a long token it gets more: with each chunk it copies what it has of a token.
const chunkSize = 256

type chunkReader struct {
	s    string
	read int
}

func (c *chunkReader) Read(b []byte) (int, error) {
	if c.read == len(c.s) {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), max(chunkSize, len(b)/16))], c.s[c.read:])
	c.read += n
	return n, nil
}

// affordable returns where the tokens of a document begin, up to where a tree of it
// would become too large, and its end if it does not. The parser opens formatting again
// that was not closed by its own end tag, in the element where it began; of equal tags
// it keeps three open at most, and it opens what it keeps once for each token at worst.
func affordable(s string) []int {
	z := html.NewTokenizer(strings.NewReader(s))
	var open []string // the names of elements
	var pos, nodes, roots, formatting int
	formats := map[string]bool{} // different tags of formatting
	drawing := false
	starts := []int{0}
	for z.Next() != html.ErrorToken {
		starts = append(starts, pos)
		length := len(z.Raw())
		raw := string(z.Raw()[:min(length, 100)])
		t := z.Token()
		nodes++
		switch t.Type {
		case html.StartTagToken, html.SelfClosingTagToken:
			switch t.DataAtom {
			case atom.Html, atom.Body:
				roots++
			case atom.Noscript:
				z.NextIsNotRawText()
			case atom.Svg, atom.Math:
				drawing = true
			case atom.Style, atom.Script, atom.Title, atom.Textarea, atom.Iframe, atom.Noembed, atom.Noframes, atom.Xmp, atom.Plaintext:
				if drawing { // where the parser may read tags that are text here
					z.NextIsNotRawText()
					formatting++
				}
			}
			// In a frameset the parser reads other tags than are seen here.
			if roots > maxTreeRoots || len(t.Attr) > maxAttributes || t.DataAtom == atom.Frameset {
				return starts
			}
			if !isVoid(t.Data) {
				open = append(open, t.Data)
			}
			if isFormatting[t.DataAtom] { // it opens nothing again
				formatting++
				formats[raw] = true
				nodes -= min(formatting, 3*len(formats))
			}
		case html.EndTagToken:
			if last := len(open) - 1; last >= 0 && open[last] == t.Data {
				open = open[:last]
				if isFormatting[t.DataAtom] {
					formatting--
				}
			} else if slices.Contains(open[max(0, len(open)-maxAttributes):], t.Data) {
				open = open[:0] // each of them may stay open
			}
		}
		if nodes += min(formatting, 3*len(formats)); nodes > min(20_000+4*len(s), maxTreeNodes) {
			return starts
		}
		pos += length
	}
	return append(starts, len(s))
}

var isFormatting = map[atom.Atom]bool{atom.B: true, atom.Big: true, atom.Code: true, atom.Em: true, atom.Font: true, atom.I: true, atom.Nobr: true,
	atom.S: true, atom.Small: true, atom.Strike: true, atom.Strong: true, atom.Tt: true, atom.U: true}

func isVoid(tag string) bool {
	switch tag {
	case "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr":
		return true
	}
	return false
}

var attr = quoted.Attr

func hasAttr(attrs []html.Attribute, name string) bool {
	return slices.ContainsFunc(attrs, func(a html.Attribute) bool { return a.Key == name && a.Namespace == "" })
}
