package mail

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/postern-mail/postern/mail/internal/rfc5322"
)

func compile(t *testing.T, a Account) *Policy {
	t.Helper()
	p, err := CompilePolicy(&a)
	if err != nil {
		t.Fatalf("CompilePolicy: %v", err)
	}
	return p
}

// The inbound list lets corp.com in, one other address, and a domain with
// letters outside ASCII. Every header below is a try to pass for one of them.
func TestInboundListIsNotPassedByTrickery(t *testing.T) {
	p := compile(t, Account{
		Mode:    ReadWrite,
		AllowIn: AllowList{Enabled: true, Entries: []string{"@corp.com", "ann@example.org", "@bücher.example", "k.sample@ascii.example"}},
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
	p := compile(t, Account{Mode: ReadWrite, AllowIn: AllowList{Enabled: true, Entries: []string{"@corp.com"}}})
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

func TestNoPolicyDeniesEverything(t *testing.T) {
	var p *Policy
	h := rfc5322.ParseHeader([]byte("From: a@corp.com\r\nSubject: x\r\n\r\n"))
	if p.Visible(h) {
		t.Error("a nil policy shows a message")
	}
	if p.ShowsAll() {
		t.Error("a nil policy says that it shows everything")
	}
	if p.CheckSend([]string{"a@corp.com"}) == nil || p.CheckSend(nil) == nil {
		t.Error("a nil policy lets a message be sent")
	}
}

func TestSubjectPatternReadsWhatAPersonReads(t *testing.T) {
	p := compile(t, Account{Mode: ReadOnly, SubjectPattern: `^Invoice [0-9]+ – Bücher$`})
	if p.ShowsAll() {
		t.Error("a policy with a pattern says that it shows everything")
	}
	for _, tc := range []struct {
		subject string
		want    bool
	}{
		{"Subject: Invoice 7 – Bücher\r\n", true},
		{"Subject: =?utf-8?q?Invoice_7_=E2=80=93_B=C3=BCcher?=\r\n", true},
		{"Subject: =?utf-8?b?SW52b2ljZSA3IOKA?=\r\n =?utf-8?b?kyBCw7xjaGVy?=\r\n", true},
		{"Subject: Invoice\r\n 7 – =?iso-8859-1?q?B=FCcher?=\r\n", true},
		{"Subject: Invoice 7 \x96 B\xfccher\r\n", true},
		{"Subject: In\u200bvoice 7 – Bücher\u202e\r\n", true},
		{"Subject: Re: Invoice 7 – Bücher\r\n", false},
		{"Subject: Invoice 7 – Bücher\r\n and more\r\n", false},
		{"Subject: x=?utf-8?q?=0A?=Invoice 7 – Bücher\r\n", false},
		{"Subject: Invoice =?utf-8?q?7?= – Bucher\r\n", false},
		{"Subject:\r\n", false},
		{"X-Subject: Invoice 7 – Bücher\r\n", false},
		{"", false},
	} {
		h := rfc5322.ParseHeader([]byte("From: a@corp.com\r\n" + tc.subject + "\r\n"))
		if got := p.Visible(h); got != tc.want {
			t.Errorf("%q: visible %t, want %t", tc.subject, got, tc.want)
		}
	}
}

// A person sees one subject; with two, nobody can say which.
func TestSubjectPatternHoldsForEverySubject(t *testing.T) {
	p := compile(t, Account{Mode: ReadOnly, SubjectPattern: `^ok`})
	for _, header := range []string{"Subject: ok\r\nSubject: secret\r\n", "Subject: secret\r\nSubject: ok\r\n", "Subject: ok\r\nsubject : secret\r\n"} {
		if p.Visible(rfc5322.ParseHeader([]byte("From: a@corp.com\r\n" + header + "\r\n"))) {
			t.Errorf("%q is visible", header)
		}
	}
}

func TestOutboundListIsNotPassedByTrickery(t *testing.T) {
	p := compile(t, Account{Mode: ReadWrite, AllowOut: AllowList{Enabled: true, Entries: []string{"@corp.com", "ann@example.org", "k.sample@ascii.example"}}})
	for _, recipients := range [][]string{
		nil,
		{},
		{""},
		{"b@evil.example"},
		{"a@corp.com", "b@evil.example"},
		{"b@evil.example", "a@corp.com"},
		{"a@corp.com, b@evil.example"},
		{"a@corp.com b@evil.example"},
		{"\"a@corp.com\" <b@evil.example>"},
		{"a@corp.com\r\nRCPT TO:<b@evil.example>"},
		{"a@corp.com> SIZE=1"},
		{"a@corp.com\x00"},
		{"@evil.example:a@corp.com"},
		{"a@sub.corp.com"}, {"a@corp.com.evil.example"}, {"a@notcorp.com"}, {"a@corp.com."},
		{"a@corp.com@evil.example"}, {"a@evil.example@corp.com"}, {"\"a@corp.com\"@evil.example"},
		{"@corp.com"}, {"*"}, {"corp.com"},
		{"a@\u0441orp.com"}, {"a@ｃｏｒｐ.com"}, {"a@corp。com"}, {"a@cor\u00adp.com"},
		{"\u212a.sample@ascii.example"},
		{"=?utf-8?q?a?=@corp.com"},
	} {
		if err := p.CheckSend(recipients); err == nil {
			t.Errorf("a message to %q may be sent", recipients)
		}
	}
	for _, recipients := range [][]string{{"a@corp.com"}, {"A@Corp.COM", "ANN@example.org"}} {
		if err := p.CheckSend(recipients); err != nil {
			t.Errorf("a message to %q may not be sent: %v", recipients, err)
		}
	}
}

func TestModesAndListsTogether(t *testing.T) {
	all := AllowList{Enabled: true, Entries: []string{"*"}}
	for _, tc := range []struct {
		name string
		mode Mode
		out  AllowList
		want bool
	}{
		{"RO refuses what the list allows", ReadOnly, all, false},
		{"RO refuses without a list", ReadOnly, AllowList{}, false},
		{"RW without a list", ReadWrite, AllowList{}, true},
		{"RW and everything", ReadWrite, all, true},
		{"RW and an empty list", ReadWrite, AllowList{Enabled: true}, false},
		{"approve and an empty list", Approve, AllowList{Enabled: true}, false},
		{"approve and everything", Approve, all, true},
		{"entries of a list that is off", ReadWrite, AllowList{Entries: []string{"x@y.example"}}, true},
	} {
		p := compile(t, Account{Mode: tc.mode, AllowOut: tc.out})
		err := p.CheckSend([]string{"a@corp.com"})
		if (err == nil) != tc.want {
			t.Errorf("%s: %v", tc.name, err)
		}
		if tc.mode != ReadOnly && err != nil && strings.Contains(err.Error(), "ro_mode") {
			t.Errorf("%s: the reason is not the list: %v", tc.name, err)
		}
	}
	for _, mode := range []Mode{"", "rw", "ADMIN"} {
		p, err := CompilePolicy(&Account{Mode: mode})
		if err == nil && p.CheckSend([]string{"a@corp.com"}) == nil {
			t.Errorf("mode %q may send", mode)
		}
	}
}

// A list that cannot be read must not become a list that allows.
func TestPolicyWithABadEntryFailsClosed(t *testing.T) {
	h := rfc5322.ParseHeader([]byte("From: a@corp.com\r\n\r\n"))
	for _, entry := range []string{"", "@", "corp.com", "a@", "a@b@c", "@*", "a@corp.com\n*", "a b@corp.com", "@corp .com", "@xn--", "@-", "@.com", "@corp..com", "@" + strings.Repeat("a", 64) + ".com", "a@corp.com, *"} {
		if got, err := ValidateEntry(entry); err == nil {
			t.Errorf("ValidateEntry(%q) = %q", entry, got)
		}
		p, err := CompilePolicy(&Account{Mode: ReadWrite, AllowIn: AllowList{Enabled: true, Entries: []string{entry}}, AllowOut: AllowList{Enabled: true, Entries: []string{entry}}})
		if err != nil {
			if p != nil {
				t.Errorf("entry %q gives an error and a policy", entry)
			}
			continue
		}
		if p.Visible(h) || p.CheckSend([]string{"a@corp.com"}) == nil {
			t.Errorf("entry %q lets a@corp.com pass", entry)
		}
	}
	// A star is a letter like others within an address.
	p := compile(t, Account{Mode: ReadWrite, AllowIn: AllowList{Enabled: true, Entries: []string{"*@evil.example"}}})
	if p.Visible(h) || p.Visible(rfc5322.ParseHeader([]byte("From: a@evil.example\r\n\r\n"))) {
		t.Error("a star in an address stands for others")
	}
	if p, err := CompilePolicy(&Account{Mode: ReadWrite, SubjectPattern: "("}); err == nil || p != nil {
		t.Errorf("a pattern that is none gives a policy: %v", err)
	}
}

// ValidateEntry gives each entry one spelling.
func TestValidateEntryNormalises(t *testing.T) {
	for in, want := range map[string]string{
		"*": "*", "@Corp.COM": "@corp.com", " ann@Example.org ": "ann@example.org", "ANN@EXAMPLE.ORG": "ann@example.org",
		"@Bücher.example": "@xn--bcher-kva.example", "jo\u0065\u0301@x.example": "jo\u00e9@x.example", "@XN--BCHER-KVA.example": "@xn--bcher-kva.example",
	} {
		got, err := ValidateEntry(in)
		if err != nil && strings.TrimSpace(in) != in {
			continue // refusing white space is as good
		}
		if err != nil || got != want {
			t.Errorf("ValidateEntry(%q) = %q, %v; want %q", in, got, err, want)
			continue
		}
		if again, err := ValidateEntry(got); err != nil || again != got {
			t.Errorf("ValidateEntry(%q) = %q, %v; want it unchanged", got, again, err)
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

// A caller that tells a person why must find the reason and the ones at fault.
func TestSendRefusedNamesWhoIsAtFault(t *testing.T) {
	for _, tc := range []struct {
		mode       Mode
		recipients []string
		reason     string
		atFault    []string
	}{
		{ReadOnly, []string{"a@corp.com", "b@evil.example"}, ReasonReadOnly, nil},
		{ReadWrite, []string{"a@corp.com", "b@evil.example", "c@evil.example"}, ReasonAllowList, []string{"b@evil.example", "c@evil.example"}},
		{Approve, []string{"b@evil.example", "a@corp.com"}, ReasonAllowList, []string{"b@evil.example"}},
		{ReadWrite, []string{"a@corp.com", "a@corp.com\r\nRCPT TO:<b@evil.example>"}, ReasonAddress, []string{"a@corp.com\r\nRCPT TO:<b@evil.example>"}},
		{ReadWrite, nil, ReasonAddress, nil},
	} {
		p := compile(t, Account{Mode: tc.mode, AllowOut: AllowList{Enabled: true, Entries: []string{"@corp.com"}}})
		var refused *SendRefused
		if err := p.CheckSend(tc.recipients); !errors.As(err, &refused) {
			t.Errorf("%s %q: %v is no *SendRefused", tc.mode, tc.recipients, err)
		} else if refused.Reason != tc.reason || !slices.Equal(refused.Recipients, tc.atFault) {
			t.Errorf("%s %q: refused for %s by %q, want %s by %q", tc.mode, tc.recipients, refused.Reason, refused.Recipients, tc.reason, tc.atFault)
		} else if strings.ContainsAny(refused.Error(), "\r\n") {
			t.Errorf("%s %q: the message repeats a control character", tc.mode, tc.recipients)
		}
	}
}

// A server that takes the domain for its own may read a local part as a way to
// somewhere else. Such a recipient is allowed by itself or not at all.
func TestRoutesAreNotTheDomainTheyEndIn(t *testing.T) {
	routes := []string{"victim%evil.example@corp.com", "evil.example!victim@corp.com", "|cat@corp.com", "/etc/passwd@corp.com", "-x@corp.com", "~root@corp.com",
		"victim\uff05evil.example@corp.com", "victim\uff20evil.example@corp.com"}
	p := compile(t, Account{Mode: ReadWrite, AllowOut: AllowList{Enabled: true, Entries: []string{"@corp.com", "a%b@corp.com"}}})
	for _, r := range routes {
		if p.CheckSend([]string{r}) == nil {
			t.Errorf("%s passes", r)
		}
	}
	for _, r := range []string{"a%b@corp.com", "ann@corp.com", "ann+tag@corp.com", "ann_lee-x@corp.com", "o'neil@corp.com", "j\u00f6rg@corp.com"} {
		if err := p.CheckSend([]string{r}); err != nil {
			t.Errorf("%s: %v", r, err)
		}
	}
	all := compile(t, Account{Mode: ReadWrite, AllowOut: AllowList{Enabled: true, Entries: []string{"*"}}})
	if err := all.CheckSend(routes[:6]); err != nil {
		t.Errorf("* does not allow them: %v", err)
	}
}
