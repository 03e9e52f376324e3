package screen

import (
	"encoding/json"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"

	"github.com/postern-mail/postern/commands"
	"github.com/postern-mail/postern/commands/admin"
	"github.com/postern-mail/postern/commands/agents"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
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

// results are what commands return that have a view, by the path of one of them.
var results = map[string]any{
	"mail list": (*commands.MailListResult)(nil), "mail search": (*commands.MailSearchResult)(nil), "mail watch": (*commands.MailWatchResult)(nil), "mail thread": (*commands.MailThreadResult)(nil),
	"mail get": (*commands.MailGetResult)(nil), "mail accounts": (*commands.MailAccountsResult)(nil), "mail folders": (*commands.MailFoldersResult)(nil), "mail verify": (*commands.MailVerifyResult)(nil),
	"mail move": (*commands.MailMoveResult)(nil), "mail copy": (*commands.MailCopyResult)(nil), "mail send": (*commands.MailSendResult)(nil), "mail draft": (*commands.MailDraftResult)(nil),
	"mail raw": (*commands.MailRawResult)(nil), "mail attachment": (*commands.MailAttachmentResult)(nil), "outbox list": (*commands.OutboxListResult)(nil), "outbox show": (*commands.OutboxShowResult)(nil),
	"outbox reject": (*commands.OutboxDecided)(nil), "account list": (*admin.AccountListResult)(nil), "account show": admin.AccountShowResult{}, "allow in list": (*admin.RuleListResult)(nil),
	"config list": admin.ConfigListResult{}, "config get": admin.SettingShown{}, "grant list": (*admin.GrantListResult)(nil), "grant add": (*admin.GrantAddResult)(nil), "policy show": (*admin.PolicyShowResult)(nil),
	"policy explain": (*commands.PolicyExplainResult)(nil), "audit list": (*admin.AuditListResult)(nil), "audit verify": admin.AuditVerifyResult{}, "doctor": admin.DoctorResult{}, "stop": admin.StopResult{},
	"version": discovery.VersionResult{}, "help": discovery.HelpResult{}, "schema": discovery.SchemaResult{}, "agent describe": (*agents.Description)(nil),
}

// answerOf is an answer with this data, and with what a command of that path returns for it.
func answerOf(t testing.TB, path, data string) gateway.Answer {
	t.Helper()
	a := gateway.Answer{Data: json.RawMessage(data)}
	if known := reflect.TypeOf(results[path]); known != nil {
		r := reflect.New(known)
		if err := json.Unmarshal(a.Data, r.Interface()); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		a.Result = r.Elem().Interface()
	}
	return a
}

// renderedAnswers are answers of every view with a text in every place that has one; all that may be so is so, or not.
func renderedAnswers(t testing.TB, s string, so bool) map[string]gateway.Answer {
	t.Helper()
	made := map[string]gateway.Answer{"error": {Fault: &discovery.Fault{Code: discovery.Code(s), Message: s, Hint: s, Examples: []string{s}}}}
	for path, zero := range results {
		r := reflect.New(reflect.TypeOf(zero))
		filled(r.Elem(), s, so)
		made[path] = gateway.Answer{Result: r.Elem().Interface(), Data: json.RawMessage(asJSON(t, r.Interface()))}
	}
	type m = map[string]any
	made["any"] = gateway.Answer{Data: json.RawMessage(asJSON(t, m{s: s, "b" + s: []m{{"n": s, "o" + s: s}, {"n": 1}}, "list": []string{s, s}, "deep": m{"x": m{"y": s}}, "cells": []m{{"a": m{s: s}}}, "mixed": []any{1, m{s: s}}}))}
	for path, a := range made {
		a.Message, a.Audit, a.Cut = s, s, so
		made[path] = a
	}
	return made
}

func filled(v reflect.Value, s string, so bool) {
	switch v.Kind() {
	case reflect.String:
		if v.Type() == reflect.TypeFor[json.Number]() {
			s = "7"
		}
		v.SetString(s)
	case reflect.Bool:
		v.SetBool(so)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(7)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		filled(v.Elem(), s, so)
	case reflect.Interface:
		v.Set(reflect.ValueOf(s))
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[discovery.JSONSchema]() {
			v.SetBytes([]byte(`{"description":"x"}`))
		} else if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte(s))
		} else {
			v.Set(reflect.MakeSlice(v.Type(), 2, 2))
			filled(v.Index(0), s, so)
			filled(v.Index(1), s, so)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() || f.Anonymous {
				filled(v.Field(i), s, so)
			}
		}
	}
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
func draw(t testing.TB, width int, path, data string) string {
	t.Helper()
	return Look{Width: width, Zone: time.UTC}.Render(answerOf(t, path, data))
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
		for l := range strings.Lines(draw(t, 50, path, data)) {
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
	waits := gateway.Answer{Result: &commands.OutboxShowResult{Sending: commands.Sending{ID: "x"}, Text: strings.Join(lines, "\n")}}
	for width := 1; width <= 200; width = width*9/8 + 1 {
		head, text, _ := strings.Cut(Look{Width: width, Color: true}.Render(waits), "\n\n")
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
	shown := draw(t, 60, "outbox show", `{"outbox_id":"x","text":"","deletes":[{"message_id":"home:2","from":["ann@example.org"],"subject":"`+subject+`"}]}`)
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
				shown := Look{Width: width, ID: func(string) string { return "demo:50" }}.Render(answerOf(t, path, data))
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
		got := draw(t, width, "mail list", `{"messages":[{"message_id":"`+id+`","from":"ann@example.org","subject":"Hello"}]}`)
		if strings.Count(got, id) != 2 || !strings.Contains(got, "ann@example") || !strings.Contains(got, "Hello") {
			t.Errorf("%d columns: %s", width, got)
		}
	}
}

// Data that are not JSON are drawn as a line of text, and no data not at all.
func TestAnswersThatSayNothing(t *testing.T) {
	for data, want := range map[string]string{"": "", "no \x1b[2J JSON\n\xff": "no [2J JSON \ufffd\n", "[1]": "1\n", `{"success":`: "{\"success\":\n", "{}": "", `"x"`: "x\n"} {
		if got := (Look{}).Render(gateway.Answer{Data: json.RawMessage(data)}); got != want {
			t.Errorf("%q: %q, want %q", data, got, want)
		}
	}
	if got := (Look{}).Render(gateway.Answer{Fault: &discovery.Fault{Code: "X"}}); got != "X\n" {
		t.Errorf("a fault without words: %q", got)
	}
}

// What is shown as an id is what is typed, in every view, and nowhere the one of the answer.
func TestAnIDIsShownAsItIsTyped(t *testing.T) {
	look := Look{Width: 80, ID: func(long string) string { return "typed-" + long[strings.LastIndexByte(long, ':')+1:] }}
	for _, c := range testmain.Table[struct{ Path, Envelope string }](t, "testdata/cases/ids.txt") {
		if got := look.Render(answerOf(t, c.Path, c.Envelope)); !strings.Contains(got, "typed-5") || strings.Contains(got, "imap:") {
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
		got := draw(t, 80, "mail get", `{"message":{"message_id":"`+tc.id+`","flags":[`+tc.flags+`],"body_text":"x"}}`)
		if said := strings.Contains(got, "Flags:"); said != (tc.want != "") || said && !strings.Contains(got, "Flags:   "+tc.want+"\n") {
			t.Errorf("%+v: %s", tc, got)
		}
		got = draw(t, 80, "", `{"one":{"flags":[`+tc.flags+`]},"list":[{"flags":[`+tc.flags+`]}]}`)
		if strings.ContainsAny(got, `\$`) || !strings.Contains(got, tc.want) {
			t.Errorf("%+v: %s", tc, got)
		}
	}
}

// An id is named as a command line holds it, where the caller says how.
func TestWhatToTypeNext(t *testing.T) {
	list := func(command string) gateway.Answer {
		r := &commands.MailListResult{Folder: "Old mail"}
		r.Messages, r.NextAction = []commands.MessageEntry{{ID: "imap:demo:Old mail:1:5"}}, &commands.NextAction{Instruction: "Read the first of them"}
		r.NextAction.Arguments.Command = command
		return gateway.Answer{Result: r}
	}
	quoted := Look{Quote: func(word string) string { return "<" + word + ">" }}.Render(list("mail get <imap:demo:Old mail:1:5>"))
	if want := "Read one: read <imap:demo:Old mail:1:5>\n"; !strings.HasSuffix(quoted, want) {
		t.Errorf("%q", quoted)
	}
	if plain := (Look{}).Render(list("mail get imap:demo:Old mail:1:5")); !strings.HasSuffix(plain, "Read one: read imap:demo:Old mail:1:5\n") {
		t.Errorf("%q", plain)
	}
}

// A proposed command has ids as a person types them.
func TestProposedCommandsHaveShortIDs(t *testing.T) {
	look := Look{Width: 80, ID: func(long string) string { return "<" + long + ">" }}
	for _, c := range testmain.Table[struct{ Id, Want string }](t, "testdata/cases/proposed.txt") {
		r := &commands.MailSearchResult{}
		r.NextAction = &commands.NextAction{Instruction: "Read it"}
		r.NextAction.Arguments.Command = "mail get " + c.Id
		if got := look.Render(gateway.Answer{Result: r}); !strings.HasSuffix(got, "Read it:\n  "+c.Want+"\n") {
			t.Errorf("%s: %q", c.Id, got)
		}
	}
}

// A window that is narrower than any is drawn for like the narrowest.
func TestTheNarrowestWindow(t *testing.T) {
	for path, a := range renderedAnswers(t, "some text of a few words", true) {
		want := Look{Width: minWidth, Color: true}.Render(a)
		for _, width := range []int{-1, 0, minWidth - 1} {
			if got := (Look{Width: width, Color: true}).Render(a); got != want {
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
		width = abs(width) % 300
		for path, a := range renderedAnswers(t, s, width%2 > 0) {
			if (len(path)+width)%2 > 0 {
				continue // half of the views for each input
			}
			l := Look{Width: width, Color: width%4 > 0}
			shown := l.Render(a)
			wantHarmless(t, path, shown)
			if !l.Color && strings.Contains(shown, "\x1b") {
				t.Errorf("%s: emphasis where none is wanted", path)
			}
		}
	})
}
