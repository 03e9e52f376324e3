package message

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/postern-mail/postern/internal/plain"
)

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
	for _, tc := range []struct{ method, line, want string }{
		{"REQUEST", "", "requested"}, {"request", "", "requested"}, {"CANCEL", "", "cancelled"}, {"PUBLISH", "", "published"},
		{"REQUEST", "STATUS:CANCELLED", "cancelled"}, {"", "STATUS:cancelled", "cancelled"}, {"", "", ""}, {"X-NEW", "", ""}, {"REPLY", "", ""},
		{"REPLY", "ATTENDEE;PARTSTAT=ACCEPTED:mailto:bob@example.org", "accepted"}, {"REPLY", "ATTENDEE;CN=Bob;PARTSTAT=declined:mailto:bob@example.org", "declined"},
		{"REPLY", "ATTENDEE;PARTSTAT=TENTATIVE:mailto:bob@example.org", "tentative"}, {"REQUEST", "ATTENDEE;PARTSTAT=ACCEPTED:mailto:bob@example.org", "requested"},
		{"COUNTER", "", "another time proposed"},
	} {
		calendar := "BEGIN:VCALENDAR\r\nMETHOD:" + tc.method + "\r\nBEGIN:VEVENT\r\n" + tc.line + "\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
		if got := Events([]byte(calendar)); len(got) != 1 || got[0].State != tc.want {
			t.Errorf("%s %s: %+v, want %q", tc.method, tc.line, got, tc.want)
		}
	}
}

func TestEventTimes(t *testing.T) {
	for _, tc := range readTable[struct {
		Name       string
		Lines      []string
		Start, End string // RFC 3339; "" when zero
		AllDay     bool
	}](t, "event_time") {
		t.Run(tc.Name, func(t *testing.T) {
			zones := "BEGIN:VTIMEZONE\r\nTZID:Fixed\r\nBEGIN:STANDARD\r\nDTSTART:20300101T000000\r\nTZOFFSETFROM:+0530\r\nTZOFFSETTO:+0600\r\nEND:STANDARD\r\nEND:VTIMEZONE"
			half := strings.NewReplacer("W. Europe Standard Time", "Half", "TZOFFSETFROM", "X-FROM").Replace(outlookZone)
			got := Events(calendar("BEGIN:VEVENT", strings.Join(tc.Lines, "\r\n"), "END:VEVENT", outlookZone, zones, half))
			if len(got) != 1 {
				t.Fatalf("%d events", len(got))
			}
			e := got[0]
			if stamp(e.Start) != tc.Start || stamp(e.End) != tc.End || e.AllDay != tc.AllDay {
				t.Errorf("%s to %s, all day %v; want %s to %s, %v", stamp(e.Start), stamp(e.End), e.AllDay, tc.Start, tc.End, tc.AllDay)
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
	for _, tc := range []struct {
		name, text, want string // summaries
	}{
		{"empty", "", ""},
		{"no calendar", "Hello", ""},
		{"HTML", "<html>", ""},
		{"no calendar around it", "BEGIN:VEVENT\nSUMMARY:a\nEND:VEVENT", "a"},
		{"not ended", "BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:a", "a"},
		{"cut in a line", "BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:a\nLOCA", "a"},
		{"event in an event", "BEGIN:VEVENT\nSUMMARY:a\nBEGIN:VEVENT\nSUMMARY:b\nEND:VEVENT\nEND:VEVENT", "a b"},
		{"ended by the calendar", "BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:a\nEND:VCALENDAR\nBEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:b\nEND:VEVENT", "a b"},
		{"alarm that is not ended", "BEGIN:VEVENT\nBEGIN:VALARM\nSUMMARY:x\nEND:VEVENT\nBEGIN:VEVENT\nSUMMARY:b\nEND:VEVENT", " b"},
		{"lines that are none", "BEGIN:VEVENT\nnonsense\n:\n;\n=\n\nA;B\nA;B=\nA;B=\"\nA;B=\"c\nA;B=c\"d:e\nA;=x:y\nSUMMARY:a\nEND:VEVENT", "a"},
		{"parameters that end the line", "BEGIN:VEVENT\nSUMMARY;A=b,\nSUMMARY;A=\"b\"\nSUMMARY;A=\"b\"c:a\nEND:VEVENT", "a"},
		{"small letters", "begin:vcalendar\nbegin:vevent\nsummary:a\nend:vevent\nend:vcalendar", "a"},
		{"CR alone at the ends", "BEGIN:VEVENT\r\nSUMMARY:a\r\r\nEND:VEVENT\r\n", "a"},
		{"folded", "BEGIN:VEVENT\r\nSUM\r\n MARY:a\r\n\tb\r\nEND:VEVENT", "ab"},
		{"byte order mark", "\ufeffBEGIN:VEVENT\nSUMMARY:a\nEND:VEVENT", "a"},
		{"Latin-1", "BEGIN:VEVENT\nSUMMARY:caf\xe9\nEND:VEVENT", "café"},
		{"characters nobody sees", "BEGIN:VEVENT\nSUMMARY:a\u202eb\u200bc\x00\nEND:VEVENT", "abc"},
		{"escapes", "BEGIN:VEVENT\nSUMMARY:a\\,b\\;c\\\\nd\\x\\\nEND:VEVENT", "a,b;c\\nd\\x\\"},
		{"tasks", "BEGIN:VTODO\nSUMMARY:x\nEND:VTODO\nBEGIN:VEVENT\nSUMMARY:a\nEND:VEVENT", "a"},
		{"no summary", "BEGIN:VEVENT\nEND:VEVENT", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			for _, e := range Events([]byte(tc.text)) {
				got = append(got, e.Summary)
			}
			if s := strings.Join(got, " "); s != tc.want {
				t.Errorf("%q, want %q", s, tc.want)
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
	for name, text := range map[string]string{
		"long parameter":              "BEGIN:VEVENT\nSUMMARY:a\nX;A=" + strings.Repeat("b", 200_000) + ":c\nEND:VEVENT",
		"long parameter of a summary": "BEGIN:VEVENT\nSUMMARY;A=" + strings.Repeat("b", 20_000) + ":x\nSUMMARY:a\nEND:VEVENT",
		"many parameters":             "BEGIN:VEVENT\nSUMMARY:a\nX" + strings.Repeat(";A=b", 50_000) + ":c\nEND:VEVENT",
		"deep":                        "BEGIN:VEVENT\nSUMMARY:a\n" + strings.Repeat("BEGIN:VALARM\n", 20_000),
		"many lines":                  "BEGIN:VEVENT\nSUMMARY:a\n" + strings.Repeat("X:y\n", 60_000) + "END:VEVENT",
		"many zones":                  "BEGIN:VEVENT\nSUMMARY:a\nEND:VEVENT\n" + strings.Repeat("BEGIN:VTIMEZONE\nTZID:a\nEND:VTIMEZONE\n", 6000),
		"beyond the end":              "BEGIN:VEVENT\nSUMMARY:a\nEND:VEVENT\n" + strings.Repeat("X:y\n", 100_000) + "BEGIN:VEVENT\nSUMMARY:b\nEND:VEVENT",
	} {
		if got := Events([]byte(text)); len(got) != 1 || got[0].Summary != "a" {
			t.Errorf("%s: %d events", name, len(got))
		}
	}
}

func TestEventMethods(t *testing.T) {
	for text, want := range map[string]string{
		"BEGIN:VCALENDAR\nMETHOD:cancel\nBEGIN:VEVENT\nEND:VEVENT\nEND:VCALENDAR":                          "CANCEL",
		"BEGIN:VCALENDAR\nBEGIN:VEVENT\nEND:VEVENT\nMETHOD:REPLY\nEND:VCALENDAR":                           "REPLY",
		"BEGIN:VCALENDAR\nBEGIN:VEVENT\nEND:VEVENT\nEND:VCALENDAR":                                         "",
		"BEGIN:VCALENDAR\nBEGIN:VEVENT\nMETHOD:X\nEND:VEVENT\nEND:VCALENDAR":                               "",
		"BEGIN:VCALENDAR\nMETHOD:" + strings.Repeat("x", 99) + "\nBEGIN:VEVENT\nEND:VEVENT\nEND:VCALENDAR": strings.Repeat("X", 40),
	} {
		if got := Events([]byte(text)); len(got) != 1 || got[0].Method != want {
			t.Errorf("%q: %+v, want %q", text, got, want)
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
			for _, s := range []string{e.Method, e.Summary, e.Location, e.Organizer} {
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
		if text, _, _, ok := PartText(NewPart(Part{Type: "text", Subtype: "calendar"}, nil), b, 500); ok && (utf8.RuneCountInString(text) > 500 || plain.Text(text) != text) {
			t.Errorf("text %q", text)
		}
	})
}
