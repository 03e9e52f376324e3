package commands_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
)

// conversation is one over two folders, with an attachment and an invitation.
func conversation() mailbox.Thread {
	sent := ref(5)
	sent.Folder = "Sent"
	noon := time.Date(2026, 3, 9, 12, 0, 0, 0, time.UTC)
	return mailbox.Thread{Folder: "INBOX", UIDValidity: 7, Subject: "Plan", Messages: []mailbox.ThreadMessage{
		{Summary: mailbox.Summary{Ref: ref(1), Date: noon, Subject: "Plan", From: []mail.Address{{Name: "Bob", Addr: "bob@example.org"}}, Flags: []string{}, HasAttachments: true, Invitation: true},
			Text: "Shall we?", Attachments: []mailbox.Attachment{{PartID: "2", Filename: "floor-plan.png", ContentType: "image/png", Size: 371},
				{PartID: "3", ContentType: "text/calendar", Size: 2400}}},
		{Summary: mailbox.Summary{Ref: sent, Date: noon.Add(time.Minute), Subject: "Re: Plan", From: []mail.Address{{Addr: "me@example.org"}}, Flags: []string{`\Seen`}},
			Parent: ref(1), Text: strings.Repeat("long ", 60) + "…", TextTruncated: true}}}
}

func TestAConversationIsATableOfNewTexts(t *testing.T) {
	b := newBench(t, nil, work("work", mail.ReadOnly))
	b.compact = true
	b.thread = conversation()
	b.thread.Messages[0].HiddenChars = 40
	b.page = mailbox.Page{Folder: "INBOX", UIDValidity: 7, Messages: summaries(1, 20, 0)}
	b.ok(t, "mail list")
	got, _ := json.Marshal(b.ok(t, "mail thread 1 --chars 300").Data)
	if want := `{"columns":["id","date","from","marks","text","hidden_chars","attachments"],"rows":[` +
		`["1","2026-03-09T12:00Z","Bob \u003cbob@example.org\u003e","unread invitation","Shall we?",40,"floor-plan.png image/png 371 B (part 2)"],` +
		`["Sent/5","2026-03-09T12:01Z","me@example.org","","` + strings.Repeat("long ", 60) + `…",0,""]],"subject":"Plan","untrusted":"from subject text attachments"}`; string(got) != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if q := b.threadQuery; q.Chars != 300 || q.Limit != 200 || q.Full {
		t.Errorf("asked for %+v", q)
	}
	if b.ok(t, "mail thread 1 --chars 0"); b.threadQuery.Chars != 0 {
		t.Errorf("asked for %+v", b.threadQuery)
	}
	full := b.ok(t, "mail thread 1 --full")
	e := full.Data["messages"].([]any)
	first, second := e[0].(map[string]any), e[1].(map[string]any)
	if b.threadQuery.Chars != 1000 || first["body_text"] != "Shall we?" || len(first["attachments"].([]any)) != 2 || first["message_id"] != ref(1).String() ||
		second["parent_message_id"] != ref(1).String() || second["body_truncated"] != true || second["subject"] != "Re: Plan" || second["folder"] != "Sent" {
		t.Errorf("--full: %v", full.Data)
	}
}

// The parts of a bounce that repeat its text are not told; what else is attached to it is.
func TestABounceInAConversationHasNoReports(t *testing.T) {
	b := newBench(t, nil, work("work", mail.ReadOnly))
	b.compact = true
	b.thread = conversation()
	first := &b.thread.Messages[0]
	first.Invitation = false
	first.Attachments = []mailbox.Attachment{{PartID: "2", ContentType: "message/delivery-status", Size: 371}, {PartID: "3", ContentType: "message/rfc822", Size: 900},
		{PartID: "4", Filename: "log.txt", ContentType: "text/plain", Size: 30}}
	b.page = mailbox.Page{Folder: "INBOX", UIDValidity: 7, Messages: summaries(1, 20, 0)}
	b.ok(t, "mail list")
	if got, _ := json.Marshal(b.ok(t, "mail thread 1").Data); !strings.Contains(string(got), `"log.txt text/plain 30 B (part 4)"`) || strings.Contains(string(got), "message/") {
		t.Errorf("%s", got)
	}
}

// A cut says so, and how to go on.
func TestACutConversationSaysSo(t *testing.T) {
	b := newBench(t, nil, work("work", mail.ReadOnly))
	b.compact = true
	b.thread = conversation()
	b.page = mailbox.Page{Folder: "INBOX", UIDValidity: 7, Messages: summaries(1, 20, 0)}
	b.ok(t, "mail list")
	b.thread.Truncated = true
	if d := b.ok(t, "mail thread 1 --limit 2").Data; d["more"] != "mail thread 1" || d["hint"] != nil {
		t.Errorf("%v", d)
	}
	if d := b.ok(t, "mail thread 1").Data; d["more"] != nil || !strings.Contains(d["hint"].(string), "more messages") {
		t.Errorf("%v", d)
	}
	for i := range b.thread.Messages {
		b.thread.Messages[i].Text = strings.Repeat("x", 20_000)
	}
	for range 40 {
		b.thread.Messages = append(b.thread.Messages, b.thread.Messages[1])
	}
	e := b.ok(t, "mail thread 1 --chars 20000 --full")
	if n := e.size; n > 256<<10 || len(e.Data["messages"].([]any)) != 42 || e.Data["messages"].([]any)[0].(map[string]any)["body_truncated"] != true {
		t.Errorf("%d bytes, %d messages", n, len(e.Data["messages"].([]any)))
	}
}
