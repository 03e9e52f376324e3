package visible

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"

	"github.com/postern-mail/postern/mail/internal/quoted"
)

// begin writes what stands before the content of an element.
func (r *renderer) begin(e *element, attrs []html.Attribute) {
	r.apart(e)
	e.quote = quoted.KindOf(e.tag, attrs)
	switch e.quote {
	case quoted.HeaderBelow:
		f := r.top()
		r.newline(1)
		f.flush()
		f.out = append(f.out, string(quoted.HeaderMark)...)
		r.newline(1)
	case quoted.NotQuote:
	default:
		r.enter(e)
	}
	switch e.tag {
	case "br":
		r.lineBreak()
	case "hr":
		r.text("---")
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
			r.text(attr(attrs, "value"))
		}
	case "q":
		r.text("“")
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
	case "pre", "dd":
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
		if e.quote != quoted.NotQuote {
			r.quotes--
		}
	}
	switch {
	case !e.frame:
	case e.quote == quoted.Quotation, e.quote == quoted.Introduction && !quoted.Forwards(text), e.quote == quoted.BareQuotation && quoted.BareHistory(text):
		r.block(string(quoted.QuoteMark), string(quoted.QuoteMark), text)
	case e.quote == quoted.Indentation:
		r.block("  ", "  ", text)
	case e.quote != quoted.NotQuote:
		r.block("", "", text)
	}
	switch e.tag {
	case "a":
		r.link(e)
	case "q":
		r.text("”")
	case "li":
		if e.frame && text != "" {
			marker := "- "
			if e.list == "ol" {
				marker = strconv.Itoa(e.items) + ". "
			}
			r.block(marker, strings.Repeat(" ", len(marker)), text)
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
	r.apart(e)
}

// apart keeps an element apart from what stands beside it.
func (r *renderer) apart(e *element) {
	if n := r.lineEnds(e); n > 0 {
		r.newline(n)
	} else if kind := e.style.kind; kind == inlineBlock || kind == cellBox || e.tag == "img" {
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

func (r *renderer) text(s string) {
	st := &r.page.root
	if n := len(r.open); n > 0 {
		st = &r.open[n-1].style
	}
	if !st.visible() {
		r.hidden += characters(s)
		return
	}
	r.write(s, st)
}

// write adds visible text with its white space collapsed, or kept in a pre.
func (r *renderer) write(s string, st *style) {
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
		case '\r', quoted.QuoteMark, quoted.HeaderMark:
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
	case 0x00AD, 0x034F, 0x200B, 0x2060, 0xFEFF, quoted.QuoteMark, quoted.HeaderMark:
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
