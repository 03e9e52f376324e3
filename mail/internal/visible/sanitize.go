package visible

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/microcosm-cc/bluemonday"
	"golang.org/x/net/html"

	"github.com/postern-mail/postern/internal/plain"
)

// Sanitize returns HTML that is safe to show and holds what a person would see, in
// at most maxRunes runes of markup and text; how many characters a person would
// not see; and whether there was more.
//
// What a person would not see is left out by the rules of Lines, since the styles that
// hide it are removed too. Formatting of text, lists and tables stay, and links to http,
// https and mailto, which pass on neither rank nor referrer. Images are replaced by their
// text. Nothing in the result is fetched, run or sent when it is shown, and the text is
// cleaned. A result that was cut is well-formed. It is empty if style sheets cannot be
// judged.
func Sanitize(work *Work, s string, maxRunes int) (safe string, hidden int, cut bool) {
	w := &htmlWriter{left: max(maxRunes, 0)}
	hidden, cut, judged := work.show(s, w)
	if !judged { // the text is shown in its place
		return "", 0, true
	}
	return sanitizer().Sanitize(w.out.String()), hidden, cut
}

// shownElements stay as they are; of others their content stays.
var shownElements = []string{"p", "div", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "pre", "center",
	"b", "strong", "i", "em", "u", "s", "strike", "del", "ins", "small", "big", "sub", "sup", "code", "tt", "kbd", "samp", "var", "q", "cite", "abbr", "mark",
	"ul", "ol", "li", "dl", "dt", "dd", "table", "caption", "thead", "tbody", "tfoot", "tr", "td", "th"}

// spaces are a run of white space; no-break spaces stay.
var spaces = regexp.MustCompile(`[\t-\r \x{85}\x{1680}\x{2000}-\x{200A}\x{202F}\x{205F}\x{3000}]+`)

var digits = regexp.MustCompile(`\A[0-9]{1,9}\z`)

const rel = "nofollow noreferrer"

// sanitizer is the policy for the result. It has nothing to change in the output of
// htmlWriter, and is there to protect a reader from a fault of htmlWriter.
var sanitizer = sync.OnceValue(func() *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.AllowElements(shownElements...)
	p.AllowAttrs("href").Matching(regexp.MustCompile(`\A(?i:https?|mailto):\S+\z`)).OnElements("a")
	p.AllowAttrs("rel").Matching(regexp.MustCompile(`\A` + rel + `\z`)).OnElements("a")
	p.AllowAttrs("colspan", "rowspan").Matching(digits).OnElements("td", "th")
	p.AllowAttrs("start").Matching(digits).OnElements("ol")
	return p
})

// htmlWriter writes clean, well-formed HTML of a bounded length. Elements in which
// nothing is seen are left out, but for the cells of a table.
type htmlWriter struct {
	out     strings.Builder
	open    []string // elements that are open, by the name they are written with
	pending []string // start tags, and white space between them, that are not written yet
	left    int      // runes that may still be written, less those of the end tags due
	full    bool
}

func (w *htmlWriter) isFull() bool { return w.full }

// standIn returns the element that is written for another, "" for none. Some keep their
// lines apart.
func standIn(tag string, kind boxKind) string {
	switch {
	case slices.Contains(shownElements, tag):
		return tag
	case tag == "html" || tag == "body" || tag == "input" || tag == "img":
		return ""
	case tag == "xmp" || tag == "plaintext" || tag == "listing":
		return "pre"
	case kind == blockBox || isBlock(tag) || tag == "textarea":
		return "div"
	}
	return ""
}

func (w *htmlWriter) begin(n *html.Node, st style) {
	name, attrs := standIn(n.Data, st.kind), ""
	add := func(key, value string) { attrs += " " + key + `="` + html.EscapeString(value) + `"` }
	switch name {
	case "td", "th":
		for _, key := range []string{"colspan", "rowspan"} {
			if value := attr(n.Attr, key); digits.MatchString(value) {
				add(key, value)
			}
		}
	case "ol":
		if value := attr(n.Attr, "start"); digits.MatchString(value) {
			add("start", value)
		}
	}
	href := plain.Text(linkAddress(attr(n.Attr, "href")))
	if _, err := url.Parse(href); n.Data == "a" && href != "" && err == nil {
		name = "a"
		add("href", href)
		add("rel", rel)
	}
	w.open = append(w.open, name)
	if name != "" {
		w.pending = append(w.pending, "<"+name+attrs+">")
	}
	if isVoid(name) || name == "td" || name == "th" {
		w.flush()
	}
}

// end closes an element, or leaves it out if nothing was written in it.
func (w *htmlWriter) end(*html.Node) {
	last := len(w.open) - 1
	name := w.open[last]
	w.open = w.open[:last]
	if name == "" || isVoid(name) {
		return
	}
	for i, tag := range slices.Backward(w.pending) {
		if strings.HasPrefix(tag, "<") {
			w.pending = w.pending[:i]
			return
		}
	}
	w.out.WriteString("</" + name + ">")
}

// flush writes the pending tags and white space, as far as there is room for start tags and
// their ends.
func (w *htmlWriter) flush() {
	for len(w.pending) > 0 {
		one := w.pending[0]
		cost := utf8.RuneCountInString(one)
		if tag, ok := strings.CutPrefix(one, "<"); ok {
			name := tag[:strings.IndexAny(tag, " >")]
			if !isVoid(name) {
				cost += len("</>") + len(name)
			}
		}
		if cost > w.left {
			w.full = true
			return
		}
		w.left -= cost
		w.out.WriteString(one)
		w.pending = w.pending[1:]
	}
}

func (w *htmlWriter) image(alt string) {
	if alt != "" {
		w.text(" "+alt+" ", false)
	}
}

// text writes text, or as much of it as fits.
func (w *htmlWriter) text(s string, pre bool) {
	s = plain.Text(s)
	if !pre {
		s = spaces.ReplaceAllString(s, " ")
	}
	if strings.TrimSpace(s) == "" && len(w.pending) > 0 {
		w.pending = append(w.pending, s)
		return
	}
	if w.flush(); w.full || s == "" {
		return
	}
	escaped := html.EscapeString(s)
	for n := utf8.RuneCountInString(escaped); n > w.left; n = utf8.RuneCountInString(escaped) {
		w.full = true
		// An escape is five runes at most. What escaping adds is not known before it is cut.
		s, _ = plain.Head(s, min(w.left, utf8.RuneCountInString(s)-(n-w.left+4)/5))
		escaped = html.EscapeString(s)
	}
	w.left -= utf8.RuneCountInString(escaped)
	w.out.WriteString(escaped)
}
