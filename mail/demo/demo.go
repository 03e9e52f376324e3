// Package demo serves a sample mailbox from memory: an IMAP server to read it
// and an SMTP server to send, both on the loopback and behind TLS, so that the
// whole product runs without a mail account. Nothing leaves the machine: mail
// to the mailbox's own address arrives in it, other mail is kept in memory.
//
// [Start] starts both servers; [Servers.Account] is the account that uses
// them. The servers are as strict as real ones, and correct the errors of the
// protocol library's in-memory server. They are not for real mail: everything
// is lost with the process.
package demo

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/emersion/go-imap/v2/imapserver"
	_ "github.com/emersion/go-message/charset" // SEARCH reads every charset of the sample mail
	"github.com/emersion/go-smtp"

	"github.com/postern-mail/postern/mail"
)

// Username logs in to both servers and is the address of the mailbox.
const Username = "demo@example.org"

// MaxMessageBytes is the size of the largest message either server accepts.
const MaxMessageBytes = 10 << 20

// Options says how the servers run. The zero value is ready to use.
type Options struct {
	// Now gives the time from which the sample messages are dated back, and that
	// of later messages; nil means time.Now. It is called concurrently.
	Now func() time.Time
	// Logger gets the log of the servers, which only their developers need; nil
	// discards it.
	Logger *slog.Logger
}

// Servers are the running servers. Its fields do not change; its methods are
// safe for concurrent use.
type Servers struct {
	IMAPAddr string      // 127.0.0.1:port, TLS from the first byte
	SMTPAddr string      // 127.0.0.1:port, TLS from the first byte
	CAPEM    []byte      // the authority to trust, made at start
	Username string      // the constant Username
	Password mail.Secret // random, made at start

	store   *store
	imap    *imapserver.Server
	smtp    *smtp.Server
	imapL   *listener
	smtpL   *listener
	serving sync.WaitGroup
	closing sync.Once
	err     error
}

// Start starts both servers with the sample mailbox.
func Start(options Options) (_ *Servers, err error) {
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	config, authority, err := certify()
	if err != nil {
		return nil, err
	}
	password := rand.Text()
	s := &Servers{
		CAPEM:    authority,
		Username: Username,
		Password: mail.NewSecret([]byte(password)),
	}
	if s.store, err = newStore(password, options.Now); err != nil {
		return nil, err
	}
	if s.imapL, err = listen(); err != nil {
		return nil, err
	}
	if s.smtpL, err = listen(); err != nil {
		return nil, errors.Join(err, s.imapL.Close())
	}
	s.IMAPAddr, s.SMTPAddr = s.imapL.Addr().String(), s.smtpL.Addr().String()
	logger := printer{options.Logger}
	s.imap = imapserver.New(&imapserver.Options{
		NewSession: s.store.newSession,
		Caps:       capabilities,
		Logger:     logger,
	})
	s.smtp = smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) {
		return &submission{store: s.store, password: password}, nil
	}))
	s.smtp.Domain = "demo.example.org"
	s.smtp.MaxMessageBytes = MaxMessageBytes
	s.smtp.MaxRecipients = 100
	s.smtp.ReadTimeout = 5 * time.Minute
	s.smtp.WriteTimeout = time.Minute
	s.smtp.ErrorLog = logger
	s.serving.Go(func() { _ = s.imap.Serve(tls.NewListener(s.imapL, config)) }) // ends with its listener
	s.serving.Go(func() { _ = s.smtp.Serve(tls.NewListener(s.smtpL, config)) }) // ends with its listener
	return s, nil
}

// Account returns the account that reads and sends through the servers, for package mail:
// its messages may be flagged, moved and deleted, and nothing may be sent until its owner
// allows it. Its secret is Password.
func (s *Servers) Account() mail.Account {
	return mail.Account{
		Name:     "demo",
		Email:    Username,
		Protocol: mail.IMAP,
		IMAP:     endpoint(s.imapL),
		SMTP:     endpoint(s.smtpL),
		Username: s.Username,
		Auth:     mail.AuthPassword,
		Mode:     mail.ReadWrite,
		Destroy:  mail.DestroyOn,
		AllowOut: mail.AllowList{Enabled: true},
		CAPEM:    append([]byte(nil), s.CAPEM...),
	}
}

func endpoint(l *listener) mail.Endpoint {
	return mail.Endpoint{Host: "127.0.0.1", Port: uint16(l.Addr().(*net.TCPAddr).Port), Security: mail.TLS}
}

// Outgoing returns the messages that were sent to other addresses than the
// mailbox's own, in the order they came.
func (s *Servers) Outgoing() []Message { return s.store.sent() }

// Close ends both servers and every connection to them at once, and waits until
// nothing of them runs. Further calls return the first result.
func (s *Servers) Close() error {
	s.closing.Do(func() {
		// The servers' own Close methods miss a connection that was accepted but not
		// yet recorded, and do not wait: the listeners end them all.
		s.err = errors.Join(s.imapL.end(), s.smtpL.end())
		s.serving.Wait()
		s.imapL.wait()
		s.smtpL.wait()
		ignore(s.imap.Close())
		ignore(s.smtp.Shutdown(context.Background()))
	})
	return s.err
}

// ignore drops the error of closing what the listeners have already closed.
func ignore(error) {}

// listener accepts on a loopback port and knows its connections.
type listener struct {
	net.Listener
	open sync.WaitGroup // connections their server has not closed

	mu    sync.Mutex
	conns map[*conn]struct{}
	ended bool
}

type conn struct {
	net.Conn
	of   *listener
	once sync.Once
	err  error
}

func listen() (*listener, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the demo: %w", err)
	}
	return &listener{Listener: l, conns: map[*conn]struct{}{}}, nil
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	raw, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		_ = raw.Close()
		return nil, net.ErrClosed
	}
	c := &conn{Conn: raw, of: l}
	l.conns[c] = struct{}{}
	l.open.Add(1)
	return c, nil
}

// Close implements net.Conn. The server calls it when it is done with c.
func (c *conn) Close() error {
	c.once.Do(func() {
		c.err = c.Conn.Close()
		c.of.mu.Lock()
		delete(c.of.conns, c)
		c.of.mu.Unlock()
		c.of.open.Done()
	})
	return c.err
}

// end stops accepting and breaks every connection. Their servers then find them
// broken and close them.
func (l *listener) end() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	for c := range l.conns {
		_ = c.Conn.Close()
	}
	return l.Listener.Close()
}

// wait returns when the server has closed every connection.
func (l *listener) wait() { l.open.Wait() }

// printer writes the log of the protocol libraries.
type printer struct{ to *slog.Logger }

func (p printer) Printf(format string, args ...any) { p.to.Debug(fmt.Sprintf(format, args...)) }
func (p printer) Println(args ...any) {
	p.to.Debug(strings.TrimSuffix(fmt.Sprintln(args...), "\n"))
}

var (
	_ imapserver.Logger = printer{}
	_ smtp.Logger       = printer{}
	_ io.Closer         = (*Servers)(nil)
)
