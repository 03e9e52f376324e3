package outbox

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/compose"
	"github.com/postern-mail/postern/mail/internal/rfc5322"
	"github.com/postern-mail/postern/mail/internal/smtp"
	"github.com/postern-mail/postern/mail/mailbox"
)

const (
	// attemptTime is how long one attempt may take, whatever the caller allows: the time that
	// RFC 5321 section 4.5.3.2 grants a server after the last byte, and time for the steps
	// before.
	attemptTime = 15 * time.Minute
	// leaseGrace is how long a lease lasts beyond its attempt, for the record of the outcome.
	leaseGrace = 30 * time.Second
	// recordTime is how long the record of an outcome may take. It does not end with the
	// caller's context.
	recordTime = 20 * time.Second
	// recordTries is how often a record that the store refuses is tried.
	recordTries = 3
)

// submission is a session with a submission server or with Microsoft Graph, after the login.
type submission interface {
	Extensions() []string
	Check(e smtp.Envelope, message []byte) error
	Send(ctx context.Context, e smtp.Envelope, message []byte) (*smtp.Receipt, error)
	Close() error
}

// lease returns until when an attempt that begins now holds its entry.
func (b *Outbox) lease(ctx context.Context, now time.Time) time.Time {
	left := attemptTime
	if d, ok := ctx.Deadline(); ok {
		left = max(0, min(left, time.Until(d)))
	}
	return now.Add(left + leaseGrace)
}

// deliver makes the attempt that holds the entry and records its outcome.
func (b *Outbox) deliver(ctx context.Context, op string, e mail.Outgoing, a attempt) (*mail.Outgoing, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	session, out, sendErr := b.transmit(ctx, op, &e, a)
	if session != nil {
		// Goodbye is said when everything is recorded: a server that keeps silent then
		// must not delay the record.
		defer func() { _ = session.Close() }()
	}
	kept, err := b.record(ctx, e.ID, func(e *mail.Outgoing) (bool, error) { return conclude(e, a, out, e.Sent, b.now()) })
	switch {
	case errors.Is(err, errNotHeld):
		return b.late(ctx, op, e.ID)
	case err != nil:
		// The store still has the state before: unknown after the gate; before it, a state in
		// which nothing left.
		b.o.Logger.LogAttrs(ctx, slog.LevelError, "outcome of an outgoing message could not be recorded", slog.String("id", e.ID), slog.String("account", e.Account))
		switch out.result {
		case resultAccepted:
			e.State, e.Code = mail.OutboxAccepted, out.code
			e.Reason = "The server took the message; this could not be recorded in the outbox."
			return &e, nil
		case resultUnknown:
			e.State, e.Code = mail.OutboxUnknown, out.code
			e.Reason = "Whether the server took the message is not known; this could not be recorded in the outbox."
			return &e, nil
		}
		return &e, errors.Join(sendErr, err)
	}
	b.log(ctx, "outgoing message tried", &kept)
	switch {
	case kept.State == mail.OutboxAccepted && kept.Attempt == a.id:
		kept = b.file(ctx, op, kept, a.id)
		b.fileOlder(ctx, op, &kept)
		b.markAnswered(ctx, &kept)
		return &kept, nil
	case kept.State == mail.OutboxAccepted, out.result == resultUnknown:
		return &kept, nil
	}
	return &kept, sendErr
}

// markAnswered marks the message that was answered as read and answered. The reply was sent:
// a failure is told in the entry and changes nothing else.
func (b *Outbox) markAnswered(ctx context.Context, e *mail.Outgoing) {
	parent, err := mail.ParseRef(e.ReplyTo)
	if err != nil || parent.Protocol != mail.IMAP || b.o.Mailboxes == nil {
		return
	}
	o := mail.Operation{Op: "mail flags", Account: e.Account}
	changed, err := b.o.Mailboxes.Do(ctx, mailbox.Batch{Op: o.Op, Account: e.Account, Refs: []mail.Ref{parent}, Action: mail.Action{Do: mail.DoFlags, Add: []string{`\Seen`, `\Answered`}}, Sent: true})
	switch {
	case err != nil:
		i := o.AsError(o.Wrap(ctx, err, nil)).Issue()
		e.Unmarked = &i
	case len(changed.Issues) > 0:
		e.Unmarked = &changed.Issues[0]
	default:
		return
	}
	e.Unmarked.MessageID, e.Unmarked.Message = e.ReplyTo, "The message that was answered could not be marked as answered: "+e.Unmarked.Message
}

// transmit goes to the wire, up to the answer. What it returns is not recorded yet.
func (b *Outbox) transmit(ctx context.Context, op string, e *mail.Outgoing, a attempt) (submission, outcome, error) {
	stays := func(err error) (submission, outcome, error) {
		return nil, outcome{result: resultNotSent, reason: reasonOf(err), stays: true}, err
	}
	message, err := b.bytes(ctx, op, e)
	if err != nil {
		return stays(err)
	}
	s, err := b.permitted(ctx, op, e)
	if err != nil {
		return stays(err)
	}
	if waits, asks := s.waitsStill(e); waits && e.Decided == "" {
		return nil, outcome{result: resultNotSent, waits: true, asks: asks}, nil
	}
	if message, err = s.asSubmitted(e, message); err != nil {
		return stays(err)
	}
	sending := unstoppable(ctx)
	session, err := b.dial(sending, s.Operation, &s.account)
	if err != nil {
		var known *mail.Error
		passing := errors.As(err, &known) && known.Retryable
		return nil, outcome{result: resultNotSent, reason: reasonOf(err), temporary: passing, stays: true}, err
	}
	tell := mail.Progress(ctx)
	sent := func(bytes int) { tell(float64(bytes), float64(len(message)), "bytes sent") }
	receipt, err := session.Send(sending, smtp.Envelope{From: e.From, Recipients: e.Recipients, SMTPUTF8: e.SMTPUTF8, Sent: sent, BeforeData: func() error {
		_, err := b.o.Store.ChangeOutgoing(ctx, e.ID, func(e *mail.Outgoing) (bool, error) { return false, pass(e, a, b.now()) })
		return err
	}}, message)
	if err == nil {
		return session, outcome{result: resultAccepted, code: receipt.Reply}, nil
	}
	f := failed(ctx, s.Operation, &s.account, err)
	if f.unknown {
		reason := "The connection ended before the server had answered to the end of the message."
		if f.code != 0 {
			reason = "The server answered to the end of the message, but not whether it took the message."
		}
		return session, outcome{result: resultUnknown, code: f.code, reason: reason}, f.err
	}
	var known *mail.Error
	out := outcome{result: resultNotSent, code: f.code, reason: reasonOf(f.err)}
	if errors.As(f.err, &known) {
		out.temporary, out.stays = known.Retryable, known.Kind == mail.KindAuth // a login is no matter of the message
	} else {
		out.stays = true // the store stopped it, not the server
	}
	return session, out, f.err
}

// asSubmitted is a message as it is handed over. Microsoft Graph takes recipients from the
// header alone, so those of hidden copies are put there, as in the copy for Sent; then the
// header has to name exactly whom the entry names, or it would go to others than the policy
// and a person allowed.
func (s *sender) asSubmitted(e *mail.Outgoing, message []byte) ([]byte, error) {
	if s.account.Submission != mail.SubmitGraph {
		return message, nil
	}
	message, err := compose.AddBCC(message, e.BCC)
	if err != nil {
		return nil, s.unbuildable(err)
	}
	var named []string
	h := rfc5322.ParseHeader(message)
	for _, field := range []string{"To", "Cc", "Bcc"} {
		if v := h.Values(field); len(v) == 1 && v[0] == compose.NoRecipients {
			continue
		}
		addrs, ok := h.StrictAddresses(field)
		if !ok || !h.Certain(field) {
			return nil, s.invalid("The recipients of the message cannot be told for certain from its header.", mail.AdviceChangeMessage, nil)
		}
		named = append(named, addrs...)
	}
	if !sameAddresses(named, e.Recipients) || len(h.Values("Resent-To"))+len(h.Values("Resent-Cc"))+len(h.Values("Resent-Bcc")) > 0 {
		return nil, s.invalid("The header of the message names other recipients than it is sent to.", mail.AdviceChangeMessage, nil)
	}
	return message, nil
}

// sameAddresses reports whether two lists have the same addresses in any order and number.
func sameAddresses(a, b []string) bool {
	set := func(list []string) (keys []string) {
		for _, s := range list {
			keys = append(keys, addressKey(s))
		}
		slices.Sort(keys)
		return slices.Compact(keys)
	}
	return slices.Equal(set(a), set(b))
}

// addressKey is an address as it is compared.
func addressKey(s string) string {
	if normal, ok := mail.NormalAddress(s); ok {
		return normal
	}
	return s
}

// unstoppable returns a context that ends with ctx, which has a deadline, but not because
// everything is stopped: a message that is leaving leaves whole, so that its outcome is known,
// and before that nothing passes the gate.
func unstoppable(ctx context.Context) context.Context {
	deadline, _ := ctx.Deadline()
	sending, end := context.WithDeadline(context.WithoutCancel(ctx), deadline)
	context.AfterFunc(ctx, func() {
		var stopped *mail.Stopped
		if !errors.As(context.Cause(ctx), &stopped) {
			end()
		}
	})
	return sending
}

// reasonOf is the reason that an entry keeps for a failure: the message of our own errors.
func reasonOf(err error) string {
	var known *mail.Error
	var refused *mail.SendRefused
	var stopped *mail.Stopped
	switch {
	case errors.As(err, &stopped):
		return "Everything was stopped before the message left."
	case errors.As(err, &known):
		return shortLine(known.Message, 1000)
	case errors.As(err, &refused):
		return shortLine(refused.Error(), 1000)
	case errors.Is(err, mail.ErrNoAccount):
		return "The account is gone."
	}
	return "Something here failed before the message left."
}

// bytes returns the message of an entry, when it is exactly what its digest names.
func (b *Outbox) bytes(ctx context.Context, op string, e *mail.Outgoing) ([]byte, error) {
	message, err := b.o.Store.OutgoingMessage(ctx, e.ID)
	if err != nil {
		return nil, wrapStore(ctx, op, err)
	}
	if compose.Digest(e.From, e.Recipients, message) != e.Digest {
		return nil, mail.Operation{Op: op, Account: e.Account}.Conflict("The message in the outbox was changed after it was put there; it is not sent.", mail.AdviceCancelAndResend)
	}
	return message, nil
}

// maySend checks that the policy lets a message go to all of these, and that there is something to
// send it with.
func (b *Outbox) maySend(s *sender, recipients []string) error {
	if err := s.policy.CheckSend(recipients); err != nil {
		return err
	}
	return canSubmit(s.Operation, &s.account, b.o.Credentials)
}

// permitted checks a message again by the policy as it is now: its submission may be days
// ago, if a person took them.
func (b *Outbox) permitted(ctx context.Context, op string, e *mail.Outgoing) (*sender, error) {
	s, err := b.sender(ctx, op, e.Account)
	if err != nil {
		return nil, err
	}
	if err := b.maySend(s, e.Recipients); err != nil {
		return nil, err
	}
	if !s.policy.Owns(e.From) {
		return nil, s.Conflict("The account's address has changed since the message was written.", mail.AdviceCancelAndResend)
	}
	return s, nil
}

// record makes an outcome durable, without the caller's context.
func (b *Outbox) record(ctx context.Context, id string, conclude func(*mail.Outgoing) (drop bool, err error)) (kept mail.Outgoing, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	for range recordTries {
		kept, err = b.o.Store.ChangeOutgoing(ctx, id, conclude)
		if err == nil || errors.Is(err, errNotHeld) || errors.Is(err, mail.ErrNoOutgoing) || ctx.Err() != nil {
			break
		}
	}
	return kept, err
}

// rehearse goes to the server and back with a message.
func (b *Outbox) rehearse(ctx context.Context, s *sender, e *mail.Outgoing, message []byte) error {
	message, err := s.asSubmitted(e, message)
	if err != nil {
		return err
	}
	session, err := b.dial(ctx, s.Operation, &s.account)
	if err != nil {
		return err
	}
	defer func() { _ = session.Close() }()
	if err := session.Check(smtp.Envelope{From: e.From, Recipients: e.Recipients, SMTPUTF8: e.SMTPUTF8}, message); err != nil {
		return failed(context.Background(), s.Operation, &s.account, err).err
	}
	return nil
}

// Approve sends a message, or deletes or changes messages, as a person approved, in this call. digest has to be the Digest
// of the entry, as Show gives it, and of the bytes and the envelope that leave; else the
// error is KindConflict. by names the person.
//
// It sends an entry that waits, one that is queued because the process that sent it ended
// before it left, and one that is unknown, which may then arrive twice, once no
// attempt can be under way any more. For an accepted entry it files the copy and removes the
// draft if that is still to be done. The results are those of Send. An entry that could not be sent for a
// reason that may pass, or that the policy does not allow now, stays what it was.
func (b *Outbox) Approve(ctx context.Context, id, digest, by string) (*mail.Outgoing, error) {
	const op = "outbox approve"
	e, err := b.o.Store.Outgoing(ctx, id)
	if err != nil {
		return nil, wrapStore(ctx, op, err)
	}
	o := mail.Operation{Op: op, Account: e.Account}
	if digest == "" || digest != e.Digest {
		return nil, o.Conflict("The digest is not that of the entry; nothing is done.", mail.AdviceApproveDigest).About(e.ID)
	}
	switch step, err := b.next(o, &e); {
	case err != nil:
		e = present(e, b.now())
		return &e, err
	case step == StepFinish:
		return b.fileAgain(ctx, op, e), nil
	}
	// Before the entry is claimed: what cannot be done does not count as an attempt.
	if w := workOf(e.Kind); w != nil {
		err = w.unchanged(op, &e)
	} else {
		_, err = b.permitted(ctx, op, &e)
	}
	if err != nil {
		return &e, err
	}
	return b.attempt(ctx, op, id, func(e *mail.Outgoing) error {
		if e.Digest != digest {
			return errNotHeld
		}
		e.Decided = by
		return nil
	})
}

// attempt claims an entry that change lets be sent, and sends it, or carries it out. From the
// claim of a deletion or a plan on the entry says that it may have happened, whatever ends this
// process.
func (b *Outbox) attempt(ctx context.Context, op, id string, change func(*mail.Outgoing) error) (*mail.Outgoing, error) {
	var a attempt
	now := b.now()
	until := b.lease(ctx, now)
	kept, err := b.o.Store.ChangeOutgoing(ctx, id, func(e *mail.Outgoing) (_ bool, err error) {
		if err = change(e); err == nil {
			a, err = claim(e, newName(), now, until)
		}
		if err == nil && workOf(e.Kind) != nil {
			err = pass(e, a, now)
		}
		return false, err
	})
	switch {
	case err == nil && workOf(kept.Kind) != nil:
		return b.carryOut(ctx, op, kept, a)
	case err == nil:
		return b.deliver(ctx, op, kept, a)
	case errors.Is(err, errBusy), errors.Is(err, errNotHeld), errors.Is(err, errOver):
		return b.late(ctx, op, id)
	}
	return nil, wrapStore(ctx, op, err)
}
