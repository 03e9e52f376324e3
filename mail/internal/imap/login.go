package imap

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/emersion/go-sasl"

	"github.com/postern-mail/postern/mail/internal/wire"
)

// maxCapabilities bounds what is kept of a server's list.
const maxCapabilities = 256

// dialog speaks the lines before a session: greeting, STARTTLS and login. These
// are plain lines without nesting, and doing them here keeps the server's words
// for the error, refuses injected plaintext, and lets the library begin on a
// connection that is logged in.
type dialog struct {
	guard *guard
	br    *bufio.Reader
	tag   int
	caps  []string // nil until the server said them
	told  bool     // caps were said since the login began
}

// line is one line of the server, split as far as needed.
type line struct {
	tag  string   // "*", "+" or a tag
	typ  string   // upper case
	code string   // response code, upper case
	caps []string // nil when the line lists no capabilities
	text string
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
		d.caps, d.told = l.caps, true
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
	l.text = wire.Clean(rest)
	return l
}

// capabilities are those of a list that have the form of one, upper case and
// sorted.
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

func (d *dialog) send(command string) (tag string, err error) {
	d.tag++
	tag = "L" + strconv.Itoa(d.tag)
	_, err = d.guard.Write([]byte(tag + " " + command + "\r\n"))
	return tag, err
}

// await reads up to the answer to tag, or to a continuation when the command
// expects one.
func (d *dialog) await(tag string, continuation bool) (line, error) {
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
		case l.tag == "+" && continuation:
			return l, nil
		case l.tag == "*" && l.typ == "BYE":
			return l, &wire.Error{Kind: wire.KindClosed, Code: wire.Clean(l.code), Text: l.text}
		case l.tag == "*":
		default:
			return l, fmt.Errorf("%w: answer to nothing that was asked", errNotIMAP)
		}
	}
}

func (d *dialog) capability() error {
	if d.caps != nil {
		return nil
	}
	tag, err := d.send("CAPABILITY")
	if err != nil {
		return err
	}
	l, err := d.await(tag, false)
	if err == nil && (l.typ != "OK" || d.caps == nil) {
		err = fmt.Errorf("%w: no capabilities", errNotIMAP)
	}
	return err
}

func (d *dialog) greeting() error {
	l, err := d.read()
	switch {
	case err != nil:
		return err
	case l.tag == "*" && l.typ == "OK":
		return nil
	case l.tag == "*" && l.typ == "BYE":
		return &wire.Error{Kind: wire.KindClosed, Code: wire.Clean(l.code), Text: l.text}
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
		return &wire.Error{Kind: wire.KindProtocol, Permanent: true, Err: errors.New("server does not offer STARTTLS, and logging in without TLS is refused")}
	}
	tag, err := d.send("STARTTLS")
	if err != nil {
		return err
	}
	l, err := d.await(tag, false)
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
	d.caps = nil // what was said in the clear does not count
	return nil
}

// login authenticates once. A refusal is never tried again with another
// mechanism: it would count as a second wrong password. With hold set, and where
// the server allows it, nothing is sent, and what is returned has to be sent.
func (d *dialog) login(ctx context.Context, cfg *Config, hold bool) (*heldLogin, error) {
	if err := d.capability(); err != nil {
		return nil, err
	}
	d.told = false
	c, err := cfg.Login.Credential(ctx)
	if err != nil {
		return nil, err
	}
	// LOGIN the command takes one round trip, LOGIN the mechanism three.
	command := !d.has("LOGINDISABLED")
	client, err := wire.SASL(func(mechanism string) bool {
		return d.has("AUTH="+mechanism) && !(command && mechanism == sasl.Login)
	}, cfg.Login.Username, c)
	var held *heldLogin
	switch {
	case err == nil:
		held, err = d.authenticate(client, hold)
	case errors.Is(err, wire.ErrNoMechanism) && c.Password != "" && command:
		err = d.plainLogin(cfg.Login.Username, c.Password)
	default:
		return nil, &wire.Error{Kind: wire.KindAuth, Permanent: true, Err: err}
	}
	if held != nil {
		lasting := context.WithoutCancel(ctx) // ctx is for connecting, and may have ended by then
		held.again = func() bool { return cfg.Login.Again(lasting, c) }
		return held, nil
	}
	return nil, askAgain(err, func() bool { return cfg.Login.Again(ctx, c) })
}

// askAgain notes on the refusal of a login whether it is worth another try.
func askAgain(err error, again func() bool) error {
	var e *wire.Error
	if errors.As(err, &e) && e.Kind == wire.KindAuth {
		e.Again = again()
	}
	return err
}

// oneMessage are the mechanisms of which the client's first message is all there
// is when it is accepted.
var oneMessage = map[string]bool{sasl.Plain: true, wire.XOAuth2: true, sasl.OAuthBearer: true}

// authenticate runs one SASL exchange (RFC 9051 section 6.2.2), or returns it when
// it is to be held and fits in one line.
func (d *dialog) authenticate(client sasl.Client, hold bool) (*heldLogin, error) {
	mech, response, err := client.Start()
	if err != nil {
		return nil, err
	}
	command, pending := "AUTHENTICATE "+mech, response != nil
	if pending && d.has("SASL-IR") {
		ir := base64.StdEncoding.EncodeToString(response)
		if ir == "" {
			ir = "="
		}
		command, pending = command+" "+ir, false
		if hold && oneMessage[mech] {
			d.tag++
			tag := "L" + strconv.Itoa(d.tag)
			return &heldLogin{tag: tag, line: []byte(tag + " " + command + "\r\n"), client: client, done: make(chan struct{})}, nil
		}
	}
	return nil, d.exchange(client, command, response, pending)
}

// nextSASL is the answer to a challenge; * gives up, and the server refuses.
func nextSASL(client sasl.Client, text string) (string, error) {
	challenge, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil {
		return "", fmt.Errorf("%w: challenge is not base64", errNotIMAP)
	}
	next, err := client.Next(challenge)
	if err != nil {
		return "*", nil
	}
	return base64.StdEncoding.EncodeToString(next), nil
}

// maxChallenges bounds what a server may ask in one login.
const maxChallenges = 16

func (d *dialog) exchange(client sasl.Client, command string, response []byte, pending bool) error {
	tag, err := d.send(command)
	if err != nil {
		return err
	}
	for range maxChallenges {
		l, err := d.await(tag, true)
		if err != nil {
			return err
		}
		if l.tag == tag {
			return verdict(l)
		}
		var answer string
		if pending {
			answer, pending = base64.StdEncoding.EncodeToString(response), false
		} else if answer, err = nextSASL(client, l.text); err != nil {
			return err
		}
		if _, err := d.guard.Write([]byte(answer + "\r\n")); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: endless login", errNotIMAP)
}

// plainLogin uses LOGIN (RFC 9051 section 6.2.3), with literals for what a quoted
// string cannot hold.
func (d *dialog) plainLogin(username, password string) error {
	d.tag++
	tag := "L" + strconv.Itoa(d.tag)
	var b strings.Builder
	b.WriteString(tag + " LOGIN")
	for _, s := range []string{username, password} {
		if !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) {
			b.WriteString(" " + quote(s))
			continue
		}
		b.WriteString(" {" + strconv.Itoa(len(s)) + "}\r\n")
		if _, err := d.guard.Write([]byte(b.String())); err != nil {
			return err
		}
		b.Reset()
		l, err := d.await(tag, true)
		if err != nil {
			return err
		}
		if l.tag == tag {
			return verdict(l)
		}
		b.WriteString(s)
	}
	b.WriteString("\r\n")
	if _, err := d.guard.Write([]byte(b.String())); err != nil {
		return err
	}
	l, err := d.await(tag, false)
	if err != nil {
		return err
	}
	return verdict(l)
}

// verdict is what a login's tagged answer means. The server's words are left out:
// it has just been sent a password, and can say it again in any form.
func verdict(l line) error {
	if l.typ == "OK" {
		return nil
	}
	code := wire.Clean(l.code)
	if temporary[code] {
		return &wire.Error{Kind: wire.KindRefused, Code: code}
	}
	if !authCodes[code] {
		code = "" // words as good as any other
	}
	return &wire.Error{Kind: wire.KindAuth, Code: code, Permanent: true}
}

// authCodes are the response codes that tell why a login was refused (RFC 9051
// section 7.1).
var authCodes = map[string]bool{"AUTHENTICATIONFAILED": true, "AUTHORIZATIONFAILED": true, "EXPIRED": true, "PRIVACYREQUIRED": true,
	"CONTACTADMIN": true, "NOPERM": true, "ALERT": true, "WEBALERT": true}
