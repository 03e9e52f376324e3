package imap

import (
	"cmp"
	"time"

	"github.com/postern-mail/postern/mail/internal/wire"
)

// Limits bounds the data that a server may send. Zero fields mean the defaults.
type Limits struct {
	Line    int64 // bytes of one response outside its literals; default 4 MiB
	Literal int64 // bytes of one body section; default 32 MiB
	Bytes   int64 // bytes per lend, or since Session.Renew; default 64 MiB
	Answers int64 // responses per lend, or since Session.Renew; default 50,000
	Depth   int   // open parentheses; default 250
}

func (l Limits) budget() budget { return budget{bytes: l.Bytes, answers: l.Answers} }

// DefaultSocket is how long a server may be silent in the middle of an answer.
const DefaultSocket = 300 * time.Second

const (
	defaultLine    = 4 << 20
	defaultLiteral = 32 << 20
	defaultBytes   = 64 << 20
	defaultAnswers = 50_000
	defaultDepth   = 250
)

// Config says where a mailbox is and how to log in. It is copied on entry.
type Config struct {
	wire.Target
	Socket time.Duration // silence in the middle of an answer; 0 means DefaultSocket
	Limits Limits
	// Hides reports whether a folder is hidden: in place of it the server is asked for one
	// that does not exist. Outbox reports whether messages may be put into a folder that the
	// server sends from. A nil function means none.
	Hides, Outbox func(folder string) bool
}

func (c Config) withDefaults() Config {
	c.Target = c.Target.WithDefaults()
	c.Socket = cmp.Or(c.Socket, DefaultSocket)
	c.Limits = Limits{
		Line: cmp.Or(c.Limits.Line, defaultLine), Literal: cmp.Or(c.Limits.Literal, defaultLiteral),
		Bytes: cmp.Or(c.Limits.Bytes, defaultBytes), Answers: cmp.Or(c.Limits.Answers, defaultAnswers),
		Depth: cmp.Or(c.Limits.Depth, defaultDepth),
	}
	return c
}
