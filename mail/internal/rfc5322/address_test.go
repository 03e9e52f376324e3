package rfc5322

import (
	"slices"
	"strings"
	"testing"
)

func from(value string) Header {
	return Header{fields: []Field{{Name: "From", Value: value}}}
}

func TestAddressesReadsWhatPeopleSee(t *testing.T) {
	tests := []struct {
		in   string
		want []Address
	}{
		{"", nil},
		{"ann@example.org", []Address{{"", "ann@example.org"}}},
		{"Ann Lee <ann@example.org>", []Address{{"Ann Lee", "ann@example.org"}}},
		{`"Lee, Ann" <ann@example.org>, bob@example.org`, []Address{{"Lee, Ann", "ann@example.org"}, {"", "bob@example.org"}}},
		{`Lee, Ann <ann@example.org>`, []Address{{"Lee, Ann", "ann@example.org"}}},
		{`"Ann \"A\\B\" Lee" <ann@example.org>`, []Address{{`Ann "A\B" Lee`, "ann@example.org"}}},
		{"=?utf-8?q?J=C3=B6rg?= <j@example.org>", []Address{{"Jörg", "j@example.org"}}},
		{`"=?utf-8?q?J=C3=B6rg?=" <j@example.org>`, []Address{{"Jörg", "j@example.org"}}},
		{"J\xf6rg <j@example.org>", []Address{{"Jörg", "j@example.org"}}},
		{"ann@example.org (Ann Lee)", []Address{{"Ann Lee", "ann@example.org"}}},
		{"<ann@example.org(a(b))>", []Address{{"", "ann@example.org"}}},
		{"<ann@example.org> (Ann (the) Lee)", []Address{{"Ann (the) Lee", "ann@example.org"}}},
		{"Team: a@b.c, Bob <d@e.f>;", []Address{{"", "a@b.c"}, {"Bob", "d@e.f"}}},
		{"Team: a@b.c; x@y.z", []Address{{"", "a@b.c"}, {"", "x@y.z"}}},
		{"undisclosed-recipients:;", nil},
		{"a@b.c; d@e.f;", []Address{{"", "a@b.c"}, {"", "d@e.f"}}},
		{"a@b.c d@e.f", []Address{{"", "a@b.c"}, {"", "d@e.f"}}},
		{"Ann Lee ann@example.org", []Address{{"Ann Lee", "ann@example.org"}}},
		{"Ann <ann@example.org", []Address{{"Ann", "ann@example.org"}}},
		{"Ann <ann@example.org, Bob <bob@example.org>", []Address{{"Ann", "ann@example.org"}, {"Bob", "bob@example.org"}}},
		{"<<ann@example.org>>", []Address{{"", "ann@example.org"}}},
		{"<a@b.c> <d@e.f>", []Address{{"", "a@b.c"}, {"", "d@e.f"}}},
		{"<@relay.org,@b.org:ann@example.org>", []Address{{"", "ann@example.org"}}},
		{"ann @ example.org", []Address{{"", "ann@example.org"}}},
		{`"ann lee"@example.org`, []Address{{"", `"ann lee"@example.org`}}},
		{`"Ann <ann@example.org>`, []Address{{"Ann", "ann@example.org"}}},
		{"Ann (x <ann@example.org>", []Address{{"Ann x", "ann@example.org"}}},
		{"Mail Delivery System <>", []Address{{"Mail Delivery System", ""}}},
		{"root", []Address{{"root", ""}}},
		{"Lee, Ann", []Address{{"Lee, Ann", ""}}},
		{"a@good.com <b@evil.org>", []Address{{"a@good.com", "b@evil.org"}}},
		{"=?utf-8?q?a=40good.com?= <b@evil.org>", []Address{{"a@good.com", "b@evil.org"}}},
		{"=?utf-8?q?a=40good.com?=", []Address{{"a@good.com", ""}}},
		{"Ann\u202e <ann@example.org>,,", []Address{{"Ann", "ann@example.org"}}},
		{"ann@[IPv6:::1]", []Address{{"", "ann@[IPv6:::1]"}}},
	}
	for _, tt := range tests {
		if got := from(tt.in).Addresses("from"); !slices.Equal(got, tt.want) {
			t.Errorf("%q: %#v, want %#v", tt.in, got, tt.want)
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
	for want, a := range map[string]Address{
		"":                                       {},
		"ann@example.org":                        {"", "ann@example.org"},
		"Ann Lee <ann@example.org>":              {"Ann Lee", "ann@example.org"},
		"Jörg O'Neil-Öz <j@example.org>":         {"Jörg O'Neil-Öz", "j@example.org"},
		`"Lee, Ann" <ann@example.org>`:           {"Lee, Ann", "ann@example.org"},
		`"J. Lee" <j@example.org>`:               {"J. Lee", "j@example.org"},
		`"a \"b\" \\c" <j@example.org>`:          {`a "b" \c`, "j@example.org"},
		`"boss@good.com" <x@evil.org>`:           {"boss@good.com", "x@evil.org"},
		`"boss@good.com"`:                        {"boss@good.com", ""},
		"Mail Delivery System":                   {"Mail Delivery System", ""},
		"two lines <a@b.c>":                      {"two\r\nlines", "a@b.c"},
		`"Ann <boss@good.com>" <x@evil.org>`:     {"Ann <boss@good.com>", "x@evil.org"},
		`"x\" <boss@good.com>, \"" <x@evil.org>`: {`x" <boss@good.com>, "`, "x@evil.org"},
	} {
		if got := a.String(); got != want {
			t.Errorf("%#v: %s, want %s", a, got, want)
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
	for in, want := range map[string]string{
		"ann@example.org":                                        "ann@example.org",
		" Ann Lee <ann@example.org> ":                            "ann@example.org",
		`"Lee, Ann" <ann@example.org>`:                           "ann@example.org",
		`"Lee \"A\" <x@y>" < ann@example.org >`:                  "ann@example.org",
		"J. O'Neil <ann@example.org>, b@c.d":                     "ann@example.org b@c.d",
		"J\xf6rg <j@example.org>":                                "j@example.org",
		"=?gb2312?b?xOO6ww==?= =?x?q?y?= <a@b.c>":                "a@b.c",
		"ann@example.org (Cron Daemon)":                          "ann@example.org",
		"Ann (work) <ann@example.org>":                           "ann@example.org",
		"<ann@example.org>":                                      "ann@example.org",
		"jörg@bücher.example":                                    "jörg@bücher.example",
		`"ann@example.org" <ann@example.org>`:                    "ann@example.org",
		"no-reply+a=b@lists.example.org,\tx@y.z, <q@r.s>":        "no-reply+a=b@lists.example.org x@y.z q@r.s",
		"xn--bcher-kva@xn--bcher-kva.example":                    "xn--bcher-kva@xn--bcher-kva.example",
		`"x" "y" z <` + strings.Repeat("a", 240) + `@b.example>`: strings.Repeat("a", 240) + "@b.example",
	} {
		got, ok := from(in).StrictAddresses("From")
		if !ok || strings.Join(got, " ") != want {
			t.Errorf("%q: %q %v, want %q", in, got, ok, want)
		}
	}
	for _, in := range []string{
		"", "root", "Ann Lee", "<>", "@", "a@", "@b", "a@b@c", "a@.b", "a@b.", "a..b@c.d", ".a@b.c", "a@b..c",
		"a@good.com <b@evil.org>",
		"<a@good.com> <b@evil.org>",
		"<a@good.com> b@evil.org",
		"<<a@good.com>>", "<a@good.com", "a@good.com>", "Ann a@good.com",
		"<@relay.org:a@good.com>",
		"Team: a@good.com;", "a@good.com;", "a@good.com,", ",a@good.com", "a@good.com,,b@good.com", "a@good.com x",
		`"a"@good.com`, `<"a"@good.com>`, "a@[192.0.2.1]", "a @good.com", "a@ good.com",
		"a@good.com (b@evil.org)", "a@good.com (x (y))", `a@good.com (x \) y)`, "a@good.com (x", "a@good.com (x, y)",
		"a(x)@good.com", "a@(x)good.com", "a@good.com (x) (y)", "<a@good.com (x)>",
		"a@good.com\x00", "a\x00@good.com", "\x00a@good.com", "Ann\x00 <a@good.com>", "\"A\x00\" <a@good.com>",
		"a@good.com\r", "a@good.com\r, b@evil.org", "Ann\r<a@good.com>", "\"A\r\" <a@good.com>",
		"=?utf-8?q?a?=@good.com", "<=?utf-8?q?a=40good.com?=>", "a@=?utf-8?q?good.com?=",
		"\"Ann <a@good.com>", "Ann\" <a@good.com>", `"A\x" <a@good.com>`, "Lee, Ann <a@good.com>",
		"a@good\u200b.com", "a@go\u00adod.com", "a@good.com\u202e", "a\u00a0b@good.com", "a@good\xff.com", "a\xff@good.com",
		"[x] <a@good.com>", "a:b <a@good.com>",
		strings.Repeat("a", 250) + "@good.com",
	} {
		if got, ok := from(in).StrictAddresses("From"); ok {
			t.Errorf("%q was read as %q", in, got)
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
