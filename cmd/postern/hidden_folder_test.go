package main

import (
	"regexp"
	"testing"

	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/servertest"
)

// varyingMailbox is what differs between two mailboxes with the same messages.
var varyingMailbox = regexp.MustCompile(`"duration_ms":\d+|"(now|now_utc|date|received|timestamp)":"[^"]*"|[:"](\d{10})[:,"}]|"uidvalidity":\d+|<[0-9A-Za-z.-]+@example.org>|within \d+ ms|"internet_message_id":"[^"]*"`)

// TestAHiddenFolderIsAnsweredLikeAMissingOne asks every command that takes a folder, or
// looks at several, where the account hides a folder that exists and where there is none:
// through the whole program the answers are the same bytes, times apart.
func TestAHiddenFolderIsAnsweredLikeAMissingOne(t *testing.T) {
	t.Parallel()
	s := servertest.SharedDovecot(t)
	letter := func(subject, more string) []byte {
		return []byte("From: bob@example.org\r\nTo: ann@example.org\r\nDate: Mon, 2 Mar 2026 09:00:00 +0000\r\nSubject: " + subject + "\r\n" + more + "\r\nwalls\r\n")
	}
	answers := func(user string, exists bool) map[string]string {
		s.Deliver(t, user, "INBOX", letter("one", "Message-ID: <1@x>\r\n"), letter("two", "Message-ID: <2@x>\r\n"))
		if exists {
			s.Deliver(t, user, "Secret", letter("Re: one", "Message-ID: <3@x>\r\nReferences: <1@x>\r\n"))
			s.Deliver(t, user, "Secret/Deeper", letter("Re: one", "Message-ID: <4@x>\r\nReferences: <1@x>\r\n"))
		}
		v := newVault(t)
		a := dovecotAccount(s, user)
		a.Mode, a.Destroy, a.Email = mail.ReadWrite, mail.DestroyOn, "ann@example.org"
		v.add(t, a, servertest.Password)
		h := newHouse(t, v)
		if exists { // it was known before
			if listed := h.do(t, "mail list --folder Secret", nil); !listed.Success {
				t.Fatalf("%s", listed.raw)
			}
		}
		admin := gateway.Principal{Name: "admin", Admin: true}
		if a := h.as(t, admin, "hide folder add Secret --account "+a.Name); !a.Success {
			t.Fatalf("%s", a.raw)
		}
		told := map[string]string{}
		for _, line := range []string{
			"mail folders", "mail folders --counts --full", "mail folders --pattern Secret* --full", "mail folders --after Secret", "mail accounts",
			"mail list", "mail list --folder Secret", "mail list --folder secret/Deeper --full", "mail list --folder Secrett",
			"mail search walls", "mail search walls --folder all", "mail search walls --folder Secret", "mail search walls --folder INBOX,Secret --full", "mail search",
			"mail get Secret/1", "mail get Secret/1 1", "mail get --folder Secret --uid 1 --full", "mail raw --folder Secret --uid 1", "mail attachment --folder Secret --uid 1",
			"mail thread 1", "mail thread Secret/Deeper/1", "mail thread Secret/1 --full", "mail watch --folder Secret --wait 1", "mail ack --folder Secret --uid 1",
			"mail mark-read --folder Secret --uid 1", "mail flags --folder Secret --uid 1 --add x", "mail trash --folder Secret --uid 1", "mail delete --folder Secret --uid 1 --confirm",
			"mail copy --folder INBOX --uid 1 --to Secret", "mail copy --folder Secret --uid 1 --to Archive", "mail move --folder INBOX --uid 1 --to Secret/Deeper", "mail move --folder Secret --uid 1 --to Archive",
			"mail draft --reply-to Secret/1 --body x", "policy show --full", "policy explain 'mail copy 1 --to Secret'", "help", "doctor",
		} {
			raw := h.as(t, gateway.Principal{Name: "agent"}, line).raw
			told[line] = varyingMailbox.ReplaceAllString(string(raw), "")
		}
		return told
	}
	with, without := answers(servertest.User("ann"), true), answers(servertest.User("bea"), false)
	for line, want := range without {
		if got := with[line]; got != want {
			t.Errorf("%s\nhidden:  %s\nmissing: %s", line, got, want)
		}
	}
}
