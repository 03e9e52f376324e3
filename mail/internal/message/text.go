package message

import (
	"strings"
	"unicode/utf8"
)

// Bounds of the work that one part may cost. Text behind them is not looked
// for; the result then counts as truncated.
const (
	maxHTML   = 2 << 20  // octets of HTML that are rendered
	plainSlop = 64 << 10 // octets of plain text beyond what maxRunes can need
)

// Text returns what a person would read of a message, at most maxRunes runes of
// it, and whether there was more. body returns the transferred octets of a part
// or a prefix of them; a prefix shorter than Part.Size counts as truncated. It
// is called for parts of SelectText, and for those of HTMLAlternatives when
// plain text is a stub that only points at the HTML; nil means it is not to be
// had. The result is the same whether the parts come from Entity.Raw or from a
// server.
//
// Transfer encoding, charset and format=flowed (RFC 3676) are undone, HTML is
// rendered as by HTMLToText, and Clean is applied. Parts are separated by an
// empty line.
func Text(root *Part, body func(*Part) []byte, maxRunes int) (text string, truncated bool) {
	var out strings.Builder
	runes := 0
	for _, c := range choose(root).text {
		if runes > maxRunes {
			truncated = true
			break
		}
		t, cut := textOf(c.parts, body, maxRunes-runes)
		if len(c.html) > 0 && isStub(t) {
			if h, hcut := textOf(c.html, body, maxRunes-runes); longer(h, t) {
				t, cut = h, hcut
			}
		}
		truncated = truncated || cut
		if t == "" {
			continue
		}
		if out.Len() > 0 {
			out.WriteString("\n\n")
			runes += 2
		}
		out.WriteString(t)
		runes += utf8.RuneCountInString(t)
	}
	text, cut := Truncate(out.String(), maxRunes)
	return text, truncated || cut
}

// textOf returns a little more than maxRunes of the text of parts, so that
// Truncate sees that there is more and what its cut would tear.
func textOf(parts []*Part, body func(*Part) []byte, maxRunes int) (string, bool) {
	var texts []string
	truncated := false
	runes := 0
	for _, p := range parts {
		if runes > maxRunes {
			return strings.Join(texts, "\n\n"), true
		}
		b := body(p)
		truncated = truncated || int64(len(b)) < p.Size
		t, cut := partText(p, b, maxRunes-runes+2*maxCluster)
		truncated = truncated || cut
		if t != "" {
			texts = append(texts, t)
			runes += utf8.RuneCountInString(t) + 2
		}
	}
	return strings.Join(texts, "\n\n"), truncated
}

// partText decodes and renders the octets of one part.
func partText(p *Part, b []byte, maxRunes int) (string, bool) {
	html := p.Subtype == "html"
	limit := maxHTML
	if !html {
		limit = min(max(maxRunes, 0), maxHTML)*8 + plainSlop
	}
	truncated := false
	// An octet of text takes at most three in quoted-printable.
	if len(b) > 3*limit {
		b, truncated = b[:3*limit], true
	}
	b = DecodeBody(b, p.Encoding)
	if len(b) > limit {
		b, truncated = b[:limit], true
	}
	charset := p.Param("charset")
	if html {
		if charset == "" {
			charset = htmlCharset(b)
		}
		t, cut := renderHTML(DecodeText(b, charset), maxRunes)
		return t, truncated || cut
	}
	s := DecodeText(b, charset)
	if strings.EqualFold(p.Param("format"), "flowed") {
		s = Flowed(s, strings.EqualFold(p.Param("delsp"), "yes"))
	}
	return trimText(Clean(s)), truncated
}

// trimText removes white space at the ends of lines, empty lines around the text
// and all but two of those that follow one another.
func trimText(s string) string {
	var out strings.Builder
	out.Grow(len(s))
	blank := 0
	for line := range strings.Lines(s) {
		line = strings.TrimRight(line, " \t\n\u00A0")
		if line == "" {
			blank++
			continue
		}
		if out.Len() > 0 {
			out.WriteString(strings.Repeat("\n", min(blank, 2)+1))
		}
		blank = 0
		out.WriteString(line)
	}
	return out.String()
}

// stubPhrases stand in plain text that only says to look at the HTML.
var stubPhrases = []string{
	"html version", "html format", "html mail", "html e-mail", "html email", "html-format", "html message", "html-mail", "html content", "html part",
	"does not support html", "doesn't support html", "not support html", "view html", "display html", "read html", "supports html", "html-capable", "html capable", "html enabled", "html-enabled",
	"view this email in", "view this message in", "view it in your browser", "view in browser", "view online", "view the online version", "read this email online",
	"view this email online", "email client does not", "mail client does not", "plain text version", "no plain text", "text version of this", "cannot display this",
	"html-e-mail", "html-version", "in html", "en html", "im browser",
}

// isStub reports whether plain text is empty, or so short and so worded that it
// stands there only because a text had to.
func isStub(s string) bool {
	const longest = 400 // bytes
	s = strings.ToLower(strings.Join(strings.Fields(s), " "))
	if s == "" {
		return true
	}
	if len(s) > longest {
		return false
	}
	for _, phrase := range stubPhrases {
		if strings.Contains(s, phrase) {
			return true
		}
	}
	for _, word := range strings.Fields(s) {
		if !strings.Contains(word, "://") && strings.ContainsFunc(word, func(r rune) bool { return r > ' ' && !strings.ContainsRune("<>()[]-_=*|.,", r) }) {
			return false
		}
	}
	return true // nothing but links and rules
}

// longer reports whether the HTML says clearly more than the stub beside it.
func longer(html, stub string) bool {
	return utf8.RuneCountInString(html) > utf8.RuneCountInString(stub)
}
