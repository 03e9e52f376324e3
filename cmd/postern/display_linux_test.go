package main

import (
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
)

// cell is a character on a display; of a wide one the second cell is empty.
type cell struct {
	text string
	bold bool
}

// display is what a terminal of so many columns shows of what it was sent, with all that has
// scrolled away.
type display struct {
	columns  int
	lines    [][]cell
	row, col int
	bold     bool // what is written next
}

// newDisplay shows what was sent so far; its last character may not be all there yet. What
// steers a terminal and is not known here is an error.
func newDisplay(columns int, sent string) (*display, error) {
	d := &display{columns: columns, lines: make([][]cell, 1)}
	for sent != "" {
		if m := control.FindStringIndex(sent); m != nil && m[0] == 0 {
			if err := d.steer(sent[:m[1]]); err != nil {
				return nil, err
			}
			sent = sent[m[1]:]
			continue
		}
		if sent[0] == '\x1b' || !utf8.FullRuneInString(sent) {
			break
		}
		r, n := utf8.DecodeRuneInString(sent)
		if r < ' ' && !strings.ContainsRune("\r\n\b\t", r) {
			return nil, fmt.Errorf("the character %q is not known", r)
		}
		d.put(r)
		sent = sent[n:]
	}
	return d, nil
}

// put shows a character, or moves as it says.
func (d *display) put(r rune) {
	switch r {
	case '\r':
		d.col = 0
		return
	case '\n':
		d.down()
		return
	case '\b':
		d.col = max(d.col-1, 0)
		return
	case '\t':
		d.col = min(d.col/8*8+8, d.columns-1)
		return
	}
	width := runewidth.RuneWidth(r)
	if width == 0 { // it belongs to the one before
		if line := d.lines[d.row]; d.col > 0 && d.col <= len(line) {
			line[d.col-1].text += string(r)
		}
		return
	}
	if d.col+width > d.columns {
		d.col = 0
		d.down()
	}
	for len(d.lines[d.row]) < d.col+width {
		d.lines[d.row] = append(d.lines[d.row], cell{text: " "})
	}
	d.lines[d.row][d.col] = cell{string(r), d.bold}
	if width == 2 {
		d.lines[d.row][d.col+1] = cell{"", d.bold}
	}
	d.col += width
}

func (d *display) down() {
	if d.row++; d.row == len(d.lines) {
		d.lines = append(d.lines, nil)
	}
}

// steer does what a sequence says that is not shown.
func (d *display) steer(sequence string) error {
	last, numbers := sequence[len(sequence)-1], strings.TrimPrefix(sequence[:len(sequence)-1], "\x1b[")
	n, _ := strconv.Atoi(numbers)
	switch {
	case !strings.HasPrefix(sequence, "\x1b["):
		return fmt.Errorf("%q is not known", sequence)
	case strings.ContainsAny(numbers, "?<>=$"): // a mode of the terminal or its keyboard
	case last == 'm': // of all looks a picture has this one
		d.bold = numbers == "1" || d.bold && numbers != "" && numbers != "0" && numbers != "22"
	case last == 'A':
		d.row = max(d.row-max(n, 1), 0)
	case last == 'B':
		d.row = min(d.row+max(n, 1), len(d.lines)-1)
	case last == 'C':
		d.col = min(d.col+max(n, 1), d.columns-1)
	case last == 'D':
		d.col = max(d.col-max(n, 1), 0)
	case last == 'G':
		d.col = min(max(n, 1), d.columns) - 1
	case last == 'X':
		for i := d.col; i < min(d.col+max(n, 1), len(d.lines[d.row])); i++ {
			d.lines[d.row][i] = cell{text: " "}
		}
	case last == 'J' && n == 0:
		d.lines = d.lines[:d.row+1]
		d.lines[d.row] = d.lines[d.row][:min(d.col, len(d.lines[d.row]))]
	case last == 'K' && n == 0:
		d.lines[d.row] = d.lines[d.row][:min(d.col, len(d.lines[d.row]))]
	default:
		return fmt.Errorf("%q is not known", sequence)
	}
	return nil
}

// text is the lines without styles and without spaces at their ends.
func text(lines [][]cell) []string {
	var all []string
	for _, line := range lines {
		var b strings.Builder
		for _, c := range line {
			b.WriteString(c.text)
		}
		all = append(all, strings.TrimRight(b.String(), " "))
	}
	return all
}

// picture draws lines of a display as SVG.
func picture(title string, columns int, lines [][]cell) string {
	const column, height, margin = 8.4, 19, 16
	width, tall := int(float64(columns)*column)+2*margin, len(lines)*height+2*margin
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="14" fill="#1f2328">
<title>%s</title>
<rect x="0.5" y="0.5" width="%d" height="%d" rx="8" fill="#fbfaf7" stroke="#d0d0c8"/>
`, width, tall, html.EscapeString(title), width-1, tall-1)
	for i, line := range lines {
		for at := 0; at < len(line); {
			from, run, weight := at, "", ""
			for at < len(line) && line[at].bold == line[from].bold {
				run += line[at].text
				at++
			}
			if line[from].bold {
				weight = ` font-weight="bold"`
			}
			if strings.TrimSpace(run) != "" { // each run stands in its column, whatever the font's width
				fmt.Fprintf(&b, "<text x=\"%.1f\" y=\"%d\"%s xml:space=\"preserve\">%s</text>\n",
					margin+column*float64(from), margin+i*height+14, weight, html.EscapeString(strings.TrimRight(run, " ")))
			}
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// golden compares what terminals show with a golden file, a part at a time. With -update it
// writes the file anew.
type golden struct {
	t       *testing.T
	name    string // of the file
	columns int
	varies  *strings.Replacer // of this run, with what it is written as, which is as wide
	want    string            // the rest of the file
	got     strings.Builder

	of    *tty
	shown []string // of that terminal before
}

// varies is what may differ from run to run: a time that is now, an id of the outbox, a
// fingerprint, and that a login took long.
var varies = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d|01[a-z0-9]{14}\b|([a-z2-7]{4}-){12}[a-z2-7]{4}\b| within \d+\.\d s`)

// alike is what one run sends to a terminal as any other would, with nothing moved.
func (g *golden) alike(sent string) string {
	return varies.ReplaceAllStringFunc(g.varies.Replace(sent), func(v string) string {
		switch at, err := time.Parse("2006-01-02 15:04", v); {
		case err == nil && time.Since(at).Abs() > time.Hour:
			return v // the message's own
		case err == nil:
			return thatDay().Format("2006-01-02 15:04")
		case strings.HasPrefix(v, " within"):
			return ""
		case strings.Contains(v, "-"):
			return strings.Repeat("a2b3-", 12) + "a2b3"
		}
		return "01m7c4ysvjr7jq38"
	})
}

func newGolden(t *testing.T, name string, columns int, varies ...string) *golden {
	t.Helper()
	g := &golden{t: t, name: filepath.Join("testdata", name), columns: columns, varies: strings.NewReplacer(varies...)}
	if !*update {
		want, err := os.ReadFile(g.name)
		if err != nil {
			t.Fatal(err)
		}
		g.want = string(want)
	}
	return g
}

// shows waits until a terminal shows what the golden file has next, and among it this text: the
// lines that differ from those it showed at the last call. After a tenth of what a test waits for
// without anything new it is what it is. The text is the title of the part, too.
func (g *golden) shows(x *tty, title string) {
	g.t.Helper()
	if g.of != x {
		g.of, g.shown = x, nil
	}
	head := "──── " + title + "\n"
	want, found := strings.CutPrefix(g.want, head)
	if !found && !*update {
		g.t.Fatalf("%s has no part %q next; where that is meant, -args -update writes it anew", g.name, title)
	}
	if i := strings.Index(want, "──── "); i >= 0 {
		want = want[:i]
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	part, now := "", []string(nil)
	for known, quiet := -1, *waited/10; ; quiet = *waited / 10 {
		known = x.raw.Len()
		d, err := newDisplay(g.columns, g.alike(x.raw.String()))
		if err != nil {
			g.t.Fatal(err)
		}
		now = text(d.lines)
		same := 0
		for same < min(len(now), len(g.shown)) && now[same] == g.shown[same] {
			same++
		}
		part = strings.TrimRight(strings.Join(now[same:], "\n"), "\n") + "\n"
		if *update && strings.Contains(part, title) {
			quiet = 500 * time.Millisecond // what else is drawn
		}
		if !*update && part == want || !x.writes(known, quiet) {
			break
		}
	}
	if *update && !strings.Contains(part, title) {
		g.t.Fatalf("%q does not come:\n%s", title, part)
	}
	if !*update && part != want {
		g.t.Fatalf("%q of %s is another; where that is meant, -args -update writes it anew:\n%s\nin place of\n%s", title, g.name, part, want)
	}
	g.want = strings.TrimPrefix(g.want, head+want)
	g.shown = now
	g.got.WriteString(head + part)
}

// goes types each answer once the question is shown.
func (g *golden) goes(x *tty, steps ...step) {
	g.t.Helper()
	for _, s := range steps {
		g.shows(x, s.sees)
		x.types(s.types)
	}
}

// end checks that the golden file has no more, or writes it.
func (g *golden) end() {
	g.t.Helper()
	if *update {
		if err := os.WriteFile(g.name, []byte(g.got.String()), 0o600); err != nil {
			g.t.Fatal(err)
		}
	} else if g.want != "" {
		g.t.Errorf("%s has more: %s", g.name, g.want)
	}
}
