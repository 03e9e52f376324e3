// Package scripted is shared by the tests of connections to mail servers: scripted servers,
// a login, and a check that no goroutine is left over behind all tests. Like any server it imports none of
// the wires; real servers are in package servertest.
package scripted

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postern-mail/postern/mail/internal/wire"
	"github.com/postern-mail/postern/mail/servertest"
)

// Password is what Server.Target logs in with, as ann.
const Password = "s3cret-pass"

// Server is a listener on the loopback address whose every connection runs a script.
type Server struct {
	Port uint16

	listener net.Listener
	mu       sync.Mutex
	conns    []net.Conn
	running  sync.WaitGroup
}

// Serve starts a Server, which ends with the test.
func Serve(t testing.TB, run func(c *Conn)) *Server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Port: uint16(l.Addr().(*net.TCPAddr).Port), listener: l}
	s.running.Go(func() {
		for {
			raw, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns = append(s.conns, raw)
			n := len(s.conns)
			s.mu.Unlock()
			s.running.Go(func() {
				defer raw.Close()
				defer func() {
					if r := recover(); r != nil && r != (gone{}) {
						panic(r)
					}
				}()
				run(&Conn{Conn: raw, Lines: bufio.NewReader(raw), N: n})
			})
		}
	})
	t.Cleanup(s.Stop)
	return s
}

// Stop ends every connection, and returns when their scripts have ended.
func (s *Server) Stop() {
	_ = s.listener.Close()
	s.mu.Lock()
	for _, c := range s.conns {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.running.Wait()
}

// Accepted returns how many connections there have been.
func (s *Server) Accepted() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// HangUp closes the nth connection, from 1.
func (s *Server) HangUp(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.conns[n-1].Close()
}

// Target is the server as a wire connects to it.
func (s *Server) Target(security wire.Security) wire.Target {
	return wire.Target{Host: "127.0.0.1", Port: s.Port, Security: security, Login: WithPassword(Password)}
}

// WithPassword logs in as ann.
func WithPassword(p string) wire.Login {
	return wire.Login{Username: "ann", Credential: func(context.Context) (wire.Credential, error) { return wire.Credential{Password: p}, nil }}
}

// WithToken is WithPassword for an access token.
func WithToken(token string) wire.Login {
	return wire.Login{Username: "ann", Credential: func(context.Context) (wire.Credential, error) { return wire.Credential{Token: token}, nil }}
}

// Renewing logs in as ann with the tokens in turn, the next one after each refusal, and
// keeps the last one. told counts the refusals.
func Renewing(tokens ...string) (login wire.Login, told func() int) {
	var mu sync.Mutex
	refusals := 0
	login = wire.Login{
		Username: "ann",
		Credential: func(context.Context) (wire.Credential, error) {
			mu.Lock()
			defer mu.Unlock()
			return wire.Credential{Token: tokens[0]}, nil
		},
		Refused: func(_ context.Context, c wire.Credential) bool {
			mu.Lock()
			defer mu.Unlock()
			refusals++
			if c.Token == tokens[0] && len(tokens) > 1 {
				tokens = tokens[1:]
			}
			return c.Token != tokens[0]
		},
	}
	return login, func() int { mu.Lock(); defer mu.Unlock(); return refusals }
}

// Conn is one connection of a Server. Its methods end the script silently when the client
// has gone.
type Conn struct {
	net.Conn
	Lines *bufio.Reader // what the client says
	N     int           // number of the connection, from 1
}

type gone struct{}

// Send writes a text unchanged.
func (c *Conn) Send(text string) {
	if _, err := io.WriteString(c.Conn, text); err != nil {
		panic(gone{})
	}
}

// Line reads a line, without its end.
func (c *Conn) Line() string {
	l, err := c.Lines.ReadString('\n')
	if err != nil {
		panic(gone{})
	}
	return strings.TrimRight(l, "\r\n")
}

// OneWrite reads the bytes that arrive at once. Lines may not have read ahead.
func (c *Conn) OneWrite() string {
	buf := make([]byte, 8192)
	n, err := c.Read(buf)
	if err != nil {
		panic(gone{})
	}
	return string(buf[:n])
}

// Expect reads an IMAP command, and returns its tag and the rest.
func (c *Conn) Expect() (tag, command string) {
	tag, command, _ = strings.Cut(c.Line(), " ")
	return tag, command
}

// Answer reads an IMAP command, and sends a text in which TAG stands for its tag.
func (c *Conn) Answer(text string) (command string) {
	tag, command := c.Expect()
	c.Send(strings.ReplaceAll(text, "TAG", tag))
	return command
}

// Drain reads until the client goes.
func (c *Conn) Drain() { _, _ = io.Copy(io.Discard, c.Lines) }

// OverTLS runs a script inside TLS.
func OverTLS(leaf tls.Certificate, run func(c *Conn)) func(c *Conn) {
	return func(c *Conn) {
		inside := tls.Server(c.Conn, &tls.Config{Certificates: []tls.Certificate{leaf}})
		if inside.Handshake() == nil {
			run(&Conn{Conn: inside, Lines: bufio.NewReader(inside), N: c.N})
		}
	}
}

// Authority makes a certificate authority.
func Authority(t testing.TB) *servertest.CA {
	t.Helper()
	ca, err := servertest.NewCA()
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

// Leaf makes a certificate. A zero end means a day from now; without hosts it is for
// loopback.
func Leaf(t testing.TB, ca *servertest.CA, end time.Time, hosts ...string) tls.Certificate {
	t.Helper()
	leaf, err := ca.Leaf(servertest.LeafOptions{Hosts: hosts, NotAfter: end})
	if err != nil {
		t.Fatal(err)
	}
	return leaf
}

// Caps are the capabilities of an ordinary IMAP server.
const Caps = "IMAP4rev1 SASL-IR AUTH=PLAIN LITERAL+ ESEARCH UIDPLUS MOVE"

// Selected is the answer to an IMAP command that opens a folder of three messages,
// for AnswerIMAP.
const Selected = "* 3 EXISTS\r\n* OK [UIDVALIDITY 7] v\r\n* OK [UIDNEXT 14] n\r\nTAG OK [READ-WRITE] done\r\n"

// Greet speaks an IMAP greeting with these capabilities and accepts the login.
func (c *Conn) Greet(caps string) {
	c.Send("* OK [CAPABILITY " + caps + "] ready\r\n")
	tag, _ := c.Expect()
	c.Send(tag + " OK [CAPABILITY " + caps + "] in\r\n")
}

// Login is Greet with Caps.
func (c *Conn) Login() { c.Greet(Caps) }

// Examine answers the next IMAP command as an EXAMINE.
func (c *Conn) Examine() {
	tag, _ := c.Expect()
	c.Send("* 3 EXISTS\r\n* OK [UIDVALIDITY 7] v\r\n* OK [UIDNEXT 4] n\r\n" + tag + " OK [READ-ONLY] done\r\n")
}

// AnswerIMAP is the script of a server that accepts the login and answers each command as a
// test says; TAG stands for the command's tag. An empty answer ends the connection.
func AnswerIMAP(caps string, answer func(command string) string) func(c *Conn) {
	return func(c *Conn) {
		c.Greet(caps)
		for {
			tag, command := c.Expect()
			back := answer(command)
			if back == "" {
				return
			}
			c.Send(strings.ReplaceAll(back, "TAG", tag))
		}
	}
}

// AnswerLines is the script of a server that greets, and answers each line as a test
// says; with hangUp it ends the connection behind the answer.
func AnswerLines(greeting string, answer func(line string) (back string, hangUp bool)) func(c *Conn) {
	return func(c *Conn) {
		c.Send(greeting)
		for hangUp := false; !hangUp; {
			var back string
			back, hangUp = answer(c.Line())
			c.Send(back)
		}
	}
}

// Main runs the tests of a package as servertest.Main does, and fails where a goroutine that
// began in them is still there behind them, while the servers still run: a connection that was
// left open is not ended by its server. It is for packages whose tests run at once; one test
// alone has Settle.
func Main(run func() int) int {
	return servertest.Main(func() int {
		before := runtime.NumGoroutine()
		code := run()
		if stacks, ok := settled(before); !ok {
			fmt.Fprintf(os.Stderr, "%d goroutines before the tests, and these after:\n%s\n", before, strings.Join(stacks, "\n\n"))
			return max(code, 1)
		}
		return code
	})
}

// Settle fails the test when goroutines that began in it are still there at its end.
func Settle(t testing.TB) {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		if stacks, ok := settled(before); !ok {
			t.Errorf("%d goroutines before, and these after:\n%s", before, strings.Join(stacks, "\n\n"))
		}
	})
}

// settled waits until there are no more goroutines than before, besides those of servertest's
// own servers and the one that waits for signals, which never ends and fuzzing begins; if that does not come about it returns what all of them do.
func settled(before int) (stacks []string, ok bool) {
	late := time.After(10 * time.Second)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		if runtime.NumGoroutine() <= before {
			return nil, true
		}
		buf := make([]byte, 1<<20)
		stacks = strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n")
		stacks = slices.DeleteFunc(stacks, func(stack string) bool {
			return strings.Contains(stack, "/mail/servertest.(*") || strings.Contains(stack, "os/signal.loop()")
		})
		if len(stacks) <= before {
			return nil, true
		}
		select {
		case <-tick.C:
		case <-late:
			return stacks, false
		}
	}
}
