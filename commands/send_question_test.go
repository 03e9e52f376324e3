package commands

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/outbox"
)

func letter(body string) *outbox.Decision {
	return &outbox.Decision{Here: true, Body: body, HeaderFrom: mail.Address{Name: "Help Desk", Addr: "desk@example.org"}, Outgoing: mail.Outgoing{ID: "0123abcd", Account: "work", State: mail.OutboxWaiting, From: "desk@example.org",
		Recipients: []string{"ann@example.org", "bob@example.com", "carl@example.net", "dora@example.net"},
		To:         []mail.Address{{Name: "Ann Lee", Addr: "ann@example.org"}, {Addr: "bob@example.com"}}, CC: []mail.Address{{Name: "boss@example.org", Addr: "carl@example.net"}},
		BCC: []mail.Address{{Addr: "dora@example.net"}}, Subject: "Lunch on Friday", Digest: "0123456789abcdef0123456789abcdef"},
		Files: []outbox.ShownFile{{FileName: mail.FileName{Name: "menu.pdf", Type: "application/pdf", Size: 12345}}}}
}

func TestAQuestionShowsAllThatWouldLeave(t *testing.T) {
	want := `Send this message? Nothing leaves unless you approve it.

From:    desk@example.org, called "Help Desk", account work
To:      ann@example.org, called "Ann Lee"
To:      bob@example.com
Cc:      carl@example.net, called "boss@example.org"
Bcc:     dora@example.net
Subject: "Lunch on Friday"
File:    "menu.pdf", application/pdf, 12345 bytes
Outbox:  0123abcd
Why:     mode approve: a person decides about each message of work

The agent wrote or quotes this text, on the lines that begin with >:

> Shall we say noon?
>
> Yours
`
	if got, _ := questionText(letter("Shall we say noon?\r\n\r\nYours\r\n")); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got, _ := questionText(letter("\n")); !strings.HasSuffix(got, "\nThe message has no text.\n") {
		t.Errorf("got\n%s", got)
	}
	s := letter("*Yours*")
	s.Markdown = true
	if got, ok := questionText(s); !ok || !strings.Contains(got, "\nHTML:    made of this text as Markdown, goes beside it\nOutbox:") {
		t.Errorf("asked %v\n%s", ok, got)
	}
	s.Markdown, s.HTML = false, "Another text."
	if got, ok := questionText(s); ok {
		t.Errorf("asked about HTML that the text does not say:\n%s", got)
	}
}

func TestAQuestionNamesEveryRecipientOfTheEnvelope(t *testing.T) {
	s := letter("x")
	s.To, s.CC, s.BCC = []mail.Address{{Name: `Ann "Bo" <bob@example.com>`, Addr: "ann@example.org"}, {Name: "undisclosed"}}, nil, nil
	got, _ := questionText(s)
	for _, r := range s.Recipients {
		if !strings.Contains(got, r) {
			t.Errorf("%s is not there:\n%s", r, got)
		}
	}
	for _, line := range []string{`To:      ann@example.org, called "Ann \"Bo\" \<bob@example.com>"`, `To:      no address, called "undisclosed"`, "Goes to: bob@example.com"} {
		if !strings.Contains(got, line+"\n") {
			t.Errorf("no line %q in\n%s", line, got)
		}
	}
}

// Who decides about an answer sees that it goes elsewhere than to the sender.
func TestQuestionTellsOfAnswersThatGoElsewhere(t *testing.T) {
	s := letter("Yes.")
	if s.Elsewhere = true; !strings.Contains(strings.ReplaceAll(mustAsk(t, s), "\n        > ", ""), "goes elsewhere than to the sender of the message that it answers") {
		t.Errorf("the question is\n%s", mustAsk(t, s))
	}
}

func mustAsk(t *testing.T, s *outbox.Decision) string {
	t.Helper()
	got, ok := questionText(s)
	if !ok {
		t.Fatal("no question")
	}
	return got
}

// Nobody is asked about what a question cannot show whole.
func TestNobodyIsAskedAboutATextThatIsNotShownWhole(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		fits bool
	}{
		"fits":                  {strings.Repeat("é", maxQuestionChars), true},
		"a character too long":  {strings.Repeat("é", maxQuestionChars+1), false},
		"lines fit":             {strings.Repeat("x\n", maxQuestionLines), true},
		"a line too many":       {strings.Repeat("x\n", maxQuestionLines) + "y", false},
		"nothing but line ends": {strings.Repeat("\n", 5000) + "the point", false},
		"a comment":             {"a <!-- b\nc --> d", false},
		"a tag":                 {"x <b hidden>y</b>", false},
		"the end of a tag":      {"x </b>", false},
		"a tag over two lines":  {"x <img\nsrc=y>", false},
		"an instruction":        {"x <?y?>", false},
		"what a link refers to": {"x\n  [0]: https://example.org/ 'y'", false},
		"the same in a quote":   {"x\n> [0]: https://example.org/", false},
		"addresses and links":   {"From <ann@example.org>, see <https://example.org/> and [1]", true},
		"arithmetic":            {"a < b, 1 <2, <- and <3", true},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := questionText(letter(c.body))
			if ok != c.fits || ok && !strings.Contains(got, "> "+c.body[:1]) || !ok && got != "" {
				t.Errorf("fits %t:\n%.1500s", ok, got)
			}
		})
	}
}

// FuzzQuestion writes hostile text into all that an agent can write, and looks for
// anything of it that stands where the question itself stands.
func FuzzQuestion(f *testing.F) {
	for _, seed := range []string{
		"Hello\n\nSend this message? Nothing leaves unless you approve it.\nTo:      boss@example.org",
		"a\rTo: x\u2028Bcc: y\u2029Subject: z\u0085Digest:\vFrom:\f",
		"\u202eegassem siht dneS\u202c", "a\u200bb\u2060c\ufeffd\u00ade\u034ff\u180eg\u115fh\u3164i\u2800j", "\U000e0041\U000e0042\U000e007f", "\x1b[2J\x1b[1;1H\x00\x07\x7f",
		strings.Repeat("a\u0301\u0302\u0303\u0304\u0305\u0306", 40), strings.Repeat(" ", 5000) + "Bcc: me", strings.Repeat("寿", 100), "\xff\xfe broken", `" (account other)`, strings.Repeat("> ", 200),
		strings.Repeat("x", 65) + " " + strings.Repeat("y", 70), "\ue000\uf8ff", "👨‍👩‍👧 ❤️", "\u0601 123", "x <b hidden>y</b>",
	} {
		f.Add(seed, seed, seed)
	}
	bare, _ := questionText(&outbox.Decision{Outgoing: mail.Outgoing{ID: "0123abcd", Account: "work", From: "desk@example.org", Digest: "0123456789abcdef"}})
	plain := strings.Split(bare, "\n")
	f.Fuzz(func(t *testing.T, name, subject, body string) {
		s := &outbox.Decision{Body: body, Outgoing: mail.Outgoing{To: []mail.Address{{Name: name, Addr: "ann@example.org"}}, ID: "0123abcd", Account: "work", From: "desk@example.org", Recipients: []string{"ann@example.org"}, Subject: subject, Digest: "0123456789abcdef"},
			Files: []outbox.ShownFile{{FileName: mail.FileName{Name: name, Type: "text/plain"}}}}
		got, ok := questionText(s)
		if !ok { // nobody is asked about what is not shown whole
			if got != "" {
				t.Fatalf("no question, and yet %q", got)
			}
			return
		}
		if !utf8.ValidString(got) {
			t.Fatalf("not valid UTF-8: %q", got)
		}
		if !strings.Contains(got, "ann@example.org") {
			t.Fatalf("the recipient is not there:\n%s", got)
		}
		seen := map[string]int{}
		for line := range strings.SplitSeq(strings.TrimSuffix(got, "\n"), "\n") {
			for _, r := range line {
				// The marks before numbers in Arabic and Syriac are seen.
				hidden := unicode.Is(unicode.Cf, r) && !unicode.Is(unicode.Prepended_Concatenation_Mark, r)
				if r < ' ' || r >= 0x7f && r < 0xa0 || hidden || r == '\u2028' || r == '\u2029' {
					t.Fatalf("%U in %q", r, line)
				}
			}
			wide := 0
			for _, r := range line {
				wide += columnsOf(r)
			}
			text, own := strings.CutPrefix(line, ">")
			switch {
			case own:
				if wide > questionWidth+len("> ") {
					t.Fatalf("a line of %d columns: %q", wide, text)
				}
			case strings.HasPrefix(line, "        > "):
				if wide > questionWidth+10 {
					t.Fatalf("a line of %d columns: %q", wide, line)
				}
			default:
				label, _, _ := strings.Cut(line, " ")
				seen[label]++
				if wide > questionWidth+9 && !strings.HasPrefix(line, "Send this") {
					t.Fatalf("a line of %d columns: %q", wide, line)
				}
			}
		}
		for label, n := range seen {
			switch label {
			case "From:", "To:", "Subject:", "File:", "Outbox:", "Why:", "Send":
				if n != 1 {
					t.Fatalf("%d lines begin with %s:\n%s", n, label, got)
				}
			case "", "The":
			default:
				t.Fatalf("a line begins with %q:\n%s", label, got)
			}
		}
		if plain[0] != strings.SplitN(got, "\n", 2)[0] {
			t.Fatalf("it begins with %q", got)
		}
	})
}

func BenchmarkQuestion(b *testing.B) {
	s := letter(strings.Repeat("Some words of a letter. ", 40_000))
	b.ReportAllocs()
	for b.Loop() {
		questionText(s)
	}
}
