package mailbox_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
)

// How the newest messages of a sender would fare is told whatever the rules hide, and of
// messages alone that the entry matches.
func TestHowASenderWouldFare(t *testing.T) {
	everywhere(t, func(t *testing.T, e mailtest.Endpoint) {
		b := open(t, e, "fare", judging, allowing("bob@example.org"))
		b.Add("INBOX", arrived("a", "pass"), arrived("b", "pass"), arrived("c", "fail"), arrived("d", ""), letter{From: "eve@evil.example", Subject: "ann@example.com"},
			letter{From: "x@example.com.evil.example"})
		for entry, want := range map[string]string{"ann@example.com": "2 1 1", "@example.com": "2 1 1", "n@example.com": "0 0 0", "*": "2 1 3"} {
			n, err := b.JudgeSender(t.Context(), account, entry)
			if got := fmt.Sprint(n[mail.Verified], n[mail.Failed], n[mail.Unknown]); err != nil || got != want {
				t.Errorf("%s: %s, %v, want %s", entry, got, err, want)
			}
		}
	})
}

// An authserv-id is proposed only where the servers of the account, and nobody else, write it
// in most messages.
func TestTheAuthServIDThatIsProposed(t *testing.T) {
	said := func(n int, result string, below ...string) (all []letter) {
		for range n {
			all = append(all, arrived("x", result, below...))
		}
		return all
	}
	const id, forged, other = "mx.example.net", "Authentication-Results: MX.example.net; dmarc=pass\r\n", "Authentication-Results: mx.example.org; dmarc=pass\r\n"
	t.Parallel()
	for _, e := range mailtest.SharedEndpoints(t) {
		for name, tc := range map[string]struct {
			letters []letter
			want    string
		}{
			"always":         {said(6, "pass"), id},
			"mostly":         {append(said(8, "fail"), said(2, "", other)...), id},
			"beside silence": {append(said(5, "pass"), said(10, "")...), id},
			"seldom":         {append(said(7, "pass"), said(3, "", other)...), ""},
			"too few":        {said(4, "pass"), ""},
			"also below":     {append(said(9, "pass"), said(1, "", forged)...), ""},
			"only below":     {said(9, "", forged), ""},
			"nothing":        {said(9, ""), ""},
			"empty":          {nil, ""},
		} {
			t.Run(e.Name+" "+name, func(t *testing.T) {
				t.Parallel()
				b := open(t, e, "propose"+strings.ReplaceAll(name, " ", ""), allowing("bob@example.org"))
				if len(tc.letters) > 0 {
					b.Add("INBOX", tc.letters...)
				}
				if got, err := b.AuthServID(t.Context(), account); err != nil || got != tc.want {
					t.Errorf("%q, %v, want %q", got, err, tc.want)
				}
			})
		}
	}
}

// judging makes the account trust what the border mx.example.net says.
func judging(a *mail.Account) { a.AuthServIDs = []string{"mx.example.net"} }

// arrived is a letter as the border mx.example.net took it from outside, with its verdict.
func arrived(subject, result string, below ...string) letter {
	trace := "Received: from out.example.com (out.example.com [203.0.113.5])\r\n\tby mx.example.net with ESMTPS id 1; Sun, 1 Mar 2026 09:00:00 +0000\r\n"
	if result != "" {
		trace = "Authentication-Results: mx.example.net;\r\n\tdmarc=" + result + " header.from=example.com\r\n" + trace
	}
	return letter{From: "Ann <ann@example.com>", Subject: subject, Extra: trace + strings.Join(below, ""), Body: "hello"}
}

// Every view of a message says the same of its sender. A list that fetches some fields alone
// never says verified.
func TestVerdictsInEveryView(t *testing.T) {
	forged := "Authentication-Results: mx.example.net; dmarc=pass header.from=example.com\r\n"
	want := map[string]mail.Verdict{"pass": mail.Verified, "fail": mail.Failed, "none": mail.Unknown, "below": mail.Unknown, "long": mail.Unknown, "long fail": mail.Unknown}
	letters := []letter{arrived("pass", "pass"), arrived("fail", "fail"), arrived("none", ""), arrived("below", "", forged),
		arrived("long", "pass", strings.Repeat("X-Filler: "+strings.Repeat("x", 900)+"\r\n", 80)),
		arrived("long fail", "fail", strings.Repeat("Received: from x by y; "+strings.Repeat("x", 900)+"\r\n", 80))}
	t.Parallel()
	for _, e := range mailtest.SharedEndpoints(t) {
		for name, rules := range map[string]func(*mail.Account){"all": func(*mail.Account) {}, "rules": allowing("ann@example.com")} {
			t.Run(e.Name+" "+name, func(t *testing.T) {
				t.Parallel()
				b := open(t, e, "verdict"+name, judging, rules)
				b.Add("INBOX", letters...)
				shown := 0
				check := func(view string, list []mailbox.Summary, sure bool) {
					t.Helper()
					for _, m := range list {
						expected := want[m.Subject]
						if !sure && expected == mail.Verified {
							expected = mail.Unknown
						}
						if shown++; m.Verdict != expected {
							t.Errorf("%s: %s: %s, want %s", view, m.Subject, m.Verdict, expected)
						}
					}
				}
				for _, full := range []bool{false, true} {
					sure := full || name == "rules"
					check("list", b.list(mailbox.ListQuery{Full: full}).Messages, sure)
					check("list with snippets", b.list(mailbox.ListQuery{Full: full, Snippet: 60}).Messages, sure)
					check("search", b.search(mailbox.SearchQuery{Folders: []string{"INBOX"}, Full: full}).Messages, sure)
				}
				first := b.list(mailbox.ListQuery{}).Messages
				for _, m := range first {
					got, err := b.Get(t.Context(), m.Ref, mailbox.GetQuery{})
					must(t, err)
					check("get", []mailbox.Summary{got.Summary}, true)
					c, err := b.Thread(t.Context(), m.Ref, mailbox.ThreadQuery{Chars: 100, Full: true})
					if err != nil || len(c.Messages) != 1 {
						t.Fatalf("%+v, %v", c, err)
					}
					check("thread", []mailbox.Summary{c.Messages[0].Summary}, true)
				}
				if visible := map[string]int{"all": 6, "rules": 4}[name]; len(first) != visible || shown != 8*visible {
					t.Errorf("%d messages, %d views", len(first), shown)
				}
			})
		}
	}
}

// An account without a trusted id has no opinion, whatever a message says of itself.
func TestNoVerdictWithoutATrustedID(t *testing.T) {
	b := onDovecot(t, "noverdict")
	ref := b.Ref("INBOX", b.Add("INBOX", arrived("fail", "fail"))[0])
	m, err := b.Get(t.Context(), ref, mailbox.GetQuery{})
	if err != nil || m.Verdict != mail.Unknown || b.list(mailbox.ListQuery{Full: true}).Messages[0].Verdict != mail.Unknown {
		t.Errorf("%+v, %v", m, err)
	}
}
