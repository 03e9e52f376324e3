package message

import (
	"strings"

	"golang.org/x/net/html"
)

// The renderer writes a quotation mark as a noncharacter at the beginning of the
// line, so that a ">" which is part of the text is not taken for one. Neither of
// the two comes from a document: writing text drops them.
const (
	quoteMark  = '\uFDD0' // one per depth
	headerMark = '\uFDD1' // alone on its line: the header of an older message is below
)

// quoting is how an element takes part in quoting.
type quoting int

const (
	notQuote      quoting = iota
	quotation             // what is in it is history
	introduction          // it is history unless it says that a message is forwarded
	bareQuotation         // it is history when it begins with an attribution and quotes nothing itself
	indentation           // a blockquote that only moves text to the right
	headerBelow           // the header of an older message begins in it, and nothing new follows
)

// quoteKind knows the elements in which mail programs put what they quote.
func quoteKind(tag string, attrs []html.Attribute) quoting {
	switch tag {
	case "blockquote":
		if isIndentation(attrs) {
			return indentation
		}
		return quotation
	case "div", "hr", "span", "table", "p", "section":
	default:
		return notQuote
	}
	switch id := attr(attrs, "id"); strings.TrimPrefix(id, "x_") {
	case "divRplyFwdMsg", "mail-editor-reference-message-container", "zwchr", "OLK_SRC_BODY_SECTION":
		return headerBelow
	}
	for class := range strings.FieldsSeq(attr(attrs, "class")) {
		switch strings.TrimPrefix(class, "x_") {
		case "gmail_attr", "moz-cite-prefix", "yahoo_quoted", "gmail_extra_attr", "zmail_extra":
			return introduction
		case "gmail_quote", "protonmail_quote":
			return bareQuotation
		case "ms-outlook-mobile-reference-message", "OutlookMessageHeader":
			return headerBelow
		}
	}
	// The line that Outlook draws above the header of what is answered.
	if style := attr(attrs, "style"); tag == "div" && strings.Contains(style, "border-top") {
		style = strings.ToLower(strings.ReplaceAll(style, " ", ""))
		if strings.Contains(style, "border-top:solid#") && strings.Contains(style, "1.0pt") && strings.Contains(style, "padding:3.0pt") {
			return headerBelow
		}
	}
	return notQuote
}

// isIndentation reports whether a blockquote has no line at its side, as those
// that the buttons for indenting make.
func isIndentation(attrs []html.Attribute) bool {
	if strings.EqualFold(attr(attrs, "type"), "cite") || attr(attrs, "cite") != "" {
		return false
	}
	class := attr(attrs, "class")
	if strings.Contains(class, "webkit-indent-blockquote") {
		return true
	}
	style := strings.ToLower(strings.ReplaceAll(attr(attrs, "style"), " ", ""))
	return class == "" && (strings.Contains(style, "border:none") || strings.Contains(style, "border:0;")) && !strings.Contains(style, "border-left:")
}

// forwards reports whether a text that was laid out begins with what stands
// above a forwarded message.
func forwards(text string) bool {
	const window = 5 // lines
	n := 0
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(Clean(line)); line == "" {
			continue
		}
		if isForwardLine(line) {
			return true
		}
		if n++; n == window {
			break
		}
	}
	return false
}

// bareHistory reports whether a text that was laid out begins with an
// attribution and marks nothing as quoted.
func bareHistory(text string) bool {
	if strings.ContainsAny(text, string(quoteMark)+string(headerMark)) {
		return false
	}
	const window = 2 << 10
	head := text[:min(len(text), window)]
	m := marker{lines: tidy(plainLines(Clean(head), true), 1)}
	if len(m.lines) == 0 {
		return false
	}
	end, strict := m.attribution(0)
	return end > 0 && strict
}

// laidOut splits what the renderer wrote into clean lines.
func laidOut(s string) []line {
	lines := make([]line, 0, strings.Count(s, "\n")+1)
	header := false
	for raw := range strings.SplitSeq(s, "\n") {
		depth := 0
		for {
			rest, ok := strings.CutPrefix(raw, string(quoteMark))
			if !ok {
				break
			}
			raw = rest
			depth++
		}
		if strings.HasPrefix(raw, string(headerMark)) {
			header = true
			continue
		}
		// Cleaning can make line ends of other characters.
		for _, l := range plainLines(Clean(raw), true) {
			l.depth = min(l.depth+depth, maxQuotes)
			l.header, header = header, false
			lines = append(lines, l)
		}
	}
	return lines
}
