package demo

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2/imapclient"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail"
)

var must = testmain.Must

func TestMain(m *testing.M) { os.Exit(testmain.Run(m.Run)) }

var testNow = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func start(t testing.TB) *Servers {
	t.Helper()
	s, err := Start(Options{Now: func() time.Time { return testNow }})
	must(t, err)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *Servers) clientTLS(t testing.TB) *tls.Config {
	t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(s.CAPEM) {
		t.Fatal("CAPEM holds no certificate")
	}
	host, _, err := net.SplitHostPort(s.IMAPAddr)
	must(t, err)
	return &tls.Config{RootCAs: pool, ServerName: host}
}

func login(t testing.TB, s *Servers) *imapclient.Client {
	t.Helper()
	c, err := imapclient.DialTLS(s.IMAPAddr, &imapclient.Options{TLSConfig: s.clientTLS(t)})
	must(t, err)
	t.Cleanup(func() { c.Close() })
	must(t, c.Login(s.Username, s.Password.Reveal()).Wait())
	return c
}

func TestAccountIsValidAndHarmless(t *testing.T) {
	t.Parallel()
	s := start(t)
	a := s.Account()
	must(t, a.Validate())
	if a.Name != "demo" || a.Mode != mail.ReadWrite || !a.AllowOut.Enabled || len(a.AllowOut.Entries) != 0 {
		t.Errorf("got %+v", a)
	}
	if a.IMAP.Address() != s.IMAPAddr || a.SMTP.Address() != s.SMTPAddr || a.IMAP.Security != mail.TLS || a.SMTP.Security != mail.TLS {
		t.Errorf("endpoints: %+v, %+v", a.IMAP, a.SMTP)
	}
	if other := start(t); other.Password.Reveal() == s.Password.Reveal() {
		t.Error("two servers have the same password")
	}
}

// It counts goroutines, so it runs alone.
func TestCloseEndsEverything(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 5 {
		s, err := Start(Options{})
		must(t, err)
		// One connection in each state: just accepted, logged in, idle,
		// submitting.
		raw, err := net.Dial("tcp", s.IMAPAddr)
		must(t, err)
		reader, idler := login(t, s), login(t, s)
		open(t, reader, "INBOX", true)
		open(t, idler, "INBOX", true)
		idle, err := idler.Idle()
		must(t, err)
		sender := loginSMTP(t, s)
		must(t, sender.Mail(Username, nil))
		must(t, s.Close())
		if err := s.Close(); err != nil {
			t.Fatal("second call:", err)
		}
		if err := reader.Noop().Wait(); err == nil {
			t.Error("a connection outlived the server")
		}
		if _, err := net.Dial("tcp", s.SMTPAddr); err == nil {
			t.Error("the port still answers")
		}
		_ = idle.Close()
		raw.Close()
		reader.Close()
		idler.Close()
		sender.Close()
	}
	deadline := time.Now().Add(30 * time.Second)
	for runtime.NumGoroutine() > before {
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines before, %d after:\n%s", before, runtime.NumGoroutine(), stacks[:runtime.Stack(stacks, true)])
		}
		runtime.Gosched()
	}
}
