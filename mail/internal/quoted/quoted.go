package quoted

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/postern-mail/postern/internal/plain"
)

// maxQuotes is the greatest quote depth that is written; deeper text is shown
// at that depth.
const maxQuotes = 20

// Line is one line of a text to be shown.
type Line struct {
	Text   string // without its quotation marks and white space at its end, but for a signature's "-- "; does not begin with ">"
	Depth  int    // of quotation; 0 is the sender's own text
	Header bool   // markup says that the header of an older message begins here
	Bare   bool   // history that is written without a mark: what a program put above the marked text
}

func (l Line) blank() bool { return l.Text == "" }

// String returns the line with "> " for every depth.
func (l Line) String() string {
	if l.Depth == 0 || l.Bare {
		return l.Text
	}
	return strings.TrimSuffix(strings.Repeat("> ", l.Depth)+l.Text, " ")
}

func runes(lines ...Line) int { return utf8.RuneCountInString(Join(lines)) }

const (
	lineSpace = " \t\u00A0"
	signature = "-- " // alone on its line: a signature is below (RFC 3676 section 4.3)
)

// Plain splits clean plain text into lines and removes their quotation marks.
// In flowed text a mark is the first character of a line; elsewhere one or two
// spaces may precede a mark that has a space behind it.
func Plain(s string, flowed bool) []Line {
	lines := make([]Line, 0, strings.Count(s, "\n")+1)
	munged := -2 // index of a line that may only look quoted
	for raw := range strings.SplitSeq(s, "\n") {
		if raw = strings.TrimRight(raw, "\r"); raw != signature {
			raw = strings.TrimRight(raw, lineSpace)
		}
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

// Tidy removes empty lines around the text and consecutive ones beyond most.
// An empty line between two lines of history becomes history.
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
		out.WriteString(l.String())
	}
	return out.String()
}

// segment is a run of lines that are all new or all history, without the empty
// lines around it.
type segment struct {
	lines   []Line
	history bool
	gap     int // empty lines before it
}

// segments splits tidy lines.
func segments(lines []Line) []segment {
	var all []segment
	blanks := 0
	for _, l := range lines {
		n := len(all) - 1
		switch {
		case l.blank() && l.Depth == 0:
			blanks++
			continue
		case n >= 0 && all[n].history == (l.Depth > 0):
			all[n].lines = append(append(all[n].lines, make([]Line, blanks)...), l)
		case n < 0:
			all = append(all, segment{lines: []Line{l}, history: l.Depth > 0})
		default:
			all = append(all, segment{lines: []Line{l}, history: l.Depth > 0, gap: blanks})
		}
		blanks = 0
	}
	return all
}

// layout joins segments. A segment without lines leaves the larger of the
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
		out.WriteString(Join(s.lines))
	}
	return out.String()
}

// layoutNew joins the new segments.
func layoutNew(all []segment) string {
	fresh := slices.Clone(all)
	for i := range fresh {
		if fresh[i].history {
			fresh[i].lines = nil
		}
	}
	return layout(fresh)
}

// Fit returns at most maxRunes of the text of tidy lines and whether anything is
// missing. New text goes before history. Each run of history first gets a line that
// counts its missing lines; the remaining room goes to the runs in order. Where there
// is no room for those lines, the later runs are left out without one.
func Fit(lines []Line, maxRunes int) (string, bool) {
	all := segments(lines)
	whole, fresh := layout(all), layoutNew(all)
	if fresh == "" || utf8.RuneCountInString(whole) <= maxRunes {
		return plain.Head(whole, maxRunes)
	}
	room := maxRunes - utf8.RuneCountInString(fresh)
	silent := len(all) // index of the first run without such a line
	for i, s := range all {
		if !s.history {
			continue
		}
		// A run adds a line end, and the smaller of the gaps around it.
		least := min(runes(s.lines...), runes(leftOut(len(s.lines)))) + 1 + s.gap
		if i == 0 {
			least += all[1].gap
		} else if i+1 < len(all) {
			least -= max(s.gap-all[i+1].gap, 0)
		}
		if least > room {
			silent = i
			break
		}
		room -= least
	}
	for i := range all {
		s := &all[i]
		switch extra := runes(s.lines...) - runes(leftOut(len(s.lines))); {
		case !s.history:
		case i >= silent:
			s.lines = nil
		case extra <= room:
			room -= max(extra, 0)
		default:
			s.lines, room = shorten(s.lines, room), 0
		}
	}
	text, _ := plain.Head(layout(all), maxRunes)
	return text, true
}

// Page returns at most maxRunes of the text of tidy lines from rune number from on, where 1
// is the first, and the number at which the rest begins, 0 where nothing is missing. From 0
// it returns that of Fit, where new text goes first: the rest begins with the first rune
// that is missing then, and later pages give the lines in their order.
func Page(lines []Line, from, maxRunes int) (text string, next int) {
	whole := layout(segments(lines))
	if from <= 0 {
		text, cut := Fit(lines, maxRunes)
		if !cut {
			return text, 0
		}
		same := 0
		for same < len(text) && same < len(whole) && text[same] == whole[same] {
			same++
		}
		if same < len(text) { // a note stands there for lines
			same = strings.LastIndexByte(whole[:same], '\n') + 1
		}
		return text, utf8.RuneCountInString(whole[:same]) + 1
	}
	rest := whole
	for n := 1; n < from && rest != ""; n++ {
		_, size := utf8.DecodeRuneInString(rest)
		rest = rest[size:]
	}
	text, cut := plain.Head(rest, maxRunes)
	if cut {
		next = from + utf8.RuneCountInString(text)
	}
	return text, next
}

// shorten returns the first lines that fit into room runes, and a line that
// counts the missing ones, which does not count towards room.
func shorten(lines []Line, room int) []Line {
	const worth = 40 // runes of a line that is cut
	shown := 0
	for shown < len(lines) && runes(lines[shown])+1 <= room {
		room -= runes(lines[shown]) + 1
		shown++
	}
	out := slices.Clone(lines[:shown])
	if next := lines[shown]; room > worth+2*next.Depth {
		next.Text, _ = plain.Head(next.Text, room-2*next.Depth-len(" …"))
		next.Text = strings.TrimRight(next.Text, lineSpace) + " …"
		out = append(out, next)
	}
	return append(out, leftOut(len(lines)-shown))
}

// NewRunes counts the runes of the new lines.
func NewRunes(lines []Line) int {
	n := 0
	for _, l := range lines {
		if l.Depth == 0 && !l.blank() {
			n += utf8.RuneCountInString(l.Text) + 1
		}
	}
	return max(n-1, 0)
}

// leftOut returns the line that replaces n lines of history.
func leftOut(n int) Line {
	if n == 1 {
		return Line{Text: "[quoted text: 1 line left out]", Depth: 1}
	}
	return Line{Text: "[quoted text: " + strconv.Itoa(n) + " lines left out]", Depth: 1}
}

// New returns the text of the lines that are new. An empty line beside history stays.
func New(lines []Line) string { return layoutNew(segments(lines)) }

// Opening returns the beginning of what is new in tidy lines, or of the history when
// nothing is new, as one line of at most maxRunes runes with white space collapsed. It
// ends with "…" where more follows, behind a whole word where possible, and never within a
// character.
func Opening(lines []Line, maxRunes int) string {
	var out strings.Builder
	fresh := NewRunes(lines) > 0
	// Words behind the limit decide only whether the text is cut.
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
	switch {
	case room == 0:
		return ""
	case utf8.RuneCountInString(s) <= room:
		return s
	}
	short, _ := plain.Head(s, room-1)
	if short != "" && s[len(short)] != ' ' {
		// A word that fills half of the line is cut: it may be the only one, as in
		// scripts without spaces.
		if i := strings.LastIndexByte(short, ' '); i >= len(short)/2 {
			short = short[:i]
		}
	}
	return strings.TrimRight(short, " ") + "…"
}

// Around is Opening from a little before the first place where words stand in it, without
// regard to case, where that is beyond its end. It begins with "…" then.
func Around(lines []Line, words string, maxRunes int) string {
	whole := Opening(lines, math.MaxInt32)
	at := regexp.MustCompile(`(?i)` + regexp.QuoteMeta(strings.Join(strings.Fields(words), " "))).FindStringIndex(whole)
	if at == nil || words == "" || utf8.RuneCountInString(whole[:at[1]]) < maxRunes {
		return Opening(lines, maxRunes)
	}
	before := []rune(whole[:at[0]])
	before = before[len(before)-min(len(before), maxRunes/3):]
	if i := slices.Index(before, ' '); i >= 0 {
		before = before[i+1:]
	}
	return plain.Clip("…"+string(before)+whole[at[0]:], maxRunes)
}
