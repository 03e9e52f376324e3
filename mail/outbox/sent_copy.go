package outbox

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/compose"
	"github.com/postern-mail/postern/mail/mailbox"
)

// selfFiling reports whether a submission server files each message in the sender's own
// folder, so that a copy of ours would be a second one. On this machine another server may
// listen than that of the provider.
func selfFiling(host string) bool {
	return host == "outlook.office365.com" || slices.ContainsFunc(mail.Providers(), func(p mail.Provider) bool {
		return p.FilesSent && p.SMTP.Host == host && !p.SMTP.Loopback()
	})
}

// wantsCopy is the state of the copy as far as it is known before the copy is tried.
func (s *sender) wantsCopy(mailboxes bool) mail.SentState {
	host := strings.ToLower(strings.TrimSuffix(s.account.SMTP.Host, "."))
	switch {
	case s.account.SentCopy == mail.SentNever || s.account.Protocol != mail.IMAP || !mailboxes:
		return mail.SentNone
	case s.account.SentCopy != mail.SentAlways && (s.account.Submission == mail.SubmitGraph || selfFiling(host)):
		return mail.SentProvider
	}
	return mail.SentPending
}

// outstanding reports whether the copy is still to be filed.
func outstanding(s mail.SentState) bool { return s == mail.SentPending || s == mail.SentFailed }

// unfinished reports whether something is still to be done after a message was accepted: its
// copy is to be filed, or its draft removed.
func unfinished(e *mail.Outgoing) bool { return outstanding(e.Sent) || e.Draft != "" }

// file files the copy of a message that was accepted, then removes the draft that it was,
// under the lease named attempt, and records the outcome. It never changes that the message
// was sent; its failures are in the entry.
func (b *Outbox) file(ctx context.Context, op string, e mail.Outgoing, attempt string) mail.Outgoing {
	if outstanding(e.Sent) {
		e.Sent, e.Reason = b.fileCopy(ctx, op, &e)
	}
	sent, reason := e.Sent, e.Reason
	draft, left := b.removeDraft(ctx, op, &e)
	recording, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	kept, err := b.o.Store.ChangeOutgoing(recording, e.ID, func(e *mail.Outgoing) (bool, error) {
		if e.Attempt != attempt || e.State != mail.OutboxAccepted {
			return false, errNotHeld
		}
		release(e, b.now())
		e.Sent, e.Reason, e.Draft = sent, reason, draft
		return !outstanding(sent), nil
	})
	if err != nil {
		kept = e // the next to look finds the copy where it is
	}
	kept.Replayed, kept.DraftLeft = e.Replayed, left
	b.log(recording, "copy of an outgoing message tried", &kept)
	return kept
}

func (b *Outbox) fileCopy(ctx context.Context, op string, e *mail.Outgoing) (mail.SentState, string) {
	const failed = "The message was sent. Its copy could not be filed: "
	s, err := b.sender(ctx, op, e.Account)
	if err != nil {
		return mail.SentFailed, failed + reasonOf(err)
	}
	if now := s.wantsCopy(b.o.Mailboxes != nil); now != mail.SentPending {
		return now, "" // the account was changed meanwhile
	}
	message, err := b.bytes(ctx, op, e)
	if err != nil {
		return mail.SentFailed, failed + reasonOf(err)
	}
	if message, err = compose.AddBCC(message, e.BCC); err != nil {
		return mail.SentFailed, failed + "it could not be written."
	}
	_, err = b.o.Mailboxes.File(ctx, op, e.Account, &mailbox.OwnMessage{Role: "sent", Flags: []string{`\Seen`}, Date: e.Created,
		Source: message, Once: e.MessageID, UnlessFiled: s.account.SentCopy != mail.SentAlways})
	switch {
	case errors.Is(err, mailbox.ErrNoRole):
		return mail.SentNone, ""
	case errors.Is(err, mailbox.ErrSelfFiling):
		return mail.SentProvider, ""
	case err != nil:
		return mail.SentFailed, shortLine(failed+reasonOf(err), 1000)
	}
	return mail.SentFiled, ""
}

// fileAgain tries to do what is unfinished, unless another command does.
func (b *Outbox) fileAgain(ctx context.Context, op string, e mail.Outgoing) *mail.Outgoing {
	if b.o.Mailboxes == nil {
		return &e
	}
	attempt, now := newName(), b.now()
	until := b.lease(ctx, now)
	kept, err := b.o.Store.ChangeOutgoing(ctx, e.ID, func(e *mail.Outgoing) (bool, error) {
		if e.State != mail.OutboxAccepted || !unfinished(e) {
			return false, errOver
		}
		if busy(e, now) {
			return false, errBusy
		}
		e.Attempt, e.Until = attempt, until
		return false, nil
	})
	if err != nil {
		return &e // it is as it was, and the message was sent
	}
	kept.Replayed = e.Replayed
	kept = b.file(ctx, op, kept, attempt)
	return &kept
}

// fileOlder finishes one message that an earlier send did not, now that the account's mailbox
// has just taken a copy: so a copy is not lost with the process.
func (b *Outbox) fileOlder(ctx context.Context, op string, filed *mail.Outgoing) {
	if filed.Sent != mail.SentFiled || ctx.Err() != nil {
		return
	}
	entries, _, err := b.o.Store.ListOutgoing(ctx, mail.OutboxQuery{Account: filed.Account, States: []mail.OutboxState{mail.OutboxAccepted}, Limit: mail.DefaultOutboxLimit})
	if err != nil {
		return
	}
	for _, e := range entries {
		if unfinished(&e) && !busy(&e, b.now()) && b.now().Sub(e.Changed) < mail.KeepOutgoingMessage {
			b.fileAgain(ctx, op, e)
			return
		}
	}
}
