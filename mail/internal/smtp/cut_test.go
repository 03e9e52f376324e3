package smtp_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"strings"
	"sync"
	"testing"
	"time"

	gosmtp "github.com/emersion/go-smtp"

	"github.com/postern-mail/postern/mail/internal/smtp"
	"github.com/postern-mail/postern/mail/internal/wire"
	"github.com/postern-mail/postern/mail/servertest/scripted"
)

// attempt is one Send to a peer, on a connection of its own. When it returns the
// peer has nothing more to do.
func attempt(t *testing.T, p *peer) (*smtp.Receipt, error) {
	t.Helper()
	l := listen(t)
	defer l.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		p.serve(c)
	}()
	s, err := smtp.Dial(t.Context(), config(port(l), wire.Plaintext, nil))
	if err != nil {
		_ = l.Close()
		<-done
		return nil, err
	}
	r, err := s.Send(t.Context(), to(three...), []byte(letter))
	_ = s.Close()
	<-done
	return r, err
}

// traffic is how many bytes go in each direction of an attempt, and where in them
// 354 ends.
func traffic(t *testing.T, offer []string) (out, in, asked int) {
	t.Helper()
	var mu sync.Mutex
	p := &peer{offer: offer}
	p.counted = func(reads, writes int, stage string) {
		mu.Lock()
		defer mu.Unlock()
		switch stage {
		case "data":
			asked = writes
		case "end":
			out, in = reads, writes
		}
	}
	if _, err := attempt(t, p); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	return out, in, asked
}

// A server whose connection ends after any byte that it reads: nothing is said to
// have been sent unless it was, or not to have been when it was.
func TestCutAfterEveryByteToTheServer(t *testing.T) {
	t.Parallel()
	for _, offer := range [][]string{full, full[1:]} {
		out, _, _ := traffic(t, offer)
		for n := 1; n <= out; n++ {
			p := &peer{offer: offer, reads: n}
			r, err := attempt(t, p)
			var failed *smtp.SendError
			if err != nil && !errors.As(err, &failed) {
				if len(p.took()) > 0 || strings.Contains(p.commands(), "|MAIL") {
					t.Errorf("after %d of %d bytes: %v", n, out, err)
				}
				continue // no session came of it
			}
			failed = outcome(t, p, r, err)
			switch {
			case n < out && failed == nil:
				t.Errorf("after %d of %d bytes: accepted", n, out)
			case failed != nil && failed.Outcome == smtp.Unknown && !strings.Contains(p.commands(), "|DATA"):
				t.Errorf("after %d of %d bytes: unknown, without DATA: %v", n, out, err)
			}
		}
	}
}

// The same after any byte that it writes. What came of it is certain here: until it
// has said 354 whole, nothing was sent; from there on, unless its answer came whole,
// nobody knows.
func TestCutAfterEveryByteFromTheServer(t *testing.T) {
	t.Parallel()
	for _, offer := range [][]string{full, full[1:]} {
		_, in, asked := traffic(t, offer)
		for n := 1; n <= in; n++ {
			p := &peer{offer: offer, writes: n}
			r, err := attempt(t, p)
			var failed *smtp.SendError
			if err != nil && !errors.As(err, &failed) {
				if strings.Contains(p.commands(), "|MAIL") {
					t.Errorf("after %d of %d bytes: %v", n, in, err)
				}
				continue
			}
			failed = outcome(t, p, r, err)
			switch {
			case n == in:
				if failed != nil {
					t.Errorf("with every byte: %v", err)
				}
			case failed == nil:
				t.Errorf("after %d of %d bytes: accepted", n, in)
			case n < asked && failed.Outcome != smtp.NotSent, n > asked && failed.Outcome != smtp.Unknown:
				t.Errorf("after %d of %d bytes, %d with 354: %v", n, in, asked, err)
			}
		}
	}
}

// lines is a message of about n bytes. What a client's socket holds on Linux is four
// million, unless somebody has set it otherwise.
func lines(n int) []byte {
	line := strings.Repeat("one of many lines ", 50) + "\r\n"
	return []byte("Subject: large\r\n\r\n" + strings.Repeat(line, n/len(line)))
}

// What the server says or does in the middle of a message that it goes on reading is
// noticed before the end of it leaves.
func TestServerThatSpeaksInTheMiddle(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		said string
		ends bool
		kind wire.Kind
		code int
	}{
		"accepts":                 {"250 2.0.0 queued\r\n", false, wire.KindProtocol, 0},
		"accepts and goes":        {"250 2.0.0 queued\r\n", true, "", 0},
		"refuses":                 {"552 5.3.4 too much\r\n", false, wire.KindRefused, 552},
		"says goodbye":            {"421 4.4.2 too slow\r\n", false, wire.KindRefused, 421},
		"begins a line":           {"25", false, "", 0},
		"goes":                    {hangUp, false, "", 0},
		"says what nobody knows":  {"hello\r\n", false, wire.KindProtocol, 0},
		"says it more than once":  {strings.Repeat("250 ok\r\n", 3), false, wire.KindProtocol, 0},
		"says more than it needs": {"451-4.3.0 well\r\n451 4.3.0 no\r\n", false, wire.KindRefused, 451},
	} {
		p := &peer{say: map[string]string{"message": tc.said}, ends: tc.ends}
		r, err := p.dial(t).Send(t.Context(), to(three...), lines(12<<20))
		failed := outcome(t, p, r, err)
		var w *wire.Error
		if failed == nil || failed.Outcome != smtp.NotSent || !errors.As(err, &w) || w.Stage != smtp.StageMessage || w.Reply != tc.code || tc.kind != "" && w.Kind != tc.kind {
			t.Errorf("%s: %v", name, err)
		}
		if len(p.took()) != 0 {
			t.Errorf("%s: the server took it", name)
		}
	}
}

// store is a real submission server, of another make than the client, which keeps
// what it gets.
type store struct {
	mu   sync.Mutex
	from string
	to   []string
	got  []byte
	body gosmtp.BodyType
	utf8 bool
}

func (s *store) NewSession(*gosmtp.Conn) (gosmtp.Session, error) { return &storing{store: s}, nil }

type storing struct {
	session
	store *store
}

func (s *storing) Mail(from string, o *gosmtp.MailOptions) error {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	s.store.from, s.store.to, s.store.body, s.store.utf8 = from, nil, o.Body, o.UTF8
	return nil
}

func (s *storing) Rcpt(to string, _ *gosmtp.RcptOptions) error {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	s.store.to = append(s.store.to, to)
	return nil
}

func (s *storing) Data(r io.Reader) error {
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	s.store.got = b
	return nil
}

var _ gosmtp.AuthSession = (*storing)(nil)

// Every byte of a message arrives, over each kind of connection.
func TestMessagesArriveAsTheyAre(t *testing.T) {
	ca := scripted.Authority(t)
	leaf := scripted.Leaf(t, ca, time.Time{})
	st := new(store)
	serve := func(security wire.Security) wire.Target {
		sv := gosmtp.NewServer(st)
		sv.ErrorLog = log.New(io.Discard, "", 0)
		sv.AllowInsecureAuth, sv.EnableSMTPUTF8 = security == wire.Plaintext, true
		l := listen(t)
		if security != wire.Plaintext {
			sv.TLSConfig = &tls.Config{Certificates: []tls.Certificate{leaf}}
			if security == wire.TLS {
				l = tls.NewListener(l, sv.TLSConfig)
			}
		}
		done := make(chan struct{})
		go func() { defer close(done); _ = sv.Serve(l) }()
		t.Cleanup(func() { _ = sv.Close(); <-done })
		if security == wire.Plaintext {
			return config(port(l), security, nil)
		}
		return config(port(l), security, ca)
	}
	messages := map[string]string{
		"dots":             letter,
		"only dots":        ".\r\n..\r\n...\r\n",
		"an end inside":    "a\r\n.\r\nb\r\n\r\n.\r\n\r\n",
		"an empty line":    "\r\n",
		"long lines":       strings.Repeat(strings.Repeat("x", 998)+"\r\n", 50),
		"dots and blocks":  strings.Repeat("."+strings.Repeat("y", 30)+"\r\n", 5000),
		"8-bit":            "Subject: x\r\n\r\n.Grüße \xff\xfe\r\n",
		"some megabytes":   string(lines(1 << 20)),
		"no line too many": strings.Repeat("\r\n", 40000),
	}
	for _, security := range []wire.Security{wire.Plaintext, wire.StartTLS, wire.TLS} {
		s, err := smtp.Dial(t.Context(), serve(security))
		if err != nil {
			t.Fatal(err)
		}
		for name, message := range messages {
			r, err := s.Send(t.Context(), to("a@example.org", `"quoted.name"@example.org`, "jörg@example.org"), []byte(message))
			if err != nil || r.Reply != 250 {
				t.Errorf("%s, %s: %v, %v", security, name, r, err)
				continue
			}
			st.mu.Lock()
			if !bytes.Equal(st.got, []byte(message)) {
				t.Errorf("%s, %s: %d bytes of %d arrived, or others", security, name, len(st.got), len(message))
			}
			if st.from != "ann@example.org" || len(st.to) != 3 || !st.utf8 || (st.body == gosmtp.Body8BitMIME) != (name == "8-bit") {
				t.Errorf("%s, %s: envelope %s %q, %s, UTF-8 %v", security, name, st.from, st.to, st.body, st.utf8)
			}
			st.mu.Unlock()
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A connection under TLS ends like any other.
func TestCutInsideTLS(t *testing.T) {
	ca := scripted.Authority(t)
	leaf := scripted.Leaf(t, ca, time.Time{})
	conf := &tls.Config{Certificates: []tls.Certificate{leaf}}
	for stage, want := range map[string]smtp.Outcome{"data": smtp.NotSent, "message": smtp.NotSent, "end": smtp.Unknown} {
		for _, said := range []string{hangUp, hang} {
			ctx, cancel := context.WithCancel(t.Context())
			p := &peer{say: map[string]string{stage: said}, at: func(at string) {
				if at == stage && said == hang {
					cancel()
				}
			}}
			l := tls.NewListener(listen(t), conf)
			go func() {
				c, err := l.Accept()
				if err != nil {
					return
				}
				defer c.Close()
				p.serve(c)
			}()
			s, err := smtp.Dial(t.Context(), config(port(l), wire.TLS, ca))
			if err != nil {
				t.Fatal(err)
			}
			message := []byte(letter)
			if stage == "message" {
				message = lines(12 << 20)
			}
			r, err := s.Send(ctx, to(three...), message)
			if failed := outcome(t, p, r, err); failed == nil || failed.Outcome != want {
				t.Errorf("%s, %s: %v", stage, said, err)
			}
			_ = s.Close()
			cancel()
		}
	}
}
