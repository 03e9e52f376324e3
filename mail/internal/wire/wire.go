// Package wire is what every connection to a mail server has in common: reaching
// it, protecting it, and making a server's words fit for a person.
//
// It knows no protocol; only the wires below package mail use it.
package wire

import (
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

// The ways to protect a connection: TLS from the first byte, an upgrade before
// login, nothing. Plaintext is refused for any host that is not this machine by
// its very form.
const (
	TLS       Security = "tls"
	StartTLS  Security = "starttls"
	Plaintext Security = "none"
)

// Stage is what was being done when connecting failed.
type Stage string

// The stages of connecting.
const (
	StageConnect Stage = "connect"
	StageTLS     Stage = "tls"
)

// Target is a server to connect to.
type Target struct {
	Host       string
	Port       uint16
	Security   Security
	RootCAs    *x509.CertPool // nil means the system's
	ServerName string         // name the certificate must carry; empty means Host
	Gate       *Gate          // bounds the connections there are; nil means none
}

var (
	errPlaintext = errors.New("a connection without TLS is allowed to this machine only")
	errElsewhere = errors.New("the address reached is not this machine's own")
	errSecurity  = errors.New("connection security is not known")
)

// Check reports a target that must not be connected to: one without TLS that is
// not this machine, or one whose security is not known.
func (t *Target) Check() error {
	switch t.Security {
	case TLS, StartTLS:
		return nil
	case Plaintext:
		if Loopback(t.Host) {
			return nil
		}
		return errPlaintext
	}
	return errSecurity
}

// Connect reaches the server, with TLS on where the target says so from the first
// byte. It also returns what an upgrade is to use, nil for a plaintext target. The
// context bounds it; TLS is version 1.2 or newer and always verified.
func Connect(ctx context.Context, t Target) (net.Conn, *tls.Config, Stage, error) {
	if err := t.Check(); err != nil {
		return nil, nil, StageConnect, err
	}
	leave, err := t.Gate.enter(ctx)
	if err != nil {
		return nil, nil, StageConnect, err
	}
	dialer := net.Dialer{}
	raw, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(t.Host, strconv.Itoa(int(t.Port))))
	if err != nil {
		leave()
		return nil, nil, StageConnect, err
	}
	if t.Gate != nil {
		raw = &gated{raw, leave}
	}
	if t.Security == Plaintext {
		if a, ok := raw.RemoteAddr().(*net.TCPAddr); !ok || !a.IP.IsLoopback() {
			_ = raw.Close()
			return nil, nil, StageConnect, errElsewhere
		}
		return raw, nil, "", nil
	}
	conf := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: t.RootCAs, ServerName: t.ServerName}
	if conf.ServerName == "" {
		conf.ServerName = t.Host
	}
	if t.Security == StartTLS {
		return raw, conf, "", nil
	}
	conn := tls.Client(raw, conf)
	if err := Handshake(ctx, conn); err != nil {
		_ = raw.Close()
		return nil, nil, StageTLS, err
	}
	return conn, conf, "", nil
}

// Handshake bounds the handshake by the context alone.
func Handshake(ctx context.Context, conn *tls.Conn) error {
	_ = conn.NetConn().SetDeadline(time.Time{})
	if err := conn.HandshakeContext(ctx); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return err
	}
	return nil
}

// Loopback judges by the form of the host, so that nothing a resolver says can
// permit plaintext. Connect checks the address it reached besides.
func Loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}

// BadCertificate reports whether err means that a server's certificate was not
// accepted.
func BadCertificate(err error) bool {
	var (
		verify   *tls.CertificateVerificationError
		unknown  x509.UnknownAuthorityError
		hostname x509.HostnameError
		invalid  x509.CertificateInvalidError
	)
	return errors.As(err, &verify) || errors.As(err, &unknown) || errors.As(err, &hostname) || errors.As(err, &invalid)
}

// MaxServerText bounds what Clean keeps, in characters.
const MaxServerText = 256

// Clean makes a server's words fit for a person: one line without what nobody sees, at
// most MaxServerText characters.
func Clean(s string) string {
	s, _ = plain.Head(plain.Line(s), MaxServerText)
	return s
}
