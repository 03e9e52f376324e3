package mailbox_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/postern-mail/postern/mail"
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
