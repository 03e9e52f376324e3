package commands_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
)

// compactFixture is a fixture whose callers do not say --full.
func compactFixture(t *testing.T) *fixture {
	b := newFixture(t, nil, work("work", mail.ReadOnly))
	b.Compact = true
	return b
}

func dataOf(t *testing.T, e envelope) string {
	t.Helper()
	data, err := json.Marshal(e.Data)
	must(t, err)
	return string(data)
}

func letterTo(to string) mailbox.Message {
	return mailbox.Message{Summary: mailbox.Summary{Ref: ref(38), Date: time.Date(2026, 11, 19, 14, 20, 30, 0, time.FixedZone("", 3600)), Subject: "Tickets", Flags: []string{`\Seen`, `\Flagged`},
		From: []mail.Address{{Name: "Travel desk", Addr: "travel@example.com"}}, To: []mail.Address{{Addr: to}}, InternetMessageID: "x@example.com"}, BodyText: "Booking 77"}
}

func TestGetOfSeveral(t *testing.T) {
	b := compactFixture(t)
	cut := mailbox.Message{Summary: summaries(2, 10, 0)[1], BodyText: "long", BodyTruncated: true, NextChar: 401}
	cut.Ref = ref(2)
	whole := mailbox.Message{Summary: summaries(1, 10, 0)[0], BodyText: "short"}
	b.messages = map[uint32]mailbox.Message{1: whole, 2: cut}
	e := b.OK(t, "mail get imap:work:INBOX:7:2 imap:work:INBOX:7:9 imap:work:Sent:8:1 --chars 800")
	var got []string
	for _, m := range e.Data["messages"].([]any) {
		m := m.(map[string]any)
		got = append(got, fmt.Sprint(m["id"], " ", m["text"], " ", m["more"]))
	}
	if want := "[2 long mail get --chars 800 --from-char 401 2 1 short <nil>]"; fmt.Sprint(got) != want || e.Data["more"] != nil {
		t.Errorf("got %v, want %s", got, want)
	}
	if got := fmt.Sprint(e.Data["issues"]); got != "[NOT_FOUND: There is no such message. (9)]" {
		t.Errorf("issues %s", got)
	}
	if last := b.lastEntry(t); last.Reason != "filtered" || last.Target != "imap:work:INBOX:7:2,9,imap:work:Sent:8:1" {
		t.Errorf("audit: %+v", last)
	}
	b.Compact = false
	e = b.OK(t, "mail get --uid 2,1 --chars 800")
	if got := fmt.Sprint(e.Meta.Untrusted); !strings.Contains(got, "messages.body_text") || strings.Contains(got, "message.") {
		t.Errorf("untrusted: %s", got)
	}
	if list := e.Data["messages"].([]any); len(list) != 2 || e.Data["message"] != nil || list[0].(map[string]any)["next_char"] != 401. {
		t.Errorf("%v", e.Data)
	}
	b.Fails(t, "mail get imap:work:INBOX:7:2 imap:other:INBOX:7:9", discovery.ValidationError, "not all of one account")
	b.Fails(t, "mail get imap:work:INBOX:7:2 imap:work:INBOX:7:1 --from-char 3", discovery.ValidationError, "one message at a time")
	b.Fails(t, "mail get --uid "+strings.Repeat("1,", 20)+"1", discovery.ValidationError, "20")
}

func TestWhatIsNotShownOfAttachmentsIsTold(t *testing.T) {
	b := newFixture(t, nil, work("work", mail.ReadOnly))
	b.message = letterTo("desk@example.org")
	b.message.Unread = 5
	for i := range 60 {
		b.message.Attachments = append(b.message.Attachments, mailbox.Attachment{PartID: fmt.Sprint(i + 2), ContentType: "text/csv"})
	}
	e := b.OK(t, "mail get --uid 38 --attachment-text")
	m := e.Data["message"].(map[string]any)
	if len(m["attachments"].([]any)) != 50 || m["attachments_total"] != 60. || e.Data["status"] != "partial" || !strings.HasPrefix(e.Message, "Message with 60 attachments") {
		t.Errorf("%v attachments, %v, %v", m["attachments_total"], e.Data["status"], e.Message)
	}
	if got := fmt.Sprint(e.Data["issues"]); !strings.Contains(got, "10 further attachments, parts 52 to 61") || !strings.Contains(got, "text of 5 further attachments") {
		t.Errorf("issues %s", got)
	}
}

func TestPOP3HasNoFolderInAMessage(t *testing.T) {
	b := newFixture(t, nil, work("work", mail.ReadOnly))
	b.message = mailbox.Message{Summary: mailbox.Summary{Ref: mail.Ref{Protocol: mail.POP3, Account: "work", UIDL: "a"}}}
	m := b.OK(t, "mail get pop3:work:a").Data["message"].(map[string]any)
	for _, name := range []string{"folder", "uidvalidity", "uid"} {
		if v, there := m[name]; there {
			t.Errorf("%s is %v", name, v)
		}
	}
	b.Compact = true
	if got := dataOf(t, b.OK(t, "mail get pop3:work:a")); got != `{"messages":[{"id":"pop3:work:a"}]}` {
		t.Errorf("got %s", got)
	}
}

func TestTheRestOfATextHasItsIssue(t *testing.T) {
	b := compactFixture(t)
	b.message = letterTo("desk@example.org")
	b.message.FromChar = 2001
	b.message.Issues = []mail.Issue{{Kind: mail.KindNotFound, Message: "Gone."}}
	got := dataOf(t, b.OK(t, "mail get imap:work:INBOX:7:38 --from-char 2001"))
	if !strings.Contains(got, `"issues":["NOT_FOUND: Gone. (38)"]`) || strings.Contains(got, `"subject"`) || b.got.Headers != mailbox.HeadersNone {
		t.Errorf("%s, headers %q", got, b.got.Headers)
	}
	b.message = letterTo("desk@example.org")
	b.message.BodyHTML, b.message.BodyTruncated, b.message.NextChar = "<p>", true, 4
	if got := dataOf(t, b.OK(t, "mail get imap:work:INBOX:7:38 --html")); !strings.Contains(got, `"more":"mail get --from-char 4 --html 38"`) {
		t.Errorf("%s", got)
	}
}

func TestASourceThatIsCutSaysHowItGoesOn(t *testing.T) {
	b := compactFixture(t)
	b.raw = mailbox.RawMessage{Ref: ref(38), Size: 9, Source: []byte("From: "), Truncated: true}
	e := b.OK(t, "mail raw --uid 38")
	delete(e.Data, "untrusted")
	if got := dataOf(t, e); got != `{"id":"38","more":"mail raw --max-bytes 1000000 38","raw_source_base64":"RnJvbTog","size_bytes":9}` {
		t.Errorf("got %s", got)
	}
}
