package rfc5322

import (
	"strconv"
	"strings"
	"time"
)

// maxDateBytes is how much of a Date field is read.
const maxDateBytes = 512

// Date returns the moment of the first Date field, in the zone it names, and
// whether it could be read. Beside RFC 5322 section 3.3 and its obsolete forms
// it takes what programs have written over the years: a missing or wrong
// weekday, two-digit years, missing seconds, zone names, offsets with a colon,
// asctime and ISO 8601 forms, comments anywhere. A missing or unknown zone is
// UTC. A date that no calendar has, or a year before 1900, is unreadable.
func (h Header) Date() (time.Time, bool) {
	s := h.Get("Date")
	return parseDate(s[:min(len(s), maxDateBytes)])
}

// zones are the zone names with one meaning in mail: those of RFC 5322 section
// 4.3 and the European ones. In minutes east of UTC. All others, the military
// letters among them, tell nothing reliable (same section).
var zones = map[string]int{
	"EST": -5 * 60, "EDT": -4 * 60, "CST": -6 * 60, "CDT": -5 * 60,
	"MST": -7 * 60, "MDT": -6 * 60, "PST": -8 * 60, "PDT": -7 * 60,
	"WET": 0, "WEST": 60, "CET": 60, "CEST": 2 * 60, "MET": 60, "MEST": 2 * 60,
	"EET": 2 * 60, "EEST": 3 * 60, "MSK": 3 * 60, "JST": 9 * 60,
}

var months = []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}

// dateParts is a date as far as its words have been read. Day, month and year
// are 0 and hour is -1 while unknown.
type dateParts struct {
	year, month, day  int
	hour, minute, sec int
	offset            int // minutes east of UTC
	zone              bool
}

func parseDate(s string) (time.Time, bool) {
	d := dateParts{hour: -1}
	for _, word := range dateWords(s) {
		if !d.take(word) {
			return time.Time{}, false
		}
	}
	if d.day == 0 || d.month == 0 || d.year < 1900 || d.hour < 0 {
		return time.Time{}, false
	}
	loc := time.UTC
	if d.offset != 0 {
		loc = time.FixedZone("", d.offset*60)
	}
	t := time.Date(d.year, time.Month(d.month), d.day, d.hour, d.minute, d.sec, 0, loc)
	if t.Day() != d.day { // such as February 30
		return time.Time{}, false
	}
	return t, true
}

// dateWords parts a date into words without comments, commas and quotes.
func dateWords(s string) []string {
	var b strings.Builder
	var skip skipper
	for i := 0; i < len(s); {
		switch s[i] {
		case '(':
			i = skip.comment(s, i)
			b.WriteByte(' ')
		case ',', '"', '\'', '\r', '\x00':
			b.WriteByte(' ')
			i++
		default:
			b.WriteByte(s[i])
			i++
		}
	}
	var words []string
	for _, w := range strings.Fields(b.String()) {
		// White space around the colons of a time is obsolete but allowed.
		if last := len(words) - 1; last >= 0 && (w[0] == ':' || strings.HasSuffix(words[last], ":")) {
			words[last] += w
			continue
		}
		words = append(words, w)
	}
	return words
}

// take reads one word and reports whether the date can still be read.
func (d *dateParts) take(word string) bool {
	lower := strings.ToLower(word)
	switch {
	case d.hour < 0 && strings.Contains(word, ":"):
		return d.takeTime(word)
	case d.hour >= 0 && (lower == "am" || lower == "pm"):
		return d.takeHalf(lower)
	case (word[0] == '+' || word[0] == '-') && d.hour >= 0:
		d.takeOffset(word)
		return true
	case word[0] >= '0' && word[0] <= '9':
		if strings.Count(word, "-") == 2 || strings.Count(word, "/") == 2 && len(word) > 4 && word[4] == '/' {
			parts := strings.FieldsFunc(word, func(r rune) bool { return r == '-' || r == '/' })
			if len(parts[0]) == 4 {
				return d.takeISO(parts)
			}
			for _, part := range parts {
				if !d.takeNumberOrMonth(part) {
					return false
				}
			}
			return true
		}
		return d.takeNumberOrMonth(word)
	}
	if m := monthOf(lower); m > 0 && d.month == 0 {
		d.month = m
		return true
	}
	d.takeName(word)
	return true
}

func monthOf(lower string) int {
	for i, m := range months {
		if strings.HasPrefix(lower, m) {
			return i + 1
		}
	}
	return 0
}

// takeISO reads year, month and day of ISO 8601.
func (d *dateParts) takeISO(parts []string) bool {
	if len(parts) != 3 || d.day != 0 || d.month != 0 || d.year != 0 {
		return false
	}
	month, err := strconv.Atoi(parts[1])
	if err != nil || month < 1 || month > 12 || !d.takeNumberOrMonth(parts[0]) {
		return false
	}
	d.month = month
	return d.takeNumberOrMonth(parts[2])
}

// takeNumberOrMonth reads a day, a year or the name of a month. What can be a
// day is one until there is a day.
func (d *dateParts) takeNumberOrMonth(s string) bool {
	if m := monthOf(strings.ToLower(s)); m > 0 && d.month == 0 {
		d.month = m
		return true
	}
	s = strings.TrimRight(s, ".")
	n, err := strconv.Atoi(s)
	switch {
	case err != nil || n < 0:
		return false
	case len(s) >= 4 && d.year == 0:
		if n > 9998 {
			return false // no zone may carry it past what RFC 3339 can write
		}
		d.year = n
	case d.day == 0 && n >= 1 && n <= 31 && len(s) <= 2:
		d.day = n
	case d.year == 0 && d.day != 0 && d.month != 0:
		d.year = n + 1900 // two or three digits, RFC 5322 section 4.3
		if len(s) <= 2 && n < 50 {
			d.year = n + 2000
		}
	case d.hour >= 0 && d.year != 0 && len(s) == 4:
		return true // an offset without a sign tells nothing
	default:
		return false
	}
	return true
}

// takeTime reads 15:04, 15:04:05, 15:04:05.999 and, for ISO 8601,
// 2006-01-02T15:04:05Z and +01:00 behind the time.
func (d *dateParts) takeTime(s string) bool {
	if date, clock, ok := strings.Cut(strings.ToUpper(s), "T"); ok && strings.Count(date, "-") == 2 {
		if !d.take(date) {
			return false
		}
		s = clock
	}
	rest := ""
	if i := strings.IndexFunc(s, func(r rune) bool { return (r < '0' || r > '9') && r != ':' && r != '.' }); i >= 0 {
		s, rest = s[:i], s[i:]
	}
	s, _, _ = strings.Cut(s, ".")
	parts := strings.Split(s, ":")
	if len(parts) < 2 || len(parts) > 3 {
		return false
	}
	var n [3]int
	for i, p := range parts {
		v, err := strconv.Atoi(p)
		if err != nil || len(p) > 2 {
			return false
		}
		n[i] = v
	}
	if n[0] > 23 || n[1] > 59 || n[2] > 60 {
		return false
	}
	d.hour, d.minute, d.sec = n[0], n[1], min(n[2], 59) // a leap second has no time.Time
	if rest == "" {
		return true
	}
	return d.take(rest)
}

// takeHalf reads am or pm.
func (d *dateParts) takeHalf(half string) bool {
	if d.hour < 1 || d.hour > 12 {
		return d.hour > 12 // 15:04 PM says the same twice
	}
	d.hour %= 12
	if half == "pm" {
		d.hour += 12
	}
	return true
}

// takeOffset reads +hhmm, +hh:mm, +hmm or +hh. The first offset counts; one
// that no place on earth has counts as unknown.
func (d *dateParts) takeOffset(s string) {
	digits := strings.Replace(s[1:], ":", "", 1)
	n, err := strconv.Atoi(digits)
	if err != nil || n < 0 || d.zone || len(digits) > 4 {
		return
	}
	if len(digits) <= 2 {
		n *= 100
	}
	minutes := n/100*60 + n%100
	if n%100 > 59 || minutes > 15*60 {
		return
	}
	if s[0] == '-' {
		minutes = -minutes
	}
	d.offset, d.zone = minutes, true
}

// takeName reads a zone name, also one that an offset follows (GMT+0200). Other
// names, weekdays mostly, tell nothing.
func (d *dateParts) takeName(s string) {
	s = strings.ToUpper(s)
	if d.hour < 0 {
		return
	}
	if i := strings.IndexAny(s, "+-"); i > 0 {
		d.takeOffset(s[i:])
		return
	}
	if minutes, ok := zones[s]; ok && !d.zone {
		d.offset, d.zone = minutes, true
	}
}
