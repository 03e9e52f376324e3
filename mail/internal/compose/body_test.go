package compose

import (
	"strings"
	"testing"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail/internal/message"
)

func TestLayout(t *testing.T) {
	for _, test := range testmain.Table[struct {
		Name, Body string
		Want       string
		Flowed     bool
	}](t, "testdata/cases/layout.txt") {
		t.Run(test.Name, func(t *testing.T) {
			text, flowed, err := layout(test.Body)
			must(t, err)
			want := strings.ReplaceAll(test.Want+"\n", "\n", "\r\n")
			if test.Body == "" {
				want = ""
			}
			if string(text) != want || flowed != test.Flowed {
				t.Errorf("flowed %v\n%q, want %v\n%q", flowed, text, test.Flowed, want)
			}
			if flowed {
				if got := message.Flowed(string(text), false); got != written(test.Body, true) {
					t.Errorf("joined again it is %q, want %q", got, written(test.Body, true))
				}
			}
			m := sample()
			m.Body = test.Body
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
	for _, test := range testmain.Table[struct{ Name, Body, Want string }](t, "testdata/cases/transfer_encoding.txt") {
		m := sample()
		m.Body = test.Body
		if got := field(build(t, m).Wire, "Content-Transfer-Encoding"); got != test.Want {
			t.Errorf("%s: %s, want %s", test.Name, got, test.Want)
		}
	}
}

func TestQuotedPrintable(t *testing.T) {
	for _, c := range testmain.Table[struct{ In, Want string }](t, "testdata/cases/quoted_printable.txt") {
		got := string(appendQuotedPrintable(nil, []byte(strings.TrimSuffix(c.In, "\r\n")+"\r\n")))
		if got != c.Want+"\r\n" {
			t.Errorf("%q: %q, want %q", c.In, got, c.Want+"\r\n")
		}
		for line := range strings.SplitSeq(got, "\r\n") {
			if len(line) > 76 {
				t.Errorf("%q: a line of %d octets", c.In, len(line))
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
