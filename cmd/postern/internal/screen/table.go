package screen

import (
	"slices"
	"strings"

	"github.com/mattn/go-runewidth"
)

// column is one of a table.
type column struct {
	name  string
	cells []string // visible
	cut   bool     // what others wrote, of which a part tells enough
	usual bool     // left out of a narrow window where no two cells say different things
}

// tableOf makes a table of a list: the headings of its columns, with commas between them, ~ before one of which a part
// tells enough and ? before one that may be usual; and the cells of each entry, in text of one or several lines.
func tableOf[E any](headings string, list []E, cells func(*E) []string) []column {
	var table []column
	for heading := range strings.SplitSeq(headings, ",") {
		table = append(table, column{name: strings.TrimLeft(heading, "~?"), cut: heading[0] == '~', usual: heading[0] == '?'})
	}
	for i := range list {
		for c, cell := range cells(&list[i]) {
			table[c].cells = append(table[c].cells, cell)
		}
	}
	return table
}

const narrowest = 10 // columns of what is cut

// table gives every column the width it needs. Where that is too much, it cuts what may be cut,
// the widest first, else breaks the last column between words; and where even that does not
// fit, it writes nothing and is false. A column without any content is left out.
func (p *painter) table(columns []column, indent string) bool {
	columns = slices.DeleteFunc(slices.Clone(columns), func(c column) bool { return strings.Join(c.cells, "") == "" })
	if len(columns) == 0 {
		return true
	}
	widths := make([]int, len(columns))
	room := p.Width - runewidth.StringWidth(indent) + 2
	for i, c := range columns {
		widths[i] = runewidth.StringWidth(c.name)
		for _, cell := range c.cells {
			for part := range strings.SplitSeq(cell, "\n") {
				widths[i] = max(widths[i], runewidth.StringWidth(part))
			}
		}
		room -= widths[i] + 2
	}
	for ; room < 0; room++ {
		widest := -1
		for i, c := range columns {
			if c.cut && widths[i] > narrowest && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	last := len(columns) - 1
	if widths[last] += min(room, 0); widths[last] < min(20, p.Width/3) && room < 0 {
		return false
	}
	line := func(style string, cell func(column) string) {
		head := indent
		for i, c := range columns[:last] {
			head += fill(cell(c), widths[i]) + "  "
		}
		for part := range strings.SplitSeq(cell(columns[last]), "\n") {
			if columns[last].cut {
				part = Cut(part, widths[last])
			}
			for _, l := range Words(part, widths[last]) {
				p.line(p.in(style, strings.TrimRight(head+l, " ")))
				head = strings.Repeat(" ", runewidth.StringWidth(head))
			}
		}
	}
	line(styleBold, func(c column) string { return c.name })
	for i := range columns[0].cells {
		line("", func(c column) string { return c.cells[i] })
	}
	return true
}

// rows draws a table, or where that does not fit one without the usual, or records.
func (p *painter) rows(table []column) {
	less := slices.DeleteFunc(slices.Clone(table), func(c column) bool {
		said := slices.DeleteFunc(slices.Clone(c.cells), func(s string) bool { return s == "" })
		return c.usual && len(slices.Compact(said)) < 2
	})
	if p.table(table, "") || p.table(less, "") {
		return
	}
	for i := range table[0].cells {
		var fields [][2]string
		for _, c := range table {
			fields = append(fields, [2]string{c.name, c.cells[i]})
		}
		p.record(fields, "")
		p.line("") // behind the last too: what is said of all of them is none of its fields
	}
}

// record writes what has a name each, the values aligned. What says nothing is left out.
func (p *painter) record(rows [][2]string, indent string) {
	longest := 0
	if !p.exact {
		rows = slices.DeleteFunc(rows, func(r [2]string) bool { return r[1] == "" })
	}
	for _, r := range rows {
		longest = max(longest, runewidth.StringWidth(r[0]))
	}
	longest = min(longest, p.Width/2)
	rest := indent + strings.Repeat(" ", longest+2)
	for _, r := range rows {
		name, rest := indent+runewidth.FillRight(r[0], longest)+"  ", rest
		wide := func(word string) bool { return runewidth.StringWidth(word) > p.Width-len(rest) }
		if slices.ContainsFunc(strings.Fields(r[1]), wide) { // such as an id or an address
			p.line(p.in(styleBold, name))
			name, rest = indent+"  ", indent+"  "
		}
		for part := range strings.SplitSeq(r[1], "\n") {
			for _, l := range Words(part, p.Width-len(rest)) {
				p.line(p.in(styleBold, name), l)
				name = rest
			}
		}
	}
}
