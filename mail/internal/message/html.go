package message

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
)

// HTMLToText renders an HTML document as the text that a person would see, at
// most maxRunes runes of it. Blocks are separated by line ends, lists have
// markers, a table has a row per line with " | " between its cells, quotations
// begin with "> ", and a link is followed by its address where the text does not
// say it. Scripts, styles, comments and everything a person would not see are
// left out: hidden and invisible elements, text too small or of the colour of
// what it stands on (see html_style.go for what is understood). At most 2 MiB
// are read. b is in UTF-8 or in the charset it names itself.
func HTMLToText(b []byte, maxRunes int) string {
	b = b[:min(len(b), maxHTML)]
	s := string(b)
	if !utf8.Valid(b) {
		s = DecodeText(b, htmlCharset(b))
	}
	text, _ := renderHTML(s, maxRunes)
	text, _ = Truncate(text, maxRunes)
	return text
}

var metaCharset = regexp.MustCompile(`(?i)<meta[^>]{0,200}charset\s{0,8}=\s{0,8}["']?\s{0,8}([a-z0-9_:.-]{1,40})`)

// htmlCharset returns the charset that a document gives itself, which it does
// at its beginning; "" when it does not.
func htmlCharset(b []byte) string {
	const window = 2 << 10
	if m := metaCharset.FindSubmatch(b[:min(len(b), window)]); m != nil {
		return string(m[1])
	}
	return ""
}

// renderHTML returns a little more than maxRunes of the cleaned text of s, so
// that Truncate can cut it, and whether it stopped before the end.
func renderHTML(s string, maxRunes int) (string, bool) {
	sheet, treeable := scanHTML(s)
	r := newRenderer(sheet, max(maxRunes, 0)+2*maxCluster)
	var root *html.Node
	if treeable {
		// It fails on more open elements than a person ever wrote.
		root, _ = html.ParseWithOptions(strings.NewReader(s), html.ParseOptionEnableScripting(false))
	}
	if root != nil {
		r.tree(root)
	} else {
		r.tokens(s)
	}
	return squeeze(trimText(Clean(r.finish()))), r.full
}

// squeeze allows one empty line at a time.
func squeeze(s string) string {
	for strings.Contains(s, "\n\n\n") {
		s = strings.ReplaceAll(s, "\n\n\n", "\n\n")
	}
	return s
}

// maxNesting bounds the lists, quotations and tables that are laid out inside
// one another; deeper ones are flat.
const maxNesting = 24

// element is an open element.
type element struct {
	tag   string
	attrs []html.Attribute
	style style
	drop  bool // neither it nor what is in it is shown
	frame bool // it has a frame of its own
	href  string
	link  int // where the text of a link begins in its frame
	items int // of a list: number of the last item
	list  string
	cells []string // of a row
	data  bool     // of a table: it has header cells, so empty cells mean something
}

// renderer turns the events of a parser into text.
type renderer struct {
	sheet  *sheet
	open   []element
	count  map[string]int // open elements by name
	frames []frame
	left   int  // runes that may still be written
	full   bool // more was there than may be written
	images int  // images without a text that were seen
}

// frame is a run of text that is laid out by itself and then put into the frame
// around it.
type frame struct {
	out   []byte
	lines int  // line ends due before the next text
	space bool // a space is due before the next text
}

func newRenderer(sheet *sheet, maxRunes int) *renderer {
	return &renderer{sheet: sheet, left: maxRunes, frames: make([]frame, 1, 8), count: map[string]int{}}
}

func (r *renderer) tree(n *html.Node) {
	switch n.Type {
	case html.TextNode:
		r.text(n.Data)
	case html.ElementNode:
		if r.full {
			return
		}
		if r.push(n.Data, n.Attr) {
			for c := n.FirstChild; c != nil && !r.full; c = c.NextSibling {
				r.tree(c)
			}
		}
		r.pop()
	case html.DocumentNode:
		for c := n.FirstChild; c != nil && !r.full; c = c.NextSibling {
			r.tree(c)
		}
	}
}

// isDropped reports whether an element holds nothing for a reader.
func isDropped(tag string) bool {
	switch tag {
	case "script", "style", "head", "template", "title", "noembed", "noframes", "iframe", "svg", "math", "audio", "video", "canvas", "datalist", "object", "embed", "map", "frameset":
		return true
	}
	return false
}

func isBlock(tag string) bool {
	switch tag {
	case "address", "article", "aside", "body", "caption", "center", "dd", "details", "dialog", "dir", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "header", "hr", "legend", "li", "main", "menu", "nav", "section", "summary", "tr", "table", "ul", "ol", "pre", "blockquote", "h1", "h2", "h3", "h4", "h5", "h6":
		return true
	}
	return false
}

// lineEnds returns how many line ends an element puts around itself.
func (r *renderer) lineEnds(tag string) int {
	switch tag {
	case "p", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "pre", "figure", "dl":
		return 2
	case "ul", "ol", "menu", "dir":
		if r.count["li"] > 0 { // a list in a list
			return 1
		}
		return 2
	case "table":
		if r.count["table"] > 1 {
			return 1
		}
		return 2
	}
	if isBlock(tag) {
		return 1
	}
	return 0
}

// push opens an element and reports whether anything in it can be seen.
func (r *renderer) push(tag string, attrs []html.Attribute) bool {
	parent := rootStyle(r.sheet)
	drop := isDropped(tag)
	if n := len(r.open); n > 0 {
		parent = r.open[n-1].style
		drop = drop || r.open[n-1].drop
	}
	e := element{tag: tag, attrs: attrs, drop: drop}
	if !drop {
		e.style = r.sheet.compute(parent, tag, attrs)
		e.drop = e.style.gone
	}
	r.count[tag]++
	r.open = append(r.open, e)
	if e.drop {
		return false
	}
	r.begin(&r.open[len(r.open)-1], attrs)
	return true
}

// begin writes what stands before the content of an element.
func (r *renderer) begin(e *element, attrs []html.Attribute) {
	if n := r.lineEnds(e.tag); n > 0 {
		r.newline(n)
	}
	switch e.tag {
	case "br":
		r.lineBreak()
	case "hr":
		r.write("---", &e.style)
		r.newline(1)
	case "a":
		e.href = attr(attrs, "href")
		e.link = len(r.top().out)
		r.images = 0
	case "img":
		r.image(attrs, &e.style)
	case "input":
		switch strings.ToLower(attr(attrs, "type")) {
		case "submit", "button", "reset":
			r.write(attr(attrs, "value"), &e.style)
		}
	case "q":
		r.write("“", &e.style)
	case "ul", "ol", "menu", "dir":
		e.list = e.tag
		if n, err := strconv.Atoi(strings.TrimSpace(attr(attrs, "start"))); err == nil && n > -1e6 && n < 1e6 {
			e.items = n - 1
		}
	case "li":
		if list := r.enclosing("ul", "ol", "menu", "dir"); list != nil {
			list.items++
			if n, err := strconv.Atoi(strings.TrimSpace(attr(attrs, "value"))); err == nil && n > -1e6 && n < 1e6 {
				list.items = n
			}
			e.items, e.list = list.items, list.list
		}
		r.enter(e)
	case "blockquote", "pre", "dd":
		r.enter(e)
	case "td", "th":
		if row := r.enclosing("tr"); row != nil {
			if e.tag == "th" {
				if table := r.enclosing("table"); table != nil {
					table.data = true
				}
			}
			r.enter(e)
		} else {
			r.newline(1)
		}
	}
}

// pop closes the innermost element.
func (r *renderer) pop() {
	e := &r.open[len(r.open)-1]
	if !e.drop {
		r.end(e)
	}
	r.count[e.tag]--
	r.open = r.open[:len(r.open)-1]
}

// end writes what stands behind the content of an element.
func (r *renderer) end(e *element) {
	var text string
	if e.frame {
		f := r.top()
		text = strings.Trim(string(f.out), "\n")
		if e.tag != "pre" {
			text = strings.TrimSpace(text)
		}
		r.frames = r.frames[:len(r.frames)-1]
	}
	switch e.tag {
	case "a":
		r.link(e)
	case "q":
		r.write("”", &e.style)
	case "li":
		if e.frame && text != "" {
			marker := "- "
			if e.list == "ol" {
				marker = strconv.Itoa(e.items) + ". "
			}
			r.block(marker, strings.Repeat(" ", len(marker)), text)
		}
	case "blockquote":
		if e.frame {
			r.block("> ", "> ", text)
		}
	case "dd":
		if e.frame {
			r.block("  ", "  ", text)
		}
	case "pre":
		if e.frame {
			r.block("", "", text)
		}
	case "td", "th":
		if row := r.enclosing("tr"); e.frame && row != nil {
			row.cells = append(row.cells, text)
		} else if e.frame {
			r.block("", "", text)
		}
	case "tr":
		r.row(e.cells)
	}
	if n := r.lineEnds(e.tag); n > 0 {
		r.newline(n)
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
		many = many || strings.Contains(c, "\n")
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
	const window = 64 // far enough for what is written, near enough to be cheap
	for i := len(r.open) - 2; i >= max(0, len(r.open)-window); i-- {
		e := &r.open[i]
		for _, tag := range tags {
			if e.tag == tag && !e.drop {
				return e
			}
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
	if len(r.frames) > maxNesting {
		r.newline(1)
		return
	}
	e.frame = true
	r.frames = append(r.frames, frame{})
}

// block puts text that is laid out into the current frame, with a prefix to its
// first line and one to the others.
func (r *renderer) block(first, others, text string) {
	if text == "" {
		return
	}
	f := r.top()
	r.newline(1)
	f.flush()
	prefix := first
	for line := range strings.Lines(text) {
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

func (r *renderer) text(s string) {
	if n := len(r.open); n > 0 {
		if e := &r.open[n-1]; !e.drop {
			r.write(s, &e.style)
		}
		return
	}
	root := rootStyle(r.sheet)
	r.write(s, &root)
}

// write adds visible text with its white space collapsed, or kept in a pre.
func (r *renderer) write(s string, st *style) {
	if !st.visible() {
		return
	}
	f := r.top()
	if st.pre {
		r.writePre(f, s)
		return
	}
	for _, c := range s {
		switch {
		case isFiller(c):
			continue
		case unicode.IsSpace(c):
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

func (r *renderer) writePre(f *frame, s string) {
	for _, c := range s {
		if r.left <= 0 {
			r.full = true
			return
		}
		r.left--
		switch c {
		case '\r':
		case '\n':
			if len(f.out) > 0 {
				f.flush()
				f.out = append(f.out, '\n')
			}
		default:
			f.flush()
			f.out = utf8.AppendRune(f.out, c)
		}
	}
}

// isFiller reports whether a character is only there to push others about: the
// text before the message that newsletters pad with it.
func isFiller(c rune) bool {
	switch c {
	case 0x00AD, 0x034F, 0x200B, 0x2060, 0xFEFF:
		return true
	}
	return false
}

func (r *renderer) image(attrs []html.Attribute, st *style) {
	if tiny(attr(attrs, "width")) || tiny(attr(attrs, "height")) || st.tiny {
		return // counts its readers
	}
	if !st.shown() {
		return
	}
	alt := strings.TrimSpace(attr(attrs, "alt"))
	if alt == "" {
		r.images++
		return
	}
	r.write(alt, &plainStyle)
}

// tiny reports whether a length in HTML is at most one pixel.
func tiny(s string) bool {
	s = strings.TrimSuffix(strings.TrimSpace(s), "px")
	return s == "0" || s == "1"
}

// maxURL is the longest address that is shown.
const maxURL = 2000

// link writes the address of a link behind its text.
func (r *renderer) link(e *element) {
	url := linkAddress(e.href)
	f := r.top()
	if url == "" || e.link > len(f.out) {
		return
	}
	text := strings.TrimSpace(string(f.out[e.link:]))
	if text == "" && r.images == 0 || sameAddress(text, url) {
		return
	}
	lines, space := f.lines, f.space
	if text != "" {
		f.lines, f.space = 0, true
	}
	r.write("("+url+")", &plainStyle)
	f.lines, f.space = max(f.lines, lines), space && lines == 0
}

// plainStyle is of text that stands for something that is seen.
var plainStyle = style{font: normalFont}

// linkAddress returns an address that may be shown, without white space, or "".
func linkAddress(href string) string {
	url := strings.Map(func(c rune) rune {
		if unicode.IsSpace(c) || unicode.IsControl(c) {
			return -1
		}
		return c
	}, href)
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

// sameAddress reports whether the text of a link says its address.
func sameAddress(text, url string) bool {
	return bareAddress(text) == bareAddress(url)
}

func bareAddress(s string) string {
	s = strings.Join(strings.Fields(s), "")
	for _, scheme := range []string{"https://", "http://", "mailto:"} {
		if len(s) >= len(scheme) && strings.EqualFold(s[:len(scheme)], scheme) {
			s = s[len(scheme):]
			break
		}
	}
	s = strings.TrimSuffix(s, "/")
	if !strings.Contains(s, "/") { // only a path minds its case
		s = strings.ToLower(s)
	}
	return s
}

// finish returns everything that was written.
func (r *renderer) finish() string {
	for len(r.open) > 0 {
		r.pop()
	}
	return string(r.frames[0].out)
}

func attr(attrs []html.Attribute, name string) string {
	for _, a := range attrs {
		if a.Key == name && a.Namespace == "" {
			return a.Val
		}
	}
	return ""
}
