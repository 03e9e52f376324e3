package imap

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postern-mail/postern/mail/internal/wire"
	"github.com/postern-mail/postern/mail/servertest/scripted"
)

// readCases reads the blocks of a file in testdata, without their comments.
func readCases(t testing.TB, file string) [][]string {
	t.Helper()
	data, err := os.ReadFile("testdata/" + file)
	must(t, err)
	var cases [][]string
	for block := range strings.SplitSeq(string(data), "\n\n") {
		lines := slices.DeleteFunc(strings.Split(block, "\n"), func(l string) bool { return l == "" || strings.HasPrefix(l, "#") })
		if len(lines) > 0 {
			cases = append(cases, lines)
		}
	}
	return cases
}

// unquoted is a text of a case, which may be quoted as in Go.
func unquoted(t testing.TB, text string) string {
	t.Helper()
	if !strings.HasPrefix(text, `"`) {
		return text
	}
	plain, err := strconv.Unquote(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return plain
}

// An answerCase is a block of testdata/answers.txt, which says what its fields are.
type answerCase struct {
	name, caps, answer, last, then, kind, says string
	calls, wants                               []string
	arg                                        *string
}

var (
	hexByte  = regexp.MustCompile(`\$([0-9A-F]{2})`)
	repeated = regexp.MustCompile(`«([^»]+)\*(\d+)»`)
)

// expanded is a text in which $0A stands for a byte, and «x*3» for xxx.
func expanded(t testing.TB, text string) string {
	t.Helper()
	text = hexByte.ReplaceAllStringFunc(unquoted(t, text), func(s string) string {
		n, _ := strconv.ParseUint(s[1:], 16, 8)
		return string(rune(n))
	})
	return repeated.ReplaceAllStringFunc(text, func(s string) string {
		m := repeated.FindStringSubmatch(s)
		n, _ := strconv.Atoi(m[2])
		return strings.Repeat(m[1], n)
	})
}

func readAnswer(t *testing.T, lines []string) (c answerCase) {
	t.Helper()
	c.caps = scripted.Caps
	for _, line := range lines {
		word, text, _ := strings.Cut(line, " ")
		text = expanded(t, text)
		switch word {
		case "name":
			c.name = text
		case "caps":
			c.caps = text
		case "call":
			c.calls = strings.Fields(text)
		case "arg":
			c.arg = &text
		case "send":
			c.last = text + "\r\n"
			c.answer += c.last
		case "part":
			c.last = text
			c.answer += text
		case "then":
			c.then = text
		case "want":
			c.wants = append(c.wants, text)
		case "error":
			c.kind, c.says, _ = strings.Cut(text, " ")
		default:
			t.Fatalf("%q has no such line: %s", c.name, line)
		}
	}
	if slices.Equal(c.calls, []string{"all"}) {
		c.calls = []string{StageAppend, StageCopy, StageExamine, StageExpunge, StageFetch, "each", StageList, StageMove, StageSearch,
			StageSelect, StageStore}
	}
	return c
}

// A call is a command, what it sends first, and what it is refused at.
type call struct {
	sends, stage string
	grant        Grant
	arg          string // that it is given unless a case has another
	do           func(s *Session, arg string) (string, error)
}

var calls = map[string]call{
	StageExamine: {"EXAMINE", StageExamine, NoChange, "INBOX", func(s *Session, arg string) (string, error) {
		f, err := s.Examine(arg).Wait()
		return fmt.Sprint(f), err
	}},
	StageSelect: {"SELECT", StageSelect, MoveMessages, "INBOX", func(s *Session, arg string) (string, error) {
		f, err := s.Select(arg).Wait()
		return fmt.Sprint(f), err
	}},
	StageFetch: {"UID FETCH", StageFetch, NoChange, "", func(s *Session, _ string) (string, error) {
		opts := Items{Flags: true, Sections: wholeText, Structure: true}
		data, err := s.Fetch(UIDs(1), opts).Wait()
		return texts(data), err
	}},
	"texts":    {"UID FETCH", StageFetch, NoChange, "", textsOf(UIDs(11, 12))},
	"numbered": {"FETCH", StageFetch, NoChange, "", textsOf(SeqRange{1, 2})},
	"cut": {"UID FETCH", StageFetch, NoChange, "", func(s *Session, _ string) (string, error) {
		data, err := s.Fetch(UIDs(7), Items{Sections: []Section{{Only: Text, Size: 4}, {Only: Header, Size: 3}}}).Wait()
		if err != nil || len(data) != 1 {
			return "", err
		}
		var got []string
		for _, b := range data[0].Sections {
			if b.Bytes != nil {
				got = append(got, fmt.Sprintf("%s=%s", b.Only, b.Bytes))
			}
		}
		return strings.Join(got, " "), nil
	}},
	"each": {"UID FETCH", StageFetch, NoChange, "", func(s *Session, _ string) (string, error) {
		flags := Items{Flags: true}
		data, err := s.FetchEach([]FetchRequest{{UIDs(1, 2), flags}, {UIDs(3), flags}}).Wait()
		return texts(data), err
	}},
	StageSearch: {"UID SEARCH", StageSearch, NoChange, "", func(s *Session, _ string) (string, error) {
		set, err := s.Search(Criteria{}).Wait()
		return set.wire().String(), err
	}},
	"literals": {"UID SEARCH", StageSearch, NoChange, "", func(s *Session, _ string) (string, error) {
		return "", second(s.Search(Criteria{Body: []string{"jörg", "größe"}}).Wait())
	}},
	StageList: {"LIST", StageList, NoChange, "*", func(s *Session, arg string) (string, error) {
		l := s.List(arg, false)
		data, err := l.Wait()
		var names []string
		for _, d := range data {
			names = append(names, d.Name)
		}
		return fmt.Sprint(strings.Join(names, ","), " ", l.Skipped()), err
	}},
	StageStatus: {"STATUS", StageStatus, NoChange, "INBOX", func(s *Session, arg string) (string, error) {
		return "", second(s.Status(arg).Wait())
	}},
	StageStore: {"UID STORE", StageStore, ChangeFlags, `\Seen`, func(s *Session, arg string) (string, error) {
		data, err := s.Store(UIDs(11, 12), false, []string{arg}).Wait()
		if err != nil {
			return "", err
		}
		var got []string
		for _, d := range data {
			got = append(got, fmt.Sprintf("%d%v", d.UID, d.Flags))
		}
		if err := s.Noop().Wait(); err != nil {
			return "", err
		}
		// What came late belongs to nobody.
		later, err := s.Fetch(UIDs(12), Items{Flags: true}).Wait()
		if len(later) > 0 {
			err = fmt.Errorf("a later fetch got %+v", later[0])
		}
		return strings.Join(got, " "), err
	}},
	StageCopy: {"UID COPY", StageCopy, MoveMessages, "Archive", func(s *Session, arg string) (string, error) {
		c, err := s.Copy(UIDs(11, 12, 14), arg).Wait()
		return fmt.Sprint(c.UIDValidity, c.Target), err
	}},
	StageMove: {"UID MOVE", StageMove, MoveMessages, "Archive", func(s *Session, arg string) (string, error) {
		c, err := s.Move(UIDs(11, 12, 14), arg).Wait()
		return fmt.Sprint(c.UIDValidity, c.Target), err
	}},
	StageExpunge: {"UID EXPUNGE", StageExpunge, MoveMessages, "", func(s *Session, _ string) (string, error) {
		if _, err := s.Select("INBOX").Wait(); err != nil {
			return "", err
		}
		return "", second(s.Expunge(UIDs(1, 2)).Wait())
	}},
	StageAppend: {"APPEND", StageAppend, AppendMessages, "Drafts", func(s *Session, arg string) (string, error) {
		folder, flag, ok := strings.Cut(arg, " ")
		var flags []string
		if ok {
			flags = []string{flag}
		}
		validity, uid, err := s.Append(folder, flags, time.Time{}, []byte("abc"))
		return fmt.Sprint(validity, uid), err
	}},
	"namespaces": {"NAMESPACE", "", NoChange, "", func(s *Session, _ string) (string, error) {
		n, err := s.Namespaces().Wait()
		return fmt.Sprint("Archive ", n.Own("Archive"), " Public/board ", n.Own("Public/board")), err
	}},
}

var wholeText = []Section{{Only: Text}}

func textsOf(set NumSet) func(*Session, string) (string, error) {
	return func(s *Session, _ string) (string, error) {
		data, err := s.Fetch(set, Items{Flags: true, Sections: wholeText}).Wait()
		return texts(data), err
	}
}

// TestAnswers has a server give the answers of testdata/answers.txt. None may cost much
// memory, leave a goroutine, or leave in use a connection that is out of step.
func TestAnswers(t *testing.T) {
	used := map[string]bool{}
	for i, lines := range readCases(t, "answers.txt") {
		c := readAnswer(t, lines)
		for j, name := range c.calls {
			used[name] = true
			if testing.Short() && len(c.calls) > 5 && (i+j)%3 > 0 {
				continue
			}
			do, ok := calls[name]
			if !ok {
				t.Fatalf("%s: there is no call %q", c.name, name)
			}
			t.Run(c.name+"/"+name, func(t *testing.T) { c.run(t, do) })
		}
	}
	for name := range maps.Keys(calls) {
		if !used[name] {
			t.Errorf("no case calls %s", name)
		}
	}
}

func (c *answerCase) run(t *testing.T, do call) {
	thrifty(t, 128<<20)
	var sent atomic.Int32
	cfg := serve(t, func(s *scripted.Conn) { c.serve(s, do.sends, &sent) })
	cfg.Limits.Bytes, cfg.Limits.Answers = 8<<20, 5000
	session := dial(t, cfg)
	limit := time.Minute
	if c.kind == string(wire.KindTimeout) {
		limit = 40 * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if c.arg != nil {
		do.arg = *c.arg
	}
	var got string
	err := session.Use(ctx, func(_ context.Context, s *Session) (err error) {
		s.guard.grant(do.grant)
		got, err = do.do(s, do.arg)
		if e := (*wire.Error)(nil); err == nil || c.then == "" && errors.As(err, &e) && e.Kind == wire.KindRefused {
			if err := s.Noop().Wait(); err != nil {
				t.Errorf("the session did not survive: %v", err)
			}
		}
		return err
	})
	switch {
	case c.kind != "":
		kind, other, _ := strings.Cut(c.kind, "|")
		if e := (*wire.Error)(nil); other != "" && errors.As(err, &e) && string(e.Kind) == other {
			kind = other
		}
		e := wantError(t, err, wire.Kind(kind), do.stage)
		if refused := e.Kind == wire.KindRefused; e.OutOfStep == refused && other == "" || !strings.Contains(e.Code+e.Text, c.says) ||
			strings.ContainsFunc(e.Error(), func(r rune) bool { return r < ' ' }) || len(e.Error()) > 600 {
			t.Errorf("error %+v", e)
		}
		if e.Kind == wire.KindTimeout && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v does not match context.DeadlineExceeded", err)
		}
	case err != nil || !slices.Contains(c.wants, got):
		t.Errorf("got %q, %v, want %q", got, err, c.wants)
	}
	if n := sent.Load(); (n > 0) != (c.answer+c.then != "") {
		t.Errorf("%d commands were sent", n)
	}
}

// serve answers the command that a case is about, and every other one with OK.
func (c *answerCase) serve(s *scripted.Conn, command string, sent *atomic.Int32) {
	s.Greet(c.caps)
	for {
		tag, line := s.Expect()
		if !strings.HasPrefix(line, command) {
			if strings.HasPrefix(line, "SELECT") {
				s.Send("* 300 EXISTS\r\n* OK [UIDVALIDITY 7] v\r\n")
			}
			s.Send(tag + " OK done\r\n")
			continue
		}
		sent.Add(1)
		if strings.HasPrefix(line, "APPEND") && strings.HasSuffix(line, "}") {
			s.Line() // the message
		}
		s.Send(strings.ReplaceAll(c.answer, "$TAG", tag))
		switch c.then {
		case "again":
			for {
				s.Send(c.answer)
			}
		case "drip":
			trickle(s, "", c.last)
		case "drain":
			s.Drain()
		case "close":
			return
		}
	}
}
