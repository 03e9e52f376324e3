package compose

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail/servertest"
)

// checkPython checks that Python's email package, which shares no code with this project,
// reads from b what m says, and finds no defect.
func checkPython(t *testing.T, m *Message, b *Built, p servertest.PythonMessage) {
	t.Helper()
	// Python counts bytes outside ASCII in an address as a defect.
	if len(p.Defects) > 0 && !b.SMTPUTF8 {
		t.Errorf("defects %q", p.Defects)
	}
	w := want(m)
	pairs := func(list []Address) (out [][2]string) {
		for _, a := range list {
			out = append(out, [2]string{a.Name, a.Addr})
		}
		return out
	}
	if !b.SMTPUTF8 && (!slices.EqualFunc(p.From, pairs(w.From), samePython) || !slices.EqualFunc(p.To, pairs(w.To), samePython) || !slices.EqualFunc(p.CC, pairs(w.CC), samePython)) {
		t.Errorf("from %q to %q cc %q, want %q, %q, %q", p.From, p.To, p.CC, pairs(w.From), pairs(w.To), pairs(w.CC))
	}
	if p.Subject != w.Subject {
		t.Errorf("subject %q, want %q", p.Subject, w.Subject)
	}
	if int64(p.Date) != w.Date || p.ID != "<"+w.MessageID+">" || strings.Trim(p.Parent, "<>") != w.InReplyTo {
		t.Errorf("date %v id %q parent %q", p.Date, p.ID, p.Parent)
	}
	if ids := strings.FieldsFunc(p.References, func(r rune) bool { return strings.ContainsRune("<> ", r) }); !slices.Equal(ids, w.References) {
		t.Errorf("references %q, want %q", ids, w.References)
	}
	_, flowed, err := layout(m.Body)
	must(t, err)
	if flowed != strings.Contains(string(b.Wire), "format=flowed") {
		t.Error("what is declared is not what was done")
	}
	if p.Charset != "utf-8" || p.Body != written(m.Body, flowed) {
		t.Errorf("%s body %q, want %q", p.Charset, p.Body, written(m.Body, flowed))
	}
	checkShown(t, m.Body, p.Shown, flowed)
	if len(p.Files) != len(m.Attachments) {
		t.Fatalf("%d files, want %d", len(p.Files), len(m.Attachments))
	}
	for i, f := range p.Files {
		sum := sha256.Sum256(m.Attachments[i].Content)
		if f.Name != b.Attachments[i].Name || f.Type != b.Attachments[i].Type || f.Disposition != "attachment" || f.SHA256 != hex.EncodeToString(sum[:]) {
			t.Errorf("file %+v, want %q %q %x", f, b.Attachments[i].Name, b.Attachments[i].Type, sum)
		}
	}
}

// samePython compares mailboxes. If a name takes several encoded words, Python shows a
// space between them, against RFC 2047 section 6.2.
func samePython(got, want [2]string) bool {
	if len(want[0]) > maxCluster {
		got[0], want[0] = strings.ReplaceAll(got[0], " ", ""), strings.ReplaceAll(want[0], " ", "")
	}
	return got == want
}

// checkShown checks that a reader without format=flowed shows the lines that were written.
// Only long lines are wrapped, and a line that begins with a space or "From " has another
// space before it.
func checkShown(t *testing.T, body, shown string, flowed bool) {
	t.Helper()
	if !flowed {
		if w := written(body, false); shown != w {
			t.Errorf("shown %q, want %q", shown, w)
		}
		return
	}
	lines := strings.SplitAfter(shown, "\n")
	for _, w := range strings.Split(strings.TrimSuffix(written(body, false), "\n"), "\n") {
		marks, _, _ := strings.Cut(w, " ")
		if strings.Trim(marks, ">") != "" {
			marks = ""
		}
		got := ""
		for first := true; ; first = false {
			if len(lines) == 0 {
				t.Fatalf("the text ends before %q", w)
			}
			l := strings.TrimSuffix(lines[0], "\n")
			lines = lines[1:]
			piece := l
			if first && (strings.HasPrefix(w, " ") || strings.HasPrefix(w, "From ")) {
				piece = strings.TrimPrefix(piece, " ")
			}
			if !first && marks != "" {
				if !strings.HasPrefix(piece, marks+" ") {
					t.Errorf("the quoted line goes on without its marks: %q", l)
				}
				piece = strings.TrimPrefix(piece, marks+" ")
			}
			got += piece
			if len(got) >= len(w) {
				break
			}
			if !strings.HasSuffix(l, " ") {
				t.Errorf("parted within a word: %q", l)
			}
		}
		if got != w {
			t.Errorf("shown %q, want %q", got, w)
		}
	}
	if strings.Join(lines, "") != "" {
		t.Errorf("shown beyond the end: %q", lines)
	}
}

// oddities returns messages that some readers are known to misread.
func oddities(t *testing.T) map[string]*Message {
	t.Helper()
	all := map[string]*Message{}
	for i, c := range testmain.Table[struct{ Field, Text string }](t, "testdata/cases/odd.txt") {
		m := sample()
		switch c.Field {
		case "Subject":
			m.Subject = c.Text
		case "Name":
			m.To[0].Name = c.Text
		case "Body":
			m.Body = strings.ReplaceAll(c.Text, "LONG", longText)
		}
		all[fmt.Sprint(c.Field, " ", i)] = m
	}
	recipients, references, odd, names, bytes := sample(), sample(), sample(), sample(), sample()
	for range 100 {
		recipients.To = append(recipients.To, Address{Name: "Jörg, the Other", Addr: "joerg.the.other@department.example.org"})
	}
	references.References = list(50, func(i int) string { return fmt.Sprintf("%d.%s@example.org", i, strings.Repeat("x", i)) })
	odd.References = []string{"no-at-sign", "a@b@c", "[1]{2}@x", "x;y,z@w"}
	for _, name := range []string{"a b.txt", "a'b*c%d.txt", "a;b=c.txt", "ö.txt", "=?utf-8?q?x?=.txt", "x\r\ny.txt", "\u202etxt.exe", "../../etc/passwd", "..", "con.txt", strings.Repeat("long ", 60) + ".pdf", strings.Repeat("会", 80) + ".pdf", "e\u0301", "\u0301", "‥"} {
		names.Attachments = append(names.Attachments, Attachment{Name: name, Content: []byte(name)})
	}
	content := make([]byte, 256*57)
	for i := range content {
		content[i] = byte(i)
	}
	for _, n := range []int{0, 1, 2, 3, 56, 57, 58, 114, len(content)} {
		bytes.Attachments = append(bytes.Attachments, Attachment{Name: "bytes.bin", Content: content[:n]})
	}
	maps.Copy(all, map[string]*Message{"recipients": recipients, "references": references, "odd references": odd, "file names": names, "every byte": bytes})
	return all
}
