package reading

import (
	"fmt"
	"html"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/message"
	"github.com/postern-mail/postern/mail/internal/rfc5322"
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

// What Get masks of the messages of the corpora, in the forms that programs send, their source
// does not show, nor does a list show it in the subject.
func TestWhatIsMaskedIsNowhereElse(t *testing.T) {
	policy, err := mail.CompilePolicy(&mail.Account{Protocol: mail.IMAP})
	if err != nil {
		t.Fatal(err)
	}
	v := &Viewer{Policy: Judge{Policy: policy}, Now: time.Now}
	terms := "A discount code is no gift card code. Order 12345, invoice 67890, line 4711.\n" + strings.Repeat("Nothing else is said here. ", 50)
	masked := 0
	for _, file := range []string{"codes.txt", "heldout.txt", "honest.txt"} {
		b, err := os.ReadFile("../../../internal/codes/testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range strings.Split(string(b), "\n=====\n")[1:] {
			head, text, _ := strings.Cut(s, "\n\n")
			subject, _, _ := strings.Cut(strings.TrimPrefix(head, "Subject: "), "\n")
			const kind = "Content-Type: text/%s; charset=utf-8\n\n%s\n"
			plain, page := fmt.Sprintf(kind, "plain", text), fmt.Sprintf(kind, "html", "<div>"+strings.ReplaceAll(html.EscapeString(text), "\n", "<br>\n")+"</div>")
			for _, body := range []string{plain, page,
				"Content-Type: multipart/alternative; boundary=b\n\n--b\n" + plain + "--b\n" + page + "--b--\n",
				"Content-Type: multipart/mixed; boundary=b\n\n--b\n" + plain + "--b\nContent-Disposition: attachment; filename=terms.txt\n" + fmt.Sprintf(kind, "plain", terms) + "--b--\n",
			} {
				raw := []byte("From: ann@example.org\nSubject: " + subject + "\nMIME-Version: 1.0\n" + body)
				g := fetch.Message{Header: rfc5322.ParseHeader(message.HeaderOf(raw)), Readable: true, Whole: true, Internal: time.Now()}
				r := &Reading{Viewer: v, Query: GetQuery{BodyChars: 2000}}
				if r.ReadWhole(g, raw); r.Masked.Any() {
					masked++
					if !v.MaskedIn(&g, raw).Any() {
						t.Errorf("%s: the source is shown of %q, with %q: %.60q", file, subject, r.Masked.Codes, body)
					}
				}
				if s := v.Summary(&g, false); r.Masked.Mask(s.Subject) != s.Subject {
					t.Errorf("%s: a list shows %q, with %q", file, s.Subject, r.Masked.Codes)
				}
			}
		}
	}
	if masked < 4*200 {
		t.Errorf("only of %d messages something is masked", masked)
	}
}
