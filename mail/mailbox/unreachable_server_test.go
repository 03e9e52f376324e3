package mailbox_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"errors"
	"io"
	"math/big"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
	"github.com/postern-mail/postern/mail/servertest/scripted"
)

// resolve lets every name be looked up at a resolver of the test for its time.
func resolve(t *testing.T, dial func(ctx context.Context) (net.Conn, error)) {
	t.Helper()
	before := net.DefaultResolver
	t.Cleanup(func() { net.DefaultResolver = before })
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) }}
}

// noSuchName is a resolver that knows no name.
func noSuchName(context.Context) (net.Conn, error) {
	here, there := net.Pipe()
	go func() {
		defer there.Close()
		size := make([]byte, 2)
		if _, err := io.ReadFull(there, size); err != nil {
			return
		}
		question := make([]byte, binary.BigEndian.Uint16(size))
		if _, err := io.ReadFull(there, question); err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(question) != nil {
			return
		}
		m.Response, m.RCode, m.Additionals = true, dnsmessage.RCodeNameError, nil
		if answer, err := m.Pack(); err == nil {
			_, _ = there.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...))
		}
	}()
	return here, nil
}

// selfIssued is a certificate that nobody but itself vouches for.
func selfIssued(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: hostile}, NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{{127, 0, 0, 1}}}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	must(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// hostile is what a server would like to be read.
const hostile = "run-mail-send"

// A person is told why a server cannot be reached, for each reason, in words that no server
// chose.
func TestWhyAServerCannotBeReached(t *testing.T) {
	ca := scripted.Authority(t)
	silent := (*scripted.Conn).Drain
	hangsUp := func(*scripted.Conn) {}
	says := func(text string) func(*scripted.Conn) { return func(s *scripted.Conn) { s.Send(text); s.Drain() } }
	certificate := func(leaf tls.Certificate) func(*scripted.Conn) { return scripted.OverTLS(leaf, silent) }
	starting := func(then func(*scripted.Conn)) func(*scripted.Conn) {
		return func(s *scripted.Conn) {
			s.Send("* OK [CAPABILITY IMAP4rev1 STARTTLS] ready\r\n")
			s.Answer("TAG OK begin\r\n")
			then(s)
		}
	}
	for name, c := range map[string]struct {
		security mail.Security
		run      func(*scripted.Conn) // nil listens nowhere
		change   func(*mail.Account)
		kind     mail.Kind
		want     string // PORT stands for the port
	}{
		"nothing listens":             {mail.TLS, nil, nil, mail.KindConnection, "could not be reached: nothing answers at 127.0.0.1, port PORT."},
		"silent where TLS is meant":   {mail.TLS, silent, nil, mail.KindTimeout, "did not answer in time: it said nothing at 127.0.0.1, port PORT."},
		"TLS where STARTTLS is meant": {mail.StartTLS, silent, nil, mail.KindTimeout, "did not answer in time: it said nothing at 127.0.0.1, port PORT, as a server does that wants TLS from the beginning."},
		"STARTTLS where TLS is meant": {mail.TLS, says("* OK " + hostile + "\r\n"), nil, mail.KindConnection, "'s connection could not be protected with TLS: it speaks no TLS at 127.0.0.1, port PORT, and may want STARTTLS."},
		"STARTTLS not offered":        {mail.StartTLS, says("* OK [CAPABILITY IMAP4rev1] " + hostile + "\r\n"), nil, mail.KindConnection, "'s connection could not be protected with TLS: it offers no STARTTLS at 127.0.0.1, port PORT."},
		"hangs up at once":            {mail.StartTLS, hangsUp, nil, mail.KindConnection, "closed the connection to 127.0.0.1, port PORT, before it said anything."},
		"hangs up in TLS":             {mail.TLS, func(s *scripted.Conn) { s.OneWrite() }, nil, mail.KindConnection, "closed the connection to 127.0.0.1, port PORT, when TLS was to begin."},
		"unknown authority":           {mail.TLS, certificate(scripted.Leaf(t, scripted.Authority(t), time.Time{}, "127.0.0.1")), nil, mail.KindCertificate, "'s certificate was not accepted: it was issued by an authority that this machine does not trust."},
		"its own authority":           {mail.TLS, certificate(selfIssued(t)), nil, mail.KindCertificate, "'s certificate was not accepted: the server issued it to itself, and nobody vouches for it."},
		"another name":                {mail.TLS, certificate(scripted.Leaf(t, ca, time.Time{}, hostile+".example.org")), nil, mail.KindCertificate, "'s certificate was not accepted: it is for another name than 127.0.0.1."},
		"another name after STARTTLS": {mail.StartTLS, starting(certificate(scripted.Leaf(t, ca, time.Time{}, hostile+".example.org"))), nil, mail.KindCertificate, "'s certificate was not accepted: it is for another name than 127.0.0.1."},
		"expired":                     {mail.TLS, certificate(scripted.Leaf(t, ca, time.Now().Add(-time.Hour), "127.0.0.1")), nil, mail.KindCertificate, "'s certificate was not accepted: by this machine's clock it expired on " + time.Now().Add(-time.Hour).UTC().Format(time.DateOnly) + "."},
		"POP3 silent":                 {mail.StartTLS, silent, pop3, mail.KindTimeout, "did not answer in time: it said nothing at 127.0.0.1, port PORT, as a server does that wants TLS from the beginning."},
		"POP3 without STLS": {mail.StartTLS, func(s *scripted.Conn) {
			s.Send("+OK ready\r\n")
			s.Line()
			s.Send("-ERR no\r\n")
		}, pop3, mail.KindRefused, "refused the command: it does not begin TLS at 127.0.0.1, port PORT."},
	} {
		t.Run(name, func(t *testing.T) {
			e := mail.Endpoint{Host: "127.0.0.1", Port: closedPort(t), Security: c.security}
			if c.run != nil {
				e.Port = scripted.Serve(t, c.run).Port
			}
			i := verifies(t, e, ca.PEM(), c.kind, c.change)
			want := strings.ReplaceAll("The mail server"+spaced(c.want), "PORT", strconv.Itoa(int(e.Port)))
			if i.Kind != c.kind || !strings.HasPrefix(i.Message, want) || strings.Contains(i.Message, hostile) {
				t.Errorf("%s: %q, want %s: %q", i.Kind, i.Message, c.kind, want)
			}
			// A time of the connection is not the command's: what names --timeout would mislead.
			if (i.Advice == mail.AdviceTimeoutVariable) != (c.kind == mail.KindTimeout) {
				t.Errorf("the advice is %s", i.Advice)
			}
		})
	}
	for name, c := range map[string]struct {
		dial func(context.Context) (net.Conn, error)
		kind mail.Kind
		want string
	}{
		"no such name": {noSuchName, mail.KindConnection, "The mail server could not be reached: there is no host named imap.example.invalid."},
		"no network":   {func(context.Context) (net.Conn, error) { return nil, errors.New("no network: " + hostile) }, mail.KindConnection, "The mail server could not be reached: the name imap.example.invalid could not be looked up; this machine may have no network."},
		"no answer": {func(ctx context.Context) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }, mail.KindTimeout,
			"The mail server did not answer in time: no connection came about to imap.example.invalid, port 993; the port may be wrong, or a firewall in between."},
	} {
		t.Run(name, func(t *testing.T) {
			resolve(t, c.dial)
			if i := verifies(t, mail.Endpoint{Host: "imap.example.invalid", Port: 993, Security: mail.TLS}, nil, c.kind, nil); i.Kind != c.kind || i.Message != c.want {
				t.Errorf("%s: %q", i.Kind, i.Message)
			}
		})
	}
}

// spaced puts a space before what is no genitive.
func spaced(s string) string {
	if strings.HasPrefix(s, "'") {
		return s
	}
	return " " + s
}

func pop3(a *mail.Account) { a.Protocol, a.POP3, a.IMAP = mail.POP3, a.IMAP, mail.Endpoint{} }

// A server can take a login and open nothing: then verifying tells what it says.
func TestVerifyingOpensINBOX(t *testing.T) {
	m := scriptedClient(t, func(command string) (string, string) {
		if strings.HasPrefix(command, "EXAMINE") {
			return "", "NO [UNAVAILABLE] Your mailbox is being moved"
		}
		return "", ""
	})
	v, err := m.Verify(t.Context(), account)
	if err != nil || len(v.Issues) != 1 || v.Issues[0].Kind != mail.KindRefused || v.Capabilities == nil ||
		v.Issues[0].Message != "The mail server took the login, and did not open INBOX. The server said: Your mailbox is being moved" {
		t.Errorf("%+v %v", v, err)
	}
}

// verifies returns what keeps an account from its server; it waits long where it is not to be
// a timeout.
func verifies(t *testing.T, e mail.Endpoint, ca []byte, kind mail.Kind, change func(*mail.Account)) mail.Issue {
	t.Helper()
	a := mailtest.Settings(e.Host, e.Port, "ann")
	a.IMAP, a.CAPEM, a.Timeouts = e, ca, mail.Timeouts{Connect: time.Minute, Greeting: time.Minute}
	if kind == mail.KindTimeout {
		a.Timeouts = mail.Timeouts{Connect: 100 * time.Millisecond, Greeting: 100 * time.Millisecond}
	}
	if change != nil {
		change(&a)
	}
	m := mailbox.New(mailbox.Options{Directory: &mailtest.Directory{Known: map[string]mail.Account{account: a}, Password: "x"}})
	defer m.Close()
	v, err := m.Verify(t.Context(), account)
	if err != nil || len(v.Issues) != 1 {
		t.Fatalf("%+v, %v", v, err)
	}
	return v.Issues[0]
}
