package outbox

import (
	"context"
	"errors"
	"slices"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/compose"
	"github.com/postern-mail/postern/mail/internal/rfc5322"
	"github.com/postern-mail/postern/mail/mailbox"
)

// Draft is a message to write. Nothing of it is trusted.
type Draft struct {
	To, CC, BCC []mail.Address // as ParseAddress reads them
	Subject     string         // empty with ReplyTo: the subject of what is answered, with Re: before it
	Body        string         // plain text; any line ends
	Quoted      string         // text of others below it, after an empty line
	Markdown    bool           // Body is Markdown: HTML made of it goes beside the text; Quoted stays text
	Attachments []Attachment
	ReplyTo     *mail.Ref // the message this answers, in the same account; nil for none
	FromFile    bool      // Body was read from a file
	FromMail    bool      // some of Attachments are those of a message that was received
	As          string    // the sender, one of the account's own addresses; empty for its first
	DryRun      bool      // of a draft to keep: everything but the filing, so that an error is the one it would end with

	// Of the message of ReplyTo: it goes to its sender besides those named, or to all whom that
	// went to as well, but oneself; and its text follows.
	ToSender, ToAll, Quote bool

	Forward *mail.Ref // a message of the same account that this hands on; nil for none
	Whole   bool      // as it is, in an attachment; else its text follows, and its attachments go along

	original  *mailbox.Original // that of ReplyTo or Forward, where it was read already
	elsewhere bool              // see mail.Outgoing, like the next
	leftOut   int
	stored    *storedDraft // the draft that this is, to be sent as it stands; nil for none
}

// Attachment is a file to send. Content is not changed.
type Attachment struct {
	Name    string // as the recipient sees it, without directories
	Type    string // media type; empty means by the name's extension, else application/octet-stream
	Content []byte
	Message bool // it is a message (RFC 5322), and is sent as one where its bytes can travel unchanged
}

// SavedDraft is a draft that is in the account's folder for drafts.
type SavedDraft struct {
	Account    string
	Folder     string
	Ref        mail.Ref // zero when the server did not tell (RFC 4315)
	MessageID  string   // without angle brackets
	Subject    string   // as it was written
	Recipients []string // the addresses of To, Cc and Bcc
	Size       int64    // bytes
	Hidden     bool     // the account's subject pattern hides it from agents, who cannot read it
	Elsewhere  bool     // see mail.Outgoing, like the next
	LeftOut    int
	// Left says why the draft that it replaces is still there, or may be; nil otherwise.
	Left   *mail.Issue
	Change string // what takes it back, see mail.Journal; empty where nothing was recorded
}

// SaveDraft puts a draft into the account's folder for drafts, where a person
// finishes and sends it, often without another look at whom it is to. It may have no
// recipients, but none that the outbound list does not have, see CheckDraft; the message it replies to has to be visible. Failures are
// as for Mailboxes.Copy.
func (b *Outbox) SaveDraft(ctx context.Context, account string, d Draft) (*SavedDraft, error) {
	s, err := b.drafter(ctx, account)
	if err != nil {
		return nil, err
	}
	if err := b.fill(ctx, s, &d); err != nil {
		return nil, err
	}
	l, err := s.read(&d)
	if err != nil {
		return nil, err
	}
	if err := s.policy.CheckDraft(l.recipients); err != nil {
		return nil, err
	}
	m, err := b.message(ctx, s, l, newName())
	if err != nil {
		return nil, err
	}
	if l.original != nil {
		if err := s.noCode(l.original.Masked); err != nil {
			return nil, err
		}
	}
	saved, err := b.saveDraft(ctx, s, m, "", d.DryRun)
	if err == nil {
		saved.Elsewhere, saved.LeftOut = d.elsewhere, d.leftOut
	}
	return saved, err
}

// drafter is sender for an account that drafts can be filed in.
func (b *Outbox) drafter(ctx context.Context, account string) (*sender, error) {
	s, err := b.sender(ctx, "mail draft", account)
	switch {
	case err != nil:
		return nil, err
	case !s.policy.MayFile():
		return nil, s.ReadOnly(&s.account)
	case b.o.Mailboxes == nil || s.account.Protocol != mail.IMAP:
		return nil, s.Unsupported("The account has no folder to put a draft into: it is not read with IMAP.", mail.AdviceSendNow)
	}
	return s, nil
}

// others refuses what a person has to do with a draft that is not the caller's own.
func (s *sender) others(message string) error {
	e := s.Failure(mail.KindReadOnly, "", message, mail.AdviceOthersDraft)
	e.Reason = "draft"
	return e
}

// saveDraft files a draft, unless the folder has one with this Message-ID; empty means always.
func (b *Outbox) saveDraft(ctx context.Context, s *sender, m *compose.Message, once string, dry bool) (*SavedDraft, error) {
	built, err := compose.Build(m)
	if err != nil {
		return nil, s.unbuildable(err)
	}
	if dry {
		return &SavedDraft{Account: s.Account}, nil
	}
	put, err := b.o.Mailboxes.File(ctx, s.Op, s.Account, &mailbox.OwnMessage{Role: "drafts", Flags: []string{`\Draft`, `\Seen`}, Date: m.Date, Source: built.Copy, Once: once})
	if errors.Is(err, mailbox.ErrNoRole) {
		return nil, s.Failure(mail.KindNotFound, "list", "The account has no folder for drafts.", mail.AdviceMakeDrafts)
	}
	if err != nil {
		return nil, err
	}
	var to []string
	for _, a := range slices.Concat(m.To, m.CC, m.BCC) {
		to = append(to, a.Addr)
	}
	return &SavedDraft{Account: s.Account, Recipients: to, Folder: put.Folder, Ref: put.Ref, Change: put.Change, MessageID: m.MessageID, Subject: m.Subject, Size: int64(len(built.Copy)),
		Hidden: !s.policy.VisibleAsOwn(rfc5322.ParseHeader(built.Copy))}, nil
}
