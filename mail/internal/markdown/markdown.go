// Package markdown makes the HTML part of a letter from its text, which is Markdown
// (CommonMark, with the tables and the struck-out words of GitHub).
//
// The sender of a letter gives text and never HTML: a tag in the text stays text. Nothing in
// the result is loaded from anywhere, and links lead to http, https and mailto alone. What a
// letter quotes and what stands below its signature is not read as Markdown, so that a
// stranger's words cannot become a link or a heading of the sender's.
//
// HTML is pure, gives the same bytes for the same text, and is safe for concurrent use.
package markdown

import (
	"bytes"
	"errors"
	"html"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	render "github.com/yuin/goldmark/renderer/html"
	reader "github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/postern-mail/postern/internal/plain"
)

// The bounds of what is Markdown in a text, since work and memory grow faster than texts that are made for it.
const (
	maxBytes = 100_000
	maxDepth = 64      // of blocks and inlines within each other
	maxLinks = 2000    // opening brackets
	maxCells = 200_000 // that tables may have, as many in each row as in the widest
)

// The reasons why a text becomes no HTML.
var (
	errLong  = errors.New("it is over 100,000 bytes long, too long for Markdown")
	errLinks = errors.New("it has over 2,000 opening brackets, too many for Markdown")
	errDeep  = errors.New("its Markdown has over 64 levels")
	errWide  = errors.New("its tables could have over 200,000 cells")
)

// signature is the line above a signature (RFC 3676 section 4.3). As Markdown it would make
// a heading of the line before it.
const signature = "-- "

const (
	before      = "<!DOCTYPE html>\n<html><body>\n"
	behind      = "</body></html>\n"
	quotedBegin = "<div class=\"quoted\">\n" // Markdown makes no div and no such class
	quotedEnd   = "</div>\n"
)

// HTML returns the HTML of a text in lines of LF. The last quoted lines of it are not
// Markdown. An error says in one clause why there is no HTML.
func HTML(text string, quoted int) (string, error) {
	lines := strings.SplitAfter(text, "\n")
	lines = lines[:len(lines)-1+min(len(lines[len(lines)-1]), 1)] // without the one behind the last LF
	own := lines[:max(0, len(lines)-quoted)]
	tail := lines[len(own):]
	var signed []string
	if i := slices.Index(own, signature+"\n"); i >= 0 {
		own, signed = own[:i], own[i:]
	}
	source, columns := []byte(strings.Join(own, "")), 0
	for _, l := range own {
		columns = max(columns, strings.Count(l, "|"))
	}
	switch {
	case len(source) > maxBytes:
		return "", errLong
	case bytes.Count(source, []byte("[")) > maxLinks:
		return "", errLinks
	case columns*len(own) > maxCells:
		return "", errWide
	}
	doc := dialect.Parser().Parse(reader.NewReader(source))
	if tooDeep(doc, maxDepth) {
		return "", errDeep
	}
	var b bytes.Buffer
	b.WriteString(before)
	if err := dialect.Renderer().Render(&b, source, doc); err != nil {
		return "", err
	}
	if len(signed) > 0 {
		b.WriteString("<p>" + asText(signed) + "</p>\n")
	}
	if len(tail) > 0 {
		b.WriteString(quotedBegin + asText(tail) + quotedEnd)
	}
	b.WriteString(behind)
	return plain.Text(b.String()), nil // a character reference may have hidden one that is not seen
}

// Made reports whether HTML made exactly this document of the text, and how many of its last
// lines were not Markdown.
func Made(text, document string) (quoted int, ok bool) {
	if _, tail, found := strings.Cut(document, "\n"+quotedBegin); found {
		quoted = strings.Count(tail, "\n") - strings.Count(quotedEnd+behind, "\n")
	}
	made, err := HTML(text, quoted)
	return quoted, err == nil && made == document
}

// asText writes lines that are not Markdown.
func asText(lines []string) string {
	var b strings.Builder
	for _, l := range lines {
		l = strings.ReplaceAll(plain.Text(strings.TrimSuffix(l, "\n")), "\n", " ")
		b.WriteString(strings.ReplaceAll(html.EscapeString(l), "  ", "&nbsp; ") + "<br>\n")
	}
	return b.String()
}

// dialect has no parser for HTML, so that tags are text like any other. Lines end where they
// end in the text: a greeting or a name on a line of its own stays there.
var dialect = goldmark.New(
	goldmark.WithParser(parser.NewParser(
		parser.WithBlockParsers(parser.DefaultBlockParsers()[:8]...),
		parser.WithBlockParsers(parser.DefaultBlockParsers()[9:]...),
		parser.WithInlineParsers(parser.DefaultInlineParsers()[:3]...),
		parser.WithInlineParsers(parser.DefaultInlineParsers()[4:]...),
		parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...))),
	goldmark.WithExtensions(extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignNone)), extension.Strikethrough),
	goldmark.WithRendererOptions(render.WithHardWraps(),
		renderer.WithNodeRenderers(util.Prioritized(links{}, 1))))

// tooDeep reports whether a tree has more than so many levels.
func tooDeep(n ast.Node, levels int) bool {
	if levels == 0 {
		return true
	}
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if tooDeep(c, levels-1) {
			return true
		}
	}
	return false
}

// links writes links and images. An image becomes a link to it; what would lead elsewhere
// than to http, https or mailto, or stands in a link, becomes its text. Titles, which are
// seen only by who points at them, are left out.
type links struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (links) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindLink, func(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		return writeLink(w, n, n.(*ast.Link).Destination, nil, entering)
	})
	r.Register(ast.KindImage, func(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		to := n.(*ast.Image).Destination
		if n.FirstChild() != nil {
			return writeLink(w, n, to, nil, entering)
		}
		return writeLink(w, n, to, to, entering)
	})
	r.Register(ast.KindAutoLink, func(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		l := n.(*ast.AutoLink)
		to := l.URL(source)
		if l.AutoLinkType == ast.AutoLinkEmail {
			to = append([]byte("mailto:"), to...)
		}
		return writeLink(w, n, to, l.Label(source), entering)
	})
}

// writeLink writes the tag on either side of a link's text, and before the first one's end
// the text that is no node of the tree.
func writeLink(w util.BufWriter, n ast.Node, to, label []byte, entering bool) (ast.WalkStatus, error) {
	leads := leadsOut(to)
	for up := n.Parent(); up != nil && leads; up = up.Parent() {
		leads = up.Kind() != ast.KindLink && up.Kind() != ast.KindImage
	}
	switch {
	case entering && leads:
		_, _ = w.WriteString(`<a href="` + string(util.EscapeHTML(util.URLEscape(to, true))) + `">`)
	case leads:
		_, _ = w.WriteString("</a>")
	}
	if entering {
		_, _ = w.Write(util.EscapeHTML(label))
	}
	return ast.WalkContinue, nil
}

// leadsOut reports whether a letter may lead to an address of the web or of mail. What could
// be written differently in Markdown follows the scheme.
func leadsOut(to []byte) bool {
	lower := bytes.ToLower(to[:min(len(to), len("https://"))])
	return bytes.HasPrefix(lower, []byte("http://")) || bytes.HasPrefix(lower, []byte("https://")) || bytes.HasPrefix(lower, []byte("mailto:"))
}
