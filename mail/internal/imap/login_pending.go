package imap

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/postern-mail/postern/mail/internal/wire"
)

// pendingLogin is a login on its way: one line that waits for what is written first,
// and the messages of SASL behind it. The protocol library knows nothing of it.
//
// Where the line is all that the client has to say, it is held to leave in one write
// with the first commands of a session, which saves a round trip. The server reads the
// commands when it has accepted the login; when it has not, the connection ends and
// they fail with it. Nothing of them can be taken for an answer that counts.
type pendingLogin struct {
	tag        string
	line       []byte         // what is sent
	exchange   *wire.Exchange // nil for the command LOGIN
	held       bool           // other commands may stand behind the line
	challenged bool
	sent       atomic.Bool     // the line has left
	answer     func(err error) // called once with the outcome; may be nil
	newer      func() bool     // whether a refusal is worth another try
	done       chan struct{}   // closed when there is an outcome; what follows does not change then
	told       bool
	caps       []string // when told
	err        error    // a *wire.Error
}

// single reports whether the line is all that the client has to say.
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
	p.newer, p.exchange = nil, nil // they know the credential that was sent
	if p.answer != nil {
		p.answer(p.err)
	}
	close(p.done)
	return p.err
}

// take reads what the server says up to its answer to the login. inject is for
// the library. An error ends the connection.
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
		err = refusedLogin(l)
	case l.tag == "+" && p.exchange != nil:
		p.challenged = true
		var answer string
		if answer, err = p.exchange.Answer(l.text); err == nil {
			g.writing.Lock()
			err = g.send([]byte(answer + "\r\n"))
			g.writing.Unlock()
		}
	case l.tag == "*" && l.typ == "BYE":
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

// Ready completes the login, where it has not been sent yet or has not been
// answered. Every other method does what has to be done by itself; Ready is for
// who wants to know first. Its error is that of a refused login.
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

// ensureCapabilities makes sure that the capabilities are those of after the login.
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
		// A server that does not tell is asked once.
		s.told = true
		if told := s.guard.mend.told.Load(); told != nil {
			s.caps = *told
		}
	default:
	}
}

// hasAlready is Has without waiting: it may say no because it is not known yet.
func (s *Session) hasAlready(capability string) bool {
	if !s.settled() {
		return false
	}
	s.takeCapabilities()
	return s.told && contains(s.caps, capability)
}
