package imap

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"math/big"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postern-mail/postern/mail/internal/wire"
)

// script is one connection of a scripted server. Its methods end the script
// quietly when the client has gone.
type script struct {
	net.Conn
	br *bufio.Reader
}

type gone struct{}

func (s *script) send(text string) {
	if _, err := io.WriteString(s.Conn, text); err != nil {
		panic(gone{})
	}
}

// expect reads a command and returns its tag and the rest.
func (s *script) expect() (tag, command string) {
	l, err := s.br.ReadString('\n')
	if err != nil {
		panic(gone{})
	}
	tag, command, _ = strings.Cut(strings.TrimRight(l, "\r\n"), " ")
	return tag, command
}

// drain reads until the client goes.
func (s *script) drain() { _, _ = io.Copy(io.Discard, s.br) }

const scriptCaps = "IMAP4rev1 SASL-IR AUTH=PLAIN LITERAL+ ESEARCH UIDPLUS MOVE"

// login speaks a greeting and accepts the login.
func (s *script) login() {
	s.send("* OK [CAPABILITY " + scriptCaps + "] ready\r\n")
	tag, _ := s.expect()
	s.send(tag + " OK [CAPABILITY " + scriptCaps + "] in\r\n")
}

// examine answers the next command as an EXAMINE.
func (s *script) examine() {
	tag, _ := s.expect()
	s.send("* 3 EXISTS\r\n* OK [UIDVALIDITY 7] v\r\n* OK [UIDNEXT 4] n\r\n" + tag + " OK [READ-ONLY] done\r\n")
}

// server is a listener whose every connection runs a script.
type server struct {
	net.Listener
	mu    sync.Mutex
	conns []net.Conn
	wg    sync.WaitGroup
}

func serve(t *testing.T, run func(s *script)) *server {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	sv := &server{Listener: ln}
	sv.wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			sv.mu.Lock()
			sv.conns = append(sv.conns, c)
			sv.mu.Unlock()
			sv.wg.Go(func() {
				defer c.Close()
				defer func() {
					if r := recover(); r != nil {
						if _, ok := r.(gone); !ok {
							panic(r)
						}
					}
				}()
				run(&script{Conn: c, br: bufio.NewReader(c)})
			})
		}
	})
	t.Cleanup(sv.stop)
	return sv
}

func (sv *server) stop() {
	_ = sv.Close()
	sv.mu.Lock()
	for _, c := range sv.conns {
		_ = c.Close()
	}
	sv.mu.Unlock()
	sv.wg.Wait()
}

func (sv *server) accepted() int {
	sv.mu.Lock()
	defer sv.mu.Unlock()
	return len(sv.conns)
}

func (sv *server) config(security wire.Security) Config {
	return Config{Target: wire.Target{Host: "127.0.0.1", Port: uint16(sv.Addr().(*net.TCPAddr).Port), Security: security,
		Login: withPassword("s3cret-pass")}}
}

// withPassword logs in as ann.
func withPassword(p string) wire.Login {
	return wire.Login{Username: "ann", Credential: func(context.Context) (wire.Credential, error) { return wire.Credential{Password: p}, nil }}
}

// withToken is withPassword for an access token.
func withToken(token string) wire.Login {
	return wire.Login{Username: "ann", Credential: func(context.Context) (wire.Credential, error) { return wire.Credential{Token: token}, nil }}
}

// authority issues certificates for tests.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(48 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return &authority{cert: cert, key: key, pool: pool}
}

func (a *authority) issue(t *testing.T, notAfter time.Time, names ...string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "server"},
		NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: notAfter,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			tmpl.IPAddresses = append(tmpl.IPAddresses, ip)
		} else {
			tmpl.DNSNames = append(tmpl.DNSNames, n)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// overTLS runs a script inside TLS.
func overTLS(cert tls.Certificate, run func(s *script)) func(s *script) {
	return func(s *script) {
		c := tls.Server(s.Conn, &tls.Config{Certificates: []tls.Certificate{cert}})
		if c.Handshake() != nil {
			return
		}
		run(&script{Conn: c, br: bufio.NewReader(c)})
	}
}
