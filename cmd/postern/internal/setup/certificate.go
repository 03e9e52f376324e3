package setup

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/textproto"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/mail"
)

// pin shows the certificate of a server on this machine, such as Proton Mail Bridge, and asks
// whether to trust it and no other. The error is errBack when nothing came of it.
func (w *wizard) pin(ctx context.Context, service string) error {
	e := w.server(service)
	cert, err := certificateOf(ctx, service, e)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		w.ask.Say("The certificate could not be read: " + plain.Line(err.Error()) + ".")
		return errBack
	}
	w.ask.Say("The certificate of " + e.Address() + "\n" + certificateInWords(cert))
	only := x509.NewCertPool()
	only.AddCert(cert)
	if _, err := cert.Verify(x509.VerifyOptions{Roots: only, DNSName: e.Host}); err != nil {
		w.ask.Say("It cannot be trusted for " + e.Host + ": " + plain.Line(err.Error()) + ".")
		return errBack
	}
	yes, err := w.ask.Confirm(ctx, "Trust exactly this certificate?", false)
	if err == nil && !yes {
		err = errBack
	}
	if err != nil {
		return err
	}
	return w.trust(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}))
}

// trust adds a certificate to those of the account, in a file that lasts as long as the set-up:
// the account keeps its text.
func (w *wizard) trust(certificate []byte) error {
	if w.draft.caFile != "" {
		before, err := os.ReadFile(w.draft.caFile)
		if err != nil {
			return err
		}
		certificate = slices.Concat(before, []byte("\n"), certificate)
	}
	f, err := os.CreateTemp(w.Temporary, "postern-*.pem")
	if err != nil {
		return err
	}
	w.passing = append(w.passing, f.Name())
	w.draft.caFile = f.Name()
	_, err = f.Write(certificate)
	return errors.Join(err, f.Close())
}

// certificateInWords tells a certificate by what a person can compare.
func certificateInWords(c *x509.Certificate) string {
	names := slices.Clone(c.DNSNames)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	sum := sha256.Sum256(c.Raw)
	hex := strings.ReplaceAll(fmt.Sprintf("% X", sum[:]), " ", ":")
	return fmt.Sprintf("  for      %s\n  owner    %s\n  issuer   %s\n  valid    %s to %s\n  SHA-256  %s\n           %s", plain.Line(strings.Join(names, ", ")), plain.Line(c.Subject.String()), plain.Line(c.Issuer.String()),
		c.NotBefore.Format(time.DateOnly), c.NotAfter.Format(time.DateOnly), hex[:48], hex[48:])
}

// certificateOf returns the certificate that a server on this machine shows, which nobody has
// verified yet. It sends the server nothing but the wish for TLS.
func certificateOf(ctx context.Context, service string, e mail.Endpoint) (*x509.Certificate, error) {
	ctx, cancel := context.WithTimeout(ctx, unreachedTime)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", e.Address())
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if a, ok := conn.RemoteAddr().(*net.TCPAddr); !ok || !a.IP.IsLoopback() {
		return nil, errors.New("the server is not on this machine")
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if e.Security == mail.StartTLS {
		if err := startTLS(textproto.NewConn(conn), service); err != nil {
			return nil, err
		}
	}
	secured := tls.Client(conn, &tls.Config{MinVersion: tls.VersionTLS12, ServerName: e.Host, InsecureSkipVerify: true}) // a person judges it
	if err := secured.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	return secured.ConnectionState().PeerCertificates[0], nil
}

// startTLS asks for TLS in the protocol of a service, up to the answer.
func startTLS(c *textproto.Conn, service string) error {
	if service == "smtp" {
		for _, step := range []struct {
			line string
			code int
		}{{"", 220}, {"EHLO localhost", 250}, {"STARTTLS", 220}} {
			if step.line != "" {
				if err := c.PrintfLine("%s", step.line); err != nil {
					return err
				}
			}
			if _, _, err := c.ReadResponse(step.code); err != nil {
				return err
			}
		}
		return nil
	}
	line, tag, yes := "a STARTTLS", "a ", "a OK"
	if service == string(mail.POP3) {
		line, tag, yes = "STLS", "", "+OK"
	}
	if _, err := c.ReadLine(); err != nil { // the greeting
		return err
	}
	if err := c.PrintfLine("%s", line); err != nil {
		return err
	}
	for {
		answer, err := c.ReadLine()
		switch {
		case err != nil:
			return err
		case strings.HasPrefix(answer, yes):
			return nil
		case strings.HasPrefix(answer, tag):
			return errors.New("the server refuses TLS: " + answer)
		}
	}
}
