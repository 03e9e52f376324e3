// Package wire is the common part of all connections to mail servers: connecting, TLS, and
// making a server's words fit for a person.
//
// It knows no protocol; only the wires below package mail use it.
package wire

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/postern-mail/postern/internal/plain"
)

// Security is how a connection is protected.
type Security string

// The ways to protect a connection: TLS from the first byte, an upgrade before login, or
// plaintext, which is refused for any host that is not loopback (see Loopback).
const (
	TLS       Security = "tls"
	StartTLS  Security = "starttls"
	Plaintext Security = "none"
)

// The defaults of Target.
const (
	DefaultConnect  = 30 * time.Second
	DefaultGreeting = 15 * time.Second
)

// Target is a server to connect to, and how to log in to it. Zero fields mean the
// defaults.
type Target struct {
	Host       string
	Port       uint16
	Security   Security
	RootCAs    *x509.CertPool // nil means the system's
	ServerName string         // name the certificate must carry; empty means Host
	Gate       *Gate          // limits the open connections; nil means no limit
	Login      Login

	// MayBegin is asked before a connection and before each command; its error ends the
	// connection. A message that is leaving leaves whole. nil allows everything.
	MayBegin func(ctx context.Context) error

	Connect  time.Duration // TCP, and each handshake of TLS; 0 means DefaultConnect
	Greeting time.Duration // the server's first words; 0 means DefaultGreeting
}

// WithDefaults returns the target with its zero fields set.
func (t Target) WithDefaults() Target {
	t.Connect = cmp.Or(t.Connect, DefaultConnect)
	t.Greeting = cmp.Or(t.Greeting, DefaultGreeting)
	t.ServerName = cmp.Or(t.ServerName, t.Host)
	return t
}

var (
	errNoServer  = errors.New("server host or port is missing")
	errPlaintext = errors.New("a connection without TLS is allowed to this machine only")
	errElsewhere = errors.New("the address reached is not this machine's own")
	errSecurity  = errors.New("connection security is not known")
)

// check refuses a target that must not be connected to: one without TLS that is not
// loopback, one of unknown Security, or one with an invalid Login.
func (t *Target) check() error {
	switch {
	case t.Host == "" || t.Port == 0:
		return errNoServer
	case t.Security != TLS && t.Security != StartTLS && t.Security != Plaintext:
		return errSecurity
	case t.Security == Plaintext && !Loopback(t.Host):
		return errPlaintext
	}
	return t.Login.Check()
}

// Begin asks MayBegin.
func (t *Target) Begin(ctx context.Context) error {
	if t.MayBegin == nil {
		return nil
	}
	return t.MayBegin(ctx)
}

// leastWait is how long a connection has to be waited for until its absence means something.
const leastWait = time.Second

// Connect reaches the server, with TLS on where the target says so from the first
// byte: version 1.2 or newer, and always verified. Both the context and the target's
// time bound it. The error is an *Error.
func Connect(ctx context.Context, t Target) (net.Conn, error) {
	t = t.WithDefaults()
	if err := t.check(); err != nil {
		return nil, &Error{Stage: StageConnect, Kind: KindInvalid, Permanent: true, OutOfStep: true, Err: err}
	}
	began, command := time.Now(), ctx
	ctx, cancel := context.WithTimeout(ctx, t.Connect)
	defer cancel()
	leave, err := t.Gate.enter(ctx)
	if err == nil {
		if err = t.Begin(ctx); err != nil {
			leave()
		}
	}
	if err != nil {
		return nil, unreached(ctx, StageConnect, err)
	}
	raw, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(t.Host, strconv.Itoa(int(t.Port))))
	if err != nil {
		leave()
		if command.Err() != nil && time.Since(began) < leastWait { // too short to say anything of the network
			return nil, &Error{Stage: "", Kind: KindOf(command.Err()), OutOfStep: true, Err: command.Err()}
		}
		return nil, unreached(ctx, StageConnect, err)
	}
	if t.Gate != nil {
		raw = &gated{raw, leave}
	}
	if a, ok := raw.RemoteAddr().(*net.TCPAddr); t.Security == Plaintext && (!ok || !a.IP.IsLoopback()) {
		_ = raw.Close()
		return nil, unreached(ctx, StageConnect, errElsewhere)
	}
	if t.Security != TLS {
		return raw, nil
	}
	conn, err := Protect(ctx, t, raw)
	if err != nil {
		_ = raw.Close()
		return nil, err
	}
	return conn, nil
}

// Protect puts TLS over a connection, as Connect does. It leaves the connection open
// when it fails. The error is an *Error.
func Protect(ctx context.Context, t Target, raw net.Conn) (*tls.Conn, error) {
	t = t.WithDefaults()
	ctx, cancel := context.WithTimeout(ctx, t.Connect)
	defer cancel()
	_ = raw.SetDeadline(time.Time{})
	conn := tls.Client(raw, &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: t.RootCAs, ServerName: t.ServerName})
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, unreached(ctx, StageTLS, err)
	}
	return conn, nil
}

// unreached is the failure to connect. If the context has ended, that is the reason.
func unreached(ctx context.Context, stage string, err error) *Error {
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	e := Broken(stage, err)
	var op *net.OpError
	switch {
	case e.Kind == KindCertificate:
		e.Permanent = true
	case stage == StageTLS && e.Kind == KindConnection && (!errors.As(err, &op) || op.Op == "remote error" || op.Op == "local error"):
		e.Kind = KindProtocol // about the server's identity: no connection was lost
	}
	return e
}

// Loopback judges by the form of the host, so that a resolver cannot permit plaintext.
// Connect also checks the address it reached.
func Loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}

// MaxServerText bounds what Clean keeps, in characters.
const MaxServerText = 256

// Clean makes a server's words fit for a person: one line without invisible characters, at
// most MaxServerText characters.
func Clean(s string) string {
	s, _ = plain.Head(plain.Line(s), MaxServerText)
	return s
}
