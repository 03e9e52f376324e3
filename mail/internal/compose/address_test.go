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
	why := map[string]error{"address": errAddress, "local": errLocal, "domain": errDomain, "several": errSeveral, "name": errName, "brackets": errBrackets, "quote": errQuote, "encoded": errEncoded}
	for _, c := range testmain.Table[struct{ Why, Typed string }](t, "testdata/cases/address_refused.txt") {
		got, err := ParseAddress(c.Typed)
		if err == nil || got != (Address{}) || c.Why != "*" && err != why[c.Why] {
			t.Errorf("%q: %q, error %v; want error %v", c.Typed, got, err, why[c.Why])
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: the error has several lines: %q", c.Typed, err)
		}
	}
}
