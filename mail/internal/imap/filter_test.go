package imap

import (
	"context"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"

	goimap "github.com/emersion/go-imap/v2"
	"github.com/postern-mail/postern/mail/internal/wire"
	"github.com/postern-mail/postern/mail/servertest/scripted"
)

func TestFilterReadOnly(t *testing.T) {
	allowed := []string{
		"a CAPABILITY", "a noop", "a UID SEARCH ALL", "a uid fetch 1:* (FLAGS)", "a LOGOUT", "a EXAMINE INBOX",
		`a EXAMINE "x {5}"`, `a EXAMINE "STORE"`, `a LIST "" "*" RETURN (SPECIAL-USE STATUS (MESSAGES UNSEEN))`,
		"a STATUS INBOX (MESSAGES)", "a LSUB \"\" *", "a NAMESPACE", "a SORT (DATE) UTF-8 ALL",
		"a UNSELECT", "a ID NIL", "a STARTTLS", "a ENABLE CONDSTORE",
		"a UID FETCH 1 (UID FLAGS INTERNALDATE RFC822.SIZE ENVELOPE BODYSTRUCTURE BODY BODY.PEEK[] BODY.PEEK[1.2.MIME] BODY.PEEK[HEADER.FIELDS (\"FROM\" \"SUBJECT\")]<0.65536> BINARY.PEEK[1]<0.10> BINARY.SIZE[1] MODSEQ)",
		"a FETCH 1:5,7 FLAGS", "a FETCH 1 (FLAGS) (CHANGEDSINCE 17)", "a FETCH $ body.peek[text]", "a FETCH 1 RFC822.HEADER",
	}
	for _, c := range allowed {
		var f = filter{verbs: readOnlyVerbs}
		if out, err := f.push([]byte(c + "\r\n")); err != nil || string(out) != c+"\r\n" {
			t.Errorf("%q: %v, passed %q", c, err, out)
		}
	}
	refused := []string{
		"a SELECT INBOX", "a select INBOX", "a STORE 1 +FLAGS (\\Seen)", "a UID STORE 1 FLAGS ()", "a COPY 1 x", "a UID COPY 1 x",
		"a MOVE 1 x", "a UID MOVE 1 x", "a EXPUNGE", "a UID EXPUNGE 1", "a APPEND x {3}", "a CLOSE", "a DELETE x", "a CREATE x",
		"a RENAME a b", "a SUBSCRIBE x", "a SETMETADATA x (/a b)", "a SETACL x y z", "a GETQUOTA x", "a XFOO", "a", "", " ", "a ", " NOOP", "* NOOP",
		"+ NOOP", "a  STORE 1 FLAGS ()", "a UID", "a UID  STORE 1 FLAGS ()", "a UNAUTHENTICATE", "a AUTHENTICATE PLAIN", "a LOGIN ann pw", "a REPLACE 1 x", "a COMPRESS DEFLATE",
		"a FETCH 1 BODY[]", "a FETCH 1 (FLAGS BODY[TEXT])", "a UID FETCH 1 (BODY[HEADER.FIELDS (FROM)])", "a FETCH 1 body[1]<0.5>",
		"a FETCH 1 RFC822", "a FETCH 1 (UID RFC822.TEXT)", "a FETCH 1 BINARY[1]", "a FETCH 1 (BODY.PEEK[] BODY[])", "a FETCH 1 BODY.PEEK[",
		"a FETCH 1 BODY.PEEK[HEADER.FIELDS (\"]\" BODY[])]", "a FETCH 1 NEWTHING", "a FETCH 1 BODY [TEXT]", "a FETCH", "a FETCH 1", "a FETCH x FLAGS",
		"a FETCH 1 (FLAGS {3}", "a FETCH 1 \"BODY[]\"", "a FETCH 1 BODY.PEEK[]BODY[]", "a FETCH 1 BODY.PEEK[]<0.5>BODY[]",
		"a EXAMINE \"open", "a NOOP\r", "a NOOP\x00",
	}
	for _, c := range refused {
		var f = filter{verbs: readOnlyVerbs}
		out, err := f.push([]byte(c + "\r\n"))
		if err == nil || len(out) != 0 {
			t.Errorf("%q passed (%v)", c, err)
		}
	}
}

// A command is judged whole, however it is cut into writes, and what follows a
// literal is judged as what it is.
func TestFilterFollowsLiterals(t *testing.T) {
	tests := []struct {
		in string
		ok bool
	}{
		{"a EXAMINE {5}\r\nhello\r\nb NOOP\r\n", true},
		{"a EXAMINE {5+}\r\nhello\r\nb NOOP\r\n", true},
		{"a EXAMINE {9+}\r\nb STORE 1\r\nc NOOP\r\n", true},
		{"a EXAMINE {5+}\r\nhello\r\nb STORE 1 FLAGS ()\r\n", false},
		{"a EXAMINE {5}\r\nhe\r\no\r\nb MOVE 1 x\r\n", false},
		{"a LSUB {3}\r\nann {3}\r\npwd\r\nb STORE 1 x\r\n", false},
		{"a LSUB {0}\r\n {0}\r\n\r\nb STORE 1 x\r\n", false},
		{"a EXAMINE \"{5}\"\r\nb STORE 1 x\r\n", false},
		{"a NOOP\nb STORE 1 x\r\n", false},
		{"a IDLE\r\nDONE\r\nb NOOP\r\n", true},
		{"a IDLE\r\nb STORE 1 x\r\n", false},
	}
	for _, tc := range tests {
		for step := 1; step <= len(tc.in); step++ {
			f := filter{verbs: readOnlyVerbs}
			var out strings.Builder
			var err error
			for in := []byte(tc.in); len(in) > 0 && err == nil; {
				n := min(step, len(in))
				var o []byte
				o, err = f.push(in[:n])
				out.Write(o)
				in = in[n:]
			}
			if (err == nil) != tc.ok {
				t.Fatalf("%q in steps of %d: %v", tc.in, step, err)
			}
			if tc.ok && out.String() != tc.in {
				t.Fatalf("%q became %q", tc.in, out.String())
			}
			if strings.Contains(out.String(), "STORE 1 ") || strings.Contains(out.String(), "MOVE") {
				t.Fatalf("%q let %q out", tc.in, out.String())
			}
		}
	}
}

// The library is asked for every change it knows. Nothing of it may reach the
// server, and the session ends.
func TestReadOnlySessionSendsNoChange(t *testing.T) {
	seq, uid := goimap.SeqSetNum(1), goimap.UIDSetNum(1)
	flags := &goimap.StoreFlags{Op: goimap.StoreFlagsAdd, Flags: []goimap.Flag{goimap.FlagSeen}}
	changes := map[string]func(s *Session){
		"select":    func(s *Session) { s.client.Select("INBOX", nil) },
		"store":     func(s *Session) { s.client.Store(seq, flags, nil) },
		"uid store": func(s *Session) { s.client.Store(uid, flags, nil) },
		"copy":      func(s *Session) { s.client.Copy(uid, "x") },
		"move":      func(s *Session) { s.client.Move(uid, "x") },
		"expunge":   func(s *Session) { s.client.Expunge() },
		"uid exp":   func(s *Session) { s.client.UIDExpunge(uid) },
		"close":     func(s *Session) { s.client.UnselectAndExpunge() },
		"create":    func(s *Session) { s.client.Create("x", nil) },
		"delete":    func(s *Session) { s.client.Delete("x") },
		"rename":    func(s *Session) { s.client.Rename("x", "y", nil) },
		"subscribe": func(s *Session) { s.client.Subscribe("x") },
		"append": func(s *Session) {
			w := s.client.Append("x", 3, nil)
			_, _ = io.WriteString(w, "abc")
			_ = w.Close()
		},
		"fetch body": func(s *Session) {
			s.client.Fetch(uid, &goimap.FetchOptions{BodySection: []*goimap.FetchItemBodySection{{}}})
		},
		"second line": func(s *Session) { s.client.Delete("x\r\na STORE 1 +FLAGS (\\Deleted)") },
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			scripted.Settle(t)
			rest := make(chan string, 1)
			sv := scripted.Serve(t, func(s *scripted.Conn) {
				s.Login()
				b, _ := io.ReadAll(s.Lines)
				rest <- string(b)
			})
			s := dial(t, configOf(sv))
			err := s.Use(t.Context(), func(_ context.Context, s *Session) error {
				change(s)
				return s.Noop().Wait()
			})
			if e := wantError(t, err, wire.KindProtocol, StageNoop); !errors.Is(e, ErrForbidden) {
				t.Errorf("ended by %v", e)
			}
			if got := <-rest; got != "" {
				t.Errorf("sent %q", got)
			}
		})
	}
}

// judges say, independently of the filter, which changing commands each grant is
// for.
var judges = map[Grant]string{
	NoChange:       `x{9}x`, // nothing
	MarkSeen:       `SELECT.*|UID STORE [0-9:,]+ \+FLAGS(\.SILENT)? \(\\SEEN\)`,
	ChangeFlags:    `SELECT.*|UID STORE [0-9:,]+ ([+]FLAGS(\.SILENT)? \((\\?[^\\ ()]+ ?)+\)|-FLAGS(\.SILENT)? \([^()]+\))`,
	CopyMessages:   `UID COPY [0-9:,]+ .*`,
	MoveMessages:   `SELECT.*|UID (COPY|MOVE) [0-9:,]+ .*|UID STORE [0-9:,]+ \+FLAGS(\.SILENT)? \(\\DELETED\)|UID EXPUNGE [0-9:,]+`,
	DeleteMessages: `SELECT.*|UID STORE [0-9:,]+ \+FLAGS(\.SILENT)? \(\\DELETED\)|UID EXPUNGE [0-9:,]+`,
	AppendMessages: `APPEND.*`,
}

// changing are the verbs that change a mailbox, alone or behind UID.
var changing = regexp.MustCompile(`^(UID +)?(SELECT|STORE|COPY|MOVE|EXPUNGE|APPEND|CLOSE|DELETE|CREATE|RENAME|REPLACE|SUBSCRIBE|UNSUBSCRIBE|SETMETADATA|SETACL|DELETEACL)\b`)

// deleting is a STORE that marks messages for removal.
var deleting = regexp.MustCompile(`^UID +STORE .*\+FLAGS.*\\DELETED[ )]`)

func FuzzFilterNeverLetsAChangeOut(f *testing.F) {
	f.Add([]byte("a NOOP\r\nb UID FETCH 1 (BODY.PEEK[])\r\n"), uint8(3), uint8(0))
	f.Add([]byte("a EXAMINE {5+}\r\nhello\r\nb STORE 1 x\r\n"), uint8(1), uint8(2))
	f.Add([]byte("a EXAMINE \"a\\\"{3}\r\n"), uint8(200), uint8(4))
	f.Add([]byte("a UID STORE 1 +FLAGS (\\Seen)\r\nb UID STORE 1 +FLAGS (\\Deleted x)\r\n"), uint8(200), uint8(2))
	f.Add([]byte("a UID MOVE 1 {3+}\r\nabc\r\nb UID EXPUNGE 1:*\r\nc EXPUNGE\r\n"), uint8(200), uint8(4))
	f.Add([]byte("a APPEND x (\\Seen) {3+}\r\nabc\r\nb UID COPY 1 x\r\n"), uint8(200), uint8(6))
	compiled := map[Grant]*regexp.Regexp{}
	for g, j := range judges {
		compiled[g] = regexp.MustCompile(`\A(?:` + j + `)\z`)
	}
	f.Fuzz(func(t *testing.T, in []byte, step, grant uint8) {
		g := Grant(grant) % Grant(len(judges))
		fl := filter{verbs: verbsOf(g)}
		var out []byte
		for len(in) > 0 {
			n := min(int(step)+1, len(in))
			o, err := fl.push(in[:n])
			if err != nil {
				break
			}
			out = append(out, o...)
			in = in[n:]
		}
		// A second reading of what left, by a plain server's eyes.
		for len(out) > 0 {
			line, rest, _ := strings.Cut(string(out), "\r\n")
			out = []byte(rest)
			_, command, _ := strings.Cut(strings.ToUpper(line), " ")
			if changing.MatchString(command) && !compiled[g].MatchString(command) {
				t.Fatalf("grant %d let %q out", g, line)
			}
			if g == ChangeFlags && deleting.MatchString(command) {
				t.Fatalf("grant %d let %q out", g, line)
			}
			if i := strings.LastIndex(line, "{"); i >= 0 && strings.HasSuffix(line, "}") {
				return // literals are followed by the tests above
			}
		}
	})
}

// Each command is answered once, and not before it has begun to leave.
func TestFilterKnowsWhatIsAnswered(t *testing.T) {
	f := filter{verbs: readOnlyVerbs}
	for _, step := range []struct {
		out, tag string
		ok       bool
	}{
		{"", "a", false},
		{"a NOOP\r\n", "b", false},
		{"", "a", true},
		{"", "a", false},
		{"b SEARCH SUBJECT {5}\r\n", "b", true}, // refused before its text
	} {
		if _, err := f.push([]byte(step.out)); err != nil {
			t.Fatal(err)
		}
		if err := f.answered(step.tag); (err == nil) != step.ok {
			t.Errorf("after %q the answer to %s gives %v", step.out, step.tag, err)
		}
	}
}
