package smtp

import (
	"slices"
	"strings"

	"github.com/postern-mail/postern/mail/internal/wire"
)

// maxCommand is how long a command may be, with its end (RFC 5321 section 4.5.3.1.4).
// A first message that makes AUTH longer waits to be asked for (RFC 4954 section 4).
const maxCommand = 512

var errChallenge = wire.Cause(wire.KindProtocol, "server asked for what the login does not have")

// login authenticates once (RFC 4954 section 4). A refusal is never tried again with
// another mechanism: it would count as a second wrong password.
func (s *Session) login(username string, c wire.Credential) *wire.Error {
	mechanisms := strings.Fields(strings.ToUpper(s.offer["AUTH"]))
	client, err := wire.SASL(func(m string) bool { return slices.Contains(mechanisms, m) }, username, c)
	if err != nil {
		return &wire.Error{Stage: wire.StageAuth, Kind: wire.KindAuth, Err: err}
	}
	x, line, err := wire.Begin(client, "AUTH", maxCommand)
	for err == nil {
		r, failed := s.command(wire.StageAuth, line, commandTime)
		switch {
		case failed != nil:
			return failed
		case r.code == 235:
			return nil
		case r.refused():
			e := refusedLogin(r)
			e.Text = c.Words(username, strings.Join(r.lines, " "))
			return e
		case r.code != 334:
			return wire.Broken(wire.StageAuth, s.conn.End(errNotSMTP))
		}
		if line, err = x.Answer(r.lines[0]); line == "*" {
			err = errChallenge
		}
	}
	return wire.Broken(wire.StageAuth, s.conn.End(err))
}

// refusedLogin is a refusal of the credential, unless the server says that it is
// busy.
func refusedLogin(r reply) *wire.Error {
	e := &wire.Error{Stage: wire.StageAuth, Kind: wire.KindAuth, Reply: r.code, Code: r.enhanced, Permanent: r.code >= 500}
	if r.code < 500 {
		e.Kind = wire.KindRefused
	}
	return e
}
