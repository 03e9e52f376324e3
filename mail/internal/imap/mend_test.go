package imap

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/emersion/go-imap/v2/imapclient"
)

// mending feeds a mender in steps and returns what it passes on, with the numbers
// it puts into FETCH responses taken out again.
func mending(t testing.TB, in string, step int, continues func() bool) (string, *mender, error) {
	t.Helper()
	m := &mender{limit: 1 << 20, continues: continues}
	s := &scanner{limits: Limits{Line: 1 << 20, Literal: 1 << 20, Depth: 50}, mend: m}
	for b := []byte(in); len(b) > 0; {
		n := min(step, len(b))
		if err := s.feed(b[:n]); err != nil {
			return "", m, err
		}
		b = b[n:]
	}
	out := string(m.out)
	for i := uint32(1); i <= m.begun; i++ {
		out = strings.Replace(out, fmt.Sprintf("("+orderItem+" ", 1, i), "(", 1)
		out = strings.Replace(out, fmt.Sprintf(" "+orderItem+")", 1, i), ")", 1)
	}
	return out, m, nil
}

const structure = `("TEXT" "PLAIN" ("CHARSET" "utf-8") NIL NIL "7BIT" 10 1)`

func TestMenderPassesWhatIsUnderstood(t *testing.T) {
	cases, n := readCases(t, "mend.txt"), 0
	for i, line := range slices.Concat(cases...) {
		sign, text, _ := strings.Cut(line, " ")
		in := unquoted(t, text)
		want := map[string]string{"=": in + "\r\n", "-": ""}[sign]
		switch sign {
		case "<":
			_, text, _ = strings.Cut(slices.Concat(cases...)[i+1], "> ")
			want = unquoted(t, text) + "\r\n"
		case ">":
			continue
		}
		n++
		// What follows is not touched by what came before.
		const next = "* 8 FETCH (UID 9)\r\n"
		for _, step := range []int{1, 3, 1 << 20} {
			got, m, err := mending(t, in+"\r\n"+next, step, nil)
			if err != nil || got != want+next {
				t.Errorf("%q in steps of %d became %q (%v), want %q", in, step, got, err, want)
			}
			if skipped := strings.HasPrefix(in, "* LIST") && want == ""; (m.skipped.Load() == 1) != skipped {
				t.Errorf("%q: %d folders counted", in, m.skipped.Load())
			}
		}
	}
	if n != 114 {
		t.Errorf("%d lines", n)
	}
}

// A + passes only where a command waits for it, once for each.
func TestMenderPassesContinuationsThatAreAwaited(t *testing.T) {
	f := filter{verbs: verbsOf(AppendMessages)}
	got, _, err := mending(t, "+ a\r\n", 1, f.continues)
	if _, pushErr := f.push([]byte("a APPEND x {3}\r\n")); pushErr != nil || err != nil || got != "" {
		t.Fatalf("%q %v %v", got, err, pushErr)
	}
	if got, _, _ = mending(t, "+ a\r\n+ b\r\n", 1, f.continues); got != "+ go on\r\n" {
		t.Errorf("passed %q", got)
	}
	for _, c := range []string{"abc {4}\r\n", "abcd\r\n", "b APPEND x {3+}\r\nabc\r\n"} {
		must(t, second(f.push([]byte(c))))
		want := ""
		if strings.HasSuffix(c, "{4}\r\n") {
			want = "+ go on\r\n"
		}
		if got, _, _ = mending(t, "+ a\r\n", 1, f.continues); got != want {
			t.Errorf("after %q passed %q", c, got)
		}
	}
	must(t, second(f.push([]byte("c APPEND x {3}\r\n"))))
	f.answered("c") // refused instead
	if got, _, _ = mending(t, "+ a\r\n", 1, f.continues); got != "" {
		t.Errorf("after a refusal passed %q", got)
	}
}

// What a server offers is taken over when it was asked, and not in between.
func TestMenderPassesCapabilitiesThatWereAskedFor(t *testing.T) {
	f := filter{verbs: readOnlyVerbs}
	m := &mender{limit: 1 << 20, asked: f.asksCapabilities}
	s := &scanner{limits: Limits{Line: 1 << 20, Literal: 1 << 20, Depth: 50}, mend: m, tagged: f.answered}
	const line = "* CAPABILITY IMAP4rev1 MOVE\r\n"
	for _, step := range []struct{ out, in, want string }{
		{"a NOOP\r\n", line, ""},
		{"b CAPABILITY\r\n", line, line},
		{"c NOOP\r\n", "a OK done\r\n" + line, "a OK done\r\n" + line},
		{"d NOOP\r\n", "b OK done\r\n" + line, "b OK done\r\n"},
	} {
		must(t, second(f.push([]byte(step.out))))
		m.out = nil
		if err := s.feed([]byte(step.in)); err != nil || string(m.out) != step.want {
			t.Errorf("after %q: passed %q (%v), want %q", step.out, m.out, err, step.want)
		}
	}
}

func TestMenderBounds(t *testing.T) {
	item := "* 1 FETCH (UID 1 BODYSTRUCTURE (" + strings.Repeat("{8000}\r\n"+strings.Repeat("x", 8000)+" ", 200)
	for _, in := range []string{item, "* 1 FETCH (X \"", "* LIST BODY[] {900000}\r\n" + strings.Repeat("x", 900000) + " BODY[] {900000}\r\n" + strings.Repeat("x", 900000)} {
		_, m, err := mending(t, in, 4096, nil)
		if len(in) > 1<<20 && !overLimit(err, "line") {
			t.Errorf("%.40q: %v", in, err)
		}
		if len(m.line) > 1<<20 {
			t.Errorf("%.40q: holds %d bytes", in, len(m.line))
		}
	}
	// Content streams: nothing of it is held.
	m := &mender{limit: 1 << 10}
	s := &scanner{limits: Limits{Line: 1 << 10, Literal: 1 << 20, Depth: 50}, mend: m}
	must(t, s.feed([]byte("* 1 FETCH (UID 1 BODY[] {1000000}\r\n")))
	chunk := make([]byte, 1000)
	for range 1000 {
		m.out = m.out[:0]
		if err := s.feed(chunk); err != nil || len(m.out) != len(chunk) || len(m.line) != 0 {
			t.Fatalf("passed %d, held %d: %v", len(m.out), len(m.line), err)
		}
	}
}

// parses reports what the library says of server data, up to its end.
func parses(data string) error {
	client, server := net.Pipe()
	c := imapclient.New(client, nil)
	go func() {
		_, _ = io.WriteString(server, "* PREAUTH [CAPABILITY IMAP4rev1] ready\r\n"+data)
		_ = server.Close()
	}()
	<-c.Closed()
	if err := c.Close(); err != nil && !errors.Is(err, net.ErrClosed) && !errors.Is(err, io.ErrClosedPipe) {
		return err
	}
	return nil
}

// Whatever the mender passes on, the library can parse, and it is no larger than
// what came in by more than the spelling of it.
func FuzzMender(f *testing.F) {
	f.Add([]byte("* 1 FETCH (UID 5 BODYSTRUCTURE " + structure + " BODY[TEXT]<0> {3}\r\na)b FLAGS (\\Seen \"x\"))\r\n"))
	f.Add([]byte("* LIST (\\X) \"/\" \"Entw&APw-rfe\"\r\n* STATUS x (MESSAGES 3 SIZE x)\r\n* OK [COPYUID 1 2:3 4] x\r\n"))
	f.Add([]byte("* 1 FETCH (BODYSTRUCTURE ((\"a\" \"b\" NIL NIL NIL \"7bit\" -1)(\"message\" \"rfc822\" NIL NIL NIL NIL 3 (NIL NIL NIL NIL NIL NIL NIL NIL NIL NIL) (\"text\" \"x\" (\"\" \"y\") NIL NIL NIL 1 2) 4) \"mixed\"))\r\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		whole, m, err := mending(t, string(in), 1<<20, func() bool { return true })
		bytewise, _, byteErr := mending(t, string(in), 1, func() bool { return true })
		if (err == nil) != (byteErr == nil) || err == nil && whole != bytewise {
			t.Fatalf("whole %q (%v), by bytes %q (%v)", whole, err, bytewise, byteErr)
		}
		if err != nil {
			return
		}
		out := string(m.out)
		if len(out) > 2*len(in)+64*strings.Count(string(in), "\n")+64*int(m.begun) {
			t.Fatalf("%d bytes became %d", len(in), len(out))
		}
		if m.fetch.streaming {
			return // in the middle of a literal
		}
		var untagged strings.Builder
		for rest := out; rest != ""; {
			line, after, _ := strings.Cut(rest, "\n")
			word, _, _ := strings.Cut(strings.TrimPrefix(line, "* "), " ")
			if !strings.HasPrefix(line, "* ") || slices.Contains([]string{"SEARCH", "ESEARCH"}, strings.ToUpper(strings.TrimSpace(word))) || strings.Contains(line, "{") {
				return // the library's to judge, or cut by a literal
			}
			untagged.WriteString(line + "\n")
			rest = after
		}
		if err := parses(untagged.String()); err != nil {
			t.Fatalf("%q became %q: %v", in, out, err)
		}
	})
}

func BenchmarkMender(b *testing.B) {
	var in strings.Builder
	for i := range 500 {
		fmt.Fprintf(&in, "* %d FETCH (UID %d FLAGS (\\Seen) INTERNALDATE \" 1-Jan-2026 10:00:00 +0000\" BODYSTRUCTURE %s BODY[HEADER] {2000}\r\n%s)\r\n", i+1, i+1, structure, strings.Repeat("x", 2000))
	}
	data := []byte(in.String())
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		m := &mender{limit: 1 << 20}
		s := &scanner{limits: Limits{Line: 1 << 20, Literal: 1 << 20, Depth: 50}, mend: m}
		for p := data; len(p) > 0; {
			n := min(len(p), 16<<10)
			must(b, s.feed(p[:n]))
			m.out = m.out[:0]
			p = p[n:]
		}
	}
}
