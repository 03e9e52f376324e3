package message

import (
	"slices"
	"strings"
)

// choice is text that is shown, and the HTML with the same content.
type choice struct {
	parts []*Part
	html  []*Part // alternatives of parts; nil without alternatives
}

// selection assigns the leaves of a tree to the text or leaves them to the attachments.
type selection struct {
	text    []choice
	skipped map[*Part]bool // alternatives that are shown in no list beside the text
}

// HTMLParts returns the parts that a reader of HTML would be shown, in order: the
// HTML alternatives of the text, and HTML that is itself the text. A nil root has
// no parts.
func HTMLParts(root *Part) []*Part {
	var parts []*Part
	for _, c := range choose(root).text {
		if len(c.html) > 0 {
			parts = append(parts, c.html...)
			continue
		}
		for _, p := range c.parts {
			if p.Subtype == "html" {
				parts = append(parts, p)
			}
		}
	}
	return parts
}

// Attachments returns the parts that a person would call attachments: every leaf that
// is neither chosen text nor an alternative of it, in order, and every calendar. A multipart whose parts
// were not examined counts as a leaf. See Part.Incidental for those that only serve
// the text.
func Attachments(root *Part) []*Part {
	if root == nil {
		return nil
	}
	s := choose(root)
	text := map[*Part]bool{}
	for _, c := range s.text {
		for _, p := range c.parts {
			text[p] = true
		}
		for _, p := range c.html {
			text[p] = true
		}
	}
	var attachments []*Part
	walk(root, 0, func(p *Part) {
		empty := p == root && p.Size == 0 && p.Filename == "" && p.Disposition != "attachment"
		if len(p.Children) == 0 && (!text[p] || IsCalendar(p)) && !s.skipped[p] && !empty {
			attachments = append(attachments, p)
		}
	})
	return attachments
}

// Incidental reports whether a part serves showing or checking the message
// rather than being sent for itself: an image that the text embeds, a signature.
func (p *Part) Incidental() bool {
	switch {
	case p.Type == "application":
		return p.Subtype == "pgp-signature" || p.Subtype == "pkcs7-signature" || p.Subtype == "x-pkcs7-signature"
	case p.Type == "image":
		return p.ContentID != "" && p.Disposition != "attachment"
	}
	return false
}

// HasCalendar reports whether a calendar is among the parts: an invitation, its change or the
// answer to one. A nil root has none.
func HasCalendar(root *Part) bool {
	if root == nil {
		return false
	}
	found := false
	walk(root, 0, func(p *Part) { found = found || IsCalendar(p) })
	return found
}

// Hollow reports whether a tree from a server tells nothing: of a multipart whose boundary it
// did not find a server gives an empty text, or no parts.
func Hollow(root *Part) bool {
	if root == nil || root.Type != "multipart" {
		return root == nil
	}
	for p := range root.Leaves() {
		if p.Size > 0 && p.Type != "multipart" {
			return false
		}
	}
	return true
}

// walk calls visit for p and its descendants. The depth is bounded, since a
// tree can come from a server.
func walk(p *Part, depth int, visit func(*Part)) {
	visit(p)
	if depth >= MaxDepth {
		return
	}
	for _, c := range p.Children {
		walk(c, depth+1, visit)
	}
}

func choose(root *Part) selection {
	s := selection{skipped: map[*Part]bool{}}
	if root == nil {
		return s
	}
	if root.Type == "text" && len(root.Children) == 0 && root.Disposition != "attachment" {
		// A single text part is the message, whatever its file name.
		s.text = []choice{{parts: []*Part{root}}}
		return s
	}
	if s.text = s.choose(root, 0); len(s.text) == 0 { // an invitation or an answer to one, without words
		for p := range root.Leaves() {
			if IsCalendar(p) {
				s.text = []choice{{parts: []*Part{p}}}
				break
			}
		}
	}
	return s
}

func (s *selection) choose(p *Part, depth int) []choice {
	if len(p.Children) == 0 || depth >= MaxDepth {
		if isBodyText(p) {
			return []choice{{parts: []*Part{p}}}
		}
		return nil
	}
	var all []choice
	switch p.Subtype {
	case "alternative":
		return s.alternative(p, depth)
	case "related":
		shown := relatedRoot(p)
		for i, c := range p.Children {
			// A part that the root refers to by its Content-ID is not text of its own.
			if i == shown || len(c.Children) > 0 || c.ContentID == "" {
				all = append(all, s.choose(c, depth+1)...)
			}
		}
	default:
		for _, c := range p.Children {
			all = append(all, s.choose(c, depth+1)...)
		}
	}
	return all
}

// relatedRoot returns the index of the part that a multipart/related starts
// with (RFC 2387 section 3.2).
func relatedRoot(p *Part) int {
	if start := strings.Trim(p.Param("start"), " \t<>"); start != "" {
		for i, c := range p.Children {
			if c.ContentID == start {
				return i
			}
		}
	}
	return 0
}

// alternative picks one child of a multipart/alternative: the first that is
// plain text, else the first that has any text.
func (s *selection) alternative(p *Part, depth int) []choice {
	texts := make([][]choice, len(p.Children))
	picked := -1
	for i, c := range p.Children {
		texts[i] = s.choose(c, depth+1)
		switch {
		case len(texts[i]) == 0:
		case picked < 0, !allPlain(texts[picked]) && allPlain(texts[i]):
			picked = i
		}
	}
	if picked < 0 {
		return nil
	}
	plain := allPlain(texts[picked])
	var html []*Part
	for i, t := range texts {
		if i == picked {
			continue
		}
		for _, c := range t {
			for _, part := range slices.Concat(c.parts, c.html) {
				s.skipped[part] = true
				if plain && part.Subtype == "html" {
					html = append(html, part)
				}
			}
		}
	}
	// Forms of the text for other readers, such as text/x-amp-html.
	for _, c := range p.Children {
		if c.Type == "text" && len(c.Children) == 0 && c.Disposition != "attachment" && c.Filename == "" && isMarkup(c.Subtype) {
			s.skipped[c] = true
		}
	}
	if len(html) == 0 {
		return texts[picked]
	}
	var one choice
	for _, c := range texts[picked] {
		one.parts = append(one.parts, c.parts...)
		one.html = append(one.html, c.html...)
	}
	if len(one.html) == 0 {
		one.html = html
	}
	return []choice{one}
}

// allPlain reports whether there is text in choices and no HTML.
func allPlain(choices []choice) bool {
	for _, c := range choices {
		for _, p := range c.parts {
			if p.Subtype == "html" {
				return false
			}
		}
	}
	return len(choices) > 0
}

// isBodyText reports whether a leaf is text that mail programs show in place.
func isBodyText(p *Part) bool {
	if p.Type != "text" || p.Disposition == "attachment" || p.Filename != "" && p.Disposition != "inline" {
		return false
	}
	switch p.Subtype {
	case "plain", "html", "enriched", "richtext", "markdown", "x-markdown", "":
		return true
	}
	return false
}

func isMarkup(subtype string) bool {
	switch subtype {
	case "x-amp-html", "watch-html", "x-watch-html", "enriched", "richtext", "x-markdown", "markdown":
		return true
	}
	return false
}
