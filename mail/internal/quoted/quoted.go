package quoted

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/postern-mail/postern/internal/plain"
)

// maxQuotes is the deepest quotation that is written as such; deeper text is
// shown at that depth.
const maxQuotes = 20

// Line is one line of a text that is about to be shown.
type Line struct {
	Text   string // without its quotation marks and white space at its end; does not begin with ">"
	Depth  int    // of quotation; 0 is what the sender says now
	Header bool   // markup says that the header of an older message begins here
}

func (l Line) blank() bool { return l.Text == "" }

// appendTo writes the line with "> " for every depth.
func (l Line) appendTo(out *strings.Builder) {
	if l.Depth == 0 {
		out.WriteString(l.Text)
		return
	}
	out.WriteString(strings.Repeat("> ", l.Depth-1))
	out.WriteByte('>')
	if l.Text != "" {
		out.WriteByte(' ')
		out.WriteString(l.Text)
	}
}

// runes returns how long the line is when it is written.
func (l Line) runes() int {
	n := utf8.RuneCountInString(l.Text)
	switch {
	case l.Depth > 0 && l.Text == "":
		n = 2*l.Depth - 1
	case l.Depth > 0:
		n += 2 * l.Depth
	}
	return n
}

const lineSpace = " \t\u00A0"

// Plain splits clean plain text into lines and takes the quotation marks
// off them. In flowed text a mark is the first character of a line; elsewhere a
// space or two may stand before one that has a space behind it.
func Plain(s string, flowed bool) []Line {
	lines := make([]Line, 0, strings.Count(s, "\n")+1)
	munged := -2 // index of a line that may only look quoted
	for raw := range strings.SplitSeq(s, "\n") {
		raw = strings.TrimRight(raw, lineSpace)
		depth, text := takeMarks(raw, flowed)
		n := len(lines)
		if munged == n-1 && depth == 0 {
			lines[munged].Depth = 0
		}
		lines = append(lines, Line{Text: text, Depth: depth})
		// Mailbox files put a ">" before "From " at the start of a line.
		if strings.HasPrefix(raw, ">From ") && (n == 0 || lines[n-1].Depth == 0 && !strings.HasSuffix(lines[n-1].Text, ":")) {
			munged = n
		}
	}
	if n := len(lines); munged == n-1 {
		lines[munged].Depth = 0
	}
	return lines
}

// takeMarks counts and removes the quotation marks before a line.
func takeMarks(s string, flowed bool) (depth int, text string) {
	if !flowed {
		if t := strings.TrimLeft(s, " "); len(s)-len(t) <= 2 && (t == ">" || strings.HasPrefix(t, "> ") || strings.HasPrefix(t, ">>")) {
			s = t
		}
	}
	for t := s; ; t = strings.TrimLeft(s, " ") {
		rest, ok := strings.CutPrefix(t, ">")
		if !ok {
			rest, ok = strings.CutPrefix(t, "＞") // as Japanese keyboards write it
		}
		if !ok || len(s)-len(t) > 2 {
			break
		}
		s = rest
		depth++
	}
	if depth == 0 {
		return 0, s
	}
	return min(depth, maxQuotes), strings.TrimRight(strings.TrimPrefix(s, " "), lineSpace)
}

// Tidy removes empty lines around the text and those beyond most that follow
// one another. An empty line between two lines of history becomes history.
func Tidy(lines []Line, most int) []Line {
	out := lines[:0]
	blanks, header := 0, false
	for _, l := range lines {
		header = header || l.Header
		if l.blank() {
			blanks++
			continue
		}
		l.Header, header = header, false
		if n := len(out); n > 0 {
			depth := min(out[n-1].Depth, l.Depth)
			for range min(blanks, most) {
				out = append(out, Line{Depth: depth})
			}
		}
		out = append(out, l)
		blanks = 0
	}
	return out
}

// Join writes lines as a text.
func Join(lines []Line) string {
	var out strings.Builder
	for i, l := range lines {
		if i > 0 {
			out.WriteByte('\n')
		}
		l.appendTo(&out)
	}
	return out.String()
}

// segment is a run of lines that are all new or all history, without the empty
// lines around it.
type segment struct {
	lines   []Line
	history bool
	gap     int // empty lines before it
	runes   int // of its lines, with the line ends between them
}

// segments splits lines that are tidy.
func segments(lines []Line) []segment {
	var all []segment
	blanks := 0
	for i, l := range lines {
		if l.blank() && l.Depth == 0 {
			blanks++
			continue
		}
		history := l.Depth > 0
		n := len(all) - 1
		if n < 0 || all[n].history != history {
			all = append(all, segment{history: history, gap: blanks, lines: lines[i:i:len(lines)]})
			n++
			if n == 0 {
				all[n].gap = 0
			}
		} else {
			for range blanks {
				all[n].lines = append(all[n].lines, Line{})
			}
			all[n].runes += blanks
		}
		if len(all[n].lines) > 0 {
			all[n].runes++
		}
		all[n].lines = append(all[n].lines, l)
		all[n].runes += l.runes()
		blanks = 0
	}
	return all
}

// layout puts segments together. One without lines leaves the larger of the
// gaps around it.
func layout(all []segment) string {
	var out strings.Builder
	gap := 0
	for _, s := range all {
		gap = max(gap, s.gap)
		if len(s.lines) == 0 {
			continue
		}
		if out.Len() > 0 {
			out.WriteString(strings.Repeat("\n", gap+1))
		}
		gap = 0
		for i, l := range s.lines {
			if i > 0 {
				out.WriteByte('\n')
			}
			l.appendTo(&out)
		}
	}
	return out.String()
}

// Fit returns at most maxRunes of the text of tidy lines and whether anything is
// missing. What is new goes before history; see Text.
func Fit(lines []Line, maxRunes int) (string, bool) {
	all := segments(lines)
	total, fresh := 0, 0
	news := 0
	for i, s := range all {
		total += s.runes
		if i > 0 {
			total += 1 + s.gap
		}
		if s.history {
			continue
		}
		if news > 0 {
			fresh += 1 + max(s.gap, all[i-1].gap)
		}
		fresh += s.runes
		news++
	}
	switch {
	case total <= maxRunes:
		return layout(all), false
	case news == 0: // nothing but history: it is what there is to read
		return plain.Head(layout(all), maxRunes)
	}
	fill(all, maxRunes-fresh)
	text, _ := plain.Head(layout(all), maxRunes)
	return text, true
}

// fill shortens runs of history so that they take at most room runes beside the
// new text; a negative room takes them out. Each run has first of all the line
// that says what is missing, and what is then left goes to the runs in order.
func fill(all []segment, room int) {
	least := make([]int, len(all)) // what a run takes at least, with its line ends
	for i, s := range all {
		if !s.history {
			continue
		}
		// With a run come a line end, and the smaller of the gaps around it.
		around := 1 + s.gap
		switch {
		case i == 0:
			around = 1 + all[1].gap
		case i+1 < len(all):
			around = 1 + min(s.gap, all[i+1].gap)
		}
		least[i] = min(s.runes, leftOut(len(s.lines)).runes()) + around
		if least[i] > room {
			// It and those behind it are left out in silence.
			for j := i; j < len(all); j++ {
				if all[j].history {
					all[j].lines = nil
				}
			}
			break
		}
		room -= least[i]
	}
	for i := range all {
		s := &all[i]
		if !s.history || s.lines == nil {
			continue
		}
		note := leftOut(len(s.lines)).runes()
		extra := s.runes - min(s.runes, note)
		if extra <= room {
			room -= extra
			continue
		}
		s.lines = shorten(s.lines, room)
		room = 0
	}
}

// shorten returns the first lines that fit into room runes, and one that says
// how many are missing, which is not counted.
func shorten(lines []Line, room int) []Line {
	const worth = 40 // runes of a line that is cut
	shown := 0
	for shown < len(lines) && lines[shown].runes()+1 <= room {
		room -= lines[shown].runes() + 1
		shown++
	}
	var out []Line
	out = append(out, lines[:shown]...)
	if next := lines[shown]; room > worth+2*next.Depth {
		next.Text, _ = plain.Head(next.Text, room-2*next.Depth-len(" …"))
		next.Text = strings.TrimRight(next.Text, lineSpace) + " …"
		out = append(out, next)
	}
	return append(out, leftOut(len(lines)-shown))
}

// NewRunes counts the runes of what is new in lines.
func NewRunes(lines []Line) int {
	n := 0
	for _, l := range lines {
		if l.Depth == 0 && !l.blank() {
			n += l.runes() + 1
		}
	}
	return max(n-1, 0)
}

// leftOut stands for lines of history that are not shown.
func leftOut(n int) Line {
	if n == 1 {
		return Line{Text: "[quoted text: 1 line left out]", Depth: 1}
	}
	return Line{Text: "[quoted text: " + strconv.Itoa(n) + " lines left out]", Depth: 1}
}

// New returns the lines of a text in which history is marked that are new: those
// that do not begin with ">". Where history stood between them an empty line is
// left if there was one.
func New(text string) string {
	lines := markedLines(text)
	all := segments(lines)
	for i := range all {
		if all[i].history {
			all[i].lines = nil
		}
	}
	return layout(all)
}

// markedLines splits a text in which history is marked.
func markedLines(text string) []Line {
	lines := make([]Line, 0, strings.Count(text, "\n")+1)
	for s := range strings.SplitSeq(text, "\n") {
		l := Line{Text: strings.TrimRight(s, lineSpace)}
		if strings.HasPrefix(s, ">") {
			l.Depth, l.Text = takeMarks(s, true)
		}
		lines = append(lines, l)
	}
	return Tidy(lines, 2)
}

// Snippet returns the beginning of a text from Text as one line of at most
// maxRunes runes: what is new in it, or its history where nothing is, with white
// space collapsed. It ends with a whole word where there is one, and never within
// a character.
func Snippet(text string, maxRunes int) string {
	var out strings.Builder
	lines := markedLines(text)
	fresh := false
	for _, l := range lines {
		fresh = fresh || l.Depth == 0 && !l.blank()
	}
	// Words behind what is shown decide only whether it is cut.
	room := max(maxRunes, 0)
	for _, l := range lines {
		if fresh && l.Depth > 0 {
			continue
		}
		for word := range strings.FieldsSeq(l.Text) {
			if out.Len() > 0 {
				out.WriteByte(' ')
			}
			out.WriteString(word)
		}
		if out.Len() > utf8.UTFMax*(room+64) {
			break
		}
	}
	s := out.String()
	short, cut := plain.Head(s, maxRunes)
	if cut && short != "" && s[len(short)] != ' ' {
		// A word that fills half of the line is cut: there may be no other, as
		// in writing without spaces.
		if i := strings.LastIndexByte(short, ' '); i >= len(short)/2 {
			short = short[:i]
		}
	}
	return strings.TrimRight(short, " ")
}
