package message

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/emersion/go-ical"
	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/mail/internal/rfc5322"
)

// Bounds of what is read of a calendar.
const (
	maxCalendar      = 256 << 10 // octets
	maxEvents        = 50
	maxZones         = 20
	maxCalendarLine  = 16 << 10 // octets of an unfolded line; a longer one is cut
	maxCalendarParam = 2 << 10  // octets of the parameters of a line; one with more is left out
	maxComponent     = 500      // lines of one component
	maxEventText     = 500      // runes of one field
)

// Event is one event of a calendar. Its texts are cleaned, on one line and at
// most 500 runes long.
type Event struct {
	Method                       string // what the calendar is for, such as REQUEST or CANCEL; "" when it does not say
	Summary, Location, Organizer string
	Start, End                   time.Time // zero when unreadable
	AllDay                       bool      // Start and End are days: midnight in UTC, End the day after the last
	Recurring                    bool      // Start and End are those of the first time
}

// Events returns the events of an iCalendar object (RFC 5545), decoded from its
// transfer encoding, in order: 50 at most, out of the first 256 KiB. What is
// broken is left out; the rest is still read.
//
// Times are in the zone that their TZID names in the time zone database, else in
// that of the VTIMEZONE of that name in the calendar, and in UTC where there is
// neither and where the calendar leaves the zone to the reader. Looking a zone
// up may read the database of the system.
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
	components := scanCalendar(b)
	zones := map[string]*zone{}
	for _, c := range components {
		if c.name != ical.CompTimezone || len(zones) >= maxZones {
			continue
		}
		if vtimezone := c.decode(); vtimezone != nil {
			if z := newZone(vtimezone); z != nil {
				zones[propText(vtimezone.Props, ical.PropTimezoneID)] = z
			}
		}
	}
	var events []calendarEvent
	for _, c := range components {
		if c.name != ical.CompEvent || len(events) >= maxEvents {
			continue
		}
		vevent := c.decode()
		if vevent == nil {
			continue
		}
		e := calendarEvent{Event: Event{Method: c.method}, description: calendarText(vevent.Props, ical.PropDescription)}
		e.Summary = shortText(calendarText(vevent.Props, ical.PropSummary))
		e.Location = shortText(calendarText(vevent.Props, ical.PropLocation))
		e.Organizer = shortText(organizer(vevent.Props.Get(ical.PropOrganizer)))
		e.Recurring = vevent.Props.Get(ical.PropRecurrenceRule) != nil || vevent.Props.Get(ical.PropRecurrenceDates) != nil
		e.Start, e.AllDay = propTime(vevent.Props.Get(ical.PropDateTimeStart), zones)
		if e.End = eventEnd(vevent.Props, e.Event, zones); e.End.Year() > 9999 { // RFC 3339 cannot say it
			e.End = time.Time{}
		}
		events = append(events, e)
	}
	return events
}

// eventEnd returns when an event ends (RFC 5545 section 3.6.1).
func eventEnd(props ical.Props, e Event, zones map[string]*zone) time.Time {
	const longest = 10 * 366 * 24 * time.Hour
	if end := props.Get(ical.PropDateTimeEnd); end != nil {
		t, _ := propTime(end, zones)
		return t
	}
	if e.Start.IsZero() {
		return time.Time{}
	}
	if duration := props.Get(ical.PropDuration); duration != nil {
		d, err := duration.Duration()
		if err != nil || d < 0 || d > longest {
			return time.Time{}
		}
		if days := d / (24 * time.Hour); d%(24*time.Hour) == 0 {
			return e.Start.AddDate(0, 0, int(days)) // days are of 23 to 25 hours
		}
		return e.Start.Add(d)
	}
	if e.AllDay {
		return e.Start.AddDate(0, 0, 1)
	}
	return e.Start
}

// propTime reads a date or a time; day says that it is a date.
func propTime(p *ical.Prop, zones map[string]*zone) (t time.Time, day bool) {
	if p == nil {
		return time.Time{}, false
	}
	value := strings.TrimSpace(p.Value)
	if len(value) == len("20060102") {
		t, err := time.ParseInLocation("20060102", value, time.UTC)
		return t, err == nil
	}
	if len(value) == len("20060102T1504Z") { // without seconds
		value = strings.TrimSuffix(value, "Z") + "00Z"
	}
	if strings.HasSuffix(value, "Z") {
		t, _ = time.ParseInLocation("20060102T150405Z", value, time.UTC)
		return t, false
	}
	local, err := time.ParseInLocation("20060102T150405", value, time.UTC)
	if err != nil {
		return time.Time{}, false
	}
	name := strings.TrimSpace(p.Params.Get(ical.PropTimezoneID))
	if name == "" {
		return local, false
	}
	loc := location(name)
	if loc == nil {
		if z := zones[name]; z != nil {
			loc = z.at(local)
		}
	}
	if loc == nil {
		return local, false
	}
	t, _ = time.ParseInLocation("20060102T150405", value, loc)
	return t, false
}

// location finds a zone by a name of the time zone database, or by one that ends
// with it, as "/example.org/20200101_1/Europe/Berlin"; nil when there is none.
func location(name string) *time.Location {
	const longest = 100
	if name == "" || len(name) > longest || strings.EqualFold(name, "local") {
		return nil
	}
	for _, r := range name {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/_+-.", r)) {
			return nil
		}
	}
	words := strings.Split(strings.Trim(name, "/"), "/")
	for n := min(len(words), 3); n > 0; n-- {
		// A word alone may be a zone only where it is the whole name.
		if n == 1 && len(words) > 1 {
			break
		}
		if loc, err := time.LoadLocation(strings.Join(words[len(words)-n:], "/")); err == nil {
			return loc
		}
	}
	return nil
}

// organizer names a person by name and address.
func organizer(p *ical.Prop) string {
	if p == nil {
		return ""
	}
	addr := plain.Line(p.Value)
	if len(addr) > len("mailto:") && strings.EqualFold(addr[:len("mailto:")], "mailto:") {
		addr = addr[len("mailto:"):]
	}
	name := plain.Line(p.Params.Get(ical.ParamCommonName))
	if strings.EqualFold(name, addr) {
		name = ""
	}
	return rfc5322.Address{Name: name, Addr: addr}.String()
}

// propText returns the value of a property as it stands.
func propText(props ical.Props, name string) string {
	if p := props.Get(name); p != nil {
		return strings.TrimSpace(p.Value)
	}
	return ""
}

// calendarText returns a text without its escapes. Unlike the library it keeps
// what stands behind a comma that should have been escaped.
func calendarText(props ical.Props, name string) string {
	p := props.Get(name)
	if p == nil {
		return ""
	}
	return calendarEscapes.Replace(p.Value)
}

var calendarEscapes = strings.NewReplacer(`\\`, `\`, `\,`, `,`, `\;`, `;`, `\n`, "\n", `\N`, "\n", `\:`, `:`, `\"`, `"`)

func shortText(s string) string {
	s, _ = plain.Head(plain.Line(s), maxEventText)
	return s
}

// component is the lines of an event or a time zone.
type component struct {
	name   string
	method string // of the calendar around it
	lines  []string
}

// decode returns nil when the library cannot read the component.
func (c component) decode() (found *ical.Component) {
	// The library panics on some lines that end within their parameters.
	// scanCalendar lets none of them pass; should it miss one, the event is lost
	// and not the process.
	defer func() {
		if recover() != nil {
			found = nil
		}
	}()
	text := "BEGIN:VCALENDAR\r\n" + strings.Join(c.lines, "\r\n") + "\r\nEND:VCALENDAR\r\n"
	calendar, err := ical.NewDecoder(strings.NewReader(text)).Decode()
	if err != nil || len(calendar.Children) == 0 {
		return nil
	}
	return calendar.Children[0]
}

// scanCalendar finds the events and time zones and makes each whole: with every
// component ended, without lines that are none and without alarms.
func scanCalendar(b []byte) []component {
	cut := len(b) > maxCalendar
	b = b[:min(len(b), maxCalendar)]
	s := strings.TrimPrefix(rfc5322.DecodeText(b, ""), "\uFEFF")
	s = strings.NewReplacer("\r\n ", "", "\r\n\t", "", "\n ", "", "\n\t", "").Replace(s)
	if cut { // in the middle of a line
		if i := strings.LastIndexByte(s, '\n'); i >= 0 {
			s = s[:i]
		}
	}
	var all []component
	var method string
	var cur *component
	var open []string // components within cur, itself first
	skipped := 0      // depth in one that is not read
	events := 0
	finish := func() {
		if cur == nil {
			return
		}
		for n := len(open) - 1; n >= 0; n-- {
			cur.lines = append(cur.lines, "END:"+open[n])
		}
		all = append(all, *cur)
		cur, open, skipped = nil, nil, 0
	}
	for line := range strings.SplitSeq(s, "\n") {
		name, value, ok := contentLine(&line)
		if !ok {
			continue
		}
		value = strings.ToUpper(strings.TrimSpace(value))
		switch {
		case name == "BEGIN" && (value == ical.CompEvent || value == ical.CompTimezone || value == ical.CompCalendar):
			finish()
			if value == ical.CompCalendar {
				method = ""
				continue
			}
			if value == ical.CompEvent {
				if events++; events > maxEvents {
					return all
				}
			}
			cur = &component{name: value, method: method, lines: []string{"BEGIN:" + value}}
			open = []string{value}
		case name == "METHOD" && cur == nil:
			method, _ = plain.Head(plain.Line(value), 40)
		case name == "END" && value == ical.CompCalendar:
			finish()
		case cur == nil:
		case name == "BEGIN":
			if skipped > 0 || value != ical.CompTimezoneStandard && value != ical.CompTimezoneDaylight || len(open) > 1 {
				skipped++
				continue
			}
			open = append(open, value)
			cur.lines = append(cur.lines, "BEGIN:"+value)
		case name == "END":
			switch {
			case value == open[0]:
				finish()
			case skipped > 0:
				skipped--
			case value == open[len(open)-1]:
				cur.lines = append(cur.lines, "END:"+value)
				open = open[:len(open)-1]
			}
		case skipped == 0 && len(cur.lines) < maxComponent:
			cur.lines = append(cur.lines, line)
		}
	}
	finish()
	for i := range all { // a method may stand behind the events
		if all[i].method == "" {
			all[i].method = method
		}
	}
	return all
}

// contentLine splits a line (RFC 5545 section 3.1) and makes it one that the
// library reads; ok is false when it is none. The library takes time that grows
// with the square of a parameter.
func contentLine(line *string) (name, value string, ok bool) {
	s := strings.TrimRight(*line, "\r")
	if len(s) > maxCalendarLine {
		s = strings.TrimRightFunc(s[:maxCalendarLine], func(r rune) bool { return r == utf8.RuneError || r == '\\' })
	}
	*line = s
	end := 0
	for end < len(s) && (s[end] == '-' || s[end] >= '0' && s[end] <= '9' || s[end]|0x20 >= 'a' && s[end]|0x20 <= 'z') {
		end++
	}
	name = strings.ToUpper(s[:end])
	if end == 0 || end == len(s) {
		return "", "", false
	}
	i := end
	for s[i] == ';' { // a parameter: name=value,"value"
		eq := strings.IndexAny(s[i+1:], "=;:\"")
		if eq <= 0 || s[i+1+eq] != '=' {
			return "", "", false
		}
		i += 1 + eq
		for {
			i++
			if i < len(s) && s[i] == '"' {
				quote := strings.IndexByte(s[i+1:], '"')
				if quote < 0 {
					return "", "", false
				}
				i += quote + 2
			} else {
				for i < len(s) && !strings.ContainsRune(`";:,`, rune(s[i])) {
					i++
				}
			}
			if i >= len(s) || i > maxCalendarParam {
				return "", "", false
			}
			if s[i] != ',' {
				break
			}
		}
	}
	if s[i] != ':' {
		return "", "", false
	}
	return name, s[i+1:], true
}
