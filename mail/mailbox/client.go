package mailbox

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/imap"
	"github.com/postern-mail/postern/mail/internal/pop3"
	"github.com/postern-mail/postern/mail/internal/wire"
	"github.com/postern-mail/postern/mail/login"
)

// Options sets Mailboxes up. Only Directory is needed.
type Options struct {
	Directory          mail.Directory
	Credentials        login.Credentials                         // nil: the Directory's Secret as a password, and no account with AuthOAuth2
	Seen               mail.SeenStore                            // nil: nothing can be acknowledged
	CursorKey          func(ctx context.Context) ([]byte, error) // 32 bytes that authenticate cursors; nil means a key of this process
	PDFText            PDFReader                                 // nil: the text of PDF attachments is not read
	SessionsPerAccount int                                       // connections kept per account; 0 means 4
	OneConnection      bool                                      // never more than one connection to any server at once; SessionsPerAccount is 1 then
	Logger             *slog.Logger                              // nil means none; it never gets bodies or secrets
	Now                func() time.Time                          // nil means time.Now
}

// PDFReader reads the text of a PDF, at most maxRunes characters of it, within
// bounds of time and memory of its own.
type PDFReader interface {
	Text(ctx context.Context, pdf []byte, maxRunes int) (text string, truncated bool, err error)
}

// Client is the only way to the messages of an account. Every message passes
// the account's inbound policy on every path. Nothing changes a mailbox but the
// methods that say so, in an account whose mode allows it, on a connection that
// is lent for just that change. It keeps connections, so that a read after the first is one round
// trip; an account is looked up anew at each call, and one whose server or login
// changed gets new connections. It is safe for concurrent use. Failures are
// *Error, besides ErrNoAccount and what the Directory itself reports.
type Client struct {
	o       Options
	cursors cursors
	gate    *wire.Gate // nil unless OneConnection
	pace    pace       // of Watch

	mu     sync.Mutex
	pools  map[string]*accountPool
	boxes  map[string]*popBox
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
	posts    map[string]*post // by folder; guarded by Mailboxes.mu
}

// New makes Mailboxes. It connects to nothing yet. Call Close to end it.
func New(o Options) *Client {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.CursorKey == nil {
		o.CursorKey = processKey()
	}
	m := &Client{o: o, cursors: cursors{o.CursorKey}, pace: usualPace, pools: make(map[string]*accountPool), boxes: make(map[string]*popBox)}
	if o.OneConnection {
		m.o.SessionsPerAccount, m.gate = 1, wire.NewGate(1)
	}
	return m
}

// Close ends every connection and returns when they are closed. What is in
// progress fails.
func (m *Client) Close() error {
	m.mu.Lock()
	m.closed = true
	for _, p := range m.pools {
		for _, w := range p.posts {
			w.stop()
		}
		m.ending.Go(func() { _ = p.Close() })
	}
	for _, b := range m.boxes {
		m.ending.Go(func() { _ = b.Close() })
	}
	clear(m.pools)
	clear(m.boxes)
	m.mu.Unlock()
	m.ending.Wait()
	return nil
}

// access is an account as one operation uses it.
type access struct {
	mail.Operation
	account mail.Account
	policy  *mail.Policy
	pool    *accountPool // nil for POP3
	pop     *popBox      // nil for IMAP
	log     *slog.Logger
	tell    func(done, total float64, what string) // how far it is; see WithProgress
}

// open is openAny for what only IMAP can do.
func (m *Client) open(ctx context.Context, op, name string) (*access, error) {
	x, err := m.openAny(ctx, op, name)
	if err == nil && x.pop != nil {
		return nil, x.notPOP3("folders, flags or search", mail.AdvicePOP3Read)
	}
	return x, err
}

// readiness is what Credentials may implement besides, to be asked before anything
// of an account connects. It returns an *Error while there is nothing to log in
// with.
type readiness interface {
	Ready(ctx context.Context, a *mail.Account) error
}

// openAny looks the account up and checks that it can be read.
func (m *Client) openAny(ctx context.Context, op, name string) (*access, error) {
	x, err := m.lookUp(ctx, op, name)
	if err != nil {
		return nil, err
	}
	return x, m.ready(ctx, x)
}

func (m *Client) ready(ctx context.Context, x *access) error {
	if r, ok := m.o.Credentials.(readiness); ok {
		return r.Ready(ctx, &x.account)
	}
	return nil
}

// lookUp is openAny for an account that may not be able to log in now.
func (m *Client) lookUp(ctx context.Context, op, name string) (*access, error) {
	a, err := m.o.Directory.Account(ctx, name)
	if err != nil {
		if ctx.Err() != nil {
			return nil, mail.Operation{Op: op, Account: name}.Wrap(ctx, err, nil)
		}
		return nil, err
	}
	x := &access{Operation: mail.Operation{Op: op, Account: a.Name}, account: a, log: m.o.Logger, tell: mail.Progress(ctx)}
	if err := a.Validate(); err != nil {
		return nil, x.Unusable(err)
	}
	if err := login.Check(x.Operation, &a, m.o.Credentials); err != nil {
		return nil, err
	}
	if x.policy, err = mail.CompilePolicy(&a); err != nil {
		return nil, x.Unusable(err)
	}
	if a.Protocol == mail.POP3 {
		cfg, err := m.popConfig(&a)
		if err != nil {
			return nil, x.Unusable(err)
		}
		x.pop, err = m.popBox(&a, cfg)
		return x, err
	}
	cfg, err := m.config(&a)
	if err != nil {
		return nil, x.Unusable(err)
	}
	x.pool, err = m.pool(&a, cfg)
	return x, err
}

// config is the account's server as the wire wants it.
func (m *Client) config(a *mail.Account) (imap.Config, error) {
	target, err := login.Target(a.IMAP, m.o.Directory, m.o.Credentials, a)
	target.Gate = m.gate
	return imap.Config{Target: target, Socket: a.Timeouts.Socket}, err
}

// connectionOf is everything that decides where a connection of the account leads
// and how it logs in.
func connectionOf(a *mail.Account) (string, error) {
	settings, err := json.Marshal(struct {
		Server   mail.Endpoint
		Username string
		Auth     mail.Auth
		Helper   []string
		OAuth    mail.OAuth
		CAPEM    []byte
		Timeouts mail.Timeouts
	}{a.Incoming(), a.Username, a.Auth, a.Helper, a.OAuth, a.CAPEM, a.Timeouts})
	return string(settings), err
}

// ended is what a command gets that comes too late.
func ended(account string, err error) *mail.Error {
	return &mail.Error{Op: "mail", Account: account, Kind: mail.KindConnection, Stage: "connect", Err: err,
		Message: "The program is ending.", Advice: mail.AdviceRestart}
}

// pool returns the account's connections, new ones when its server or login
// differs from what they were made for.
func (m *Client) pool(a *mail.Account, cfg imap.Config) (*accountPool, error) {
	settings, err := connectionOf(a)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, ended(a.Name, imap.ErrClosed)
	}
	if old := m.pools[a.Name]; old != nil {
		if old.settings == settings {
			return old, nil
		}
		m.ending.Go(func() { _ = old.Close() })
	}
	p := &accountPool{settings: settings, turn: make(chan struct{}, 1), Pool: imap.NewPool(imap.PoolOptions{Config: cfg, Sessions: m.o.SessionsPerAccount, Now: m.o.Now})}
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
	err = login.Wrap(ctx, x.Operation, &x.account, err, explain)
	var e *mail.Error
	if errors.As(err, &e) {
		// Neither the server's words nor a Reason: a log is read by others.
		x.log.LogAttrs(ctx, slog.LevelDebug, "mail operation failed", slog.String("op", e.Op), slog.String("account", e.Account),
			slog.String("kind", string(e.Kind)), slog.String("stage", e.Stage))
	}
	return err
}

// Warm connects ahead, so that the account's first read need not.
func (m *Client) Warm(ctx context.Context, account string) error {
	x, err := m.openAny(ctx, "mail warm", account)
	switch {
	case err != nil:
		return err
	case x.pop == nil:
		return x.wrap(ctx, x.pool.Warm(ctx))
	case m.o.OneConnection:
		return x.lendPop(ctx, false, func(*pop3.Session) error { return nil })
	}
	return nil // a POP3 session locks the mailbox: it is begun when it is needed
}

// Verify connects and logs in once, on a connection of its own, and reports what
// is so now: when the server cannot be reached or refuses, the answer has an
// Issue that says why. With OneConnection it asks the server on the connection that
// there is, and makes one where there is none or it is dead. The error is for an
// account that cannot be tried at all, or for the end of ctx (001 section 2).
func (m *Client) Verify(ctx context.Context, account string) (*mail.Verification, error) {
	x, err := m.lookUp(ctx, "mail verify", account)
	if err != nil {
		return nil, err
	}
	if err := m.ready(ctx, x); err != nil {
		return verified(ctx, &mail.Verification{Account: x.account.Name, Server: x.account.Incoming()}, err)
	}
	if m.o.OneConnection {
		return m.verifyHere(ctx, x)
	}
	if x.pop != nil {
		return m.popVerify(ctx, x)
	}
	cfg, err := m.config(&x.account)
	if err != nil {
		return nil, x.Unusable(err)
	}
	v := &mail.Verification{Account: x.account.Name, Server: x.account.IMAP}
	start := m.o.Now()
	s, err := imap.Dial(ctx, cfg)
	v.Latency = m.o.Now().Sub(start)
	if err != nil {
		return verified(ctx, v, x.wrap(ctx, err))
	}
	v.Capabilities = append([]string(nil), s.Capabilities()...)
	bye, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	s.Logout(bye)
	return v, nil
}

// verifyHere is Verify on the one connection there may be: the server has to answer
// a command now.
func (m *Client) verifyHere(ctx context.Context, x *access) (*mail.Verification, error) {
	v := &mail.Verification{Account: x.account.Name, Server: x.account.Incoming()}
	start := m.o.Now()
	var err error
	if x.pop != nil {
		err = x.lendPop(ctx, false, func(s *pop3.Session) error {
			v.Capabilities = s.Capabilities()
			return s.Check(ctx)
		})
	} else {
		err = x.lend(ctx, "", func(s *imap.Session) error {
			if err := s.Noop().Wait(); err != nil {
				return err
			}
			v.Capabilities = append([]string(nil), s.Capabilities()...)
			return nil
		})
	}
	v.Latency = m.o.Now().Sub(start)
	if err != nil {
		v.Capabilities = nil
	}
	return verified(ctx, v, err)
}

// verified is v with what went wrong as an Issue, where it is about the server.
func verified(ctx context.Context, v *mail.Verification, err error) (*mail.Verification, error) {
	if err == nil {
		return v, nil
	}
	var e *mail.Error
	if ctx.Err() != nil || !errors.As(err, &e) || e.Kind == mail.KindConfig {
		return nil, err
	}
	v.Issues = []mail.Issue{e.Issue()}
	return v, nil
}

// looking reports how many messages of how many of a folder have been looked at. With
// rules that hide messages it says no numbers: there would be others without those.
func (x *access) looking(done, total uint64, folder string) {
	if !x.policy.ShowsAll() {
		done, total = 0, 0
	}
	x.tell(float64(done), float64(total), "reading "+folder)
}
