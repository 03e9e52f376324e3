package links

import (
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/postern-mail/postern/internal/plain"
)

// ForeignNumber reports whether a text has a number as accounts and telephones have, of eight
// digits or more, that the conversation does not have. Digits may be of any script and in
// groups; dates and times are no such numbers.
func ForeignNumber(text string, conversation ...string) bool {
	known := map[string]bool{}
	for _, c := range conversation {
		for _, n := range numbers(c) {
			known[n] = true
		}
	}
	for _, n := range numbers(text) {
		if !known[n] {
			return true
		}
	}
	return false
}

var (
	dateOrTime = regexp.MustCompile(`\b(?:\d{4}-[01]?\d-[0-3]?\dT?|[0-3]?\d([./-])[0-3]?\d[./-](?:\d{4}|\d{2})|[0-2]?\d:[0-5]\d(?::[0-5]\d)?)(?:\b|T)`)
	long       = regexp.MustCompile(`\d(?:[^\pL\pN]*\d){7,}`) // any marks may part the groups
)

// numbers returns the long numbers of a text, digits alone.
func numbers(text string) (all []string) {
	text = strings.Map(func(r rune) rune {
		switch {
		case plain.Unseen(r):
			return -1
		case unicode.Is(unicode.Nd, r):
			return '0' + digit(r)
		}
		return r
	}, norm.NFKC.String(text)) // also digits in circles and above the line
	for _, n := range long.FindAllString(undated(text), -1) {
		all = append(all, strings.Map(func(r rune) rune {
			if r < '0' || r > '9' {
				return -1
			}
			return r
		}, n))
	}
	return all
}

// undated replaces the dates and times of a text. What goes on with a mark and a digit, before
// or behind, is none: telephone numbers are written in pairs. A time may go on to another one.
func undated(text string) string {
	var b strings.Builder
	at := 0
	for _, m := range dateOrTime.FindAllStringIndex(text, -1) {
		time := strings.Contains(text[m[0]:m[1]], ":")
		if goesOn(text[m[1]:], time) || m[0] > 1 && isDigit(text[m[0]-2]) && strings.IndexByte("./-:", text[m[0]-1]) >= 0 && !(time && text[m[0]-1] == '-') {
			continue
		}
		b.WriteString(text[at:m[0]] + "x")
		at = m[1]
	}
	return b.String() + text[at:]
}

func goesOn(rest string, time bool) bool {
	return len(rest) > 1 && isDigit(rest[1]) && strings.IndexByte("./-:", rest[0]) >= 0 && !(time && rest[0] == '-')
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// digit is the value of a decimal digit: those of a script stand together, from its zero on.
func digit(r rune) rune {
	for _, t := range unicode.Nd.R16 {
		if rune(t.Lo) <= r && r <= rune(t.Hi) {
			return (r - rune(t.Lo)) % 10
		}
	}
	for _, t := range unicode.Nd.R32 {
		if rune(t.Lo) <= r && r <= rune(t.Hi) {
			return (r - rune(t.Lo)) % 10
		}
	}
	return 0
}
