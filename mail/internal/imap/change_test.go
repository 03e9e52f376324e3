package imap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	goimap "github.com/emersion/go-imap/v2"
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
			scripted.Settle(t)
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
				_, err := s.Store(goimap.UIDSetNum(1), goimap.StoreFlagsAdd, []goimap.Flag{goimap.FlagSeen}).Wait()
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

func TestChangePrefersTheFolderSelected(t *testing.T) {
	scripted.Settle(t)
	sv := scripted.Serve(t, obedient)
	p := newPool(t, PoolOptions{Config: configOf(sv), Sessions: 2})
	err := p.Change(t.Context(), "", MarkSeen, func(ctx context.Context, a *Session) error {
		err := p.Lend(ctx, "", lookAt("A"))
		if err != nil {
			return err
		}
		f, err := a.Select("A").Wait()
		if err == nil && !f.Writable {
			err = errors.New("not writable")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		for _, writable := range []bool{true, false} {
			use := func(_ context.Context, s *Session) error {
				if f, ok := s.Selected(); !ok || f.Name != "A" || f.Writable != writable {
					t.Errorf("wanted writable %v, got %+v", writable, f)
				}
				return nil
			}
			var err error
			if writable {
				err = p.Change(t.Context(), "A", MarkSeen, use)
			} else {
				err = p.Lend(t.Context(), "A", use)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestCopiedSaysOnlyWhatFits(t *testing.T) {
	many := fmt.Sprintf("1:%d", maxCopied+1)
	tests := []struct {
		name, copyuid string
		want          map[uint32]uint32
	}{
		{"ranges that fit", "9 11:12,14 21,23:24", map[uint32]uint32{11: 21, 12: 23, 14: 24}},
		{"one", "9 11 5", map[uint32]uint32{11: 5}},
		{"fewer copies than messages", "9 11:13 21:22", nil},
		{"more copies than messages", "9 11 21:22", nil},
		{"all numbers there are", "9 1:4294967295 1:4294967295", nil},
		{"more than is written out", "9 " + many + " " + many, nil},
		{"no UIDVALIDITY", "0 11 21", nil},
		{"sources in another order", "9 14,11:12 21:23", nil},
		{"copies in another order", "9 11:12,14 23,21:22", nil},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			scripted.Settle(t)
			thrifty(t, 32<<20)
			cfg := serve(t, scripted.AnswerIMAP(scripted.Caps, func(command string) string {
				if strings.HasPrefix(command, "UID MOVE") {
					return "* OK [COPYUID " + tc.copyuid + "] moved\r\n* 1 EXPUNGE\r\nTAG OK done\r\n"
				}
				return "TAG OK [COPYUID " + tc.copyuid + "] copied\r\n"
			}))
			err := with(t, cfg, MoveMessages, func(s *Session) error {
				c, err := s.Copy(goimap.UIDSetNum(11, 12, 14), "Archive").Wait()
				if err != nil {
					return err
				}
				m, err := s.Move(goimap.UIDSetNum(11, 12, 14), "Archive").Wait()
				if err != nil {
					return err
				}
				for _, got := range []Copied{c, m} {
					if len(got.Target) != len(tc.want) {
						t.Errorf("got %d targets, want %d", len(got.Target), len(tc.want))
					}
					for from, to := range tc.want {
						if got.Target[from] != to || got.UIDValidity != 9 {
							t.Errorf("%d is now %d of %d, want %d of 9", from, got.Target[from], got.UIDValidity, to)
						}
					}
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// What a change cannot do on this server is refused here, with nothing sent.
func TestChangesRefusedBeforeTheyLeave(t *testing.T) {
	set := goimap.UIDSetNum(1)
	bare := "IMAP4rev1 AUTH=PLAIN SASL-IR"
	tests := []struct {
		name, caps string
		stage      string
		do         func(s *Session) error
	}{
		{"move without MOVE", bare + " UIDPLUS", StageMove, func(s *Session) error { return second(s.Move(set, "x").Wait()) }},
		{"expunge without UIDPLUS", bare + " MOVE", StageExpunge, func(s *Session) error { return second(s.Expunge(set).Wait()) }},
		{"flag with a line break", scripted.Caps, StageStore, func(s *Session) error {
			return second(s.Store(set, goimap.StoreFlagsAdd, []goimap.Flag{"x\r\na EXPUNGE"}).Wait())
		}},
		{"copy to a folder with a line break", scripted.Caps, StageCopy, func(s *Session) error { return second(s.Copy(set, "x\r\ny").Wait()) }},
		{"move to no folder", scripted.Caps, StageMove, func(s *Session) error { return second(s.Move(set, "").Wait()) }},
		{"append to a folder with a control", scripted.Caps, StageAppend, func(s *Session) error {
			_, _, err := s.Append("x\x00", nil, time.Time{}, []byte("abc"))
			return err
		}},
		{"examine with a control", scripted.Caps, StageExamine, func(s *Session) error { return second(s.Examine("a\r\nb LOGOUT").Wait()) }},
		{"examine no folder", scripted.Caps, StageExamine, func(s *Session) error { return second(s.Examine("").Wait()) }},
		{"status of a long name", scripted.Caps, StageStatus, func(s *Session) error { return second(s.Status(strings.Repeat("x", 1025), nil).Wait()) }},
		{"list with a C1 control", scripted.Caps, StageList, func(s *Session) error { return second(s.List("a\u0085", nil).Wait()) }},
		{"append with a flag that is none", scripted.Caps, StageAppend, func(s *Session) error {
			_, _, err := s.Append("x", []goimap.Flag{"a b"}, time.Time{}, []byte("abc"))
			return err
		}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			scripted.Settle(t)
			var sent atomic.Int32
			cfg := serve(t, scripted.AnswerIMAP(tc.caps, func(command string) string {
				if command != "NOOP" && command != "LOGOUT" {
					sent.Add(1)
				}
				return "TAG OK done\r\n"
			}))
			for _, g := range []Grant{MoveMessages, AppendMessages} {
				err := with(t, cfg, g, func(s *Session) error {
					e := wantError(t, tc.do(s), wire.KindRefused, tc.stage)
					if e.OutOfStep || !e.Permanent {
						t.Errorf("error %+v", e)
					}
					return s.Noop().Wait()
				})
				if err != nil {
					t.Errorf("the session did not survive: %v", err)
				}
			}
			if sent.Load() != 0 {
				t.Error("something was sent")
			}
		})
	}
}

// Flags are known only where the server named the message by its UID.
func TestStoreAnswers(t *testing.T) {
	tests := []struct{ name, answer, want string }{
		{"with UID", "* 1 FETCH (UID 11 FLAGS (\\Seen))\r\n* 2 FETCH (FLAGS (\\Seen x) UID 12)\r\nTAG OK done\r\n", `11[\Seen] 12[\Seen x]`},
		{"without UID", "* 1 FETCH (FLAGS (\\Seen))\r\nTAG OK done\r\n", ""},
		{"an older state first", "* 1 FETCH (UID 11 FLAGS ())\r\n* 1 FETCH (UID 11 FLAGS (\\Seen))\r\nTAG OK done\r\n", `11[\Seen]`},
		{"of another message", "* 9 FETCH (UID 99 FLAGS (\\Seen))\r\nTAG OK done\r\n", ""},
		{"none", "TAG OK done\r\n", ""},
		{"late", "TAG OK done\r\n* 1 FETCH (UID 11 FLAGS (\\Seen))\r\n", ""},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			scripted.Settle(t)
			cfg := serve(t, scripted.AnswerIMAP(scripted.Caps, func(command string) string {
				if strings.HasPrefix(command, "UID STORE") {
					return tc.answer
				}
				return "TAG OK done\r\n"
			}))
			err := with(t, cfg, ChangeFlags, func(s *Session) error {
				data, err := s.Store(goimap.UIDSetNum(11, 12), goimap.StoreFlagsAdd, []goimap.Flag{goimap.FlagSeen}).Wait()
				if err != nil {
					return err
				}
				var got []string
				for _, d := range data {
					got = append(got, fmt.Sprintf("%d%v", d.UID, d.Flags))
				}
				if text := strings.Join(got, " "); text != tc.want && (tc.name != "late" || text != `11[\Seen]`) {
					t.Errorf("got %q, want %q", got, tc.want)
				}
				if err := s.Noop().Wait(); err != nil {
					return err
				}
				// What came late belongs to nobody.
				fetched, err := s.Fetch(goimap.UIDSetNum(12), goimap.FetchOptions{Flags: true}).Wait()
				if err == nil && len(fetched) != 0 {
					err = fmt.Errorf("a later fetch got %+v", fetched[0])
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// A message leaves at once or when it is asked for, and is refused before or after.
func TestAppend(t *testing.T) {
	scripted.Settle(t)
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
				validity, uid, err := s.Append("Drafts", []goimap.Flag{goimap.FlagDraft, "x"}, date, raw)
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
			if err != nil {
				t.Fatal(err)
			}
			text := <-got
			if !strings.Contains(text, `APPEND "Drafts" (\Draft x) " 4-Mar-2026 05:06:07 +0000" {`) || name != "refused before it" && !strings.Contains(text, "|"+string(raw)+"\r\n") {
				t.Errorf("sent %q", text)
			}
		})
	}
}

// Several fetches leave in one write, and their answers may mix.
func TestFetchEachKeepsAnswersApart(t *testing.T) {
	scripted.Settle(t)
	first := make(chan string, 1)
	cfg := serve(t, func(s *scripted.Conn) {
		s.Login()
		first <- s.OneWrite()
		s.Send("* 2 FETCH (UID 12 BODY[2] {3}\r\ntwo)\r\n* 9 FETCH (FLAGS (\\Seen))\r\n* 1 FETCH (UID 11 BODY[1] {3}\r\none)\r\n" +
			"T2 OK done\r\n* 3 FETCH (BODY[1] {5}\r\nthree UID 13)\r\nT1 OK done\r\n")
		s.Drain()
	})
	part := func(n int) goimap.FetchOptions {
		return goimap.FetchOptions{BodySection: []*goimap.FetchItemBodySection{{Part: []int{n}}}}
	}
	using(t, cfg, func(s *Session) error {
		data, err := s.FetchEach([]FetchRequest{{goimap.UIDSetNum(11, 13), part(1)}, {goimap.UIDSetNum(12), part(2)}}).Wait()
		if err != nil {
			return err
		}
		var got []string
		for _, d := range data {
			for _, b := range d.BodySection {
				got = append(got, fmt.Sprint(d.UID, b.Section.Part, string(b.Bytes)))
			}
		}
		if want := []string{"11 [1]one", "12 [2]two", "13 [1]three"}; !slices.Equal(got, want) {
			return fmt.Errorf("got %q, want %q", got, want)
		}
		return nil
	})
	if sent := <-first; strings.Count(sent, "\r\n") != 2 || strings.Count(sent, "BODY.PEEK[") != 2 {
		t.Errorf("first write %q", sent)
	}
}

func TestHostileServerDuringChanges(t *testing.T) {
	set := goimap.UIDSetNum(1, 2)
	nest := strings.Repeat("(", 1<<18)
	do := map[string]func(s *Session) error{
		StageSelect: func(s *Session) error { return second(s.Select("INBOX").Wait()) },
		StageStore: func(s *Session) error {
			return second(s.Store(set, goimap.StoreFlagsAdd, []goimap.Flag{goimap.FlagDeleted}).Wait())
		},
		StageCopy:    func(s *Session) error { return second(s.Copy(set, "x").Wait()) },
		StageMove:    func(s *Session) error { return second(s.Move(set, "x").Wait()) },
		StageExpunge: func(s *Session) error { return second(s.Expunge(set).Wait()) },
		StageAppend:  func(s *Session) error { _, _, err := s.Append("x", nil, time.Time{}, []byte("abc")); return err },
		StageFetch: func(s *Session) error {
			return second(s.FetchEach([]FetchRequest{{set, goimap.FetchOptions{Flags: true}}, {goimap.UIDSetNum(3), goimap.FetchOptions{Flags: true}}}).Wait())
		},
	}
	tests := []struct {
		name   string
		answer string // ends the connection when empty
		again  bool   // send the answer without end
		kind   wire.Kind
	}{
		{"refused", "TAG NO [NOPERM] not\x01 yours\r\n", false, wire.KindRefused},
		{"bad", "TAG BAD what\r\n", false, wire.KindRefused},
		{"closed", "", false, wire.KindClosed},
		{"goodbye", "* BYE [UNAVAILABLE] later\r\n", false, wire.KindClosed},
		{"silent", "* OK wait\r\n", false, wire.KindTimeout},
		{"another tag", "Z9 OK done\r\n", false, wire.KindProtocol},
		{"neither yes nor no", "TAG MAYBE done\r\n", false, wire.KindProtocol},
		{"numbers of messages without end", strings.Repeat("* 1 EXPUNGE\r\n", 100), true, wire.KindLimit},
		{"flags without end", strings.Repeat("* 1 FETCH (UID 1 FLAGS ())\r\n", 100), true, wire.KindLimit},
		{"line without end", "* OK " + strings.Repeat("x", 1<<20), true, wire.KindLimit},
		{"nesting", "* THREAD " + nest + "\r\n", false, wire.KindLimit},
		{"nesting in flags", "* 1 FETCH (UID 1 FLAGS " + nest + "\r\n", false, wire.KindLimit},
		{"large literal", "* 1 FETCH (UID 1 BODY[] {10000000000}\r\n", false, wire.KindLimit},
	}
	for i, tc := range tests {
		for j, stage := range slices.Sorted(maps.Keys(do)) {
			if testing.Short() && (i+j)%3 > 0 {
				continue
			}
			t.Run(tc.name+" "+stage, func(t *testing.T) {
				scripted.Settle(t)
				thrifty(t, 256<<20)
				sv := scripted.Serve(t, func(s *scripted.Conn) {
					s.Login()
					tag, command := s.Expect()
					if tc.answer == "" {
						return
					}
					if n := strings.LastIndex(command, "{"); stage == StageAppend && n >= 0 {
						s.Expect() // the message
					}
					s.Send(strings.ReplaceAll(tc.answer, "TAG", tag))
					for tc.again {
						s.Send(tc.answer)
					}
					if strings.HasPrefix(tc.answer, "* BYE") {
						return
					}
					tag2, _ := s.Expect() // the second fetch, or the end
					s.Send(strings.ReplaceAll(tc.answer, "TAG", tag2))
					obey(s)
				})
				cfg := configOf(sv)
				cfg.Limits.Bytes, cfg.Limits.Answers = 2<<20, 5000
				if tc.kind == wire.KindTimeout {
					cfg.Socket = 40 * time.Millisecond
				}
				grant := MoveMessages
				if stage == StageAppend {
					grant = AppendMessages
				}
				err := with(t, cfg, grant, do[stage])
				e := wantError(t, err, tc.kind, stage)
				if e.OutOfStep != (tc.kind != wire.KindRefused) || strings.ContainsAny(e.Error(), "\x01\r\n") || len(e.Error()) > 600 {
					t.Errorf("error %+v", e)
				}
				if sv.Accepted() != 1 {
					t.Errorf("%d connections", sv.Accepted())
				}
			})
		}
	}
}
