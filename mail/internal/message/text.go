package message

import (
	"cmp"
	"strings"
	"unicode/utf8"

	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/mail/internal/quoted"
	"github.com/postern-mail/postern/mail/internal/rfc5322"
	"github.com/postern-mail/postern/mail/internal/visible"
)

// Bounds of the work that one part may cost. Text beyond them is not read;
// the result then counts as truncated.
const (
	maxHTML  = visible.MaxBytes
	minPlain = 512 << 10 // octets of plain text that are read for a short result
)

// maxShown is how many runes of a part are read for a result of maxRunes: more
// than maxRunes, since new text may follow history.
func maxShown(maxRunes int) int {
	return min(max(maxRunes, minPlain/2), maxHTML)
}

// Reading is the text that a person would read of a message, as far as it was read.
type Reading struct {
	Cut    bool // the message has more text than was read
	Hidden int  // characters of HTML that a person would not see, in the part of it that was read

	lines []quoted.Line
}

// Page returns at most n runes of the text from rune number from on, where 1 is the first,
// and the number at which the rest begins, 0 at the end. From 0 it returns the text with
// what is new first: a line such as "> [quoted text: 34 lines left out]" then replaces the
// missing lines of a run of history.
func (r *Reading) Page(from, n int) (text string, next int) {
	text, next = quoted.Page(r.lines, from, n)
	if next == 0 && r.Cut {
		next = max(from, 1) + utf8.RuneCountInString(text)
	}
	return text, next
}

// Runes is how long the text is.
func (r *Reading) Runes() int { return utf8.RuneCountInString(r.All()) }

// All returns the text as far as it was read.
func (r *Reading) All() string { return quoted.Join(r.lines) }

// Mask replaces the text, line by line.
func (r *Reading) Mask(mask func(line string) string) {
	for i := range r.lines {
		r.lines[i].Text = mask(r.lines[i].Text)
	}
}

// New returns the text without the history.
func (r *Reading) New() string { return quoted.New(r.lines) }

// Opening returns the beginning of what is new, or of the history when nothing is, as one
// line of at most n runes; it ends with "…" where more follows.
func (r *Reading) Opening(n int) string { return quoted.Opening(r.lines, n) }

// Around is Opening at the place where words stand: see quoted.Around.
func (r *Reading) Around(words string, n int) string { return quoted.Around(r.lines, words, n) }

// Read returns the text that a person would read of a message, maxRunes runes of it at
// least where it is so long. body returns the transferred octets of a part or a prefix of
// them; a prefix shorter than Part.Size counts as cut. It is called for the parts chosen to
// be read, and for the HTML beside plain text that is short; nil means the part is
// not available. The result is the same whether the parts come from Entity.Raw or from a
// server.
//
// Transfer encoding, charset and format=flowed (RFC 3676) are undone, HTML is rendered as by
// visible.Lines, a calendar without text beside it as by PartText, and the text is cleaned. Parts are separated by an
// empty line.
//
// History is the older messages that a message quotes, with the line that names
// their author. Each of its lines begins with "> ", or with ">" where it is
// empty, once for each depth; no other line begins with ">". Only the line of plain text
// that names the author of marked history stays as it was written. A forwarded message is
// not history: see Part.Forward.
//
// w bounds the work that a command spends on HTML, nil that on each part alone.
func Read(w *visible.Work, root *Part, body func(*Part) []byte, maxRunes int) *Reading {
	var all passage
	for _, c := range choose(root).text {
		if all.fresh > maxRunes {
			all.cut = true
			break
		}
		m := quoted.Marker{Forward: root.Forward, Above: all.fresh > 0}
		one := passageOf(w, c.parts, body, maxRunes-all.fresh, m)
		if t := quoted.New(one.lines); len(c.html) > 0 && !one.cut && len(strings.Join(wordsOf(t), " ")) <= maxStub {
			if h := passageOf(w, c.html, body, maxRunes-all.fresh, m); standsIn(t, &h) {
				one = h
			}
		}
		all.add(one)
	}
	return &Reading{Cut: all.cut, Hidden: all.hidden, lines: all.lines}
}

// passage is the text of some parts.
type passage struct {
	lines  []quoted.Line
	fresh  int  // runes that are new
	cut    bool // some text is missing
	hidden int  // characters that a person would not see
}

// add puts another passage behind an empty line.
func (p *passage) add(o passage) {
	p.cut, p.hidden = p.cut || o.cut, p.hidden+o.hidden
	if len(o.lines) == 0 {
		return
	}
	if len(p.lines) > 0 {
		p.lines = append(p.lines, quoted.Line{})
		p.fresh += 2
	}
	p.lines = append(p.lines, o.lines...)
	p.fresh += quoted.NewRunes(o.lines)
}

// passageOf returns the marked lines of parts, until at least maxRunes of them are
// new.
func passageOf(w *visible.Work, parts []*Part, body func(*Part) []byte, maxRunes int, m quoted.Marker) passage {
	var all passage
	for _, p := range parts {
		if all.fresh > maxRunes {
			all.cut = true
			break
		}
		b := body(p)
		one := partPassage(w, p, b, maxShown(maxRunes))
		one.cut = one.cut || int64(len(b)) < p.Size
		m.Above, m.Cut, m.Written = m.Above || all.fresh > 0, one.cut, p.Subtype != "html"
		one.lines = quoted.Mark(one.lines, m)
		all.add(one)
	}
	return all
}

// partPassage decodes and renders the octets of one part as tidy lines, at
// most a little more than maxRunes runes. It does not look for history
// without quotation marks.
func partPassage(w *visible.Work, p *Part, b []byte, maxRunes int) passage {
	cut := false
	html := p.Subtype == "html"
	limit := maxHTML
	if !html {
		limit = min(max(maxRunes*8, minPlain), maxHTML)
	}
	// An octet of text takes at most three in quoted-printable.
	if len(b) > 3*limit {
		b, cut = b[:3*limit], true
	}
	b = DecodeBody(b, p.Encoding)
	if len(b) > limit {
		b, cut = b[:limit], true
	}
	charset := p.Param("charset")
	if html {
		if charset == "" {
			charset = visible.Charset(b)
		}
		lines, hidden, more := visible.Lines(w, rfc5322.DecodeText(b, charset), maxRunes)
		return passage{lines: lines, cut: cut || more, hidden: hidden}
	}
	s := rfc5322.DecodeText(b, charset)
	if IsCalendar(p) {
		s = cmp.Or(calendarLines(calendarEvents(b)), s)
	}
	flowed := strings.EqualFold(p.Param("format"), "flowed")
	if flowed {
		s = Flowed(s, strings.EqualFold(p.Param("delsp"), "yes"))
	}
	return passage{lines: quoted.Tidy(quoted.Plain(plain.Text(s), flowed), 2), cut: cut}
}

// maxStub is how many characters of words may stand for HTML that says more.
const maxStub = 400

// standsIn reports whether plain text is only there in place of the HTML beside it: it is
// short, and the HTML says much more, or other things.
func standsIn(text string, html *passage) bool {
	said := quoted.Join(html.lines)
	if utf8.RuneCountInString(said) <= utf8.RuneCountInString(text) {
		return false
	}
	known := map[string]bool{}
	for _, word := range wordsOf(said) {
		known[word] = true
	}
	words, found := wordsOf(text), 0
	for _, word := range words {
		if known[word] {
			found++
		}
	}
	return 2*found <= len(words) || html.fresh > 2*utf8.RuneCountInString(text)+100
}

// wordsOf splits a text into words in small letters, without links.
func wordsOf(s string) (words []string) {
	for _, word := range strings.Fields(strings.ToLower(s)) {
		if word = strings.Trim(word, "<>()[]{}-–—_=*|.,:;!?'\"„“”"); word != "" && !strings.Contains(word, "://") {
			words = append(words, word)
		}
	}
	return words
}

// SanitizeHTML returns Sanitize of package visible for a document decoded from its
// transfer encoding. charset is that of its part, "" for the one the document names. At most 2 MiB are read.
func SanitizeHTML(w *visible.Work, b []byte, charset string, maxRunes int) (safe string, hidden int, cut bool) {
	long := len(b) > maxHTML
	b = b[:min(len(b), maxHTML)]
	if charset == "" {
		charset = visible.Charset(b)
	}
	safe, hidden, cut = visible.Sanitize(w, rfc5322.DecodeText(b, charset), maxRunes)
	return safe, hidden, cut || long
}
