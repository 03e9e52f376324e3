package plain

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxCluster is how far Head steps back, in runes, to keep a cluster whole.
const MaxCluster = 32

// Clip cuts s to at most n runes, the last of them an ellipsis if it cut. It cuts
// where Head does, and leaves no space before the ellipsis. With n of 0 or less the
// result is empty.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	if n <= 0 {
		return ""
	}
	if _, cut := Head(s, n); !cut {
		return s
	}
	s, _ = Head(s, n-1)
	return strings.TrimRight(s, " ") + "…"
}

// Head returns at most n runes of s and whether it cut. It does not cut
// between a character and its combining marks, inside a joined emoji or between
// the letters of a flag, unless the cluster is over 32 runes long.
func Head(s string, n int) (string, bool) {
	if n <= 0 {
		return "", s != ""
	}
	if len(s) <= n {
		return s, false
	}
	var starts [MaxCluster + 1]int // byte offsets of the last runes, as a ring
	count, cut := 0, -1
	for i := range s {
		starts[count%len(starts)] = i
		if count == n {
			cut = i
			break
		}
		count++
	}
	if cut < 0 {
		return s, false
	}
	for back := 0; back < min(MaxCluster, n); back++ {
		at := starts[(count-back)%len(starts)]
		if isBoundary(s, at) {
			return s[:at], true
		}
	}
	return s[:cut], true
}

// isBoundary reports whether s may be cut at byte offset at.
func isBoundary(s string, at int) bool {
	prev, _ := utf8.DecodeLastRuneInString(s[:at])
	next, _ := utf8.DecodeRuneInString(s[at:])
	switch {
	case at == 0:
		return true
	case unicode.Is(unicode.M, next) || next == zwj || next == zwnj || prev == zwj || isSkinTone(next):
		return false
	case prev == '\r' && next == '\n':
		return false
	case isRegional(prev) && isRegional(next):
		n := 0
		for t := s[:at]; n <= MaxCluster; n++ {
			r, size := utf8.DecodeLastRuneInString(t)
			if !isRegional(r) {
				break
			}
			t = t[:len(t)-size]
		}
		return n%2 == 0
	}
	return true
}

func isRegional(r rune) bool { return r >= 0x1F1E6 && r <= 0x1F1FF }

func isSkinTone(r rune) bool { return r >= 0x1f3fb && r <= 0x1f3ff }
