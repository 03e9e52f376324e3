package imap

import (
	"crypto/x509"
	"errors"
	"strings"
	"time"

	"github.com/postern-mail/postern/mail/internal/wire"
)

// Security is how the connection is protected.
type Security = wire.Security

// The ways to protect a connection.
const (
	TLS       = wire.TLS
	StartTLS  = wire.StartTLS
	Plaintext = wire.Plaintext
)

// Login says how to log in, and Credential with what.
type (
	Login      = wire.Login
	Credential = wire.Credential
)

// Limits bounds what a server may send. Zero fields mean the defaults.
type Limits struct {
	Line    int64 // bytes of one response outside its literals; default 4 MiB
	Literal int64 // bytes of one body section; default 32 MiB
	Bytes   int64 // bytes per lend, or since Session.Renew; default 64 MiB
	Answers int64 // responses per lend, or since Session.Renew; default 50,000
	Depth   int   // open parentheses; default 250
}

func (l Limits) budget() budget { return budget{bytes: l.Bytes, answers: l.Answers} }

// The defaults of Config.
const (
	DefaultConnect  = 30 * time.Second
	DefaultGreeting = 15 * time.Second
	DefaultSocket   = 300 * time.Second

	defaultLine    = 4 << 20
	defaultLiteral = 32 << 20
	defaultBytes   = 64 << 20
	defaultAnswers = 50_000
	defaultDepth   = 250
)

// Config says where a mailbox is and how to log in. It is copied on entry.
type Config struct {
	Host       string
	Port       uint16
	Security   Security
	RootCAs    *x509.CertPool // nil means the system's
	ServerName string         // name the certificate must carry; empty means Host
	Gate       *wire.Gate     // bounds the connections there are; nil means none

	Login Login

	Connect  time.Duration // TCP and TLS; 0 means DefaultConnect
	Greeting time.Duration // the server's first line; 0 means DefaultGreeting
	Socket   time.Duration // silence in the middle of an answer; 0 means DefaultSocket

	Limits Limits
}

func (c Config) withDefaults() Config {
	def := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	def(&c.Connect, DefaultConnect)
	def(&c.Greeting, DefaultGreeting)
	def(&c.Socket, DefaultSocket)
	lim := func(n *int64, v int64) {
		if *n <= 0 {
			*n = v
		}
	}
	lim(&c.Limits.Line, defaultLine)
	lim(&c.Limits.Literal, defaultLiteral)
	lim(&c.Limits.Bytes, defaultBytes)
	lim(&c.Limits.Answers, defaultAnswers)
	if c.Limits.Depth <= 0 {
		c.Limits.Depth = defaultDepth
	}
	if c.ServerName == "" {
		c.ServerName = c.Host
	}
	return c
}

func (c *Config) validate() error {
	if c.Host == "" || c.Port == 0 {
		return errors.New("server host or port is missing")
	}
	if err := c.Login.Check(); err != nil {
		return err
	}
	t := c.target()
	return t.Check()
}

func (c *Config) target() wire.Target {
	return wire.Target{Host: c.Host, Port: c.Port, Security: c.Security, RootCAs: c.RootCAs, ServerName: c.ServerName, Gate: c.Gate}
}

func hasControl(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 })
}
