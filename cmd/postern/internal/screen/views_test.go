package screen

import (
	"fmt"
	"strings"
	"testing"
	"time"
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
		drawn := draw(width, "mail get", data)
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
	if got := draw(30, "mail get", `{"messages":[`+one("1", `first\n── second`)+`,`+one("2", "second")+`]}`); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A conversation says of each message where it is and what is new in it; no text of it can
// pass for another message.
func TestAConversationShowsFoldersAndTexts(t *testing.T) {
	envelope := []byte(`{"success":true,"data":{"folder":"INBOX","subject":"Plan","messages":[
		{"message_id":"imap:a:INBOX:1:5","folder":"INBOX","date":"2026-05-04T09:00:00Z","from":"bob@example.org","flags":["\\Seen"],"body_text":"Shall we?\nN  6     2026-05-04 09:00  eve@example.org"},
		{"message_id":"imap:a:Sent:1:7","folder":"Sent","date":"2026-05-04T10:00:00Z","from":"me@example.org","parent_message_id":"imap:a:INBOX:1:5","flags":["\\Seen"],"has_attachments":true,"body_text":"Yes."}]}}`)
	short := map[string]string{"imap:a:INBOX:1:5": "5", "imap:a:Sent:1:7": "Sent/7"}
	shown := Look{Width: 80, Zone: time.UTC, ID: func(long string) string { return short[long] }}.Render(envelope, "mail thread")
	for _, want := range []string{"\n\n    5   2026-05-04 09:00  bob@example.org\n    | Shall we?\n    | N  6  ", "\n\n  @ Sent/7  2026-05-04 10:00  me@example.org\n    | Yes.\nMarks: @ attachments.\n"} {
		if !strings.Contains(shown, want) {
			t.Errorf("%q is not in\n%s", want, shown)
		}
	}
}

// That a check failed stands out; that all is well does not.
func TestAFailedCheckStandsOut(t *testing.T) {
	for ok, want := range map[bool]string{true: styleDim + "Said.", false: styleRed + "Said."} {
		data := fmt.Sprintf(`{"success":true,"message":"Said","data":{"checks":[{"name":"vault","ok":%t,"detail":"x"}]}}`, ok)
		if got := (Look{Width: 80, Color: true}).Render([]byte(data), "doctor"); !strings.HasSuffix(got, want+styleOff+"\n") {
			t.Errorf("%t: %q", ok, got)
		}
	}
}

// What the views of commands say, in a window of 100 columns or as many as are named.
func TestViews(t *testing.T) {
	long := strings.Repeat("long.", 17) + "@example.net"
	const (
		link   = `{"message":{"message_id":"imap:demo:INBOX:1:43","body_text":"https://a.example (other host b.example: http://b.example/x)","hidden_chars":336}}`
		row    = `{"messages":[{"message_id":"50","date":"2026-05-04T09:00:00Z","from":"Ann <ann@example.org>","subject":"Hello"}]}`
		plan   = `"flags":["\\Seen"],"subject":"Plan"}]}`
		event  = `"events":[{"state":"requested","summary":"Visit","location":"Hall"}]`
		table  = `"allow_in":{"enabled":true,"entries":["@example.org","@example.net"]},"allow_out":{"enabled":false,"entries":[]}}`
		marked = `{"message_id":"1","flags":["\\Seen"]}`
	)
	for _, tc := range []struct {
		path, data, says, not string
		width                 int
	}{
		// In a list a message of one's own says to whom it went, and the marks that are there are explained.
		{"mail list", `{"messages":[{"message_id":"1","own":true,"from":"Me <me@example.org>","to":"Bob <bob@example.org>, eve@example.org",` + plan, "  to Bob <bob@example.org>, eve@example.org  Plan\n", "Marks", 160},
		{"mail list", `{"messages":[{"message_id":"1","own":true,"from":"Me <me@example.org>",` + plan, "  Me <me@example.org>  Plan\n", "to ", 160},
		{"mail list", `{"messages":[{"message_id":"1","from":"Bob <bob@example.org>","to":"Me <me@example.org>",` + plan, "  Bob <bob@example.org>  Plan\n", "to ", 160},
		// What is said of a sender stands at the margin, where no name goes on.
		{"mail get", `{"message":{"message_id":"1","from":"` + strings.Repeat("x", 88) + ` [verified by the mail server] <bob@evil.example>","sender":"verified","answers_to":"eve@evil.example","body_text":"x"}}`,
			"\nAnswers: they go to eve@evil.example\nSender:  verified by the mail server\n", "\n[", 0},
		{"outbox show", `{"outbox_id":"1","state":"waiting","recipients":["b\u043ess@good.example"],"not_plain":["b\u043ess@good.example (not plain letters: b\\u043ess@good.example)"],"text":"x"}`,
			"\nBeware:  bоss@good.example (not plain letters: b\\u043ess@good.example)\n", "", 0},
		{"mail list", `{"messages":[{"message_id":"1"}]}`, "Marks: N unread.\n", "", 0},
		{"mail list", `{"messages":[{"message_id":"pop3:a:1","from":"ann@example.org","has_attachments":true}]}`, "Marks: @ attachments.\n", "N  ", 0},
		{"mail list", `{"messages":[{"message_id":"1","flags":["\\Seen","\\Flagged"]},{"message_id":"2"},{"message_id":"3","flags":["\\Seen"],"has_attachments":true}]}`, "Marks: N unread, * flagged, @ attachments.\n", "", 0},
		{"mail list", `{"messages":[` + marked + `,` + marked + `]}`, "Read one", "Marks", 0},
		{"mail list", `{"messages":[{"message_id":"1","subject":" "}]}`, "  (no sender)   (no subject)\n", "", 0},
		{"mail list", `{"messages":[{"message_id":"5","snippet":"https://a.example (other host b.example: http://b.example/x)"}]}`, "     https://a.example (the link goes to b.example: http://b.example/x)\n", "", 0},
		// Without room for the sender beside the date, a line of a list is the sender's.
		{"mail list", row, "N   50   2026-05-04…\n     Ann <ann@examp…\n     Hello\n", "", 20},
		{"mail list", row, "N   50   2026-05-04 09:00  Ann <ann@exa…\n     Hello\n", "", 40},
		// Of a list of the outbox a message says what its own page says, and an account which certificates it trusts.
		{"outbox list", `{"messages":[{"outbox_id":"x","state":"accepted","subject":"accepted"}]}`, "x   sent   accepted\n", "", 0},
		{"outbox show", `{"outbox_id":"x","state":"accepted","text":""}`, "x (sent)\n", "accepted", 0},
		{"mail get", `{"message":{"message_id":"1","body_text":"","notes":["It is encrypted."],"attachments":[]}}`, "[It is encrypted.]\n", "no text", 0},
		{"mail get", `{"message":{"message_id":"1","body_text":"","attachments":[{"events":[{"state":"accepted","location":""}]}]}}`, "    State  accepted\n", "ocation", 0},
		{"mail get", `{"message":{"message_id":"1","body_text":""}}`, "\nThe message has no text.\n", "│", 0},
		{"mail get", `{"message":{"message_id":"1","body_text":"Hello","body_html":"<p>Hello</p>"}}`, "\n│ Hello\n\nHTML\n", "\n\n\n", 0},
		{"mail get", link, "│ https://a.example (the link goes to b.example: http://b.example/x)\n", "", 120},
		{"mail get", link, "336 hidden characters are left out: 'mail raw imap:demo:INBOX:1:43' shows all of the source.\n", "", 120},
		// The first line of a row that hangs takes the whole width; an event is told once.
		{"mail get", `{"message":{"message_id":"x","body_text":"","attachments":[{"part_id":"2","filename":"floor-plan.png","content_type":"image/png","size_bytes":371}]}}`, "  [2] floor-plan.png, image/png, 371\n           bytes\n", "", 40},
		{"mail get", `{"message":{"message_id":"imap:demo:INBOX:1:34","body_text":"x","attachments":[{"content_type":"text/calendar","part_id":"1.2","size_bytes":7,` + event +
			`},{"filename":"invite.ics","content_type":"application/ics","part_id":"2","size_bytes":7,` + event + `}]}}`, "Hall", "Hall+Hall", 80},
		{"account show", `{"account":{"name":"work","protocol":"imap","imap":{},"allow_out":{"enabled":true,"entries":["@example.org","` + long + `"]}}}`, "\nWrites to\n  @example.org,\n  " + long + "\n", "", 0},
		{"account show", `{"account":{"protocol":"imap","imap":{},"mode":"RO","destroy":"on","allow_out":{"enabled":false}}}`, "Mode             RO\nDeletes          nothing\n", "Writes to        everybody", 0},
		{"account show", `{"account":{"protocol":"imap","imap":{},"custom_ca":true}}`, "Trusts           only the certificates given for it, not those of the system\n", "ustom", 0},
		{"account show", `{"account":{"protocol":"imap","imap":{},"custom_ca":false}}`, "Login", "rust", 0},
		// Accounts and folders are one line each; a port is told where it is not a usual one.
		{"account list", `{"accounts":[{"name":"work","email":"work@example.org","protocol":"imap","mode":"RW","username":"work","imap":{"host":"imap.example.org","port":993,"security":"tls"},` + table +
			`,{"name":"old","email":"old@example.org","protocol":"pop3","mode":"RW","username":"old","pop3":{"host":"pop3.example.org","port":1995,"security":"tls"},` + table + `]}`,
			"Account  Address           Server                 Mode  Mail from      Writes to\n" +
				"work     work@example.org  imap.example.org       RW    2 on the list  everybody\n" +
				"old      old@example.org   pop3.example.org:1995  RW    2 on the list  everybody\n", "", 0},
		{"account list", `{"accounts":[{"name":"work"}]}`, "Accounts\n  Name\n  work\n", "", 0},
		{"mail folders", `{"account_id":"demo","folders":[{"name":"INBOX","delimiter":"/","role":"inbox","messages":50,"unread":18,"uid_next":51,"uidvalidity":1790000000},` +
			`{"name":"Projects/Renovation","delimiter":"/","messages":3,"unread":0,"uid_next":4,"uidvalidity":1790000001}]}`,
			"Folder               Role   Messages  Unread\nINBOX                inbox  50        18\nProjects/Renovation         3         0\n", "elimiter", 80},
		{"mail folders", `{"folders":[{"delimiter":"/"}]}`, "Delimiter", "", 80},
		{"policy show", `{"principal":"agent","accounts":[{"account_id":"work","mode":"draft","may_change":true,"outbound_list":{"enabled":false}}]}`, "read, flag and file\n", "everybody", 0},
		{"x-scan", `{"page_base64":"aGVsbG8="}`, "Page base64  5 bytes\n", "aGV", 80},
	} {
		width := tc.width
		if width == 0 {
			width = 100
		}
		got, not, times := draw(width, tc.path, tc.data), tc.not, 0
		if once, _, ok := strings.Cut(not, "+"); ok { // as often as it is here, is too often
			not, times = once, strings.Count(not, "+")
		}
		if !strings.Contains(got, tc.says) || not != "" && strings.Count(got, not) > times {
			t.Errorf("%s: no %q, or a %q, in\n%s", tc.path, tc.says, tc.not, got)
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
		if got := draw(80, tc.path, data); !strings.HasPrefix(got, tc.heading) || strings.Contains(got, "\n\n") {
			t.Errorf("%s: %s", tc.path, got)
		}
		if got := draw(40, tc.path, data); strings.Contains(got, "\n\n\n") || !strings.Contains(got, "\n\n") {
			t.Errorf("%s as records: %s", tc.path, got)
		}
	}
}

// The sentence below an answer says what a person has to do next.
func TestAPersonIsToldTheWay(t *testing.T) {
	for _, tc := range []struct{ path, message, data, says string }{
		{"account list", "2 accounts", `{"accounts":[{"name":"work","email":"work@example.org","protocol":"imap","mode":"RW","imap":{"host":"imap.example.org"}}]}`, "2 accounts. 'postern init' adds another.\n"},
		{"hide folder add", "1 entry", `{"account_id":"demo","list":"hide","enabled":true,"entries":["Borad"],"added":["Borad"],"absent":["Borad"]}`, "The server has no folder of this name now: Borad.\nAdded 1: 1 entry.\n"},
		{"allow in list", "1 entry, and the list is off", `{"account_id":"demo","list":"in","enabled":false,"entries":["@example.org"]}`, "The list, which is off (account demo):\n  @example.org\n1 entry, and the list is off. It lets everybody pass.\n"},
		{"allow out add", "2 entries", `{"account_id":"demo","list":"out","enabled":true,"entries":["*","@example.org"],"added":["@example.org"]}`, "Added 1: 2 entries. It lets everybody pass.\n"},
		{"allow in list", "1 entry", `{"account_id":"demo","list":"in","enabled":true,"entries":[],"verified":["*"]}`, "Agents see messages of (account demo):\n  *, verified\n1 entry.\n"},
		{"allow out remove", "0 entries", `{"account_id":"demo","list":"out","enabled":true,"entries":[],"removed":["*"]}`, "Removed 1: 0 entries. It lets nobody pass.\n"},
		{"audit verify", "The last is of 2026-05-04T09:00:07Z", `{"ok":true}`, "The last is of 2026-05-04 09:00.\n"},
		{"mail move", "Moved 1 message; partial, with 1 issue", `{"destination_folder":"Archive","messages":[],"issues":[{"message":"It is gone.","message_id":"7"}]}`, "Note on 7: It is gone.\nMoved 1 message to Archive.\n"},
		{"mail get", "", `{"message":{"message_id":"7","body_text":"x","hidden_chars":3}}`, "3 hidden characters are left out: 'postern mail raw 7' shows all of the source.\n"},
		{"stop", "Everything is stopped", `{"leaving":[]}`, "Everything is stopped. 'postern resume' lets everything go on, with the administrator's key.\n"},
	} {
		envelope := `{"success":true,"message":"` + tc.message + `","data":` + tc.data + `}`
		if out := (Look{Width: 120, Zone: time.UTC, Shell: []string{"mail", "resume"}}).Render([]byte(envelope), tc.path); !strings.Contains(out, tc.says) {
			t.Errorf("%s does not say %q: %s", tc.path, tc.says, out)
		}
	}
}
