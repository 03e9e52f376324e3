package outbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/postern-mail/postern/mail"
)

// Request is one message to send.
type Request struct {
	Draft Draft
	// Key is an idempotency key of the principal's, 1 to 128 visible ASCII
	// characters: however often the same request is made with it, the message leaves
	// once. It is forgotten KeepOutgoing after the entry has ended. Empty means none.
	Key       string
	DryRun    bool   // everything but the sending; see Send
	Principal string // who asks
}

// MaxKeyChars bounds an idempotency key.
const MaxKeyChars = 128

// Limited says that a principal has sent too much, and that nothing was sent
// now.
type Limited struct {
	Wait time.Duration // until the next send may be tried; more than 0
}

func (e *Limited) Error() string {
	return fmt.Sprintf("nothing is sent: too many messages were sent; the next can be sent in %s", e.Wait.Round(time.Second))
}

// Send sends a message, or puts it in the outbox for a person where the account's
// mode says so (000 sections 7.1 and 9). The error is nil only when the entry is
//
//   - accepted: the submission server has it;
//   - waiting: nothing left, a person has to approve it;
//   - unknown: the last byte may have left and no answer came back. It is not sent
//     again.
//
// With any other outcome there is an error, and besides it the entry if one was
// made: refused, or queued, which means that nothing left. An entry without a key
// ends refused whatever the reason was, and Temporary tells whether the same
// request may work later. With a key, what may pass leaves the entry queued, and
// the same request sends it.
//
// A request whose Key there is already sends nothing, unless that entry is queued
// and nobody is sending it: the entry is returned as it stands, with Replayed, if
// the request is the same, and KindConflict if it is another. Neither is charged.
// Whoever asks while another command is sending it gets a KindConflict that is
// Retryable.
//
// A dry run does the same up to the login at the submission server and what that
// server announces, sends and keeps nothing and charges nothing. Its entry has no ID; State is what it would begin as.
func (b *Outbox) Send(ctx context.Context, account string, r Request) (*mail.Outgoing, error) {
	const op = "mail send"
	s, err := b.sender(ctx, op, account)
	if err != nil {
		return nil, err
	}
	l, err := s.read(&r.Draft)
	if err != nil {
		return nil, err
	}
	if len(l.recipients) == 0 {
		return nil, &mail.SendRefused{Reason: mail.ReasonAddress}
	}
	request := l.digest(account)
	names, err := b.names(ctx, op, account, r.Principal, r.Key, request)
	if err != nil {
		return nil, err
	}
	// Those who ask in this process with one key at a time go on one by one, so that
	// only the one that makes the entry is charged for it.
	unlock := b.keys.lock(ctx, account+" "+names.key, names.key != "")
	defer unlock()
	if names.key != "" {
		e, err := b.o.Store.OutgoingByKey(ctx, account, names.key)
		if err == nil {
			unlock()
			return b.again(ctx, s, e, request, r.DryRun)
		}
		if !errors.Is(err, mail.ErrNoOutgoing) {
			return nil, wrapStore(ctx, op, err)
		}
	}
	if err := s.policy.CheckSend(l.recipients); err != nil {
		return nil, err
	}
	if err := s.canSubmit(b.o.Credentials); err != nil {
		return nil, err
	}
	e, message, err := b.build(ctx, s, l, names)
	if err != nil {
		return nil, err
	}
	e.Request, e.Key, e.Principal = request, names.key, r.Principal
	e.State = mail.OutboxQueued
	if s.policy.NeedsApproval() {
		e.State = mail.OutboxWaiting
	}
	if b.o.Take != nil {
		wait, err := b.o.Take(ctx, r.Principal, !r.DryRun)
		if err != nil {
			return nil, wrapStore(ctx, op, err)
		}
		if wait > 0 {
			return nil, &Limited{Wait: wait}
		}
	}
	if r.DryRun {
		return b.rehearse(ctx, s, e, message)
	}
	var a attempt
	if e.State == mail.OutboxQueued {
		now := b.now()
		if a, err = claim(e, newAttempt(), now, b.lease(ctx, now)); err != nil {
			return nil, err
		}
	}
	kept, added, err := b.o.Store.AddOutgoing(ctx, *e, message)
	if err != nil {
		return nil, wrapStore(ctx, op, err)
	}
	unlock()
	switch {
	case !added: // another process was first
		return b.again(ctx, s, kept, request, false)
	case kept.State == mail.OutboxWaiting:
		b.log(ctx, "outgoing message waits for a person", &kept)
		return &kept, nil
	}
	return b.deliver(ctx, op, kept, a)
}

// again answers a request whose key there is already.
func (b *Outbox) again(ctx context.Context, s *sender, e mail.Outgoing, request string, dry bool) (*mail.Outgoing, error) {
	if e.Request != request {
		return nil, s.Conflict("The idempotency key was used before for another message; nothing is sent.", mail.AdviceOtherKey).About(e.ID)
	}
	e.Replayed = true
	now := b.now()
	switch {
	case e.State == mail.OutboxAccepted && outstanding(e.Sent) && !dry:
		return b.fileAgain(ctx, s.Op, e), nil
	case e.State == mail.OutboxAccepted, e.State == mail.OutboxWaiting:
		return &e, nil
	case busy(&e, now):
		return &e, underWay(s.Operation, &e)
	case e.State == mail.OutboxUnknown:
		return &e, nil
	case e.State != mail.OutboxQueued:
		return &e, notSent(s.Operation, &e)
	case dry:
		return &e, nil
	}
	return b.resume(ctx, s, e)
}

// resume goes on with an entry that is queued and has not left.
func (b *Outbox) resume(ctx context.Context, s *sender, e mail.Outgoing) (*mail.Outgoing, error) {
	if err := s.policy.CheckSend(e.Recipients); err != nil {
		return &e, err
	}
	var a attempt
	now := b.now()
	until := b.lease(ctx, now)
	kept, err := b.o.Store.ChangeOutgoing(ctx, e.ID, func(e *mail.Outgoing) (bool, error) {
		var err error
		switch {
		case busy(e, now):
			return false, errBusy
		case e.State != mail.OutboxQueued:
			return false, errNotHeld
		case s.policy.NeedsApproval():
			e.State = mail.OutboxWaiting
			release(e, now)
		default:
			a, err = claim(e, newAttempt(), now, until)
		}
		return false, err
	})
	switch {
	case errors.Is(err, errBusy), errors.Is(err, errNotHeld):
		return b.standing(ctx, s.Op, e.ID)
	case err != nil:
		return nil, wrapStore(ctx, s.Op, err)
	case kept.State == mail.OutboxWaiting:
		return &kept, nil
	}
	return b.deliver(ctx, s.Op, kept, a)
}

// standing is the answer of who comes too late: the entry as somebody else has it.
func (b *Outbox) standing(ctx context.Context, op, id string) (*mail.Outgoing, error) {
	e, err := b.o.Store.Outgoing(ctx, id)
	if err != nil {
		return nil, wrapStore(ctx, op, err)
	}
	e.Replayed = true
	o := mail.Operation{Op: op, Account: e.Account}
	switch {
	case e.State == mail.OutboxAccepted, e.State == mail.OutboxWaiting && !busy(&e, b.now()):
		return &e, nil
	case busy(&e, b.now()):
		return &e, underWay(o, &e)
	case e.State == mail.OutboxUnknown && !e.Settled:
		return &e, nil
	}
	return &e, notSent(o, &e)
}

func underWay(o mail.Operation, e *mail.Outgoing) error {
	err := o.Conflict("Another command may be sending the message at this moment, until "+e.Until.Format("15:04:05")+" UTC at the latest.", mail.AdviceShowOutcome).About(e.ID)
	err.Retryable = true
	return err
}

// notSent says why an entry is not sent that was to be sent.
func notSent(o mail.Operation, e *mail.Outgoing) error {
	switch e.State {
	case mail.OutboxUnknown:
		return o.Conflict("It is not known whether the message left, and a person has let it rest; it is not sent again.", mail.AdviceSendAnew)
	case mail.OutboxRefused, mail.OutboxQueued:
		err := o.Failure(mail.KindRefused, "", "Nothing was sent. "+e.Reason, mail.AdviceSendAnew)
		err.Retryable = e.Temporary
		return err
	}
	return o.Conflict("The message was "+string(e.State)+" and is not sent.", mail.AdviceSendAnew)
}

// keyLocks lets those pass one by one who name the same thing. Its zero value is
// ready.
type keyLocks struct {
	mu   sync.Mutex
	held map[string]*keyLock
}

type keyLock struct {
	place chan struct{}
	users int
}

// lock waits for its turn, or for the end of ctx; what follows then fails by
// itself. unlock may be called more than once.
func (k *keyLocks) lock(ctx context.Context, name string, wanted bool) (unlock func()) {
	if !wanted {
		return func() {}
	}
	k.mu.Lock()
	if k.held == nil {
		k.held = make(map[string]*keyLock)
	}
	l := k.held[name]
	if l == nil {
		l = &keyLock{place: make(chan struct{}, 1)}
		k.held[name] = l
	}
	l.users++
	k.mu.Unlock()
	got := false
	select {
	case l.place <- struct{}{}:
		got = true
	case <-ctx.Done():
	}
	return sync.OnceFunc(func() {
		if got {
			<-l.place
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		if l.users--; l.users == 0 {
			delete(k.held, name)
		}
	})
}
