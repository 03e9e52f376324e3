package setup

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail"
)

// selfSigned is a certificate such as a bridge makes for itself.
func selfSigned(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "127.0.0.1", Organization: []string{"A bridge\x1b[31m"}},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}
}

// Each protocol is asked for TLS in its own words, and nothing else is sent before.
func TestTheCertificateBehindStartTLS(t *testing.T) {
	for service, c := range map[string]struct {
		says  []string // the greeting, then an answer to each line
		asks  []string
		error string
	}{
		"imap":         {[]string{"* OK ready", "* CAPABILITY IMAP4rev1\r\na OK begin"}, []string{"a STARTTLS"}, ""},
		"pop3":         {[]string{"+OK ready", "+OK begin"}, []string{"STLS"}, ""},
		"smtp":         {[]string{"220-one\r\n220 two", "250-bridge\r\n250 STARTTLS", "220 begin"}, []string{"EHLO localhost", "STARTTLS"}, ""},
		"imap refuses": {[]string{"* OK ready", "a BAD no"}, []string{"a STARTTLS"}, "refuses TLS: a BAD no"},
		"pop3 refuses": {[]string{"+OK ready", "-ERR no"}, []string{"STLS"}, "refuses TLS: -ERR no"},
		"smtp refuses": {[]string{"220 ready", "250 bridge", "502 no"}, []string{"EHLO localhost", "STARTTLS"}, `502 "no"`},
	} {
		t.Run(service, func(t *testing.T) {
			cert := selfSigned(t)
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			asked := make(chan []string, 1)
			go func() {
				var lines []string
				defer func() { asked <- lines }()
				conn, err := l.Accept()
				if err != nil {
					return
				}
				defer conn.Close()
				in := bufio.NewReader(conn)
				for i, answer := range c.says {
					if i > 0 {
						line, err := in.ReadString('\n')
						if err != nil {
							return
						}
						lines = append(lines, strings.TrimRight(line, "\r\n"))
					}
					if _, err := conn.Write([]byte(answer + "\r\n")); err != nil {
						return
					}
				}
				if c.error == "" {
					_ = tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{cert}}).Handshake()
				}
			}()
			kind, _, _ := strings.Cut(service, " ")
			got, err := certificateOf(t.Context(), kind, mail.Endpoint{Host: "127.0.0.1", Port: uint16(l.Addr().(*net.TCPAddr).Port), Security: mail.StartTLS})
			if lines := <-asked; strings.Join(lines, "|") != strings.Join(c.asks, "|") {
				t.Errorf("it asked %q", lines)
			}
			switch {
			case c.error != "":
				if err == nil || !strings.Contains(err.Error(), c.error) {
					t.Errorf("%v", err)
				}
			case err != nil || string(got.Raw) != string(cert.Certificate[0]):
				t.Errorf("%v", err)
			case strings.Contains(certificateInWords(got), "\x1b") || !strings.Contains(certificateInWords(got), "for      127.0.0.1\n"):
				t.Errorf("%q", certificateInWords(got))
			}
		})
	}
}

// A host is read as people write it.
func TestHostAndPort(t *testing.T) {
	for _, c := range testmain.Table[struct {
		Typed, Host string
		Port        int
	}](t, "testdata/cases/hosts.txt") {
		host, port, err := hostAndPort(c.Typed)
		if c.Host == "" && err == nil || c.Host != "" && (err != nil || host != c.Host || int(port) != c.Port) {
			t.Errorf("%q: %q %d %v", c.Typed, host, port, err)
		}
	}
}

// Lines are broken at spaces, below their second column, and what is to be copied stays whole.
func TestFold(t *testing.T) {
	for _, c := range testmain.Table[struct{ Text, Want string }](t, "testdata/cases/fold.txt") {
		if got := fold(c.Text, 14); got != c.Want {
			t.Errorf("%q: %q", c.Text, got)
		}
	}
}
