package commands_test

import (
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

// A cut says so, and how to go on.
func TestACutConversationSaysSo(t *testing.T) {
	b := newFixture(t, nil, work("work", mail.ReadOnly))
	b.Compact = true
	b.thread = conversation()
	b.page = mailbox.Page{Folder: "INBOX", UIDValidity: 7, Messages: summaries(1, 20, 0)}
	b.OK(t, "mail list")
	b.thread.Truncated = true
	if d := b.OK(t, "mail thread 1 --limit 2").Data; d["more"] != "mail thread 1" || d["hint"] != nil {
		t.Errorf("%v", d)
	}
	if d := b.OK(t, "mail thread 1").Data; d["more"] != nil || !strings.Contains(d["hint"].(string), "more messages") {
		t.Errorf("%v", d)
	}
	for i := range b.thread.Messages {
		b.thread.Messages[i].Text = strings.Repeat("x", 20_000)
	}
	for range 40 {
		b.thread.Messages = append(b.thread.Messages, b.thread.Messages[1])
	}
	e := b.OK(t, "mail thread 1 --chars 20000 --full")
	if n := e.Size; n > 256<<10 || len(e.Data["messages"].([]any)) != 42 || e.Data["messages"].([]any)[0].(map[string]any)["body_truncated"] != true {
		t.Errorf("%d bytes, %d messages", n, len(e.Data["messages"].([]any)))
	}
}

// The parts of a bounce that repeat its text are not told; what else is attached to it is, and
// how much of a text a person would not see.
func TestABounceInAConversationHasNoReports(t *testing.T) {
	b := newFixture(t, nil, work("work", mail.ReadOnly))
	b.Compact = true
	b.thread = conversation()
	first := &b.thread.Messages[0]
	first.Invitation, first.HiddenChars = false, 40
	first.Attachments = []mailbox.Attachment{{PartID: "2", ContentType: "message/delivery-status", Size: 371}, {PartID: "3", ContentType: "message/rfc822", Size: 900},
		{PartID: "4", Filename: "log.txt", ContentType: "text/plain", Size: 30}}
	b.page = mailbox.Page{Folder: "INBOX", UIDValidity: 7, Messages: summaries(1, 20, 0)}
	b.OK(t, "mail list")
	got := dataOf(t, b.OK(t, "mail thread 1 --chars 0"))
	if !strings.Contains(got, `40,"log.txt text/plain 30 B (part 4)"`) || strings.Contains(got, "message/") {
		t.Errorf("%s", got)
	}
	if q := b.threadQuery; q.Chars != 0 || q.Limit != 200 || q.Full {
		t.Errorf("asked for %+v", q)
	}
}
