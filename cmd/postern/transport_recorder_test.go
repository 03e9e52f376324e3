//go:build unix

package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postern-mail/postern/mail/servertest"
)

// recorder stands between a client and a server, ends the TLS of both, and keeps every
// byte that passes.
type recorder struct {
	port     uint16
	target   string
	listener net.Listener
	conf     *tls.Config // nil: no TLS on either side
	serverCA *tls.Config
	patience time.Duration // how long an old connection may be seen after a new one began
	wg       sync.WaitGroup

	mu        sync.Mutex
	conns     []*recordedConn
	overlaps  int  // connections that were begun while another was open
	cut       bool // new ones are closed at once
	connected int
}

// recordedConn is one connection. What it said is guarded by recorder.mu.
type recordedConn struct {
	said, heard []byte
	gone        chan struct{} // closed when the client has closed
	client      net.Conn
}

// newRecorder starts a recorder before a server's TLS port.
func newRecorder(t testing.TB, s *servertest.DovecotServer, protocol string) *recorder {
	t.Helper()
	target := map[string]string{"imap": s.IMAPSAddr(), "pop3": s.POP3SAddr()}[protocol]
	leaf, err := s.CA.Leaf(servertest.LeafOptions{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &recorder{port: uint16(l.Addr().(*net.TCPAddr).Port), target: target, listener: l, patience: 20 * time.Second,
		conf: &tls.Config{Certificates: []tls.Certificate{leaf}}, serverCA: s.ClientTLS()}
	p.wg.Go(p.serve)
	t.Cleanup(func() { _ = l.Close(); p.sever(); p.wg.Wait() })
	return p
}

func (p *recorder) serve() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		before := slices.Clone(p.conns)
		c := &recordedConn{gone: make(chan struct{}), client: conn}
		p.conns = append(p.conns, c)
		p.connected++
		cut, patience := p.cut, p.patience
		p.mu.Unlock()
		if cut {
			_ = conn.Close()
			close(c.gone)
			continue
		}
		// What the client closed before it began this one is on its way here.
		late := time.NewTimer(patience)
		for _, old := range before {
			select {
			case <-old.gone:
			case <-late.C:
				late.Reset(0)
				p.mu.Lock()
				p.overlaps++
				p.mu.Unlock()
			}
		}
		late.Stop()
		p.wg.Go(func() { p.pass(c) })
	}
}

func (p *recorder) pass(c *recordedConn) {
	client := tls.Server(c.client, p.conf)
	end := sync.OnceFunc(func() { close(c.gone) })
	defer end()
	defer client.Close()
	server, err := tls.Dial("tcp", p.target, p.serverCA)
	if err != nil {
		return
	}
	defer server.Close()
	var back sync.WaitGroup
	back.Go(func() {
		_ = copyTo(client, server, func(b []byte) { p.note(&c.heard, b) })
		_ = c.client.Close()
	})
	_ = copyTo(server, client, func(b []byte) { p.note(&c.said, b) })
	end()
	_ = server.Close()
	back.Wait()
}

func copyTo(to io.Writer, from io.Reader, note func([]byte)) error {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		note(buf[:n])
		if _, err := to.Write(buf[:n]); err != nil {
			return err
		}
		if err != nil {
			return err
		}
	}
}

func (p *recorder) note(to *[]byte, b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*to = append(*to, b...)
}

// sever breaks what is open.
func (p *recorder) sever() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.client.Close()
	}
}

// dead breaks what is open and lets nobody in; or lets them in again.
func (p *recorder) dead(yes bool) {
	p.mu.Lock()
	p.cut = yes
	p.mu.Unlock()
	if yes {
		p.sever()
	}
}

// reset forgets what was said, and returns it connection by connection.
func (p *recorder) reset() (said []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		said = append(said, string(c.said))
		c.said, c.heard = nil, nil
	}
	return said
}

// several says what is wrong with how many connections there were at once.
func (p *recorder) several() (wrong []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.overlaps > 0 {
		wrong = append(wrong, fmt.Sprintf("%d connections were begun while another was open", p.overlaps))
	}
	if p.connected == 0 {
		wrong = append(wrong, "nothing connected at all")
	}
	return wrong
}

func (p *recorder) connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.connected
}

// imapCommands takes what an IMAP client said apart: tag, verb and arguments, its
// literals in the middle of them and the lines of a login left out.
func imapCommands(said string) (commands []string) {
	login := false
	for said != "" {
		line, rest, _ := strings.Cut(said, "\r\n")
		said = rest
		if login {
			login = false
			continue
		}
		for m := announced.FindStringSubmatch(line); m != nil; m = announced.FindStringSubmatch(line) {
			n, _ := strconv.Atoi(m[1])
			n = min(n, len(said))
			literal := said[:n]
			more, rest, _ := strings.Cut(said[n:], "\r\n")
			line, said = line[:len(line)-len(m[0])]+"("+strconv.Itoa(len(literal))+" bytes)"+more, rest
		}
		if line == "" {
			continue
		}
		commands = append(commands, line)
		fields := strings.Fields(line)
		login = len(fields) == 3 && strings.EqualFold(fields[1], "AUTHENTICATE")
	}
	return commands
}

// harmlessIMAP are the verbs that change nothing whatever their arguments.
var harmlessIMAP = []string{"CAPABILITY", "NOOP", "ID", "AUTHENTICATE", "LOGIN", "ENABLE", "NAMESPACE", "LIST", "STATUS", "EXAMINE", "SEARCH", "UID SEARCH", "UID THREAD", "UID SORT", "UNSELECT", "LOGOUT"}

var (
	section   = regexp.MustCompile(`([A-Z0-9.]+)\[`)
	marksSeen = regexp.MustCompile(`^UID STORE ([0-9:,]+) \+FLAGS(\.SILENT)? \(\\SEEN\)$`)
)

// imapViolations says which commands of an IMAP client do more than read; with
// marking set, those of mail mark-read may be among them.
func imapViolations(said []string, marking bool) (wrong []string) {
	for _, connection := range said {
		for _, line := range imapCommands(connection) {
			_, rest, _ := strings.Cut(line, " ")
			rest = strings.ToUpper(rest)
			verb, args, _ := strings.Cut(rest, " ")
			if verb == "UID" {
				sub, more, _ := strings.Cut(args, " ")
				verb, args = verb+" "+sub, more
			}
			ok := slices.Contains(harmlessIMAP, verb)
			switch verb {
			case "FETCH", "UID FETCH":
				ok = !regexp.MustCompile(`\bRFC822(\.TEXT)?($|[^.A-Z0-9])`).MatchString(args)
				for _, m := range section.FindAllStringSubmatch(args, -1) {
					ok = ok && slices.Contains([]string{"BODY.PEEK", "BINARY.PEEK", "BINARY.SIZE"}, m[1])
				}
			case "SELECT":
				ok = marking
			case "UID STORE":
				ok = marking && marksSeen.MatchString(rest)
			}
			if !ok {
				wrong = append(wrong, "the client said "+line)
			}
		}
	}
	return wrong
}

var base64Line = regexp.MustCompile(`^[A-Za-z0-9+/]+=*$|^\*$`)

// popViolations says which commands of a POP3 client do more than read.
func popViolations(said []string) (wrong []string) {
	for _, connection := range said {
		login := false
		for line := range strings.SplitSeq(strings.TrimSuffix(connection, "\r\n"), "\r\n") {
			verb, _, _ := strings.Cut(strings.ToUpper(line), " ")
			switch {
			case line == "", login && base64Line.MatchString(line):
				login = false
				continue
			case !slices.Contains([]string{"CAPA", "STLS", "AUTH", "USER", "PASS", "UIDL", "LIST", "TOP", "RETR", "NOOP", "QUIT"}, verb):
				wrong = append(wrong, "the client said "+line)
			}
			login = verb == "AUTH" && strings.Count(line, " ") == 1
		}
	}
	return wrong
}
