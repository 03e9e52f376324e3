package outbox_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/postern-mail/postern/mail/servertest/scripted"
)

// The steps of one submission at which a test can interfere.
const (
	stepConnect  = "connect"  // before the greeting
	stepHello    = "EHLO"     // before its answer
	stepAuth     = "AUTH"     // before its answer
	stepMail     = "MAIL"     // before its answer
	stepRcpt     = "RCPT"     // before its answer, at each recipient
	stepData     = "DATA"     // before its answer
	stepBody     = "body"     // in the middle of the message
	stepDot      = "dot"      // the message is here and not taken
	stepTaken    = "taken"    // the message is taken and not answered
	stepAnswered = "answered" // after the answer
)

// fault is what happens at a step instead.
type fault struct {
	reply string // instead of the step's own; what it refuses is not taken
	cut   bool   // the connection breaks
	do    func() // before either
}

// received is a message that the server took.
type received struct {
	from string
	to   []string
	raw  string
}

// fakeSubmissionServer is a submission server that counts what it takes, which is the
// truth that every answer of the outbox is compared with.
type fakeSubmissionServer struct {
	port       uint16
	extensions []string

	mu        sync.Mutex
	interfere func(step, argument string) fault
	taken     []received
	said      []string // commands, in order
}

func newFakeSubmission(t testing.TB, extensions ...string) *fakeSubmissionServer {
	t.Helper()
	if extensions == nil {
		extensions = []string{"PIPELINING", "8BITMIME", "SIZE 52428800"}
	}
	s := &fakeSubmissionServer{extensions: extensions}
	s.port = scripted.Serve(t, func(c *scripted.Conn) { s.serve(c.Conn) }).Port
	return s
}

// at sets what happens at the steps from now on; nil: nothing.
func (s *fakeSubmissionServer) at(interfere func(step, argument string) fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.interfere = interfere
}

// fault interferes at one step.
func (s *fakeSubmissionServer) fault(step string, i fault) {
	s.at(func(at, _ string) fault {
		if at == step {
			return i
		}
		return fault{}
	})
}

func (s *fakeSubmissionServer) messages() []received {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]received(nil), s.taken...)
}

// commands returns the commands so far and forgets them.
func (s *fakeSubmissionServer) commands() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	said := s.said
	s.said = nil
	return said
}

// step tells whether to go on, after a reply of the test's own if there is one.
func (s *fakeSubmissionServer) step(w io.Writer, name, argument, reply string) (refused, goOn bool) {
	s.mu.Lock()
	interfere := s.interfere
	s.mu.Unlock()
	var i fault
	if interfere != nil {
		i = interfere(name, argument)
	}
	if i.do != nil {
		i.do()
	}
	if i.cut {
		return true, false
	}
	if i.reply != "" {
		reply = i.reply
	}
	if reply != "" {
		if _, err := fmt.Fprintf(w, "%s\r\n", reply); err != nil {
			return true, false
		}
	}
	return i.reply != "" && i.reply[0] != '2' && i.reply[0] != '3', true
}

func (s *fakeSubmissionServer) serve(c net.Conn) {
	r := bufio.NewReader(c)
	if _, ok := s.step(c, stepConnect, "", "220 mail.example.org ready"); !ok {
		return
	}
	var from string
	var to []string
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		line = strings.TrimRight(line, "\r\n")
		verb, argument, _ := strings.Cut(line, " ")
		verb = strings.ToUpper(verb)
		s.mu.Lock()
		s.said = append(s.said, verb)
		s.mu.Unlock()
		ok, refused := true, false
		switch verb {
		case "EHLO":
			lines := append([]string{"mail.example.org"}, append(s.extensions, "AUTH PLAIN")...)
			for i := range lines {
				sep := "-"
				if i == len(lines)-1 {
					sep = " "
				}
				lines[i] = "250" + sep + lines[i]
			}
			_, ok = s.step(c, stepHello, argument, strings.Join(lines, "\r\n"))
		case "AUTH":
			_, ok = s.step(c, stepAuth, "", "235 2.7.0 welcome")
		case "MAIL":
			from, to = address(argument), nil
			_, ok = s.step(c, stepMail, from, "250 2.1.0 sender ok")
		case "RCPT":
			if refused, ok = s.step(c, stepRcpt, address(argument), "250 2.1.5 recipient ok"); !refused {
				to = append(to, address(argument))
			}
		case "DATA":
			if len(to) == 0 {
				_, err := fmt.Fprint(c, "503 5.5.1 no recipient\r\n")
				ok = err == nil
				break
			}
			if refused, ok = s.step(c, stepData, "", "354 go on"); ok && !refused {
				ok = s.data(c, r, received{from: from, to: to})
			}
		case "RSET":
			from, to = "", nil
			_, err := fmt.Fprint(c, "250 2.0.0 forgotten\r\n")
			ok = err == nil
		case "QUIT":
			_, _ = fmt.Fprint(c, "221 2.0.0 bye\r\n")
			return
		default:
			_, err := fmt.Fprint(c, "502 5.5.1 not known\r\n")
			ok = err == nil
		}
		if !ok {
			return
		}
	}
}

func (s *fakeSubmissionServer) data(c net.Conn, r *bufio.Reader, m received) (goOn bool) {
	var raw strings.Builder
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return false
		}
		if line == ".\r\n" {
			break
		}
		raw.WriteString(strings.TrimPrefix(line, "."))
		if raw.Len() > 100 && raw.Len() <= 100+len(line) {
			if _, ok := s.step(c, stepBody, "", ""); !ok {
				return false
			}
		}
	}
	m.raw = raw.String()
	refused, ok := s.step(c, stepDot, "", "")
	if refused || !ok {
		return ok
	}
	s.mu.Lock()
	s.taken = append(s.taken, m)
	s.mu.Unlock()
	if _, ok := s.step(c, stepTaken, "", "250 2.0.0 taken"); !ok {
		return false
	}
	_, ok = s.step(c, stepAnswered, "", "")
	return ok
}

// address is what stands between the angle brackets.
func address(argument string) string {
	_, rest, _ := strings.Cut(argument, "<")
	a, _, _ := strings.Cut(rest, ">")
	return a
}
