package rfc5322

import (
	"slices"
	"strings"
	"testing"

	"github.com/postern-mail/postern/internal/testmain"
)

func from(value string) Header {
	return Header{fields: []Field{{Name: "From", Value: value}}}
}

// addresses makes addresses of names and addresses in turn.
func addresses(list []string) (all []Address) {
	for pair := range slices.Chunk(list, 2) {
		all = append(all, Address{pair[0], pair[1]})
	}
	return all
}

func TestAddressesReadsWhatPeopleSee(t *testing.T) {
	for _, tt := range testmain.Table[struct {
		In   string
		Want []string
	}](t, "testdata/cases/addresses.txt") {
		if got := from(tt.In).Addresses("from"); !slices.Equal(got, addresses(tt.Want)) {
			t.Errorf("%q: %#v, want %#v", tt.In, got, tt.Want)
		}
	}
}

func TestAddressesReadsEveryField(t *testing.T) {
	h := ParseHeader([]byte("From: a@b.c\nTo: x@y.z\nFROM: d@e.f\n"))
	if got := h.Addresses("From"); len(got) != 2 || got[1].Addr != "d@e.f" {
		t.Errorf("%v", got)
	}
}

func TestAddressUnmarshalTextReadsOnePersonElseAName(t *testing.T) {
	for text, want := range map[string]Address{
		"Ann Lee <ann@example.org>":            {"Ann Lee", "ann@example.org"},
		`"boss@good.com" <x@evil.org>`:         {"boss@good.com", "x@evil.org"},
		`"a \"b\" \\c" <j@example.org>`:        {`a "b" \c`, "j@example.org"},
		"":                                     {},
		"Ann <ann@example.org>, b@example.org": {Name: "Ann <ann@example.org>, b@example.org"},
	} {
		a := Address{"old", "old@example.org"}
		if err := a.UnmarshalText([]byte(text)); err != nil || a != want {
			t.Errorf("%q: %#v, %v; want %#v", text, a, err, want)
		}
	}
}

func TestAddressStringQuotesOnlyWhereNeeded(t *testing.T) {
	for _, tc := range testmain.Table[struct{ Want, Name, Addr string }](t, "testdata/cases/address_string.txt") {
		if got := (Address{tc.Name, tc.Addr}).String(); got != tc.Want {
			t.Errorf("%q, %q: %s, want %s", tc.Name, tc.Addr, got, tc.Want)
		}
	}
}

// The text of String is read back as the same single address.
func TestAddressStringIsReadBack(t *testing.T) {
	for _, a := range []Address{
		{"Ann Lee", "ann@example.org"},
		{`x" <boss@good.com>, "`, "x@evil.org"},
		{`back\slash`, "x@evil.org"},
		{"Jörg (x)", "x@evil.org"},
	} {
		if got := from(a.String()).Addresses("From"); len(got) != 1 || got[0] != a {
			t.Errorf("%#v became %#v", a, got)
		}
		if got, ok := from(a.String()).StrictAddresses("From"); !ok || len(got) != 1 || got[0] != a.Addr {
			t.Errorf("%#v is strictly %q %v", a, got, ok)
		}
	}
}

func TestStrictAddressesTakesOnlyWhatAllAgreeOn(t *testing.T) {
	for _, tc := range testmain.Table[struct{ In, Want string }](t, "testdata/cases/strict.txt") {
		got, ok := from(tc.In).StrictAddresses("From")
		if !ok || strings.Join(got, " ") != tc.Want {
			t.Errorf("%q: %q %v, want %q", tc.In, got, ok, tc.Want)
		}
	}
	for _, tc := range testmain.Table[struct{ In string }](t, "testdata/cases/strict_refused.txt") {
		if got, ok := from(tc.In).StrictAddresses("From"); ok {
			t.Errorf("%q was read as %q", tc.In, got)
		}
	}
	if got, ok := (Header{}).StrictAddresses("From"); len(got) != 0 || !ok {
		t.Errorf("no field: %q %v", got, ok)
	}
}

func BenchmarkAddressesHostile(b *testing.B) {
	for name, unit := range map[string]string{
		"open comments": "(", "open quotes": "\"", "open brackets": "<", "brackets and commas": "<,", "words and colons": "a@b :",
		"at signs": "a @ ", "closed quotes": `"" `, "names": "a, ", "encoded words": "=?a?q?x", "mixed": "<(\",@",
	} {
		h := from(strings.Repeat(unit, MaxFieldBytes/len(unit)))
		b.Run(name, func(b *testing.B) {
			b.SetBytes(MaxFieldBytes)
			for b.Loop() {
				h.Addresses("From")
				h.StrictAddresses("From")
			}
		})
	}
}
