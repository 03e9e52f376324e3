package prompt

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/postern-mail/postern/internal/testmain"
)

func TestALetterIsReadAsItWasWritten(t *testing.T) {
	l := newLetter([]string{"mail", "send"}, "To", "Cc", "Subject", "Attach")
	l.values["To"], l.text = "ann@example.org", "\n> quoted\n"
	if got := l.format(); got != "To: ann@example.org\nCc:\nSubject:\nAttach:\n\n\n> quoted\n" {
		t.Errorf("%q", got)
	}
	for _, tc := range testmain.Table[struct {
		Name, Written string
		Want          []string
	}](t, "testdata/cases/letter.txt") {
		t.Run(tc.Name, func(t *testing.T) {
			removed := 0
			stage := func(_ context.Context, file string) (string, func(), error) {
				if file == "/missing" {
					return "", nil, errors.New("no such file")
				}
				return "staged/" + filepath.Base(file), func() { removed++ }, nil
			}
			l := newLetter([]string{"mail", "send"}, "To", "Cc", "Subject", "Attach")
			err := l.parse(tc.Written)
			var tokens []string
			remove := func() {}
			if err == nil {
				tokens, remove, err = l.tokens(t.Context(), stage)
			}
			remove()
			if want := append([]string{"mail", "send"}, tc.Want...); (err != nil) != (tc.Want == nil) || err == nil && !slices.Equal(tokens, want) {
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
