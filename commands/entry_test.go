package commands

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestShortened(t *testing.T) {
	for _, test := range []struct {
		from          []string
		subject       string
		room          int
		sender, short string
	}{
		{[]string{"Ann Lee <ann@example.org>"}, "Shelves", 60, "Ann Lee <ann@example.org>", "Shelves"},
		{[]string{"Ann Lee <ann@example.org>"}, "Shelves for the reading room", 45, "ann@example.org", "Shelves for the reading room"},
		{[]string{"Ann Lee <ann@example.org>"}, "Shelves for the reading room", 36, "ann@example.org", "Shelves for the read…"},
		{[]string{"Annabella Lee <ann@example.org>"}, "Shelves", 36, "Annabella… <ann@example.org>", "Shelves"},
		{[]string{`"Lee, Annabella Maria" <ann@example.org>`}, "Shelves", 36, "Lee, Annab… <ann@example.org>", "Shelves"},
		{[]string{`"boss@example.org (the boss)" <x@evil.example>`}, "Quick favour", 40, "x@evil.example", "Quick favour"},
		{[]string{"Ann <ann@example.org>", "Bob <bob@example.org>"}, "Shelves", 36, "Ann <ann@example.org>, …", "Shelves"},
		{[]string{"Ann <ann@example.org>", "Bob <bob@example.org>"}, "Shelves", 60, "Ann <ann@example.org>, Bob <bob@example.org>", "Shelves"},
		{[]string{"bounces-0123456789-0123456789@example.org"}, "Shelves", 40, "bounces-0123456789-…@example.org", "Shelves"},
		{[]string{"x@mail.example.org.this.is.long.evil.example"}, "Shelves", 36, "…e.org.this.is.long.evil.example", "Shelves"},
		{nil, "Shelves", 40, "", "Shelves"},
		{[]string{"ann@example.org"}, "", 40, "ann@example.org", ""},
		{[]string{"ann@example.org"}, "日本語日本語日本語日本語日本語日本語日本語", 32, "ann@example.org", "日本語日本語日本語日本語日本語日…"},
	} {
		sender, short := shortened(test.from, test.subject, test.room)
		if sender != test.sender || short != test.short {
			t.Errorf("%q %q in %d: %q %q, want %q %q", test.from, test.subject, test.room, sender, short, test.sender, test.short)
		}
	}
}

func FuzzShortenedFitsAndKeepsWhoseItIs(f *testing.F) {
	f.Add("Ann Lee <ann@example.org>", "bob@example.org", "Shelves", uint8(10))
	f.Add(`"a <b@c>" <`+strings.Repeat("x", 100)+"@"+strings.Repeat("y.", 60)+"example>", "", strings.Repeat("é", 300), uint8(0))
	f.Add("<@>", "<", "", uint8(200))
	f.Fuzz(func(t *testing.T, one, two, subject string, extra uint8) {
		if !utf8.ValidString(one) || !utf8.ValidString(two) || !utf8.ValidString(subject) {
			t.Skip("summaries are valid UTF-8, which package mail sees to")
		}
		room := minRoom + int(extra)%(maxRoom-minRoom)
		sender, short := shortened([]string{one, two}, subject, room)
		if n := utf8.RuneCountInString(sender + short); n > max(room, maxAddress+minSubject)+len(", …") {
			t.Fatalf("%d characters in room %d: %q %q", n, room, sender, short)
		}
		if !utf8.ValidString(sender + short) {
			t.Fatalf("%q %q", sender, short)
		}
		if short != subject && (!strings.HasSuffix(short, "…") || utf8.RuneCountInString(short) > utf8.RuneCountInString(subject)) {
			t.Fatalf("%q became %q", subject, short)
		}
		if _, address := splitSender(one); utf8.RuneCountInString(address) <= max(room-minSubject, maxAddress) && !strings.Contains(sender, address) {
			t.Fatalf("%q lost its address: %q", one, sender)
		}
	})
}

func TestSizesAreThoseOfAnAnswer(t *testing.T) {
	for s, want := range map[string]int{"a": 3, `"\`: 6, "\n\t": 6, "\x01": 8, "é日🎉": 2 + 2 + 3 + 4, "\u200b": 8, "\u0085": 8, "\U000e0041": 14, "<&>": 5} {
		if got := quotedSize(s); got != want {
			t.Errorf("%q: %d, want %d", s, got, want)
		}
		if got := encodedSize(s); got != want {
			t.Errorf("%q encoded: %d, want %d", s, got, want)
		}
	}
	if got := encodedSize(json.RawMessage(`{"a":1}`)); got != 7 {
		t.Errorf("raw: %d", got)
	}
}
