package quoted

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"

	"github.com/postern-mail/postern/internal/plain"
)

// The renderer writes a quotation mark as a noncharacter at the beginning of the
// line, to tell it from a ">" in the text. A document cannot produce either of
// them: the renderer drops them from its text.
const (
	QuoteMark  = '\uFDD0' // one per depth
	HeaderMark = '\uFDD1' // alone on its line: the header of an older message is below
)

// Kind is the role of an element in quoting.
type Kind int

const (
	NotQuote      Kind = iota
	Quotation          // it holds history
	Introduction       // it is history unless it says that a message is forwarded
	BareQuotation      // it is history when it begins with an attribution and quotes nothing itself
	Indentation        // a blockquote that only moves text to the right
	HeaderBelow        // the header of an older message begins in it, and nothing new follows
)

// markers are the ids, with a hash before them, and classes by which mail programs
// mark quotations. Outlook puts "x_" before those of other programs.
var markers = map[string]Kind{
	"#divRplyFwdMsg": HeaderBelow, "#mail-editor-reference-message-container": HeaderBelow, "#zwchr": HeaderBelow, "#OLK_SRC_BODY_SECTION": HeaderBelow,
	"gmail_attr": Introduction, "moz-cite-prefix": Introduction, "yahoo_quoted": Introduction, "gmail_extra_attr": Introduction, "zmail_extra": Introduction,
	"gmail_quote": BareQuotation, "protonmail_quote": BareQuotation,
	"ms-outlook-mobile-reference-message": HeaderBelow, "OutlookMessageHeader": HeaderBelow,
}

// KindOf recognizes the elements that mail programs use for quotations.
func KindOf(tag string, attrs []html.Attribute) Kind {
	switch tag {
	case "blockquote":
		if isIndentation(attrs) {
			return Indentation
		}
		return Quotation
	case "div", "hr", "span", "table", "p", "section":
	default:
		return NotQuote
	}
	if kind := markers["#"+strings.TrimPrefix(Attr(attrs, "id"), "x_")]; kind != NotQuote {
		return kind
	}
	for class := range strings.FieldsSeq(Attr(attrs, "class")) {
		if kind := markers[strings.TrimPrefix(class, "x_")]; kind != NotQuote {
			return kind
		}
	}
	// The line that Outlook draws above the header of the answered message.
	if style := compact(Attr(attrs, "style")); tag == "div" && strings.Contains(style, "border-top:solid#") && strings.Contains(style, "1.0pt") && strings.Contains(style, "padding:3.0pt") {
		return HeaderBelow
	}
	return NotQuote
}

// compact returns a style in lower case without spaces.
func compact(style string) string { return strings.ToLower(strings.ReplaceAll(style, " ", "")) }

// isIndentation reports whether a blockquote has no line at its side, as the
// indent buttons of mail programs make them.
func isIndentation(attrs []html.Attribute) bool {
	if strings.EqualFold(Attr(attrs, "type"), "cite") || Attr(attrs, "cite") != "" {
		return false
	}
	class := Attr(attrs, "class")
	if strings.Contains(class, "webkit-indent-blockquote") {
		return true
	}
	style := compact(Attr(attrs, "style"))
	return class == "" && (strings.Contains(style, "border:none") || strings.Contains(style, "border:0;")) && !strings.Contains(style, "border-left:")
}

// Forwards reports whether a rendered text begins with the introduction of a
// forwarded message.
func Forwards(text string) bool {
	const window = 5 // non-empty lines
	n := 0
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(plain.Text(line)); line != "" {
			n++
		}
		if n > window || isForwardLine(line) {
			return n <= window
		}
	}
	return false
}

// BareHistory reports whether a rendered text begins with an attribution and
// has no quotation marks.
func BareHistory(text string) bool {
	if strings.ContainsAny(text, string(QuoteMark)+string(HeaderMark)) {
		return false
	}
	const window = 2 << 10
	head := text[:min(len(text), window)]
	m := Marker{lines: Tidy(Plain(plain.Text(head), true), 1)}
	if len(m.lines) == 0 {
		return false
	}
	end, strict := m.attribution(0)
	return end > 0 && strict
}

// LaidOut splits the renderer's text into clean lines.
func LaidOut(s string) []Line {
	lines := make([]Line, 0, strings.Count(s, "\n")+1)
	header := false
	for raw := range strings.SplitSeq(s, "\n") {
		text := strings.TrimLeft(raw, string(QuoteMark))
		depth := (len(raw) - len(text)) / utf8.RuneLen(QuoteMark)
		if strings.HasPrefix(text, string(HeaderMark)) {
			header = true
			continue
		}
		// Cleaning can make line ends of other characters.
		for _, l := range Plain(plain.Text(text), true) {
			l.Depth = min(l.Depth+depth, maxQuotes)
			l.Header, header = header, false
			lines = append(lines, l)
		}
	}
	return lines
}

// Attr returns an attribute of an element, "" when absent.
func Attr(attrs []html.Attribute, name string) string {
	for _, a := range attrs {
		if a.Key == name && a.Namespace == "" {
			return a.Val
		}
	}
	return ""
}
