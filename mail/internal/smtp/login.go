package smtp

import (
	"encoding/base64"
	"slices"
	"strings"

	"github.com/postern-mail/postern/mail/internal/wire"
)

const (
	// maxCommand is how long a command may be, with its end (RFC 5321 section
	// 4.5.3.1.4). A first message that makes AUTH longer waits to be asked for (RFC
	// 4954 section 4).
	maxCommand    = 512
	maxChallenges = 16 // what a server may ask in one login
)

var (
	errChallenge = wire.Cause(wire.KindProtocol, "server asked for what the login does not have")
	errEndless   = wire.Cause(wire.KindProtocol, "server asks without end")
)

// login authenticates once (RFC 4954 section 4). A refusal is never tried again
// with another mechanism: it would count as a second wrong password. The server's
// words are left out of every error: it has just been sent a secret, and can say it
// again in any form.
func (s *Session) login(username string, c wire.Credential) *wire.Error {
	mechanisms := strings.Fields(strings.ToUpper(s.offer["AUTH"]))
	client, err := wire.SASL(func(m string) bool { return slices.Contains(mechanisms, m) }, username, c)
	if err != nil {
		return &wire.Error{Stage: wire.StageAuth, Kind: wire.KindAuth, Err: err}
	}
	mechanism, first, err := client.Start()
	if err != nil {
		return &wire.Error{Stage: wire.StageAuth, Kind: wire.KindAuth, Err: err}
	}
	line, waits := "AUTH "+mechanism, first != nil
	if waits {
		// None of our first messages is empty, which would be written as =.
		if at := line + " " + base64.StdEncoding.EncodeToString(first); len(at)+2 <= maxCommand {
			line, waits = at, false
		}
	}
	for range maxChallenges {
		r, failed := s.command(wire.StageAuth, line, commandTime)
		switch {
		case failed != nil:
			return failed
		case r.code == 235:
			return nil
		case r.refused():
			return refusedLogin(r)
		case r.code != 334:
			return failure(wire.StageAuth, s.conn.end(errNotSMTP))
		}
		if waits {
			line, waits = base64.StdEncoding.EncodeToString(first), false
			continue
		}
		challenge, err := base64.StdEncoding.DecodeString(strings.TrimSpace(r.lines[0]))
		if err != nil {
			return failure(wire.StageAuth, s.conn.end(errNotSMTP))
		}
		next, err := client.Next(challenge)
		if err != nil {
			return failure(wire.StageAuth, s.conn.end(errChallenge))
		}
		line = base64.StdEncoding.EncodeToString(next)
	}
	return failure(wire.StageAuth, s.conn.end(errEndless))
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
