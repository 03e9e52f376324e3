package codes

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/internal/testmain"
)

var must = testmain.Must

func TestFind(t *testing.T) {
	for _, c := range testmain.Table[struct{ Subject, Text, Codes string }](t, "testdata/cases/find.txt") {
		if got := strings.Join(Find(c.Subject, c.Text).Codes, " "); got != c.Codes {
			t.Errorf("Find(%q, %q).Codes = %q, want %q", c.Subject, c.Text, got, c.Codes)
		}
	}
}

func TestListed(t *testing.T) {
	for _, c := range testmain.Table[struct{ Subject, Want string }](t, "testdata/cases/listed.txt") {
		if got := Listed(c.Subject, "").Mask(c.Subject); got != c.Want {
			t.Errorf("a list shows %q as %q, want %q", c.Subject, got, c.Want)
		}
	}
	if got := Listed("Sign in", "", "Acme 4829").Mask("Acme 4829"); got != "Acme [code hidden]" {
		t.Errorf("a list shows a name as %q", got)
	}
}

func TestASenderSpeaksOfSecurity(t *testing.T) {
	for sender, want := range map[string]string{"security@bank.example": "[code hidden] - Bank", "news@bank.example": "482913 - Bank"} {
		if got := Listed("482913 - Bank", sender).Mask("482913 - Bank"); got != want {
			t.Errorf("of %s a list shows %q", sender, got)
		}
	}
}

func TestMask(t *testing.T) {
	const link = "https://acme.example/reset?token=8f3A2b1C9d0E8f3A2b1C9d0E"
	f := Find("Your code 482913", "Your verification code is 482913 or K7XQ2P.\n\nReset your password ("+link+")")
	for _, c := range testmain.Table[struct{ In, Want string }](t, "testdata/cases/mask.txt") {
		got := f.Mask(c.In)
		if got != c.Want {
			t.Errorf("Mask(%q) = %q, want %q", c.In, got, c.Want)
		}
		if again := f.Mask(got); again != got {
			t.Errorf("Mask(%q) = %q", got, again)
		}
	}
	if (Found{}).Any() || (Found{}).Mask("482913") != "482913" {
		t.Error("nothing found masks something")
	}
}

// Pieces of a code that overlaps itself are not left over.
func TestMaskOverlapping(t *testing.T) {
	f := Find("", "Your verification code is 1212.")
	if got := f.Mask("a 121212 b"); got != "a [code hidden] b" || !slices.Equal(f.Codes, []string{"1212"}) {
		t.Errorf("%q, codes %q", got, f.Codes)
	}
}

func TestRecent(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	old, fresh, future := now.Add(-73*time.Hour), now.Add(-71*time.Hour), now.Add(time.Hour)
	for _, c := range []struct {
		date, received time.Time
		want           bool
	}{
		{fresh, old, true}, {old, fresh, true}, {old, old, false}, {future, old, true}, {old, future, true},
		{time.Time{}, time.Time{}, true}, {time.Time{}, old, false}, {old, time.Time{}, false}, {fresh, time.Time{}, true},
	} {
		if got := Recent(c.date, c.received, now); got != c.want {
			t.Errorf("Recent(%v, %v) = %v", c.date, c.received, got)
		}
	}
}
