package mail

import (
	"strings"
	"testing"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail/internal/rfc5322"
)

// The inbound list lets corp.com in, one other address, and a domain with
// letters outside ASCII. Every header below is a try to pass for one of them.
func TestInboundListIsNotPassedByTrickery(t *testing.T) {
	p := compiledPolicy(t, Account{
		Mode:    ReadWrite,
		AllowIn: AllowList{Enabled: true, Entries: []string{"@corp.com", "ann@example.org", "@bücher.example", "k.sample@ascii.example", "kim@ascii.example", "jörg@example.net"}},
	})
	for _, tc := range testmain.Table[struct{ Name, Header string }](t, "testdata/cases/hidden.txt") {
		t.Run(tc.Name, func(t *testing.T) {
			h := rfc5322.ParseHeader([]byte(tc.Header + "Subject: hello\r\n\r\n"))
			if p.Visible(h) {
				t.Errorf("%q is visible", tc.Header)
			}
		})
	}
	for _, tc := range testmain.Table[struct{ Name, Header string }](t, "testdata/cases/visible.txt") {
		t.Run(tc.Name+" is seen", func(t *testing.T) {
			h := rfc5322.ParseHeader([]byte(tc.Header + "Subject: hello\r\n\r\n"))
			if !p.Visible(h) {
				t.Errorf("%q is not visible", tc.Header)
			}
		})
	}
}

// A second sender may hide where a bounded reader does not look.
func TestInboundListIsNotPassedByLength(t *testing.T) {
	p := compiledPolicy(t, Account{Mode: ReadWrite, AllowIn: AllowList{Enabled: true, Entries: []string{"@corp.com"}}})
	filler := func(n int) string { return strings.Repeat("X-Filler: "+strings.Repeat("x", 500)+"\r\n", n) }
	for name, header := range map[string]string{
		"behind 300 kB":                   "From: a@corp.com\r\n" + filler(600) + "From: b@evil.example\r\n",
		"behind 2,000 fields":             "From: a@corp.com\r\n" + strings.Repeat("X: y\r\n", 2000) + "From: b@evil.example\r\n",
		"behind 100 kB of one field":      "From: a@corp.com" + strings.Repeat(", a@corp.com", 10_000) + ", b@evil.example\r\n",
		"behind 100 kB of a name":         "From: \"" + strings.Repeat("x", 100_000) + "\" <b@evil.example>\r\nX: y\r\n",
		"behind 100 kB of white space":    "From: a@corp.com" + strings.Repeat(" ", 100_000) + ", b@evil.example\r\n",
		"behind 60 kB of comments":        "From: a@corp.com " + strings.Repeat("(", 60_000) + "\r\n",
		"behind 60 kB of angle brackets":  "From: " + strings.Repeat("<", 60_000) + "a@corp.com>\r\n",
		"behind 60 kB of quotes":          "From: " + strings.Repeat("\"", 60_001) + "a@corp.com\r\n",
		"behind 10,000 groups":            "From: " + strings.Repeat("g:", 10_000) + "a@corp.com;\r\n",
		"behind 10,000 commas and no end": "From: " + strings.Repeat(",", 10_000) + "a@corp.com\r\n",
	} {
		if p.Visible(rfc5322.ParseHeader([]byte(header + "\r\n"))) {
			t.Errorf("%s: the message is visible", name)
		}
	}
}

func TestOutboundListIsNotPassedByTrickery(t *testing.T) {
	p := compiledPolicy(t, Account{Mode: ReadWrite, AllowOut: AllowList{Enabled: true, Entries: []string{"@corp.com", "ann@example.org", "k.sample@ascii.example"}}})
	for _, recipient := range []string{"b@evil.example", "a@corp.com, b@evil.example", "\"a@corp.com\" <b@evil.example>", "a@corp.com> SIZE=1", "@evil.example:a@corp.com", "<@corp.com,@evil.example:a@corp.com>",
		"a@sub.corp.com", "a@corp.com.evil.example", "a@notcorp.com", "a@corp.com.", "a@corp.com@evil.example", "a@evil.example@corp.com", "\"a@corp.com\"@evil.example",
		"@corp.com", "*", "corp.com", "a@\u0441orp.com", "a@ｃｏｒｐ.com", "a@corp。com", "a@cor\u00adp.com", "\u212a.sample@ascii.example", "=?utf-8?q?a?=@corp.com"} {
		for _, recipients := range [][]string{{recipient}, {"a@corp.com", recipient}, {recipient, "a@corp.com"}} {
			if err := p.CheckSend(recipients); err == nil {
				t.Errorf("a message to %q may be sent", recipients)
			}
		}
	}
	for _, recipients := range [][]string{{"a@corp.com"}, {"A@Corp.COM", "ANN@example.org"}} {
		if err := p.CheckSend(recipients); err != nil {
			t.Errorf("a message to %q may not be sent: %v", recipients, err)
		}
	}
}

// What is refused is never something a caller could take for a passing answer.
func FuzzVisibleNeedsAnAllowedDomain(f *testing.F) {
	for _, seed := range []string{"a@corp.com", "\"a@corp.com\" <b@evil.example>", "x: a@corp.com;", "<@a:b@corp.com>", "a@corp.com (c)", "=?utf-8?q?a=40corp=2Ecom?= <b@evil>"} {
		f.Add(seed)
	}
	p, err := CompilePolicy(&Account{Mode: ReadWrite, AllowIn: AllowList{Enabled: true, Entries: []string{"@corp.com"}}})
	must(f, err)
	f.Fuzz(func(t *testing.T, from string) {
		h := rfc5322.ParseHeader([]byte("From: " + from + "\r\n\r\n"))
		if !p.Visible(h) {
			return
		}
		all := h.Addresses("From")
		if len(all) == 0 {
			t.Errorf("%q is visible and has no sender", from)
		}
		for _, a := range all {
			if !strings.HasSuffix(strings.ToLower(a.Addr), "@corp.com") {
				t.Errorf("%q is visible and from %q", from, a.Addr)
			}
		}
	})
}

// A server that takes the domain for its own may read a local part as a way to
// somewhere else. Such a recipient is allowed by itself or not at all.
func TestRoutesAreNotTheDomainTheyEndIn(t *testing.T) {
	routes := []string{"victim%evil.example@corp.com", "evil.example!victim@corp.com", "|cat@corp.com", "/etc/passwd@corp.com", "-x@corp.com", "~root@corp.com",
		"victim\uff05evil.example@corp.com", "victim\uff20evil.example@corp.com",
		"IMCEASMTP-victim+40evil+2Eexample@corp.com", "imceaex-_o=corp@corp.com", "\uff29MCEASMTP-victim+40evil.example@corp.com",
		"SRS0=HHH=TT=evil.example=victim@corp.com", "SRS1+HHH+x+y@corp.com", "srs0-hhh-tt-evil.example-victim@corp.com",
		"evil=evil.example@corp.com", "evil#evil.example@corp.com", "evil\uff1devil.example@corp.com", "prvs=1234abcdef=victim@corp.com"}
	p := compiledPolicy(t, Account{Mode: ReadWrite, AllowOut: AllowList{Enabled: true, Entries: []string{"@corp.com", "a%b@corp.com", "list-return=ann@corp.com"}}})
	for _, r := range routes {
		if p.CheckSend([]string{r}) == nil {
			t.Errorf("%s passes", r)
		}
	}
	for _, r := range []string{"a%b@corp.com", "ann@corp.com", "ann+tag@corp.com", "ann_lee-x@corp.com", "o'neil@corp.com", "j\u00f6rg@corp.com", "List-Return=Ann@corp.com", "imceasmtp@corp.com", "srs0@corp.com"} {
		if err := p.CheckSend([]string{r}); err != nil {
			t.Errorf("%s: %v", r, err)
		}
	}
	all := compiledPolicy(t, Account{Mode: ReadWrite, AllowOut: AllowList{Enabled: true, Entries: []string{"*"}}})
	if err := all.CheckSend(routes[:6]); err != nil {
		t.Errorf("* does not allow them: %v", err)
	}
}
