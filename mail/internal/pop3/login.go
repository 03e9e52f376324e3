package pop3

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/postern-mail/postern/mail/internal/wire"
)

// capabilities asks for the server's capabilities (RFC 2449): none if it does not know the
// command.
func (s *Session) capabilities() error {
	s.caps = nil
	_, err := s.command("capa", "CAPA")
	var e *wire.Error
	if errors.As(err, &e) && e.Kind == wire.KindRefused {
		return nil
	}
	if err != nil {
		return err
	}
	lines, err := s.lines()
	if err != nil {
		return s.conn.explain(s.ctx, "capa", err)
	}
	s.caps = make(map[string][]string, len(lines))
	for i, l := range lines {
		fields := strings.Fields(wire.Clean(strings.ToUpper(l)))
		if len(fields) > 0 && i < maxCapabilities {
			s.caps[fields[0]] = fields[1:]
		}
	}
	return nil
}

const maxCapabilities = 64

// login opens the mailbox. A refusal is never tried again with another mechanism:
// it would count as a second wrong password.
func (s *Session) login(ctx context.Context) error {
	if err := s.capabilities(); err != nil {
		return err
	}
	credential, err := s.cfg.Login.Credential(ctx)
	if err != nil {
		return err
	}
	s.words = func(heard string) string { return credential.Words(s.cfg.Login.Username, heard) }
	defer func() { s.words = nil }()
	if s.plainUser(credential) {
		err = s.userPass(s.cfg.Login.Username, credential.Password)
	} else {
		err = s.sasl(credential)
	}
	if err != nil {
		return s.refused(ctx, credential, err)
	}
	// A server's capabilities may change with the login.
	return s.capabilities()
}

// plainUser reports whether USER and PASS are to be used: for a password where the server
// offers them and not SASL PLAIN, or has no CAPA.
func (s *Session) plainUser(c wire.Credential) bool {
	if c.Token != "" || s.offers("PLAIN") {
		return false
	}
	return s.caps == nil || s.Has("USER") || !s.offers("LOGIN")
}

func (s *Session) offers(mechanism string) bool { return slices.Contains(s.caps["SASL"], mechanism) }

// refused marks a server's refusal of a login.
func (s *Session) refused(ctx context.Context, c wire.Credential, err error) error {
	var e *wire.Error
	if !errors.As(err, &e) || e.Kind != wire.KindRefused {
		return err
	}
	code := ""
	switch e.Code {
	case "AUTH", "SYS/TEMP", "SYS/PERM", "IN-USE", "LOGIN-DELAY": // RFC 2449 section 8, RFC 3206
		code = e.Code
	}
	if code != "" && code != "AUTH" {
		// The secret is not the reason: the mailbox is locked, or the server has a fault.
		return &wire.Error{Stage: wire.StageAuth, Kind: wire.KindRefused, Code: code, Text: e.Text, Permanent: code == "SYS/PERM"}
	}
	return &wire.Error{Stage: wire.StageAuth, Kind: wire.KindAuth, Code: code, Text: e.Text, Newer: s.cfg.Login.Newer(ctx, c)}
}

// userPass logs in with RFC 1939 section 7. Neither may hold a line end, and a user name
// cannot hold a space, the separator.
func (s *Session) userPass(username, password string) error {
	if strings.ContainsFunc(username, func(r rune) bool { return r <= ' ' || r == 0x7f }) ||
		strings.ContainsAny(password, "\r\n\x00") || password == "" {
		return &wire.Error{Stage: wire.StageAuth, Kind: wire.KindAuth, Err: errors.New("user name or password holds what a login by USER and PASS cannot")}
	}
	if _, err := s.command(wire.StageAuth, "USER "+username); err != nil {
		return err
	}
	_, err := s.command(wire.StageAuth, "PASS "+password)
	return err
}

// A command with its initial response must fit this many octets (RFC 5034
// section 4).
const maxAuthLine = 255

// sasl runs one exchange (RFC 5034).
func (s *Session) sasl(c wire.Credential) error {
	client, err := wire.SASL(s.offers, s.cfg.Login.Username, c)
	if err != nil {
		return &wire.Error{Stage: wire.StageAuth, Kind: wire.KindAuth, Err: err}
	}
	x, line, err := wire.Begin(client, "AUTH", maxAuthLine)
	for done := false; err == nil && !done; {
		var challenge string
		if err = s.write(line); err == nil {
			challenge, done, err = s.challenge()
		}
		if err == nil && !done {
			line, err = x.Answer(challenge)
		}
	}
	return s.conn.explain(s.ctx, wire.StageAuth, err)
}

// challenge reads a reply within a login; done is its +OK.
func (s *Session) challenge() (text string, done bool, err error) {
	b, err := s.br.Peek(2)
	if err != nil {
		return "", false, err
	}
	if string(b) == "+ " || string(b) == "+\r" {
		line, err := s.line()
		return strings.TrimPrefix(line, "+"), false, err
	}
	_, err = s.reply(wire.StageAuth)
	return "", true, err
}
