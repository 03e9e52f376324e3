// Package codes finds what a message carries to let its reader in: one-time codes,
// and links that log in, reset a password or confirm an address. It masks both.
//
// Find is what to call, once for a message, with its subject and its whole text; then
// Found.Mask for every string of that message that leaves the program. The rules:
//
//   - A word names a code ("code", "PIN", "Sicherheitscode", "código") and no word
//     of trade, travel, meetings or programs stands beside it ("discount code"), unless
//     one of security does.
//   - A token looks like a code: 4 to 10 digits, also split into equal groups, or
//     letters and digits as nobody writes a word.
//   - The token stands near such a word, or alone on its line, or behind "enter", or it
//     is the only number of a short message, if the message speaks of signing in. A number
//     of six digits or more that is all of the subject needs nothing else, nor does one that
//     stands anywhere in the name of a person.
//   - A list does not read the text: where subject and names speak of a code or of signing
//     in, Listed hides most numbers.
//   - A link is secret if its own words speak of logging in, resetting or confirming and
//     a part of it looks random, or if a part looks random in a message that asks to do this,
//     or behind a few words that do. The address of a generator of codes is one.
//
// It is best effort: a code in an image, or named by words that are not known here, is not
// found. TestCorpora says how many are.
// Every function is pure, takes any string without panicking, and costs work that is
// linear in its length. The package knows nothing of messages, accounts or policy.
package codes

import (
	"slices"
	"strings"
	"time"
)

// Recent reports whether a message may still hold a code that works: its Date or
// the time it was received is at most three days before now, or in the future, or neither
// is known (zero).
func Recent(date, received, now time.Time) bool {
	const validity = 3 * 24 * time.Hour
	since := now.Add(-validity)
	return date.IsZero() && received.IsZero() || !date.Before(since) || !received.Before(since)
}

// Found is what Find found in one message. The zero value masks nothing.
type Found struct {
	// Codes are the one-time codes in the order of the message, as they are to be
	// typed: digits are ASCII and stand together, letters are as written.
	Codes []string

	asks    bool // the message asks to log in, reset or confirm
	secrets secrets
	links   bool
}

// Any reports whether a code or a secret link was found.
func (f Found) Any() bool { return len(f.Codes) > 0 || f.links }

// Find returns the one-time codes and the secret links of a message. The text is
// the whole text as a reader sees it, clean (package plain); where it is cut, it has to
// reach at least 200 characters beyond what is shown of it. The names are those that stand
// beside addresses.
func Find(subject, text string, names ...string) Found {
	s := subject + "\n\n" + text
	all := linksIn(s)
	words := split(s, all)
	var f Found
	f.asks = asks(words)
	for _, l := range all {
		asks := Found{asks: f.asks || invites(s, l.start)}
		if parts, secret := asks.judge(s[l.start:l.end]); secret {
			f.links = true
			for _, p := range parts {
				f.secrets.add(p)
			}
		}
	}
	codes := append(codesIn(words), numbers(subject, func(words []word, c candidate) bool {
		return c.first == 0 && c.last == len(words)-1 && len(c.typed) >= 6
	})...)
	for _, name := range names {
		codes = append(codes, codesIn(split(name, nil))...)
		codes = append(codes, numbers(name, func(_ []word, c candidate) bool { return len(c.typed) >= 6 })...)
	}
	f.hide(codes)
	return f
}

// Add finds the codes of another short text of the message, such as the name of a file.
func (f *Found) Add(subject, text string) { f.hide(codesIn(split(subject+"\n\n"+text, nil))) }

// Listed is Find for a list, which does not read the text: where the subject, the names or the
// sender's address speak of a code or of signing in, what Suspected hides.
func Listed(subject, sender string, names ...string) Found {
	var spoken class
	for _, w := range split(strings.Join(append([]string{subject, sender}, names...), "\n"), nil) {
		spoken |= w.class
	}
	if spoken&(name|secret|strong|login|enter) == 0 {
		return Find(subject, "", names...)
	}
	return Suspected(subject, names...)
}

// Suspected is Find where the text may say that a number of the subject or of a name is a code,
// and was not read: it also hides those that a word beside them does not say are others. Years
// and dates are none.
func Suspected(subject string, names ...string) Found {
	f := Find(subject, "", names...)
	var all []string
	for _, s := range append(names, subject) {
		all = append(all, numbers(s, func(words []word, c candidate) bool {
			n := len(c.typed)
			return words[c.first].digits > 0 && !counts(words, c, -1) && !((n == 4 || n == 8) && year(c.typed[:4]))
		})...)
	}
	f.hide(all)
	return f
}

// numbers returns the numbers of a string that may be codes, as far as is wants them.
func numbers(s string, is func(words []word, c candidate) bool) (all []string) {
	words := split(s, nil)
	for i := 0; i < len(words); i++ {
		c, ok := candidateAt(words, i)
		if i = c.last; ok && c.kind == digits && is(words, c) {
			all = append(all, c.typed)
		}
	}
	return all
}

// hide adds codes, each once.
func (f *Found) hide(codes []string) {
	seen := map[string]bool{}
	for _, c := range f.Codes {
		seen[c] = true
	}
	for _, c := range codes {
		if !seen[c] && f.secrets.add(c) {
			seen[c] = true
			f.Codes = append(f.Codes, c)
		}
	}
}

// candidate is a run of words that looks like a code.
type candidate struct {
	first, last int // words
	typed       string
	kind        kind
}

type kind uint8

const (
	digits  kind = iota // only digits
	capital             // capital letters and digits, or groups of capital letters
	small               // letters and digits, some of them small
	letters             // capital letters, which may be a word
)

const (
	near  = 24  // words between a code and the word that names it
	short = 100 // words of a message that may hold nothing but a code
)

// codesIn returns the codes among the words of a message, in order.
func codesIn(words []word) []string {
	names := namesOf(words)
	var spoken class
	behind, next := make([]int, len(words)), len(words) // the nearest name behind each word
	for i := len(words) - 1; i >= 0; i-- {
		behind[i] = next
		if names[i] == i {
			next = i
		}
		spoken |= words[i].class
	}
	named := next < len(words)
	if !named && spoken&(strong|login|act) == 0 {
		return nil
	}
	var out []string
	numbers, only := 0, "" // how many numbers of four or more digits, and the one that may be a code
	for i := 0; i < len(words); i++ {
		c, ok := candidateAt(words, i)
		i = c.last
		if c.kind == digits && len(c.typed) >= 4 && c.typed != only {
			numbers++
		}
		if !ok {
			continue
		}
		if isCode(words, c, names[c.first], behind[c.last], spoken) {
			out = append(out, c.typed)
		}
		if c.kind == digits && len(c.typed) <= 8 && !year(c.typed) && !counts(words, c, names[c.first]) {
			only = c.typed
		}
	}
	if len(out) == 0 && numbers == 1 && only != "" && len(words) <= short && (named || spoken&(strong|login) != 0) {
		return []string{only}
	}
	return out
}

// isCode reports whether a candidate is a code, given the nearest names of
// codes before and behind it, -1 or len(words) for none, and what the message speaks
// of.
func isCode(words []word, c candidate, before, behind int, spoken class) bool {
	first, last := words[c.first], words[c.last]
	speaks := spoken&(access|strong|login) != 0
	after := before >= 0 && c.first-before <= near && words[before].phrase == first.phrase && first.line-words[before].line <= 3
	ahead := behind < len(words) && behind-c.last <= near/2 && words[behind].phrase == last.phrase
	if alone(words, c) {
		return c.kind == digits || speaks && (after || c.kind != letters && (before >= 0 || behind < len(words)))
	}
	if counts(words, c, before) {
		return false
	}
	if c.kind == digits && c.first > 0 && words[c.first-1].class&enter != 0 && spoken&(strong|login|act) != 0 {
		return true
	}
	tight := after && (c.first-before <= 4 || strings.Contains(first.gap, ":")) || ahead && behind-c.last <= 4
	switch {
	case c.kind == letters && c.last > c.first: // "code is marine-silver-otter"
		return after && c.first-before <= 2 && speaks && long(words[c.first:c.last+1])
	case c.kind == small, c.kind == letters:
		return after && tight && speaks
	case c.kind == capital && c.last > c.first && after && c.first-before <= 2:
		return true // "code is QX7-K2P"
	case c.kind == capital:
		return (after || ahead) && speaks
	case year(c.typed):
		return after && tight
	}
	return tight || (after || ahead) && speaks
}

// long reports whether none of the words is one that joins others, as in "up-to-date".
func long(words []word) bool {
	return !slices.ContainsFunc(words, func(w word) bool { return len(w.text) < 4 })
}

// alone reports whether a candidate is all of its line, or of an item of a list.
func alone(words []word, c candidate) bool {
	before := c.first - 1
	if before >= 0 && words[before].line == words[c.first].line && len(words[before].text) <= 2 && words[c.first].gap == ". " {
		before--
	}
	return (before < 0 || words[before].line < words[c.first].line) &&
		(c.last == len(words)-1 || words[c.last+1].line > words[c.last].line)
}

// counts reports whether the words around a number, back to the name before it, say that
// it is another one: an order, a phone, an amount.
func counts(words []word, c candidate, before int) bool {
	for i := c.first - 1; i > max(before, c.first-4) && words[i].line == words[c.first].line && words[i].digits == 0; i-- {
		if words[i].class&(trade|number) != 0 {
			return true
		}
	}
	n := c.last + 1
	return n < len(words) && words[n].line == words[c.last].line && words[n].class&unit != 0
}

func year(s string) bool {
	return len(s) == 4 && (strings.HasPrefix(s, "19") || strings.HasPrefix(s, "20"))
}
