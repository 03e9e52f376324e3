package compose

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/postern-mail/postern/mail/internal/message"
	"github.com/postern-mail/postern/mail/internal/rfc5322"
)

func TestReplySubjectHasOnePrefixAndKeepsTheRest(t *testing.T) {
	for original, want := range map[string]string{
		"Hello":                               "Re: Hello",
		"Re: Hello":                           "Re: Hello",
		"re:Hello":                            "Re: Hello",
		"RE: Re: AW: Hello":                   "Re: Hello",
		"Re[2]: Hello":                        "Re: Hello",
		"Re^3: SV: Hello":                     "Re: Hello",
		"回复：Hello":                            "Re: Hello",
		"Fwd: Hello":                          "Re: Hello",
		"Re: WG: Antw: Hello":                 "Re: Hello",
		"":                                    "Re:",
		"Re:":                                 "Re:",
		"Re: Re: ":                            "Re:",
		"[Ticket 4711] Printer":               "Re: [Ticket 4711] Printer",
		"Re: [Ticket 4711] AW: Printer":       "Re: [Ticket 4711] Printer",
		"[list] Re: [list] Hello":             "Re: [list] Hello",
		"[list] [Ticket 1] Re: Hello [draft]": "Re: [list] [Ticket 1] Hello [draft]",
		"[list]":                              "Re: [list]",
		"[a] Re: [a]":                         "Re: [a] [a]",
		"[a] Re:":                             "Re: [a]",
		"[open Hello":                         "Re: [open Hello",
		"Note: Re: Hello":                     "Re: Note: Re: Hello",
		"Report: 12:30":                       "Re: Report: 12:30",
		"Refund":                              "Re: Refund",
		"  spaces   and\ttabs ":               "Re: spaces and tabs",
		"Hello\r\nBcc: eve@example.org":       "Re: Hello Bcc: eve@example.org",
		"Hel\u202elo\u200b":                   "Re: Hello",
	} {
		if got := ReplySubject(original); got != want {
			t.Errorf("%q: %q, want %q", original, got, want)
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
	for _, test := range []struct {
		name, header string
		parent       string
		references   []string
	}{
		{"first answer", "Message-ID: <a@x>", "a@x", []string{"a@x"}},
		{"later answer", "Message-ID: <c@x>\nReferences: <a@x>\n <b@x>", "c@x", []string{"a@x", "b@x", "c@x"}},
		{"In-Reply-To alone", "Message-ID: <b@x>\nIn-Reply-To: <a@x>", "b@x", []string{"a@x", "b@x"}},
		{"References count before In-Reply-To", "Message-ID: <c@x>\nReferences: <a@x>\nIn-Reply-To: <b@x>", "c@x", []string{"a@x", "c@x"}},
		{"In-Reply-To of two", "Message-ID: <c@x>\nIn-Reply-To: <a@x> <b@x>", "c@x", []string{"c@x"}},
		{"no id", "References: <a@x> <b@x>", "", []string{"a@x", "b@x"}},
		{"nothing", "Subject: x", "", nil},
		{"an id twice", "Message-ID: <b@x>\nReferences: <b@x> <a@x> <a@x>", "b@x", []string{"a@x", "b@x"}},
		{"odd ids as they are", "Message-ID: <no-at-sign>\nReferences: <1$2@x> <a@b@c> <[x]:y>", "no-at-sign", []string{"1$2@x", "a@b@c", "[x]:y", "no-at-sign"}},
		{"hostile ids", "Message-ID: <é@x>\nReferences: <a\x00@x> <=?utf-8?q?=0d=0aX:?=@x> <\u202ea@x> <" + strings.Repeat("a", maxID+1) + "> <a@x>", "", []string{"a@x"}},
		{"ids of two fields", "Message-ID: <a@x>\nMessage-ID: <b@x>", "a@x", []string{"a@x"}},
	} {
		parent, references := ReplyReferences(rfc5322.ParseHeader([]byte(test.header + "\n\n")))
		if parent != test.parent || !slices.Equal(references, test.references) {
			t.Errorf("%s: %q %q, want %q %q", test.name, parent, references, test.parent, test.references)
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
