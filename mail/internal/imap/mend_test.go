package imap

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"

	goimap "github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"
	"github.com/postern-mail/postern/mail/internal/wire"
	"github.com/postern-mail/postern/mail/servertest/scripted"
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
	}
	return out, m, nil
}

const structure = `("TEXT" "PLAIN" ("CHARSET" "utf-8") NIL NIL "7BIT" 10 1)`

func TestMenderPassesWhatIsUnderstood(t *testing.T) {
	same := "\x00" // stands for what came in
	tests := []struct{ in, want string }{
		// Whole responses.
		{"* 5 EXISTS", same},
		{"* 5 exists so many", "* 5 EXISTS"},
		{"* 99999999999 EXISTS", ""},
		{"* 3 EXPUNGE", same},
		{"* 0 RECENT", ""},
		{"* OK [UIDVALIDITY 7] valid", "* OK [UIDVALIDITY 7] -"},
		{"* ok [uidvalidity 7] valid", "* OK [UIDVALIDITY 7] -"},
		{"* OK [UIDVALIDITY x] valid", ""},
		{"* OK [UIDNEXT 4] next", "* OK [UIDNEXT 4] -"},
		{"* OK [COPYUID 1 2:3,5 4:6] moved", "* OK [COPYUID 1 2:3,5 4:6] -"},
		{"* OK [COPYUID 1 2:* 4] moved", ""},
		{"* OK [COPYUID 1 5,3 6:7] moved", ""},
		{"* OK [COPYUID 1 3:2 6:7] moved", ""},
		{"* OK [COPYUID 1 3,3 6:7] moved", ""},
		{"* OK [COPYUID 1 {3}] moved", ""},
		{"* OK [CLOSED] gone", "* OK [CLOSED] -"},
		{"* OK [PERMANENTFLAGS (\\Seen ((] flags", ""},
		{"* OK [UNFINISHED code", ""},
		{"* OK Still here", ""},
		{"* NO [ALERT] full", ""},
		{"* CAPABILITY IMAP4rev2 IMAP4rev1 MOVE (x) \"y\"", "* CAPABILITY IMAP4rev1 MOVE"},
		{"* FLAGS (\\Seen \"x\" a]b \\Deleted x\\y (z) ü)", "* FLAGS (\\Seen \\Deleted ü)"},
		{"* SEARCH 1 2 3", same},
		{"* SEARCH one", same}, // the library refuses: nothing found would be another answer
		{"* ESEARCH (TAG \"T1\") UID ALL 1:3", same},
		{"* THREAD (1 2)(3)", ""}, // is never asked for
		{"* VANISHED (EARLIER) 1:5", ""},
		{"* XLIST () \"/\" INBOX", ""},
		{"* LSUB () \"/\" INBOX", ""},
		{"* ENABLED UTF8=ACCEPT", ""}, // nobody asked, and it changes what the library sends
		{"* NAMESPACE ((\"\" \"/\")) NIL NIL", ""},
		{"* ID NIL", ""},
		{"* X-SOMETHING (((", ""},
		{"*", ""},
		{"* ", ""},
		{"* 7", ""},
		{"+ idling", ""},

		// Tagged answers.
		{"T1 OK done", same},
		{"T1 ok", "T1 OK -"},
		{"T1 OK [APPENDUID 7 9] done", same},
		{"T1 OK [APPENDUID 7 x] done", "T1 OK done"},
		{"T1 OK [COPYUID 7 1:2 3:4] done", same},
		{"T1 OK [COPYUID 7 1:2] done", "T1 OK done"},
		{"T1 NO [TRYCREATE] no folder", same},
		{"T1 NO [BADCHARSET ({3} x)] no", "T1 NO [BADCHARSET] no"},
		{"T1 NO [what is this", "T1 NO -"},
		{"T1 NO [x]] [UIDNEXT 3] y", "T1 NO [X] ] [UIDNEXT 3] y"},
		{"T1 OK [CAPABILITY IMAP4rev1] done", "T1 OK done"},
		{"T1 MAYBE", same},

		// Folders.
		{`* LIST (\HasNoChildren \Sent) "/" "A b"`, same},
		{`* LIST () NIL INBOX`, `* LIST () NIL "INBOX"`},
		{`* LIST () "." INBOX.x]y`, `* LIST () "." "INBOX.x]y"`},
		{`* LIST () "/" "a \"b\" \\ c"`, same},
		{`* LIST () "\\" x`, `* LIST () "\\" "x"`},
		{`* LIST () "//" x`, `* LIST () NIL "x"`},
		{`* LIST (\Marked "odd" x(y) \X) "/" x`, `* LIST (\Marked \X) "/" "x"`},
		{`* LIST () "/" x (("CHILDINFO" ("SUBSCRIBED")) what`, `* LIST () "/" "x"`},
		{`* LIST () "/" "Entw&APw-rfe"`, same},
		{`* LIST () "/" "Entwürfe"`, same},
		{"* LIST () \"/\" {3}\r\na&-", `* LIST () "/" "a&-"`},
		{"* LIST () \"/\" \"Entw\xfcrfe\"", ""},
		{`* LIST () "/" "R&D"`, ""},
		{`* LIST () "/" "a&ABC"`, ""},
		{`* LIST () "/" "&AGE-"`, ""},
		{`* LIST () "/" "&2AA-"`, ""},
		{`* LIST () "/" "&APw-&APw-"`, ""},
		{`* LIST () "/" My Folder`, ""},
		{`* LIST () "/" `, ""},
		{`* LIST "/" x`, ""},
		{`* LIST`, ""},
		{`* STATUS "A b" (MESSAGES 3 UNSEEN 1)`, same},
		{`* STATUS x (MESSAGES 3 UNSEEN -1 SIZE 12345678901 FOO (bar) UIDNEXT 5)`, `* STATUS "x" (MESSAGES 3 SIZE 12345678901 UIDNEXT 5)`},
		{`* STATUS x (MESSAGES 99999999999)`, `* STATUS "x" ()`},
		{`* STATUS "R&D" (MESSAGES 3)`, ""},
		{`* STATUS x`, ""},

		// Messages.
		{`* 1 FETCH (UID 5 FLAGS (\Seen x) RFC822.SIZE 10 MODSEQ (7))`, same},
		{`* 1 fetch(uid 5 flags(\Seen))`, `* 1 FETCH (UID 5 FLAGS (\Seen))`},
		{`* 1 FETCH (  UID   5  )`, `* 1 FETCH (UID 5)`},
		{`* 1 FETCH (UID 5 FLAGS (\Seen "x" é) INTERNALDATE "01-Jan-2026 10:00:00 +0000")`, `* 1 FETCH (UID 5 FLAGS (\Seen é) INTERNALDATE "01-Jan-2026 10:00:00 +0000")`},
		{`* 1 FETCH (INTERNALDATE "yesterday" UID 5)`, `* 1 FETCH (UID 5)`},
		{`* 1 FETCH (INTERNALDATE NIL UID 5)`, `* 1 FETCH (UID 5)`},
		{`* 1 FETCH (ENVELOPE NIL UID 5)`, `* 1 FETCH (UID 5)`},
		{`* 1 FETCH (ENVELOPE ("x" (NIL)) UID 5)`, `* 1 FETCH (UID 5)`},
		{`* 1 FETCH (X-GM-MSGID 1278455344230334865 X-GM-LABELS (\Inbox "a (b") UID 5 EMAILID (M1) PREVIEW "x")`, `* 1 FETCH (UID 5)`},
		{`* 1 FETCH (UID 0 FLAGS ())`, `* 1 FETCH (FLAGS ())`},
		{`* 1 FETCH (UID 99999999999 FLAGS ())`, `* 1 FETCH (FLAGS ())`},
		{`* 1 FETCH (RFC822.SIZE -1 MODSEQ 7 UID 5)`, `* 1 FETCH (UID 5)`},
		{`* 1 FETCH (UID 5 BODYSTRUCTURE ` + structure + `)`, same},
		{`* 1 FETCH (UID 5 BODY ` + structure + `)`, same},
		{`* 1 FETCH (BODYSTRUCTURE NIL UID 5)`, `* 1 FETCH (UID 5)`},
		{`* 1 FETCH (BODYSTRUCTURE () UID 5)`, `* 1 FETCH (UID 5)`},
		{`* 1 FETCH (BODYSTRUCTURE ("TEXT" "PLAIN" ("CHARSET") NIL NIL "7BIT" 10 1) UID 5)`, `* 1 FETCH (UID 5)`},
		{`* 1 FETCH (BODYSTRUCTURE ("TEXT" NIL NIL NIL NIL "7BIT" 10 1) UID 5)`, `* 1 FETCH (UID 5)`},
		{`* 1 FETCH (BODYSTRUCTURE (` + structure + structure + ` "MIXED" ("BOUNDARY" "x") ("attachment" NIL) NIL NIL x (y)) UID 5)`, same},
		{`* 1 FETCH (BODYSTRUCTURE (` + structure + ` NIL) UID 5)`, `* 1 FETCH (UID 5)`},
		{"* 1 FETCH (BODYSTRUCTURE (\"TEXT\" \"PLAIN\" (\"NAME\" {3}\r\na)b) NIL NIL \"7BIT\" 10 1) UID 5)", same},
		{"* 1 FETCH (UID 5 BODY[] {3}\r\na)b)", same},
		{"* 1 FETCH (UID 5 BODY[TEXT]<0> {3}\r\na)b BODY[1.2.MIME] NIL BODY[HEADER.FIELDS (\"FROM\" x)] {0}\r\n FLAGS (\"\") INTERNALDATE 7)",
			"* 1 FETCH (UID 5 BODY[TEXT]<0> {3}\r\na)b BODY[1.2.MIME] NIL BODY[HEADER.FIELDS (\"FROM\" x)] {0}\r\n FLAGS ())"},
		{"* 1 FETCH (BODY[] {3}\r\na)b UID 5)", same},
		{`* 1 FETCH (UID 5 BODY[TEXT] "a (b")`, same},
		{"* 1 FETCH (UID 5 BODY[WHAT] {3}\r\na)b FLAGS ())", "* 1 FETCH (UID 5 FLAGS ())"},
		{"* 1 FETCH (UID 5 BODY[1.] {3}\r\na)b FLAGS ())", "* 1 FETCH (UID 5 FLAGS ())"},
		{"* 1 FETCH (UID 5 BINARY[1] {3}\r\na)b BINARY.SIZE[1] 7 FLAGS ())", "* 1 FETCH (UID 5 FLAGS ())"},
		{"* 1 FETCH (UID 5 FLAGS (\\Seen) \"?\" BODY[] {3}\r\nabc)", "* 1 FETCH (UID 5 FLAGS (\\Seen))"},
		{"* 1 FETCH (UID 5 FLAGS (\\Seen)", "* 1 FETCH (UID 5 FLAGS (\\Seen))"},
		{"* 1 FETCH (UID 5 FLAGS (\\Seen", "* 1 FETCH (UID 5)"},
		{"* 1 FETCH (UID 5)) what", "* 1 FETCH (UID 5)"},
		{"* 1 FETCH ()", ""},
		{"* 1 FETCH (X)", ""},
		{"* 1 FETCH NIL", ""},
		{"* 0 FETCH (UID 5)", ""},
		{"* 99999999999 FETCH (UID 5 BODY[] {3}\r\nabc)", ""},
		{"* x FETCH (UID 5 BODY[] {3}\r\nabc)", ""},
	}
	for _, tc := range tests {
		want := tc.want
		if want == same {
			want = tc.in
		}
		if want != "" {
			want += "\r\n"
		}
		// What follows is not touched by what came before.
		const next = "* 8 FETCH (UID 9)\r\n"
		for _, step := range []int{1, 3, 1 << 20} {
			got, m, err := mending(t, tc.in+"\r\n"+next, step, nil)
			if err != nil || got != want+next {
				t.Errorf("%q in steps of %d became %q (%v), want %q", tc.in, step, got, err, want)
			}
			if skipped := strings.HasPrefix(tc.in, "* LIST") && tc.want == ""; (m.skipped.Load() == 1) != skipped {
				t.Errorf("%q: %d folders counted", tc.in, m.skipped.Load())
			}
		}
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
		if _, err := f.push([]byte(c)); err != nil {
			t.Fatal(err)
		}
		want := ""
		if strings.HasSuffix(c, "{4}\r\n") {
			want = "+ go on\r\n"
		}
		if got, _, _ = mending(t, "+ a\r\n", 1, f.continues); got != want {
			t.Errorf("after %q passed %q", c, got)
		}
	}
	if _, err := f.push([]byte("c APPEND x {3}\r\n")); err != nil {
		t.Fatal(err)
	}
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
		if _, err := f.push([]byte(step.out)); err != nil {
			t.Fatal(err)
		}
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
	if err := s.feed([]byte("* 1 FETCH (UID 1 BODY[] {1000000}\r\n")); err != nil {
		t.Fatal(err)
	}
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

// One thing that is broken costs itself and nothing else.
func TestBrokenAnswersCostOnlyThemselves(t *testing.T) {
	messages := func(broken string) string {
		return "* 1 FETCH (UID 11 FLAGS (\\Seen) BODY[TEXT] {3}\r\none)\r\n" + broken + "* 3 FETCH (UID 13 FLAGS () BODY[TEXT] {5}\r\nthree)\r\nTAG OK done\r\n"
	}
	tests := []struct{ name, answer, want string }{
		{"flag", messages("* 2 FETCH (UID 12 FLAGS (\\Seen a]b) BODY[TEXT] {3}\r\ntwo)\r\n"), "11:one 12:two 13:three"},
		{"date", messages("* 2 FETCH (UID 12 INTERNALDATE \"32-Foo-2026\" BODY[TEXT] {3}\r\ntwo)\r\n"), "11:one 12:two 13:three"},
		{"envelope", messages("* 2 FETCH (ENVELOPE NIL UID 12 BODY[TEXT] {3}\r\ntwo)\r\n"), "11:one 12:two 13:three"},
		{"structure", messages("* 2 FETCH (BODYSTRUCTURE (NIL NIL) UID 12 BODY[TEXT] {3}\r\ntwo)\r\n"), "11:one 12:two 13:three"},
		{"item nobody asked for", messages("* 2 FETCH (X-GM-MSGID 7 UID 12 BODY[TEXT] {3}\r\ntwo)\r\n"), "11:one 12:two 13:three"},
		{"end", messages("* 2 FETCH (UID 12 BODY[TEXT] {3}\r\ntwo\r\n"), "11:one 12:two 13:three"},
		{"number", messages("* 99999999999 FETCH (UID 12 BODY[TEXT] {3}\r\ntwo)\r\n"), "11:one 13:three"},
		{"response nobody knows", messages("* VANISHED 1:5\r\n* XLIST () \"/\" x\r\n* ?? {\r\n"), ""},
		{"unsolicited", messages("* VANISHED 1:5\r\n* XLIST () \"/\" x\r\n+ go on\r\n* OK [WHAT (] x\r\n* ENABLED UTF8=ACCEPT\r\n* 1 RECENT\r\n* BAD what\r\n"), "11:one 13:three"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			scripted.Settle(t)
			cfg := serve(t, scripted.AnswerIMAP(scripted.Caps, func(command string) string {
				if strings.HasPrefix(command, "UID FETCH") {
					return tc.answer
				}
				return "TAG OK done\r\n"
			}))
			using(t, cfg, func(s *Session) error {
				data, err := s.Fetch(goimap.UIDSetNum(11, 12, 13), goimap.FetchOptions{Flags: true, BodySection: []*goimap.FetchItemBodySection{{Specifier: goimap.PartSpecifierText}}}).Wait()
				if tc.want == "" {
					wantError(t, err, wire.KindProtocol, StageFetch) // nobody can say where such a line ends
					return nil
				}
				if err != nil {
					return err
				}
				if got := texts(data); got != tc.want {
					t.Errorf("got %q, want %q", got, tc.want)
				}
				return s.Noop().Wait()
			})
		})
	}
}

func TestListCountsWhatItLeavesOut(t *testing.T) {
	scripted.Settle(t)
	broken := "* LIST () \"/\" \"Entw\xfcrfe\"\r\n* LIST () \"/\" \"R&D\"\r\n* STATUS \"R&D\" (MESSAGES 1)\r\n"
	answers := []string{"* LIST () \"/\" INBOX\r\n" + broken + "* LIST () \"/\" Sent\r\nTAG OK done\r\n", "* LIST () \"/\" INBOX\r\nTAG OK done\r\n"}
	cfg := serve(t, scripted.AnswerIMAP(scripted.Caps, func(command string) string {
		if !strings.HasPrefix(command, "LIST") {
			return "TAG OK done\r\n"
		}
		a := answers[0]
		answers = answers[1:]
		return a
	}))
	using(t, cfg, func(s *Session) error {
		for _, want := range []string{"INBOX,Sent 2", "INBOX 0"} {
			l := s.List("*", nil)
			data, err := l.Wait()
			if err != nil {
				return err
			}
			var names []string
			for _, d := range data {
				names = append(names, d.Mailbox)
			}
			if got := fmt.Sprint(strings.Join(names, ","), " ", l.Skipped()); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		return nil
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
			if err := s.feed(p[:n]); err != nil {
				b.Fatal(err)
			}
			m.out = m.out[:0]
			p = p[n:]
		}
	}
}
