package visible

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"

	"github.com/postern-mail/postern/mail/internal/quoted"
)

// maxNesting bounds the lists and tables that are laid out inside one another,
// and quotations likewise; deeper ones are flat.
const maxNesting = 12

// element is an open element.
type element struct {
	tag   string
	kind  boxKind
	frame bool // it has a frame of its own
	quote quoted.Kind
	link  int // where the text of a link begins in its frame
	items int // of a list: number of the last item
	list  string
	cells []string // of a row
	data  bool     // of a table: it has header cells, so empty cells mean something
}

// renderer lays out the visible content as text.
type renderer struct {
	open   []element
	count  map[string]int // open elements by name
	frames []frame
	left   int  // runes that may still be written
	full   bool // more was there than may be written
	images int  // images without a text that were seen
	quotes int  // frames that are quotations
}

// frame is a run of text that is laid out by itself and then put into the frame
// around it.
type frame struct {
	out   []byte
	lines int  // line ends due before the next text
	space bool // a space is due before the next text
}

func newRenderer(maxRunes int) *renderer {
	return &renderer{left: maxRunes, frames: make([]frame, 1, 8), count: map[string]int{}}
}

func (r *renderer) isFull() bool { return r.full }

// lineEnds returns how many line ends an element puts around itself.
func (r *renderer) lineEnds(e *element) int {
	isCell := e.tag == "td" || e.tag == "th"
	switch {
	case e.kind == inlineBox, e.kind == inlineBlock, e.kind == cellBox && !isCell: // a part of a line
		return 0
	case slices.Contains([]string{"p", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "pre", "figure", "dl"}, e.tag):
		return 2
	case isList(e.tag) && r.count["li"] == 0, e.tag == "table" && r.count["table"] == 1:
		return 2
	case isCell, e.tag == "tbody", e.tag == "thead", e.tag == "tfoot":
		return 0
	}
	return 1
}

func isList(tag string) bool { return tag == "ul" || tag == "ol" || tag == "menu" || tag == "dir" }

// begin opens an element, and writes the line ends and the text before its content.
func (r *renderer) begin(n *html.Node, st style) {
	r.count[n.Data]++
	r.open = append(r.open, element{tag: n.Data, kind: st.kind, quote: quoted.KindOf(n.Data, n.Attr)})
	e := &r.open[len(r.open)-1]
	r.apart(e)
	if e.quote == quoted.HeaderBelow {
		r.newline(1)
		r.top().flush()
		r.top().out = append(r.top().out, string(quoted.HeaderMark)...)
		r.newline(1)
	} else if e.quote != quoted.NotQuote {
		r.enter(e)
	}
	switch e.tag {
	case "br":
		r.lineBreak()
	case "hr":
		if st.visible() {
			r.text("---", false)
		}
		r.newline(1)
	case "a":
		e.link = len(r.top().out)
		r.images = 0
	case "q":
		if st.visible() {
			r.text("“", false)
		}
	case "ul", "ol", "menu", "dir":
		e.list = e.tag
		e.items = number(attr(n.Attr, "start"), 1) - 1
	case "li":
		if list := r.enclosing("ul", "ol", "menu", "dir"); list != nil {
			list.items = number(attr(n.Attr, "value"), list.items+1)
			e.items, e.list = list.items, list.list
		}
		r.enter(e)
	case "pre", "dd":
		r.enter(e)
	case "td", "th":
		if r.enclosing("tr") == nil {
			r.newline(1)
			break
		}
		if table := r.enclosing("table"); e.tag == "th" && table != nil {
			table.data = true
		}
		r.enter(e)
	}
}

// number reads a number of an item of a list.
func number(s string, otherwise int) int {
	if n, err := strconv.Atoi(strings.TrimSpace(s)); err == nil && n > -1e6 && n < 1e6 {
		return n
	}
	return otherwise
}

// end closes an element, and writes the text and the line ends behind its content.
func (r *renderer) end(n *html.Node) {
	e := &r.open[len(r.open)-1]
	if e.frame {
		r.leave(e)
	}
	switch e.tag {
	case "a":
		r.link(e, attr(n.Attr, "href"))
	case "q":
		r.text("”", false)
	case "tr":
		r.row(e.cells)
	}
	r.apart(e)
	r.count[e.tag]--
	r.open = r.open[:len(r.open)-1]
}

// leave puts the frame of an element into the one around it.
func (r *renderer) leave(e *element) {
	text := strings.Trim(string(r.top().out), "\n")
	if e.tag != "pre" {
		text = strings.TrimSpace(text)
	}
	r.frames = r.frames[:len(r.frames)-1]
	if e.quote != quoted.NotQuote {
		r.quotes--
	}
	first, others := "", ""
	switch {
	case e.quote == quoted.Quotation, e.quote == quoted.Introduction && !quoted.Forwards(text), e.quote == quoted.BareQuotation && quoted.BareHistory(text):
		first, others = string(quoted.QuoteMark), string(quoted.QuoteMark)
	case e.quote == quoted.Indentation, e.tag == "dd":
		first, others = "  ", "  "
	case e.list == "ol":
		first = strconv.Itoa(e.items) + ". "
		others = strings.Repeat(" ", len(first))
	case e.tag == "li":
		first, others = "- ", "  "
	case e.tag == "td", e.tag == "th":
		row := r.enclosing("tr")
		row.cells = append(row.cells, text)
		return
	}
	r.block(first, others, text)
}

// apart separates an element from the text beside it.
func (r *renderer) apart(e *element) {
	if n := r.lineEnds(e); n > 0 {
		r.newline(n)
	} else if e.kind == inlineBlock || e.kind == cellBox || e.tag == "img" {
		f := r.top()
		f.space = f.space || f.lines == 0
	}
}

// row writes the cells of a table row: on one line where each is one line, else
// one under the other, for then the table only lays out the page.
func (r *renderer) row(cells []string) {
	table := r.enclosing("table")
	keep := table != nil && table.data
	var shown []string
	many := false
	for _, c := range cells {
		if c == "" && !keep {
			continue
		}
		many = many || strings.ContainsAny(c, "\n"+string(quoted.QuoteMark)+string(quoted.HeaderMark))
		shown = append(shown, c)
	}
	if strings.Join(shown, "") == "" {
		return
	}
	if !many {
		r.block("", "", strings.TrimRight(strings.Join(shown, " | "), " |"))
		return
	}
	for _, c := range shown {
		r.block("", "", c)
	}
}

// enclosing returns the innermost open element of one of some names around the
// one that is being opened or closed, but not outside a table.
func (r *renderer) enclosing(tags ...string) *element {
	const window = 64 // enough for the nesting in real mails, and cheap
	for i := len(r.open) - 2; i >= max(0, len(r.open)-window); i-- {
		e := &r.open[i]
		if slices.Contains(tags, e.tag) {
			return e
		}
		if e.tag == "table" {
			return nil
		}
	}
	return nil
}

func (r *renderer) top() *frame { return &r.frames[len(r.frames)-1] }

// enter gives an element a frame of its own.
func (r *renderer) enter(e *element) {
	quote := e.quote != quoted.NotQuote
	if quote && r.quotes >= maxNesting || !quote && len(r.frames)-r.quotes > maxNesting {
		r.newline(1)
		return
	}
	if quote {
		r.quotes++
	}
	e.frame = true
	r.frames = append(r.frames, frame{})
}

// block puts text that is laid out into the current frame, with a prefix to its
// first line and one to the others. Quotation marks stay at the beginning of the
// line, whatever they are in.
func (r *renderer) block(first, others, text string) {
	if text == "" {
		return
	}
	f := r.top()
	r.newline(1)
	f.flush()
	prefix := first
	for line := range strings.Lines(text) {
		if first != string(quoted.QuoteMark) && (strings.HasPrefix(line, string(quoted.QuoteMark)) || strings.HasPrefix(line, string(quoted.HeaderMark))) {
			f.out = append(f.out, line...)
			continue
		}
		f.out = append(f.out, prefix...)
		f.out = append(f.out, line...)
		prefix = others
	}
	r.newline(1)
}

// newline makes the next text begin after n line ends at least.
func (r *renderer) newline(n int) {
	f := r.top()
	f.space = false
	f.lines = max(f.lines, n)
}

// lineBreak is one line end more, up to an empty line.
func (r *renderer) lineBreak() {
	f := r.top()
	f.space = false
	f.lines = min(f.lines+1, 2)
}

// flush writes the white space that is due.
func (f *frame) flush() {
	if len(f.out) > 0 {
		if f.lines > 0 {
			f.out = append(f.out, "\n\n"[:min(f.lines, 2)]...)
		} else if f.space {
			f.out = append(f.out, ' ')
		}
	}
	f.lines, f.space = 0, false
}

// text adds text with its white space collapsed, or kept in a pre.
func (r *renderer) text(s string, pre bool) {
	f := r.top()
	for _, c := range s {
		switch {
		case isFiller(c), pre && (c == '\r' || c == '\n' && len(f.out) == 0):
			continue
		case !pre && unicode.IsSpace(c):
			f.space = f.space || f.lines == 0
			continue
		}
		if r.left <= 0 {
			r.full = true
			return
		}
		f.flush()
		f.out = utf8.AppendRune(f.out, c)
		r.left--
	}
}

// isFiller reports whether a character is only there to push others about: the
// text before the message that newsletters pad with it.
func isFiller(c rune) bool {
	switch c {
	case 0x00AD, 0x034F, 0x200B, 0x2060, 0xFEFF, quoted.QuoteMark, quoted.HeaderMark:
		return true
	}
	return false
}

func (r *renderer) image(alt string) {
	if alt == "" {
		r.images++
	}
	r.text(alt, false)
}

// maxURL is the longest address that is shown.
const maxURL = 2000

// link writes the address of a link behind its text, and says if the text shows another host.
func (r *renderer) link(e *element, href string) {
	f := r.top()
	if href == "" || e.link > len(f.out) {
		return
	}
	text, url := strings.TrimSpace(string(f.out[e.link:])), linkAddress(href)
	other := otherHost(text, href)
	if other != "" {
		url = strings.TrimSuffix("other host "+other+": "+url, ": ")
	}
	if text == "" && r.images == 0 || url == "" || bareAddress(text) == bareAddress(url) {
		return
	}
	lines, space := f.lines, f.space
	if text != "" {
		f.lines, f.space = 0, true
	}
	r.text("("+url+")", false)
	f.lines, f.space = max(f.lines, lines), space && lines == 0
}

// linkAddress returns an address that may be shown, without white space, or "".
func linkAddress(href string) string {
	url := linkable(href)
	if len(url) > maxURL {
		return ""
	}
	scheme, rest, ok := strings.Cut(url, ":")
	if !ok || strings.Trim(rest, "/") == "" {
		return ""
	}
	switch strings.ToLower(scheme) {
	case "http", "https", "mailto":
		return url
	}
	return ""
}

// linkable is an address without what browsers leave out of it.
func linkable(href string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsSpace(c) || unicode.IsControl(c) {
			return -1
		}
		return c
	}, href)
}

var scheme = regexp.MustCompile(`^(?i:https?://|mailto:)`)

// bareAddress is what two addresses have in common that lead to the same place.
func bareAddress(s string) string {
	s = scheme.ReplaceAllString(strings.Join(strings.Fields(s), ""), "")
	if s = strings.TrimSuffix(s, "/"); strings.Contains(s, "/") {
		return s
	}
	return strings.ToLower(s) // only a path minds its case
}
