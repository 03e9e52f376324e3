package compose

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail/internal/message"
	"github.com/postern-mail/postern/mail/internal/rfc5322"
)

func TestReplySubjectHasOnePrefixAndKeepsTheRest(t *testing.T) {
	for _, c := range testmain.Table[struct{ In, Want string }](t, "testdata/cases/reply_subject.txt") {
		if got := ReplySubject(c.In); got != c.Want {
			t.Errorf("%q: %q, want %q", c.In, got, c.Want)
		}
	}
}

// checkReplySubject checks that the subject of an answer stays in the conversation, can be
// sent, and does not change when answered again.
func checkReplySubject(t *testing.T, original string) {
	t.Helper()
	got := ReplySubject(original)
	if again := ReplySubject(got); again != got {
		t.Errorf("%q, answered twice %q", got, again)
	}
	if !strings.HasPrefix(got, "Re:") {
		t.Errorf("%q is no answer", got)
	}
	// An empty subject belongs to no conversation.
	base, _ := message.BaseSubject(original)
	if answered, _ := message.BaseSubject(got); base != "" && len([]rune(original)) <= maxReplySubject && answered != base {
		t.Errorf("%q to %q leaves the conversation: %q, not %q", got, original, answered, base)
	}
	m := sample()
	m.Subject = got
	if _, err := Build(m); err != nil {
		t.Errorf("%q cannot be sent: %v", got, err)
	}
}

func FuzzReplySubject(f *testing.F) {
	for _, s := range []string{"Hello", "Re: [Ticket 1] AW: x", "[fwd: x]", "[list] Re[2]: x (fwd)", "回复：会议", "Re: [a] b", "[a]", "[a] [b]", "Re: [Fwd: x]",
		"Re", ":", "Re: : x", strings.Repeat("会", 5000), strings.Repeat("Re: ", 3000), strings.Repeat("[a]", 3000)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) { checkReplySubject(t, s) })
}

func TestReplyReferences(t *testing.T) {
	for _, test := range testmain.Table[struct {
		Name, Header string
		Parent       string
		References   []string
	}](t, "testdata/cases/references.txt") {
		parent, references := ReplyReferences(rfc5322.ParseHeader([]byte(test.Header + "\n\n")))
		if parent != test.Parent || !slices.Equal(references, test.References) {
			t.Errorf("%s: %q %q, want %q %q", test.Name, parent, references, test.Parent, test.References)
		}
	}
}

func TestReplyReferencesAreBounded(t *testing.T) {
	for _, size := range []int{1, 60, 400} {
		ids := list(140, func(i int) string { return fmt.Sprintf("%03d%s@x", i, strings.Repeat("a", size)) })
		header := "Message-ID: <own@x>\nReferences: <" + strings.Join(ids[:70], "> <") + ">\nReferences: <" + strings.Join(ids[70:], "> <") + ">\n\n"
		parent, references := ReplyReferences(rfc5322.ParseHeader([]byte(header)))
		if n := len(references); n < 5 || n > maxReferences || parent != "own@x" || references[n-1] != "own@x" || references[0] != ids[0] || references[n-2] != ids[139] {
			t.Fatalf("ids of %d: %d references from %q to %q", size, n, references[0], references[n-1])
		}
		m := sample()
		m.InReplyTo, m.References = parent, references
		if got := len(field(build(t, m).Wire, "References")); got > maxReferenceBytes {
			t.Errorf("ids of %d: %d bytes", size, got)
		}
	}
}
