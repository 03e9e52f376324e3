package message

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/mail/internal/rfc5322"
)

// Bounds of the part of a calendar that is read.
const (
	maxCalendar     = 256 << 10 // octets
	maxEvents       = 50
	maxCalendarLine = 16 << 10 // octets of an unfolded line; a longer one is cut
	maxEventText    = 500      // runes of one field
)

// Event is one event of a calendar. Its texts are cleaned, on one line and at
// most 500 runes long.
type Event struct {
	Method                       string // the calendar's METHOD, such as REQUEST or CANCEL; "" when absent
	State                        string // what the calendar says of it: requested, cancelled, accepted, declined …; "" when nothing
	Summary, Location, Organizer string
	Attendee                     string    // of METHOD:REPLY, whose answer it is
	Start, End                   time.Time // zero when unreadable
	AllDay                       bool      // Start and End are days, midnight in UTC: the first and the last
	Local                        bool      // Start and End are a clock's times with UTC in its place: which zone is meant is not known
	Zone                         string    // of Local, what the calendar calls the zone; "" when it names none
	Recurring                    bool      // Start and End are those of the first occurrence
}

// Events returns the events of an iCalendar object (RFC 5545), decoded from its
// transfer encoding, in order: 50 at most, out of the first 256 KiB. Broken
// lines are left out; the rest is still read.
//
// Times are in the zone that their TZID names in the time zone database, else in that of
// the VTIMEZONE of that name in the calendar, else in the one that Windows calls so, or
// whose name in the database ends an identifier such as "/example.org/Europe/Berlin".
// Where all are missing, or the calendar leaves the zone to the reader, the event is Local.
// Looking up a zone may read the system's database.
func Events(b []byte) []Event {
	var events []Event
	for _, e := range calendarEvents(b) {
		events = append(events, e.Event)
	}
	return events
}

// calendarEvent is an event with its longer text.
type calendarEvent struct {
	Event
	description string
}

func calendarEvents(b []byte) []calendarEvent {
	components := readCalendar(b)
	zones := map[string]zone{}
	for _, c := range components {
		if len(c.rules) > 0 {
			zones[c.value("TZID")] = newZone(c.rules)
		}
	}
	var events []calendarEvent
	for _, c := range components {
		if c.name != "VEVENT" || len(events) >= maxEvents {
			continue
		}
		e := calendarEvent{Event: Event{Method: c.method}, description: unescapeText(c.value("DESCRIPTION"))}
		e.Summary = shortText(unescapeText(c.value("SUMMARY")))
		e.Location = shortText(unescapeText(c.value("LOCATION")))
		e.Organizer = shortText(person(c.properties["ORGANIZER"]))
		if c.method == "REPLY" {
			e.Attendee = shortText(person(c.properties["ATTENDEE"]))
		}
		e.State = c.state()
		e.Recurring = c.value("RRULE") != "" || c.value("RDATE") != ""
		start := c.properties["DTSTART"].time(zones)
		end := eventEnd(c, start, zones)
		if start.IsZero() {
			start.day, start.local, start.zone = end.day, end.local, end.zone
		}
		e.Start, e.AllDay, e.Local, e.Zone = start.Time, start.day, start.local, shortText(start.zone)
		switch {
		case end.Year() > 9999: // RFC 3339 cannot write it
		case end.day != start.day || end.local != start.local || end.zone != start.zone: // they cannot be compared
		case !end.day:
			e.End = end.Time
		case !end.IsZero(): // it is the day after the last
			if e.End = end.AddDate(0, 0, -1); e.End.Before(e.Start) {
				e.End = e.Start
			}
		}
		events = append(events, e)
	}
	return events
}

// states are the words for the methods of RFC 5546 section 1.4, and for the answers of an
// attendee (RFC 5545 section 3.2.12) that comes with REPLY.
var states = map[string]string{
	"PUBLISH": "published", "REQUEST": "requested", "ADD": "requested", "CANCEL": "cancelled", "REFRESH": "asked for again",
	"COUNTER": "another time proposed", "DECLINECOUNTER": "other time declined",
	"ACCEPTED": "accepted", "DECLINED": "declined", "TENTATIVE": "tentative", "DELEGATED": "delegated", "NEEDS-ACTION": "unanswered",
}

func (c *component) state() string {
	word := c.method
	switch {
	case strings.EqualFold(c.value("STATUS"), "CANCELLED"):
		word = "CANCEL"
	case word == "REPLY":
		return cmp.Or(states[strings.ToUpper(c.properties["ATTENDEE"].params["PARTSTAT"])], "answered")
	}
	return states[word]
}

// duration is a DURATION that is not negative (RFC 5545 section 3.3.6): its weeks, days,
// hours, minutes and seconds.
var duration = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\A\+?P(?:(\d{1,6})W)?(?:(\d{1,6})D)?(?:T(?:(\d{1,6})H)?(?:(\d{1,6})M)?(?:(\d{1,6})S)?)?\z`)
})

// eventTime is a date or a time as a calendar writes it.
type eventTime struct {
	time.Time        // zero where it cannot be read
	day       bool   // it is a date
	local     bool   // its zone is not known, and UTC stands in its place
	zone      string // what the calendar calls that zone
}

// eventEnd returns when an event ends (RFC 5545 section 3.6.1).
func eventEnd(c *component, start eventTime, zones map[string]zone) eventTime {
	end := start
	switch value, length := c.properties["DTEND"], c.value("DURATION"); {
	case value.value != "":
		return value.time(zones)
	case start.IsZero():
	case length != "":
		m := duration().FindStringSubmatch(length)
		if m == nil {
			return eventTime{}
		}
		var n [5]int
		for i, digits := range m[1:] {
			n[i], _ = strconv.Atoi(digits) // "" is 0
		}
		clock := time.Duration(n[2])*time.Hour + time.Duration(n[3])*time.Minute + time.Duration(n[4])*time.Second
		end.Time = start.AddDate(0, 0, 7*n[0]+n[1]).Add(clock) // days are of 23 to 25 hours
	case start.day:
		end.Time = start.AddDate(0, 0, 1)
	}
	return end
}

const localTime = "20060102T150405" // RFC 5545 section 3.3.5

// time reads a date or a time.
func (p property) time(zones map[string]zone) eventTime {
	value := strings.TrimSpace(p.value)
	if len(value) == len("20060102") {
		t, err := time.Parse("20060102", value)
		return eventTime{Time: t, day: err == nil}
	}
	clock, utc := strings.CutSuffix(value, "Z")
	if len(clock) == len("20060102T1504") {
		clock += "00"
	}
	local, err := time.Parse(localTime, clock)
	if err != nil {
		return eventTime{}
	}
	if utc {
		return eventTime{Time: local}
	}
	name := p.params["TZID"]
	loc := location(name)
	if z := zones[name]; loc == nil && z != nil {
		loc = z.at(local)
	}
	if loc == nil {
		loc = cmp.Or(location(windowsZones()[strings.ToLower(name)]), location(zoneBehind(name)))
	}
	if loc == nil {
		return eventTime{Time: local, local: true, zone: name}
	}
	local, _ = time.ParseInLocation(localTime, clock, loc)
	return eventTime{Time: local}
}

// zoneName matches the names of the time zone database; no path that leads
// elsewhere matches.
var zoneName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\A[A-Za-z0-9_+-]{1,40}(/[A-Za-z0-9_+-]{1,40}){0,2}\z`)
})

// location finds a zone by its name in the time zone database; nil when there is none.
func location(name string) *time.Location {
	if !zoneName().MatchString(name) || strings.EqualFold(name, "local") {
		return nil
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return nil
	}
	return loc
}

// person names somebody by name and address.
func person(p property) string {
	addr := plain.Line(p.value)
	if scheme, rest, ok := strings.Cut(addr, ":"); ok && strings.EqualFold(scheme, "mailto") {
		addr = rest
	}
	name := plain.Line(p.params["CN"])
	if strings.EqualFold(name, addr) {
		name = ""
	}
	return rfc5322.Address{Name: name, Addr: addr}.String()
}

var textEscapes = strings.NewReplacer(`\\`, `\`, `\,`, `,`, `\;`, `;`, `\n`, "\n", `\N`, "\n", `\:`, `:`, `\"`, `"`)

// unescapeText returns a text (RFC 5545 section 3.3.11) without its escapes. A comma
// that should have been escaped does not end the text.
func unescapeText(s string) string { return textEscapes.Replace(s) }

func shortText(s string) string {
	s, _ = plain.Head(plain.Line(s), maxEventText)
	return s
}

// property is a content line (RFC 5545 section 3.1).
type property struct {
	name   string            // in capitals
	params map[string]string // by name in capitals; nil without parameters
	value  string
}

// parseProperty reads an unfolded line; ok is false when it has no value.
func parseProperty(line string) (p property, ok bool) {
	line = strings.ToValidUTF8(line[:min(len(line), maxCalendarLine)], "")
	start, quoted := 0, false
	for i := range len(line) {
		c := line[i]
		quoted = quoted != (c == '"')
		if quoted || c != ';' && c != ':' {
			continue
		}
		word := line[start:i]
		start = i + 1
		if name, value, param := strings.Cut(word, "="); p.name == "" {
			p.name = strings.ToUpper(word)
		} else if param {
			if p.params == nil {
				p.params = map[string]string{}
			}
			p.params[strings.ToUpper(name)] = strings.TrimSpace(strings.Trim(value, `"`))
		}
		if c == ':' {
			p.value = strings.TrimRight(line[start:], "\r")
			return p, true
		}
	}
	return p, false
}

// component is an event or a time zone.
type component struct {
	name       string // VEVENT or VTIMEZONE
	method     string // of the calendar around it
	properties properties
	rules      []properties // STANDARD and DAYLIGHT of a time zone
}

// properties are the lines of a component, of each name the first.
type properties map[string]property

// value returns the value of a property without white space around it, "" when absent.
func (p properties) value(name string) string { return strings.TrimSpace(p[name].value) }

func (c *component) value(name string) string { return c.properties.value(name) }

// readCalendar finds the events and time zones, also those without an END. Lines
// without a value and alarms are left out.
//
// No library reads them: go-ical gives up a whole calendar at its first bad line, and panics
// at some.
func readCalendar(b []byte) []*component {
	cut := len(b) > maxCalendar
	s := strings.TrimPrefix(rfc5322.DecodeText(b[:min(len(b), maxCalendar)], ""), "\uFEFF")
	s = strings.NewReplacer("\r\n ", "", "\r\n\t", "", "\n ", "", "\n\t", "").Replace(s)
	if cut { // in the middle of a line
		s = s[:strings.LastIndexByte(s, '\n')+1]
	}
	var all []*component
	var method string
	var open *component // nil between two
	var into properties // receives properties; nil drops them
	depth := 0          // of the components open within this one
	for line := range strings.SplitSeq(s, "\n") {
		p, ok := parseProperty(line)
		if !ok {
			continue
		}
		kind := strings.ToUpper(strings.TrimSpace(p.value))
		switch {
		case p.name == "BEGIN" && (kind == "VEVENT" || kind == "VTIMEZONE"):
			into, depth = properties{}, 0
			open = &component{name: kind, method: method, properties: into}
			all = append(all, open)
		case p.name == "BEGIN" && kind == "VCALENDAR":
			open, method = nil, ""
		case p.name == "END" && (kind == "VCALENDAR" || open != nil && kind == open.name):
			open = nil
		case open == nil && p.name == "METHOD":
			method, _ = plain.Head(plain.Line(kind), 40)
		case open == nil:
		case p.name == "BEGIN":
			into = nil
			if depth++; depth == 1 && open.name == "VTIMEZONE" && (kind == "STANDARD" || kind == "DAYLIGHT") {
				into = properties{}
				open.rules = append(open.rules, into)
			}
		case p.name == "END":
			if depth = max(depth-1, 0); depth == 0 {
				into = open.properties
			}
		case into != nil && into[p.name].name == "":
			into[p.name] = p
		}
	}
	for _, c := range all { // METHOD may follow the events
		if c.method == "" {
			c.method = method
		}
	}
	return all
}
