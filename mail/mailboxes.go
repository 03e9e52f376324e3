package mail

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/postern-mail/postern/mail/internal/imap"
)

// MailboxesOptions sets Mailboxes up. Only Directory is needed.
type MailboxesOptions struct {
	Directory          Directory
	Seen               SeenStore                                 // nil: nothing can be acknowledged
	CursorKey          func(ctx context.Context) ([]byte, error) // 32 bytes that authenticate cursors; nil means a key of this process
	PDFText            PDFReader                                 // nil: the text of PDF attachments is not read
	SessionsPerAccount int                                       // connections kept per account; 0 means 4
	Logger             *slog.Logger                              // nil means none; it never gets bodies or secrets
	Now                func() time.Time                          // nil means time.Now
}

// PDFReader reads the text of a PDF, at most maxRunes characters of it, within
// bounds of time and memory of its own.
type PDFReader interface {
	Text(ctx context.Context, pdf []byte, maxRunes int) (text string, truncated bool, err error)
}

// Mailboxes is the only way to the messages of an account. Every message passes
// the account's inbound policy on every path. Nothing changes a mailbox but the
// methods that say so, in an account whose mode allows it, on a connection that
// is lent for just that change. It keeps connections, so that a read after the first is one round
// trip; an account is looked up anew at each call, and one whose server or login
// changed gets new connections. It is safe for concurrent use. Failures are
// *Error, besides ErrNoAccount and what the Directory itself reports.
type Mailboxes struct {
	o       MailboxesOptions
	cursors cursors

	mu     sync.Mutex
	pools  map[string]*accountPool
	closed bool
	ending sync.WaitGroup // pools that were replaced
}

// accountPool is a pool and the settings it was made for.
type accountPool struct {
	*imap.Pool
	settings string
	turn     chan struct{} // one place: changes of an account happen one after the other
	reads    readQueue
	parts    partFacts
}

// NewMailboxes makes Mailboxes. It connects to nothing yet. Call Close to end it.
func NewMailboxes(o MailboxesOptions) *Mailboxes {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.CursorKey == nil {
		o.CursorKey = processKey()
	}
	return &Mailboxes{o: o, cursors: cursors{o.CursorKey}, pools: make(map[string]*accountPool)}
}

// Close ends every connection and returns when they are closed. What is in
// progress fails.
func (m *Mailboxes) Close() error {
	m.mu.Lock()
	m.closed = true
	for _, p := range m.pools {
		m.ending.Go(func() { _ = p.Close() })
	}
	clear(m.pools)
	m.mu.Unlock()
	m.ending.Wait()
	return nil
}

// access is an account as one operation uses it.
type access struct {
	op      string
	account Account
	policy  *Policy
	pool    *accountPool
	log     *slog.Logger
}

// open looks the account up and checks that it can be read.
func (m *Mailboxes) open(ctx context.Context, op, name string) (*access, error) {
	a, err := m.o.Directory.Account(ctx, name)
	if err != nil {
		if ctx.Err() != nil {
			return nil, wrap(ctx, op, name, err)
		}
		return nil, err
	}
	x := &access{op: op, account: a, log: m.o.Logger}
	if err := a.Validate(); err != nil {
		return nil, x.config(err)
	}
	if a.Protocol != IMAP {
		return nil, x.unsupported("The account is read with POP3, which is not available yet.", "Give the account an IMAP server with 'account edit'.")
	}
	if a.Auth == AuthOAuth2 {
		return nil, x.unsupported("The account logs in with OAuth2, which is not available yet.", "Give the account a password with 'account edit'; many providers offer app passwords.")
	}
	if x.policy, err = CompilePolicy(&a); err != nil {
		return nil, x.config(err)
	}
	cfg, err := m.config(&a)
	if err != nil {
		return nil, x.config(err)
	}
	x.pool, err = m.pool(&a, cfg)
	return x, err
}

func (x *access) config(err error) error {
	return &Error{Op: x.op, Account: x.account.Name, Kind: KindConfig, Stage: "config", Err: err,
		Message: "The account cannot be used as it is set up: " + err.Error() + ".", Hint: "Change it with 'account edit'."}
}

func (x *access) unsupported(message, hint string) error {
	return &Error{Op: x.op, Account: x.account.Name, Kind: KindUnsupported, Stage: "config", Message: message, Hint: hint}
}

// config is the account's server as the wire wants it.
func (m *Mailboxes) config(a *Account) (imap.Config, error) {
	cfg := imap.Config{
		Host: a.IMAP.Host, Port: a.IMAP.Port, Security: imap.Security(a.IMAP.Security), Username: a.Username,
		Connect: a.Timeouts.Connect, Greeting: a.Timeouts.Greeting, Socket: a.Timeouts.Socket,
	}
	cfg.Password = m.password(a.Name)
	var err error
	cfg.RootCAs, err = a.roots()
	return cfg, err
}

var errNoPassword = errors.New("it has no password")

// secretError marks a failure of the Directory to give the secret, which is not
// one of the server.
type secretError struct{ err error }

func (e *secretError) Error() string { return e.err.Error() }
func (e *secretError) Unwrap() error { return e.err }

// pool returns the account's connections, new ones when its server or login
// differs from what they were made for.
func (m *Mailboxes) pool(a *Account, cfg imap.Config) (*accountPool, error) {
	settings, err := json.Marshal(struct {
		IMAP     Endpoint
		Username string
		Auth     Auth
		Helper   []string
		CAPEM    []byte
		Timeouts Timeouts
	}{a.IMAP, a.Username, a.Auth, a.Helper, a.CAPEM, a.Timeouts})
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, &Error{Op: "mail", Account: a.Name, Kind: KindConnection, Stage: "connect", Err: imap.ErrClosed,
			Message: "The program is ending.", Hint: "Start it again."}
	}
	if old := m.pools[a.Name]; old != nil {
		if old.settings == string(settings) {
			return old, nil
		}
		m.ending.Go(func() { _ = old.Close() })
	}
	p := &accountPool{settings: string(settings), turn: make(chan struct{}, 1), Pool: imap.NewPool(imap.PoolOptions{Config: cfg, Sessions: m.o.SessionsPerAccount, Now: m.o.Now})}
	m.pools[a.Name] = p
	return p, nil
}

// lend runs fn on a session of the account, perhaps twice. An *Error of fn passes
// as it is.
func (x *access) lend(ctx context.Context, folder string, fn func(s *imap.Session) error) error {
	err := x.pool.Lend(ctx, folder, func(_ context.Context, s *imap.Session) error { return fn(s) })
	return x.wrap(ctx, err)
}

func (x *access) wrap(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	var secret *secretError
	switch {
	case ctx.Err() != nil || !errors.As(err, &secret):
		err = wrap(ctx, x.op, x.account.Name, err)
	case errors.Is(secret, errNoPassword):
		err = x.config(errNoPassword)
	default:
		err = secret.err
	}
	var e *Error
	if errors.As(err, &e) {
		// Neither the server's words nor a Reason: a log is read by others.
		x.log.LogAttrs(ctx, slog.LevelDebug, "mail operation failed", slog.String("op", e.Op), slog.String("account", e.Account),
			slog.String("kind", string(e.Kind)), slog.String("stage", e.Stage))
	}
	return err
}

// Warm connects ahead, so that the account's first read need not.
func (m *Mailboxes) Warm(ctx context.Context, account string) error {
	x, err := m.open(ctx, "mail warm", account)
	if err != nil {
		return err
	}
	return x.wrap(ctx, x.pool.Warm(ctx))
}

// Verify connects and logs in once, on a connection of its own, and reports what
// is so now: when the server cannot be reached or refuses, the answer has an
// Issue that says why. The error is for an account that cannot be tried at all,
// or for the end of ctx (001 section 2).
func (m *Mailboxes) Verify(ctx context.Context, account string) (*Verification, error) {
	x, err := m.open(ctx, "mail verify", account)
	if err != nil {
		return nil, err
	}
	cfg, err := m.config(&x.account)
	if err != nil {
		return nil, x.config(err)
	}
	v := &Verification{Account: x.account.Name, Server: x.account.IMAP}
	start := m.o.Now()
	s, err := imap.Dial(ctx, cfg)
	v.Latency = m.o.Now().Sub(start)
	if err != nil {
		var e *Error
		if err = x.wrap(ctx, err); ctx.Err() != nil || !errors.As(err, &e) || e.Kind == KindConfig {
			return nil, err
		}
		v.Issues = []Issue{e.issue()}
		return v, nil
	}
	v.Capabilities = append([]string(nil), s.Capabilities()...)
	bye, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	s.Logout(bye)
	return v, nil
}
