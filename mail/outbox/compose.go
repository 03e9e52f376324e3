package outbox

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/compose"
	"github.com/postern-mail/postern/mail/mailbox"
)

// The bounds of a message.
const (
	MaxRecipients      = 100      // to, cc and bcc together
	MaxAttachments     = 20       // of one message
	MaxAttachmentBytes = 25 << 20 // of all of them together, before they are encoded
	MaxBodyBytes       = 1 << 20
	MaxSubjectChars    = 998
)

// sender is an account as one operation sends with it.
type sender struct {
	mail.Operation
	account mail.Account
	policy  *mail.Policy
	from    compose.Address
	domain  string // of from, in ASCII
}

// sender looks the account up and checks that it can send.
func (b *Outbox) sender(ctx context.Context, op, name string) (*sender, error) {
	o := mail.Operation{Op: op, Account: name}
	a, policy, err := o.LookUp(ctx, b.o.Directory)
	if err != nil {
		return nil, err
	}
	s := &sender{Operation: o, account: a, policy: policy}
	normal, ok := mail.NormalAddress(a.Email)
	if s.from, err = compose.ParseAddress(a.Email); err != nil || !ok {
		return nil, s.Unusable(errors.New("its email address cannot be a sender"))
	}
	s.from.Name, s.domain = a.DisplayName, normal[strings.LastIndexByte(normal, '@')+1:]
	return s, nil
}

// as makes an own address of the account the sender; an empty one changes nothing.
func (s *sender) as(address string) error {
	if address == "" {
		return nil
	}
	from, err := compose.ParseAddress(address)
	if err != nil || !s.policy.Owns(from.Addr) {
		return s.invalid("The sender is not an address of the account's own.", mail.AdviceOwnAddress, err)
	}
	s.from.Addr = from.Addr
	return nil
}

// letter is a checked draft: mail can be sent to each address, and it is within bounds.
type letter struct {
	*Draft
	recipients []string // of the envelope, each once
}

// read checks a draft, without a word to any server.
func (s *sender) read(d *Draft) (*letter, error) {
	if err := s.as(d.As); err != nil {
		return nil, err
	}
	l := &letter{Draft: d}
	seen := make(map[string]bool)
	for _, f := range []struct {
		name string
		list []mail.Address
	}{{"to", d.To}, {"cc", d.CC}, {"bcc", d.BCC}} {
		for i, a := range f.list {
			normal, ok := mail.NormalAddress(a.Addr)
			if !ok {
				return nil, s.invalid(fmt.Sprintf("Address %d of %s is not an address that mail can be sent to.", i+1, f.name), mail.AdviceChangeMessage, nil)
			}
			if !seen[normal] {
				seen[normal] = true
				l.recipients = append(l.recipients, a.Addr)
			}
		}
	}
	var total int64
	for _, a := range d.Attachments {
		total += int64(len(a.Content))
	}
	switch {
	case len(d.To)+len(d.CC)+len(d.BCC) > MaxRecipients:
		return nil, s.invalid(fmt.Sprintf("A message goes to at most %d recipients.", MaxRecipients), mail.AdviceSeveralMessages, nil)
	case len(d.Attachments) > MaxAttachments:
		return nil, s.invalid(fmt.Sprintf("A message has at most %d attachments.", MaxAttachments), mail.AdviceArchiveFiles, nil)
	case total > MaxAttachmentBytes:
		return nil, s.invalid(fmt.Sprintf("The attachments have %d bytes together, more than %d.", total, MaxAttachmentBytes), mail.AdviceSmallerFiles, nil)
	case len(d.Body)+len(d.Quoted) > MaxBodyBytes:
		return nil, s.invalid(fmt.Sprintf("The body has %d bytes, more than %d.", len(d.Body)+len(d.Quoted), MaxBodyBytes), mail.AdviceAttachText, nil)
	case utf8.RuneCountInString(d.Subject) > MaxSubjectChars:
		return nil, s.invalid(fmt.Sprintf("The subject has more than %d characters.", MaxSubjectChars), mail.AdviceShorten, nil)
	case d.ReplyTo != nil && d.ReplyTo.Account != s.account.Name, d.Forward != nil && d.Forward.Account != s.account.Name:
		return nil, s.invalid("The message to answer or hand on is in another account.", mail.AdviceReplyFromThere, nil)
	}
	return l, nil
}

func (s *sender) invalid(message string, advice mail.Advice, cause error) *mail.Error {
	e := s.Invalid(message, advice)
	e.Err = cause
	return e
}

// digest names a request, so that one key cannot stand for two messages. It depends neither
// on the time nor on the content of the message that is answered or handed on.
func (l *letter) digest(account string) string {
	h := sha256.New()
	field := func(parts ...string) {
		_ = binary.Write(h, binary.BigEndian, uint64(len(parts)))
		for _, p := range parts {
			_ = binary.Write(h, binary.BigEndian, uint64(len(p)))
			_, _ = h.Write([]byte(p))
		}
	}
	field("postern request 1", account)
	for _, list := range [][]mail.Address{l.To, l.CC, l.BCC} {
		var flat []string
		for _, a := range list {
			flat = append(flat, a.Name, a.Addr)
		}
		field(flat...)
	}
	reply := ""
	if l.ReplyTo != nil {
		reply = l.ReplyTo.String()
	}
	field(l.Subject, strings.ReplaceAll(l.Body, "\r\n", "\n"), reply)
	if l.Quoted != "" {
		field("quoted", strings.ReplaceAll(l.Quoted, "\r\n", "\n"))
	}
	if l.Markdown {
		field("markdown")
	}
	if l.As != "" {
		field("as", l.As)
	}
	if l.ToSender || l.ToAll || l.Quote {
		field("answer", fmt.Sprint(l.ToSender, l.ToAll, l.Quote))
	}
	if l.Forward != nil {
		field("forward", l.Forward.String(), fmt.Sprint(l.Whole))
	}
	for _, a := range l.Attachments {
		sum := sha256.Sum256(a.Content)
		field(a.Name, a.Type, string(sum[:]))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// names makes the names of a request: a digest of its idempotency key, empty without
// one, and the left part of its Message-ID. The Message-ID of a request with a key comes
// from the key and the request, so that a server that has the message already can tell, and
// that two messages never share one, even when a key is used again after its entry was
// forgotten.
func (b *Outbox) names(ctx context.Context, s *sender, principal, key, request string) (digest, left string, err error) {
	if key == "" {
		return "", newName(), nil
	}
	if b.o.Key == nil {
		return "", "", s.Unsupported("Idempotency keys cannot be used here: there is no place to keep them.", mail.AdviceNoKey)
	}
	secret, err := b.o.Key(ctx)
	if err != nil {
		return "", "", wrapStore(ctx, s.Op, err)
	}
	if len(secret) < 32 {
		return "", "", errors.New("the key of the outbox is shorter than 32 bytes")
	}
	if principal == mail.PersonPrincipal {
		principal = mail.AgentPrincipal // as when it was one: a key that was used then must not send again
	}
	mac := func(parts ...string) []byte {
		h := hmac.New(sha256.New, secret)
		for _, p := range parts {
			_ = binary.Write(h, binary.BigEndian, uint64(len(p)))
			_, _ = h.Write([]byte(p))
		}
		return h.Sum(nil)
	}
	return hex.EncodeToString(mac("key", s.Account, principal, key)),
		mail.IDAlphabet.EncodeToString(mac("message-id", s.Account, principal, key, request)[:20]), nil
}

// newName returns a unique name for an attempt, or for the left part of a Message-ID.
func newName() string { return strings.ToLower(rand.Text()) }

// build reads the message that is replied to and writes the new one.
func (b *Outbox) build(ctx context.Context, s *sender, l *letter, left string) (*mail.Outgoing, []byte, error) {
	m, err := b.message(ctx, s, l, left)
	if err != nil {
		return nil, nil, err
	}
	built, err := compose.Build(m)
	if err != nil {
		return nil, nil, s.unbuildable(err)
	}
	now := b.now()
	e := &mail.Outgoing{ID: mail.NewID(now), Account: s.account.Name, Created: m.Date, Changed: now,
		MessageID: "<" + m.MessageID + ">", From: s.from.Addr, Recipients: l.recipients, To: l.To, CC: l.CC, BCC: l.BCC,
		Subject: m.Subject, Size: int64(len(built.Wire)), Digest: compose.Digest(s.from.Addr, l.recipients, built.Wire),
		SMTPUTF8: built.SMTPUTF8, Sent: s.wantsCopy(b.o.Mailboxes != nil)}
	if l.ReplyTo != nil {
		e.ReplyTo, e.Elsewhere, e.LeftOut = l.ReplyTo.String(), l.elsewhere, l.leftOut
	}
	if l.stored != nil {
		e.Draft, built.Attachments = l.stored.Ref.String(), l.stored.files
		if l.stored.parent != "" {
			if ref := b.o.Mailboxes.Named(ctx, s.Op, s.account.Name, l.stored.parent); ref.UID != 0 {
				e.ReplyTo = ref.String()
			}
		}
	}
	for _, a := range built.Attachments {
		e.Attachments = append(e.Attachments, mail.FileName{Name: a.Name, Type: a.Type, Size: int64(len(a.Content))})
	}
	return e, built.Wire, nil
}

func (s *sender) unbuildable(err error) error {
	var f *compose.FieldError
	if !errors.As(err, &f) {
		return err
	}
	return s.invalid("The message cannot be written: "+strings.ToLower(f.Field)+": "+f.Problem+".", mail.AdviceChangeMessage, err)
}

// message is the draft as it is composed.
func (b *Outbox) message(ctx context.Context, s *sender, l *letter, left string) (*compose.Message, error) {
	m := &compose.Message{From: s.from, To: l.To, CC: l.CC, BCC: l.BCC, Subject: l.Subject, Date: b.now(), MessageID: left + "@" + s.domain,
		Body: l.Body, Quoted: l.Quoted, Markdown: l.Markdown}
	if d := l.stored; d != nil {
		m.From.Name, m.InReplyTo, m.References, m.Source = d.from.Name, d.parent, d.references, d.Source
	}
	if l.ReplyTo != nil {
		parent := l.original
		if parent == nil {
			var err error
			if parent, err = b.original(ctx, s, *l.ReplyTo, mailbox.OriginalQuery{}); err != nil {
				return nil, err
			}
			l.original = parent
		}
		m.InReplyTo, m.References = compose.ReplyReferences(parent.Header)
		if m.Subject == "" {
			m.Subject = compose.ReplySubject(parent.Header.Text("Subject"))
		}
	}
	for _, a := range l.Attachments {
		m.Attachments = append(m.Attachments, compose.Attachment{Name: a.Name, Type: a.Type, Content: a.Content, Message: a.Message})
	}
	return m, nil
}

// ParseAddress reads one recipient as a person writes them, plain or with a name:
// Ann Lee <ann@example.org>. The error is one sentence and repeats nothing of s.
func ParseAddress(s string) (mail.Address, error) { return compose.ParseAddress(s) }
