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

// compactBench is a bench whose callers do not say --full.
func compactBench(t *testing.T) *bench {
	b := newBench(t, nil, work("work", mail.ReadOnly))
	b.compact = true
	return b
}

func dataOf(t *testing.T, e envelope) string {
	t.Helper()
	data, err := json.Marshal(e.Data)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func letterTo(to string) mailbox.Message {
	return mailbox.Message{Summary: mailbox.Summary{Ref: ref(38), Date: time.Date(2026, 11, 19, 14, 20, 30, 0, time.FixedZone("", 3600)), Subject: "Tickets", Flags: []string{`\Seen`, `\Flagged`},
		From: []mail.Address{{Name: "Travel desk", Addr: "travel@example.com"}}, To: []mail.Address{{Addr: to}}, InternetMessageID: "x@example.com"}, BodyText: "Booking 77"}
}

func TestGetInBrief(t *testing.T) {
	b := compactBench(t)
	start := time.Date(2026, 11, 27, 16, 0, 0, 0, time.FixedZone("", 3600))
	visit := mailbox.CalendarEvent{Method: "CANCEL", State: "cancelled", Summary: "Visit", Location: "Hall", Organizer: "travel@example.com", Start: start, End: start.Add(2 * time.Hour)}
	const head = `{"messages":[{"date":"2026-11-19T13:20Z","from":"Travel desk \u003ctravel@example.com\u003e","id":"38","marks":"flagged","subject":"Tickets"`
	for name, tc := range map[string]struct {
		to     string
		change func(m *mailbox.Message)
		want   string // behind head
	}{
		"to the account itself": {"Desk@Example.org", nil, `,"text":"Booking 77"}]`},
		"to somebody else":      {"bob@example.org", nil, `,"text":"Booking 77","to":"bob@example.org"}]`},
		"hidden and returned": {"desk@example.org", func(m *mailbox.Message) {
			m.Attachments = []mailbox.Attachment{{PartID: "2", ContentType: "message/delivery-status"}, {PartID: "3", ContentType: "message/rfc822"}}
			m.HiddenChars, m.Returned, m.CC = 212, mail.Ref{Protocol: mail.IMAP, Account: "work", Folder: "Sent", UIDValidity: 9, UID: 3}, []mail.Address{{Addr: "c@example.org"}}
		}, `,"text":"Booking 77","returned":"Sent/3","hidden_chars":212,"cc":"c@example.org"}]`},
		"cut":              {"desk@example.org", func(m *mailbox.Message) { m.BodyTruncated, m.NextChar = true, 2001 }, `,"text":"Booking 77"}],"more":"mail get --from-char 2001 38"`},
		"HTML that is cut": {"desk@example.org", func(m *mailbox.Message) { m.BodyHTML, m.BodyTruncated = "<p>", true }, `,"text":"Booking 77","html":"<p>"}],"hint":"The HTML was cut: --chars shows more of it, at most 20000 characters."`},
		"an invitation in three forms": {"desk@example.org", func(m *mailbox.Message) {
			m.Attachments = []mailbox.Attachment{{PartID: "1.3", ContentType: "text/calendar", Text: "Event: Visit", Events: []mailbox.CalendarEvent{visit}},
				{PartID: "2", Filename: "invite.ics", ContentType: "application/ics", Events: []mailbox.CalendarEvent{visit}},
				{PartID: "3", Filename: "plan.png", ContentType: "image/png", Size: 371}}
		}, `,"text":"Booking 77","events":[{"state":"cancelled","start":"2026-11-27T15:00Z","end":"2026-11-27T17:00Z","summary":"Visit","location":"Hall"}],` +
			`"attachments":{"columns":["part","name","type","bytes"],"rows":[["3","plan.png","image/png",371]]}}]`},
		"texts of attachments": {"desk@example.org", func(m *mailbox.Message) {
			m.Attachments = []mailbox.Attachment{{PartID: "2", ContentType: "text/csv", Size: 9, Text: "a,b", TextTruncated: true}}
		}, `,"text":"Booking 77","attachments":{"columns":["part","type","bytes","text"],"rows":[["2","text/csv",9,"a,b…"]]}}],"hint":"'mail attachment' with --as-text and --from-char reads the rest of an attachment's text."`},
	} {
		t.Run(name, func(t *testing.T) {
			m := letterTo(tc.to)
			if tc.change != nil {
				tc.change(&m)
			}
			b.message = m
			e := b.ok(t, "mail get imap:work:INBOX:7:38")
			var want any
			if err := json.Unmarshal([]byte(head+tc.want+"}"), &want); err != nil {
				t.Fatal(err)
			}
			delete(e.Data, "untrusted")
			wanted, _ := json.Marshal(want)
			if got := dataOf(t, e); got != string(wanted) {
				t.Errorf("got  %s\nwant %s", got, wanted)
			}
			if b.got.Headers != mailbox.HeadersNone {
				t.Errorf("headers %q are fetched", b.got.Headers)
			}
		})
	}
	b.message = letterTo("desk@example.org")
	b.message.FromChar = 2001
	if got := dataOf(t, b.ok(t, "mail get imap:work:INBOX:7:38 --from-char 2001")); got != `{"messages":[{"id":"38","text":"Booking 77"}],"untrusted":"text"}` {
		t.Errorf("the rest of a text tells what was told: %s", got)
	}
	b.message.Issues = []mail.Issue{{Kind: mail.KindNotFound, Message: "Gone."}}
	if got := dataOf(t, b.ok(t, "mail get imap:work:INBOX:7:38 --from-char 2001")); !strings.Contains(got, `"issues":["NOT_FOUND: Gone. (38)"]`) {
		t.Errorf("an issue names its message otherwise than the answer: %s", got)
	}
	b.message = letterTo("desk@example.org")
	e := b.ok(t, "mail get imap:work:INBOX:7:38")
	if e.size > len(b.message.BodyText)+300 {
		t.Errorf("%d bytes for a text of %d", e.size, len(b.message.BodyText))
	}
	if got := e.Data["untrusted"]; got != "from subject text" {
		t.Errorf("untrusted: %v", got)
	}
}

func TestGetOfSeveral(t *testing.T) {
	b := compactBench(t)
	cut := mailbox.Message{Summary: summaries(2, 10, 0)[1], BodyText: "long", BodyTruncated: true, NextChar: 401}
	cut.Ref = ref(2)
	whole := mailbox.Message{Summary: summaries(1, 10, 0)[0], BodyText: "short"}
	b.messages = map[uint32]mailbox.Message{1: whole, 2: cut}
	e := b.ok(t, "mail get imap:work:INBOX:7:2 imap:work:INBOX:7:9 imap:work:Sent:8:1 --chars 800")
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
	b.compact = false
	e = b.ok(t, "mail get --uid 2,1 --chars 800")
	if got := fmt.Sprint(e.Meta.Untrusted); !strings.Contains(got, "messages.body_text") || strings.Contains(got, "message.") {
		t.Errorf("untrusted: %s", got)
	}
	if list := e.Data["messages"].([]any); len(list) != 2 || e.Data["message"] != nil || list[0].(map[string]any)["next_char"] != 401. {
		t.Errorf("%v", e.Data)
	}
	b.fails(t, "mail get imap:work:INBOX:7:2 imap:other:INBOX:7:9", discovery.ValidationError, "not all of one account")
	b.fails(t, "mail get imap:work:INBOX:7:2 imap:work:INBOX:7:1 --from-char 3", discovery.ValidationError, "one message at a time")
	b.fails(t, "mail get --uid "+strings.Repeat("1,", 20)+"1", discovery.ValidationError, "20")
}

func TestWhatIsNotShownOfAttachmentsIsTold(t *testing.T) {
	b := newBench(t, nil, work("work", mail.ReadOnly))
	b.message = letterTo("desk@example.org")
	b.message.Unread = 5
	for i := range 60 {
		b.message.Attachments = append(b.message.Attachments, mailbox.Attachment{PartID: fmt.Sprint(i + 2), ContentType: "text/csv"})
	}
	e := b.ok(t, "mail get --uid 38 --attachment-text")
	m := e.Data["message"].(map[string]any)
	if len(m["attachments"].([]any)) != 50 || m["attachments_total"] != 60. || e.Data["status"] != "partial" || !strings.HasPrefix(e.Message, "Message with 60 attachments") {
		t.Errorf("%v attachments, %v, %v", m["attachments_total"], e.Data["status"], e.Message)
	}
	if got := fmt.Sprint(e.Data["issues"]); !strings.Contains(got, "10 further attachments, parts 52 to 61") || !strings.Contains(got, "text of 5 further attachments") {
		t.Errorf("issues %s", got)
	}
}

func TestPOP3HasNoFolderInAMessage(t *testing.T) {
	b := newBench(t, nil, work("work", mail.ReadOnly))
	b.message = mailbox.Message{Summary: mailbox.Summary{Ref: mail.Ref{Protocol: mail.POP3, Account: "work", UIDL: "a"}}}
	m := b.ok(t, "mail get pop3:work:a").Data["message"].(map[string]any)
	for _, name := range []string{"folder", "uidvalidity", "uid"} {
		if v, there := m[name]; there {
			t.Errorf("%s is %v", name, v)
		}
	}
	b.compact = true
	if got := dataOf(t, b.ok(t, "mail get pop3:work:a")); got != `{"messages":[{"id":"pop3:work:a"}]}` {
		t.Errorf("got %s", got)
	}
}

func TestAttachmentAsText(t *testing.T) {
	b := compactBench(t)
	b.part = mailbox.AttachmentContent{Ref: ref(38), Attachment: mailbox.Attachment{PartID: "2", Filename: "a.pdf", ContentType: "application/pdf", Size: 9, Text: "Dear Ann", TextTruncated: true}, NextChar: 101}
	e := b.ok(t, "mail attachment --uid 38 --as-text --chars 100")
	delete(e.Data, "untrusted")
	if got := dataOf(t, e); got != `{"bytes":9,"more":"mail attachment --part 2 --as-text --chars 100 --from-char 101 38","name":"a.pdf","part":"2","text":"Dear Ann","type":"application/pdf"}` {
		t.Errorf("got %s", got)
	}
	if want := (mailbox.AttachmentQuery{Chars: 100}); b.says != want {
		t.Errorf("asked for %+v", b.says)
	}
	b.fails(t, "mail attachment --uid 38 --as-text --save x", discovery.ValidationError, "cannot be used together")
	b.fails(t, "mail attachment --uid 38 --chars 100", discovery.ValidationError, "--as-text")
	b.part.Content, b.part.Text = []byte("%PDF"), ""
	e = b.ok(t, "mail attachment --uid 38")
	delete(e.Data, "untrusted")
	if got := dataOf(t, e); got != `{"bytes":4,"content_base64":"JVBERg==","name":"a.pdf","part":"2","type":"application/pdf"}` {
		t.Errorf("got %s", got)
	}
	b.raw = mailbox.RawMessage{Ref: ref(38), Size: 9, Source: []byte("From: "), Truncated: true}
	e = b.ok(t, "mail raw --uid 38")
	delete(e.Data, "untrusted")
	if got := dataOf(t, e); got != `{"id":"38","more":"mail raw --max-bytes 1000000 38","raw_source_base64":"RnJvbTog","size_bytes":9}` {
		t.Errorf("got %s", got)
	}
}
