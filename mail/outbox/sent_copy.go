package outbox

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/compose"
	"github.com/postern-mail/postern/mail/internal/rfc5322"
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
	case s.account.SentCopy != mail.SentAlways && selfFiling(host):
		return mail.SentProvider
	}
	return mail.SentPending
}

// outstanding reports whether the copy is still to be filed.
func outstanding(s mail.SentState) bool { return s == mail.SentPending || s == mail.SentFailed }

// file files the copy of a message that was accepted, under the lease named attempt, and
// records the outcome. It never changes that the message was sent; its failures are in the
// entry.
func (b *Outbox) file(ctx context.Context, op string, e mail.Outgoing, attempt string) mail.Outgoing {
	sent, reason := b.fileCopy(ctx, op, &e)
	recording, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	kept, err := b.o.Store.ChangeOutgoing(recording, e.ID, func(e *mail.Outgoing) (bool, error) {
		if e.Attempt != attempt || e.State != mail.OutboxAccepted {
			return false, errNotHeld
		}
		release(e, b.now())
		e.Sent, e.Reason = sent, reason
		return !outstanding(sent), nil
	})
	if err != nil {
		e.Sent, e.Reason = sent, reason // the next to look finds the copy where it is
		kept = e
	}
	kept.Replayed = e.Replayed
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

// fileAgain tries to file a copy that is missing, unless another command does.
func (b *Outbox) fileAgain(ctx context.Context, op string, e mail.Outgoing) *mail.Outgoing {
	if b.o.Mailboxes == nil {
		return &e
	}
	attempt, now := newName(), b.now()
	until := b.lease(ctx, now)
	kept, err := b.o.Store.ChangeOutgoing(ctx, e.ID, func(e *mail.Outgoing) (bool, error) {
		if e.State != mail.OutboxAccepted || !outstanding(e.Sent) {
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

// fileOlder files one copy that an earlier send did not, now that the account's mailbox has
// just taken one: so a copy is not lost with the process.
func (b *Outbox) fileOlder(ctx context.Context, op string, filed *mail.Outgoing) {
	if filed.Sent != mail.SentFiled || ctx.Err() != nil {
		return
	}
	entries, _, err := b.o.Store.ListOutgoing(ctx, mail.OutboxQuery{Account: filed.Account, States: []mail.OutboxState{mail.OutboxAccepted}, Limit: mail.DefaultOutboxLimit})
	if err != nil {
		return
	}
	for _, e := range entries {
		if outstanding(e.Sent) && !busy(&e, b.now()) && b.now().Sub(e.Changed) < mail.KeepOutgoingMessage {
			b.fileAgain(ctx, op, e)
			return
		}
	}
}

// SaveDraft puts a draft into the account's folder for drafts, where a person
// finishes and sends it. It may have no recipients, and the outbound list does not
// matter, since nothing leaves; the message it replies to has to be visible. Failures are
// as for Mailboxes.Copy.
func (b *Outbox) SaveDraft(ctx context.Context, account string, d Draft) (*SavedDraft, error) {
	const op = "mail draft"
	s, err := b.sender(ctx, op, account)
	if err != nil {
		return nil, err
	}
	switch {
	case !s.policy.MayFile():
		return nil, s.ReadOnly(&s.account)
	case b.o.Mailboxes == nil || s.account.Protocol != mail.IMAP:
		return nil, s.Unsupported("The account has no folder to put a draft into: it is not read with IMAP.", mail.AdviceSendNow)
	}
	l, err := s.read(&d)
	if err != nil {
		return nil, err
	}
	m, err := b.message(ctx, s, l, newName())
	if err != nil {
		return nil, err
	}
	built, err := compose.Build(m)
	if err != nil {
		return nil, s.unbuildable(err)
	}
	put, err := b.o.Mailboxes.File(ctx, op, account, &mailbox.OwnMessage{Role: "drafts", Flags: []string{`\Draft`, `\Seen`}, Date: m.Date, Source: built.Copy})
	if errors.Is(err, mailbox.ErrNoRole) {
		return nil, s.Failure(mail.KindNotFound, "list", "The account has no folder for drafts.", mail.AdviceMakeDrafts)
	}
	if err != nil {
		return nil, err
	}
	return &SavedDraft{Account: account, Folder: put.Folder, Ref: put.Ref, MessageID: m.MessageID, Subject: m.Subject, Size: int64(len(built.Copy)),
		Hidden: !s.policy.VisibleAsOwn(rfc5322.ParseHeader(built.Copy))}, nil
}
