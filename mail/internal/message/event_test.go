package message

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/internal/testmain"
)

var must = testmain.Must

func calendar(lines ...string) []byte {
	return []byte("BEGIN:VCALENDAR\r\nMETHOD:REQUEST\r\n" + strings.Join(lines, "\r\n") + "\r\nEND:VCALENDAR\r\n")
}

func event(lines ...string) []byte {
	return calendar("BEGIN:VEVENT\r\n" + strings.Join(lines, "\r\n") + "\r\nEND:VEVENT")
}

// outlookZone is Central European time under Outlook's name for it, which is not in the
// time zone database.
const outlookZone = "BEGIN:VTIMEZONE\r\nTZID:W. Europe Standard Time\r\n" +
	"BEGIN:STANDARD\r\nDTSTART:16010101T030000\r\nTZOFFSETFROM:+0200\r\nTZOFFSETTO:+0100\r\nRRULE:FREQ=YEARLY;INTERVAL=1;BYDAY=-1SU;BYMONTH=10\r\nEND:STANDARD\r\n" +
	"BEGIN:DAYLIGHT\r\nDTSTART:16010101T020000\r\nTZOFFSETFROM:+0100\r\nTZOFFSETTO:+0200\r\nRRULE:FREQ=YEARLY;INTERVAL=1;BYDAY=-1SU;BYMONTH=3\r\nEND:DAYLIGHT\r\nEND:VTIMEZONE"

func TestEventFields(t *testing.T) {
	got := Events(event("UID:1", `SUMMARY:Lunch\, then work\nat`, " Ann's", "LOCATION;LANGUAGE=en:Room 1; 2nd floor, left", `ORGANIZER;CN="Lee, Ann":MAILTO:ann@example.org`,
		"DTSTART:20260504T100000Z", "DTEND:20260504T113000Z", "RRULE:FREQ=SECONDLY", "BEGIN:VALARM", "SUMMARY:x", "DTSTART:19990101", "END:VALARM"))
	want := Event{Method: "REQUEST", State: "requested", Summary: "Lunch, then work atAnn's", Location: "Room 1; 2nd floor, left", Organizer: `"Lee, Ann" <ann@example.org>`,
		Start: time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC), End: time.Date(2026, 5, 4, 11, 30, 0, 0, time.UTC), Recurring: true}
	if len(got) != 1 || got[0] != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestEventStates(t *testing.T) {
	for _, tc := range testmain.Table[struct{ Method, Line, Want string }](t, "testdata/cases/event_state.txt") {
		calendar := "BEGIN:VCALENDAR\r\nMETHOD:" + tc.Method + "\r\nBEGIN:VEVENT\r\n" + tc.Line + "\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
		if got := Events([]byte(calendar)); len(got) != 1 || got[0].State != tc.Want {
			t.Errorf("%s %s: %+v, want %q", tc.Method, tc.Line, got, tc.Want)
		}
	}
}

func TestEventTimes(t *testing.T) {
	for _, tc := range readTable[struct {
		Name       string
		Lines      []string
		Start, End string // RFC 3339; "" when zero
		AllDay     bool
		Local      bool
		Zone       string
	}](t, "event_time") {
		t.Run(tc.Name, func(t *testing.T) {
			zones := "BEGIN:VTIMEZONE\r\nTZID:Fixed\r\nBEGIN:STANDARD\r\nDTSTART:20300101T000000\r\nTZOFFSETFROM:+0530\r\nTZOFFSETTO:+0600\r\nEND:STANDARD\r\nEND:VTIMEZONE"
			half := strings.NewReplacer("W. Europe Standard Time", "Half", "TZOFFSETFROM", "X-FROM").Replace(outlookZone)
			got := Events(calendar("BEGIN:VEVENT", strings.Join(tc.Lines, "\r\n"), "END:VEVENT", outlookZone, zones, half))
			if len(got) != 1 {
				t.Fatalf("%d events", len(got))
			}
			e := got[0]
			if stamp(e.Start) != tc.Start || stamp(e.End) != tc.End || e.AllDay != tc.AllDay || e.Local != tc.Local || e.Zone != tc.Zone {
				t.Errorf("%s to %s, all day %v, local %v %q; want %+v", stamp(e.Start), stamp(e.End), e.AllDay, e.Local, e.Zone, tc)
			}
		})
	}
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339)
}

// A broken line is left out, and the rest is read.
func TestBrokenCalendars(t *testing.T) {
	for _, tc := range testmain.Table[struct{ Name, Text, Want string }](t, "testdata/cases/event_broken.txt") {
		t.Run(tc.Name, func(t *testing.T) {
			var got []string
			for _, e := range Events([]byte(tc.Text)) {
				got = append(got, e.Summary)
			}
			if s := strings.Join(got, " "); s != tc.Want {
				t.Errorf("%q, want %q", s, tc.Want)
			}
		})
	}
}

func TestCalendarBounds(t *testing.T) {
	if n := len(Events([]byte(strings.Repeat("BEGIN:VEVENT\nSUMMARY:a\nEND:VEVENT\n", 500)))); n != maxEvents {
		t.Errorf("%d events", n)
	}
	long := Events(event("SUMMARY:" + strings.Repeat("ü", 50_000)))
	if len(long) != 1 || utf8.RuneCountInString(long[0].Summary) != maxEventText || !utf8.ValidString(long[0].Summary) {
		t.Error("a long summary is not cut")
	}
	for _, tc := range testmain.Table[struct{ Name, Text string }](t, "testdata/cases/event_bound.txt") {
		if got := Events([]byte(tc.Text)); len(got) != 1 || got[0].Summary != "a" {
			t.Errorf("%s: %d events", tc.Name, len(got))
		}
	}
}

func TestEventMethods(t *testing.T) {
	for _, tc := range testmain.Table[struct{ Text, Want string }](t, "testdata/cases/event_method.txt") {
		if got := Events([]byte(tc.Text)); len(got) != 1 || got[0].Method != tc.Want {
			t.Errorf("%q: %+v, want %q", tc.Text, got, tc.Want)
		}
	}
}

func FuzzEvents(f *testing.F) {
	f.Add(event("SUMMARY:a", `ORGANIZER;CN="b":mailto:c@example.org`, "DTSTART;TZID=W. Europe Standard Time:20260504T100000", "DURATION:P1DT2H"))
	f.Add(calendar(outlookZone, "BEGIN:VEVENT", "DTSTART;VALUE=DATE:20260504", "BEGIN:VALARM", "END:VEVENT"))
	f.Add([]byte("BEGIN:VEVENT\nA;B=\"c\"\nA;B=c,:d\nEND:X"))
	f.Fuzz(func(t *testing.T, b []byte) {
		events := Events(b)
		if len(events) > maxEvents {
			t.Errorf("%d events", len(events))
		}
		for _, e := range events {
			for _, s := range []string{e.Method, e.Summary, e.Location, e.Organizer, e.Attendee, e.Zone} {
				if plain.Line(s) != s || utf8.RuneCountInString(s) > maxEventText {
					t.Errorf("%q is not a clean line", s)
				}
			}
			if _, err := e.Start.MarshalJSON(); err != nil {
				t.Errorf("start %v: %v", e.Start, err)
			}
			if _, err := e.End.MarshalJSON(); err != nil {
				t.Errorf("end %v: %v", e.End, err)
			}
		}
		if text, _, _, ok := PartText(nil, NewPart(Part{Type: "text", Subtype: "calendar"}, nil), b, 500); ok && (utf8.RuneCountInString(text) > 500 || plain.Text(text) != text) {
			t.Errorf("text %q", text)
		}
	})
}

func TestEveryZoneOfWindowsIsInTheDatabase(t *testing.T) {
	if n := len(windowsZones()); n < 130 {
		t.Errorf("%d names", n)
	}
	for name, zone := range windowsZones() {
		if location(zone) == nil {
			t.Errorf("%s: %s", name, zone)
		}
	}
}
