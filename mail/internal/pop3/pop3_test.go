package pop3

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail/internal/wire"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/mail/servertest/scripted"
)

var must = testmain.Must

func TestMain(m *testing.M) { os.Exit(scripted.Main(m.Run)) }

// exact are messages that a careless client would change: dots, lines without end, bytes
// that are no text. The real messages of testdata are read in package mailbox.
var exact = [][]byte{
	[]byte("Subject: one\r\n\r\n.\r\n..\r\nFrom here\r\n"), []byte("Subject: two\r\n\r\n\xff\xfe\x80 caf\xc3\xa9\r\n"),
	[]byte("Subject: three\r\n\r\na bare \r in a line\r\n"), []byte("Subject: four\r\n\r\n" + strings.Repeat("x", 200_000) + "\r\n"),
	[]byte("From a line without a colon\r\nSubject: five\r\n\r\n"),
}

// What a real server holds arrives byte for byte, by each way to connect and to
// log in.
func TestDovecotGivesEveryMessageAsDelivered(t *testing.T) {
	d := servertest.Dovecot(t, servertest.Config{})
	d.Deliver(t, "ann", "INBOX", exact...)
	token := func(context.Context) (wire.Credential, error) {
		return wire.Credential{Token: servertest.OAuthToken("ann", time.Now().Add(time.Hour))}, nil
	}
	for name, target := range map[string]wire.Target{
		"TLS":       {Port: d.POP3SPort, Security: wire.TLS, Login: scripted.WithPassword(servertest.Password)},
		"STLS":      {Port: d.POP3Port, Security: wire.StartTLS, Login: scripted.WithPassword(servertest.Password)},
		"plaintext": {Port: d.POP3Port, Security: wire.Plaintext, Login: scripted.WithPassword(servertest.Password)},
		"token":     {Port: d.POP3SPort, Security: wire.TLS, Login: wire.Login{Username: "ann", Credential: token}},
	} {
		t.Run(name, func(t *testing.T) {
			target.Host, target.RootCAs = d.Host, d.CA.Pool()
			s, err := Dial(t.Context(), Config{Target: target})
			must(t, err)
			defer s.Close()
			list, skipped, err := s.Messages(t.Context())
			if err != nil || skipped != 0 || len(list) != len(exact) {
				t.Fatalf("%d messages, %d skipped, %v", len(list), skipped, err)
			}
			var numbers []int
			for _, m := range list {
				numbers = append(numbers, m.Number)
			}
			whole := map[int][]byte{}
			must(t, s.Retrieve(t.Context(), numbers, 1<<20, func(n int, b []byte, err error) {
				if err != nil {
					t.Errorf("message %d: %v", n, err)
				}
				whole[n] = b
			}))
			// The order of delivery is not promised.
			for _, want := range exact {
				if !slices.ContainsFunc(list, func(m Message) bool { return bytes.Equal(whole[m.Number], want) }) {
					t.Errorf("not there: %.60q", want)
				}
			}
			for _, m := range list {
				if m.Size != int64(len(whole[m.Number])) {
					t.Errorf("message %d: said to have %d bytes, has %d", m.Number, m.Size, len(whole[m.Number]))
				}
			}
			must(t, s.Top(t.Context(), numbers, 0, 1<<20, func(n int, b []byte, err error) {
				head, _, _ := bytes.Cut(whole[n], []byte("\r\n\r\n"))
				if err != nil || !bytes.HasPrefix(b, head) || len(b) > len(head)+4 {
					t.Errorf("head of %d: %.60q, %v", n, b, err)
				}
			}))
			if err := s.Check(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// fakeServer is a server that answers each command as a test says. It keeps what it
// was sent.
type fakeServer struct {
	cfg  Config
	mu   sync.Mutex
	sent []string
}

func (s *fakeServer) commands() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sent)
}

const capaAll = "+OK\r\nUIDL\r\nTOP\r\nUSER\r\nSASL PLAIN XOAUTH2\r\nPIPELINING\r\n.\r\n"

// serve starts one: answer returns everything that goes back for a command, and
// whether to hang up then.
func serve(t testing.TB, greeting string, answer func(command string) (back string, hangUp bool)) *fakeServer {
	t.Helper()
	s := &fakeServer{}
	sv := scripted.Serve(t, scripted.AnswerLines(greeting, func(line string) (string, bool) {
		s.mu.Lock()
		s.sent = append(s.sent, line)
		s.mu.Unlock()
		return answer(line)
	}))
	s.cfg.Target = sv.Target(wire.Plaintext)
	return s
}

// usual answers what every session begins with.
func usual(rest func(command string) (string, bool)) func(string) (string, bool) {
	return func(command string) (string, bool) {
		switch {
		case command == "CAPA":
			return capaAll, false
		case strings.HasPrefix(command, "AUTH "), command == "QUIT", command == "NOOP":
			return "+OK\r\n", false
		}
		return rest(command)
	}
}

func kind(t *testing.T, err error) wire.Kind {
	t.Helper()
	var e *wire.Error
	if !errors.As(err, &e) {
		t.Fatalf("%v is no *Error", err)
	}
	return e.Kind
}

func TestDotsAndLineEndsStayAsDelivered(t *testing.T) {
	for _, c := range testmain.Table[struct{ Name, Wire, Want string }](t, "testdata/cases/dots.txt") {
		t.Run(c.Name, func(t *testing.T) {
			srv := serve(t, "+OK\r\n", usual(func(string) (string, bool) { return "+OK\r\n" + c.Wire, false }))
			s, err := Dial(t.Context(), srv.cfg)
			must(t, err)
			defer s.Close()
			for range 2 { // the second time shows that nothing was left over
				must(t, s.Retrieve(t.Context(), []int{1}, 1<<20, func(_ int, b []byte, err error) {
					if err != nil || string(b) != c.Want {
						t.Errorf("got %.80q, want %.80q, %v", b, c.Want, err)
					}
				}))
			}
		})
	}
}

// One flight for many where the server takes it so, and one command after the other
// where it does not; one refused message costs no other.
func TestManyAtOnceAndOneByOne(t *testing.T) {
	for _, pipelining := range []bool{true, false} {
		t.Run(fmt.Sprint(pipelining), func(t *testing.T) {
			srv := serve(t, "+OK\r\n", usual(func(command string) (string, bool) {
				if strings.HasPrefix(command, "TOP 7 ") {
					return "-ERR [SYS/TEMP] not now\r\n", false
				}
				return "+OK\r\n" + command + "\r\n.\r\n", false
			}))
			s, err := Dial(t.Context(), srv.cfg)
			must(t, err)
			defer s.Close()
			if !pipelining {
				delete(s.caps, "PIPELINING")
			}
			var numbers, got []int
			for n := 1; n <= flight+10; n++ {
				numbers = append(numbers, n)
			}
			err = s.Top(t.Context(), numbers, 3, 1<<20, func(n int, b []byte, err error) {
				got = append(got, n)
				if n == 7 {
					var e *wire.Error
					if !errors.As(err, &e) || e.Kind != wire.KindRefused || e.Code != "SYS/TEMP" || e.Text != "not now" {
						t.Errorf("message 7: %q, %v", b, err)
					}
				} else if err != nil || string(b) != fmt.Sprintf("TOP %d 3\r\n", n) {
					t.Errorf("message %d: %q, %v", n, b, err)
				}
			})
			if err != nil || !slices.Equal(got, numbers) {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

func TestHostileServersEndWithinTheirBounds(t *testing.T) {
	endless := func(w string) func(string) (string, bool) {
		return usual(func(string) (string, bool) { return w, true })
	}
	list := func(s *Session) error { _, _, err := s.Messages(context.Background()); return err }
	get := func(s *Session) error {
		return s.Retrieve(context.Background(), []int{1}, 1<<20, func(int, []byte, error) {})
	}
	for name, c := range map[string]struct {
		answer func(string) (string, bool)
		do     func(*Session) error
		want   wire.Kind
	}{
		"hangs up":            {endless(""), list, wire.KindClosed},
		"half a list":         {endless("+OK\r\n1 a\r\n2"), list, wire.KindClosed},
		"half a message":      {endless("+OK\r\nSubject: x\r\n"), get, wire.KindClosed},
		"line without end":    {endless("+OK " + strings.Repeat("x", 3*maxReply)), list, wire.KindLimit},
		"list without end":    {endless("+OK\r\n" + strings.Repeat("1 a\r\n", 2000)), list, wire.KindLimit},
		"message without end": {endless("+OK\r\n" + strings.Repeat("x", 70_000)), get, wire.KindLimit},
		"something else":      {endless("* OK IMAP4rev1\r\n"), list, wire.KindProtocol},
		"continues":           {endless("+ \r\n"), get, wire.KindProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			srv := serve(t, "+OK\r\n", c.answer)
			srv.cfg.MaxBytes, srv.cfg.MaxMessages = 65_536, 1000
			s, err := Dial(t.Context(), srv.cfg)
			must(t, err)
			if got := kind(t, c.do(s)); got != c.want {
				t.Errorf("kind %s, want %s", got, c.want)
			}
			if got := kind(t, c.do(s)); got != wire.KindConnection {
				t.Errorf("used again: kind %s", got)
			}
			_ = s.Close()
		})
	}
}

// What a server says in the clear before its TLS is not taken for what it says
// within.
func TestNothingIsInjectedBeforeTLS(t *testing.T) {
	srv := serve(t, "+OK\r\n", func(string) (string, bool) { return "+OK\r\n+OK injected\r\n", false })
	srv.cfg.Security = wire.StartTLS
	if _, err := Dial(t.Context(), srv.cfg); kind(t, err) != wire.KindProtocol {
		t.Error(err)
	}
	if got := srv.commands(); !slices.Equal(got, []string{"STLS"}) {
		t.Errorf("sent %q", got)
	}
}

func TestNamesThatAreNoneAreLeftOut(t *testing.T) {
	srv := serve(t, "+OK\r\n", usual(func(command string) (string, bool) {
		if command == "LIST" {
			return "+OK\r\n1 10\r\n2 x\r\n6 -4\r\n.\r\n", false
		}
		return "+OK\r\n1 abc\r\n2 abc\r\n1 def\r\n0 x\r\n4\r\nx y\r\n5 with space\r\n6 ok\r\n7 " + strings.Repeat("x", 71) + "\r\n.\r\n", false
	}))
	s, err := Dial(t.Context(), srv.cfg)
	must(t, err)
	defer s.Close()
	got, skipped, err := s.Messages(t.Context())
	if want := []Message{{1, "abc", 10}, {6, "ok", -1}}; err != nil || skipped != 7 || !slices.Equal(got, want) {
		t.Errorf("got %v, %d skipped, %v", got, skipped, err)
	}
}

// A refused login is told as such, once, without the server's words; it is tried
// again only with something newer. A mailbox that is locked is no wrong password.
func TestLoginRefused(t *testing.T) {
	for name, c := range map[string]struct {
		tokens []string
		answer string
		tries  int
		want   wire.Kind // empty: logged in
	}{
		"nothing newer":   {[]string{"old"}, "-ERR [AUTH] %s is wrong", 1, wire.KindAuth},
		"something newer": {[]string{"old", "right"}, "-ERR %s is wrong", 2, ""},
		"newer and wrong": {[]string{"old", "older", "right"}, "-ERR [AUTH] %s is wrong", 2, wire.KindAuth},
		"locked":          {[]string{"old", "right"}, "-ERR [IN-USE] locked for %s", 1, wire.KindRefused},
	} {
		t.Run(name, func(t *testing.T) {
			tries := 0
			srv := serve(t, "+OK\r\n", func(command string) (string, bool) {
				first, auth := strings.CutPrefix(command, "AUTH XOAUTH2 ")
				if !auth {
					return "+OK\r\nSASL XOAUTH2\r\n.\r\n", false
				}
				tries++
				said, _ := base64.StdEncoding.DecodeString(first)
				if strings.Contains(string(said), "Bearer right\x01") {
					return "+OK\r\n", false
				}
				return fmt.Sprintf(c.answer+"\r\n", said[:len(said)-2]), false
			})
			srv.cfg.Login, _ = scripted.Renewing(c.tokens...)
			s, err := Dial(t.Context(), srv.cfg)
			if err == nil {
				_ = s.Close()
			}
			if (err == nil) != (c.want == "") || err != nil && (kind(t, err) != c.want || strings.Contains(err.Error(), "old")) || tries != c.tries {
				t.Errorf("tried %d times: %v", tries, err)
			}
		})
	}
}

func TestSecretsThatWouldEndALineAreNotSent(t *testing.T) {
	for _, c := range []struct {
		user, pass string
		kind       wire.Kind
		sent       []string
	}{
		{"ann", "a\r\nDELE 1", wire.KindAuth, []string{"CAPA"}},
		{"ann\r\nDELE 1", "x", wire.KindInvalid, nil},
		{"a b", "x", wire.KindAuth, []string{"CAPA"}},
		{"ann", "", wire.KindAuth, []string{"CAPA"}},
	} {
		srv := serve(t, "+OK\r\n", func(command string) (string, bool) {
			if command == "CAPA" {
				return "+OK\r\nUSER\r\n.\r\n", false
			}
			return "+OK\r\n", false
		})
		srv.cfg.Login = wire.Login{Username: c.user, Credential: scripted.WithPassword(c.pass).Credential}
		if _, err := Dial(t.Context(), srv.cfg); kind(t, err) != c.kind {
			t.Error(err)
		}
		if got := srv.commands(); !slices.Equal(got, c.sent) {
			t.Errorf("sent %q", got)
		}
	}
}

// The end of a context ends what waits, at once and with its reason.
func TestContextEndsAWait(t *testing.T) {
	asked := make(chan struct{}, 1)
	srv := serve(t, "+OK\r\n", usual(func(string) (string, bool) { asked <- struct{}{}; return "", false }))
	s, err := Dial(t.Context(), srv.cfg)
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	err = s.Retrieve(ctx, []int{1}, 1<<20, func(int, []byte, error) {})
	if kind(t, err) != wire.KindCanceled || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A server that says nothing, or too slowly to get anywhere, is given up.
func TestSilenceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		defer server.Close()
		s := &Session{cfg: Config{Socket: 10 * time.Second}.withDefaults(), ctx: t.Context(), stop: func() {}}
		s.over(client)
		go func() { _, _ = io.Copy(io.Discard, server) }()
		start := time.Now()
		if err := s.Check(t.Context()); kind(t, err) != wire.KindTimeout {
			t.Error(err)
		}
		if took := time.Since(start); took != 10*time.Second {
			t.Errorf("gave up after %s", took)
		}
	})
}

func FuzzServer(f *testing.F) {
	f.Add([]byte("+OK\r\n1 a\r\n.\r\n+OK\r\n1 10\r\n.\r\n+OK\r\nSubject: x\r\n\r\n..\r\n.\r\n"))
	f.Add([]byte("-ERR [IN-USE] x\r\n+ \r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		client, server := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, server) }()
		go func() { _, _ = server.Write(b); _ = server.Close() }()
		s := &Session{cfg: Config{MaxBytes: 1 << 20}.withDefaults(), ctx: t.Context(), stop: func() {}}
		s.over(client)
		list, _, _ := s.Messages(t.Context())
		for _, m := range list {
			if !ValidUIDL(m.UIDL) || m.Number < 1 {
				t.Errorf("got %+v", m)
			}
		}
		_ = s.Retrieve(t.Context(), []int{1, 2}, 1<<20, func(_ int, got []byte, _ error) {
			if len(got) > len(b) {
				t.Errorf("%d bytes of %d", len(got), len(b))
			}
		})
		_ = client.Close()
	})
}
