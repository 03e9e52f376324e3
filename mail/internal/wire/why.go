package wire

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"syscall"
	"time"

	"github.com/postern-mail/postern/internal/plain"
)

// ErrNoStartTLS is the end of a connection to a server that does not offer STARTTLS.
var ErrNoStartTLS = Cause(KindProtocol, "server does not offer STARTTLS, and logging in without TLS is refused")

// What Windows answers in place of three errors of other systems.
const (
	wsaRefused syscall.Errno = 10061
	wsaNetwork syscall.Errno = 10051
	wsaHost    syscall.Errno = 10065
)

// Why says why the target could not be reached or trusted, in words that go on a sentence
// about that: empty where it is not known, or the connection had begun. They repeat nothing
// that a server or a resolver chose but the dates of a certificate.
func (e *Error) Why(t Target) string {
	where := fmt.Sprintf("%s, port %d", plain.Line(t.Host), t.Port)
	var (
		name   *net.DNSError
		record tls.RecordHeaderError
	)
	switch {
	case e.Stage == StageConnect && errors.As(e.Err, &name) && name.IsNotFound:
		return fmt.Sprintf(": there is no host named %s", plain.Line(t.Host))
	case e.Stage == StageConnect && errors.As(e.Err, &name):
		return fmt.Sprintf(": the name %s could not be looked up; this machine may have no network", plain.Line(t.Host))
	case e.Stage == StageConnect && isOne(e.Err, syscall.ECONNREFUSED, wsaRefused):
		return ": nothing answers at " + where
	case e.Stage == StageConnect && isOne(e.Err, syscall.ENETUNREACH, syscall.EHOSTUNREACH, wsaNetwork, wsaHost):
		return ": there is no way from this machine to " + where
	case e.Stage == StageConnect && e.Kind == KindTimeout:
		return ": no connection came about to " + where + "; the port may be wrong, or a firewall in between"
	case e.Stage == StageGreeting && e.Kind == KindTimeout && t.Security == StartTLS:
		return ": it said nothing at " + where + ", as a server does that wants TLS from the beginning"
	case (e.Stage == StageGreeting || e.Stage == StageTLS) && e.Kind == KindTimeout:
		return ": it said nothing at " + where
	case e.Stage == StageTLS && errors.As(e.Err, &record):
		return ": it speaks no TLS at " + where + ", and may want STARTTLS"
	case e.Stage == StageTLS && errors.Is(e.Err, ErrNoStartTLS):
		return ": it offers no STARTTLS at " + where
	case e.Stage == StageTLS && e.Kind == KindRefused:
		return ": it does not begin TLS at " + where
	case e.Stage == StageTLS && e.Kind == KindClosed:
		return " to " + where + ", when TLS was to begin"
	case e.Stage == StageGreeting && e.Kind == KindClosed && e.Code == "" && e.Text == "":
		return " to " + where + ", before it said anything"
	case e.Kind == KindCertificate:
		return whyNotTrusted(e.Err, t)
	}
	return ""
}

func isOne(err error, of ...syscall.Errno) bool {
	return slices.ContainsFunc(of, func(n syscall.Errno) bool { return errors.Is(err, n) })
}

// whyNotTrusted is Why of a certificate.
func whyNotTrusted(err error, t Target) string {
	var (
		verify   *tls.CertificateVerificationError
		unknown  x509.UnknownAuthorityError
		hostname x509.HostnameError
		invalid  x509.CertificateInvalidError
	)
	switch {
	case errors.As(err, &hostname):
		return ": it is for another name than " + plain.Line(t.WithDefaults().ServerName)
	case errors.As(err, &invalid) && Expired(err) && time.Now().Before(invalid.Cert.NotBefore):
		return ": by this machine's clock it is valid only from " + day(invalid.Cert.NotBefore)
	case errors.As(err, &invalid) && Expired(err):
		return ": by this machine's clock it expired on " + day(invalid.Cert.NotAfter)
	case errors.As(err, &unknown):
		if errors.As(err, &verify) && len(verify.UnverifiedCertificates) > 0 {
			unknown.Cert = verify.UnverifiedCertificates[0]
		}
		if c := unknown.Cert; c != nil && bytes.Equal(c.RawIssuer, c.RawSubject) {
			return ": the server issued it to itself, and nobody vouches for it"
		}
		return ": it was issued by an authority that this machine does not trust"
	}
	return ""
}

// Expired reports whether a certificate was not accepted because of the time.
func Expired(err error) bool {
	var invalid x509.CertificateInvalidError
	return errors.As(err, &invalid) && invalid.Reason == x509.Expired && invalid.Cert != nil
}

func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }
