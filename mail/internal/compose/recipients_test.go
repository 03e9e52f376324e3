package compose

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/postern-mail/postern/mail/internal/rfc5322"
)

func TestAReplyGoesWhereTheHeaderSays(t *testing.T) {
	own := func(a string) bool {
		return slices.Contains([]string{"me@example.org", "alias@example.net"}, strings.ToLower(a))
	}
	for name, c := range map[string]struct {
		header   string
		to, all  string // of a reply, and of one to all: To, and Cc behind a bar
		notes    string
		allNotes string // where they differ
	}{
		"author": {"From: Ann <ann@example.org>\nTo: me@example.org", "Ann <ann@example.org>", "Ann <ann@example.org>", "", ""},
		"all but oneself": {"From: ann@example.org\nTo: Me <ME@example.org>, bob@example.org\nCc: cy@example.org, Alias@example.net",
			"ann@example.org", "ann@example.org|bob@example.org cy@example.org", "", ""},
		"several authors": {"From: ann@example.org, Bob <bob@example.org>\nSender: eve@example.org", "ann@example.org Bob <bob@example.org>",
			"ann@example.org Bob <bob@example.org>", "", ""},
		"several authors, oneself among them": {"From: me@example.org, bob@example.org\nTo: cy@example.org", "bob@example.org", "bob@example.org|cy@example.org", "", ""},
		"Reply-To elsewhere":                  {"From: ann@example.org\nReply-To: Desk <desk@example.com>\nTo: me@example.org", "Desk <desk@example.com>", "Desk <desk@example.com>", "elsewhere", ""},
		"Reply-To the author in capitals":     {"From: ann@example.org\nReply-To: Ann@Example.org", "Ann@Example.org", "Ann@Example.org", "", ""},
		"Reply-To oneself alone":              {"From: ann@example.org\nReply-To: me@example.org", "ann@example.org", "ann@example.org", "", ""},
		"Reply-To that nobody can write to":   {"From: ann@example.org\nReply-To: <>, nobody", "ann@example.org", "ann@example.org", "1 left out", ""},
		"list": {"From: ann@example.org\nTo: list@lists.example.org\nList-Post: <mailto:evil@example.com>\nMail-Followup-To: evil@example.com\nMail-Reply-To: evil@example.com",
			"ann@example.org", "ann@example.org|list@lists.example.org", "", ""},
		"list that answers go to": {"From: ann@example.org\nReply-To: list@lists.example.org\nTo: list@lists.example.org", "list@lists.example.org", "list@lists.example.org", "elsewhere", ""},
		"one's own":               {"From: me@example.org\nReply-To: evil@example.com\nTo: bob@example.org, alias@example.net\nCc: cy@example.org", "bob@example.org", "bob@example.org|cy@example.org", "", ""},
		"to oneself":              {"From: me@example.org\nTo: me@example.org", "me@example.org", "me@example.org", "", ""},
		"own, hidden recipients":  {"From: me@example.org\nBcc: bob@example.org", "", "", "", ""},
		"doubles":                 {"From: ann@example.org\nTo: Ann@example.org, bob@example.org, bob@EXAMPLE.org\nCc: bob@example.org", "ann@example.org", "ann@example.org|bob@example.org", "", ""},
		"what mail cannot go to": {"From: ann@example.org\nTo: undisclosed-recipients:;, friends: \"a b\"@example.org, cy@[192.0.2.1], dan@example.org;",
			"ann@example.org", "ann@example.org|dan@example.org", "", "2 left out"},
		"nobody": {"Subject: x\nTo: me@example.org", "", "", "", ""},
		"a name that is a header": {"From: =?utf-8?q?Ann=0D=0ABcc=3A_eve=40example=2Ecom?= <ann@example.org>\nTo: me@example.org",
			"\"Ann Bcc: eve@example.com\" <ann@example.org>", "\"Ann Bcc: eve@example.com\" <ann@example.org>", "", ""},
		"a route to elsewhere": {"From: <@evil.example.com:ann@example.org>\nTo: \"bob@example.org <eve\"@example.com", "ann@example.org", "ann@example.org", "", "1 left out"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, all := range []bool{false, true} {
				r := ReplyRecipients(rfc5322.ParseHeader([]byte(strings.ReplaceAll(c.header, "\n", "\r\n")+"\r\n\r\n")), own, all)
				write := func(list []Address) string {
					var out []string
					for _, a := range list {
						out = append(out, a.String())
						if _, err := ParseAddress(a.String()); err != nil {
							t.Errorf("%s cannot be sent to: %v", a, err)
						}
					}
					return strings.Join(out, " ")
				}
				got, notes, want, wantNotes := write(r.To), "", c.to, c.notes
				if len(r.CC) > 0 {
					got += "|" + write(r.CC)
				}
				if r.Unusable > 0 {
					notes = fmt.Sprintf("%d left out", r.Unusable)
				}
				if r.Elsewhere {
					notes = strings.TrimSpace(notes + " elsewhere")
				}
				if all {
					want = c.all
					if c.allNotes != "" {
						wantNotes = c.allNotes
					}
				}
				if got != want || notes != wantNotes {
					t.Errorf("all %v: %q %q, want %q %q", all, got, notes, want, wantNotes)
				}
			}
		})
	}
}
