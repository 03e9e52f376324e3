package imap

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/mail/internal/wire"
	"github.com/postern-mail/postern/mail/servertest/scripted"
)

// thrifty fails the test when it allocated more than max bytes in all, which is
// an upper bound of what it ever held.
func thrifty(t *testing.T, max uint64) {
	t.Helper()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	t.Cleanup(func() {
		var after runtime.MemStats
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > max {
			t.Errorf("allocated %d bytes, want at most %d", used, max)
		}
	})
}

func wantError(t *testing.T, err error, kind wire.Kind, stage string) *wire.Error {
	t.Helper()
	var e *wire.Error
	if !errors.As(err, &e) {
		t.Fatalf("error is %T %v, want *Error", err, err)
	}
	if e.Kind != kind || e.Stage != stage {
		t.Fatalf("kind %s at stage %s (%v), want %s at %s", e.Kind, e.Stage, e, kind, stage)
	}
	if strings.Contains(fmt.Sprintf("%v %+v %s", e, e, e.Text), "s3cret-pass") {
		t.Fatal("the error holds the password")
	}
	return e
}

// trickle sends one byte at a time, forever.
func trickle(s *scripted.Conn, first, next string) {
	s.Send(first)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		s.Send(next)
	}
}

func TestHostileServerBeforeLogin(t *testing.T) {
	ca := scripted.Authority(t)
	good := scripted.Leaf(t, ca, time.Now().Add(time.Hour), "127.0.0.1")
	tests := []struct {
		name     string
		security wire.Security
		run      func(s *scripted.Conn)
		kind     wire.Kind
		stage    string
	}{
		{"silent after accept", wire.Plaintext, func(s *scripted.Conn) { s.Drain() }, wire.KindTimeout, wire.StageGreeting},
		{"silent in the TLS handshake", wire.TLS, func(s *scripted.Conn) { s.Drain() }, wire.KindTimeout, wire.StageTLS},
		{"greeting one byte at a time", wire.Plaintext, func(s *scripted.Conn) { trickle(s, "* OK ", "x") }, wire.KindTimeout, wire.StageGreeting},
		{"greeting without end", wire.Plaintext, func(s *scripted.Conn) {
			for {
				s.Send(strings.Repeat("x", 4096))
			}
		}, wire.KindLimit, wire.StageGreeting},
		{"garbage greeting", wire.Plaintext, talk("SSH-2.0-OpenSSH_9.9\r\n"), wire.KindProtocol, wire.StageGreeting},
		{"BYE greeting", wire.Plaintext, talk("* BYE [UNAVAILABLE] come back\r\n"), wire.KindClosed, wire.StageGreeting},
		{"PREAUTH greeting", wire.Plaintext, talk("* PREAUTH welcome root\r\n"), wire.KindProtocol, wire.StageGreeting},
		{"closed before the greeting", wire.Plaintext, func(*scripted.Conn) {}, wire.KindClosed, wire.StageGreeting},
		{"plaintext where TLS is meant", wire.TLS, talk("* OK ready\r\n"), wire.KindProtocol, wire.StageTLS},
		{"STARTTLS not offered", wire.StartTLS, talk("* OK [CAPABILITY IMAP4rev1 AUTH=PLAIN] ready\r\n"), wire.KindProtocol, wire.StageTLS},
		{"STARTTLS refused", wire.StartTLS, talk("* OK [CAPABILITY IMAP4rev1 STARTTLS] ready\r\n", "TAG NO not today\r\n"), wire.KindRefused, wire.StageTLS},
		{"data in front of TLS", wire.StartTLS, talk("* OK [CAPABILITY IMAP4rev1 STARTTLS] ready\r\n", "TAG OK begin\r\n* OK [CAPABILITY IMAP4rev1 AUTH=PLAIN] injected\r\n"), wire.KindProtocol, wire.StageTLS},
		{"no way to log in", wire.Plaintext, talk("* OK [CAPABILITY IMAP4rev1 LOGINDISABLED] ready\r\n"), wire.KindAuth, wire.StageAuth},
		{"capabilities without end", wire.Plaintext, func(s *scripted.Conn) {
			s.Send("* OK ready\r\n")
			s.Expect()
			for {
				s.Send("* CAPABILITY IMAP4rev1 " + strings.Repeat("X", 1000) + "\r\n")
			}
		}, wire.KindLimit, wire.StageAuth},
		{"self-signed certificate", wire.TLS, scripted.OverTLS(scripted.Leaf(t, scripted.Authority(t), time.Now().Add(time.Hour), "127.0.0.1"), (*scripted.Conn).Login), wire.KindCertificate, wire.StageTLS},
		{"certificate of another host", wire.TLS, scripted.OverTLS(scripted.Leaf(t, ca, time.Now().Add(time.Hour), "mail.example.org"), (*scripted.Conn).Login), wire.KindCertificate, wire.StageTLS},
		{"expired certificate", wire.TLS, scripted.OverTLS(scripted.Leaf(t, ca, time.Now().Add(-time.Hour), "127.0.0.1"), (*scripted.Conn).Login), wire.KindCertificate, wire.StageTLS},
		{"expired certificate after STARTTLS", wire.StartTLS, func(s *scripted.Conn) {
			s.Send("* OK [CAPABILITY IMAP4rev1 STARTTLS] ready\r\n")
			s.Answer("TAG OK begin\r\n")
			scripted.OverTLS(scripted.Leaf(t, ca, time.Now().Add(-time.Hour), "127.0.0.1"), (*scripted.Conn).Login)(s)
		}, wire.KindCertificate, wire.StageTLS},
		{"TLS 1.1", wire.TLS, func(s *scripted.Conn) {
			_ = tls.Server(s.Conn, &tls.Config{Certificates: []tls.Certificate{good}, MinVersion: tls.VersionTLS11, MaxVersion: tls.VersionTLS11}).Handshake()
			s.Drain()
		}, wire.KindProtocol, wire.StageTLS},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			thrifty(t, 64<<20)
			cfg := Config{Target: scripted.Serve(t, tc.run).Target(tc.security)}
			cfg.RootCAs = ca.Pool()
			password := cfg.Login.Credential
			cfg.Login.Credential = func(ctx context.Context) (wire.Credential, error) {
				if tc.stage != wire.StageAuth {
					t.Error("the password was asked for")
				}
				return password(ctx)
			}
			wait := 5 * time.Second
			if tc.kind == wire.KindTimeout {
				wait = 100 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), wait)
			defer cancel()
			s, err := Dial(ctx, cfg)
			if err == nil {
				_ = s.Close()
				t.Fatal("connected")
			}
			e := wantError(t, err, tc.kind, tc.stage)
			if !e.OutOfStep {
				t.Error("the connection counts as usable")
			}
			if e.Kind == wire.KindRefused && e.Permanent {
				t.Error("a refusal for now counts as permanent")
			}
			if tc.kind == wire.KindTimeout && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v does not match context.DeadlineExceeded", err)
			}
		})
	}
}

func TestGreetingTimeoutNeedsNoContext(t *testing.T) {
	t.Parallel()
	for name, run := range map[string]func(*scripted.Conn){
		"silent":    (*scripted.Conn).Drain,
		"trickling": func(s *scripted.Conn) { trickle(s, "*", " ") },
	} {
		cfg := serve(t, run)
		cfg.Greeting = 50 * time.Millisecond
		_, err := Dial(context.Background(), cfg)
		t.Log(name)
		wantError(t, err, wire.KindTimeout, wire.StageGreeting)
	}
}

func TestPlaintextOnlyToThisMachine(t *testing.T) {
	for _, host := range []string{"192.0.2.1", "mail.example.org", "localhost.example.org", "0.0.0.0", "::ffff:192.0.2.1"} {
		cfg := Config{Target: wire.Target{Host: host, Port: 143, Security: wire.Plaintext, Login: wire.Login{Username: "ann", Credential: func(context.Context) (wire.Credential, error) {
			t.Error("the password was asked for")
			return wire.Credential{}, nil
		}}}}
		_, err := Dial(t.Context(), cfg)
		if e := wantError(t, err, wire.KindInvalid, wire.StageConnect); !e.Permanent {
			t.Errorf("%s: trying again is suggested", host)
		}
	}
}

func TestSilenceEndsWithoutContext(t *testing.T) {
	t.Parallel()
	cfg := serve(t, func(s *scripted.Conn) { s.Login(); s.Drain() })
	cfg.Socket = 500 * time.Millisecond
	s := dial(t, cfg)
	err := s.Use(context.Background(), func(context.Context, *Session) error { return s.Noop().Wait() })
	wantError(t, err, wire.KindTimeout, StageNoop)
}

// Silence is measured anew with every byte: an answer that takes longer as a
// whole is no silence.
func TestSlowAnswerIsNotSilence(t *testing.T) {
	t.Parallel()
	cfg := serve(t, func(s *scripted.Conn) {
		s.Login()
		tag, _ := s.Expect()
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for range 15 {
			<-tick.C
			s.Send("* 5 EXISTS\r\n")
		}
		s.Send(tag + " OK done\r\n")
		s.Drain()
	})
	cfg.Socket = time.Second
	s := dial(t, cfg)
	if err := s.Use(context.Background(), noop); err != nil {
		t.Error(err)
	}
}

func TestCancelClosesAtOnce(t *testing.T) {
	hung := make(chan struct{})
	closed := make(chan struct{})
	cfg := serve(t, func(s *scripted.Conn) {
		s.Login()
		s.Expect()
		close(hung)
		_, _ = bufio.NewReader(s.Lines).ReadByte()
		close(closed)
	})
	s := dial(t, cfg)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-hung; cancel() }()
	err := s.Use(ctx, func(context.Context, *Session) error { return s.Noop().Wait() })
	if wantError(t, err, wire.KindCanceled, StageNoop); !errors.Is(err, context.Canceled) {
		t.Errorf("%v does not match context.Canceled", err)
	}
	<-closed
	if s.alive() {
		t.Error("the session counts as alive")
	}
}

// A server that talks while nobody asked is cut off as well.
func TestIdleFloodIsCutOff(t *testing.T) {
	thrifty(t, 64<<20)
	done := make(chan struct{})
	cfg := serve(t, func(s *scripted.Conn) {
		defer close(done)
		s.Login()
		for {
			s.Send(strings.Repeat("* 5 EXISTS\r\n", 100))
		}
	})
	s := dial(t, cfg)
	<-done
	_ = s.Close()
	if kind := wire.KindOf(s.guard.reason()); kind != wire.KindLimit {
		t.Errorf("ended by %v", s.guard.reason())
	}
}

// An answer that takes the library long to take in ends with the context as well:
// numbers in falling order cost it the square of their count.
func TestCancelEndsAnExpensiveAnswer(t *testing.T) {
	t.Parallel()
	var numbers strings.Builder
	for n := 1_000_000; n > 300_000; n -= 2 {
		fmt.Fprintf(&numbers, " %d", n)
	}
	cfg := serve(t, func(s *scripted.Conn) {
		s.Login()
		s.Expect()
		s.Send("* SEARCH" + numbers.String() + "\r\n") // which takes the library many seconds
		s.Drain()
	})
	s := dial(t, cfg)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err := s.Use(ctx, func(_ context.Context, s *Session) error {
		search := s.Search(Criteria{})
		for arrived := int64(0); arrived == 0; {
			s.guard.mu.Lock()
			arrived = s.cfg.Limits.Answers - s.guard.budget.answers
			s.guard.mu.Unlock()
		}
		cancel()
		_, err := search.Wait()
		return err
	})
	wantError(t, err, wire.KindCanceled, StageSearch)
	<-s.client.Closed()
}

// What has arrived is not read once the connection has ended: the library could be busy
// with it for long.
func TestNothingIsReadAfterTheEnd(t *testing.T) {
	cfg := serve(t, func(s *scripted.Conn) {
		s.Login()
		s.Drain()
	})
	s := dial(t, cfg)
	s.guard.end(context.Canceled)
	<-s.client.Closed() // nobody else reads from here on
	s.guard.mend.out = []byte("* 1 EXISTS\r\n")
	if n, err := s.guard.Read(make([]byte, 64)); n != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// Numbers in falling order cost the library the square of their count: they are put in order
// on their way to it.
func TestASetInFallingOrder(t *testing.T) {
	const first = 400_000
	var falling strings.Builder
	for n := first; n > 0; n -= 2 {
		fmt.Fprintf(&falling, ",%d", n)
	}
	cfg := serve(t, func(s *scripted.Conn) {
		s.Login()
		tag, _ := s.Expect()
		s.Send("* ESEARCH (TAG \"" + tag + "\") UID ALL " + falling.String()[1:] + "\r\n" + tag + " OK done\r\n")
		s.Drain()
	})
	using(t, cfg, func(s *Session) error {
		start := time.Now()
		set, err := s.Search(Criteria{}).Wait()
		if took := time.Since(start); err != nil || len(set) != first/2 || !set.Contains(first) || set.Contains(first-1) || took > 10*time.Second {
			t.Errorf("%d ranges after %s, %v", len(set), took, err)
		}
		return err
	})
}

// A server can guess the next tag. An answer to a command that has not begun to
// leave is none.
func TestAnswerAheadOfItsCommand(t *testing.T) {
	guess := make(chan struct{})
	cfg := serve(t, func(s *scripted.Conn) {
		s.Login()
		<-guess
		s.Send("* 3 EXISTS\r\nT1 OK done\r\n")
		s.Drain()
	})
	s := dial(t, cfg)
	err := s.Use(t.Context(), func(_ context.Context, s *Session) error {
		close(guess)
		<-s.client.Closed()
		return s.Noop().Wait()
	})
	wantError(t, err, wire.KindProtocol, StageNoop)
}

// TestPiecesOfAllNumbersThereAre: a server may say that a folder has them.
func TestPiecesOfAllNumbersThereAre(t *testing.T) {
	for _, all := range []NumSet{UIDsBetween(1, 1<<32-1), SeqRange{1, 1<<32 - 1}} {
		if n := len(all.newestFirst()); n > 32 {
			t.Errorf("%d pieces", n)
		}
	}
}
