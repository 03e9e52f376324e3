package compose

import (
	"strings"
	"testing"

	"github.com/postern-mail/postern/mail/internal/message"
)

func words(n int) string { return strings.TrimSuffix(strings.Repeat("word ", n), " ") }

func TestLayout(t *testing.T) {
	url := "https://example.org/" + strings.Repeat("a/b?c=d&", 12)
	kanji := strings.Repeat("会議の議事録", 20)
	for _, test := range []struct {
		name, body string
		want       string // with LF and without the last one
		flowed     bool
	}{
		{"nothing", "", "", false},
		{"a line end is added", "a", "a", false},
		{"line ends of all kinds", "a\r\nb\rc\nd", "a\nb\nc\nd", false},
		{"empty lines stay", "\n\na\n\n\n", "\n\na\n\n", false},
		{"spaces at line ends go", "a  \nb \t \n   \nc", "a\nb\n\nc", false},
		{"the signature separator keeps its space", "a\n-- \nAnn", "a\n-- \nAnn", false},
		{"and only it", "a\n --  \n--  \n> -- \n--- ", "a\n --\n--\n> --\n---", false},
		{"lines of 78 columns stay", strings.Repeat("x ", 38) + "xx", strings.Repeat("x ", 38) + "xx", false},
		{"indents are not touched without need", "  a\nFrom b\n>c", "  a\nFrom b\n>c", false},
		{"79 columns are wrapped", words(16), words(15) + " \nword", true},
		{"wrapped at 76 with the space", strings.Repeat("x", 75) + " yyy", strings.Repeat("x", 75) + " \nyyy", true},
		{"not at 77", "ww " + strings.Repeat("x", 73) + " yyy", "ww \n" + strings.Repeat("x", 73) + " \nyyy", true},
		{"where flowed, indents are stuffed", words(16) + "\n  a\nFrom b\n\tc", words(15) + " \nword\n   a\n From b\n\tc", true},
		{"but quotations are not", words(16) + "\n>a\n> b\n>> c\n > d", words(15) + " \nword\n>a\n> b\n>> c\n  > d", true},
		{"runs of spaces stay with the line above", words(15) + "    word", words(15) + "    \nword", true},
		{"a link is not parted", "see " + url + " there", "see \n" + url + " \nthere", true},
		{"nor a link alone", url, url, false},
		{"nor text without spaces", kanji, kanji, false},
		{"wide characters have two columns", strings.Repeat("会議 ", 16), strings.TrimSuffix(strings.Repeat("会議 ", 15), " ") + " \n会議", true},
		{"marks have none", strings.TrimSuffix(strings.Repeat("e\u0301e\u0301 ", 26), " "), strings.TrimSuffix(strings.Repeat("e\u0301e\u0301 ", 26), " "), false},
		{"a quotation is wrapped with its marks", ">> " + words(17), ">> " + words(14) + " \n>> " + words(3), true},
		{"marks in another form are not", "> > " + words(17), "> > " + words(17), false},
		{"nor marks without a space", ">" + words(17), ">" + words(17), false},
		{"nor indented quotations", ">  " + words(17), ">  " + words(17), false},
		{"nor very deep ones", strings.Repeat(">", 53) + " " + words(17), strings.Repeat(">", 53) + " " + words(17), false},
		{"no line begins with a mark by itself", words(15) + " > > " + words(3), words(14) + " \nword > > " + words(3), true},
		{"nor with From", words(15) + " From " + words(3), words(14) + " \nword From " + words(3), true},
		{"no signature separator is made", "-- " + strings.Repeat("x", 90), "-- " + strings.Repeat("x", 90), false},
		{"nor in a quotation", "> -- " + strings.Repeat("x", 90) + " y", "> -- " + strings.Repeat("x", 90) + " \n> y", true},
		{"no line is nothing but spaces", strings.Repeat(" ", 90) + "x " + words(3), " " + strings.Repeat(" ", 90) + "x \n" + words(3), true},
		{"a form feed stays", "a\n\fb", "a\n\fb", false},
		{"bidi marks in text stay", "a\u200fb", "a\u200fb", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			text, flowed, err := layout(test.body)
			must(t, err)
			want := strings.ReplaceAll(test.want+"\n", "\n", "\r\n")
			if test.body == "" {
				want = ""
			}
			if string(text) != want || flowed != test.flowed {
				t.Errorf("flowed %v\n%q, want %v\n%q", flowed, text, test.flowed, want)
			}
			if flowed {
				if got := message.Flowed(string(text), false); got != written(test.body, true) {
					t.Errorf("joined again it is %q, want %q", got, written(test.body, true))
				}
			}
			m := sample()
			m.Body = test.body
			build(t, m)
		})
	}
}

// The time to wrap grows with the text, not with its square.
func TestHugeLinesAreLaidOut(t *testing.T) {
	t.Parallel()
	for _, unit := range []string{"word ", "> ", "x", " ", "会", "e\u0301 ", "a\u0301", "> a ", ">", "From ", "-- ", "\t"} {
		body := strings.Repeat(unit, 1<<20/len(unit))
		text, flowed, err := layout(body)
		must(t, err)
		got := strings.ReplaceAll(string(text), "\r\n", "\n")
		if flowed {
			got = message.Flowed(got, false)
		}
		if got != written(body, flowed) {
			t.Errorf("a line of %q is not joined again", unit)
		}
	}
}

func TestTransferEncodings(t *testing.T) {
	for _, test := range []struct{ name, body, want string }{
		{"ASCII", "plain\n", "7bit"},
		{"ASCII that is wrapped", longText, "7bit"},
		{"998 octets in a line", strings.Repeat("x", 998), "7bit"},
		{"999 octets in a line", strings.Repeat("x", 999), "quoted-printable"},
		{"a mailbox separator", "From here", "quoted-printable"},
		{"a mailbox separator that is stuffed", "From here\n" + longText, "7bit"},
		{"few letters outside ASCII", "The résumé is here.", "quoted-printable"},
		{"many", "Протокол заседания", "base64"},
		{"kanji", "会議の議事録", "base64"},
	} {
		m := sample()
		m.Body = test.body
		if got := field(build(t, m).Wire, "Content-Transfer-Encoding"); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

func TestQuotedPrintable(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x", n) }
	for text, want := range map[string]string{
		"a=b":               "a=3Db",
		"é":                 "=C3=A9",
		"a \r\nb":           "a=20\r\nb",
		"a\t\r\nb c":        "a=09\r\nb c",
		"From x":            "=46rom x",
		"From\r\nFromage":   "From\r\nFromage",
		".":                 "=2E",
		"..a.b":             "=2E.a.b",
		"\f":                "=0C",
		x(76):               x(76),
		x(77):               x(75) + "=\r\nxx",
		x(75) + ".b":        x(75) + "=\r\n=2Eb",
		x(75) + "From y":    x(75) + "=\r\n=46rom y",
		x(73) + "é":         x(73) + "=\r\n=C3=A9",
		x(70) + "é":         x(70) + "=C3=A9",
		x(69) + "éa":        x(69) + "=C3=A9a",
		x(70) + "éa":        x(70) + "=\r\n=C3=A9a",
		x(75) + " ":         x(75) + "=\r\n=20",
		x(64) + "😀":         x(64) + "=F0=9F=98=80",
		x(65) + "😀\r\n\r\n": x(65) + "=\r\n=F0=9F=98=80\r\n",
	} {
		got := string(appendQuotedPrintable(nil, []byte(strings.TrimSuffix(text, "\r\n")+"\r\n")))
		if got != want+"\r\n" {
			t.Errorf("%q: %q, want %q", text, got, want+"\r\n")
		}
		for line := range strings.SplitSeq(got, "\r\n") {
			if len(line) > 76 {
				t.Errorf("%q: a line of %d octets", text, len(line))
			}
		}
	}
}

func TestBase64Lines(t *testing.T) {
	for _, n := range []int{0, 1, 56, 57, 58, 113, 114, 115, 1000} {
		got := string(appendBase64(nil, make([]byte, n)))
		if len(got) != base64Size(n) {
			t.Errorf("%d bytes become %d octets, foretold were %d", n, len(got), base64Size(n))
		}
		lines := strings.Split(got, "\r\n")
		for i, line := range lines {
			if i < len(lines)-1 && len(line) != 76 || len(line) > 76 || n > 0 && line == "" {
				t.Errorf("%d bytes: a line of %d octets", n, len(line))
			}
		}
	}
}

func TestABoundaryInTheTextIsNotTaken(t *testing.T) {
	seed := boundarySeed("4711@example.org", []byte("text"))
	text := ""
	for range 5 {
		next := newBoundary(seed, []byte(text))
		if strings.Contains(text, next) || !strings.HasPrefix(next, "=_") || len(next) != 34 {
			t.Errorf("%q for %q", next, text)
		}
		text += "--" + next + "\r\n"
	}
}
