package message

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxQuotes is the deepest quotation that is written as such; deeper text is
// shown at that depth.
const maxQuotes = 20

// line is one line of a text that is about to be shown.
type line struct {
	text   string // without its quotation marks and white space at its end; does not begin with ">"
	depth  int    // of quotation; 0 is what the sender says now
	header bool   // markup says that the header of an older message begins here
}

func (l line) blank() bool { return l.text == "" }

// appendTo writes the line with "> " for every depth.
func (l line) appendTo(out *strings.Builder) {
	if l.depth == 0 {
		out.WriteString(l.text)
		return
	}
	out.WriteString(strings.Repeat("> ", l.depth-1))
	out.WriteByte('>')
	if l.text != "" {
		out.WriteByte(' ')
		out.WriteString(l.text)
	}
}

// runes returns how long the line is when it is written.
func (l line) runes() int {
	n := utf8.RuneCountInString(l.text)
	switch {
	case l.depth > 0 && l.text == "":
		n = 2*l.depth - 1
	case l.depth > 0:
		n += 2 * l.depth
	}
	return n
}

const lineSpace = " \t\u00A0"

// plainLines splits clean plain text into lines and takes the quotation marks
// off them. In flowed text a mark is the first character of a line; elsewhere a
// space or two may stand before one that has a space behind it.
func plainLines(s string, flowed bool) []line {
	lines := make([]line, 0, strings.Count(s, "\n")+1)
	munged := -2 // index of a line that may only look quoted
	for raw := range strings.SplitSeq(s, "\n") {
		raw = strings.TrimRight(raw, lineSpace)
		depth, text := takeMarks(raw, flowed)
		n := len(lines)
		if munged == n-1 && depth == 0 {
			lines[munged].depth = 0
		}
		lines = append(lines, line{text: text, depth: depth})
		// Mailbox files put a ">" before "From " at the start of a line.
		if strings.HasPrefix(raw, ">From ") && (n == 0 || lines[n-1].depth == 0 && !strings.HasSuffix(lines[n-1].text, ":")) {
			munged = n
		}
	}
	if n := len(lines); munged == n-1 {
		lines[munged].depth = 0
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

// tidy removes empty lines around the text and those beyond most that follow
// one another. An empty line between two lines of history becomes history.
func tidy(lines []line, most int) []line {
	out := lines[:0]
	blanks, header := 0, false
	for _, l := range lines {
		header = header || l.header
		if l.blank() {
			blanks++
			continue
		}
		l.header, header = header, false
		if n := len(out); n > 0 {
			depth := min(out[n-1].depth, l.depth)
			for range min(blanks, most) {
				out = append(out, line{depth: depth})
			}
		}
		out = append(out, l)
		blanks = 0
	}
	return out
}

// textOfLines writes lines as a text.
func textOfLines(lines []line) string {
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
	lines   []line
	history bool
	gap     int // empty lines before it
	runes   int // of its lines, with the line ends between them
}

// segments splits lines that are tidy.
func segments(lines []line) []segment {
	var all []segment
	blanks := 0
	for i, l := range lines {
		if l.blank() && l.depth == 0 {
			blanks++
			continue
		}
		history := l.depth > 0
		n := len(all) - 1
		if n < 0 || all[n].history != history {
			all = append(all, segment{history: history, gap: blanks, lines: lines[i:i:len(lines)]})
			n++
			if n == 0 {
				all[n].gap = 0
			}
		} else {
			for range blanks {
				all[n].lines = append(all[n].lines, line{})
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

// fit returns at most maxRunes of the text of tidy lines and whether anything is
// missing. What is new goes before history; see Text.
func fit(lines []line, maxRunes int) (string, bool) {
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
		return Truncate(layout(all), maxRunes)
	}
	fill(all, maxRunes-fresh)
	text, _ := Truncate(layout(all), maxRunes)
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
func shorten(lines []line, room int) []line {
	const worth = 40 // runes of a line that is cut
	shown := 0
	for shown < len(lines) && lines[shown].runes()+1 <= room {
		room -= lines[shown].runes() + 1
		shown++
	}
	var out []line
	out = append(out, lines[:shown]...)
	if next := lines[shown]; room > worth+2*next.depth {
		next.text, _ = Truncate(next.text, room-2*next.depth-len(" …"))
		next.text = strings.TrimRight(next.text, lineSpace) + " …"
		out = append(out, next)
	}
	return append(out, leftOut(len(lines)-shown))
}

// leftOut stands for lines of history that are not shown.
func leftOut(n int) line {
	if n == 1 {
		return line{text: "[quoted text: 1 line left out]", depth: 1}
	}
	return line{text: "[quoted text: " + strconv.Itoa(n) + " lines left out]", depth: 1}
}

// NewText returns the lines of a text from Text or HTMLToText that are new: those
// that do not begin with ">". Where history stood between them an empty line is
// left if there was one.
func NewText(text string) string {
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
func markedLines(text string) []line {
	lines := make([]line, 0, strings.Count(text, "\n")+1)
	for s := range strings.SplitSeq(text, "\n") {
		l := line{text: strings.TrimRight(s, lineSpace)}
		if strings.HasPrefix(s, ">") {
			l.depth, l.text = takeMarks(s, true)
		}
		lines = append(lines, l)
	}
	return tidy(lines, 2)
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
		fresh = fresh || l.depth == 0 && !l.blank()
	}
	// Words behind what is shown decide only whether it is cut.
	room := max(maxRunes, 0)
	for _, l := range lines {
		if fresh && l.depth > 0 {
			continue
		}
		for word := range strings.FieldsSeq(l.text) {
			if out.Len() > 0 {
				out.WriteByte(' ')
			}
			out.WriteString(word)
		}
		if out.Len() > utf8.UTFMax*(room+2*maxCluster) {
			break
		}
	}
	s := out.String()
	short, cut := Truncate(s, maxRunes)
	if cut && short != "" && s[len(short)] != ' ' {
		// A word that fills half of the line is cut: there may be no other, as
		// in writing without spaces.
		if i := strings.LastIndexByte(short, ' '); i >= len(short)/2 {
			short = short[:i]
		}
	}
	return strings.TrimRight(short, " ")
}
