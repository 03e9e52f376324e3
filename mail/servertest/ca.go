package servertest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"
)

// CA is a certificate authority that exists for one test run. Two authorities share no key,
// so a client that trusts one sees the other as an unknown authority. It is safe for
// concurrent use.
type CA struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// LeafOptions says what a server certificate claims. The zero value is a
// certificate that is good now for localhost, 127.0.0.1, 127.0.0.2 and ::1.
type LeafOptions struct {
	Hosts     []string  // names and IP addresses; nil means the loopback ones
	NotBefore time.Time // zero means an hour before NotAfter or now, whichever is earlier
	NotAfter  time.Time // zero means a day from now; a past time makes an expired certificate
}

// PEM returns the authority's own certificate, for a client to trust.
func (ca *CA) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.cert.Raw})
}

// Pool returns a pool that trusts this authority alone.
func (ca *CA) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	return pool
}

// NewCA makes an authority.
func NewCA() (*CA, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make test authority: %w", err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber:          serial(),
		Subject:               pkix.Name{CommonName: "test authority"},
		NotBefore:             now.AddDate(-10, 0, 0), // older than any expired leaf it signs
		NotAfter:              now.AddDate(0, 0, 30),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make test authority: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("make test authority: %w", err)
	}
	return &CA{cert: cert, key: key}, nil
}

// Leaf signs a server certificate with a key of its own.
func (ca *CA) Leaf(options LeafOptions) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make test certificate: %w", err)
	}
	hosts := options.Hosts
	if hosts == nil {
		hosts = []string{"localhost", "127.0.0.1", "127.0.0.2", "::1"}
	}
	now := time.Now()
	if options.NotAfter.IsZero() {
		options.NotAfter = now.AddDate(0, 0, 1)
	}
	if options.NotBefore.IsZero() {
		options.NotBefore = now
		if options.NotAfter.Before(now) {
			options.NotBefore = options.NotAfter
		}
		options.NotBefore = options.NotBefore.Add(-time.Hour)
	}
	template := &x509.Certificate{
		SerialNumber: serial(),
		Subject:      pkix.Name{CommonName: "test server"},
		NotBefore:    options.NotBefore,
		NotAfter:     options.NotAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.cert, key.Public(), ca.key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make test certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// encode returns the certificate chain and the key as a server program reads them.
func encode(leaf tls.Certificate) (chain, key []byte, err error) {
	if len(leaf.Certificate) == 0 {
		return nil, nil, errors.New("encode test certificate: it is empty")
	}
	for _, der := range leaf.Certificate {
		chain = append(chain, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	der, err := x509.MarshalPKCS8PrivateKey(leaf.PrivateKey)
	if err != nil {
		return nil, nil, fmt.Errorf("encode test key: %w", err)
	}
	return chain, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

func serial() *big.Int {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails, by its own promise
	return new(big.Int).SetBytes(b[:])
}
