package imap

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail/internal/wire"
	"github.com/postern-mail/postern/mail/servertest/scripted"
)

func TestLoginOverTLSAndSTARTTLS(t *testing.T) {
	ca := scripted.Authority(t)
	cert := scripted.Leaf(t, ca, time.Now().Add(time.Hour), "mail.example.org")
	after := func(s *scripted.Conn) {
		for {
			tag, cmd := s.Expect()
			switch {
			case strings.HasPrefix(cmd, "CAPABILITY"):
				s.Send("* CAPABILITY IMAP4rev1 AUTH=PLAIN SASL-IR MOVE\r\n" + tag + " OK\r\n")
			case cmd == "AUTHENTICATE PLAIN "+base64.StdEncoding.EncodeToString([]byte("\x00ann\x00s3cret-pass")):
				s.Send(tag + " OK in\r\n")
			case cmd == "NOOP":
				s.Send(tag + " OK\r\n")
			default:
				s.Send(tag + " BAD unknown\r\n")
			}
		}
	}
	for security, run := range map[wire.Security]func(*scripted.Conn){
		wire.TLS: scripted.OverTLS(cert, func(s *scripted.Conn) { s.Send("* OK ready\r\n"); after(s) }),
		wire.StartTLS: func(s *scripted.Conn) {
			// What is claimed in the clear does not count afterwards.
			s.Send("* OK [CAPABILITY IMAP4rev1 STARTTLS AUTH=XSTEAL LOGINDISABLED] ready\r\n")
			s.Answer("TAG OK begin\r\n")
			scripted.OverTLS(cert, after)(s)
		},
	} {
		cfg := Config{Target: scripted.Serve(t, run).Target(security)}
		cfg.RootCAs, cfg.ServerName = ca.Pool(), "mail.example.org"
		s := dial(t, cfg)
		if err := s.Use(t.Context(), noop); err != nil {
			t.Errorf("%s: %v", security, err)
		}
		if !s.Has("MOVE") || s.Has("STARTTLS") || s.Has("AUTH=XSTEAL") {
			t.Errorf("%s: capabilities %v", security, s.Capabilities())
		}
	}
}

func TestLoginWays(t *testing.T) {
	for _, tc := range testmain.Table[struct {
		Name, Caps, Password, Want string
		Answers                    []string
	}](t, "testdata/cases/login_ways.txt") {
		t.Run(tc.Name, func(t *testing.T) {
			got := make(chan string, 8)
			cfg := serve(t, func(s *scripted.Conn) {
				s.Send("* OK [CAPABILITY IMAP4rev1 " + tc.Caps + "] ready\r\n")
				var tag string
				for i, a := range tc.Answers {
					first, rest := s.Expect()
					if i == 0 {
						tag = first
						got <- rest
					} else {
						got <- strings.TrimSuffix(first+" "+rest, " ")
					}
					if strings.HasPrefix(a, "+") {
						s.Send(a + "\r\n")
					} else {
						s.Send(tag + " " + a + "\r\n")
					}
				}
				s.Answer("* CAPABILITY IMAP4rev1\r\nTAG OK\r\n")
				s.Drain()
			})
			cfg.Login = scripted.WithPassword(tc.Password)
			dial(t, cfg)
			for _, want := range strings.Split(tc.Want, "|") {
				if g := <-got; g != want {
					t.Errorf("sent %q, want %q", g, want)
				}
			}
		})
	}
}

// What must not be sent, or cannot, is not, and counts as no refusal of the server.
func TestCredentialsThatDoNotLeave(t *testing.T) {
	for _, tc := range testmain.Table[struct{ Name, Caps, Password, Token string }](t, "testdata/cases/unsaid.txt") {
		sent := make(chan string, 1)
		cfg := serve(t, func(s *scripted.Conn) {
			s.Send("* OK [CAPABILITY IMAP4rev1 SASL-IR " + tc.Caps + "] ready\r\n")
			b, _ := io.ReadAll(s.Lines)
			sent <- string(b)
		})
		cfg.Login.Credential = func(context.Context) (wire.Credential, error) {
			return wire.Credential{Password: tc.Password, Token: tc.Token}, nil
		}
		cfg.Login.Refused = func(context.Context, wire.Credential) bool {
			t.Errorf("%s: counts as refused", tc.Name)
			return false
		}
		_, err := Dial(t.Context(), cfg)
		e := wantError(t, err, wire.KindAuth, wire.StageAuth)
		if got := <-sent; got != "" || !e.Permanent || strings.Contains(e.Error(), "t0ken") || strings.Contains(e.Error(), "pw") {
			t.Errorf("%s: sent %q, %v", tc.Name, got, e)
		}
	}
}

func TestSelectedFollowsTheServer(t *testing.T) {
	cfg := serve(t, func(s *scripted.Conn) {
		s.Login()
		s.Examine()
		for _, more := range []string{"* 9 EXISTS\r\n", "* 1 EXPUNGE\r\n* 1 EXPUNGE\r\n", "* OK [CLOSED] gone\r\n"} {
			tag, _ := s.Expect()
			s.Send(more + tag + " OK done\r\n")
		}
		s.Drain()
	})
	using(t, cfg, func(s *Session) error {
		f, err := s.Examine("inbox").Wait()
		if err != nil || f != (Folder{Name: "INBOX", UIDValidity: 7, UIDNext: 4, Exists: 3}) {
			return fmt.Errorf("examined %+v: %v", f, err)
		}
		for _, want := range []uint32{9, 7} {
			if err := s.Noop().Wait(); err != nil {
				return err
			}
			if f, ok := s.Selected(); !ok || f.Exists != want {
				return fmt.Errorf("scripted.Selected %+v, want %d messages", f, want)
			}
		}
		if err := s.Noop().Wait(); err != nil {
			return err
		}
		if f, ok := s.Selected(); ok {
			return fmt.Errorf("still scripted.Selected %+v", f)
		}
		return nil
	})
}

// Commands that leave together are one write, unless one of them has to wait for
// the server on its way.
func TestTogetherIsOneWrite(t *testing.T) {
	got := make(chan string, 2)
	cfg := serve(t, func(s *scripted.Conn) {
		s.Greet("IMAP4rev1 AUTH=PLAIN SASL-IR ESEARCH")
		got <- s.OneWrite()
		s.Send("* 9 EXISTS\r\n* OK [UIDVALIDITY 7] v\r\nT1 OK\r\n* ESEARCH (TAG \"T2\") COUNT 4\r\nT2 OK\r\nT3 OK\r\n")
		_, line := s.Expect() // SEARCH CHARSET UTF-8 SUBJECT {n}
		got <- line
		s.Send("+ go\r\n")
		s.Expect()
		s.Send("* ESEARCH (TAG \"T4\") UID ALL 2:3\r\nT4 OK\r\n")
		s.Drain()
	})
	using(t, cfg, func(s *Session) error {
		var e *Examining
		var c *Counting
		var f *Fetching
		s.Together(func() {
			e, c = s.Examine("A"), s.Count(Criteria{UIDs: []UIDSet{UIDs(1)}})
			f = s.Fetch(UIDs(1), Items{Flags: true})
		})
		if box, err := e.Wait(); err != nil || box.Exists != 9 {
			return fmt.Errorf("%+v %w", box, err)
		}
		if n, err := c.Wait(); err != nil || n != 4 {
			return fmt.Errorf("%d %w", n, err)
		}
		if _, err := f.Wait(); err != nil {
			return err
		}
		var x *Searching
		s.Together(func() {
			x = s.Search(HeaderHolds("Subject", "Grüße"))
		})
		set, err := x.Wait()
		if err != nil || set.wire().String() != "2:3" {
			return fmt.Errorf("%v %w", set, err)
		}
		return nil
	})
	if first := <-got; strings.Count(first, "\r\n") != 3 {
		t.Errorf("first write %q", first)
	}
	if line := <-got; !strings.HasSuffix(line, "{7}") {
		t.Errorf("then %q", line)
	}
}

// A connection can end between two commands, and in the middle of several that are
// to leave in one write. None of them may wait for an answer that cannot come.
func TestCommandsOnAConnectionThatEndedFail(t *testing.T) {
	for _, test := range []struct {
		name  string
		start func(s *Session, waits chan<- func() error, end func())
	}{
		{"alone", func(s *Session, waits chan<- func() error, end func()) {
			end()
			waits <- s.Noop().Wait
			waits <- func() error { return second(s.Examine("A").Wait()) }
		}},
		{"together", func(s *Session, waits chan<- func() error, end func()) {
			end()
			s.Together(func() {
				f, n := s.Fetch(UIDs(1), Items{Flags: true}), s.Noop()
				waits <- func() error { return second(f.Wait()) }
				waits <- n.Wait
			})
		}},
		{"between two that leave together", func(s *Session, waits chan<- func() error, end func()) {
			s.Together(func() {
				first := s.Noop()
				end()
				l := s.List("*", false)
				waits <- first.Wait
				waits <- func() error { return second(l.Wait()) }
			})
		}},
		{"with a literal", func(s *Session, waits chan<- func() error, end func()) {
			end()
			s.Together(func() {
				x := s.Search(HeaderHolds("Subject", "Grüße"))
				waits <- func() error { return second(x.Wait()) }
				waits <- s.Noop().Wait
			})
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			hangUp := make(chan struct{})
			cfg := serve(t, func(s *scripted.Conn) {
				s.Login()
				<-hangUp
			})
			using(t, cfg, func(s *Session) error {
				waits := make(chan func() error, 2)
				test.start(s, waits, func() {
					close(hangUp)
					<-s.client.Closed()
				})
				for range 2 {
					wait := <-waits
					ended := make(chan error, 1)
					go func() { ended <- wait() }()
					select {
					case err := <-ended:
						var e *wire.Error
						if !errors.As(err, &e) || e.Kind != wire.KindClosed || !e.OutOfStep {
							t.Errorf("got %+v, want that the connection was closed", err)
						}
					case <-time.After(30 * time.Second):
						t.Fatal("a command waits for an answer on a connection that has ended")
					}
				}
				return nil
			})
		})
	}
}
