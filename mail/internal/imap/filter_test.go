package imap

import (
	"context"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	goimap "github.com/emersion/go-imap/v2"
	"github.com/postern-mail/postern/mail/internal/wire"
	"github.com/postern-mail/postern/mail/servertest/scripted"
)

// A command is judged whole, however it is cut into writes, and what follows a
// literal is judged as what it is.
func TestFilterFollowsLiterals(t *testing.T) {
	for _, line := range slices.Concat(readCases(t, "literals.txt")...) {
		what, text, _ := strings.Cut(line, " ")
		in, ok := unquoted(t, strings.TrimLeft(text, " ")), what == "leaves"
		for step := 1; step <= len(in); step++ {
			f := filter{verbs: readOnlyVerbs}
			var out strings.Builder
			var err error
			for in := []byte(in); len(in) > 0 && err == nil; {
				n := min(step, len(in))
				var o []byte
				o, err = f.push(in[:n])
				out.Write(o)
				in = in[n:]
			}
			if (err == nil) != ok {
				t.Fatalf("%q in steps of %d: %v", in, step, err)
			}
			if ok && out.String() != in {
				t.Fatalf("%q became %q", in, out.String())
			}
			if strings.Contains(out.String(), "STORE 1 ") || strings.Contains(out.String(), "MOVE") {
				t.Fatalf("%q let %q out", in, out.String())
			}
		}
	}
}

// What the library is asked for all the same does not reach the server, and the session ends.
func TestReadOnlySessionSendsNoChange(t *testing.T) {
	uid := goimap.UIDSetNum(1)
	for name, change := range map[string]func(s *Session){
		"store": func(s *Session) {
			s.client.Store(uid, &goimap.StoreFlags{Op: goimap.StoreFlagsAdd, Flags: []goimap.Flag{goimap.FlagSeen}}, nil)
		},
		"close": func(s *Session) { s.client.UnselectAndExpunge() },
		"append": func(s *Session) {
			w := s.client.Append("x", 3, nil)
			_, _ = io.WriteString(w, "abc")
			_ = w.Close()
		},
		"fetch body": func(s *Session) {
			s.client.Fetch(uid, &goimap.FetchOptions{BodySection: []*goimap.FetchItemBodySection{{}}})
		},
		"second line": func(s *Session) { s.client.Delete("x\r\na STORE 1 +FLAGS (\\Deleted)") },
	} {
		t.Run(name, func(t *testing.T) {
			rest := make(chan string, 1)
			s := dial(t, serve(t, func(s *scripted.Conn) {
				s.Login()
				b, _ := io.ReadAll(s.Lines)
				rest <- string(b)
			}))
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
		must(t, second(f.push([]byte(step.out))))
		if err := f.answered(step.tag); (err == nil) != step.ok {
			t.Errorf("after %q the answer to %s gives %v", step.out, step.tag, err)
		}
	}
}
