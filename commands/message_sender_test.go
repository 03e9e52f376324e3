package commands_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
)

// Every list marks a sender that the account's server calls forged, and a name that shows
// another address; a message says what is known of its sender, and whom its name shows.
func TestSendersThatAreNotWhoTheySeemAreMarked(t *testing.T) {
	b := newFixture(t, nil, work("work", mail.ReadOnly))
	b.Compact = true
	list := summaries(4, 20, 0)
	for i := range list {
		list[i].Flags = []string{`\Seen`}
	}
	list[0].Verdict, list[1].Verdict, list[2].Verdict = mail.Failed, mail.Verified, mail.Unknown
	list[3].From = []mail.Address{{Name: "boss@example.com", Addr: "eve@example.net"}}
	b.page = mailbox.Page{Folder: "INBOX", UIDValidity: 7, Messages: list}
	b.search = mailbox.SearchPage{Page: b.page, Searched: []string{"INBOX"}, Total: 4}
	b.watch = mailbox.WatchPage{Page: b.page, After: ref(1)}
	b.thread = mailbox.Thread{Folder: "INBOX", UIDValidity: 7, Subject: "Plan"}
	for _, s := range list {
		b.thread.Messages = append(b.thread.Messages, mailbox.ThreadMessage{Summary: s})
	}
	b.OK(t, "mail list")
	for _, line := range []string{"mail list", "mail search x", "mail watch", "mail thread 1"} {
		data := b.OK(t, line).Data
		at := -1
		for i, c := range data["columns"].([]any) {
			if c == "marks" {
				at = i
			}
		}
		for i, want := range []string{"failed-sender", "", "", "posing-name"} {
			if got := data["rows"].([]any)[i].([]any)[at]; got != want {
				t.Errorf("%s: message %d: %q, want %q", line, i, got, want)
			}
		}
		full := b.OK(t, line+" --full").Data["messages"].([]any)
		for i, want := range []string{"failed <nil>", "verified <nil>", "<nil> <nil>", "<nil> boss@example.com"} {
			m := full[i].(map[string]any)
			if got := fmt.Sprint(m["sender"], " ", m["posing_as"]); got != want {
				t.Errorf("%s --full: message %d: %q, want %q", line, i, got, want)
			}
		}
	}
	for i, want := range []string{`"sender":"failed"`, `"sender":"verified"`, "", `"posing_as":"boss@example.com"`} {
		b.message = mailbox.Message{Summary: list[i]}
		got, _ := json.Marshal(b.OK(t, "mail get 1").Data)
		if !strings.Contains(string(got), want) || strings.Contains(string(got), `"sender"`) != (i < 2) || strings.Contains(string(got), "marks") {
			t.Errorf("message %d: %s", i, got)
		}
		full := b.OK(t, "mail get 1 --full").Data["message"].(map[string]any)
		if sender := []any{"failed", "verified", "unknown", "unknown"}[i]; full["sender"] != sender {
			t.Errorf("message %d --full: %v, want %v", i, full["sender"], sender)
		}
	}
}
