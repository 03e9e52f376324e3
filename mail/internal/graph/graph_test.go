package graph_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail/internal/graph"
	"github.com/postern-mail/postern/mail/internal/smtp"
	"github.com/postern-mail/postern/mail/internal/wire"
	"github.com/postern-mail/postern/mail/servertest"
)

var must = testmain.Must

const (
	token   = "canary-token"
	message = "From: ann@example.org\r\nTo: bob@example.net\r\nSubject: hello\r\n\r\n"
	takes   = "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"
)

var (
	envelope = smtp.Envelope{From: "ann@example.org", Recipients: []string{"bob@example.net"}}
	long     = []byte(message + strings.Repeat("line\r\n", 100_000))
)

// serve answers each connection that begins a request with what speak does, over TLS.
func serve(t *testing.T, ca *servertest.CA, speak func(c net.Conn, r *http.Request)) wire.Target {
	t.Helper()
	leaf, err := ca.Leaf(servertest.LeafOptions{})
	must(t, err)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{leaf}})
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				if r, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
					speak(c, r)
				}
			}()
		}
	}()
	return wire.Target{Host: "127.0.0.1", Port: uint16(l.Addr().(*net.TCPAddr).Port), Security: wire.TLS, RootCAs: ca.Pool(),
		Login: wire.Login{Username: "ann", Credential: func(context.Context) (wire.Credential, error) { return wire.Credential{Token: token}, nil }}}
}

func newCA(t *testing.T) *servertest.CA {
	t.Helper()
	ca, err := servertest.NewCA()
	must(t, err)
	return ca
}

func dial(t *testing.T, target wire.Target) *graph.Session {
	t.Helper()
	s, err := graph.Dial(t.Context(), target)
	must(t, err)
	return s
}

// outcome is what an error of Send says, "taken" for none. No error tells the token.
func outcome(t *testing.T, err error) string {
	t.Helper()
	var failed *smtp.SendError
	switch {
	case err == nil:
		return "taken"
	case !errors.As(err, &failed):
		t.Fatalf("%T: %v", err, err)
	case strings.Contains(err.Error(), token):
		t.Errorf("the token is told: %v", err)
	case failed.Outcome == smtp.NotSent:
		return "not sent"
	}
	return "unknown"
}

func kind(err error) wire.Kind {
	if w, ok := errors.AsType[*wire.Error](err); ok {
		return w.Kind
	}
	return ""
}

// The whole message arrives over TLS, in one request with the token.
func TestSendOverTLS(t *testing.T) {
	t.Parallel()
	got := make(chan string, 1)
	s := dial(t, serve(t, newCA(t), func(c net.Conn, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		b, _ := base64.StdEncoding.DecodeString(string(body))
		if r.Header.Get("Authorization") == "Bearer "+token {
			got <- string(b)
		}
		_, _ = io.WriteString(c, takes)
	}))
	receipt, err := s.Send(t.Context(), envelope, long)
	if err != nil || receipt.Reply != 202 {
		t.Fatalf("%+v, %v", receipt, err)
	}
	if <-got != string(long) {
		t.Error("the message came otherwise")
	}
}

// A service that another authority vouches for gets neither the token nor the message.
func TestUnknownAuthority(t *testing.T) {
	t.Parallel()
	target := serve(t, newCA(t), func(net.Conn, *http.Request) { t.Error("a request came") })
	target.RootCAs = newCA(t).Pool()
	if _, err := graph.Dial(t.Context(), target); kind(err) != wire.KindCertificate {
		t.Errorf("%v", err)
	}
}

// A message whose header the service may read in another way than the outbox is not handed
// over: its recipients would be others.
func TestAmbiguousLines(t *testing.T) {
	t.Parallel()
	s := dial(t, serve(t, newCA(t), func(net.Conn, *http.Request) { t.Error("a request came") }))
	for _, m := range []string{
		"From: ann@example.org\r\nTo: bob@example.net\r\n\r\r\nBcc: eve@example.com\r\n\r\nx\r\n",
		"From: ann@example.org\r\nSubject: a\rBcc: eve@example.com\r\n\r\nx\r\n",
		"From: ann@example.org\nTo: bob@example.net\n\nx\n",
		"From: ann@example.org\r\nB\x00cc: eve@example.com\r\n\r\nx\r\n",
		"From: ann@example.org\r\nSubject: " + strings.Repeat("a", 999) + "\r\n\r\nx\r\n",
	} {
		_, err := s.Send(t.Context(), envelope, []byte(m))
		if outcome(t, err) != "not sent" || kind(err) != wire.KindInvalid {
			t.Errorf("%.60q: %v", m, err)
		}
	}
}

// An answer that comes before the end of the message says that the service does not have it,
// whatever it claims.
func TestAnswersBeforeTheEnd(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{takes, "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 413 Request Entity Too Large\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\n", "220 ready\r\n"} {
		answered := make(chan struct{})
		s := dial(t, serve(t, newCA(t), func(c net.Conn, r *http.Request) {
			_, _ = io.WriteString(c, answer)
			close(answered)
			_, _ = io.Copy(io.Discard, r.Body)
		}))
		e := envelope
		e.Sent = func(int) { <-answered }
		_, err := s.Send(t.Context(), e, long)
		if got := outcome(t, err); got != "not sent" {
			t.Errorf("%.30q: %s, %v", answer, got, err)
		}
		if failed, _ := errors.AsType[*smtp.SendError](err); strings.Contains(answer, " 500 ") && !failed.Temporary {
			t.Errorf("%.30q: the same will never work", answer)
		}
	}
}

// A redirect is not followed: neither token nor message goes elsewhere.
func TestRedirect(t *testing.T) {
	t.Parallel()
	ca := newCA(t)
	var others atomic.Int32
	other := serve(t, ca, func(net.Conn, *http.Request) { others.Add(1) })
	s := dial(t, serve(t, ca, func(c net.Conn, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(c, "HTTP/1.1 308 Permanent Redirect\r\nLocation: https://"+net.JoinHostPort(other.Host, strconv.Itoa(int(other.Port)))+"/\r\nContent-Length: 0\r\n\r\n")
	}))
	_, err := s.Send(t.Context(), envelope, long)
	if outcome(t, err) != "not sent" || others.Load() != 0 {
		t.Errorf("%v, %d requests elsewhere", err, others.Load())
	}
}

// Stopping before the request sends nothing; a cancelled wait for the answer is unknown.
func TestStopAndCancel(t *testing.T) {
	t.Parallel()
	came := make(chan struct{}, 1)
	target := serve(t, newCA(t), func(c net.Conn, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		came <- struct{}{}
		_, _ = c.Read(make([]byte, 1)) // until the client goes
	})
	var gate atomic.Bool
	stopped := errors.New("stopped")
	target.MayBegin = func(context.Context) error {
		if gate.Load() {
			return stopped
		}
		return nil
	}
	s := dial(t, target)
	e := envelope
	e.BeforeData = func() error { gate.Store(true); return nil }
	if _, err := s.Send(t.Context(), e, long); outcome(t, err) != "not sent" || !errors.Is(err, stopped) {
		t.Errorf("stopped: %v", err)
	}
	gate.Store(false)
	refused := errors.New("not held any more")
	e.BeforeData = func() error { return refused }
	if _, err := s.Send(t.Context(), e, long); outcome(t, err) != "not sent" || !errors.Is(err, refused) {
		t.Errorf("at the gate: %v", err)
	}
	if len(came) != 0 {
		t.Fatal("a request left")
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-came; cancel() }()
	if _, err := s.Send(ctx, envelope, long); outcome(t, err) != "unknown" {
		t.Errorf("cancelled: %v", err)
	}
}

// A refused token is replaced once, and the gate is passed once.
func TestTokenIsReplacedOnce(t *testing.T) {
	t.Parallel()
	var requests, gates int32
	target := serve(t, newCA(t), func(c net.Conn, r *http.Request) {
		atomic.AddInt32(&requests, 1)
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(c, "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")
	})
	target.Login.Refused = func(context.Context, wire.Credential) bool { return true }
	e := envelope
	e.BeforeData = func() error { gates++; return nil }
	_, err := dial(t, target).Send(t.Context(), e, long)
	if outcome(t, err) != "not sent" || kind(err) != wire.KindAuth || atomic.LoadInt32(&requests) != 2 || gates != 1 {
		t.Errorf("%v, %d requests, gate passed %d times", err, requests, gates)
	}
}
