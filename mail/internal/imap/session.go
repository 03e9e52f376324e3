package imap

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"mime"
	"slices"
	"strings"
	"sync"
	"time"

	goimap "github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"
	"github.com/emersion/go-message/charset"

	"github.com/postern-mail/postern/mail/internal/wire"
)

// Folder is the server's description of the folder that is EXAMINEd or SELECTed.
type Folder struct {
	Name        string
	UIDValidity uint32
	UIDNext     uint32 // 0 when the server did not say; as of EXAMINE
	Exists      uint32 // messages in it, kept up to date
	Writable    bool   // it is SELECTed and not EXAMINEd
}

// Session is one logged-in connection. It is used inside Use, or inside a Pool's Lend, and
// by one goroutine at a time; commands may be started one after the other before the first
// is waited for. The caller must wait for every command it started.
type Session struct {
	guard  *guard
	client *imapclient.Client
	cfg    *Config
	folder Folder // Name is empty when no folder is open
	opens  uint32 // EXAMINE and SELECT that were started
	noted  bool   // the library has noted folder

	caps      []string      // sorted
	told      bool          // caps are from after the login
	login     *pendingLogin // until its answer has been taken over
	refused   error         // the login's
	idles     int           // how often it has been in IDLE
	query     chan struct{} // closed when a CAPABILITY has been answered; nil when none was sent
	spaces    *Pending[Namespaces]
	absent    string // what makes the name of a hidden folder that of one that does not exist
	revealed  bool   // hidden folders go by their own names, until the use ends
	noCharset bool   // a SEARCH has no text beyond ASCII; as the lend that has it wants

	mu    sync.Mutex
	cond  *sync.Cond
	asked []*gathering // the FETCHes in progress, each of another folder
	taken int64        // messages read from FETCH responses
	fresh freshness
	dead  bool // no more data will come
}

// Dial connects and logs in, a second time where the first login is refused and
// Login.Refused says that it is worth it. The context bounds all of it, besides the
// timeouts of the configuration. The error is always a *wire.Error.
func Dial(ctx context.Context, cfg Config) (*Session, error) {
	s, err := connect(ctx, cfg, nil)
	if wire.WorthRetry(err) {
		s, err = connect(ctx, cfg, nil)
	}
	return s, err
}

// connect is Dial. With answer, the login may be held for the first commands: then
// answer is called with its outcome, once, on a goroutine of the session.
func connect(ctx context.Context, cfg Config, answer func(error)) (*Session, error) {
	cfg = cfg.withDefaults()
	conn, err := wire.Connect(ctx, cfg.Target)
	if err != nil {
		return nil, err
	}
	raw := conn
	if t, ok := conn.(*tls.Conn); ok {
		raw = t.NetConn()
	}
	g := newGuard(raw, &cfg)
	g.putTLS(conn)
	d := &dialog{guard: g, br: bufio.NewReader(g)}
	s := &Session{guard: g, cfg: &cfg, absent: "-" + rand.Text()}
	s.cond = sync.NewCond(&s.mu)

	g.begin(ctx, cfg.Greeting, idleBudget)
	stage, err := s.open(ctx, d)
	if err == nil {
		err = s.begin(d, answer)
	}
	g.finish()
	if err == nil {
		err = g.reason()
	}
	if err != nil {
		if cause := g.reason(); cause != nil && !errors.As(err, new(*wire.Error)) {
			err = cause
		}
		_ = s.Close()
		return nil, dialError(ctx, stage, err)
	}
	return s, nil
}

// open runs the dialog up to the login, which it prepares.
func (s *Session) open(ctx context.Context, d *dialog) (stage string, err error) {
	late := time.AfterFunc(s.cfg.Greeting, func() { s.guard.end(errSilence) })
	err = d.greeting()
	if !late.Stop() && err == nil {
		err = errSilence // the connection is about to end
	}
	if err != nil {
		return wire.StageGreeting, err
	}
	s.guard.patience(s.cfg.Socket)
	if s.cfg.Security == wire.StartTLS {
		if err := d.startTLS(ctx, s.cfg.Target); err != nil {
			return wire.StageTLS, err
		}
	}
	s.login, err = d.login(ctx, s.cfg)
	return wire.StageAuth, err
}

// begin hands the connection over to the library, and completes the login unless it is
// held: with answer, where its line is the whole login and the server offers SASL-IR. An
// older server may hand a login over to another program and lose what it read behind it:
// Courier does. Cyrus takes what stands behind an initial response for a part of it.
func (s *Session) begin(d *dialog, answer func(error)) error {
	held := answer != nil && s.login.single() && d.has("SASL-IR") && !d.cyrus
	if held {
		s.login.held, s.login.answer = true, answer
	}
	s.guard.held = s.login.line
	s.guard.filter.expect(s.login.tag)
	if err := s.start(d); err != nil {
		return err
	}
	if held {
		s.identify(d)
		return nil
	}
	if err := s.Ready(); err != nil {
		return err
	}
	s.identify(d)
	if answer == nil {
		s.ensureCapabilities()
	}
	return nil
}

// identify tells the server what program this is, with the next command, where it offers that
// (RFC 2971): some open no folder for one that they do not know. The answer does not matter.
func (s *Session) identify(d *dialog) {
	if d.has("ID") {
		s.guard.cork(func() {
			cmd := s.client.ID(&goimap.IDData{Name: "Postern"})
			go func() { _, _ = cmd.Wait() }()
		})
	}
}

// start hands the connection to the library, and passes on the dialog's results in a
// greeting that we make. The login may still be held.
func (s *Session) start(d *dialog) error {
	left, _ := d.br.Peek(d.br.Buffered())
	s.caps = d.caps
	login := func(line []byte) error {
		inject, err := s.guard.login.take(s.guard, line)
		select {
		case <-s.guard.login.done:
			s.guard.mend.login = nil
		default:
		}
		s.guard.mend.out = append(s.guard.mend.out, inject...)
		return err
	}
	greeting := "* PREAUTH [CAPABILITY " + libraryCaps(s.caps) + "] ready\r\n"
	err := s.guard.mending(greeting, left, s.login, login)
	if err == nil {
		s.client = imapclient.New(s.guard, &imapclient.Options{
			WordDecoder:           &mime.WordDecoder{CharsetReader: charset.Reader},
			UnilateralDataHandler: &imapclient.UnilateralDataHandler{Fetch: s.takeStray, Expunge: s.fresh.expunged, Mailbox: s.mailbox},
		})
		_ = s.client.WaitGreeting() // it is there already; the capabilities count from here on
		go func() {
			<-s.client.Closed()
			s.guard.report(false)
			s.mu.Lock()
			s.dead = true
			s.cond.Broadcast()
			s.mu.Unlock()
		}()
	}
	return err
}

// libraryCaps is a list of capabilities for the library. It spells the revision as
// the library compares it. A server of both revisions speaks IMAP4rev1 unless the
// other is enabled, but the library would send it raw UTF-8.
func libraryCaps(caps []string) string {
	if slices.Contains(caps, "IMAP4REV1") {
		caps = slices.DeleteFunc(slices.Clone(caps), func(c string) bool { return c == "IMAP4REV2" })
	}
	s := " " + strings.Join(caps, " ")
	s = strings.Replace(s, " IMAP4REV1", " IMAP4rev1", 1)
	return strings.TrimSpace(strings.Replace(s, " IMAP4REV2", " IMAP4rev2", 1))
}

// dialError is the failure to connect or to log in.
func dialError(ctx context.Context, stage string, err error) *wire.Error {
	var e *wire.Error
	if !errors.As(err, &e) {
		e = &wire.Error{Kind: wire.KindOf(err), Err: err}
	}
	if ctx.Err() != nil && e.Kind != wire.KindAuth {
		e = &wire.Error{Kind: wire.KindOf(ctx.Err()), Err: ctx.Err()}
	}
	e.Stage, e.OutOfStep = stage, true
	return e
}

// Use runs fn with the session, bounded by ctx: when ctx ends, the connection closes and
// every command in fn fails. An error of a command is a *wire.Error; fn's own errors are
// returned unchanged.
func (s *Session) Use(ctx context.Context, fn func(ctx context.Context, s *Session) error) error {
	s.guard.begin(ctx, s.cfg.Socket, s.cfg.Limits.budget())
	defer s.guard.finish()
	defer func() {
		if s.revealed { // no later use may find a hidden folder open
			s.revealed, s.folder = false, Folder{}
		}
	}()
	if s.settled() {
		s.askCapabilities()
	}
	return fn(ctx, s)
}

// Reveal gives hidden folders back to the use in progress, for what no agent sees.
func (s *Session) Reveal() { s.revealed = true }

// Revealed reports whether the use in progress has called Reveal.
func (s *Session) Revealed() bool { return s.revealed }

// named is the name that a folder has for the server, or that of no folder.
func (s *Session) named(folder string) string {
	folder = FolderName(folder)
	if s.cfg.Hides != nil && !s.revealed && s.cfg.Hides(folder) {
		folder += s.absent
	}
	return folder
}

// Renew gives the use in progress a fresh budget of bytes and answers, for work that is done
// in bounded windows.
func (s *Session) Renew() { s.guard.renew(s.cfg.Limits.budget()) }

// Together runs start, whose commands leave in one write. They may not be waited
// for inside start.
func (s *Session) Together(start func()) { s.guard.together(start) }

// Ahead runs start, whose commands leave with the next command that is sent.
func (s *Session) Ahead(start func()) { s.guard.cork(start) }

// Capabilities returns the server's capabilities after the login, upper case and sorted;
// none when the login was refused. The caller may not change it. Where the login has not
// been answered yet it is completed first, which costs the round trip that holding it
// saved.
func (s *Session) Capabilities() []string {
	s.ensureCapabilities()
	return s.caps
}

// Has reports whether the server offers a capability, given in upper case. See Capabilities
// for its cost: capabilities from before the login do not count.
func (s *Session) Has(capability string) bool { return contains(s.Capabilities(), capability) }

func contains(caps []string, capability string) bool {
	_, ok := slices.BinarySearch(caps, capability)
	return ok
}

// Selected returns the folder that is EXAMINEd or SELECTed; false means no folder.
func (s *Session) Selected() (Folder, bool) {
	if s.folder.Name == "" {
		return Folder{}, false
	}
	// The library answers an EXAMINE before it notes its folder: until then, the EXAMINE's
	// own data holds.
	m := s.client.Mailbox()
	switch {
	case m != nil && m.Name == s.folder.Name:
		s.noted = true
		s.folder.Exists = m.NumMessages
	case s.noted:
		s.folder = Folder{}
		return Folder{}, false
	}
	return s.folder, true
}

// alive reports whether the connection is open, as far as this side can tell.
func (s *Session) alive() bool {
	if s.guard.reason() != nil {
		return false
	}
	select {
	case <-s.client.Closed():
		return false
	default:
		return true
	}
}

// Close ends the connection at once.
func (s *Session) Close() error {
	s.guard.end(ErrClosed)
	if s.client != nil {
		_ = s.client.Close()
	}
	return nil
}

// Logout sends LOGOUT and closes the connection; ctx bounds the wait.
func (s *Session) Logout(ctx context.Context) {
	s.guard.begin(ctx, time.Second, idleBudget)
	_ = s.client.Logout().Wait()
	s.guard.finish()
	_ = s.Close()
}

// whole is fail for a command that leaves in several writes, each after the server's +: if
// the server accepted it before all of it had left, it was misunderstood.
func (s *Session) whole(stage string, err error) error {
	if cause := s.guard.reason(); err == nil && errors.Is(cause, errNotIMAP) {
		err = cause
	}
	return s.fail(stage, err)
}

// fail makes an Error from the error that a command returned.
func (s *Session) fail(stage string, err error) error {
	if err == nil {
		return nil
	}
	cause := s.guard.reason()
	if h := s.guard.login; h != nil && cause != nil && !errors.Is(cause, ErrForbidden) && !errors.Is(cause, errBadWrite) {
		<-h.done // the reader ends it when the connection has ended
		if refused, ok := h.err.(*wire.Error); ok {
			e := *refused
			return &e
		}
	}
	var refused *goimap.Error
	if errors.As(err, &refused) {
		named := *refused
		named.Text = strings.ReplaceAll(refused.Text, s.absent, "")
		return refusal(stage, &named)
	}
	e := &wire.Error{Stage: stage, OutOfStep: true}
	if cause = s.guard.reason(); cause == nil || errors.Is(cause, errGaveUp) {
		// The library closed the connection itself: it could not make sense of
		// what it read. Its words may quote the server, so they are cleaned.
		e.Kind, e.Err = wire.KindProtocol, errors.New(wire.Clean(err.Error()))
		s.guard.end(errGaveUp)
		return e
	}
	e.Kind, e.Err = wire.KindOf(cause), cause
	if e.Kind == wire.KindClosed || e.Kind == wire.KindConnection {
		s.guard.mu.Lock()
		e.Text = s.guard.bye
		s.guard.mu.Unlock()
	}
	return e
}
