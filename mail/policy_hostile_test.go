package mail

import (
	"strings"
	"testing"

	"github.com/postern-mail/postern/mail/internal/rfc5322"
)

// The inbound list lets corp.com in, one other address, and a domain with
// letters outside ASCII. Every header below is a try to pass for one of them.
func TestInboundListIsNotPassedByTrickery(t *testing.T) {
	p := compiledPolicy(t, Account{
		Mode:    ReadWrite,
		AllowIn: AllowList{Enabled: true, Entries: []string{"@corp.com", "ann@example.org", "@bücher.example", "k.sample@ascii.example", "kim@ascii.example", "jörg@example.net"}},
	})
	for _, tc := range []struct{ name, header string }{
		{"no From", "To: a@corp.com\r\n"},
		{"empty From", "From: \r\n"},
		{"empty group", "From: undisclosed-recipients:;\r\n"},
		{"name without an address", "From: corp.com\r\n"},
		{"local part alone", "From: ann\r\n"},
		{"empty angle brackets", "From: a@corp.com <>\r\n"},
		{"domain alone", "From: @corp.com\r\n"},
		{"empty domain", "From: ann@\r\n"},

		{"another domain", "From: a@evil.example\r\n"},
		{"subdomain", "From: a@sub.corp.com\r\n"},
		{"superdomain", "From: a@com\r\n"},
		{"domain as a prefix", "From: a@corp.com.evil.example\r\n"},
		{"domain as a suffix", "From: a@notcorp.com\r\n"},
		{"domain with a dot behind", "From: a@corp.com.\r\n"},
		{"domain with a dot before", "From: a@.corp.com\r\n"},
		{"domain with two dots", "From: a@corp..com\r\n"},
		{"dot as any character", "From: a@corpxcom\r\n"},
		{"another local part", "From: anna@example.org\r\n"},
		{"local part as a suffix", "From: joann@example.org\r\n"},
		{"subaddress", "From: ann+x@example.org\r\n"},
		{"entry as a local part", "From: \"a@corp.com\"@evil.example\r\n"},
		{"percent hack", "From: a%corp.com@evil.example\r\n"},
		{"bang path", "From: evil.example!a@corp.com@evil.example\r\n"},
		{"two at signs", "From: a@corp.com@evil.example\r\n"},
		{"two at signs, the other way round", "From: a@evil.example@corp.com\r\n"},

		{"display name", "From: \"a@corp.com\" <a@evil.example>\r\n"},
		{"display name without quotes", "From: a@corp.com <a@evil.example>\r\n"},
		{"display name in angle brackets", "From: \"<a@corp.com>\" <a@evil.example>\r\n"},
		{"encoded display name", "From: =?utf-8?q?a=40corp=2Ecom?= <a@evil.example>\r\n"},
		{"encoded angle brackets", "From: =?utf-8?q?=3Ca=40corp=2Ecom=3E?= <a@evil.example>\r\n"},
		{"address behind the angle brackets", "From: <a@evil.example> a@corp.com\r\n"},
		{"address behind the brackets, allowed first", "From: <a@corp.com> a@evil.example\r\n"},
		{"comment", "From: a@evil.example (a@corp.com)\r\n"},
		{"comment before", "From: (a@corp.com) a@evil.example\r\n"},
		{"comment that hides the sender", "From: a@corp.com (<a@evil.example>)\r\n"},
		{"comment inside the address", "From: a@corp.com(.evil.example).evil.example\r\n"},
		{"comment that is never closed", "From: a@corp.com (, a@evil.example\r\n"},
		{"quote that is never closed", "From: a@corp.com, \"b <a@evil.example>\r\n"},
		{"nested comments", "From: (()a@corp.com() <a@evil.example>)\r\n"},

		{"second address", "From: a@corp.com, b@evil.example\r\n"},
		{"second address before", "From: b@evil.example, a@corp.com\r\n"},
		{"semicolon", "From: a@corp.com; b@evil.example\r\n"},
		{"space", "From: a@corp.com b@evil.example\r\n"},
		{"something unreadable beside", "From: a@corp.com, <<>>\r\n"},
		{"a name beside", "From: a@corp.com, Bob\r\n"},
		{"group", "From: friends: a@corp.com, b@evil.example;\r\n"},
		{"group of others named like the allowed", "From: a@corp.com: b@evil.example;\r\n"},
		{"two From fields", "From: a@corp.com\r\nFrom: b@evil.example\r\n"},
		{"two From fields the other way round", "From: b@evil.example\r\nFrom: a@corp.com\r\n"},
		{"second From in other case", "From: a@corp.com\r\nfROM: b@evil.example\r\n"},
		{"second From with a space before its colon", "From: a@corp.com\r\nFrom : b@evil.example\r\n"},
		{"second From that is empty", "From: a@corp.com\r\nFrom:\r\n"},
		{"From behind another that only looks like one", "From\x00: a@corp.com\r\nFrom: b@evil.example\r\n"},
		{"mbox line", "From a@corp.com Sat Jan  1 10:00:00 2000\r\nFrom: b@evil.example\r\n"},
		{"other fields", "Sender: a@corp.com\r\nReply-To: a@corp.com\r\nX-From: a@corp.com\r\nReturn-Path: <a@corp.com>\r\nFrom: b@evil.example\r\n"},
		{"fold", "X: y\r\n From: a@corp.com\r\nFrom: b@evil.example\r\n"},

		{"nested angle brackets", "From: <<a@evil.example>a@corp.com>\r\n"},
		{"nested angle brackets the other way round", "From: <a@evil.example<a@corp.com>>\r\n"},
		{"two pairs of angle brackets", "From: <a@evil.example> <a@corp.com>\r\n"},
		{"two pairs the other way round", "From: <a@corp.com> <a@evil.example>\r\n"},
		{"angle bracket that is never closed", "From: <a@corp.com\r\n"},
		{"angle bracket that is never opened", "From: a@evil.example, a@corp.com>\r\n"},
		{"route", "From: <@evil.example:a@corp.com>\r\n"},
		{"route through the allowed domain", "From: <@corp.com:a@evil.example>\r\n"},
		{"domain literal", "From: a@[corp.com]\r\n"},
		{"address literal", "From: a@[192.0.2.1]\r\n"},
		{"group of the allowed", "From: Team: a@corp.com;\r\n"},
		{"doubled angle brackets", "From: <<a@corp.com>>\r\n"},
		{"second address in a bracket never closed", "From: <a@corp.com>, <b@evil.example\r\n"},
		{"comma and nothing", "From: a@corp.com,\r\n"},
		{"word behind", "From: a@corp.com garbage\r\n"},
		{"quoted local part", "From: \"a\"@corp.com\r\n"},
		{"another's address as the local part", "From: \"b@evil.example\"@corp.com\r\n"},
		{"comment in the local part", "From: a(comment)@corp.com\r\n"},
		{"comment with a list", "From: a@corp.com (a, b@evil.example)\r\n"},
		{"line feed in the address", "From: a@evil.example\r\n @corp.com\r\n"},
		{"carriage return", "From: a@corp.com\rFrom: b@evil.example\r\n"},
		{"NUL", "From: a@evil.example\x00@corp.com\r\n"},
		{"NUL in the domain", "From: a@corp.com\x00.evil.example\r\n"},
		{"tab in the domain", "From: a@corp.com\t.evil.example\r\n"},
		{"backslash", "From: a\\@corp.com@evil.example\r\n"},
		{"quoted pair in a name", "From: \"x\\\" <a@corp.com>, \\\"\" <b@evil.example>\r\n"},

		{"encoded address", "From: =?utf-8?q?a=40corp=2Ecom?=\r\n"},
		{"encoded local part", "From: =?utf-8?q?ann?=@example.org\r\n"},
		{"encoded domain", "From: a@=?utf-8?q?corp=2Ecom?=\r\n"},
		{"encoded address in angle brackets", "From: <=?utf-8?q?a=40corp=2Ecom?=>\r\n"},
		{"encoded word that closes a bracket", "From: <a@evil.example=?utf-8?q?=3E_=3Ca=40corp=2Ecom?=>\r\n"},

		{"Cyrillic letter in the domain", "From: a@\u0441orp.com\r\n"},
		{"the same in its ASCII form", "From: a@xn--orp-bmc.com\r\n"},
		{"fullwidth letters in the domain", "From: a@ｃｏｒｐ.com\r\n"},
		{"ideographic dot", "From: a@corp。com\r\n"},
		{"fullwidth at sign", "From: a＠corp.com\r\n"},
		{"zero-width space", "From: a@cor\u200bp.com\r\n"},
		{"soft hyphen", "From: a@cor\u00adp.com\r\n"},
		{"bidirectional override", "From: a@\u202emoc.proc\r\n"},
		{"dotless i", "From: k.sample@asc\u0131\u0131.example\r\n"},
		{"Kelvin sign in the local part", "From: \u212a.sample@ascii.example\r\n"},
		{"long s in the local part", "From: k.\u017fample@ascii.example\r\n"},
		{"zero-width joiner in the local part", "From: an\u200dn@example.org\r\n"},
		{"bytes that are no UTF-8", "From: ann\xff@example.org\r\n"},
		{"I with a dot above", "From: k\u0130m@ascii.example\r\n"},
		{"the same, decomposed", "From: kI\u0307m@ascii.example\r\n"},
		{"dotless i in the local part", "From: k\u0131m@ascii.example\r\n"},
		{"the domain without its umlaut", "From: a@bucher.example\r\n"},
		{"a letter like the umlaut", "From: a@b\u0252cher.example\r\n"},
		{"no punycode", "From: a@xn--a.example\r\n"},
		{"umlaut taken apart by the wrong charset", "From: a@b\xfccher.example\r\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := rfc5322.ParseHeader([]byte(tc.header + "Subject: hello\r\n\r\n"))
			if p.Visible(h) {
				t.Errorf("%q is visible", tc.header)
			}
		})
	}
	for _, tc := range []struct{ name, header string }{
		{"address", "From: a@corp.com\r\n"},
		{"in angle brackets", "From: <a@corp.com>\r\n"},
		{"with a name", "From: Ann Lee <a@corp.com>\r\n"},
		{"with a quoted name", "From: \"Lee, Ann\" <a@corp.com>\r\n"},
		{"with an initial", "From: Ann Q. Lee <a@corp.com>\r\n"},
		{"with an encoded name", "From: =?utf-8?q?Ann_L=C3=A9e?= <a@corp.com>\r\n"},
		{"with a name in an old charset", "From: =?iso-2022-jp?B?GyRCJDMkcxsoQg==?= <a@corp.com>\r\n"},
		{"with a name in UTF-8", "From: Ann Lée <a@corp.com>\r\n"},
		{"with a name in a comment", "From: a@corp.com (Ann Lee)\r\n"},
		{"folded", "From: Ann Lee\r\n <a@corp.com>\r\n"},
		{"in other case", "FROM: ANN@EXAMPLE.ORG\r\n"},
		{"two that both match", "From: a@corp.com, ann@example.org\r\n"},
		{"two fields that both match", "From: a@corp.com\r\nFrom: ann@example.org\r\n"},
		{"domain in Unicode", "From: a@bücher.example\r\n"},
		{"domain in Unicode and other case", "From: a@BÜCHER.example\r\n"},
		{"domain in its ASCII form", "From: a@xn--bcher-kva.example\r\n"},
		{"domain in Unicode, decomposed", "From: a@bu\u0308cher.example\r\n"},
		{"local part in Unicode and other case", "From: J\u00d6RG@example.net\r\n"},
		{"local part in Unicode, decomposed", "From: jo\u0308rg@example.net\r\n"},
		{"with a name of no known charset", "From: =?x-nonsense?q?J=F6rg?= <a@corp.com>\r\n"},
		{"with bytes as a name", "From: J\xf6rg <a@corp.com>\r\n"},
		{"a name that is another's address", "From: \"b@evil.example\" <a@corp.com>\r\n"},
	} {
		t.Run(tc.name+" is seen", func(t *testing.T) {
			h := rfc5322.ParseHeader([]byte(tc.header + "Subject: hello\r\n\r\n"))
			if !p.Visible(h) {
				t.Errorf("%q is not visible", tc.header)
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
	for _, recipient := range []string{"b@evil.example", "a@corp.com, b@evil.example", "\"a@corp.com\" <b@evil.example>", "a@corp.com> SIZE=1", "@evil.example:a@corp.com",
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
	if err != nil {
		f.Fatal(err)
	}
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
