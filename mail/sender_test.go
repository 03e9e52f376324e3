package mail

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail/internal/rfc5322"
)

func judged(t *testing.T, change func(a *Account)) *Policy {
	t.Helper()
	a := Account{Name: "work", Email: "me@example.org", Protocol: IMAP, IMAP: tlsAt("imap.example.org", 993), Username: "me", Auth: AuthPassword, Mode: ReadOnly,
		AuthServIDs: []string{"mx.example.org"}}
	change(&a)
	must(t, a.Validate())
	p, err := CompilePolicy(&a)
	must(t, err)
	return p
}

const (
	passes  = "Authentication-Results: mx.example.org; dmarc=pass header.from=bank.example\r\n"
	fails   = "Authentication-Results: mx.example.org; dmarc=fail header.from=bank.example\r\n"
	arrived = "Received: from out.bank.example (out.bank.example [192.0.2.1]) by mx.example.org with ESMTPS; Mon, 1 Jan 2024 00:00:00 +0000\r\n"
)

func TestVerdictNeedsOneCertainFrom(t *testing.T) {
	p := judged(t, func(*Account) {})
	for _, c := range testmain.Table[struct {
		From string
		Want Verdict
	}](t, "testdata/cases/verdict.txt") {
		if got := p.Verdict(judgeable(passes + arrived + c.From)); got != c.Want {
			t.Errorf("%q is %s, want %s", c.From, got, c.Want)
		}
	}
	if got := p.Verdict(judgeable(fails + arrived + "From: ann@bank.example\r\n")); got != Failed {
		t.Errorf("a failed one is %s", got)
	}
	for _, p := range []*Policy{nil, {}, judged(t, func(a *Account) { a.AuthServIDs = nil }), judged(t, func(a *Account) { a.AuthServIDs = []string{NoAuthServ} }),
		judged(t, func(a *Account) { a.IMAP, a.AuthServIDs = tlsAt("imap.gmail.com", 993), []string{NoAuthServ} })} {
		if p.Judges() || p.Verdict(judgeable(passes+arrived+"From: ann@bank.example\r\n")) != Unknown {
			t.Error("an account without a trusted id judges")
		}
	}
	if !judged(t, func(a *Account) { a.IMAP, a.AuthServIDs = tlsAt("IMAP.gmail.com", 993), nil }).Judges() {
		t.Error("an account of a provider whose border is known does not judge")
	}
}

func TestVerifiedEntries(t *testing.T) {
	bank, eve, ann := "From: ann@bank.example\r\n", "From: eve@evil.example\r\n", "From: ann@example.net\r\n"
	whole := passes + arrived + "To: Me <me+bank@example.org>\r\nDate: Sun, 31 Dec 2023 12:00:00 +0000\r\n"
	odd := "From: The bank: ann@bank.example;\r\n"
	for _, c := range []struct {
		list            AllowList
		shown, hidden   []string
		all, constraint bool // ShowsAll, and whether Inbound names the senders
	}{
		{list: AllowList{Verified: []string{"@bank.example"}}, shown: []string{bank, eve, odd}, all: true},
		{list: AllowList{Enabled: true, Verified: []string{"@bank.example"}}, shown: []string{whole + bank}, constraint: true,
			hidden: []string{bank, fails + arrived + bank, arrived + passes + bank, passes + arrived + bank, strings.Replace(whole, "me+bank@", "mallory@", 1) + bank,
				strings.Replace(whole, "31 Dec", "20 Dec", 1) + bank, strings.Replace(whole, "31 Dec", "soon", 1) + bank, passes + arrived + eve, passes + arrived + odd}},
		{list: AllowList{Enabled: true, Entries: []string{"ann@bank.example", "@example.net"}, Verified: []string{"@bank.example"}}, constraint: true,
			shown: []string{ann, whole + bank}, hidden: []string{bank, eve, passes + arrived + "From: ann@bank.example, ann@example.net\r\n"}},
		{list: AllowList{Enabled: true, Entries: []string{"@bank.example"}, Verified: []string{"ann@bank.example"}}, constraint: true,
			shown: []string{"From: bob@bank.example\r\n", whole + bank}, hidden: []string{bank}},
		{list: AllowList{Enabled: true, Entries: []string{"*"}, Verified: []string{"@bank.example"}},
			shown: []string{eve, ann, whole + bank}, hidden: []string{bank, odd, "From: ann@bank.example\r\nFrom: eve@evil.example\r\n"}},
		{list: AllowList{Enabled: true, Verified: []string{"*"}}, shown: []string{whole + bank}, hidden: []string{bank, eve}},
	} {
		p := judged(t, func(a *Account) { a.AllowIn = c.list })
		for _, h := range c.shown {
			if !p.Visible(judgeable(h)) {
				t.Errorf("%+v hides %q", c.list, h)
			}
		}
		for _, h := range c.hidden {
			if p.Visible(judgeable(h)) {
				t.Errorf("%+v shows %q", c.list, h)
			}
		}
		if p.ShowsAll() != c.all || (p.Inbound() != nil) != c.constraint {
			t.Errorf("%+v: shows all %v, names %q", c.list, p.ShowsAll(), p.Inbound())
		}
	}
	p := judged(t, func(a *Account) {
		a.AllowIn = AllowList{Enabled: true, Entries: []string{"@b.example"}, Verified: []string{"@a.example", "@b.example"}}
	})
	if got := p.Inbound(); !slices.Equal(got, []string{"@a.example", "@b.example"}) {
		t.Errorf("the inbound list is %q", got)
	}
	own := judged(t, func(a *Account) { a.AllowIn = AllowList{Enabled: true, Verified: []string{"@example.org"}} })
	if mine := judgeable("From: me@example.org\r\n"); own.Visible(mine) || !own.VisibleAsOwn(mine) {
		t.Error("what the account wrote is judged otherwise than a stranger's in INBOX, and shown in Sent")
	}
	if _, err := CompilePolicy(&Account{AllowIn: AllowList{Enabled: true, Verified: []string{"bank"}}}); err == nil {
		t.Error("an entry that cannot be read makes a policy")
	}
}

func TestAuthServIDs(t *testing.T) {
	for ids, ok := range map[string]bool{"": true, "none": true, "mx.example.org": true, "*.example.org": true, "mx1.a.example mx2.a.example": true,
		"None": false, "none mx.example.org": false, "mx.example.org;": false, "*": false, "a.*.example": false, "mx.example.org.": false, "-mx": false, strings.Repeat("a", 300): false} {
		a := Account{AuthServIDs: strings.Fields(ids)}
		if err := a.validateAuthServIDs(); (err == nil) != ok {
			t.Errorf("%q: %v", ids, err)
		}
	}
}

// An account that was stored before the fields existed, and one that does not use them, are
// the same bytes.
func TestAccountWithoutVerdictsKeepsItsForm(t *testing.T) {
	b, err := json.Marshal(Account{AllowIn: AllowList{Enabled: true, Entries: []string{"*"}}})
	if err != nil || strings.Contains(string(b), "verified") || strings.Contains(string(b), "authserv") {
		t.Errorf("%s %v", b, err)
	}
}

func TestPoses(t *testing.T) {
	for _, c := range testmain.Table[struct{ In, Want string }](t, "testdata/cases/poses.txt") {
		if got := Poses(Address{Name: c.In, Addr: "eve@evil.example"}); got != c.Want {
			t.Errorf("%q shows %q, want %q", c.In, got, c.Want)
		}
	}
	if got := Poses(Address{Name: "ann@bank.example"}); got != "ann@bank.example" {
		t.Errorf("a name without an address shows %q", got)
	}
}

func judgeable(s string) rfc5322.Header { return rfc5322.ParseHeader([]byte(s + "\r\n")) }
