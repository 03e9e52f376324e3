package screen

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"

	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/internal/testmain"
)

// hostileText is text as a sender may choose it.
var hostileText = []string{
	"\x1b[2J\x1b[H\x1b]0;owned\x07", "\x1b[31mred\x1b[0m", "\x9b31m", "\x1bP+q\x1b\\", "\x1b]52;c;cm0gLXJm\x07",
	"a\rpostern> outbox approve", "a\x08\x08\x08b", "line one\nline two\vthree\ffour\u0085five\u2028six\u2029seven",
	"\u202egnp.exe", "\u2066a\u2069", "\u200bzero\u200d width\ufeff", "\U000e0041\U000e0042 tags", "\u00ad soft", "\u3164\u2800\u115f",
	strings.Repeat("e\u0301\u0302\u0303\u0304\u0305\u0306\u0307", 40), "\u0301\u0302begins with marks", "e" + strings.Repeat("\u0301\u0301\u0301\u0301\x00", 40),
	"👩‍👩‍👧‍👦 family 🏳️‍🌈", strings.Repeat("漢字", 200), "ﷺ", "\ue000private\U0010fffd", strings.Repeat("x", 5000), "\ttab\t\ttab",
	"\x00nul\x7f", "a\u00a0\u2003b", "مرحبا שלום", "> quoted\r\n>> twice\r\n\x1b[Aup",
	"[\\u{202E}", "'\"$(reboot)`id`", "%s%n%d", "",
}

// renderedEnvelopes are answers of every view with a text in every place a stranger fills.
func renderedEnvelopes(t testing.TB, s string) map[string][]byte {
	t.Helper()
	made := map[string][]byte{}
	add := func(path string, data any) {
		b, err := json.Marshal(map[string]any{"success": true, "data": data, "message": s, "_meta": map[string]any{"command": s, "audit": s}})
		if err != nil {
			t.Fatal(err)
		}
		made[path] = b
	}
	type m = map[string]any
	message := m{"message_id": "imap:demo:INBOX:1:50", "date": "2026-11-21T16:14:22Z", "from": s, "subject": s, "snippet": s, "flags": []string{s, `\Seen`}, "sender": "failed", "posing_as": s}
	next := m{"instruction": s, "arguments": m{"command": s}}
	issues := []m{{"message": s, "message_id": s}}
	list := m{"account_id": s, "folder": s, "messages": []m{message, {"message_id": s, "from": s, "subject": s, "parent_message_id": "imap:demo:INBOX:1:50", "date": s}}, "subject": s, "issues": issues, "next_action": next}
	for _, path := range []string{"mail list", "mail search", "mail watch", "mail thread"} {
		add(path, list)
	}
	add("mail get", m{"message": m{"message_id": s + "x", "from": s, "to": s, "cc": s, "sender": "failed", "posing_as": s, "subject": s, "date": s, "flags": []string{s}, "body_text": s, "body_html": s, "headers": []m{{"name": s, "value": s}},
		"attachments": []m{{"filename": s, "content_type": s, "part_id": s, "size_bytes": 7, "extracted_text": s, "events": []m{{"summary": s}}}}}, "issues": issues})
	add("outbox show", m{"outbox_id": "x", "state": s, "account_id": s, "from": s, "to": []string{s}, "cc": []string{s}, "bcc": []string{s}, "recipients": []string{s}, "subject": s, "html": s, "text": s, "reason": s,
		"principal": s, "digest": s, "attachments": []m{{"name": s, "content_type": s, "size_bytes": 1}}})
	add("help", m{"command": s, "description": s + "x", "usage": s, "commands": []m{{"name": s, "description": s}}, "arguments": []m{{"name": s, "description": s, "enum": []string{s}, "default": s}}, "examples": []string{s}})
	add("any", m{s: s, "b" + s: []m{{"n": s, "o" + s: s}, {"n": 1}}, "list": []string{s, s}, "deep": m{"x": m{"y": s}}, "cells": []m{{"a": m{s: s}}}, "mixed": []any{1, m{s: s}}})
	// The other views find a stranger's text in every member that they look for.
	s = s[:min(len(s), 200)]
	all := m{"principal": s, "token": "x", "command": s, "allowed": false, "hint": s, "content_type": "text/" + s, "list": "in", "folder": s, "destination_folder": s, "default": s, "name": s, "entries": []string{s},
		"recipients": []string{s}, "raw_source_base64": []byte(s), "content_base64": []byte(s), "message_id": s + "x", "part_id": s, "host": s, "capabilities": []string{s}}
	row := m{"command": "x" + s, "success": false, "error_code": s, "target": s, "reason": s, "detail": s, "hint": s, "may_send": true, "outbound_list": m{"enabled": true, "entries": []string{s}}, "protocol": "imap", "imap": m{"host": s},
		"allow_in": m{"enabled": true, "entries": []string{s}}, "helper": []string{s}}
	for name := range strings.FieldsSeq("name account_id email mode role kind state created subject value description identity timestamp principal account seq count entry") {
		row[name] = s
	}
	for _, name := range []string{"account", "grant", "server", "implementation", "x"} {
		all[name] = row
	}
	for _, name := range []string{"accounts", "folders", "settings", "grants", "checks", "leaving", "messages"} {
		all[name] = []m{row}
	}
	for path := range views {
		if made[path] == nil && (!strings.HasSuffix(path, " remove") && !strings.HasSuffix(path, " add") || path == "grant add") {
			if add(path, all); path == "audit list" {
				add(path, m{"entries": []m{row, row}})
			}
		}
	}
	b, err := json.Marshal(m{"success": false, "error": m{"code": s, "message": s, "hint": s, "examples": []string{s}}})
	if err != nil {
		t.Fatal(err)
	}
	made["error"] = b
	return made
}

var emphasis = regexp.MustCompile("\x1b\\[(?:1|2|1;31|0)m")

// wantHarmless fails the test for anything that a terminal would do more than show.
func wantHarmless(t *testing.T, path, out string) {
	t.Helper()
	bare := emphasis.ReplaceAllString(out, "")
	if !utf8.ValidString(bare) {
		t.Errorf("%s: not UTF-8: %q", path, bare)
	}
	marks := 0
	for i, r := range bare {
		if r > unicode.MaxLatin1 && unicode.In(r, unicode.Mn, unicode.Me) {
			marks++
		} else {
			marks = 0
		}
		if marks > maxMarks || marks > 0 && (i == 0 || bare[i-1] == '\n') {
			t.Fatalf("%s: marks on what is around: %.300q", path, bare)
		}
		if r != '\n' && plain.Unclear(r) {
			t.Fatalf("%s: U+%04X reaches the terminal: %.300q", path, r, bare)
		}
	}
	if strings.Count(out, "\x1b") != 2*strings.Count(out, styleOff) {
		t.Fatalf("%s: emphasis is not ended: %.300q", path, out)
	}
	for l := range strings.Lines(out) {
		if strings.Contains(l, "\x1b") && !strings.Contains(l[strings.LastIndex(l, "\x1b"):], styleOff) {
			t.Fatalf("%s: emphasis goes on behind the line %.300q", path, l)
		}
	}
}

// draw draws an answer with this data in a window of that many columns.
func draw(width int, path, data string) string {
	return Look{Width: width, Zone: time.UTC}.Render([]byte(`{"success":true,"data":`+data+`}`), path)
}

// asJSON is data as an answer holds it.
func asJSON(t testing.TB, data any) string {
	t.Helper()
	b, err := json.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The text of a mail and of what is to be sent stands behind a mark on every line, so
// that it cannot pass for the prompt or for a part of the answer.
func TestWhatOthersWroteStandsBehindAMark(t *testing.T) {
	body := asJSON(t, "postern> help\nAttachments\n  [2] a.pdf\n"+strings.Repeat("long ", 60)+"\r\n\n> quoted "+strings.Repeat("quoted ", 60))
	for path, data := range map[string]string{
		"mail get":    `{"message":{"message_id":"imap:a:INBOX:1:2","from":"x@example.org","body_text":` + body + `,"attachments":[]}}`,
		"outbox show": `{"outbox_id":"x","text":` + body + `}`,
	} {
		for l := range strings.Lines(draw(50, path, data)) {
			for _, word := range []string{"postern>", "Attachments", "[2]", "long", "quoted"} {
				if strings.Contains(l, word) && !strings.HasPrefix(l, bodyMark) {
					t.Errorf("%s: without its mark: %q", path, l)
				}
			}
			if w := runewidth.StringWidth(strings.TrimRight(l, "\n")); w > 50 || strings.Contains(l, "quoted") && !strings.HasPrefix(l, bodyMark+"> ") {
				t.Errorf("%s: a line of %d columns, or less quoted than it is: %q", path, w, l)
			}
		}
	}
}

// What is to be sent does not look quoted, and none of it gets out of its margin or is dim, at
// any width: not what imitates the margin, a quotation or the question, and nothing that is hidden.
func TestWhatIsToBeSentStaysInItsMargin(t *testing.T) {
	lines := append([]string{"Hello Ann,", "│ a margin", "│", "> a quotation " + strings.Repeat("of words ", 20), strings.Repeat("> ", 60) + "deep", strings.Repeat(" ", 150) + "Send exactly this?",
		"y sends it, n refuses it, Enter leaves it waiting: y", strings.Repeat("x", 19) + "Send exactly this?"}, hostileText...)
	envelope := []byte(`{"success":true,"data":{"outbox_id":"x","text":` + asJSON(t, strings.Join(lines, "\n")) + `}}`)
	for width := 1; width <= 200; width = width*9/8 + 1 {
		head, text, _ := strings.Cut(Look{Width: width, Color: true}.Render(envelope, "outbox show"), "\n\n")
		if head = emphasis.ReplaceAllString(head, ""); head != "Outbox:  x ()\nBy:      ," {
			t.Fatalf("above it: %q", head)
		}
		wantHarmless(t, "outbox show", text)
		if !strings.HasPrefix(text, "│ Hello Ann,\n") && width >= 20 || strings.Contains(text, "\x1b") {
			t.Errorf("%d columns: %q", width, text[:40])
		}
		for l := range strings.Lines(strings.TrimSuffix(text, "\n")) {
			if l = strings.TrimSuffix(l, "\n"); l != "│" && !strings.HasPrefix(l, bodyMark) || runewidth.StringWidth(l) > max(width, minWidth) {
				t.Fatalf("%d columns: %q", width, l)
			}
		}
	}
}

// No subject passes for another message of those that are to be deleted.
func TestWhatIsToBeDeletedIsARowEach(t *testing.T) {
	subject := strings.TrimSuffix(strings.Repeat("home:9 ", 20), " ")
	shown := draw(60, "outbox show", `{"outbox_id":"x","text":"","deletes":[{"message_id":"home:2","from":"ann@example.org","subject":"`+subject+`"}]}`)
	for l := range strings.Lines(shown) {
		if strings.Contains(l, "home:9") && !strings.HasPrefix(l, "> home:2 ") && !strings.HasPrefix(l, ">          home:9") {
			t.Errorf("%q", l)
		}
	}
	if n := strings.Count(shown, "home:9"); n != 20 {
		t.Errorf("the subject is there %d times: %s", n, shown)
	}
}

// Rows of a table are as wide as the window at most, with any content; an id that is longer than
// half the window is whole, on a line of its own.
func TestListsFitTheWindow(t *testing.T) {
	for _, s := range []string{"plain text that is rather long and goes on", strings.Repeat("漢字", 60), strings.Repeat("👩‍👩‍👧‍👦", 40), strings.Repeat("e\u0301", 90), "🏳️‍🌈 flag"} {
		data := asJSON(t, map[string]any{"folder": "INBOX", "account_id": "a", "subject": "x", "messages": []any{
			map[string]any{"message_id": "imap:demo:INBOX:1:50", "date": "2026-11-21T16:14:22Z", "from": s, "subject": s, "folder": s, "body_text": s + "\n" + s}}})
		for _, path := range []string{"mail list", "mail thread"} {
			for _, width := range []int{30, 40, 64, 80, 120} {
				shown := Look{Width: width, ID: func(string) string { return "demo:50" }}.Render([]byte(`{"success":true,"data":`+data+`}`), path)
				for l := range strings.Lines(shown) {
					if w := runewidth.StringWidth(strings.TrimRight(l, "\n")); w > width {
						t.Errorf("%s in %d columns: %d: %q", path, width, w, l)
					}
				}
			}
		}
	}
	id := "pop3:work:" + strings.Repeat("0123456789", 7)
	for _, width := range []int{20, 40, 80, 160} {
		got := draw(width, "mail list", `{"messages":[{"message_id":"`+id+`","from":"ann@example.org","subject":"Hello"}]}`)
		if strings.Count(got, id) != 2 || !strings.Contains(got, "ann@example") || !strings.Contains(got, "Hello") {
			t.Errorf("%d columns: %s", width, got)
		}
	}
}

// Output that is not an answer is drawn as a line of text, or not at all.
func TestEnvelopesThatSayNothing(t *testing.T) {
	for envelope, want := range map[string]string{
		"": "\n", "no \x1b[2J JSON\n\xff": "no [2J JSON\ufffd\n", "[1]": "[1]\n", `{"success":true,`: "{\"success\":true,\n", "{}": "", `{"success":false,"error":"x"}`: "",
	} {
		if got := (Look{}).Render([]byte(envelope), "mail list"); got != want {
			t.Errorf("%q: %q, want %q", envelope, got, want)
		}
	}
}

// What is shown as an id is what is typed, in every view, and nowhere the one of the answer.
func TestAnIDIsShownAsItIsTyped(t *testing.T) {
	look := Look{Width: 80, ID: func(long string) string { return "typed-" + long[strings.LastIndexByte(long, ':')+1:] }}
	for _, c := range testmain.Table[struct{ Path, Envelope string }](t, "testdata/cases/ids.txt") {
		if got := look.Render([]byte(`{"success":true,"data":`+c.Envelope+`}`), c.Path); !strings.Contains(got, "typed-5") || strings.Contains(got, "imap:") {
			t.Errorf("%s: %s", c.Path, got)
		}
	}
}

// A page with names of any length fits into the narrowest window.
func TestAPageFitsTheWindow(t *testing.T) {
	rows := [][2]string{{"undo", "take back the last archive or trash"}, {"save ID [PART] [PLACE]", "keep the attachments of a message, in a directory"}}
	for _, width := range []int{20, 25, 30, 40, 60, 100} {
		page := Look{Width: width}.Page("", Section{Title: "Words", Rows: rows})
		for l := range strings.Lines(page) {
			if runewidth.StringWidth(strings.TrimSuffix(l, "\n")) > width {
				t.Errorf("%d columns: %q", width, l)
			}
		}
		if got, want := strings.Join(strings.Fields(page), " "), "Words undo take back the last archive or trash save ID [PART] [PLACE] keep the attachments of a message, in a directory"; got != want {
			t.Errorf("%d columns: %s", width, page)
		}
	}
}

// Flags are words, and one that was read needs none; a POP3 mailbox has no flags.
func TestFlagsAreWords(t *testing.T) {
	for _, tc := range []struct{ id, flags, want string }{
		{"imap:a:INBOX:1:2", `"\\Seen"`, ""}, {"imap:a:INBOX:1:2", ``, "unread"}, {"imap:a:INBOX:1:2", `"\\Recent","\\Answered","\\Seen","\\Flagged"`, "answered, flagged"},
		{"imap:a:INBOX:1:2", `"$Forwarded","\\Draft","Work"`, "unread, forwarded, draft, work"}, {"pop3:a:x7", ``, ""},
	} {
		got := draw(80, "mail get", `{"message":{"message_id":"`+tc.id+`","flags":[`+tc.flags+`],"body_text":"x"}}`)
		if said := strings.Contains(got, "Flags:"); said != (tc.want != "") || said && !strings.Contains(got, "Flags:   "+tc.want+"\n") {
			t.Errorf("%+v: %s", tc, got)
		}
		got = draw(80, "", `{"one":{"flags":[`+tc.flags+`]},"list":[{"flags":[`+tc.flags+`]}]}`)
		if strings.ContainsAny(got, `\$`) || !strings.Contains(got, tc.want) {
			t.Errorf("%+v: %s", tc, got)
		}
	}
}

// An id is named as a command line holds it, where the caller says how.
func TestWhatToTypeNext(t *testing.T) {
	envelope := []byte(`{"success":true,"data":{"folder":"Old mail","messages":[{"message_id":"imap:demo:Old mail:1:5"}],"next_action":{"instruction":"Read the first of them","arguments":{"command":"mail get imap:demo:Old mail:1:5"}}}}`)
	quoted := Look{Quote: func(word string) string { return "<" + word + ">" }}.Render(bytes.Replace(envelope, []byte("get imap:demo:Old mail:1:5"), []byte("get <imap:demo:Old mail:1:5>"), 1), "mail list")
	if want := "Read one: read <imap:demo:Old mail:1:5>\n"; !strings.HasSuffix(quoted, want) {
		t.Errorf("%q", quoted)
	}
	if plain := (Look{}).Render(envelope, "mail list"); !strings.HasSuffix(plain, "Read one: read imap:demo:Old mail:1:5\n") {
		t.Errorf("%q", plain)
	}
}

// A proposed command has ids as a person types them.
func TestProposedCommandsHaveShortIDs(t *testing.T) {
	look := Look{Width: 80, ID: func(long string) string { return "<" + long + ">" }}
	for _, c := range testmain.Table[struct{ Id, Want string }](t, "testdata/cases/proposed.txt") {
		envelope, err := json.Marshal(map[string]any{"success": true, "data": map[string]any{"next_action": map[string]any{"instruction": "Read it", "arguments": map[string]any{"command": "mail get " + c.Id}}}})
		if err != nil {
			t.Fatal(err)
		}
		if got := look.Render(envelope, "mail search"); !strings.HasSuffix(got, "Read it:\n  "+c.Want+"\n") {
			t.Errorf("%s: %q", c.Id, got)
		}
	}
}

// A window that is narrower than any is drawn for like the narrowest.
func TestTheNarrowestWindow(t *testing.T) {
	for path, envelope := range renderedEnvelopes(t, "some text of a few words") {
		want := Look{Width: minWidth, Color: true}.Render(envelope, path)
		for _, width := range []int{-1, 0, minWidth - 1} {
			if got := (Look{Width: width, Color: true}).Render(envelope, path); got != want {
				t.Errorf("%s in %d columns: %q", path, width, got)
			}
		}
	}
}

// Nothing that a sender wrote moves the cursor or changes the terminal, in any view.
func FuzzRender(f *testing.F) {
	for i, s := range hostileText {
		f.Add(s, 17*i+20)
	}
	f.Fuzz(func(t *testing.T, s string, width int) {
		if !utf8.ValidString(s) {
			return // no answer holds it
		}
		width = abs(width) % 300
		for path, envelope := range renderedEnvelopes(t, s) {
			if (len(path)+width)%2 > 0 {
				continue // half of the views for each input
			}
			l := Look{Width: width, Color: width%4 > 0}
			shown := l.Render(envelope, path)
			wantHarmless(t, path, shown)
			if !l.Color && strings.Contains(shown, "\x1b") {
				t.Errorf("%s: emphasis where none is wanted", path)
			}
		}
	})
}
