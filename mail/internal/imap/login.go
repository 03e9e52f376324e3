package imap

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/emersion/go-sasl"

	"github.com/postern-mail/postern/mail/internal/wire"
)

// maxCapabilities bounds the capabilities kept of a server.
const maxCapabilities = 256

// dialog speaks the lines before a login: the greeting, CAPABILITY and STARTTLS. These
// are plain lines without nesting, and doing them here keeps the server's words for
// the error and refuses injected plaintext.
type dialog struct {
	guard *guard
	br    *bufio.Reader
	tag   int
	caps  []string // nil until the server said them
	cyrus bool     // it says that it is a Cyrus
}

// line is one line of the server, split as far as needed.
type line struct {
	tag  string   // "*", "+" or a tag
	typ  string   // upper case
	code string   // response code, upper case
	caps []string // nil when the line lists no capabilities
	text string
	raw  string // text as it came
}

func (d *dialog) read() (line, error) {
	raw, err := d.br.ReadString('\n')
	if err != nil {
		if cause := d.guard.reason(); cause != nil {
			err = cause
		}
		return line{}, err
	}
	l := parseLine(raw)
	if l.caps != nil {
		d.caps = l.caps
	}
	return l, nil
}

func parseLine(raw string) line {
	raw = strings.TrimRight(raw, "\r\n")
	var l line
	var rest string
	l.tag, rest, _ = strings.Cut(raw, " ")
	if l.tag == "+" {
		l.text = rest
		return l
	}
	l.typ, rest, _ = strings.Cut(rest, " ")
	l.typ = strings.ToUpper(l.typ)
	if l.typ == "CAPABILITY" {
		l.caps = capabilities(rest)
	}
	if inner, ok := strings.CutPrefix(rest, "["); ok {
		var code, args string
		code, rest, _ = strings.Cut(inner, "]")
		l.code, args, _ = strings.Cut(code, " ")
		l.code = strings.ToUpper(l.code)
		if l.code == "CAPABILITY" {
			l.caps = capabilities(args)
		}
	}
	l.raw, l.text = rest, wire.Clean(rest)
	return l
}

// capabilities returns the well-formed capabilities of a list, upper case and sorted.
func capabilities(list string) []string {
	caps := []string{}
	for _, c := range strings.Fields(list) {
		c = strings.ToUpper(c)
		ok := len(c) <= 256 && strings.Trim(c, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-=_./:;,&|!@") == ""
		if ok && len(caps) < maxCapabilities && !slices.Contains(caps, c) {
			caps = append(caps, c)
		}
	}
	slices.Sort(caps)
	return caps
}

func (d *dialog) has(name string) bool { return slices.Contains(d.caps, name) }

// do sends a command, and reads up to the answer to it.
func (d *dialog) do(command string) (line, error) {
	d.tag++
	tag := "L" + strconv.Itoa(d.tag)
	if _, err := d.guard.Write([]byte(tag + " " + command + "\r\n")); err != nil {
		return line{}, err
	}
	for {
		l, err := d.read()
		switch {
		case err != nil:
			return l, err
		case l.tag == tag:
			if l.typ != "OK" && l.typ != "NO" && l.typ != "BAD" {
				return l, fmt.Errorf("%w: unexpected answer", errNotIMAP)
			}
			return l, nil
		case l.tag == "*" && l.typ == "BYE":
			return l, goodbyeOf(l)
		case l.tag == "*":
		default:
			return l, errUnasked
		}
	}
}

func (d *dialog) capability() error {
	if d.caps != nil {
		return nil
	}
	l, err := d.do("CAPABILITY")
	if err == nil && (l.typ != "OK" || d.caps == nil) {
		err = fmt.Errorf("%w: no capabilities", errNotIMAP)
	}
	return err
}

// goodbyeOf is the failure that a BYE means.
func goodbyeOf(l line) *wire.Error {
	return &wire.Error{Kind: wire.KindClosed, Code: wire.Clean(l.code), Text: l.text}
}

func (d *dialog) greeting() error {
	l, err := d.read()
	switch {
	case err != nil:
		return err
	case l.tag == "*" && l.typ == "OK":
		d.cyrus = strings.Contains(l.text, "Cyrus IMAP")
		return nil
	case l.tag == "*" && l.typ == "BYE":
		return goodbyeOf(l)
	case l.tag == "*" && l.typ == "PREAUTH":
		// Logged in as whom? On a connection that is still to be protected,
		// it would skip STARTTLS besides (RFC 9051 section 7.1.4).
		return fmt.Errorf("%w: server claims to be logged in already", errNotIMAP)
	}
	return fmt.Errorf("%w: no greeting", errNotIMAP)
}

// startTLS upgrades the connection. The server has to offer it, and may not send
// anything between its OK and the handshake (RFC 9051 section 11.1).
func (d *dialog) startTLS(ctx context.Context, target wire.Target) error {
	if err := d.capability(); err != nil {
		return err
	}
	if !d.has("STARTTLS") {
		return &wire.Error{Kind: wire.KindProtocol, Permanent: true, Err: wire.ErrNoStartTLS}
	}
	l, err := d.do("STARTTLS")
	if err != nil {
		return err
	}
	if l.typ != "OK" {
		return &wire.Error{Kind: wire.KindRefused, Code: wire.Clean(l.code), Text: l.text}
	}
	if d.br.Buffered() > 0 {
		return fmt.Errorf("%w: data in front of TLS", errNotIMAP)
	}
	conn, err := wire.Protect(ctx, target, d.guard.raw)
	if err != nil {
		return err
	}
	d.guard.putTLS(conn)
	d.br.Reset(d.guard)
	d.caps = nil // capabilities sent in the clear do not count
	return nil
}

// login prepares a login, whose line waits for the first write. A refusal is never tried
// again with another mechanism: it would count as a second wrong password.
func (d *dialog) login(ctx context.Context, cfg *Config) (*pendingLogin, error) {
	if err := d.capability(); err != nil {
		return nil, err
	}
	c, err := cfg.Login.Credential(ctx)
	if err != nil {
		return nil, err
	}
	lasting := context.WithoutCancel(ctx) // ctx is for connecting, and may have ended by then
	d.tag++
	l := &pendingLogin{tag: "L" + strconv.Itoa(d.tag), done: make(chan struct{}), newer: func() bool { return cfg.Login.Newer(lasting, c) },
		words: func(heard string) string { return c.Words(cfg.Login.Username, heard) }}
	// The command LOGIN takes one round trip, PLAIN without SASL-IR two, and the mechanism
	// LOGIN three.
	command := !d.has("LOGINDISABLED")
	quotable := !strings.ContainsFunc(cfg.Login.Username+c.Password, func(r rune) bool { return r < ' ' || r > '~' })
	client, err := wire.SASL(func(mechanism string) bool {
		longer := mechanism == sasl.Login || mechanism == sasl.Plain && quotable && !d.has("SASL-IR")
		return d.has("AUTH="+mechanism) && !(command && longer)
	}, cfg.Login.Username, c)
	line, room := "", 0
	switch {
	case err == nil:
		if d.has("SASL-IR") {
			room = maxCommandLine
		}
		l.exchange, line, err = wire.Begin(client, "AUTHENTICATE", room)
	case errors.Is(err, wire.ErrNoMechanism) && c.Password != "" && command:
		if err = nil; !quotable {
			err = errors.New("the server offers LOGIN alone, which takes no user name or password beyond ASCII here")
		}
		line = "LOGIN " + quote(cfg.Login.Username) + " " + quote(c.Password)
	}
	if err != nil {
		return nil, &wire.Error{Kind: wire.KindAuth, Permanent: true, Err: err}
	}
	l.line = []byte(l.tag + " " + line + "\r\n")
	return l, nil
}

// refusedLogin is the server's refusal of a login, with its words. A code that is not known is
// left out: it could be anything that the server has just got.
func refusedLogin(l line, words string) *wire.Error {
	code := wire.Clean(l.code)
	if temporary[code] {
		return &wire.Error{Kind: wire.KindRefused, Code: code, Text: words}
	}
	if !authCodes[code] {
		code = ""
	}
	return &wire.Error{Kind: wire.KindAuth, Code: code, Text: words, Permanent: true}
}

// authCodes are the response codes that tell why a login was refused (RFC 9051
// section 7.1).
var authCodes = map[string]bool{"AUTHENTICATIONFAILED": true, "AUTHORIZATIONFAILED": true, "EXPIRED": true, "PRIVACYREQUIRED": true,
	"CONTACTADMIN": true, "NOPERM": true, "ALERT": true, "WEBALERT": true}
