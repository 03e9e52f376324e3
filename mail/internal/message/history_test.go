package message

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail/internal/quoted"
	"github.com/postern-mail/postern/mail/internal/rfc5322"
)

// textOf returns the text of a plain message.
func textOf(s string, n int) (string, bool) {
	e := Parse([]byte("Content-Type: text/plain; charset=utf-8\n\n" + s))
	return Text(e.Root, e.Raw, n)
}

func textOfHTML(s string, n int) (string, bool) {
	e := Parse([]byte("Content-Type: text/html; charset=utf-8\n\n" + s))
	return Text(e.Root, e.Raw, n)
}

// reading is the whole text of a plain message or of HTML.
func reading(s, subtype string) *Reading {
	e := Parse([]byte("Content-Type: text/" + subtype + "; charset=utf-8\n\n" + s))
	return Read(nil, e.Root, e.Raw, 1_000_000)
}

// linesOf are the lines of a text whose history is marked.
func linesOf(text string) []quoted.Line { return quoted.Tidy(quoted.Plain(text, true), 2) }

// holds reports whether a text has the lines of another, in their order.
func holds(text, lines string) bool {
	all := strings.Split(text, "\n")
	for line := range strings.SplitSeq(lines, "\n") {
		i := slices.Index(all, line)
		if i < 0 {
			return false
		}
		all = all[i+1:]
	}
	return true
}

// History is recognized in the answers of many mail programs. Lines of Want that begin with
// ">" are history.
func TestTextMarksHistory(t *testing.T) {
	for _, tc := range readTable[struct{ Name, Text, Want string }](t, "history_text") {
		t.Run(tc.Name, func(t *testing.T) {
			if got, cut := textOf(tc.Text, 10_000); got != tc.Want || cut {
				t.Errorf("got, %v:\n%s\nwant:\n%s", cut, got, tc.Want)
			}
		})
	}
}

// The text below the header that Outlook inserts is history in an answer, and new in a
// forwarded message.
func TestTextOfForwardsByTheirSubject(t *testing.T) {
	const body = "\n\nFYI\n\nFrom: Ann <ann@example.org>\nSent: Monday\nTo: Bob\nSubject: Lunch\n\nShall we?"
	for subject, history := range map[string]bool{"RE: Lunch": true, "Lunch": true, "FW: Lunch": false, "WG: Essen": false, "Re: Fwd: Lunch": true, "=?utf-8?q?Fwd=3A_Lunch?=": false} {
		e := Parse([]byte("Subject: " + subject + body))
		got, _ := Text(e.Root, e.Raw, 1000)
		if strings.Contains(got, "\n> From: Ann") != history || strings.Contains(got, "\nFrom: Ann") == history {
			t.Errorf("%s: history %v in %q", subject, !history, got)
		}
		other := NewPart(Part{ID: "1", Type: "text", Subtype: "plain", Forward: IsForward(rfc5322.DecodeHeader(subject))}, nil)
		if same, _ := Text(other, func(*Part) []byte { return e.Raw(e.Root) }, 1000); same != got {
			t.Errorf("%s: %q of a tree from elsewhere, %q of one made here", subject, same, got)
		}
	}
}

// The text of a part can be history because of new text in the part before it.
func TestHistoryAcrossParts(t *testing.T) {
	for _, tc := range testmain.Table[struct{ Name, Raw, Want string }](t, "testdata/cases/history_parts.txt") {
		e := Parse([]byte(tc.Raw))
		if got, cut := Text(e.Root, e.Raw, 1000); got != tc.Want || cut {
			t.Errorf("%s: %q, %v, want %q", tc.Name, got, cut, tc.Want)
		}
	}
}

// attributions are lines with which programs name the author of what they quote.
func attributions(t *testing.T) []struct{ Text string } {
	return testmain.Table[struct{ Text string }](t, "testdata/cases/attribution.txt")
}

func TestAttributionsInManyLanguages(t *testing.T) {
	for _, line := range attributions(t) {
		a := line.Text
		text := "Yes.\n\n" + a + "\n> Shall we?"
		if r := reading(text, "plain"); r.New() != "Yes." {
			t.Errorf("%s is new: %q", a, r.New())
		}
		if got, _ := textOf(text, 1000); got != strings.ReplaceAll(text, "\u00A0", " ") && got != text {
			t.Errorf("%s is not shown as it was written: %q", a, got)
		}
		// Wrapped at any space.
		for i, c := range a {
			if c != ' ' || i < len(a)/4 || i > len(a)-8 || !strings.Contains(a, "@") {
				continue
			}
			wrapped := a[:i] + "\n" + a[i+1:]
			if got := reading("Yes.\n\n"+wrapped+"\n> Shall we?", "plain").New(); got != "Yes." {
				t.Errorf("%q leaves %q as new", wrapped, got)
			}
		}
	}
}

func TestOtherLinesAreNotAttributions(t *testing.T) {
	for _, tc := range testmain.Table[struct{ Text string }](t, "testdata/cases/no_attribution.txt") {
		if got := reading(tc.Text+"\n> Shall we?", "plain").New(); got != tc.Text {
			t.Errorf("%q is taken for an attribution: %q", tc.Text, got)
		}
	}
}

func TestHTMLMarksHistory(t *testing.T) {
	for _, tc := range readTable[struct{ Name, HTML, Want string }](t, "history_html") {
		t.Run(tc.Name, func(t *testing.T) {
			if got, cut := textOfHTML(tc.HTML, 10_000); got != tc.Want || cut {
				t.Errorf("got, %v:\n%s\nwant:\n%s", cut, got, tc.Want)
			}
		})
	}
}

// The HTML parser gives up below so many open elements.
func TestHistoryInDeepNesting(t *testing.T) {
	got, cut := textOfHTML("<p>Yes.</p><blockquote><p>Shall we?</p></blockquote>"+strings.Repeat("<div>", 600)+"x", 1000)
	if want := "Yes.\n\n> Shall we?"; got != want || !cut {
		t.Errorf("%q, cut %v, want %q", got, cut, want)
	}
	if got := reading("Yes."+strings.Repeat("<blockquote>a", 400), "html").New(); got != "Yes." {
		t.Errorf("text in deep quotations is new: %q", got)
	}
}

func TestNewTextGoesFirst(t *testing.T) {
	for _, tc := range readTable[struct {
		Name, Text string
		N          int
		Want       string
	}](t, "history_fit") {
		t.Run(tc.Name, func(t *testing.T) {
			got, cut := textOf(tc.Text, tc.N)
			whole, _ := textOf(tc.Text, 1_000_000)
			if got != tc.Want || cut != (got != whole) {
				t.Errorf("of %d runes, %v:\n%s\nwant:\n%s", tc.N, cut, got, tc.Want)
			}
		})
	}
}

// At every length the new text is whole if it fits, else its beginning is there, and the
// shortest text with all of its notes is returned as soon as it fits.
func TestEveryLength(t *testing.T) {
	for _, tc := range testmain.Table[struct{ Text, Notes string }](t, "testdata/cases/history_length.txt") {
		full, _ := textOf(tc.Text, 10_000)
		fresh := reading(tc.Text, "plain").New()
		for n := range utf8.RuneCountInString(full) {
			got, cut := textOf(tc.Text, n)
			if !cut || utf8.RuneCountInString(got) > n {
				t.Errorf("%d runes of %q: %q, %v", n, full, got, cut)
			}
			if n >= len(fresh) && quoted.New(linesOf(got)) != fresh {
				t.Errorf("%d runes of %q: %q", n, full, got)
			}
			if n < len(fresh) && got != fresh[:n] {
				t.Errorf("%d runes of %q: %q", n, full, got)
			}
		}
		if got, _ := textOf(tc.Text, len(tc.Notes)); got != tc.Notes {
			t.Errorf("%q, want %q", got, tc.Notes)
		}
	}
}

// New text below a long history is found.
func TestNewTextBelowLongHistory(t *testing.T) {
	long := strings.Repeat("> what was said before, at some length\n", 5000)
	got, cut := textOf(long+"\nYes.", 100)
	if !strings.HasSuffix(got, "lines left out]\n\nYes.") || !cut {
		t.Errorf("%q, %v", got, cut)
	}
	got, cut = textOfHTML("<blockquote>"+strings.Repeat("<p>what was said before, at some length</p>", 3000)+"</blockquote><p>Yes.</p>", 100)
	if !strings.HasSuffix(got, "lines left out]\n\nYes.") || !cut {
		t.Errorf("%q, %v", got, cut)
	}
}

// A prefix with enough new text gives the same result as the whole.
func TestPrefixGivesTheSame(t *testing.T) {
	answer := strings.Repeat("This is what I think of it. ", 10)
	for _, a := range append(attributions(t), struct{ Text string }{"-----Original Message-----"}) {
		text := answer + "\n\n" + a.Text + "\n> Shall we?\n" + strings.Repeat("> and more of that\n", 50)
		e := Parse([]byte("Content-Type: text/plain; charset=utf-8\n\n" + text))
		want, _ := Text(e.Root, e.Raw, 200)
		for n := 250; n < len(text); n += 29 {
			got, cut := Text(e.Root, func(p *Part) []byte { return e.Raw(p)[:n] }, 200)
			if got != want || !cut {
				t.Errorf("%d octets give %q, %v, the whole %q", n, got, cut, want)
			}
		}
	}
}

func TestNewText(t *testing.T) {
	for _, tc := range testmain.Table[struct{ Text, Want string }](t, "testdata/cases/new_text.txt") {
		if got := quoted.New(linesOf(tc.Text)); got != tc.Want {
			t.Errorf("quoted.New(%q) = %q, want %q", tc.Text, got, tc.Want)
		}
	}
}

func TestOpening(t *testing.T) {
	for _, tc := range testmain.Table[struct {
		Text string
		N    int
		Want string
	}](t, "testdata/cases/opening.txt") {
		if got := quoted.Opening(linesOf(tc.Text), tc.N); got != tc.Want {
			t.Errorf("quoted.Opening(%.40q, %d) = %q, want %q", tc.Text, tc.N, got, tc.Want)
		}
	}
	if got := reading("Yes.\n\nAnn Lee wrote:\n> Shall we?\n\n-- \nBob", "plain").Opening(100); got != "Yes. -- Bob" {
		t.Errorf("the line that names the author of history is new: %q", got)
	}
}

// What is plain text is shown as it was written.
func TestTextAsWritten(t *testing.T) {
	for _, tc := range testmain.Table[struct{ Text string }](t, "testdata/cases/as_written.txt") {
		if got, cut := textOf(tc.Text, 1000); got != tc.Text || cut {
			t.Errorf("%q became %q", tc.Text, got)
		}
	}
}

// Pages give the whole text, each rune of it, whatever the first one leaves out.
func TestPagesGiveTheWholeText(t *testing.T) {
	for _, tc := range testmain.Table[struct{ Text string }](t, "testdata/cases/pages.txt") {
		r := reading(tc.Text, "plain")
		whole, _ := r.Page(0, 1_000_000)
		for _, n := range []int{100, 137, 1000} {
			first, next := r.Page(0, n)
			runes := []rune(whole)
			rest := string(runes[:max(next-1, 0)])
			if !strings.HasPrefix(first, rest) {
				t.Errorf("%.20q: the first page %q does not begin with what it is said to give, %q", tc.Text, first, rest)
			}
			for next > 0 {
				page, behind := r.Page(next, n)
				if behind != 0 && behind <= next || utf8.RuneCountInString(page) > n || page == "" {
					t.Fatalf("%.20q: page %q from %d, then %d", tc.Text, page, next, behind)
				}
				rest, next = rest+page, behind
			}
			if rest != whole {
				t.Errorf("%.20q by %d: the pages give\n%q\nwant\n%q", tc.Text, n, rest, whole)
			}
		}
		for _, beyond := range []int{len([]rune(whole)) + 1, 1 << 30} {
			if page, next := r.Page(beyond, 100); page != "" || next != 0 {
				t.Errorf("%.20q: %q, %d beyond the end", tc.Text, page, next)
			}
		}
	}
}

func FuzzQuote(f *testing.F) {
	f.Add("Yes.\n\nOn Mon, 4 May 2026 at 10:00, Ann Lee <ann@example.org> wrote:\n> Shall we?\n", 20, false)
	f.Add("a\n-----Original Message-----\nFrom: x\nSent: y\nTo: z\nSubject: w\n\nb\n>>c", 40, true)
	f.Add("> a\n\nb\n\n\n> c\n> d\ne", 9, false)
	f.Fuzz(func(t *testing.T, s string, n int, html bool) {
		n = min(max(n, 0), 2000)
		read := func(n int) (string, bool) {
			if html {
				return textOfHTML(s, n)
			}
			return textOf(s, n)
		}
		full, _ := read(1_000_000)
		got, cut := read(n)
		if utf8.RuneCountInString(got) > n || !utf8.ValidString(got) || plain.Text(got) != got {
			t.Fatalf("%q of at most %d runes", got, n)
		}
		if !cut && got != full {
			t.Errorf("%q is not cut, but the whole is %q", got, full)
		}
		subtype := "plain"
		if html {
			subtype = "html"
		}
		r := reading(s, subtype)
		fresh := r.New()
		switch {
		case fresh == "":
		case utf8.RuneCountInString(fresh) <= n && !holds(got, fresh):
			t.Errorf("new text is lost: %q of %q, where %q is new", got, full, fresh)
		case utf8.RuneCountInString(fresh) > n && !strings.HasPrefix(fresh, got):
			t.Errorf("%q stands for %q, where %q is new", got, full, fresh)
		}
		one := r.Opening(n)
		if utf8.RuneCountInString(one) > n || strings.ContainsAny(one, "\n\t") || !utf8.ValidString(one) {
			t.Errorf("Opening = %q, at most %d", one, n)
		}
		var pages strings.Builder
		for at, size := 1, max(n, plain.MaxCluster); at > 0; {
			var page string
			page, at = r.Page(at, size)
			pages.WriteString(page)
		}
		if pages.String() != full {
			t.Errorf("the pages give %q, want %q", pages.String(), full)
		}
		if html {
			return
		}
		// Marking a marked text again makes no history new, except where a forwarded
		// message loses its quotation marks.
		if again := reading(full, "plain").New(); !strings.Contains(s, "orward") && len(again) > len(fresh) {
			t.Errorf("history becomes new: %q, then %q", full, again)
		}
		for line := range strings.SplitSeq(strings.ReplaceAll(plain.Text(s), "\u00A0", " "), "\n") {
			if body := strings.TrimSpace(strings.TrimLeft(line, "> ")); strings.HasPrefix(line, "> ") && body != "" && !strings.ContainsAny(body, "＞") && !strings.Contains(s, "orward") && utf8.ValidString(s) {
				if strings.Contains("\n"+fresh+"\n", "\n"+line+"\n") {
					t.Errorf("history is new: %q", line)
				}
			}
		}
	})
}
