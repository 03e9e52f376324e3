package mailbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/cursor"
	"github.com/postern-mail/postern/mail/internal/imap"
	"github.com/postern-mail/postern/mail/internal/wire"
	"github.com/postern-mail/postern/mail/login"
	"github.com/postern-mail/postern/mail/mailbox/internal/fetch"
	"github.com/postern-mail/postern/mail/mailbox/internal/folders"
	"github.com/postern-mail/postern/mail/mailbox/internal/lease"
	"github.com/postern-mail/postern/mail/mailbox/internal/reading"
)

// Options sets a Client up. Only Directory is needed.
type Options struct {
	Directory          mail.Directory
	Credentials        login.Credentials                         // nil: the Directory's Secret as a password, and no account with AuthOAuth2
	Seen               mail.SeenStore                            // nil: nothing can be acknowledged
	Drafts             mail.DraftStore                           // nil: every draft is the caller's own
	Journal            mail.Journal                              // nil: nothing is recorded, so nothing can be taken back, and nothing asks
	Others             lease.Others                              // processes on other machines with the same Seen; nil: there are none
	CursorKey          func(ctx context.Context) ([]byte, error) // 32 bytes that authenticate cursors; nil means a key of this process
	PDFText            PDFReader                                 // nil: the text of PDF attachments is not read
	SessionsPerAccount int                                       // connections kept per account; 0 means 4
	OneConnection      bool                                      // never more than one connection to any server at once; SessionsPerAccount is 1 then
	Logger             *slog.Logger                              // nil means no log; it never gets bodies or secrets
	Now                func() time.Time                          // nil means time.Now
}

// Client is the only way to the messages of an account. Every message passes the account's
// inbound policy on every path. Only the methods that say so change a mailbox, in an
// account whose mode allows it, on a connection lent for that one change. It keeps
// connections, so that a read after the first is one round trip; it looks an account up at
// each call, and one whose server or login changed gets new connections. It is safe for
// concurrent use. Failures are *Error, except ErrNoAccount and the Directory's own errors.
type Client struct {
	o       Options
	cursors cursor.Sealer
	leases  lease.Leases
	gate    *wire.Gate // nil unless OneConnection
	lost    sync.Map   // by account: the time.Time since which its server could not be reached
	pace    pace       // of Watch
	bounds  bounds
	memory  reading.Memory

	mu     sync.Mutex
	kept   map[string]kept // by account
	closed bool
	ending sync.WaitGroup // replaced connections that are closing
}

// bounds are how many messages an operation reads at most.
type bounds struct {
	judged     int // of a folder in which the policy checks each one
	candidates int // for one conversation
	heads      int // of a POP3 mailbox, newest first
}

var usualBounds = bounds{judged: 20_000, candidates: 1000, heads: 5000}

// accountPool holds the connections of an IMAP account.
type accountPool struct {
	*imap.Pool
	cfg   imap.Config
	turn  chan struct{} // one place: changes of an account happen one after the other
	reads reading.Queue
	parts fetch.PartFacts
	posts map[string]*post // by folder; guarded by Client.mu
	own   folders.Known
}

// New makes a Client. It connects to nothing yet. Call Close to end it.
func New(o Options) *Client {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.CursorKey == nil {
		o.CursorKey = cursor.ProcessKey()
	}
	m := &Client{o: o, cursors: cursor.Sealer{Key: o.CursorKey}, leases: lease.Leases{Others: o.Others, Seen: o.Seen}, pace: usualPace, bounds: usualBounds, kept: make(map[string]kept)}
	if o.OneConnection {
		m.o.SessionsPerAccount, m.gate = 1, wire.NewGate(1)
	}
	return m
}

// Close ends every connection and returns when they are closed. Operations in progress
// fail.
func (m *Client) Close() error {
	m.mu.Lock()
	m.closed = true
	for _, k := range m.kept {
		if p, ok := k.Closer.(*accountPool); ok {
			for _, w := range p.posts {
				w.stop()
			}
		}
		m.ending.Go(func() { _ = k.Close() })
	}
	clear(m.kept)
	m.mu.Unlock()
	m.ending.Wait()
	return nil
}

// connectionOf holds every setting that decides where a connection of the account leads, how
// it logs in, and which folders it knows of.
func connectionOf(a *mail.Account) (string, error) {
	settings, err := json.Marshal(struct {
		Protocol mail.Protocol
		Server   mail.Endpoint
		Username string
		Auth     mail.Auth
		Helper   []string
		OAuth    mail.OAuth
		CAPEM    []byte
		Timeouts mail.Timeouts
		Allow    []string `json:",omitempty"` // folders: what is known of them counts no longer
		Hide     []string `json:",omitempty"`
	}{a.Protocol, a.Incoming(), a.Username, a.Auth, a.Helper, a.OAuth, a.CAPEM, a.Timeouts, a.AllowFolders, a.HideFolders})
	return string(settings), err
}

// ended is the error of a command that comes after Close.
func ended(account string) *mail.Error {
	e := mail.Operation{Op: "mail", Account: account}.Failure(mail.KindConnection, "connect", "The program is ending.", mail.AdviceRestart)
	e.Err = imap.ErrClosed
	return e
}

// kept is the pool or the POP3 session that is kept open for an account, and the settings
// it was made for.
type kept struct {
	io.Closer
	settings string
}

// keep returns the kept connections of an account, new ones when its server or login has
// changed.
func keep[T io.Closer](m *Client, a *mail.Account, open func() T) (T, error) {
	settings, err := connectionOf(a)
	m.mu.Lock()
	defer m.mu.Unlock()
	var made T
	switch old, ok := m.kept[a.Name]; {
	case err != nil:
		return made, err
	case m.closed:
		return made, ended(a.Name)
	case ok && old.settings == settings:
		return old.Closer.(T), nil
	case ok:
		m.ending.Go(func() { _ = old.Close() })
	}
	made = open()
	m.kept[a.Name] = kept{made, settings}
	return made, nil
}

// lend runs fn on a session of the account, perhaps twice. An *Error of fn passes
// unchanged.
func (x *imapBox) lend(ctx context.Context, folder string, fn func(s *imap.Session) error) error {
	err := x.pool.Lend(ctx, folder, func(_ context.Context, s *imap.Session) error {
		if err := x.findOwn(s, folder); err != nil {
			return err
		}
		return fn(s)
	})
	return x.inFolder(ctx, folder, err)
}

// inFolder is wrap for a command that needed a folder. Where that does not exist, the error
// knows the folders that do: one round trip more.
func (x *imapBox) inFolder(ctx context.Context, folder string, err error) error {
	err = x.wrap(ctx, err)
	var e *mail.Error
	if folder == "" || !errors.As(err, &e) || e.Kind != mail.KindNotFound || e.Advice != mail.AdviceFolders || e.Known != nil {
		return err
	}
	list := &FolderList{}
	if x.lend(ctx, "", func(s *imap.Session) error {
		*list = FolderList{}
		_, err := x.listFolders(s, FolderQuery{Pattern: "*", Limit: maxFoldersForRole}, list)
		return err
	}) != nil {
		return err
	}
	known := *e
	known.Missing, known.Known = cmp.Or(e.Missing, folder), []string{}
	for _, f := range list.Folders {
		if !f.NoSelect() {
			known.Known = append(known.Known, f.Name)
		}
	}
	var w *wire.Error
	if slices.Contains(known.Known, imap.FolderName(known.Missing)) && errors.As(err, &w) { // it is there: the server only does not open it
		known.Kind, known.Advice, known.Missing, known.Known, known.Retryable = mail.KindRefused, mail.AdviceAskOperator, "", nil, true
		known.Message = "The mail server did not open the folder, although it lists it."
		known.Said(w.Text)
	}
	return &known
}

// The least and the most that a caller is told to wait after a lost connection. Between
// them it is as long as the server has been away.
const (
	minWait = 5 * time.Second
	maxWait = 5 * time.Minute
)

func (x *access) wrap(ctx context.Context, err error) error {
	if err == nil {
		x.m.lost.Delete(x.Account)
		return nil
	}
	err = login.Wrap(ctx, x.Operation, &x.account, err, func(e *mail.Error) { explain(e, x.account.Incoming()) })
	var e *mail.Error
	if errors.As(err, &e) {
		switch {
		case e.Kind == mail.KindConnection && e.Retryable && e.Wait == 0:
			now := x.m.o.Now()
			since, _ := x.m.lost.LoadOrStore(x.Account, now)
			e.Wait = min(max(now.Sub(since.(time.Time)), minWait), maxWait)
		case e.Kind == mail.KindTimeout && e.Advice == mail.AdviceMoreTime && !ending(ctx):
			// A bound of the connection ran out, not the command's.
			if e.Advice = mail.AdviceSlowServer; x.account.Timeouts != (mail.Timeouts{}) {
				e.Advice, e.Detail = mail.AdviceTimeoutVariable, mail.TimeoutVariable(e.Stage)
			}
		}
		// Neither the server's words nor a Reason: other people read logs.
		x.m.o.Logger.LogAttrs(ctx, slog.LevelDebug, "mail operation failed", slog.String("op", e.Op), slog.String("account", e.Account),
			slog.String("kind", string(e.Kind)), slog.String("stage", e.Stage))
	}
	return err
}

// ending reports whether ctx has ended, or will before anybody could notice: a connection's
// deadline may fire a little before it.
func ending(ctx context.Context) bool {
	deadline, bounded := ctx.Deadline()
	return ctx.Err() != nil || bounded && time.Until(deadline) < 100*time.Millisecond
}

// Warm connects ahead of the account's first read.
func (m *Client) Warm(ctx context.Context, account string) error {
	b, err := m.open(ctx, "mail warm", account)
	if err != nil {
		return err
	}
	return b.warm(ctx)
}

func (x *imapBox) warm(ctx context.Context) error { return x.wrap(ctx, x.pool.Warm(ctx)) }

// Verify connects, logs in and opens INBOX once, on a connection of its own, and reports the result:
// when the server cannot be reached or refuses, the answer has an Issue that says why. With
// OneConnection it uses the existing connection, and makes one where it is missing or dead.
// An error means that the account cannot be tried at all, or that ctx ended (001 section
// 2).
func (m *Client) Verify(ctx context.Context, account string) (*mail.Verification, error) {
	b, err := m.lookUp(ctx, "mail verify", account)
	if err != nil {
		return nil, err
	}
	a := &b.base().account
	v := &mail.Verification{Account: a.Name, Server: a.Incoming()}
	start := m.o.Now()
	answered := func(capabilities []string) {
		v.Latency, v.Capabilities = m.o.Now().Sub(start), slices.Clone(capabilities)
	}
	try := b.dial
	if m.o.OneConnection {
		try = b.ask
	}
	if err = m.ready(ctx, b.base()); err == nil {
		if err = try(ctx, answered); err == nil {
			return v, nil
		}
		if v.Capabilities == nil {
			answered(nil)
		}
	}
	var e *mail.Error
	if ctx.Err() != nil || !errors.As(err, &e) || e.Kind == mail.KindConfig {
		return nil, err
	}
	v.Issues = []mail.Issue{e.Issue()}
	return v, nil
}

func (x *imapBox) dial(ctx context.Context, done func(capabilities []string)) error {
	s, err := imap.Dial(ctx, x.pool.cfg)
	if err != nil {
		return x.wrap(ctx, err)
	}
	done(s.Capabilities())
	err = s.Use(ctx, func(_ context.Context, s *imap.Session) error {
		_, err := s.Examine(inbox).Wait()
		return err
	})
	bye, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	s.Logout(bye)
	var w *wire.Error
	if err = x.wrap(ctx, err); imap.Refused(err) && errors.As(err, &w) {
		e := x.Failure(mail.KindRefused, imap.StageExamine, "The mail server took the login, and did not open INBOX.", mail.AdviceAskOperator)
		e.Said(w.Text)
		return e
	}
	return err
}

func (x *imapBox) ask(ctx context.Context, done func(capabilities []string)) error {
	return x.lend(ctx, "", func(s *imap.Session) error {
		err := s.Noop().Wait()
		if err == nil {
			done(s.Capabilities())
		}
		return err
	})
}
