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
	for _, c := range testmain.Table[struct{ Given, Want string }](t, "testdata/cases/names.txt") {
		if got := fileName(c.Given, "1.2"); got != c.Want {
			t.Errorf("%q becomes %q, want %q", c.Given, got, c.Want)
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
