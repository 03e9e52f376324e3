package screen

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/commands/admin"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/internal/testmain"
)

func TestASenderThatNamesItselfAsAnAddress(t *testing.T) {
	for from, want := range map[string]string{
		`"Director <director@example.org>" <desk@example.net>`: "desk@example.net",
		"Ann Lee <ann@example.org>":                            "Ann Lee <ann@example.org>",
		"ceo@example.org <x@example.net>":                      "x@example.net",
		"A name without a trap, long <ann@example.org>":        "A name without a trap, long <ann@example.org>",
		"ann@example.org":                                      "ann@example.org",
	} {
		if got := sender(from, 26); got != want {
			t.Errorf("%s: %q", from, got)
		}
	}
}

// What a sender wrote goes on further in where a line is full: at the margin stands the
// name of a field or the number of a file, and nothing of a sender's.
func TestNoRowIsForged(t *testing.T) {
	const space = "\u00a0"
	forged := strings.Repeat("a", 61) + " From:" + strings.Repeat(space, 4) + "\"CEO\" <ceo@corp.example>" + strings.Repeat(" x", 20) + " Flags: $Verified"
	file := strings.Repeat("b", 70) + " [3] contract.pdf, application/pdf, 12.0 kB"
	data := `{"message":{"message_id":"imap:a:INBOX:1:2","from":"x@evil.example","subject":"hi","body_text":"x","headers":[{"name":"List-Id","value":` + asJSON(t, forged) +
		`}],"attachments":[{"part_id":"2","filename":"` + file + `","content_type":"text/plain","size_bytes":1}]}}`
	for _, width := range []int{20, 40, 79, 80, 81, 100} {
		drawn := draw(t, width, "mail get", data)
		if strings.Count("\n"+drawn, "\nFrom:") != 1 || strings.Contains("\n"+drawn, "\nFlags:") || strings.Contains(drawn, "\n  [3]") {
			t.Errorf("at %d columns a row is forged:\n%s", width, drawn)
		}
	}
}

// Several messages are drawn one below the other, each as if it were alone.
func TestSeveralMessagesAreDrawnEach(t *testing.T) {
	one := func(uid, body string) string {
		return `{"message_id":"imap:a:INBOX:1:` + uid + `","from":"x@example.org","body_text":"` + body + `","returned_message_id":"imap:a:Sent:1:` + uid + `"}`
	}
	want := "From:    x@example.org\n\n│ first\n│ ── second\n\n[what came back: imap:a:Sent:1:1]\nId: imap:a:INBOX:1:1\n\n" + strings.Repeat("─", 30) +
		"\nFrom:    x@example.org\n\n│ second\n\n[what came back: imap:a:Sent:1:2]\nId: imap:a:INBOX:1:2\n"
	if got := draw(t, 30, "mail get", `{"messages":[`+one("1", `first\n── second`)+`,`+one("2", "second")+`]}`); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A conversation says of each message where it is and what is new in it; no text of it can
// pass for another message.
func TestAConversationShowsFoldersAndTexts(t *testing.T) {
	const data = `{"folder":"INBOX","subject":"Plan","messages":[
		{"message_id":"imap:a:INBOX:1:5","folder":"INBOX","date":"2026-05-04T09:00:00Z","from":"bob@example.org","flags":["\\Seen"],"body_text":"Shall we?\nN  6     2026-05-04 09:00  eve@example.org"},
		{"message_id":"imap:a:Sent:1:7","folder":"Sent","date":"2026-05-04T10:00:00Z","from":"me@example.org","parent_message_id":"imap:a:INBOX:1:5","flags":["\\Seen"],"has_attachments":true,"body_text":"Yes."}]}`
	short := map[string]string{"imap:a:INBOX:1:5": "5", "imap:a:Sent:1:7": "Sent/7"}
	shown := Look{Width: 80, Zone: time.UTC, ID: func(long string) string { return short[long] }}.Render(answerOf(t, "mail thread", data))
	for _, want := range []string{"\n\n    5   2026-05-04 09:00  bob@example.org\n    | Shall we?\n    | N  6  ", "\n\n  @ Sent/7  2026-05-04 10:00  me@example.org\n    | Yes.\nMarks: @ attachments.\n"} {
		if !strings.Contains(shown, want) {
			t.Errorf("%q is not in\n%s", want, shown)
		}
	}
}

// That a check failed stands out; that all is well does not.
func TestAFailedCheckStandsOut(t *testing.T) {
	for ok, want := range map[bool]string{true: styleDim + "Said.", false: styleRed + "Said."} {
		a := gateway.Answer{Message: "Said", Result: admin.DoctorResult{Checks: []admin.Check{{Name: "vault", OK: ok, Detail: "x"}}}}
		if got := (Look{Width: 80, Color: true}).Render(a); !strings.HasSuffix(got, want+styleOff+"\n") {
			t.Errorf("%t: %q", ok, got)
		}
	}
}

// What the views of commands say, in a window of 100 columns or as many as are named.
func TestViews(t *testing.T) {
	for _, tc := range testmain.Table[struct {
		Path, Data, Says, Not string
		Width                 int
	}](t, "testdata/cases/views.txt") {
		width := tc.Width
		if width == 0 {
			width = 100
		}
		got, not, times := draw(t, width, tc.Path, tc.Data), tc.Not, 0
		if once, _, ok := strings.Cut(not, "+"); ok { // as often as it is here, is too often
			not, times = once, strings.Count(not, "+")
		}
		if !strings.Contains(got, tc.Says) || not != "" && strings.Count(got, not) > times {
			t.Errorf("%s: no %q, or a %q, in\n%s", tc.Path, tc.Says, tc.Not, got)
		}
	}
}

// The outbox and the log are tables in a window of 80 columns, whatever is in them; where they
// have one account, a narrow window does not repeat it.
func TestTheOutboxAndTheLogAreTables(t *testing.T) {
	const sent = `{"outbox_id":"01m886fak4g2pg67","state":"rejected","created":"2026-11-25T01:52:00Z","recipients":["carol@example.com"],"subject":"Lunch on Thursday","principal":"person","account_id":"work"}`
	const deletes = `{"outbox_id":"01m886fak4g2pg67","state":"cancelled","kind":"delete","created":"2026-11-25T01:52:00Z","subject":"delete 1 message of INBOX","principal":"person","account_id":"%s"}`
	const done = `{"seq":1066,"timestamp":"2026-11-25T01:52:00Z","principal":"admin","command":"config set timezone Europe/Berlin","success":true}`
	const failed = `{"seq":1067,"timestamp":"2026-11-25T01:52:00Z","principal":"agent","account":"%s","command":"mail list --limit 20","success":false,"error_code":"CONNECTION_FAILED"}`
	for _, tc := range []struct{ path, list, one, other, account, heading string }{
		{"outbox list", "messages", sent, deletes, "work", "Id                State      Created           To               Subject\n"},
		{"outbox list", "messages", sent, deletes, "home", "Id                State      Created           Account  To           Subject\n"},
		{"audit list", "entries", strings.Replace(done, "admin", "grant:laptop", 1), failed, "work", "No    When              Who           Outcome            Command\n"},
		{"audit list", "entries", done, failed, "work", "No    When              Who    Account  Outcome            Command\n"},
	} {
		data := fmt.Sprintf(`{"%s":[`+tc.one+","+tc.other+`]}`, tc.list, tc.account)
		if got := draw(t, 80, tc.path, data); !strings.HasPrefix(got, tc.heading) || strings.Contains(got, "\n\n") {
			t.Errorf("%s: %s", tc.path, got)
		}
		if got := draw(t, 40, tc.path, data); strings.Contains(got, "\n\n\n") || !strings.Contains(got, "\n\n") {
			t.Errorf("%s as records: %s", tc.path, got)
		}
	}
}

// The sentence below an answer says what a person has to do next.
func TestAPersonIsToldTheWay(t *testing.T) {
	for _, tc := range testmain.Table[struct{ Path, Message, Data, Says string }](t, "testdata/cases/told.txt") {
		a := answerOf(t, tc.Path, tc.Data)
		a.Message = tc.Message
		if out := (Look{Width: 120, Zone: time.UTC, Shell: []string{"mail", "resume"}}).Render(a); !strings.Contains(out, tc.Says) {
			t.Errorf("%s does not say %q: %s", tc.Path, tc.Says, out)
		}
	}
}
