package codes

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestFind(t *testing.T) {
	for _, c := range []struct{ subject, text, codes string }{
		{"Your code", "Your verification code is 482913.", "482913"},
		{"Your code", "Your verification code is 482 913.", "482913"},
		{"Your code", "Code: 482-913", "482913"},
		{"Sign in", "Enter G-482913 as your verification code.", "482913"},
		{"Sign in", "Your security code:\n\n4 8 2 9 1 3\n\nIt expires in 10 minutes.", "482913"},
		{"Sign in", "Your security code:\n\n*482913*\n", "482913"},
		{"Device login", "Enter this code to sign in: WDJB-MJHT", "WDJB-MJHT"},
		{"Login", "Your login code: K7XQ2P", "K7XQ2P"},
		{"482913 is your Acme code", "Hello.", "482913"},
		{"Your verification code", "482913", "482913"},
		{"482 913", "", "482913"},
		{"5000", "", ""},
		{"Ihr Sicherheitscode", "Guten Tag,\n\n４８２９１３\n", "482913"},
		{"رمز", "Your security code is ٤٨٢٩١٣", "482913"},
		{"Hello", "The year 2026 had 482913 visitors.", ""},
		{"Sale", "Use code SAVE20 for 20% off your next order.", ""},
		{"Order 482913", "Your order 482913 costs 12345 EUR.", ""},
		{"Booking", "Your booking code is K7XQ2P.", ""},
	} {
		if got := strings.Join(Find(c.subject, c.text).Codes, " "); got != c.codes {
			t.Errorf("Find(%q, %q).Codes = %q, want %q", c.subject, c.text, got, c.codes)
		}
	}
}

func TestListed(t *testing.T) {
	for subject, want := range map[string]string{
		"482913 - Acme":         "[code hidden] - Acme",
		"Acme: 4829":            "Acme: [code hidden]",
		"4 8 2 9 is for you":    "[code hidden] is for you",
		"Order 482913":          "Order 482913",
		"Plans of 2026":         "Plans of 2026",
		"Backup 20261124":       "Backup 20261124",
		"Re: (ABC-1234) 12:30":  "Re: (ABC-1234) 12:30",
		"[octo/tool] It (#482)": "[octo/tool] It (#482)",
	} {
		if got := Listed(subject).Mask(subject); got != want {
			t.Errorf("a list shows %q as %q, want %q", subject, got, want)
		}
	}
	if got := Listed("Hello", "Acme 4829").Mask("Acme 4829"); got != "Acme [code hidden]" {
		t.Errorf("a list shows a name as %q", got)
	}
}

func TestMask(t *testing.T) {
	const link = "https://acme.example/reset?token=8f3A2b1C9d0E8f3A2b1C9d0E"
	f := Find("Your code 482913", "Your verification code is 482913 or K7XQ2P.\n\nReset your password ("+link+")")
	for _, c := range []struct{ in, want string }{
		{"Your code 482913", "Your code [code hidden]"},
		{"a 482-913 b", "a [code hidden] b"},
		{"4 8 2 9 1 3", "[code hidden]"},
		{"٤٨٢٩١٣ ４８２９１３", "[code hidden] [code hidden]"},
		{"*k7xq2p*", "*[code hidden]*"},
		{"482\u200b913", "[code hidden]"},
		{"https://acme.example/c?x=482913", "[link hidden]"},
		{"https://acme.example/c?x=%34%382913", "[link hidden]"},
		{"Reset (" + link + ").", "Reset ([link hidden])."},
		{"<https://acme.example/reset?token=8f3A2b1C9d\n0E8f3A2b1C9d0E> now", "<[link hidden]> now"},
		{"https://t.example/?u=https%3A%2F%2Facme.example%2Freset%3Ftoken%3D8f3A2b1C9d0E8f3A2b1C9d0E", "[link hidden]"},
		{"48291 3000", "[code hidden]000"},
		{"https://acme.example/help", "https://acme.example/help"},
		{"482912", "482912"},
	} {
		got := f.Mask(c.in)
		if got != c.want {
			t.Errorf("Mask(%q) = %q, want %q", c.in, got, c.want)
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
