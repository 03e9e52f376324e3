package smtp_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/postern-mail/postern/mail/internal/smtp"
	"github.com/postern-mail/postern/mail/internal/wire"
)

// fakeServer is a fake submission server that keeps to the protocol, except where a test says
// otherwise. It records the messages that it took.
type fakeServer struct {
	offer []string // the extensions; nil means full
	// say holds other answers by stage: lines with their ends, or one of the words below.
	// The stages are greeting, ehlo, auth, mail, rcpt with a space and the address, data,
	// message (when its first bytes have come), end, rset, quit.
	say map[string]string
	at  func(stage string) // called when a stage is reached
	// counted is called when an answer has been written, with the bytes so far.
	counted func(reads, writes int, stage string)
	// After so many bytes in one direction the connection ends; 0 means never.
	reads, writes int
	ends          bool // the connection ends after an answer of say

	gone  chan struct{}  // closed when the test is over
	ended sync.WaitGroup // connections that are served
	mu    sync.Mutex
	lines []string // commands
	taken []string // messages whose end was answered 2xx, or would have been
}

const (
	hangUp = "hang up" // the connection ends
	hang   = "hang"    // the server says nothing, and reads until the client goes
	stuck  = "stuck"   // the server says and reads nothing until the test is over
)

var full = []string{"PIPELINING", "SIZE 30000000", "8BITMIME", "SMTPUTF8", "ENHANCEDSTATUSCODES", "AUTH PLAIN LOGIN XOAUTH2 OAUTHBEARER"}

// start listens and serves connections, inside TLS if leaf is not nil.
func (p *fakeServer) start(t *testing.T, leaf *tls.Certificate) uint16 {
	t.Helper()
	gone := make(chan struct{})
	p.gone = gone
	port := script(t, func(c net.Conn, _ *bufio.Reader) {
		if leaf != nil {
			c = tls.Server(c, &tls.Config{Certificates: []tls.Certificate{*leaf}})
			defer c.Close()
		}
		p.serve(c)
	})
	t.Cleanup(func() { close(gone) }) // runs before the server waits for its scripts
	return port
}

func (p *fakeServer) dial(t *testing.T) *smtp.Session {
	t.Helper()
	s, err := smtp.Dial(t.Context(), config(p.start(t, nil), wire.Plaintext, nil))
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// fakeLimitedConn ends a connection after so many bytes.
type fakeLimitedConn struct {
	net.Conn
	reads, writes int // bytes left; negative means no bound
	read, written int // so far
}

var errCut = errors.New("cut")

func (l *fakeLimitedConn) Read(b []byte) (int, error) {
	if l.reads == 0 {
		return 0, errCut
	}
	if l.reads > 0 {
		b = b[:min(len(b), l.reads)]
	}
	n, err := l.Conn.Read(b)
	l.read += n
	if l.reads > 0 {
		l.reads -= n
	}
	return n, err
}

func (l *fakeLimitedConn) Write(b []byte) (int, error) {
	cut := l.writes >= 0 && len(b) >= l.writes
	if cut {
		b = b[:l.writes]
	}
	n, err := l.Conn.Write(b)
	l.written += n
	if l.writes > 0 {
		l.writes -= n
	}
	if cut && err == nil {
		err = errCut
	}
	return n, err
}

func bound(n int) int {
	if n == 0 {
		return -1
	}
	return n
}

func (p *fakeServer) serve(c net.Conn) {
	p.ended.Add(1)
	defer p.ended.Done()
	l := &fakeLimitedConn{Conn: c, reads: bound(p.reads), writes: bound(p.writes)}
	br := bufio.NewReader(l)
	if !p.answer(l, br, "greeting", "220 peer\r\n") {
		return
	}
	for {
		line, err := br.ReadString('\n')
		if err != nil {
			return
		}
		line = strings.TrimRight(line, "\r\n")
		p.mu.Lock()
		p.lines = append(p.lines, line)
		p.mu.Unlock()
		verb, rest, _ := strings.Cut(line, " ")
		going := true
		switch verb {
		case "EHLO":
			offer := p.offer
			if offer == nil {
				offer = full
			}
			going = p.answer(l, br, "ehlo", "250-peer\r\n250-"+strings.Join(append(offer[:len(offer):len(offer)], "X-END"), "\r\n250-")+"\r\n250 HELP\r\n")
		case "AUTH":
			going = p.answer(l, br, "auth", "235 2.7.0 in\r\n")
		case "MAIL":
			going = p.answer(l, br, "mail", "250 2.1.0 yes\r\n")
		case "RCPT":
			address, _, _ := strings.Cut(strings.TrimPrefix(rest, "TO:<"), ">")
			going = p.answer(l, br, "rcpt "+address, "250 2.1.5 yes\r\n")
		case "DATA":
			p.mu.Lock()
			said := p.say["data"] // read before the answer, since the test may change it afterwards
			p.mu.Unlock()
			if going = p.answer(l, br, "data", "354 go ahead\r\n"); going && (said == "" || strings.HasPrefix(said, "354")) {
				going = p.message(l, br)
			}
		case "RSET":
			going = p.answer(l, br, "rset", "250 2.0.0 yes\r\n")
		case "QUIT":
			p.answer(l, br, "quit", "221 2.0.0 bye\r\n")
			return
		default:
			going = p.answer(l, br, "other", "500 5.5.1 what\r\n")
		}
		if !going {
			return
		}
	}
}

// message reads a message up to the line that is only a dot. It reports whether the
// connection goes on.
func (p *fakeServer) message(l *fakeLimitedConn, br *bufio.Reader) bool {
	if _, err := br.Peek(1); err != nil || !p.answer(l, br, "message", "") {
		return false
	}
	end := []byte("\r\n.\r\n")
	got := []byte("\r\n") // as if the message followed a line end, so that its first line can be the dot
	for chunk, at := make([]byte, 64<<10), -1; at < 0; {
		n, err := br.Read(chunk)
		if err != nil {
			return false
		}
		from := max(len(got)-len(end), 0)
		got = append(got, chunk[:n]...)
		if at = bytes.Index(got[from:], end); at < 0 {
			continue
		}
		if from+at+len(end) != len(got) {
			return false // the client went on without waiting for the answer
		}
		got = bytes.ReplaceAll(got[:from+at+2], []byte("\r\n."), []byte("\r\n"))[2:]
	}
	p.mu.Lock()
	said := p.say["end"]
	if said == "" || strings.HasPrefix(said, "2") || said == hang || said == hangUp {
		p.taken = append(p.taken, string(got))
	}
	p.mu.Unlock()
	return p.answer(l, br, "end", "250 2.0.0 queued as 42\r\n")
}

// answer sends the answer of a stage: usual, or that of say. It reports whether the
// connection goes on.
func (p *fakeServer) answer(l *fakeLimitedConn, br *bufio.Reader, stage, usual string) bool {
	if p.at != nil {
		p.at(stage)
	}
	p.mu.Lock()
	said, instead := p.say[stage]
	p.mu.Unlock()
	if !instead {
		said = usual
	}
	switch said {
	case hangUp:
		return false
	case hang:
		_, _ = io.Copy(io.Discard, br)
		return false
	case stuck:
		<-p.gone
		return false
	}
	_, err := io.WriteString(l, said)
	if p.counted != nil {
		p.counted(l.read, l.written, stage)
	}
	return err == nil && !(instead && p.ends)
}

func (p *fakeServer) took() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.taken...)
}

func (p *fakeServer) commands() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines, "|")
}
