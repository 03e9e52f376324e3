package prompt

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestALetterIsReadAsItWasWritten(t *testing.T) {
	l := newLetter([]string{"mail", "send"}, "To", "Cc", "Subject", "Attach")
	l.values["To"], l.text = "ann@example.org", "\n> quoted\n"
	if got := l.format(); got != "To: ann@example.org\nCc:\nSubject:\nAttach:\n\n\n> quoted\n" {
		t.Errorf("%q", got)
	}
	for _, tc := range []struct {
		name, written string
		want          []string // the command behind its words; nil: it cannot be read
	}{
		{"plain", "To: ann@example.org\nSubject: Lunch\n\nShall we?\n", []string{"--to=ann@example.org", "--subject=Lunch", "--body=Shall we?"}},
		{"any case, and line ends of Windows", "TO: a@example.org\r\nsubject:Lunch: when?\r\n\r\none\r\n\r\ntwo\r\n", []string{"--to=a@example.org", "--subject=Lunch: when?", "--body=one\n\ntwo"}},
		{"a name with a comma, and a folded field", "To: \"Lee, Ann\" <ann@example.org>,\n  Bob <bob@example.org>\nCc: eve@example.org\n\nx", []string{`--to="Lee\, Ann" <ann@example.org>,"Bob" <bob@example.org>`, "--cc=eve@example.org", "--body=x"}},
		{"a field twice", "To: a@example.org\nTo: b@example.org\n\nx", []string{"--to=a@example.org,b@example.org", "--body=x"}},
		{"files", "To: a@example.org\nAttach: /tmp/one.txt, /tmp/two.txt\n\nx", []string{"--to=a@example.org", "--attach=staged/one.txt,staged/two.txt", "--body=x"}},
		{"text that looks like an option", "To: a@example.org\nSubject: --to=eve@example.org\n\n--cc eve@example.org", []string{"--to=a@example.org", "--subject=--to=eve@example.org", "--body=--cc eve@example.org"}},
		{"a file that is not there", "To: a@example.org\nAttach: /missing\n\nx", nil},
		{"text where the empty line was", "To: a@example.org\nAttach:\nHello Ann:\nat 10:30?\n\n> x\n", []string{"--to=a@example.org", "--body=Hello Ann:\nat 10:30?\n\n> x"}},
		{"text alone", "Hello Ann,\n\nx", nil},
		{"no field of a letter", "To: a@example.org\nSubjcet: Lunch\n\nx", nil},
		{"a field without its colon", "To: a@example.org\nsubject Lunch\n\nx", nil},
		{"a field without its colon, but another sign", "To: a@example.org\nCC= b@example.org\n\nx", nil},
		{"a field with a space in its name", "To: a@example.org\nSub jet: Lunch\n\nx", nil},
		{"a field below text", "To: a@example.org\nHello Ann,\nSubject: Lunch\n\nx", nil},
		{"an editor that breaks a list", "To: a@example.org,\nb@example.org\n\nx", nil},
		{"an editor that loses the comma of a list", "To: a@example.org\nb@example.org\n\nx", nil},
		{"a field that a letter has not, without its colon", "To: a@example.org\nSubject: x\nBcc eve@example.org\nx", nil},
		{"a field that a letter has not", "To: a@example.org\nSubject: x\nBcc\u00a0: eve\nx", nil},
		{"no address", "To: Ann and Bob\n\nx", nil},
		{"a semicolon between addresses", "To: a@example.org; b@example.org\n\nx", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			removed := 0
			stage := func(_ context.Context, file string) (string, func(), error) {
				if file == "/missing" {
					return "", nil, errors.New("no such file")
				}
				return "staged/" + filepath.Base(file), func() { removed++ }, nil
			}
			l := newLetter([]string{"mail", "send"}, "To", "Cc", "Subject", "Attach")
			err := l.parse(tc.written)
			var tokens []string
			remove := func() {}
			if err == nil {
				tokens, remove, err = l.tokens(t.Context(), stage)
			}
			remove()
			if want := append([]string{"mail", "send"}, tc.want...); (err != nil) != (tc.want == nil) || err == nil && !slices.Equal(tokens, want) {
				t.Errorf("%q, %v", tokens, err)
			}
			if n := strings.Count(strings.Join(tokens, " "), "staged/"); removed != n {
				t.Errorf("%d of %d staged files were removed", removed, n)
			}
		})
	}
}

func TestANameOfAFileIsSafe(t *testing.T) {
	for given, want := range map[string]string{
		"plan.pdf": "plan.pdf", "../../etc/passwd": "passwd", `C:\temp\x.exe`: "x.exe", ".bashrc": "bashrc", "-rf": "rf", "": "attachment-1-2", "...": "attachment-1-2",
		"a\x1b[2Jb\u202egnp.exe": "a__2Jb_gnp.exe", "Übersicht 2026 (neu).pdf": "Übersicht 2026 (neu).pdf", "con.txt": "_con.txt", "a:b|c?.txt": "a_b_c_.txt",
		strings.Repeat("x", 300) + ".pdf": strings.Repeat("x", 196) + ".pdf",
		strings.Repeat("𠮷", 80) + ".pdf":  strings.Repeat("𠮷", 49) + ".pdf", "x." + strings.Repeat("y", 300): "x." + strings.Repeat("y", 198),
	} {
		if got := fileName(given, "1.2"); got != want {
			t.Errorf("%q becomes %q, want %q", given, got, want)
		}
	}
	dir := t.TempDir()
	for _, want := range []string{"a.txt", "a (2).txt", "a (3).txt"} {
		file, err := writeNew(dir, "a.txt", []byte(want))
		if text, _ := os.ReadFile(file); err != nil || filepath.Base(file) != want || string(text) != want {
			t.Errorf("%s, %v", file, err)
		}
	}
}
