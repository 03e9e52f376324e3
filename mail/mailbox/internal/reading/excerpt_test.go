package reading

import (
	"testing"
	"time"

	"github.com/postern-mail/postern/mail/mailbox/internal/fetch"
)

func TestExcerpts(t *testing.T) {
	const answer = "Content-Type: text/plain\n\nYes, at\nnoon.\n\nAnn wrote:\n> Shall we?\n> Ann\n\n-- \nBob\n"
	for _, tc := range []struct {
		raw   string
		chars int
		lines bool
		want  string
		cut   bool
	}{
		{answer, 100, false, "Yes, at noon. -- Bob", false},
		{answer, 12, false, "Yes, at…", false},
		{answer, 100, true, "Yes, at\nnoon.\n\n-- \nBob", false},
		{answer, 12, true, "Yes, at\nnoo…", true},
		{"\n> only\n> old", 100, true, "> only\n> old", false},
		{"\n> only\n> old", 100, false, "only old", false},
		{"Content-Type: image/png\n\nx", 100, false, "", false},
	} {
		m := (&Viewer{Now: time.Now}).ExcerptOf(Excerpt{Chars: tc.chars, Lines: tc.lines}, &fetch.Message{}, []byte(tc.raw)).Message
		if got := m.Snippet + m.BodyText; got != tc.want || m.BodyTruncated != tc.cut {
			t.Errorf("%d characters, lines %v of %q: %q, cut %v, want %q", tc.chars, tc.lines, tc.raw, got, m.BodyTruncated, tc.want)
		}
	}
}
