package compose

import (
	"net/mail"
	"strings"
	"testing"

	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/mail/internal/rfc5322"
)

func TestParseAddressReadsWhatPeopleWrite(t *testing.T) {
	for typed, want := range map[string]Address{
		"ann@example.org":                         {Addr: "ann@example.org"},
		"  ann@example.org  ":                     {Addr: "ann@example.org"},
		"<ann@example.org>":                       {Addr: "ann@example.org"},
		"Ann Lee <ann@example.org>":               {Name: "Ann Lee", Addr: "ann@example.org"},
		"Ann   Lee<ann@example.org>":              {Name: "Ann Lee", Addr: "ann@example.org"},
		`"Lee, Ann" <ann@example.org>`:            {Name: "Lee, Ann", Addr: "ann@example.org"},
		`"Lee, Ann"<ann@example.org>`:             {Name: "Lee, Ann", Addr: "ann@example.org"},
		`"Ann \"Bo\" \\ Lee" <ann@example.org>`:   {Name: `Ann "Bo" \ Lee`, Addr: "ann@example.org"},
		`"ann@example.net" <ann@example.org>`:     {Name: "ann@example.net", Addr: "ann@example.org"},
		`Ann "Bo" Lee <ann@example.org>`:          {Name: "Ann Bo Lee", Addr: "ann@example.org"},
		`"" <ann@example.org>`:                    {Addr: "ann@example.org"},
		`" Ann  Lee " <ann@example.org>`:          {Name: "Ann Lee", Addr: "ann@example.org"},
		"Dr. A. B. O'Lee <ann@example.org>":       {Name: "Dr. A. B. O'Lee", Addr: "ann@example.org"},
		"Müller & Söhne <a@example.org>":          {Name: "Müller & Söhne", Addr: "a@example.org"},
		"山田太郎 <taro@example.org>":                 {Name: "山田太郎", Addr: "taro@example.org"},
		"👨‍👩‍👧 <family@example.org>":              {Name: "👨‍👩‍👧", Addr: "family@example.org"},
		"Ann.Lee+tag=x!#$%@Example.ORG":           {Addr: "Ann.Lee+tag=x!#$%@Example.ORG"},
		"ann@localhost":                           {Addr: "ann@localhost"},
		"ann@bücher.example":                      {Addr: "ann@xn--bcher-kva.example"},
		"ann@BÜCHER.example":                      {Addr: "ann@xn--bcher-kva.example"},
		"ann@xn--bcher-kva.example":               {Addr: "ann@xn--bcher-kva.example"},
		"jürgen@bücher.example":                   {Addr: "jürgen@bücher.example"},
		"jürgen@BÜCHER.example":                   {Addr: "jürgen@bücher.example"},
		"jürgen@example.org":                      {Addr: "jürgen@example.org"},
		"jürgen@xn--bcher-kva.example":            {Addr: "jürgen@xn--bcher-kva.example"},
		strings.Repeat("a", 100) + "@example.org": {Addr: strings.Repeat("a", 100) + "@example.org"},
	} {
		got, err := ParseAddress(typed)
		if err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", typed, got, err, want)
			continue
		}
		checkAddressAgain(t, got)
	}
}

// checkAddressAgain proves that an address survives being written, and that the
// standard library reads it the same.
func checkAddressAgain(t *testing.T, a Address) {
	t.Helper()
	if again, err := ParseAddress(a.String()); err != nil || again != a {
		t.Errorf("%q is written %q and read as %q, %v", a, a.String(), again, err)
	}
	var kept Address
	if text, err := a.MarshalText(); err != nil || kept.UnmarshalText(text) != nil || kept != a {
		t.Errorf("%q is kept as %q and read as %q, %v", a, text, kept, err)
	}
	other, err := mail.ParseAddress(a.String())
	if err != nil || other.Address != a.Addr || plain.Line(other.Name) != a.Name {
		t.Errorf("net/mail reads %q as %v, %v", a.String(), other, err)
	}
	if _, _, ok := rfc5322.SplitAddr(a.Addr); !ok {
		t.Errorf("%q is no plain address", a.Addr)
	}
	if got := (&Message{From: a}).needsUTF8(); got == isASCII(a.Addr) {
		t.Errorf("%q: SMTPUTF8 %v", a.Addr, got)
	}
}

func TestParseAddressRefuses(t *testing.T) {
	for _, test := range []struct {
		typed string
		want  error // nil for any
	}{
		{"", errAddress},
		{"  ", errAddress},
		{"ann", errAddress},
		{"Ann Lee", errAddress},
		{"@example.org", errAddress},
		{"ann@", errAddress},
		{"ann@@example.org", errAddress},
		{"ann@example@org", errAddress},
		{".ann@example.org", errAddress},
		{"ann.@example.org", errAddress},
		{"a..b@example.org", errAddress},
		{"ann@example.org.", errAddress},
		{"ann@.example.org", errAddress},
		{"ann@[127.0.0.1]", errAddress},
		{"ann@exam\u00a0ple.org", errAddress},
		{"a\ufffdb@example.org", errAddress},
		{"=?utf-8?q?ann?=@example.org", errAddress},
		{"jose\u0301@example.org", errLocal},
		{"\u03f4@example.org", errLocal},
		{"victim\uff20evil.example@example.org", errLocal},
		{"Ann <>", errAddress},
		{"Ann <ann>", errAddress},
		{"Ann < ann@example.org >", errAddress},
		{"Ann <ann@example.org", errAddress},
		{"Ann <<ann@example.org>>", errAddress},
		{"Ann <ann@example.org> Lee", errAddress},
		{"Ann <ann@example.org> <bob@example.org>", errAddress},
		{"<@example.net:ann@example.org>", errAddress},
		{`Ann <"ann lee"@example.org>`, errAddress},
		{strings.Repeat("a", 250) + "@example.org", errAddress},
		{"ann@exa_mple.org", errDomain},
		{"ann@-example.org", errDomain},
		{"ann@ｅxample.org", errDomain},
		{"ann@example。org", errDomain},
		{"ann@xn--a.example", errDomain},
		{"ann@" + strings.Repeat("a", 64) + ".org", errDomain},
		{"ann@" + strings.Repeat("ü", 60) + ".org", errDomain},
		{"ann@example.org,", errSeveral},
		{"ann@example.org, bob@example.org", errSeveral},
		{"ann@example.org; bob@example.org", errSeveral},
		{"Ann <ann@example.org>, Bob <bob@example.org>", errSeveral},
		{"Lee, Ann <ann@example.org>", errSeveral},
		{"Friends: ann@example.org;", errName},
		{"Friends:;", errSeveral},
		{"mailto: ann@example.org", errName},
		{"Friends: Ann <ann@example.org>", errName},
		{"Ann (work) <ann@example.org>", errName},
		{"ann@example.org (Ann)", errName},
		{"ann@example.net <ann@example.org>", errName},
		{"Ann [x] <ann@example.org>", errName},
		{`Ann \ <ann@example.org>`, errName},
		{`Ann"Lee" <ann@example.org>`, errName},
		{"Ann > <ann@example.org>", errName},
		{"Ann ann@example.org", errBrackets},
		{`"ann lee"@example.org`, errQuote},
		{`"Ann <ann@example.org>`, errQuote},
		{`"Ann"Lee <ann@example.org>`, errQuote},
		{`"An\n" <ann@example.org>`, errQuote},
		{`"Ann\`, errQuote},
		{"=?utf-8?q?Ann?= <ann@example.org>", errEncoded},
		{`"=?utf-8?q?Ann?=" <ann@example.org>`, errEncoded},
		{"Ann\r\nBcc: eve@example.org <ann@example.org>", nil},
		{"ann@example.org\n", nil},
		{"ann@example.org\r", nil},
		{"Ann\tLee <ann@example.org>", nil},
		{"Ann\x00 <ann@example.org>", nil},
		{"ann\x00@example.org", nil},
		{"Ann\u0085 <ann@example.org>", nil},
		{"Ann\u2028 <ann@example.org>", nil},
		{"Ann\u202e <ann@example.org>", nil},
		{"Ann\u2066 <ann@example.org>", nil},
		{"Ann\u200b <ann@example.org>", nil},
		{"Ann\ufeff <ann@example.org>", nil},
		{"Ann\U000e0041 <ann@example.org>", nil},
		{"ann\u00ad@example.org", nil},
		{"Ann\xff <ann@example.org>", nil},
		{strings.Repeat("a", 222) + "@éдñ会üяçøñж.example", errDomain},
		{strings.Repeat("a", maxName+1) + " <ann@example.org>", nil},
		{strings.Repeat("a ", maxTyped) + " <ann@example.org>", nil},
	} {
		got, err := ParseAddress(test.typed)
		if err == nil || got != (Address{}) || test.want != nil && err != test.want {
			t.Errorf("%q: %q, error %v; want error %v", test.typed, got, err, test.want)
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: the error has several lines: %q", test.typed, err)
		}
	}
}
