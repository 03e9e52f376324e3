package faulty

import "strings"

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
