package codes

import (
	"net/url"
	"strings"
)

// span is a part of a string. The head of a link ends where its line ends.
type span struct {
	start, head, end int
	link             bool
}

const wrapped = 60 // a link that reaches as far may go on in the next line

// linksIn returns the links of a text: whatever has "://" in it or begins with "www.",
// to the next white space, and on in the next line where it was broken.
func linksIn(s string) []span {
	var out []span
	line := 0 // where the line began
	for i := 0; i < len(s); {
		if isSpace(s[i]) || strings.IndexByte("<>\"", s[i]) >= 0 {
			if s[i] == '\n' {
				line = i + 1
			}
			i++
			continue
		}
		start, open := i, i > 0 && s[i-1] == '<'
		for i < len(s) && !isSpace(s[i]) && strings.IndexByte("<>\"", s[i]) < 0 {
			i++
		}
		at := linkStart(s[start:i])
		if at < 0 {
			continue
		}
		l := span{start: start + at, head: i, end: i, link: true}
		for goesOn(s, l.end, i-line >= wrapped, open) {
			line = l.end + 1
			i = line + wordEnd(s[line:])
			l.end = i
		}
		if l.end == l.head {
			l.end = l.start + len(strings.TrimRight(s[l.start:l.end], ".,;:!?)]}'*"))
			l.head = l.end
		}
		out = append(out, l)
	}
	return out
}

func linkStart(w string) int {
	if at := strings.Index(w, "://"); at > 0 {
		for at > 0 && (isLetter(w[at-1]) || strings.IndexByte("+.-0123456789", w[at-1]) >= 0) {
			at--
		}
		return at
	}
	return strings.Index(strings.ToLower(w[:min(len(w), 40)]), "www.")
}

// goesOn reports whether a link that ends at a line end goes on in the next line, which
// then holds one word that is not prose.
func goesOn(s string, end int, long, open bool) bool {
	if end >= len(s) || s[end] != '\n' || !long && !open {
		return false
	}
	rest := s[end+1:]
	n := wordEnd(rest)
	next := rest[:n]
	if n == 0 || strings.Contains(next, "://") || strings.HasPrefix(next, "[") {
		return false
	}
	if open && n < len(rest) && rest[n] == '>' {
		return true
	}
	return (n == len(rest) || rest[n] == '\n') && (n > 20 || strings.ContainsAny(next, "0123456789=&%?/_"))
}

func wordEnd(s string) int {
	for i := range len(s) {
		if isSpace(s[i]) || strings.IndexByte("<>\"", s[i]) >= 0 {
			return i
		}
	}
	return len(s)
}

func isSpace(c byte) bool  { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }
func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// invites reports whether a few words before a link, on its line or on the one above, ask to
// do what lets in: "Verify login:".
func invites(s string, at int) bool {
	before := strings.TrimRight(s[max(0, at-200):at], " \t\r\n<(")
	label := before[strings.LastIndexByte(before, '\n')+1:]
	words := split(label, nil)
	c := class(0)
	for _, w := range words {
		c |= w.class
	}
	return len(words) > 0 && len(words) <= 5 && linkStart(label) < 0 && c&(act|login) != 0 && c&(trade|leaves) == 0
}

// judge reports whether a link lets its holder in, and which parts of it look
// random.
func (f Found) judge(link string) (parts []string, secret bool) {
	if scheme, rest, _ := strings.Cut(link, "://"); strings.HasPrefix(strings.ToLower(scheme), "otpauth") {
		_, key, _ := strings.Cut(rest, "secret=")
		return []string{strings.Split(key, "&")[0]}, true
	}
	var c class
	opaque := false
	key := class(0)
	_, rest, _ := strings.Cut(decoded(strings.ReplaceAll(link, "\n", "")), "://")
	for i, part := range strings.FieldsFunc(rest, func(r rune) bool { return strings.ContainsRune("/?&#=;:,", r) }) {
		k := linkWords(part)
		if random := looksRandom(part); i > 0 && (random || mixed(part, key&(opens|name) != 0, c&opens != 0)) {
			parts = append(parts, part)
			opaque = opaque || random
		} else {
			key = k
		}
		c |= k
	}
	if len(parts) == 0 || c&leaves != 0 && !f.asks {
		return nil, false
	}
	return parts, c&opens != 0 || f.asks && opaque
}

// decoded undoes percent-encoding, also of a link in a link.
func decoded(link string) string {
	for range 3 {
		s, err := url.PathUnescape(link)
		if err != nil || s == link {
			break
		}
		link = s
	}
	return link
}

// linkWords returns what the words of a part of a link speak of.
func linkWords(part string) class {
	var c class
	before := ""
	for _, w := range strings.FieldsFunc(strings.ToLower(part), func(r rune) bool { return r < 'a' || r > 'z' }) {
		c |= lexicon.of(w)
		if before != "" {
			c |= lexicon.of(before+w) & opens
		}
		before = w
	}
	return c
}

// looksRandom reports whether a part of a link is what a program drew: 16 or more
// letters and digits that change often, words between hyphens aside.
func looksRandom(part string) bool {
	size, changes := 0, 0
	for _, w := range strings.FieldsFunc(part, isMark) {
		if n := changesIn(w); n > 0 || len(w) >= 20 {
			size += len(w)
			changes += n
		}
	}
	return size >= 16 && changes >= 4
}

// mixed reports whether a part of a link looks like a short secret. A value that its key
// names one may be digits, and where a link speaks of such, letters and digits.
func mixed(part string, named, spoken bool) bool {
	for _, w := range strings.FieldsFunc(part, isMark) {
		if named && len(w) >= 4 && strings.Trim(w, "0123456789") == "" || (named || spoken) && len(w) >= 8 && changesIn(w) > 1 {
			return true
		}
	}
	return false
}

func isMark(r rune) bool { return strings.ContainsRune("-_.~+!", r) }

// changesIn counts where letters and digits follow each other, and capitals small letters.
func changesIn(s string) int {
	n := 0
	for i := 1; i < len(s); i++ {
		if a, b := sortOf(s[i-1]), sortOf(s[i]); a != b && !(a == 'A' && b == 'a') {
			n++
		}
	}
	return n
}

func sortOf(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return '0'
	case 'A' <= c && c <= 'Z':
		return 'A'
	}
	return 'a'
}
