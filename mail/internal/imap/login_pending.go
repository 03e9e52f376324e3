package imap

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/postern-mail/postern/mail/internal/wire"
)

// pendingLogin is a login in progress: one line that waits for the first write, and the
// SASL messages behind it. The protocol library does not know of it.
//
// If the line is the whole login, it may be held to leave in one write with the first commands
// of a session, which saves a round trip. The server reads the commands when it has
// accepted the login; if it refuses, the connection ends and they fail with it. No answer
// to them counts then.
type pendingLogin struct {
	tag        string
	line       []byte         // the line to send
	exchange   *wire.Exchange // nil for the command LOGIN
	held       bool           // other commands may stand behind the line
	challenged bool
	sent       atomic.Bool               // the line has left
	answer     func(err error)           // called once with the outcome; may be nil
	newer      func() bool               // whether a refusal is worth another try
	words      func(heard string) string // see wire.Credential.Words
	done       chan struct{}             // closed at the outcome; the fields below do not change then
	told       bool
	caps       []string // when told
	err        error    // a *wire.Error
}

// single reports whether the line is the whole login.
func (p *pendingLogin) single() bool { return p.exchange == nil || p.exchange.Whole }

// outcome ends the login, for the first reason it is given.
func (p *pendingLogin) outcome(err error) error {
	select {
	case <-p.done:
		return p.err
	default:
	}
	if err != nil {
		e := dialError(context.Background(), wire.StageAuth, err)
		if e.Kind == wire.KindAuth {
			e.Newer = p.newer()
		}
		p.err = e
	}
	p.newer, p.words, p.exchange = nil, nil, nil // they know the credential that was sent
	if p.answer != nil {
		p.answer(p.err)
	}
	close(p.done)
	return p.err
}

// take reads the server's lines up to its answer to the login. inject is for the library.
// An error ends the connection.
func (p *pendingLogin) take(g *guard, raw []byte) (inject string, err error) {
	l := parseLine(string(raw))
	if !p.sent.Load() {
		l.caps = nil
		if l.tag != "*" {
			return "", p.outcome(errUnasked)
		}
	}
	if l.caps != nil {
		p.told, p.caps = true, l.caps
	}
	switch {
	case l.tag == p.tag && l.typ == "OK" && p.held && p.challenged:
		// The commands behind it were taken for answers to a challenge.
		err = fmt.Errorf("%w: login accepted out of turn", errNotIMAP)
	case l.tag == p.tag && l.typ == "OK":
		if p.told {
			inject = "* CAPABILITY " + libraryCaps(p.caps) + "\r\n"
		}
		return inject, p.outcome(nil)
	case l.tag == p.tag && (l.typ == "NO" || l.typ == "BAD"):
		err = refusedLogin(l, p.words(l.raw))
	case l.tag == "+" && p.exchange != nil:
		p.challenged = true
		var answer string
		if answer, err = p.exchange.Answer(l.text); err == nil {
			g.writing.Lock()
			err = g.send([]byte(answer + "\r\n"))
			g.writing.Unlock()
		}
	case l.tag == "*" && l.typ == "BYE":
		if l.text = p.words(l.raw); !temporary[l.code] && !authCodes[l.code] {
			l.code = ""
		}
		err = goodbyeOf(l)
	case l.tag == "*":
	default:
		err = errUnasked
	}
	if err != nil {
		return "", p.outcome(err)
	}
	return "", nil
}

// Ready completes the login, if it has not been sent or answered yet. Every other method
// does so by itself; Ready is for callers that need the outcome first. Its error is that of
// a refused login.
func (s *Session) Ready() error {
	if s.login == nil {
		return s.refused
	}
	s.guard.flush()
	<-s.login.done
	s.settle()
	return s.refused
}

// settled reports whether the login has been answered, without waiting.
func (s *Session) settled() bool {
	if s.login == nil {
		return true
	}
	select {
	case <-s.login.done:
		s.settle()
		return true
	default:
		return false
	}
}

// settle takes the outcome of the login over.
func (s *Session) settle() {
	s.refused, s.told = s.login.err, s.login.told
	if s.told {
		s.caps = s.login.caps
	}
	if s.refused != nil {
		s.caps = nil
	}
	s.login = nil
}

// askCapabilities starts a CAPABILITY, which leaves with the next command, when the server did
// not tell what it offers after the login.
func (s *Session) askCapabilities() {
	if s.told || s.query != nil || s.refused != nil || s.guard.reason() != nil {
		return
	}
	done := make(chan struct{})
	s.query = done
	s.guard.cork(func() {
		cmd := s.client.Capability()
		go func() {
			defer close(done)
			_, _ = cmd.Wait()
		}()
	})
}

// ensureCapabilities makes sure that the capabilities are from after the login.
func (s *Session) ensureCapabilities() {
	if s.Ready() != nil || s.told {
		return
	}
	s.askCapabilities()
	if s.query != nil {
		s.guard.flush()
		<-s.query
		s.takeCapabilities()
	}
}

// takeCapabilities takes the answer to askCapabilities over, when it is there.
func (s *Session) takeCapabilities() {
	if s.query == nil || s.told {
		return
	}
	select {
	case <-s.query:
		// A server that does not send them is asked once.
		s.told = true
		if told := s.guard.mend.told.Load(); told != nil {
			s.caps = *told
		}
	default:
	}
}

// HasAlready is Has without waiting: it may say no because it is not known yet.
func (s *Session) HasAlready(capability string) bool {
	if !s.settled() {
		return false
	}
	s.takeCapabilities()
	return s.told && contains(s.caps, capability)
}
