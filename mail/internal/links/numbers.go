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
// groups; dates and times are no such numbers. What wallets and people are called elsewhere
// counts as well: @name, $name, name.42, and 12 letters and digits or more that look random, also in groups of four.
func ForeignNumber(text string, conversation ...string) bool {
	known := map[string]bool{}
	for _, c := range conversation {
		for _, n := range append(numbers(c), handles(c)...) {
			known[n] = true
		}
	}
	for _, n := range append(numbers(text), handles(text)...) {
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

var (
	handle = regexp.MustCompile(`(?:^|[^\pL\pN.])([@$]\pL[\pL\pN_.-]*[\pL\pN])|(?:^|[^\pL\pN@.])(\pL[\pL\pN_]{2,31}(?:\.\d{2,9}|#\d{4}))(?:$|[^\pL\pN])|(\pL[\pL\pN_.-]*\s?[(\[{]\s?(?i:at)\s?[)\]}]\s?\pL[\pL\pN_.-]*)`)
	// Wallets are shown in groups of four.
	grouped = regexp.MustCompile(`\b(?:[A-Za-z0-9]{4}\s){3,}[A-Za-z0-9]{1,4}\b`)
	mixed   = regexp.MustCompile(`[A-Za-z][0-9]|[0-9][A-Za-z]`)
	token   = regexp.MustCompile(`[A-Za-z0-9](?:[-_:]?[A-Za-z0-9]){11,}`)
)

// handles returns what looks like the name of an account or a wallet in a text.
func handles(text string) (all []string) {
	text = strings.Map(func(r rune) rune {
		if plain.Unseen(r) || strings.ContainsRune("\\*`~", r) {
			return -1
		}
		return r
	}, norm.NFKC.String(text))
	for _, m := range handle.FindAllStringSubmatch(text, -1) {
		all = append(all, strings.ToLower(m[1]+m[2]+m[3]))
	}
	for _, t := range token.FindAllString(undated(text), -1) {
		if random(t) {
			all = append(all, t)
		}
	}
	for _, g := range grouped.FindAllString(undated(text), -1) {
		if t := strings.Join(strings.Fields(g), ""); len(mixed.FindAllString(g, 2)) == 2 && random(t) {
			all = append(all, t)
		}
	}
	return all
}

// random reports whether letters and digits change more often than in a word or in a number
// with its unit. A capital before small letters is how a word begins.
func random(token string) bool {
	const digits, capitals, small = 1, 2, 3
	last, changes, some := 0, 0, false
	for _, r := range token {
		kind := small
		switch {
		case r == '-' || r == '_' || r == ':':
			continue
		case '0' <= r && r <= '9':
			kind, some = digits, true
		case 'A' <= r && r <= 'Z':
			kind = capitals
		}
		if last != 0 && kind != last && !(last == capitals && kind == small) {
			changes++
		}
		last = kind
	}
	return changes >= 3 && (some || len(token) >= 20)
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
