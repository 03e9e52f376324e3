package message

import (
	"strings"
	"unicode/utf8"

	"github.com/postern-mail/postern/mail/internal/quoted"
	"github.com/postern-mail/postern/mail/internal/visible"
)

// Bounds of the work that one part may cost. Text behind them is not looked
// for; the result then counts as truncated.
const (
	maxHTML  = visible.MaxBytes
	minPlain = 512 << 10 // octets of plain text that are read for a short result
)

// maxShown is how many runes of a part are looked at for a result of maxRunes:
// more than that, since what is new may stand below what is not.
func maxShown(maxRunes int) int {
	return min(max(maxRunes, minPlain/2), maxHTML)
}

// Text returns what a person would read of a message, at most maxRunes runes of
// it, and whether there was more. body returns the transferred octets of a part
// or a prefix of them; a prefix shorter than Part.Size counts as truncated. It
// is called for parts of SelectText, and for those of HTMLAlternatives when
// plain text is a stub that only points at the HTML; nil means it is not to be
// had. The result is the same whether the parts come from Entity.Raw or from a
// server.
//
// Transfer encoding, charset and format=flowed (RFC 3676) are undone, HTML is
// rendered as by visible.Lines, and Clean is applied. Parts are separated by an
// empty line.
//
// History, which is what the message quotes of older ones together with the line
// that says whose it is, begins with "> " on every line, or with ">" where it is
// empty, once for each depth; no other line begins with ">". A forwarded message
// is no history: see Part.Forward. Where not everything fits, what is new goes
// first, and a line such as "> [quoted text: 34 lines left out]" stands for what
// is missing of a run of history. See quoted.New and quoted.Snippet.
func Text(root *Part, body func(*Part) []byte, maxRunes int) (text string, truncated bool) {
	var all []quoted.Line
	fresh := 0 // runes that are new
	for _, c := range choose(root).text {
		if fresh > maxRunes {
			truncated = true
			break
		}
		m := quoted.Marker{Forward: root.Forward, Above: fresh > 0}
		lines, cut := linesOf(c.parts, body, maxRunes-fresh, m)
		if len(c.html) > 0 {
			if t := quoted.Join(lines); isStub(t) {
				if h, hcut := linesOf(c.html, body, maxRunes-fresh, m); longer(quoted.Join(h), t) {
					lines, cut = h, hcut
				}
			}
		}
		truncated = truncated || cut
		if len(lines) == 0 {
			continue
		}
		if len(all) > 0 {
			all = append(all, quoted.Line{})
			fresh += 2
		}
		all = append(all, lines...)
		fresh += quoted.NewRunes(lines)
	}
	text, cut := quoted.Fit(all, maxRunes)
	return text, truncated || cut
}

// linesOf returns the marked lines of parts, at least until maxRunes of them are
// new.
func linesOf(parts []*Part, body func(*Part) []byte, maxRunes int, m quoted.Marker) ([]quoted.Line, bool) {
	var all []quoted.Line
	truncated := false
	fresh := 0
	for _, p := range parts {
		if fresh > maxRunes {
			return all, true
		}
		b := body(p)
		missing := int64(len(b)) < p.Size
		lines, cut := partLines(p, b, maxShown(maxRunes))
		truncated = truncated || cut || missing
		m.Above = m.Above || fresh > 0
		m.Cut = cut || missing
		lines = quoted.Mark(lines, m)
		if len(lines) == 0 {
			continue
		}
		if len(all) > 0 {
			all = append(all, quoted.Line{})
			fresh += 2
		}
		all = append(all, lines...)
		fresh += quoted.NewRunes(lines)
	}
	return all, truncated
}

// partLines decodes and renders the octets of one part as tidy lines: at most
// little more than maxRunes runes. It does not look for history that is not
// marked.
func partLines(p *Part, b []byte, maxRunes int) (lines []quoted.Line, truncated bool) {
	html := p.Subtype == "html"
	limit := maxHTML
	if !html {
		limit = min(max(maxRunes*8, minPlain), maxHTML)
	}
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
			charset = visible.Charset(b)
		}
		lines, cut := visible.Lines(DecodeText(b, charset), maxRunes)
		return lines, truncated || cut
	}
	s := DecodeText(b, charset)
	flowed := strings.EqualFold(p.Param("format"), "flowed")
	if flowed {
		s = Flowed(s, strings.EqualFold(p.Param("delsp"), "yes"))
	}
	return quoted.Tidy(quoted.Plain(Clean(s), flowed), 2), truncated
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

// SanitizeHTML returns what Sanitize of package visible makes of a document that is
// decoded from its transfer encoding, and whether there was more. charset is the
// one of its part, "" for the one the document names. At most 2 MiB are read.
func SanitizeHTML(b []byte, charset string, maxRunes int) (safe string, truncated bool) {
	if len(b) > maxHTML {
		b, truncated = b[:maxHTML], true
	}
	if charset == "" {
		charset = visible.Charset(b)
	}
	safe, cut := visible.Sanitize(DecodeText(b, charset), maxRunes)
	return safe, truncated || cut
}
