package compose

import (
	"net/mail"
	"strings"
	"testing"

	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail/internal/rfc5322"
)

func TestParseAddressReadsWhatPeopleWrite(t *testing.T) {
	for _, c := range testmain.Table[struct{ In, Name, Addr string }](t, "testdata/cases/address.txt") {
		got, err := ParseAddress(c.In)
		if want := (Address{Name: c.Name, Addr: c.Addr}); err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", c.In, got, err, want)
			continue
		}
		checkAddressAgain(t, got)
	}
}

// checkAddressAgain checks that an address can be written and read again, and that the
// standard library reads the same.
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
	for want, list := range map[error][]string{ // nil for any
		errAddress: {
			"", "  ", "ann", "Ann Lee", "@example.org", "ann@", "ann@@example.org", "ann@example@org", ".ann@example.org", "ann.@example.org",
			"a..b@example.org", "ann@example.org.", "ann@.example.org", "ann@[127.0.0.1]", "ann@exam\u00a0ple.org", "a\ufffdb@example.org",
			"=?utf-8?q?ann?=@example.org", "Ann <>", "Ann <ann>", "Ann < ann@example.org >", "Ann <ann@example.org", "Ann <<ann@example.org>>",
			"Ann <ann@example.org> Lee", "Ann <ann@example.org> <bob@example.org>", "<@example.net:ann@example.org>", `Ann <"ann lee"@example.org>`,
			strings.Repeat("a", 250) + "@example.org",
		},
		errLocal: {"jose\u0301@example.org", "\u03f4@example.org", "victim\uff20evil.example@example.org"},
		errDomain: {
			"ann@exa_mple.org", "ann@-example.org", "ann@ｅxample.org", "ann@example。org", "ann@xn--a.example", "ann@" + strings.Repeat("a", 64) + ".org",
			"ann@" + strings.Repeat("ü", 60) + ".org", strings.Repeat("a", 222) + "@éдñ会üяçøñж.example",
		},
		errSeveral: {
			"ann@example.org,", "ann@example.org, bob@example.org", "ann@example.org; bob@example.org", "Ann <ann@example.org>, Bob <bob@example.org>",
			"Lee, Ann <ann@example.org>", "Friends:;",
		},
		errName: {
			"Friends: ann@example.org;", "mailto: ann@example.org", "Friends: Ann <ann@example.org>", "Ann (work) <ann@example.org>", "ann@example.org (Ann)",
			"ann@example.net <ann@example.org>", "Ann [x] <ann@example.org>", `Ann \ <ann@example.org>`, `Ann"Lee" <ann@example.org>`,
			"Ann > <ann@example.org>",
		},
		errBrackets: {"Ann ann@example.org"},
		errQuote:    {`"ann lee"@example.org`, `"Ann <ann@example.org>`, `"Ann"Lee <ann@example.org>`, `"An\n" <ann@example.org>`, `"Ann\`},
		errEncoded:  {"=?utf-8?q?Ann?= <ann@example.org>", `"=?utf-8?q?Ann?=" <ann@example.org>`},
		nil: {
			"Ann\r\nBcc: eve@example.org <ann@example.org>", "ann@example.org\n", "ann@example.org\r", "Ann\tLee <ann@example.org>",
			"Ann\x00 <ann@example.org>", "ann\x00@example.org", "Ann\u0085 <ann@example.org>", "Ann\u2028 <ann@example.org>", "Ann\u202e <ann@example.org>",
			"Ann\u2066 <ann@example.org>", "Ann\u200b <ann@example.org>", "Ann\ufeff <ann@example.org>", "Ann\U000e0041 <ann@example.org>",
			"ann\u00ad@example.org", "Ann\xff <ann@example.org>", strings.Repeat("a", maxName+1) + " <ann@example.org>",
			strings.Repeat("a ", maxTyped) + " <ann@example.org>",
		},
	} {
		for _, typed := range list {
			got, err := ParseAddress(typed)
			if err == nil || got != (Address{}) || want != nil && err != want {
				t.Errorf("%q: %q, error %v; want error %v", typed, got, err, want)
			}
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("%q: the error has several lines: %q", typed, err)
			}
		}
	}
}
