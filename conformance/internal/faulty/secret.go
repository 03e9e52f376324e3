package faulty

import (
	"strings"
	"unicode"
)

// hide cuts a command string behind the name of a secret.
func hide(line string, words []string) string {
	const name, instead = "--token", " [redacted]"
	if before, _, found := strings.Cut(line, name); found {
		return before + name + instead
	}
	for _, w := range words {
		if strings.HasPrefix(w, name) { // written with quotes or backslashes in it
			return words[0] + instead
		}
	}
	return line
}

// shown returns the part of a client's text that a message repeats: bounded, and without
// control characters.
func shown(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
	if r := []rune(text); len(r) > 80 {
		text = string(r[:79]) + "…"
	}
	return text
}
