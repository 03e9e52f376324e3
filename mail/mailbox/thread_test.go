package mailbox_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
)

// talk is a letter with an id, what it answers, and an hour of one day.
func talk(hour int, subject, id string, refs ...string) letter {
	l := letter{Subject: subject, Date: time.Date(2026, 5, 4, hour, 0, 0, 0, time.UTC).Format(time.RFC1123Z), Extra: "Message-ID: <" + id + ">\r\n"}
	if len(refs) > 0 {
		l.Extra += "In-Reply-To: <" + refs[len(refs)-1] + ">\r\nReferences: <" + strings.Join(refs, "> <") + ">\r\n"
	}
	return l
}

func (b *box) thread(uid uint32, q mailbox.ThreadQuery) (*mailbox.Thread, []string) {
	b.T.Helper()
	th, err := b.Thread(b.T.Context(), b.Ref("INBOX", uid), q)
	if err != nil {
		b.T.Fatalf("thread of UID %d: %v", uid, err)
	}
	var out []string
	for _, m := range th.Messages {
		line := fmt.Sprintf("%d %s", m.Ref.UID, m.Subject)
		if m.Parent.UID != 0 {
			line += fmt.Sprintf(" < %d", m.Parent.UID)
		}
		out = append(out, line)
	}
	return th, out
}

func Test004_5_ThreadsByReferencesThenReplyThenSubject(t *testing.T) {
	everywhere(t, func(t *testing.T, e mailtest.Endpoint) {
		b := open(t, e, "threads")
		onlyReply := letter{Subject: "Antwort: Plan", Date: "Mon, 04 May 2026 13:00:00 +0000", Extra: "Message-ID: <d@x>\r\nIn-Reply-To: <c@x>\r\n"}
		b.Add("INBOX",
			talk(9, "Plan", "a@x"),                               // 1
			talk(9, "Newsletter", "n1@x"),                        // 2
			talk(10, "Re: Plan", "b@x", "a@x"),                   // 3
			talk(11, "AW: Plan (new room)", "c@x", "a@x", "b@x"), // 4: another subject
			onlyReply,                                  // 5: no References
			talk(12, "Newsletter", "n2@x"),             // 6: the same subject, no reply
			talk(14, "RE: [list] Fwd: Plan", "z@x"),    // 7: nothing but the subject of a reply
			talk(15, "", "e1@x"), talk(16, "", "e2@x"), // 8, 9: no subject
			talk(17, "Re: Lost", "f@x", "lost@x"), talk(18, "Re: Lost", "g@x", "lost@x"), // 10, 11: their root is not here
		)
		plan := []string{"1 Plan", "3 Re: Plan < 1", "4 AW: Plan (new room) < 3", "5 Antwort: Plan < 4", "7 RE: [list] Fwd: Plan < 1"}
		for uid, want := range map[uint32][]string{1: plan, 3: plan, 4: plan, 5: plan, 7: plan, 2: {"2 Newsletter"}, 6: {"6 Newsletter"},
			8: {"8"}, 10: {"10 Re: Lost", "11 Re: Lost"}, 11: {"10 Re: Lost", "11 Re: Lost"}} {
			th, got := b.thread(uid, mailbox.ThreadQuery{})
			for i := range got {
				got[i] = strings.TrimSpace(got[i])
			}
			if !slices.Equal(got, want) || th.Truncated || len(th.Issues) > 0 {
				t.Errorf("UID %d: %q, want %q", uid, got, want)
			}
		}
		if th, _ := b.thread(4, mailbox.ThreadQuery{}); th.Subject != "Plan" {
			t.Errorf("subject %q", th.Subject)
		}
		th, got := b.thread(1, mailbox.ThreadQuery{Limit: 2, Full: true})
		if len(got) != 2 || !th.Truncated || th.Messages[0].Ref.UID != 1 || th.Messages[1].Ref.UID != 7 || th.Messages[1].Size == 0 {
			t.Errorf("of a long one: %q %+v", got, th)
		}
		mailtest.WantKind(t, second(b.Thread(t.Context(), b.Ref("INBOX", 99), mailbox.ThreadQuery{})), mail.KindNotFound)
	})
}
