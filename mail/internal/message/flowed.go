package message

import "strings"

// Flowed joins the lines of format=flowed text into its original paragraphs (RFC
// 3676). Each line of the result begins with one ">" for each quote depth and a
// space; a line that begins with ">" but is not quoted keeps the space before it.
// delsp is the DelSp parameter: whether the space that marks a soft line break is
// removed.
func Flowed(s string, delsp bool) string {
	var out strings.Builder
	out.Grow(len(s) + len(s)/16)
	open, depth := false, 0 // the paragraph being written and its depth
	for line := range strings.Lines(s) {
		line = strings.TrimRight(line, "\r\n")
		text := strings.TrimLeft(line, ">")
		d := len(line) - len(text)
		if d > 0 || !strings.HasPrefix(text, " >") { // else it would look quoted
			text = strings.TrimPrefix(text, " ") // space-stuffing
		}
		signature := text == "-- "
		flows := strings.HasSuffix(text, " ") && !signature
		if open && (d != depth || signature) {
			out.WriteByte('\n')
			open = false
		}
		if !open {
			out.WriteString(strings.Repeat(">", d))
			if d > 0 && text != "" {
				out.WriteByte(' ')
			}
		}
		if flows && delsp {
			text = text[:len(text)-1]
		}
		out.WriteString(text)
		open, depth = flows, d
		if !flows {
			out.WriteByte('\n')
		}
	}
	if open {
		out.WriteByte('\n')
	}
	return out.String()
}
