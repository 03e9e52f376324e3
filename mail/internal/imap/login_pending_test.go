package imap

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail/internal/wire"
	"github.com/postern-mail/postern/mail/servertest/scripted"
)

// openAndFetch is a lend that sends two commands at once and returns both errors.
func openAndFetch(s *Session) (examineErr, fetchErr error) {
	var e *Examining
	var f *Fetching
	s.Together(func() {
		e = s.Examine("INBOX")
		f = s.Fetch(UIDs(1), Items{Flags: true})
	})
	_, examineErr = e.Wait()
	_, fetchErr = f.Wait()
	return examineErr, fetchErr
}

// oneWrite greets, and reads what has arrived as one write.
func oneWrite(s *scripted.Conn, caps string) string {
	s.Send("* OK [CAPABILITY " + caps + "] ready\r\n")
	return s.OneWrite()
}

const loggedIn = "L1 OK [CAPABILITY " + scripted.Caps + "] in\r\n"

// fetched answers openAndFetch.
const fetchedAnswer = "* 3 EXISTS\r\n* OK [UIDVALIDITY 7] v\r\nT1 OK done\r\n* 1 FETCH (UID 1 FLAGS ())\r\nT2 OK done\r\n"

func TestLoginLeavesWithTheFirstCommands(t *testing.T) {
	for name, login := range map[string]wire.Login{"PLAIN": scripted.WithPassword(scripted.Password), "XOAUTH2": scripted.WithToken("t0ken"), "OAUTHBEARER": scripted.WithToken("t0ken")} {
		t.Run(name, func(t *testing.T) {
			sent := make(chan string, 1)
			sv := scripted.Serve(t, func(s *scripted.Conn) {
				sent <- oneWrite(s, scripted.Caps+" AUTH="+name)
				s.Send("* OK almost\r\n" + loggedIn + fetchedAnswer)
				obey(s)
			})
			cfg := configOf(sv)
			cfg.Login = login
			p := newPool(t, PoolOptions{Config: cfg})
			mustLend(t, p, "", func(_ context.Context, s *Session) error {
				if _, ok := s.Selected(); ok {
					t.Error("a folder is open")
				}
				examineErr, fetchErr := openAndFetch(s)
				if examineErr != nil || fetchErr != nil {
					return fmt.Errorf("%v, %v", examineErr, fetchErr)
				}
				if !s.Has("MOVE") || name != "PLAIN" && s.Has("AUTH="+name) {
					t.Errorf("capabilities %v", s.Capabilities())
				}
				if h := s.guard.login; h.exchange != nil || h.newer != nil {
					t.Error("what was sent is still known")
				}
				for _, kept := range [][]byte{s.guard.login.line, s.guard.held} {
					if len(bytes.Trim(kept, "\x00")) > 0 {
						t.Error("the login is still in memory")
					}
				}
				return nil
			})
			first := <-sent
			lines := strings.Split(first, "\r\n")
			if len(lines) != 4 || !strings.HasPrefix(lines[0], "L1 AUTHENTICATE "+name+" ") || !strings.Contains(lines[1], "EXAMINE") || !strings.Contains(lines[2], "FETCH") {
				t.Errorf("first write %q", first)
			}
		})
	}
}

// A server that offers ID is told which program this is before it is asked to open a folder, in
// the same write; a refusal costs nothing.
func TestTheProgramNamesItselfWithTheFirstCommands(t *testing.T) {
	for _, caps := range []string{"IMAP4rev1 SASL-IR AUTH=PLAIN ID", "IMAP4rev1 ID"} {
		sent := make(chan string, 1)
		sv := scripted.Serve(t, func(s *scripted.Conn) {
			first := oneWrite(s, caps)
			if !strings.Contains(first, "EXAMINE") { // the login alone
				s.Send(loggedIn)
				first += s.OneWrite()
				sent <- first
				s.Send("T1 NO never heard of it\r\n")
			} else {
				sent <- first
				s.Send(loggedIn + "* ID (\"name\" \"x\" \"vendor\" NIL)\r\nT1 OK known\r\n")
			}
			s.Send(strings.NewReplacer("T2", "T3", "T1", "T2").Replace(fetchedAnswer))
			s.Drain()
		})
		mustLend(t, newPool(t, PoolOptions{Config: configOf(sv)}), "", func(_ context.Context, s *Session) error {
			examineErr, fetchErr := openAndFetch(s)
			return errors.Join(examineErr, fetchErr)
		})
		first := <-sent
		if lines := strings.Split(first, "\r\n"); len(lines) != 5 || lines[1] != `T1 ID ("name" "Postern")` || !strings.Contains(lines[2], "EXAMINE") {
			t.Errorf("%s: sent %q", caps, first)
		}
	}
}

// Whatever comes in the place of the login's answer ends every command of the
// lend in the same way, and the connection with them.
func TestLoginThatFailsWithTheFirstCommands(t *testing.T) {
	t.Parallel()
	for _, tc := range testmain.Table[struct {
		Name, Answer string
		Kind         wire.Kind
		Code         string
	}](t, "testdata/cases/login_failures.txt") {
		t.Run(tc.Name, func(t *testing.T) {
			ended := make(chan struct{})
			sv := scripted.Serve(t, func(s *scripted.Conn) {
				defer close(ended)
				oneWrite(s, scripted.Caps)
				if tc.Answer == "" {
					return
				}
				s.Send(tc.Answer)
				s.Drain()
			})
			p := newPool(t, PoolOptions{Config: configOf(sv)})
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			if tc.Kind == wire.KindTimeout {
				ctx, cancel = context.WithTimeout(t.Context(), time.Second)
			}
			defer cancel()
			calls := 0
			err := p.Lend(ctx, "", func(_ context.Context, s *Session) error {
				calls++
				for _, err := range func() []error { a, b := openAndFetch(s); return []error{a, b, s.Noop().Wait(), s.Ready()} }() {
					e := wantError(t, err, tc.Kind, wire.StageAuth)
					if e.Code != tc.Code || !e.OutOfStep || e.Stage != wire.StageAuth || strings.ContainsAny(e.Error(), "\a\r\n") || e.Permanent != (tc.Kind == wire.KindAuth) {
						t.Errorf("error %+v", e)
					}
				}
				if s.Has("MOVE") || len(s.Capabilities()) > 0 {
					t.Error("it has capabilities")
				}
				return nil // who does not look is told all the same
			})
			wantError(t, err, tc.Kind, wire.StageAuth)
			<-ended
			if calls != 1 || sv.Accepted() != 1 {
				t.Errorf("%d calls, %d connections", calls, sv.Accepted())
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.open != 0 || p.logins.pending != 0 || p.logins.proven {
				t.Errorf("open %d, unsettled %d, proven %v", p.open, p.logins.pending, p.logins.proven)
			}
		})
	}
}

// A server that does not say what it offers after the login is asked once: when
// somebody wants to know, or with the first command of a change or a later lend.
func TestCapabilitiesAreAskedForOnce(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		use  func(p *Pool) error
		want string // what was sent, each write in brackets
	}{
		{"who only reads does not ask", func(p *Pool) error {
			return p.Lend(context.Background(), "", lookAt("A"))
		}, "[AUTHENTICATE EXAMINE]"},
		{"who asks first", func(p *Pool) error {
			return p.Lend(context.Background(), "", func(ctx context.Context, s *Session) error {
				if !s.Has("MOVE") || s.Has("BEFORE") {
					return fmt.Errorf("capabilities %v", s.Capabilities())
				}
				return noop(ctx, s)
			})
		}, "[AUTHENTICATE][CAPABILITY][NOOP]"},
		{"who asks in between", func(p *Pool) error {
			return p.Lend(context.Background(), "", func(_ context.Context, s *Session) error {
				var e *Examining
				var n *Waiter
				s.Together(func() {
					e = s.Examine("A")
					if !s.Has("MOVE") {
						e = nil
					}
					n = s.Noop()
				})
				_, err := e.Wait()
				if err == nil {
					err = n.Wait()
				}
				return err
			})
		}, "[AUTHENTICATE EXAMINE][CAPABILITY][NOOP]"},
		{"a change", func(p *Pool) error {
			return p.Change(context.Background(), "", MoveMessages, func(_ context.Context, s *Session) error {
				if _, err := s.Select("A").Wait(); err != nil {
					return err
				}
				if !s.CanMove() || !s.UIDPlus() {
					return fmt.Errorf("capabilities %v", s.Capabilities())
				}
				_, err := s.Move(UIDs(1), "B").Wait()
				return err
			})
		}, "[AUTHENTICATE][CAPABILITY SELECT][UID]"},
		{"a later lend", func(p *Pool) error {
			for range 3 {
				if err := p.Lend(context.Background(), "", noop); err != nil {
					return err
				}
			}
			return nil
		}, "[AUTHENTICATE NOOP][CAPABILITY NOOP][NOOP]"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			var log strings.Builder
			done := make(chan struct{})
			sv := scripted.Serve(t, func(s *scripted.Conn) {
				defer close(done)
				s.Send("* OK [CAPABILITY IMAP4rev1 AUTH=PLAIN SASL-IR BEFORE] ready\r\n")
				buf := make([]byte, 4096)
				for {
					n, err := s.Read(buf)
					if err != nil {
						return
					}
					var verbs []string
					answer := ""
					for line := range strings.SplitSeq(strings.TrimSuffix(string(buf[:n]), "\r\n"), "\r\n") {
						words := strings.Fields(line)
						verbs = append(verbs, words[1])
						switch words[1] {
						case "CAPABILITY":
							answer += "* CAPABILITY IMAP4rev1 MOVE UIDPLUS\r\n"
						case "EXAMINE", "SELECT":
							answer += "* OK [UIDVALIDITY 7] v\r\n"
						}
						answer += words[0] + " OK done\r\n"
					}
					if verbs[0] != "LOGOUT" {
						log.WriteString("[" + strings.Join(verbs, " ") + "]")
					}
					s.Send(answer)
				}
			})
			p := NewPool(PoolOptions{Config: configOf(sv), Sessions: 1})
			if err := tc.use(p); err != nil {
				t.Error(err)
			}
			_ = p.Close()
			<-done
			if log.String() != tc.want {
				t.Errorf("sent %s, want %s", log.String(), tc.want)
			}
		})
	}
}

// An answer to a login that was not sent yet is none.
func TestLoginAnsweredBeforeItWasSent(t *testing.T) {
	sv := scripted.Serve(t, func(s *scripted.Conn) {
		s.Send("* OK [CAPABILITY " + scripted.Caps + "] ready\r\n" + loggedIn)
		s.Drain()
	})
	p := newPool(t, PoolOptions{Config: configOf(sv)})
	var e *wire.Error
	err := p.Lend(t.Context(), "", noop)
	// It may come with the greeting or behind it.
	if !errors.As(err, &e) || e.Kind != wire.KindProtocol || e.Stage != wire.StageAuth && e.Stage != wire.StageGreeting {
		t.Errorf("got %+v", err)
	}
}

// The first commands may need the server to ask for their text.
func TestHeldLoginWithASynchronizingLiteral(t *testing.T) {
	got := make(chan string, 1)
	sv := scripted.Serve(t, func(s *scripted.Conn) {
		first := oneWrite(s, "IMAP4rev1 AUTH=PLAIN SASL-IR")
		s.Send("L1 OK in\r\n+ go\r\n")
		b := make([]byte, len("Grüße\r\n"))
		_, _ = io.ReadFull(s.Lines, b)
		got <- first + string(b)
		s.Send("* SEARCH 2 3\r\nT1 OK done\r\n")
		obey(s)
	})
	p := newPool(t, PoolOptions{Config: configOf(sv)})
	mustLend(t, p, "", func(_ context.Context, s *Session) error {
		set, err := s.Search(HeaderHolds("Subject", "Grüße")).Wait()
		if err == nil && set.wire().String() != "2:3" {
			err = fmt.Errorf("found %v", set)
		}
		return err
	})
	text := <-got
	if !strings.HasPrefix(text, "L1 AUTHENTICATE PLAIN "+base64.StdEncoding.EncodeToString([]byte("\x00ann\x00s3cret-pass"))+"\r\nT1 UID SEARCH") || !strings.HasSuffix(text, "{7}\r\nGrüße\r\n") {
		t.Errorf("sent %q", text)
	}
}

// A connection that ends before the library has read its greeting leaves no login
// without an outcome.
func TestALoginEndsWithTheConnection(t *testing.T) {
	client, server := net.Pipe()
	defer func() { _ = server.Close() }()
	g := newGuard(client, &Config{})
	p := &pendingLogin{newer: func() bool { return false }, done: make(chan struct{})}
	must(t, g.mending("* PREAUTH ready\r\n", nil, p, nil))
	g.end(ErrClosed)
	if _, err := g.Read(make([]byte, 1)); !errors.Is(err, ErrClosed) {
		t.Errorf("the library reads: %v", err)
	}
	select {
	case <-p.done:
	default:
		t.Error("the login has no outcome")
	}
}
