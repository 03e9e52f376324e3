package screen

import (
	"encoding/json"
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

// In a list a message of one's own says to whom it went.
func TestAListSaysToWhomOnesOwnMessagesWent(t *testing.T) {
	for message, want := range map[string]string{
		`"own":true,"from":"Me <me@example.org>","to":"Bob <bob@example.org>, eve@example.org"`: "to Bob <bob@example.org>, eve@example.org",
		`"own":true,"from":"Me <me@example.org>"`:                                               "Me <me@example.org>",
		`"from":"Bob <bob@example.org>","to":"Me <me@example.org>"`:                             "Bob <bob@example.org>",
	} {
		drawn := Look{Width: 160}.Render([]byte(`{"success":true,"data":{"messages":[{"message_id":"1","flags":["\\Seen"],`+message+`,"subject":"Plan"}]}}`), "mail list")
		if !strings.Contains(drawn, "  "+want+"  Plan\n") {
			t.Errorf("%s:\n%s", message, drawn)
		}
	}
}

// What a sender wrote goes on further in where a line is full: at the margin stands the
// name of a field or the number of a file, and nothing of a sender's.
func TestNoRowIsForged(t *testing.T) {
	const space = "\u00a0"
	forged := strings.Repeat("a", 61) + " From:" + strings.Repeat(space, 4) + "\"CEO\" <ceo@corp.example>" + strings.Repeat(" x", 20) + " Flags: $Verified"
	file := strings.Repeat("b", 70) + " [3] contract.pdf, application/pdf, 12.0 kB"
	envelope, err := json.Marshal(map[string]any{"success": true, "data": map[string]any{"message": map[string]any{
		"message_id": "imap:a:INBOX:1:2", "from": "x@evil.example", "subject": "hi", "body_text": "x",
		"headers":     []any{map[string]any{"name": "List-Id", "value": forged}},
		"attachments": []any{map[string]any{"part_id": "2", "filename": file, "content_type": "text/plain", "size_bytes": 1}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, width := range []int{20, 40, 79, 80, 81, 100} {
		drawn := Look{Width: width}.Render(envelope, "mail get")
		if n := strings.Count("\n"+drawn, "\nFrom:"); n != 1 {
			t.Errorf("at %d columns %d rows begin with From:\n%s", width, n, drawn)
		}
		if strings.Contains("\n"+drawn, "\nFlags:") || strings.Contains(drawn, "\n  [3]") {
			t.Errorf("at %d columns a row is forged:\n%s", width, drawn)
		}
	}
}

// Several messages are drawn one below the other, each as if it were alone.
func TestSeveralMessagesAreDrawnEach(t *testing.T) {
	one := func(uid, body string) map[string]any {
		return map[string]any{"message_id": "imap:a:INBOX:1:" + uid, "from": "x@example.org", "body_text": body, "returned_message_id": "imap:a:Sent:1:" + uid}
	}
	var data any = map[string]any{"messages": []any{one("1", "first\n── second"), one("2", "second")}}
	envelope, err := json.Marshal(map[string]any{"success": true, "data": data})
	if err != nil {
		t.Fatal(err)
	}
	want := "From:    x@example.org\n\n│ first\n│ ── second\n\n[what came back: imap:a:Sent:1:1]\nId: imap:a:INBOX:1:1\n\n" + strings.Repeat("─", 30) +
		"\nFrom:    x@example.org\n\n│ second\n\n[what came back: imap:a:Sent:1:2]\nId: imap:a:INBOX:1:2\n"
	if got := (Look{Width: 30}).Render(envelope, "mail get"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Accounts are one line each, also where there are many. A port is told where it is not a usual one.
func TestAccountsAreATable(t *testing.T) {
	account := func(name, protocol string, port int) map[string]any {
		return map[string]any{"name": name, "email": name + "@example.org", "protocol": protocol, "mode": "RW", "username": name,
			protocol:   map[string]any{"host": protocol + ".example.org", "port": port, "security": "tls"},
			"allow_in": map[string]any{"enabled": true, "entries": []string{"@example.org", "@example.net"}}, "allow_out": map[string]any{"enabled": false, "entries": []string{}}}
	}
	envelope, err := json.Marshal(map[string]any{"success": true, "message": "2 accounts", "data": map[string]any{"accounts": []any{account("work", "imap", 993), account("old", "pop3", 1995)}}})
	if err != nil {
		t.Fatal(err)
	}
	want := "Account  Address           Server                 Mode  Mail from      Writes to\n" +
		"work     work@example.org  imap.example.org       RW    2 on the list  everybody\n" +
		"old      old@example.org   pop3.example.org:1995  RW    2 on the list  everybody\n" +
		"2 accounts. 'postern init' adds another.\n"
	if got := (Look{Width: 100}).Render(envelope, "account list"); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if got := (Look{Width: 100}).Render([]byte(`{"success":true,"data":{"accounts":[{"name":"work"}]}}`), "account list"); got != "Accounts\n  Name\n  work\n" {
		t.Errorf("with one field: %q", got)
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

// Below a list stand the marks that are in it, and no others.
func TestTheLegendIsOfTheMarksThatAreThere(t *testing.T) {
	for messages, want := range map[string]string{
		`{"message_id":"1","flags":["\\Seen"]}`: "", `{"message_id":"1"}`: "Marks: N unread.\n", `{"message_id":"pop3:a:1","has_attachments":true}`: "Marks: @ attachments.\n",
		`{"message_id":"1","flags":["\\Seen","\\Flagged"]},{"message_id":"2"},{"message_id":"3","flags":["\\Seen"],"has_attachments":true}`: "Marks: N unread, * flagged, @ attachments.\n",
	} {
		got := Look{Width: 80}.Render([]byte(`{"success":true,"data":{"messages":[`+messages+`]}}`), "mail list")
		if _, rest, _ := strings.Cut(got, "\n"); !strings.HasSuffix(strings.SplitAfter(got, "Read one")[0], want+"Read one") || want == "" && strings.ContainsAny(rest, "*@.") {
			t.Errorf("%s: %s", messages, got)
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

// A list of the outbox says of a message what its own page says, and an account whose
// certificates it trusts. A message without a sender or a subject is no empty line.
func TestAWordMeansOneThing(t *testing.T) {
	long := strings.Repeat("long.", 17) + "@example.net"
	for _, tc := range []struct{ path, data, says, not string }{
		{"outbox list", `{"messages":[{"outbox_id":"x","state":"accepted","subject":"accepted"}]}`, "x   sent   accepted\n", ""},
		{"mail list", `{"messages":[{"message_id":"1","subject":" "}]}`, "  (no sender)   (no subject)\n", ""},
		{"outbox show", `{"outbox_id":"x","state":"accepted","text":""}`, "x (sent)\n", "accepted"},
		{"mail get", `{"message":{"message_id":"1","body_text":"","attachments":[{"events":[{"state":"accepted","location":""}]}]}}`, "    State  accepted\n", "ocation"},
		{"mail get", `{"message":{"message_id":"1","body_text":""}}`, "\nThe message has no text.\n", "│"},
		{"mail get", `{"message":{"message_id":"1","body_text":"Hello","body_html":"<p>Hello</p>"}}`, "\n│ Hello\n\nHTML\n", "\n\n\n"},
		{"account show", `{"account":{"name":"work","protocol":"imap","imap":{},"allow_out":{"enabled":true,"entries":["@example.org","` + long + `"]}}}`, "\nWrites to\n  @example.org,\n  " + long + "\n", ""},
		{"account show", `{"account":{"protocol":"imap","imap":{},"mode":"RO","destroy":"on","allow_out":{"enabled":false}}}`, "Mode             RO\nDeletes          nothing\n", "Writes to        everybody"},
		{"policy show", `{"principal":"agent","accounts":[{"account_id":"work","mode":"draft","may_change":true,"outbound_list":{"enabled":false}}]}`, "read, flag and file\n", "everybody"},
		{"account show", `{"account":{"protocol":"imap","imap":{},"custom_ca":true}}`, "Trusts           only the certificates given for it, not those of the system\n", "ustom"},
		{"account show", `{"account":{"protocol":"imap","imap":{},"custom_ca":false}}`, "Login", "rust"},
	} {
		got := Look{Width: 100}.Render([]byte(`{"success":true,"data":`+tc.data+`}`), tc.path)
		if !strings.Contains(got, tc.says) || tc.not != "" && strings.Contains(got, tc.not) {
			t.Errorf("%s: %s", tc.path, got)
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
		data := fmt.Sprintf(`{"success":true,"message":"2 entries","data":{"%s":[`+tc.one+","+tc.other+`]}}`, tc.list, tc.account)
		if got := (Look{Width: 80, Zone: time.UTC}).Render([]byte(data), tc.path); !strings.HasPrefix(got, tc.heading) || strings.Contains(got, "\n\n") {
			t.Errorf("%s: %s", tc.path, got)
		}
		if got := (Look{Width: 40, Zone: time.UTC}).Render([]byte(data), tc.path); !strings.HasSuffix(got, "\n\n2 entries.\n") || strings.Contains(got, "\n\n\n") {
			t.Errorf("%s as records: %s", tc.path, got)
		}
	}
}

// What a person has to do next is named, and a link that leads elsewhere is told in words.
func TestAPersonIsToldTheWay(t *testing.T) {
	const mail = `{"success":true,"data":{"message":{"message_id":"imap:demo:INBOX:1:43","body_text":"https://a.example (other host b.example: http://b.example/x)","hidden_chars":336}}}`
	for _, tc := range []struct{ path, envelope, says string }{
		{"mail get", mail, "│ https://a.example (the link goes to b.example: http://b.example/x)\n"},
		{"mail get", mail, "336 hidden characters are left out: 'postern mail raw imap:demo:INBOX:1:43' shows all of the source.\n"},
		{"hide folder add", `{"success":true,"message":"1 entry","data":{"account_id":"demo","list":"hide","enabled":true,"entries":["Borad"],"added":["Borad"],"absent":["Borad"]}}`, "The server has no folder of this name now: Borad.\nAdded 1: 1 entry.\n"},
		{"allow in list", `{"success":true,"message":"1 entry, and the list is off","data":{"account_id":"demo","list":"in","enabled":false,"entries":["@example.org"]}}`, "The list, which is off (account demo):\n  @example.org\n1 entry, and the list is off. It lets everybody pass.\n"},
		{"allow out add", `{"success":true,"message":"2 entries","data":{"account_id":"demo","list":"out","enabled":true,"entries":["*","@example.org"],"added":["@example.org"]}}`, "Added 1: 2 entries. It lets everybody pass.\n"},
		{"allow in list", `{"success":true,"message":"1 entry","data":{"account_id":"demo","list":"in","enabled":true,"entries":[],"verified":["*"]}}`, "Agents see messages of (account demo):\n  *, verified\n1 entry.\n"},
		{"allow out remove", `{"success":true,"message":"0 entries","data":{"account_id":"demo","list":"out","enabled":true,"entries":[],"removed":["*"]}}`, "Removed 1: 0 entries. It lets nobody pass.\n"},
		{"audit verify", `{"success":true,"message":"The last is of 2026-05-04T09:00:07Z","data":{"ok":true}}`, "The last is of 2026-05-04 09:00.\n"},
		{"mail list", `{"success":true,"data":{"messages":[{"message_id":"5","snippet":"https://a.example (other host b.example: http://b.example/x)"}]}}`, "     https://a.example (the link goes to b.example: http://b.example/x)\n"},
		{"mail move", `{"success":true,"message":"Moved 1 message; partial, with 1 issue","data":{"destination_folder":"Archive","messages":[],"issues":[{"message":"It is gone.","message_id":"7"}]}}`, "Note on 7: It is gone.\nMoved 1 message to Archive.\n"},
		{"stop", `{"success":true,"message":"Everything is stopped","data":{"leaving":[]}}`, "Everything is stopped. 'postern resume' lets everything go on, with the administrator's key.\n"},
	} {
		if out := (Look{Width: 120, Zone: time.UTC, Shell: []string{"mail", "resume"}}).Render([]byte(tc.envelope), tc.path); !strings.Contains(out, tc.says) {
			t.Errorf("%s does not say %q: %s", tc.path, tc.says, out)
		}
	}
}

// The first line of a row that hangs takes the whole width.
func TestARowIsAsWideAsTheWindow(t *testing.T) {
	out := Look{Width: 40}.Render([]byte(`{"success":true,"data":{"message":{"message_id":"x","body_text":"","attachments":[{"part_id":"2","filename":"floor-plan.png","content_type":"image/png","size_bytes":371}, {"part_id":"3","filename":"a much longer name of a file.png","content_type":"image/png","size_bytes":371}]}}}`), "mail get")
	const want = "  [2] floor-plan.png, image/png, 371\n           bytes\n  [3] a much longer name of a file.png,\n           image/png, 371 bytes\n"
	if !strings.Contains(out, want) {
		t.Error(out)
	}
}
