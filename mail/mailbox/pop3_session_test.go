package mailbox

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/mail/internal/pop3"
	"github.com/postern-mail/postern/mail/internal/wire"
)

// stallingPop is a POP3 server with one message that says nothing more once it gets a
// certain command; "greeting" stands for the connection itself.
type stallingPop struct {
	at    string
	said  chan string   // each command
	stuck chan struct{} // it says nothing more
	gone  chan struct{} // a client has gone
}

func stallAt(t *testing.T, command string) (*popSession, *stallingPop) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	s := &stallingPop{at: command, said: make(chan string, 100), stuck: make(chan struct{}, 100), gone: make(chan struct{}, 100)}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go s.serve(conn)
		}
	}()
	credential := func(context.Context) (wire.Credential, error) { return wire.Credential{Password: "secret"}, nil }
	cfg := pop3.Config{Target: wire.Target{Host: "127.0.0.1", Port: uint16(l.Addr().(*net.TCPAddr).Port), Security: wire.Plaintext, Login: wire.Login{Username: "ann", Credential: credential}}}
	return newPopSession(cfg, time.Now), s
}

func (s *stallingPop) serve(conn net.Conn) {
	defer func() {
		_ = conn.Close()
		s.gone <- struct{}{}
	}()
	answer := func(command string) bool {
		if command == s.at {
			s.stuck <- struct{}{}
			return true
		}
		text := map[string]string{"CAPA": "+OK\r\nUSER\r\n.", "UIDL": "+OK\r\n1 one\r\n.", "LIST": "+OK\r\n1 5\r\n."}[command]
		if text == "" {
			text = "+OK"
		}
		_, err := fmt.Fprintf(conn, "%s\r\n", text)
		return err == nil && command != "QUIT"
	}
	if !answer("greeting") {
		return
	}
	for in := bufio.NewScanner(conn); in.Scan(); {
		command, _, _ := strings.Cut(in.Text(), " ")
		s.said <- command
		if !answer(command) {
			return
		}
	}
}

// TestClosingEndsWhatAPOP3SessionIsDoing closes a mailbox while the server keeps silent,
// and another command waits for its turn.
func TestClosingEndsWhatAPOP3SessionIsDoing(t *testing.T) {
	retrieve := func(b *popSession) error {
		return b.lend(t.Context(), false, func(s *pop3.Session) error {
			return s.Retrieve(t.Context(), []int{1}, 100, func(int, []byte, error) {})
		})
	}
	verify := func(b *popSession) error {
		return b.alone(t.Context(), func(ctx context.Context) error {
			s, err := pop3.Dial(ctx, b.cfg)
			if err == nil {
				err = s.Close()
			}
			return err
		})
	}
	for name, c := range map[string]struct {
		at string
		do func(*popSession) error
	}{
		"connecting": {"greeting", retrieve},
		"logging in": {"PASS", retrieve},
		"listing":    {"UIDL", retrieve},
		"reading":    {"RETR", retrieve},
		"verifying":  {"PASS", verify},
	} {
		t.Run(name, func(t *testing.T) {
			b, s := stallAt(t, c.at)
			done := make(chan error, 2)
			go func() { done <- c.do(b) }()
			<-s.stuck
			go func() { done <- retrieve(b) }()
			closed := make(chan error, 1)
			go func() { closed <- b.Close() }()
			for range 2 {
				select {
				case err := <-done:
					if !errors.Is(err, errPopClosed) {
						t.Errorf("%v, want what says that it was closed", err)
					}
				case <-time.After(time.Minute):
					t.Fatal("it goes on")
				}
			}
			if err := <-closed; err != nil {
				t.Error(err)
			}
			<-s.gone
			if err := retrieve(b); !errors.Is(err, errPopClosed) {
				t.Errorf("afterwards: %v", err)
			}
			if err := b.Close(); err != nil {
				t.Errorf("again: %v", err)
			}
		})
	}
}

// A session that nobody uses is ended as the protocol has it.
func TestClosingAnIdlePOP3SessionSaysGoodbye(t *testing.T) {
	b, s := stallAt(t, "nowhere")
	if err := b.lend(t.Context(), false, func(*pop3.Session) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	last := ""
	for len(s.said) > 0 {
		last = <-s.said
	}
	if last != "QUIT" {
		t.Errorf("its last word was %q", last)
	}
}
