package commands_test

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
)

func TestGetAsksForWhatItIsAskedFor(t *testing.T) {
	b := newFixture(t, nil, work("work", mail.ReadOnly))
	b.message = mailbox.Message{Summary: summaries(1, 10, 0)[0]}
	for line, want := range map[string]mailbox.GetQuery{
		"mail get --uid 1":                                            {BodyChars: 2000},
		"mail get --uid 1 --html --headers none":                      {BodyChars: 2000, Headers: mailbox.HeadersNone, HTML: true},
		"mail get --uid 1 --attachment-text":                          {BodyChars: 2000, AttachmentText: true, AttachmentChars: 10000},
		"mail get --uid 1 --attachment-text --attachment-chars 50000": {BodyChars: 2000, AttachmentText: true, AttachmentChars: 50000},
		"mail get --uid 1 --with-content --chars 100":                 {BodyChars: 100, Content: true, ContentBytes: 266_666},
		"mail get --uid 1 --headers all --from-char 2001":             {BodyChars: 2000, FromChar: 2001, Headers: mailbox.HeadersAll},
	} {
		b.OK(t, line)
		if b.got != want {
			t.Errorf("%s: %+v, want %+v", line, b.got, want)
		}
	}
	b.Fails(t, "mail get --uid 1 --attachment-chars 200", discovery.ValidationError, "only together with --attachment-text")
}

func TestOnlyContentThatWasAskedForMakesAnAnswerLarge(t *testing.T) {
	b := newFixture(t, nil, work("work", mail.ReadOnly))
	content := []byte(strings.Repeat("\x00\xff content ", 40_000))
	for name, unit := range map[string]string{"plain": "text ", "quotes": `"\`, "unseen": "\u200d", "tags": "\U000e0041", "wide": "日"} {
		text := strings.Repeat(unit, 8_000/len([]rune(unit)))
		b.message = mailbox.Message{Summary: mailbox.Summary{Ref: ref(1), Subject: text[:4000], To: []mail.Address{{Name: text}}}, BodyText: text, BodyHTML: text}
		for i := range 60 {
			b.message.Headers = append(b.message.Headers, mailbox.HeaderField{Name: "X-" + fmt.Sprint(i), Value: text[:1000]})
			b.message.Attachments = append(b.message.Attachments, mailbox.Attachment{PartID: fmt.Sprint(i + 2), ContentType: "text/plain", Filename: text[:800], Text: text})
		}
		e := b.OK(t, "mail get --uid 1 --html --headers all --attachment-text --attachment-chars 50000 --chars 20000")
		m := e.Data["message"].(map[string]any)
		if e.Size > gateway.MaxAnswerBytes || e.Size < gateway.MaxAnswerBytes/3 {
			t.Errorf("%s: %d bytes", name, e.Size)
		}
		if m["truncated"] != true || m["attachments"].([]any)[0].(map[string]any)["extracted_text_truncated"] != true {
			t.Errorf("%s: the cut is not said", name)
		}
		if len(m["attachments"].([]any)) != 50 {
			t.Errorf("%s: %d attachments", name, len(m["attachments"].([]any)))
		}
	}
	b.message = mailbox.Message{Summary: mailbox.Summary{Ref: ref(1)}, Attachments: []mailbox.Attachment{{PartID: "2", ContentType: "x/y", Content: content}}}
	e := b.OK(t, "mail get --uid 1 --with-content")
	a := e.Data["message"].(map[string]any)["attachments"].([]any)[0].(map[string]any)
	if got, err := base64.StdEncoding.DecodeString(a["content_base64"].(string)); err != nil || string(got) != string(content) || a["content_encoding"] != "base64" {
		t.Errorf("content: %d bytes, %v, %v", len(got), a["content_encoding"], err)
	}
}

func TestUntrustedFieldsAreThoseThatAreThere(t *testing.T) {
	b := newFixture(t, nil, work("work", mail.ReadOnly))
	b.message = mailbox.Message{Summary: summaries(1, 10, 0)[0]}
	little := b.OK(t, "mail get --uid 1").Meta.Untrusted
	b.message.BodyHTML = "<p>"
	b.message.Attachments = []mailbox.Attachment{{PartID: "2", ContentType: "x/y", Text: "x", Content: []byte("x")}}
	all := b.OK(t, "mail get --uid 1 --html --attachment-text --with-content").Meta.Untrusted
	for _, field := range []string{"message.body_html", "message.attachments.extracted_text", "message.attachments.content_base64"} {
		if slices.Contains(little, field) || !slices.Contains(little, "message.body_text") || !slices.Contains(all, field) {
			t.Errorf("%s: %q and %q", field, little, all)
		}
	}
}

func TestEventsOfACalendarPart(t *testing.T) {
	b := newFixture(t, nil, work("work", mail.ReadOnly))
	start := time.Date(2026, 3, 10, 9, 0, 0, 0, time.UTC)
	b.message = mailbox.Message{Summary: mailbox.Summary{Ref: ref(1)}, Attachments: []mailbox.Attachment{{PartID: "2", ContentType: "text/calendar", Events: []mailbox.CalendarEvent{
		{Method: "REQUEST", Summary: "Meeting", Start: start, End: start.Add(time.Hour)}, {Summary: "Holiday", Start: start, AllDay: true, Recurring: true}, {}}}}}
	events := b.OK(t, "mail get --uid 1").Data["message"].(map[string]any)["attachments"].([]any)[0].(map[string]any)["events"].([]any)
	first, second, third := events[0].(map[string]any), events[1].(map[string]any), events[2].(map[string]any)
	if first["start"] != "2026-03-10T09:00:00Z" || first["end"] != "2026-03-10T10:00:00Z" || first["method"] != "REQUEST" {
		t.Errorf("%v", first)
	}
	if second["start"] != "2026-03-10" || second["end"] != nil || second["all_day"] != true || second["recurring"] != true || len(third) != 1 || third["location"] != "" {
		t.Errorf("%v %v", second, third)
	}
}

func TestRawIsByteForByte(t *testing.T) {
	b := newFixture(t, nil, work("work", mail.ReadOnly))
	source := []byte("From: x\r\n\r\n\x00\xff" + strings.Repeat("x", 400_000))
	b.raw = mailbox.RawMessage{Ref: ref(1), Size: 500_000, Source: source, Truncated: true}
	e := b.OK(t, "mail raw --uid 1 --max-bytes 400013")
	got, err := base64.StdEncoding.DecodeString(e.Data["raw_source_base64"].(string))
	if err != nil || string(got) != string(source) || e.Data["size_bytes"] != 500_000.0 || e.Data["truncated"] != true || e.Data["raw_source_encoding"] != "base64" {
		t.Errorf("%d bytes, %v, %v", len(got), err, e.Data["size_bytes"])
	}
	b.raw = mailbox.RawMessage{Ref: ref(1)}
	if e := b.OK(t, "mail raw --uid 1"); e.Data["raw_source_base64"] != "" {
		t.Errorf("an empty source: %v", e.Data)
	}
}
