package imap

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/mail/internal/wire"
	"github.com/postern-mail/postern/mail/servertest/scripted"
)

// with changes something with a grant on a pool of one session.
func with(t *testing.T, cfg Config, grant Grant, fn func(s *Session) error) error {
	t.Helper()
	p := newPool(t, PoolOptions{Config: cfg, Sessions: 1})
	return p.Change(t.Context(), "", grant, func(_ context.Context, s *Session) error { return fn(s) })
}

// A change is repeated on a new connection only when nothing that changes had
// left: afterwards nobody knows whether it happened.
func TestChangeIsRepeatedOnlyBeforeItBegan(t *testing.T) {
	tests := []struct {
		name      string
		open      bool // fn opens the folder first
		diesAt    string
		calls     int
		conns     int
		succeeded bool
	}{
		{"the idle connection was dead", true, "SELECT", 2, 2, true},
		{"it died with the change under way", true, "UID STORE", 1, 1, false},
		{"the first command was the change", false, "UID STORE", 1, 1, false},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			sv := scripted.Serve(t, func(s *scripted.Conn) {
				first := s.N == 1
				scripted.AnswerIMAP(scripted.Caps, func(command string) string {
					if first && strings.HasPrefix(command, tc.diesAt) {
						return ""
					}
					if strings.HasPrefix(command, "SELECT") {
						return scripted.Selected
					}
					return "* 1 FETCH (UID 1 FLAGS (\\Seen))\r\nTAG OK done\r\n"
				})(s)
			})
			p := newPool(t, PoolOptions{Config: configOf(sv)})
			mustLend(t, p, "", noop)
			calls := 0
			err := p.Change(t.Context(), "INBOX", MarkSeen, func(_ context.Context, s *Session) error {
				calls++
				if tc.open {
					if _, err := s.Select("INBOX").Wait(); err != nil {
						return err
					}
				}
				_, err := s.Store(UIDs(1), false, []string{`\Seen`}).Wait()
				return err
			})
			if (err == nil) != tc.succeeded || calls != tc.calls || sv.Accepted() != tc.conns {
				t.Errorf("%d calls on %d connections: %v", calls, sv.Accepted(), err)
			}
			if err != nil {
				wantError(t, err, wire.KindClosed, StageStore)
			}
		})
	}
}

// A message leaves at once or when it is asked for, and is refused before or after.
func TestAppend(t *testing.T) {
	raw := []byte("Subject: x\r\n\r\na\r\nb STORE 1 +FLAGS (\\Deleted)\r\n")
	for name, tc := range map[string]struct {
		caps    string
		refused bool
	}{
		"at once": {" LITERAL+", false}, "when asked": {"", false}, "refused after it": {" LITERAL+", true}, "refused before it": {"", true},
	} {
		t.Run(name, func(t *testing.T) {
			got := make(chan string, 1)
			cfg := serve(t, func(s *scripted.Conn) {
				s.Greet("IMAP4rev1 AUTH=PLAIN SASL-IR UIDPLUS" + tc.caps)
				tag, command := s.Expect()
				comes := strings.HasSuffix(command, "+}")
				if !comes && !tc.refused {
					s.Send("+ go\r\n")
					comes = true
				}
				if comes {
					body := make([]byte, len(raw)+2)
					_, _ = io.ReadFull(s.Lines, body)
					command += "|" + string(body)
				}
				got <- command
				if tc.refused {
					s.Send(tag + " NO [TRYCREATE] no such folder\r\n")
				} else {
					s.Send(tag + " OK [APPENDUID 9 33] done\r\n")
				}
				obey(s)
			})
			err := with(t, cfg, AppendMessages, func(s *Session) error {
				date := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
				validity, uid, err := s.Append("Drafts", []string{`\Draft`, "x"}, date, raw)
				if tc.refused {
					if e := wantError(t, err, wire.KindRefused, StageAppend); e.Code != "TRYCREATE" || e.OutOfStep {
						t.Errorf("error %+v", e)
					}
					return nil
				}
				if err != nil || validity != 9 || uid != 33 {
					return fmt.Errorf("message %d of %d: %w", uid, validity, err)
				}
				return nil
			})
			must(t, err)
			text := <-got
			if !strings.Contains(text, `APPEND "Drafts" (\Draft x) " 4-Mar-2026 05:06:07 +0000" {`) || name != "refused before it" && !strings.Contains(text, "|"+string(raw)+"\r\n") {
				t.Errorf("sent %q", text)
			}
		})
	}
}

// Several fetches leave in one write, and their answers may mix.
func TestFetchEachKeepsAnswersApart(t *testing.T) {
	first := make(chan string, 1)
	cfg := serve(t, func(s *scripted.Conn) {
		s.Login()
		first <- s.OneWrite()
		s.Send("* 2 FETCH (UID 12 BODY[2] {3}\r\ntwo)\r\n* 9 FETCH (FLAGS (\\Seen))\r\n* 1 FETCH (UID 11 BODY[1] {3}\r\none)\r\n" +
			"T2 OK done\r\n* 3 FETCH (BODY[1] {5}\r\nthree UID 13)\r\nT1 OK done\r\n")
		s.Drain()
	})
	part := func(n string) Items {
		return Items{Sections: []Section{{Part: n}}}
	}
	using(t, cfg, func(s *Session) error {
		data, err := s.FetchEach([]FetchRequest{{UIDs(11, 13), part("1")}, {UIDs(12), part("2")}}).Wait()
		if err != nil {
			return err
		}
		var got []string
		for _, d := range data {
			for _, b := range d.Sections {
				got = append(got, fmt.Sprintf("%d %s %s", d.UID, b.Part, b.Bytes))
			}
		}
		if want := []string{"11 1 one", "12 2 two", "13 1 three"}; !slices.Equal(got, want) {
			return fmt.Errorf("got %q, want %q", got, want)
		}
		return nil
	})
	if sent := <-first; strings.Count(sent, "\r\n") != 2 || strings.Count(sent, "BODY.PEEK[") != 2 {
		t.Errorf("first write %q", sent)
	}
}
