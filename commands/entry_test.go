package commands

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
)

func TestShortened(t *testing.T) {
	for _, test := range []struct {
		from          []mail.Address
		subject       string
		room          int
		sender, short string
	}{
		{[]mail.Address{{Name: "Ann Lee", Addr: "ann@example.org"}}, "Shelves", 60, "Ann Lee <ann@example.org>", "Shelves"},
		{[]mail.Address{{Name: "Ann Lee", Addr: "ann@example.org"}}, "Shelves for the reading room", 45, "ann@example.org", "Shelves for the reading room"},
		{[]mail.Address{{Name: "Ann Lee", Addr: "ann@example.org"}}, "Shelves for the reading room", 36, "ann@example.org", "Shelves for the read…"},
		{[]mail.Address{{Name: "Annabella Lee", Addr: "ann@example.org"}}, "Shelves", 36, "Annabella… <ann@example.org>", "Shelves"},
		{[]mail.Address{{Name: "Lee, Annabella Maria", Addr: "ann@example.org"}}, "Shelves", 36, "Lee, Annab… <ann@example.org>", "Shelves"},
		{[]mail.Address{{Name: "boss@example.org (the boss)", Addr: "x@evil.example"}}, "Quick favour", 40, "x@evil.example", "Quick favour"},
		{[]mail.Address{{Name: "Ann", Addr: "ann@example.org"}, {Name: "Bob", Addr: "bob@example.org"}}, "Shelves", 36, "Ann <ann@example.org>, …", "Shelves"},
		{[]mail.Address{{Name: "Ann", Addr: "ann@example.org"}, {Name: "Bob", Addr: "bob@example.org"}}, "Shelves", 60, "Ann <ann@example.org>, Bob <bob@example.org>", "Shelves"},
		{[]mail.Address{{Addr: "bounces-0123456789-0123456789@example.org"}}, "Shelves", 40, "bounces-0123456789-…@example.org", "Shelves"},
		{[]mail.Address{{Addr: "x@mail.example.org.this.is.long.evil.example"}}, "Shelves", 36, "…e.org.this.is.long.evil.example", "Shelves"},
		{nil, "Shelves", 40, "", "Shelves"},
		{[]mail.Address{{Addr: "ann@example.org"}}, "", 40, "ann@example.org", ""},
		{[]mail.Address{{Addr: "ann@example.org"}}, "日本語日本語日本語日本語日本語日本語日本語", 32, "ann@example.org", "日本語日本語日本語日本語日本語日…"},
	} {
		e := entryOf(&mailbox.Summary{From: test.from, Subject: test.subject}, false)
		sender, short := e.shortened(test.room)
		if sender != test.sender || short != test.short {
			t.Errorf("%q %q in %d: %q %q, want %q %q", test.from, test.subject, test.room, sender, short, test.sender, test.short)
		}
	}
}

func FuzzShortenedFitsAndKeepsWhoseItIs(f *testing.F) {
	f.Add("Ann Lee", "ann@example.org", "bob@example.org", "Shelves", uint8(10))
	f.Add("a <b@c>", strings.Repeat("x", 100)+"@"+strings.Repeat("y.", 60)+"example", "", strings.Repeat("é", 300), uint8(0))
	f.Add("boss@example.org", "", "eve@example.net", strings.Repeat("é", 30), uint8(3))
	f.Add("<", "<@>", "<", "", uint8(200))
	f.Fuzz(func(t *testing.T, name, address, other, subject string, extra uint8) {
		if !utf8.ValidString(name) || !utf8.ValidString(address) || !utf8.ValidString(other) || !utf8.ValidString(subject) {
			t.Skip("summaries are valid UTF-8, which package mail sees to")
		}
		room := minRoom + int(extra)%(maxRoom-minRoom)
		e := entryOf(&mailbox.Summary{From: []mail.Address{{Name: name, Addr: address}, {Addr: other}}, Subject: subject}, false)
		sender, short := e.shortened(room)
		if n := utf8.RuneCountInString(sender + short); n > max(room, maxAddress+minSubject)+len(", …") {
			t.Fatalf("%d characters in room %d: %q %q", n, room, sender, short)
		}
		if !utf8.ValidString(sender + short) {
			t.Fatalf("%q %q", sender, short)
		}
		if short != subject && (!strings.HasSuffix(short, "…") || utf8.RuneCountInString(short) > utf8.RuneCountInString(subject)) {
			t.Fatalf("%q became %q", subject, short)
		}
		if utf8.RuneCountInString(address) <= max(room-minSubject, maxAddress) && !strings.Contains(sender, address) {
			t.Fatalf("%q of %q lost its address: %q", address, name, sender)
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
