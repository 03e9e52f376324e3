package outbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/postern-mail/postern/mail"
)

// Request is one message to send.
type Request struct {
	Draft Draft
	// Stored is a draft of the account's mailbox, which is sent as it stands in place of Draft,
	// and removed from there when the server took it. Its id serves as the key, whoever
	// sends it, so that it leaves once; Key is empty then. nil for none.
	Stored *mail.Ref
	// Key is an idempotency key of the principal's, 1 to 128 visible ASCII
	// characters: however often the same request is made with it, the message leaves
	// once. It is forgotten KeepOutgoing after the entry has ended. Empty means none.
	Key       string
	Principal string // the caller
}

// MaxKeyChars bounds an idempotency key.
const MaxKeyChars = 128

// Limited says that a principal has sent too many messages, and that nothing was sent.
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
// request may work later. With a key, a failure that may pass leaves the entry queued, and
// the same request sends it.
//
// A request whose Key has an entry already sends nothing, unless that entry is queued
// and no attempt is under way: the entry is returned as it stands, with Replayed, if
// the request is the same, and KindConflict if it is another. Neither is charged.
// While another command is sending it the error is a KindConflict that is Retryable.
func (b *Outbox) Send(ctx context.Context, account string, r Request) (*mail.Outgoing, error) {
	p, err := b.prepare(ctx, account, r, false)
	switch {
	case err != nil:
		return nil, err
	case p.repeats:
		return b.repeated(ctx, p.sender, *p.entry, p.request, false)
	}
	return b.submit(ctx, p)
}

// Foresee says what Send would do with a request, without an ID. It does the same up to the login
// at the submission server and the check of its announced limits, or offline without a word to that
// server; it sends and keeps nothing and charges nothing. The Decision is never nil: with an error
// it is the entry that the Key has already, if there is one.
func (b *Outbox) Foresee(ctx context.Context, account string, r Request, offline bool) (*Decision, error) {
	d := &Decision{}
	p, err := b.prepare(ctx, account, r, true)
	if err != nil {
		return d, err
	}
	if p.repeats {
		e, err := b.repeated(ctx, p.sender, *p.entry, p.request, true)
		if e != nil {
			d.Outgoing = *e
		}
		return d, err
	}
	if err = b.take(ctx, r.Principal, false); err != nil {
		return d, wrapStore(ctx, p.sender.Op, err)
	}
	if !offline {
		err = b.rehearse(ctx, p.sender, p.entry, p.message)
	}
	if err == nil {
		d.Outgoing = *p.entry
		d.ID = ""
	}
	return d, err
}

// prepared is a message as it would leave and as it was judged, or the entry that its key has.
type prepared struct {
	sender  *sender
	entry   *mail.Outgoing
	message []byte
	repeats bool   // the key has an entry
	request string // digest of the request
}

// prepare writes the message of a request, and judges it.
func (b *Outbox) prepare(ctx context.Context, account string, r Request, dry bool) (*prepared, error) {
	const op = "mail send"
	s, err := b.sender(ctx, op, account)
	if err != nil {
		return nil, err
	}
	l, err := s.read(&r.Draft)
	if err != nil {
		return nil, err
	}
	request, named, by := l.digest(account), r.Key, r.Principal
	switch {
	case r.Stored == nil && (len(named) > MaxKeyChars || strings.ContainsFunc(named, func(r rune) bool { return r <= ' ' || r >= 0x7f })):
		return nil, s.Invalid("An idempotency key has 1 to 128 visible ASCII characters.", mail.AdviceKeyForm)
	case r.Stored != nil && (r.Stored.Account != account || r.Stored.UIDValidity == 0):
		return nil, s.Invalid("The draft is in another account, or its id is not whole.", mail.AdviceListDrafts)
	case r.Stored != nil:
		// A server never changes the bytes of a draft, so that its reference stands for them,
		// whoever sends it. No key of a principal has a space.
		request, named, by = "draft", "draft "+r.Stored.String(), ""
	}
	key, left, err := b.names(ctx, s, by, named, request)
	if err != nil {
		return nil, err
	}
	if e, found, err := b.byKey(ctx, account, key); err != nil {
		return nil, wrapStore(ctx, op, err)
	} else if found {
		return &prepared{sender: s, entry: &e, repeats: true, request: request}, nil
	}
	d := &r.Draft
	if r.Stored != nil {
		stored, err := b.storedDraft(ctx, s, *r.Stored)
		if err != nil {
			return nil, err
		}
		d = stored.draft()
	} else if err := b.fill(ctx, s, d); err != nil {
		return nil, err
	}
	if l, err = s.read(d); err != nil { // with whom the message adds that is answered
		return nil, err
	}
	if len(l.recipients) == 0 {
		return nil, &mail.SendRefused{Reason: mail.ReasonAddress}
	}
	if err := b.maySend(s, l.recipients); err != nil {
		return nil, err
	}
	e, message, err := b.build(ctx, s, l, left)
	if err != nil {
		return nil, err
	}
	e.Request, e.Key, e.Principal = request, key, r.Principal
	leaves := sync.OnceValue(func() *content { return contentOf(message) })
	if err := b.judge(ctx, s, l, e, leaves, dry); err != nil {
		return nil, wrapStore(ctx, op, err)
	}
	return &prepared{sender: s, entry: e, message: message, request: request}, nil
}

// submit puts a message into the outbox, and sends it unless it waits there.
func (b *Outbox) submit(ctx context.Context, p *prepared) (*mail.Outgoing, error) {
	var a attempt
	if p.entry.State == mail.OutboxQueued {
		now := b.now()
		var err error
		if a, err = claim(p.entry, newName(), now, b.lease(ctx, now)); err != nil {
			return nil, err
		}
	}
	kept, added, err := b.admit(ctx, p.entry, p.message)
	switch {
	case err != nil:
		return nil, wrapStore(ctx, p.sender.Op, err)
	case !added: // another command was first
		return b.repeated(ctx, p.sender, kept, p.request, false)
	case kept.State == mail.OutboxWaiting:
		b.log(ctx, "outgoing message waits for a person", &kept)
		return &kept, nil
	}
	return b.deliver(ctx, p.sender.Op, kept, a)
}

// byKey finds the entry of a key; there is none without a key.
func (b *Outbox) byKey(ctx context.Context, account, key string) (e mail.Outgoing, found bool, err error) {
	if key == "" {
		return e, false, nil
	}
	e, err = b.o.Store.OutgoingByKey(ctx, account, key)
	if errors.Is(err, mail.ErrNoOutgoing) {
		return e, false, nil
	}
	return e, err == nil, err
}

// take charges a send, or says without a charge whether it could be charged.
func (b *Outbox) take(ctx context.Context, principal string, charge bool) error {
	if b.o.Take == nil {
		return nil
	}
	wait, err := b.o.Take(ctx, principal, charge)
	if err == nil && wait > 0 {
		err = &Limited{Wait: wait}
	}
	return err
}

// admit charges a message and adds it, unless its key has an entry by now. One request goes
// after the other, so that of several with one key only one is charged.
func (b *Outbox) admit(ctx context.Context, e *mail.Outgoing, message []byte) (kept mail.Outgoing, added bool, err error) {
	if err := b.admitting.Acquire(ctx, 1); err != nil {
		return kept, false, err
	}
	defer b.admitting.Release(1)
	if kept, found, err := b.byKey(ctx, e.Account, e.Key); found || err != nil {
		return kept, false, err
	}
	if err := b.take(ctx, e.Principal, true); err != nil {
		return kept, false, err
	}
	return b.o.Store.AddOutgoing(ctx, *e, message)
}

// repeated answers a request whose key has an entry already.
func (b *Outbox) repeated(ctx context.Context, s *sender, e mail.Outgoing, request string, dry bool) (*mail.Outgoing, error) {
	if e.Request != request {
		return nil, s.Conflict("The idempotency key was used before for another message; nothing is sent.", mail.AdviceOtherKey).About(e.ID)
	}
	e.Replayed = true
	switch {
	case e.State == mail.OutboxAccepted && unfinished(&e) && !dry:
		return b.fileAgain(ctx, s.Op, e), nil
	case e.State == mail.OutboxWaiting, e.State == mail.OutboxUnknown && e.Settled:
		return &e, nil
	case e.State != mail.OutboxQueued || busy(&e, b.now()):
		return b.latest(s.Operation, e)
	}
	return b.resume(ctx, s, e, dry)
}

// resume goes on with an entry that is queued and has not left.
func (b *Outbox) resume(ctx context.Context, s *sender, e mail.Outgoing, dry bool) (*mail.Outgoing, error) {
	if err := s.policy.CheckSend(e.Recipients); err != nil {
		return &e, err
	}
	waits, asks := s.waitsStill(&e)
	queued := func(e *mail.Outgoing) error {
		if e.State != mail.OutboxQueued {
			return errNotHeld
		}
		return nil
	}
	switch {
	case dry && waits:
		e.Wait(asks...)
		return &e, nil
	case dry:
		return &e, nil
	case !waits:
		return b.attempt(ctx, s.Op, e.ID, queued)
	}
	now := b.now()
	kept, err := b.o.Store.ChangeOutgoing(ctx, e.ID, func(e *mail.Outgoing) (bool, error) {
		if busy(e, now) || queued(e) != nil {
			return false, errNotHeld
		}
		release(e, now)
		e.Wait(asks...)
		return false, nil
	})
	if errors.Is(err, errNotHeld) {
		return b.late(ctx, s.Op, e.ID)
	}
	if err != nil {
		return nil, wrapStore(ctx, s.Op, err)
	}
	return &kept, nil
}

// late answers a command that another command overtook, with the entry as that one left it.
func (b *Outbox) late(ctx context.Context, op, id string) (*mail.Outgoing, error) {
	e, err := b.o.Store.Outgoing(ctx, id)
	if err != nil {
		return nil, wrapStore(ctx, op, err)
	}
	e.Replayed = true
	return b.latest(mail.Operation{Op: op, Account: e.Account}, e)
}

// latest returns an entry as it is now, with the error that says why it is not sent.
func (b *Outbox) latest(o mail.Operation, e mail.Outgoing) (*mail.Outgoing, error) {
	_, err := b.next(o, &e)
	switch {
	case e.State == mail.OutboxAccepted:
		err = nil
	case err == nil && e.State == mail.OutboxQueued:
		err = notSent(o, &e)
	}
	return &e, err
}

func underWay(o mail.Operation, e *mail.Outgoing) error {
	doing := "sending the message"
	if w := workOf(e.Kind); w != nil {
		doing = w.doing
	}
	err := o.Conflict("Another command may be "+doing+" at this moment, until "+e.Until.Format("15:04:05")+" UTC at the latest.", mail.AdviceShowEntry).About(e.ID)
	err.Retryable = true
	return err
}

// notSent says why an entry is not sent.
func notSent(o mail.Operation, e *mail.Outgoing) error {
	anew := mail.AdviceSendAnew
	if e.Draft != "" {
		anew = mail.AdviceChangeDraft
	}
	if w := workOf(e.Kind); w != nil {
		is := string(e.State)
		if e.Settled {
			is = "closed"
		}
		return o.Conflict("The "+w.noun+" is "+is+"; nothing more is "+w.did+".", mail.AdviceShowEntry).About(e.ID)
	}
	switch e.State {
	case mail.OutboxUnknown:
		return o.Conflict("It is not known whether the message left, and a person decided to leave it; it is not sent again.", anew)
	case mail.OutboxRefused, mail.OutboxQueued:
		err := o.Failure(mail.KindRefused, "", "Nothing was sent. "+e.Reason, anew)
		err.Foreign = true
		err.Retryable = e.Temporary
		return err
	}
	why := ""
	if e.State == mail.OutboxRejected && e.Reason != "" {
		why = " The person said: " + e.Reason
	}
	return o.Conflict("The message was "+string(e.State)+" and is not sent."+why, anew)
}
