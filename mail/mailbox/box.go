package mailbox

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/cursor"
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
}

func (x *access) base() *access { return x }

// box is an account's mailbox by the protocol it is read with, and what every protocol has.
// What some lack is in the interfaces below; see with.
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

// searcher is a box whose server searches.
type searcher interface {
	box
	// search fills in what matches in the account, from the places on where it was left.
	search(ctx context.Context, q *SearchQuery, at []cursor.Place, out *matches) error
	// withID is Client.Named.
	withID(ctx context.Context, id string) mail.Ref
	// recent gives the headers of the newest messages of INBOX, of those whose From has some
	// text where it is not empty, whatever the policy hides.
	recent(ctx context.Context, from string) ([]fetch.Message, error)
}

// notifier is a box that tells of mail when it comes.
type notifier interface {
	box
	watch(ctx context.Context, q *WatchQuery) (*WatchPage, error)
}

// changer is a box whose messages can be changed, and into which messages can be put.
type changer interface {
	box
	// changes are those of the messages named, which are all in one folder.
	changes(of Batch) (changes, error)
	// file puts a message into the folder of its role, see Client.File; put one into any folder
	// that mayTake allows, and gives its reference where the server tells it.
	file(ctx context.Context, own *OwnMessage) (*Placed, error)
	put(ctx context.Context, folder string, flags []string, date time.Time, source []byte) (mail.Ref, error)
	mayTake(ctx context.Context, folder string) error
	draft(ctx context.Context, ref mail.Ref) (*StoredDraft, error)
	// matching is Client.Select.
	matching(ctx context.Context, q *SearchQuery, do mail.Action) (*Selection, error)
}

// changes are what can be done to some messages of one folder. The methods of Client say more.
type changes interface {
	base() *access
	do(ctx context.Context) (*Changed, error)
	copyTo(ctx context.Context, to changer, folder string) (*Changed, error)
	delete(ctx context.Context) (*Changed, error)
	shown(ctx context.Context) ([]Summary, error)
	removeDraft(ctx context.Context) (*Changed, error)
	selected(ctx context.Context) (*Selection, error)
}

var (
	_ interface {
		searcher
		notifier
		changer
	} = (*imapBox)(nil)
	_ box = (*popBox)(nil)
)

// with opens an account whose box is a B. Of another one lacks says what its protocol has not,
// and advice what to do instead.
func with[B box](ctx context.Context, m *Client, op, account, lacks string, advice mail.Advice) (found B, err error) {
	b, err := m.open(ctx, op, account)
	if err != nil {
		return found, err
	}
	found, ok := b.(B)
	if !ok {
		err = b.base().lacks(lacks, advice)
	}
	return found, err
}

// lacks is the error of a command that needs something the account's protocol has not.
func (x *access) lacks(what string, advice mail.Advice) error {
	return x.Unsupported("The account is read with "+strings.ToUpper(string(x.account.Protocol))+", which has "+what+".", advice)
}

// imapBox is box for IMAP.
type imapBox struct {
	*access
	pool *accountPool
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
	x := &access{Viewer: reading.Viewer{Operation: o, Policy: reading.Judge{Policy: policy}, Now: m.o.Now, Memory: &m.memory, Work: visible.NewWork(ctx), Tell: mail.Progress(ctx)}, m: m, account: a}
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

// undecided is the error of a change that was cut off: whether it happened is unknown, unless a
// stop kept the command back.
func (x *access) undecided(err error, message string, advice mail.Advice) error {
	e := *x.AsError(err)
	if e.Kind == mail.KindStopped {
		return &e
	}
	e.Message += " " + message
	e.Advice, e.Retryable, e.Unknown = advice, false, true
	return &e
}
