package main

import (
	"strings"
	"testing"
)

// The pages of the program's own verbs are whole in windows of all widths, as those of commands
// are, and say what the verb is for.
func TestNoPageOfAVerbBreaksAWord(t *testing.T) {
	t.Parallel()
	page := func(verb string, width int) string {
		status, shown := shownOnTerminal(t, width, nil, append(strings.Fields(verb), "-h")...)
		if status != 0 || !strings.HasPrefix(shown, "usage: postern "+verb) {
			t.Errorf("%s -h: status %d: %s", verb, status, shown)
		}
		return shown
	}
	for verb := range (&process{}).verbs() {
		if verb == completeVerb || verb == "agent" { // for programs
			continue
		}
		wide := page(verb, 9999)
		if about, _, _ := strings.Cut(wide, "\nOptions\n"); !strings.Contains(strings.TrimSpace(about), "\n\n") {
			t.Errorf("%s -h does not say what it is for:\n%s", verb, about)
		}
		for l := range strings.Lines(page(verb, 60)) {
			if len([]rune(l)) > 61 {
				t.Errorf("%s -h is wider than 60 columns: %q", verb, l)
			}
		}
		for _, width := range []int{60, 160} {
			wantSameWords(t, verb+" -h", width, page(verb, width), wide)
		}
	}
}
