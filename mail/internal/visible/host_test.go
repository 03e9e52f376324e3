package visible

import (
	"strings"
	"testing"
)

// The text of a link that shows another host than the link leads to is marked, with the host
// that it leads to; an honest text is not.
func TestLinkThatShowsAnotherHost(t *testing.T) {
	for _, c := range []struct{ text, href, other string }{
		{"https://bank.example/login", "https://evil.example/x", "evil.example"},
		{"bank.example", "https://evil.example/", "evil.example"},
		{"www.bank.example/a?b", "http://evil.example", "evil.example"},
		{"Log in at Bank.example, please", "https://evil.example/", "evil.example"},
		{"https://bank.example/", "https://bank.example.evil.example/", "bank.example.evil.example"},
		{"bank.co.uk", "https://evil.co.uk/", "evil.co.uk"},
		{"alice.github.io", "https://mallory.github.io/", "mallory.github.io"},
		{"https://bank.example@evil.example/", "https://bank.example@evil.example/", "evil.example"},
		{"Log in", "https://bank.example@evil.example/", "evil.example"},
		{"https://bank.example/", `https:\\evil.example\@bank.example`, "evil.example"},
		{"https://bank.example/", "https:evil.example", "evil.example"},
		{"https://bank.example/", "//evil.example/", "evil.example"},
		{"https://bank.example/", "https://evil%2eexample/", "evil.example"},
		{"https://bank.example/", "ht\ntps://evil.exa\tmple/", "evil.example"},
		{"ba\u200dnk.example", "https://evil.example/", "evil.example"},
		{"bank.example", "https://b\u0430nk.example/", "xn--bnk-6cd.example"},
		{"bank.example", "https://xn--bnk-6cd.example/", "xn--bnk-6cd.example"},
		{"bank.example", "https://203.0.113.9:8443/", "203.0.113.9"},
		{"https://203.0.113.8/", "https://203.0.113.9/", "203.0.113.9"},
		{"bank\u3002example", "https://evil.example/", "evil.example"},
		{"ceo@bank.example", "mailto:evil@evil.example?subject=a@bank.example", "evil.example"},
		{"bank.example", "https://evil.example/" + strings.Repeat("a", maxURL), "evil.example"},

		{"bank.example", "https://www.bank.example/", ""},
		{"https://www.bank.example/", "https://login.bank.example:443/#a", ""},
		{"BANK.example.", "https://bank.EXAMPLE/", ""},
		{"https://b\u0430nk.example/", "https://xn--bnk-6cd.example/", ""},
		{"anna.it@bank.example", "mailto:anna.it@bank.example", ""},
		{"report.pdf", "https://files.example/report.pdf", ""},
		{"photos.zip", "https://files.example/1", ""},
		{"Our prices from 3.50, e.g. 1.2.3", "https://shop.example/", ""},
		{"Read more", "https://shop.example/?to=https://bank.example", ""},
		{"https://bank.example/", "#top", ""},
		{"https://bank.example/", "", ""},
	} {
		if got := otherHost(c.text, c.href); got != c.other {
			t.Errorf("%q on %q: %q, not %q", c.text, c.href, got, c.other)
		}
	}
	for doc, want := range map[string]string{
		`Go to <a href="https://evil.example/1">https://<b>bank</b>.example/</a> now`: "Go to https://bank.example/ (other host evil.example: https://evil.example/1) now",
		`<a href="https://bank.example/1">bank.example</a>`:                           "bank.example (https://bank.example/1)",
		`<a href="//evil.example/1">bank.example</a>`:                                 "bank.example (other host evil.example)",
	} {
		if got := Text(doc, 1000); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", doc, got, want)
		}
	}
}
