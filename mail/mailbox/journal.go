package mailbox

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/imap"
	"github.com/postern-mail/postern/mail/mailbox/internal/fetch"
)

// maxKeptID bounds the Message-ID that is kept of a message, in bytes: RFC 5322 allows no longer
// line.
const maxKeptID = 998

// recordTime is how long the record of an outcome may take. It does not end with the caller's
// context.
const recordTime = 20 * time.Second

// identity is what the journal keeps of a message, so that it is told from any other.
func identity(g *fetch.Message) mail.ChangeMessage {
	id := fetch.MessageID(g.Header)
	return mail.ChangeMessage{UID: g.Ref.UID, Flags: g.Flags, MessageID: id[:min(len(id), maxKeptID)], Arrived: g.Internal.UTC(), Size: g.Size}
}

// identified is what a FETCH has to ask for, for identity.
var identified = fetch.Wanted{Dates: true, Copies: true}

// recorded makes a change that is in the journal before made sends anything, with its outcome
// afterwards, which made leaves in c. certain is whether it is known of every message. Where the
// change cannot be kept it is not made.
func (x *access) recorded(ctx context.Context, c *mail.Change, made func() (certain bool, err error)) error {
	if x.m.o.Journal == nil {
		_, err := made()
		return err
	}
	c.Account, c.Mailbox = x.account.Name, x.account.Mailbox()
	unasked := x.Policy.AskChanges()
	if c.Counts() == 0 {
		unasked = -1
	}
	switch err := x.m.o.Journal.BeginChange(ctx, c, unasked); {
	case errors.Is(err, mail.ErrManyChanges):
		e := x.Failure(mail.KindAsks, "", "So many messages are changed within ten minutes only after a person said so. None was changed by this.", mail.AdviceManyChanges)
		e.Err, e.Reason = err, "many"
		return e
	case err != nil:
		e := x.Failure(mail.KindStore, "", "The change could not be written down, so that it could be taken back. Nothing was changed.", mail.AdviceCheckSetup)
		e.Err = err
		return e
	}
	certain, err := made()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	if _, failed := x.m.o.Journal.AmendChange(ctx, c.ID, func(kept *mail.Change) error {
		if kept.ToValidity = c.ToValidity; kept.UIDValidity == 0 {
			kept.UIDValidity = c.UIDValidity
		}
		for i := range kept.Messages {
			m, now := &kept.Messages[i], c.Messages[i]
			m.UID, m.New, m.Done = now.UID, now.New, now.Done
		}
		if certain {
			kept.Ended = x.m.o.Now().UTC()
		}
		return nil
	}); failed != nil {
		x.m.o.Logger.LogAttrs(ctx, slog.LevelWarn, "the outcome of a change could not be recorded", slog.String("change", c.ID), slog.String("account", x.Account))
	}
	return err
}

// decided reports whether an error of a command, nil too, says what became of it: a server that
// refused it did nothing, and a stop keeps it back.
func decided(err error) bool {
	var stopped *mail.Stopped
	return err == nil || imap.Refused(err) || errors.As(err, &stopped)
}

// journaled is c as it is before it is made to messages of the batch.
func (b *batch) journaled(l *located, uids []uint32, c mail.Change) *mail.Change {
	c.Of, c.Approved, c.Sent = b.asked.Of, b.asked.Approved, b.asked.Sent
	c.Folder, c.UIDValidity = b.folder, l.box.UIDValidity
	for _, u := range uids {
		c.Messages = append(c.Messages, identity(l.found[u]))
	}
	return &c
}

// record is recorded for messages of a batch. made tells in b.out which it changed, in b.copied
// where they are, and in b.unsure that it is not known of some.
func (b *batch) record(ctx context.Context, l *located, uids []uint32, of mail.Change, made func() error) error {
	c := b.journaled(l, uids, of)
	return b.recorded(ctx, c, func() (bool, error) {
		b.out.Change = c.ID
		err := made()
		c.ToValidity = b.copied.UIDValidity
		for i := range c.Messages {
			m := &c.Messages[i]
			m.New = b.copied.Target[m.UID]
			left := c.Kind == mail.ChangeMove && slices.ContainsFunc(b.out.Issues, func(i mail.Issue) bool { return i.UID == m.UID })
			m.Done = !left && slices.ContainsFunc(b.out.Messages, func(d ChangedMessage) bool { return d.Ref.UID == m.UID })
		}
		return !b.unsure && decided(err), err
	})
}
