package message

import (
	"strings"
	"testing"
)

func TestFlowed(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		delsp    bool
		want     string
	}{
		{"empty", "", false, ""},
		{"fixed lines", "a\nb\n", false, "a\nb\n"},
		{"soft breaks", "a \nb \nc\nd\n", false, "a b c\nd\n"},
		{"CRLF", "a \r\nb\r\n", false, "a b\n"},
		{"last line without an end", "a \nb", false, "a b\n"},
		{"soft break at the end", "a \n", false, "a \n"},
		{"DelSp", "a \nb  \nc\n", true, "ab c\n"},
		{"space-stuffing", " From x\n  y\n", false, "From x\n y\n"},
		{"stuffed quote mark", " > x\n", false, " > x\n"},
		{"quotes", "> a \n> b\n>> c \n>> d\ne\n", false, "> a b\n>> c d\ne\n"},
		{"depth changes in a paragraph", "> a \nb\n", false, "> a \nb\n"},
		{"signature", "a \n-- \nAnn \nLee\n", false, "a \n-- \nAnn Lee\n"},
		{"quoted signature", "> -- \n> Ann\n", false, "> -- \n> Ann\n"},
		{"empty lines", "a\n\nb\n", false, "a\n\nb\n"},
		{"quoted empty line", ">\n> a\n", false, ">\n> a\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := Flowed(tc.in, tc.delsp); got != tc.want {
				t.Errorf("Flowed(%q) = %q, want %q", tc.in, got, tc.want)
			}
		})
	}
	if got := Flowed(strings.Repeat(">", 1_000_000), false); len(got) > 1_000_002 {
		t.Errorf("%d bytes", len(got))
	}
}
