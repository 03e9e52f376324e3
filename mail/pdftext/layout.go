package pdftext

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// Distances as multiples of the font size.
const (
	wordGap      = 0.15 // a gap this wide is a space
	cellGap      = 1.0  // a gap this wide separates fragments
	lineOverlap  = 0.5  // base lines nearer than this are one line
	paragraphGap = 1.9  // base lines farther apart get an empty line between them
)

// A gap between columns of running text continues for this many lines. On either side of it
// lines have this many characters on average, and most of them this part of the longest one's
// width: the cells of a table are shorter, or of different widths, in at least one column.
const (
	columnLines = 3
	columnRunes = 15
	columnFull  = 0.7
)

// text returns the text of a page in reading order.
func (c *canvas) text() string {
	var parts []string
	for turn := range 4 {
		var fragments []fragment
		for _, f := range c.fragments {
			if f.turn == turn && (!f.invisible || c.images) && len(bytes.TrimSpace(f.text)) > 0 {
				fragments = append(fragments, f)
			}
		}
		if len(fragments) > 0 {
			var b strings.Builder
			writeRows(&b, rowsOf(fragments), 0)
			parts = append(parts, b.String())
		}
	}
	return strings.Join(parts, "\n\n")
}

// row is the fragments on one base line, from left to right.
type row []fragment

func (r row) y() float64 { return r[0].y }
func (r row) size() float64 {
	return slices.MaxFunc(r, func(a, b fragment) int { return cmp.Compare(a.size, b.size) }).size
}

// rowsOf sorts fragments into rows, from top to bottom.
func rowsOf(fragments []fragment) []row {
	slices.SortStableFunc(fragments, func(a, b fragment) int { return cmp.Compare(b.y, a.y) })
	var rows []row
	for _, f := range fragments {
		if n := len(rows); n > 0 {
			first := rows[n-1][0]
			if first.y-f.y < lineOverlap*min(first.size, f.size) {
				rows[n-1] = append(rows[n-1], f)
				continue
			}
		}
		rows = append(rows, row{f})
	}
	for i, r := range rows {
		slices.SortStableFunc(r, func(a, b fragment) int { return cmp.Compare(a.x, b.x) })
		rows[i] = joined(r)
	}
	return rows
}

// joined merges the fragments of a row without a gap between them, and drops
// those drawn twice, as writers do to make letters bold.
func joined(r row) row {
	out := r[:0]
	for _, f := range r {
		if len(out) > 0 {
			last := &out[len(out)-1]
			if bytes.Equal(last.text, f.text) && math.Abs(last.x-f.x) < 0.2*f.size {
				continue
			}
			if gap := (f.x - last.end) / max(f.size, last.size); gap < cellGap {
				if gap >= wordGap && !bytes.HasSuffix(last.text, []byte(" ")) {
					last.text = append(last.text, ' ')
				}
				last.text = append(last.text, f.text...)
				last.end = max(last.end, f.end)
				last.size = max(last.size, f.size)
				continue
			}
		}
		out = append(out, f)
	}
	return out
}

// writeRows writes rows; columns follow one another.
func writeRows(b *strings.Builder, rows []row, depth int) {
	var above row
	line := func(r row) {
		switch {
		case above == nil && b.Len() > 0:
			b.WriteString("\n\n")
		case above != nil && above.y()-r.y() > paragraphGap*max(above.size(), r.size()):
			b.WriteString("\n\n")
		case above != nil:
			b.WriteByte('\n')
		}
		above = r
		for i, f := range r {
			if i > 0 {
				b.WriteString("  ")
			}
			b.Write(bytes.TrimSpace(f.text))
		}
	}
	for i := 0; i < len(rows); {
		n, gutter := columns(rows[i:])
		if n == 0 || depth > 8 {
			line(rows[i])
			i++
			continue
		}
		var left, right []row
		for _, r := range rows[i : i+n] {
			cut := 0
			for cut < len(r) && r[cut].x < gutter {
				cut++
			}
			if cut > 0 {
				left = append(left, r[:cut])
			}
			if cut < len(r) {
				right = append(right, r[cut:])
			}
		}
		writeRows(b, left, depth+1)
		writeRows(b, right, depth+1)
		above = nil
		i += n
	}
}

// columns returns how many of the first rows are in columns, and the position of
// the gap between the first column and the rest. Any of the first rows may show
// the gap: a column may begin higher than the one beside it.
func columns(rows []row) (n int, gutter float64) {
	for _, r := range rows[:min(columnLines, len(rows))] {
		for i := 1; i < len(r); i++ {
			if n, gutter := columnsAt(rows, r[i-1].end, r[i].x); n > 0 {
				return n, gutter
			}
		}
		if len(r) > 1 {
			break
		}
	}
	return 0, 0
}

// columnsAt follows a gap down the rows for as long as it stays empty.
func columnsAt(rows []row, low, high float64) (n int, gutter float64) {
	var sides [2]row
	both := 0
	for _, r := range rows {
		l, h, middle, left := low, high, (low+high)/2, 0
		for i, f := range r {
			switch {
			case f.end <= middle:
				l, left = max(l, f.end), i+1
			case f.x >= middle:
				h = min(h, f.x)
			default:
				h = l // it crosses the gap
			}
		}
		if h-l < 0.8*r.size() {
			break
		}
		low, high = l, h
		n++
		sides[0], sides[1] = append(sides[0], r[:left]...), append(sides[1], r[left:]...)
		if 0 < left && left < len(r) {
			both++
		}
	}
	if both < columnLines || !running(sides[0]) || !running(sides[1]) {
		return 0, 0
	}
	return n, (low + high) / 2
}

// running reports whether fragments are lines of running text, and no cells of a table: most
// are long, and about as long as each other.
func running(lines row) bool {
	runes, longest, full := 0, 0.0, 0
	for _, f := range lines {
		runes += utf8.RuneCount(f.text)
		longest = max(longest, f.end-f.x)
	}
	for _, f := range lines {
		if f.end-f.x >= columnFull*longest {
			full++
		}
	}
	return runes >= columnRunes*len(lines) && 2*full > len(lines)
}
