package message

import (
	"github.com/postern-mail/postern/internal/plain"
)

// Clean is plain.Text: a text as a person sees it.
func Clean(s string) string { return plain.Text(s) }

// CleanLine is plain.Line: a text as a person sees it, on one line.
func CleanLine(s string) string { return plain.Line(s) }

// maxCluster is how far Truncate steps back, in runes, to keep a cluster whole.
const maxCluster = plain.MaxCluster

// Truncate is plain.Head: at most n runes of s, and whether something was cut.
func Truncate(s string, n int) (string, bool) { return plain.Head(s, n) }
