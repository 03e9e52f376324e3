package mailbox

import (
	"context"
	"errors"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/imap"
	"github.com/postern-mail/postern/mail/internal/pop3"
	"github.com/postern-mail/postern/mail/internal/visible"
	"github.com/postern-mail/postern/mail/internal/wire"
	"github.com/postern-mail/postern/mail/login"
	"github.com/postern-mail/postern/mail/mailbox/internal/fetch"
	"github.com/postern-mail/postern/mail/mailbox/internal/reading"
)

// access is an account during one operation, by IMAP or POP3.
type access struct {
	reading.Viewer
	m       *Client
	account mail.Account
	tell    func(done, total float64, what string) // how far it is; see WithProgress
}

func (x *access) base() *access { return x }

// box is an account's mailbox by the protocol it is read with; imapBox and popBox implement
// it. Operations that only IMAP has are methods of imapBox; see openIMAP.
type box interface {
	base() *access
	warm(ctx context.Context) error
	// dial logs in on a new connection, ask uses the existing one. Both call done when the
	// server has answered.
	dial(ctx context.Context, done func(capabilities []string)) error
	ask(ctx context.Context, done func(capabilities []string)) error
	folders(ctx context.Context, q FolderQuery) (*FolderList, error)
	list(ctx context.Context, q ListQuery) (*Page, error)
	get(ctx context.Context, all []*reading.Reading) error
	raw(ctx context.Context, ref mail.Ref, limit int64) (*RawMessage, error)
	attachment(ctx context.Context, ref mail.Ref, part string) (*AttachmentContent, error)
	header(ctx context.Context, ref mail.Ref) (*fetch.Message, error)
	thread(ctx context.Context, ref mail.Ref, q ThreadQuery) (*Thread, error)
	ack(ctx context.Context, refs []mail.Ref) (*Changed, error)
}

var (
	_ box = (*imapBox)(nil)
	_ box = (*popBox)(nil)
)

// imapBox is box for IMAP.
type imapBox struct {
	*access
	pool *accountPool
}

// refTo names a message of a folder of the account.
func (x *imapBox) refTo(folder string, uidValidity, uid uint32) mail.Ref {
	return mail.Ref{Protocol: mail.IMAP, Account: x.Account, Folder: folder, UIDValidity: uidValidity, UID: uid}
}

// openIMAP opens an account for an operation that only IMAP has. lacks and advice say what
// POP3 lacks and what to do instead.
func (m *Client) openIMAP(ctx context.Context, op, name, lacks string, advice mail.Advice) (*imapBox, error) {
	b, err := m.open(ctx, op, name)
	if err != nil {
		return nil, err
	}
	if x, ok := b.(*imapBox); ok {
		return x, nil
	}
	return nil, b.base().notPOP3(lacks, advice)
}

// readiness is an interface that Credentials may also implement. It is asked before an
// account connects, and returns an *Error while the account has no credential.
type readiness interface {
	Ready(ctx context.Context, a *mail.Account) error
}

// open looks the account up and checks that it can be read.
func (m *Client) open(ctx context.Context, op, name string) (box, error) {
	b, err := m.lookUp(ctx, op, name)
	if err != nil {
		return nil, err
	}
	return b, m.ready(ctx, b.base())
}

func (m *Client) ready(ctx context.Context, x *access) error {
	if r, ok := m.o.Credentials.(readiness); ok {
		return r.Ready(ctx, &x.account)
	}
	return nil
}

// lookUp is open for an account that may not be able to log in now.
func (m *Client) lookUp(ctx context.Context, op, name string) (box, error) {
	o := mail.Operation{Op: op, Account: name}
	a, policy, err := o.LookUp(ctx, m.o.Directory)
	if err != nil {
		return nil, err
	}
	x := &access{Viewer: reading.Viewer{Operation: o, Policy: reading.Judge{Policy: policy}, Now: m.o.Now, Memory: &m.memory, Work: visible.NewWork(ctx)}, m: m, account: a, tell: mail.Progress(ctx)}
	if err := login.Check(o, &a, m.o.Credentials); err != nil {
		return nil, err
	}
	target, err := login.Target(a.Incoming(), m.o.Directory, m.o.Credentials, &a)
	if err != nil {
		return nil, x.Unusable(err)
	}
	target.Gate = m.gate
	if a.Protocol == mail.POP3 {
		s, err := keep(m, &a, func() *pop3.Kept {
			cfg := pop3.Config{Target: target, Socket: a.Timeouts.Socket}
			if m.leases.Needed() {
				mailbox := x.mailbox()
				cfg.Lease = func(ctx context.Context) (context.Context, func(), error) { return m.leases.POP3(ctx, mailbox) }
			}
			return pop3.NewKept(cfg, m.o.Now)
		})
		return &popBox{x, s}, err
	}
	p, err := keep(m, &a, func() *accountPool {
		cfg := imap.Config{Target: target, Socket: a.Timeouts.Socket, Outbox: policy.AllowsFolder}
		if policy.HidesFolders() {
			cfg.Hides = policy.HidesFolder
		}
		pool := imap.NewPool(imap.PoolOptions{Config: cfg, Sessions: m.o.SessionsPerAccount, Now: m.o.Now})
		return &accountPool{cfg: cfg, turn: make(chan struct{}, 1), Pool: pool, reads: reading.Queue{Pool: pool}}
	})
	if err == nil {
		x.Policy.OwnFolder = p.own.Own
	}
	return &imapBox{x, p}, err
}

// explain turns a failure of either protocol into an *Error.
func explain(e *mail.Error, at mail.Endpoint) {
	var w *wire.Error
	if !errors.As(e.Err, &w) {
		return
	}
	e.Explain(w, "The mail server", at)
	switch {
	case w.Kind == wire.KindRefused && errors.Is(w, imap.ErrSends):
		e.Kind, e.Advice, e.Message = mail.KindReadOnly, mail.AdviceSendInstead, "The server sends every message that is put into this folder, so nothing is put there."
	case w.Kind == wire.KindRefused && w.Code == "IN-USE":
		e.Advice, e.Message = mail.AdviceMailboxInUse, "Another program has the mailbox open."
	case w.Kind == wire.KindRefused && w.Permanent && (w.Stage == imap.StageExamine || w.Stage == imap.StageSelect):
		e.Kind, e.Advice, e.Message, e.Retryable = mail.KindNotFound, mail.AdviceFolders, "There is no such folder.", false
	case w.Kind == wire.KindRefused || w.Kind == wire.KindClosed || w.Kind == wire.KindAuth:
		e.Said(w.Text)
	}
}

// undecided is the error of a change that was cut off: whether it happened is unknown.
func (x *access) undecided(err error, message string, advice mail.Advice) error {
	e := *x.AsError(err)
	e.Message += " " + message
	e.Advice, e.Retryable, e.Unknown = advice, false, true
	return &e
}
