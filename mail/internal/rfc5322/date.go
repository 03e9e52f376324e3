package rfc5322

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// maxDateBytes is how much of a Date field is read.
const maxDateBytes = 512

// Date returns the time in the first Date field, in the zone it names, and
// whether it could be read. Besides RFC 5322 section 3.3 and its obsolete
// forms it accepts the errors of real programs: a missing or wrong weekday,
// two-digit years, missing seconds, zone names, offsets with a colon, asctime
// and ISO 8601 forms, comments anywhere. A missing or unknown zone is UTC. A
// date that does not exist, or a year before 1900, is unreadable.
func (h Header) Date() (time.Time, bool) { return ParseDate(h.Get("Date")) }

// ParseDate reads the date of a field, as Date does.
func ParseDate(s string) (time.Time, bool) { return parseDate(s[:min(len(s), maxDateBytes)]) }

// zones are the zone names with one meaning in mail: those of RFC 5322 section
// 4.3 and the European ones. In minutes east of UTC. All others, including the
// military letters, are unreliable (same section).
var zones = map[string]int{
	"EST": -5 * 60, "EDT": -4 * 60, "CST": -6 * 60, "CDT": -5 * 60,
	"MST": -7 * 60, "MDT": -6 * 60, "PST": -8 * 60, "PDT": -7 * 60,
	"WET": 0, "WEST": 60, "CET": 60, "CEST": 2 * 60, "MET": 60, "MEST": 2 * 60,
	"EET": 2 * 60, "EEST": 3 * 60, "MSK": 3 * 60, "JST": 9 * 60,
}

// dateForms match the ways to write a date, in capitals with one space between
// words.
var dateForms = sync.OnceValue(func() (forms []*regexp.Regexp) {
	const (
		clock = `(?P<hour>\d{1,2}) ?: ?(?P<minute>\d\d)(?: ?: ?(?P<second>\d\d))?(?:\.\d+)?(?: (?P<half>[AP])M)?`
		zone  = `(?: ?(?P<zone>[A-Z]+))?(?: ?(?P<offset>[+-]\d\d:?\d\d))?`
	)
	for _, form := range []string{
		`(?:[A-Z]+ )?(?P<day>\d{1,2})[ -](?P<month>[A-Z]{3})[A-Z]*[ -](?P<year>\d{2,4}) ` + clock + zone,
		`(?:[A-Z]+ )?(?P<month>[A-Z]{3})[A-Z]* (?P<day>\d{1,2}) ` + clock + zone + ` (?P<year>\d{4})`,
		`(?P<year>\d{4})[-/](?P<month>\d\d)[-/](?P<day>\d\d)[ T]` + clock + zone,
	} {
		forms = append(forms, regexp.MustCompile(`\A`+form+`(?: |\z)`))
	}
	return forms
})

func parseDate(s string) (time.Time, bool) {
	s = tidyDate(s)
	for _, form := range dateForms() {
		m := form.FindStringSubmatch(s)
		if m == nil {
			continue
		}
		group := func(name string) string { return m[form.SubexpIndex(name)] }
		number := func(name string) int { n, _ := strconv.Atoi(group(name)); return n } // 0 when absent
		year, month := number("year"), number("month")
		if named, err := time.Parse("Jan", group("month")); err == nil {
			month = int(named.Month())
		}
		switch digits := len(group("year")); { // RFC 5322 section 4.3
		case digits == 2 && year < 50:
			year += 2000
		case digits < 4:
			year += 1900
		}
		hour := number("hour")
		if half := group("half"); half != "" && hour >= 1 && hour <= 12 {
			hour %= 12
			if half == "P" {
				hour += 12
			}
		}
		loc := time.UTC
		if east := offsetOf(group("zone"), group("offset")); east != 0 {
			loc = time.FixedZone("", east*60)
		}
		second := min(number("second"), 59) // time.Time has no leap seconds
		t := time.Date(year, time.Month(month), number("day"), hour, number("minute"), second, 0, loc)
		// Rejects February 30, and a zone that moves the year beyond what RFC 3339 can write.
		real := t.Day() == number("day") && t.Month() == time.Month(month) && t.Hour() == hour && t.Minute() == number("minute")
		if real && year >= 1900 && year <= 9998 {
			return t, true
		}
	}
	return time.Time{}, false
}

// tidyDate removes comments, commas and quotes from a date.
func tidyDate(s string) string {
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
	return strings.ToUpper(strings.Join(strings.Fields(b.String()), " "))
}

// offsetOf returns the minutes east of UTC of a zone's name or of an offset such
// as +0530 or +05:30; 0 for an offset that no place on earth has.
func offsetOf(name, offset string) int {
	if offset == "" {
		return zones[name]
	}
	n, _ := strconv.Atoi(strings.Replace(offset[1:], ":", "", 1)) // all of them are digits
	minutes := n/100*60 + n%100
	if n%100 > 59 || minutes > 15*60 {
		return 0
	}
	if offset[0] == '-' {
		return -minutes
	}
	return minutes
}
