package message

import (
	"encoding/base64"
	"strings"
	"testing"
)

func TestPartText(t *testing.T) {
	b64 := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	for _, tc := range []struct {
		name, header, body, want string
		ok                       bool
	}{
		{"plain", "text/plain", "a\r\n> b\r\n\r\n\r\n\r\nc  ", "a\n> b\n\n\n\nc", true},
		{"CSV", "text/csv", "a;b\n1;2\n", "a;b\n1;2", true},
		{"indented", "text/markdown", "\n  - a\n    - b\n", "  - a\n    - b", true},
		{"Latin-1", "text/csv; charset=iso-8859-1", "caf\xe9", "café", true},
		{"base64", "text/csv\nContent-Transfer-Encoding: base64", b64("a;b"), "a;b", true},
		{"UTF-16", "text/plain; charset=utf-16\nContent-Transfer-Encoding: base64", b64("\xff\xfea\x00b\x00"), "ab", true},
		{"HTML", "text/html", "<p>a<script>x</script><blockquote>b</blockquote>", "a\n\n> b", true},
		{"HTML by its name", "application/octet-stream; name=a.HTM", "<p>a", "a", true},
		{"JSON", "application/json", `{"a": 1}`, `{"a": 1}`, true},
		{"JSON of a kind", "application/ld+json", `{}`, `{}`, true},
		{"XML", "application/xml", "<a>b</a>", "<a>b</a>", true},
		{"report", "message/delivery-status", "Action: failed", "Action: failed", true},
		{"characters nobody sees", "text/plain", "a\u202eb\x07\u200bc", "abc", true},
		{"text by its name", "application/octet-stream; name=notes.txt", "a", "a", true},
		{"nothing", "text/plain", "", "", true},
		{"calendar", "text/calendar", string(event("SUMMARY:Lunch", "LOCATION:Room 1", "ORGANIZER:mailto:ann@example.org", "DTSTART;TZID=Europe/Berlin:20260504T100000", "DTEND;TZID=Europe/Berlin:20260504T110000", "RRULE:FREQ=DAILY", "DESCRIPTION:Bring\\n your\u202e bread")),
			"Event: Lunch\nMethod: REQUEST\nWhen: Mon 4 May 2026 10:00 to 11:00 (UTC+02:00), repeated\nWhere: Room 1\nOrganizer: ann@example.org\n\nBring\n your bread", true},
		{"calendar of days", "application/ics", string(event("SUMMARY:Fair", "DTSTART;VALUE=DATE:20260504", "DTEND;VALUE=DATE:20260507")), "Event: Fair\nMethod: REQUEST\nWhen: Mon 4 May 2026 to Wed 6 May 2026, all day", true},
		{"calendar over days", "text/calendar", "BEGIN:VEVENT\nDTSTART:20260504T100000Z\nDTEND:20260506T110000Z\nEND:VEVENT", "When: Mon 4 May 2026 10:00 to Wed 6 May 2026 11:00 (UTC+00:00)", true},
		{"calendar without events", "text/calendar", "BEGIN:VTODO\nSUMMARY:x\nEND:VTODO", "BEGIN:VTODO\nSUMMARY:x\nEND:VTODO", true},
		{"message", "message/rfc822", "From: Ann Lee <ann@example.org>\nTo: bob@example.org,\n eve@example.org\nDate: Mon, 4 May 2026 10:00:00 +0200\nSubject: =?utf-8?q?caf=C3=A9?=\nX-Other: y\nContent-Type: text/html\n\n<p>Hello<p hidden>x",
			"From: Ann Lee <ann@example.org>\nTo: bob@example.org, eve@example.org\nDate: 2026-05-04T10:00:00+02:00\nSubject: café\n\nHello", true},
		{"message by its name, in base64", "application/octet-stream; name=a.eml\nContent-Transfer-Encoding: base64", b64("Subject: a\n\nb"), "Subject: a\n\nb", true},
		{"message without text", "message/rfc822", "Subject: a\nContent-Type: image/png\n\nx", "Subject: a", true},
		{"message without a header", "message/rfc822", "a", "a", true},

		{"PDF", "application/pdf", "%PDF-1.4", "", false},
		{"PDF that is called text", "text/plain", "%PDF-1.4", "", false},
		{"binary that is called text", "text/plain", "\x00\x01\x02\x00\x00\x00", "", false},
		{"image", "image/png", "x", "", false},
		{"rich text", "text/rtf", "{\\rtf1 a}", "", false},
		{"Word", "application/vnd.openxmlformats-officedocument.wordprocessingml.document; name=a.docx", "PK\x03\x04", "", false},
		{"unknown", "application/octet-stream; name=a.bin", "x", "", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := Parse([]byte("Content-Type: " + tc.header + "\n\nx")).Root
			p.Size = int64(len(tc.body))
			got, _, cut, ok := PartText(p, []byte(tc.body), 1000)
			if got != tc.want || ok != tc.ok || cut {
				t.Errorf("%q, %v, %v, want %q, %v", got, cut, ok, tc.want, tc.ok)
			}
		})
	}
}

// What a person would not see of HTML is counted, in an HTML file and in a message within one.
func TestPartTextTellsWhatIsHidden(t *testing.T) {
	for kind, body := range map[string]string{"text/html": "<p>Hello<p hidden>x y", "message/rfc822": "Subject: a\nContent-Type: text/html\n\n<p>Hello<p hidden>x y", "text/plain": "Hello"} {
		p := Parse([]byte("Content-Type: " + kind + "\n\nx")).Root
		want := 2
		if kind == "text/plain" {
			want = 0
		}
		if text, hidden, _, _ := PartText(p, []byte(body), 1000); hidden != want || !strings.HasSuffix(text, "Hello") {
			t.Errorf("%s: %q and %d hidden characters, want %d", kind, text, hidden, want)
		}
	}
}

func TestPartTextIsTruncated(t *testing.T) {
	for _, tc := range []struct {
		typ, body string
		size, n   int
		want      string
		cut       bool
	}{
		{"text/plain", "hello", 5, 5, "hello", false},
		{"text/plain", "hello", 5, 4, "hell", true},
		{"text/plain", "hello", 50, 5, "hello", true},
		{"text/plain", "hello", 5, 0, "", true},
		{"text/plain", "hello", 5, -1, "", true},
		{"text/html", "<p>hello", 8, 4, "hell", true},
		{"message/rfc822", "Subject: a\n\nhello", 17, 14, "Subject: a\n\nhe", true},
		{"message/rfc822", "Subject: a\n\nhello", 17, 5, "Subje", true},
		{"message/rfc822", "Subject: a\n\nhello", 17, 17, "Subject: a\n\nhello", false},
		{"text/calendar", "BEGIN:VEVENT\nSUMMARY:hello\nEND:VEVENT", 37, 8, "Event: h", true},
	} {
		typ, subtype, _ := strings.Cut(tc.typ, "/")
		p := NewPart(Part{Type: typ, Subtype: subtype, Size: int64(tc.size)}, nil)
		if got, _, cut, ok := PartText(p, []byte(tc.body), tc.n); got != tc.want || cut != tc.cut || !ok {
			t.Errorf("%s of %d runes: %q, %v, %v, want %q, %v", tc.typ, tc.n, got, cut, ok, tc.want, tc.cut)
		}
	}
	huge := NewPart(Part{Type: "text", Subtype: "csv", Size: 9 << 20}, nil)
	if got, _, cut, ok := PartText(huge, []byte(strings.Repeat("a;b;c\n", 9<<20/6)), 100); len(got) != 100 || !cut || !ok {
		t.Errorf("%d octets, %v, %v", len(got), cut, ok)
	}
}

func TestPartTextOfNothing(t *testing.T) {
	if _, _, _, ok := PartText(nil, nil, 10); ok {
		t.Error("nothing has a text")
	}
	if _, _, _, ok := PartText(NewPart(Part{Type: "multipart", Subtype: "mixed", Children: []*Part{{}}}, nil), nil, 10); ok {
		t.Error("a container has a text")
	}
}

// A message within a message is one attachment, and so is a winmail.dat.
func TestAttachmentsOfOtherPrograms(t *testing.T) {
	const inner = "Subject: =?utf-8?q?caf=C3=A9/bar?=\nContent-Type: multipart/mixed; boundary=i\n\n--i\n\nx\n--i\nContent-Type: image/png; name=a.png\n\ny\n--i--\n"
	for _, tc := range []struct{ name, part, want string }{
		{"Outlook's own", "Content-Type: application/ms-tnef; name=winmail.dat\nContent-Transfer-Encoding: base64\n\neJ8+", "winmail.dat"},
		{"Outlook's own without a name", "Content-Type: application/ms-tnef\n\nx", ""},
		{"message", "Content-Type: message/rfc822\n\n" + inner, "café_bar.eml"},
		{"message with a name", "Content-Type: message/rfc822; name=b.eml\n\n" + inner, "b.eml"},
		{"message without a subject", "Content-Type: message/rfc822\n\nFrom: a\n\nx", ""},
		{"message in base64", "Content-Type: message/rfc822\nContent-Transfer-Encoding: base64\n\n" + base64.StdEncoding.EncodeToString([]byte(inner)), ""},
		{"message that hides", "Content-Type: message/rfc822\n\nSubject: ../../a\u202egpj.exe\n\nx", "___.._agpj.exe.eml"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := Parse([]byte("Content-Type: multipart/mixed; boundary=b\n\n--b\n\nSee attached.\n--b\n" + tc.part + "\n--b--\n"))
			a := Attachments(e.Root)
			if len(a) != 1 || a[0].ID != "2" || a[0].Filename != tc.want || len(a[0].Children) > 0 {
				t.Errorf("%d attachments, %q, want %q", len(a), a[0].Filename, tc.want)
			}
			if text, _ := Text(e.Root, e.Raw, 100); text != "See attached." {
				t.Errorf("text %q", text)
			}
		})
	}
}
