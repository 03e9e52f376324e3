package setup

import (
	"io"
	"regexp"
	"strings"

	"github.com/mattn/go-runewidth"

	"github.com/postern-mail/postern/cmd/postern/internal/terminal"
)

// maxColumns is how wide a text becomes on a wide terminal.
const maxColumns = 90

// secondColumn is what stands before the second column of a line.
var secondColumn = regexp.MustCompile(`\A *\S+(?: \S+)* {2,}`)

// Show writes a text to a terminal with its lines folded, and to anything else as it is.
func Show(out io.Writer, text string) error {
	_, err := io.WriteString(out, folded(out, text))
	return err
}

func folded(out io.Writer, text string) string {
	if !terminal.Is(out) {
		return text
	}
	width, _ := terminal.Size(out)
	return fold(text, min(width-1, maxColumns))
}

// fold breaks lines that are wider than columns at spaces. The rest of a line goes below its
// second column, where two spaces begin one, else below its beginning. No word is broken, and
// a line behind exactly four spaces is a command to copy, which stays whole.
func fold(text string, columns int) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		trimmed := strings.TrimLeft(line, " ")
		indent := len(line) - len(trimmed)
		if runewidth.StringWidth(line) <= columns || indent == 4 {
			continue
		}
		if second := secondColumn.FindString(line); second != "" && runewidth.StringWidth(second) <= columns/2 {
			indent = runewidth.StringWidth(second)
			trimmed = line[len(second):]
		}
		folded, used := line[:len(line)-len(trimmed)], indent
		for n, word := range strings.Fields(trimmed) {
			w, at := runewidth.StringWidth(word), indent
			if w > columns-indent { // such as a path, which is to be copied
				at = max(0, min(4, columns-w))
			}
			switch {
			case used+min(n, 1)+w > columns && used > at:
				folded, used, indent = strings.TrimRight(folded, " ")+"\n"+strings.Repeat(" ", at), at, at
			case n > 0:
				folded, used = folded+" ", used+1
			}
			folded, used = folded+word, used+w
		}
		lines[i] = folded
	}
	return strings.Join(lines, "\n")
}
