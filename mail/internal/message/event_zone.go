package message

import (
	_ "embed" // the names that Windows gives to zones
	"strconv"
	"strings"
	"sync"
	"time"
)

// windowsZoneNames is a line for each name: the name, "=", and the zone of the time zone
// database. Lines that begin with # are comments.
//
//go:embed windows_zones.txt
var windowsZoneNames string

// windowsZones gives the zones of the database for the names of Windows, in lower case.
var windowsZones = sync.OnceValue(func() map[string]string {
	zones := map[string]string{}
	for line := range strings.Lines(windowsZoneNames) {
		if name, zone, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(name, "#") {
			zones[strings.ToLower(name)] = zone
		}
	}
	return zones
})

// zoneBehind is the name behind the prefix of whoever made a global identifier (RFC 5545
// section 3.8.3.1), "" for another name.
func zoneBehind(name string) string {
	words := strings.Split(name, "/")
	if words[0] != "" || len(words) < 4 {
		return ""
	}
	for i := max(2, len(words)-3); i < len(words)-1; i++ {
		if behind := strings.Join(words[i:], "/"); location(behind) != nil {
			return behind
		}
	}
	return ""
}

// zone is a VTIMEZONE (RFC 5545 section 3.6.5): the rules by which offsets begin. It reads
// the rules that calendar programs write: a day of a month in every year.
type zone []observance

// observance is one rule.
type observance struct {
	start   time.Time // local, with UTC in its place
	offset  int       // seconds east of UTC from then on
	before  int       // seconds east of UTC until then
	yearly  bool
	month   time.Month
	weekday time.Weekday
	nth     int // of the weekday in the month, from its end when negative; 0 for the day of start
}

// newZone returns nil when no rule can be read.
func newZone(rules []properties) (z zone) {
	const most = 50
	for _, rule := range rules[:min(len(rules), most)] {
		start, err := time.Parse(localTime, rule.value("DTSTART"))
		offset, ok := utcOffset(rule.value("TZOFFSETTO"))
		if err != nil || !ok {
			continue
		}
		o := observance{start: start, offset: offset, before: offset}
		if before, ok := utcOffset(rule.value("TZOFFSETFROM")); ok {
			o.before = before
		}
		o.readRule(rule.value("RRULE"))
		z = append(z, o)
	}
	return z
}

// utcOffset reads "+0100" or "-033000" as seconds.
func utcOffset(s string) (int, bool) {
	layout := "-0700"
	if len(s) == len("-070000") {
		layout = "-070000"
	}
	t, err := time.Parse(layout, s)
	_, offset := t.Zone()
	return offset, err == nil
}

// readRule reads "FREQ=YEARLY;BYMONTH=10;BYDAY=-1SU". With another rule it begins once.
func (o *observance) readRule(rule string) {
	parts := map[string]string{}
	for part := range strings.SplitSeq(strings.ToUpper(rule), ";") {
		name, value, _ := strings.Cut(part, "=")
		parts[name] = value
	}
	if parts["FREQ"] != "YEARLY" {
		return
	}
	o.yearly, o.month = true, o.start.Month()
	if month, err := strconv.Atoi(parts["BYMONTH"]); err == nil && month >= 1 && month <= 12 {
		o.month = time.Month(month)
	}
	day := parts["BYDAY"]
	if len(day) < 3 {
		return
	}
	nth, err := strconv.Atoi(day[:len(day)-2])
	weekday := strings.Index("SUMOTUWETHFRSA", day[len(day)-2:])
	if err == nil && nth >= -5 && nth <= 5 && weekday >= 0 && weekday%2 == 0 {
		o.nth, o.weekday = nth, time.Weekday(weekday/2)
	}
}

// onset returns when the observance begins in a year.
func (o *observance) onset(year int) time.Time {
	if !o.yearly {
		return o.start
	}
	hour, minute, second := o.start.Clock()
	day := o.start.Day()
	switch {
	case o.nth > 0:
		first := time.Date(year, o.month, 1, 0, 0, 0, 0, time.UTC)
		day = 1 + (int(o.weekday)-int(first.Weekday())+7)%7 + 7*(o.nth-1)
	case o.nth < 0:
		last := time.Date(year, o.month+1, 0, 0, 0, 0, 0, time.UTC)
		day = last.Day() - (int(last.Weekday())-int(o.weekday)+7)%7 + 7*(o.nth+1)
	}
	return time.Date(year, o.month, day, hour, minute, second, 0, time.UTC)
}

// at returns the offset that is in force at a local time, which is given with UTC
// in its place.
func (z zone) at(local time.Time) *time.Location {
	var latest, first time.Time
	offset := 0
	for _, o := range z {
		for year := local.Year() - 1; year <= local.Year(); year++ {
			t := o.onset(year)
			if t.Before(o.start) {
				continue
			}
			switch {
			case !t.After(local) && (latest.IsZero() || t.After(latest)):
				latest, offset = t, o.offset
			case latest.IsZero() && (first.IsZero() || t.Before(first)):
				first, offset = t, o.before
			}
		}
	}
	return time.FixedZone("", offset)
}
