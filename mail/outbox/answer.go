package outbox

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/compose"
	"github.com/postern-mail/postern/mail/internal/rfc5322"
	"github.com/postern-mail/postern/mail/mailbox"
)

// fill takes from the message that a draft answers or hands on what the draft asks for.
//
// Who gets an answer comes from the header of that message alone, never from its text. A draft
// is from the one own address to which the message went, unless it says from which.
func (b *Outbox) fill(ctx context.Context, s *sender, d *Draft) error {
	if d.Forward != nil {
		return b.handOn(ctx, s, d)
	}
	if d.ReplyTo == nil || !d.ToSender && !d.ToAll && !d.Quote {
		return nil
	}
	judged := d.ToSender && s.policy.RepliesUnasked()
	o, err := b.original(ctx, s, *d.ReplyTo, mailbox.OriginalQuery{Text: d.Quote || judged, Header: judged})
	if err != nil {
		return err
	}
	d.original = o
	if d.As == "" {
		d.As = s.addressed(o.Header)
	}
	if d.Quote {
		d.Quoted = quotation(o)
	}
	if !d.ToSender && !d.ToAll {
		return nil
	}
	r := compose.ReplyRecipients(o.Header, s.policy.Owns, d.ToAll)
	named := slices.Concat(d.To, d.CC, d.BCC)
	isNamed := func(a mail.Address) bool {
		return slices.ContainsFunc(named, func(n mail.Address) bool { return strings.EqualFold(n.Addr, a.Addr) })
	}
	d.To, d.CC = append(slices.DeleteFunc(r.To, isNamed), d.To...), append(slices.DeleteFunc(r.CC, isNamed), d.CC...)
	if len(d.To)+len(d.CC)+len(d.BCC) == 0 {
		return s.Invalid("The message names nobody who could be answered.", mail.AdviceNameRecipients)
	}
	if r.Elsewhere && !s.policy.NeedsApproval() && !slices.ContainsFunc(r.To, isNamed) {
		return s.Conflict("The message asks that answers go to "+joined(r.To)+", which is not its sender. Nothing was sent.", mail.AdviceNameAnswers)
	}
	d.elsewhere, d.leftOut = r.Elsewhere, r.Unusable
	return nil
}

// handOn makes the draft hand on its Forward, as text with its attachments or whole.
func (b *Outbox) handOn(ctx context.Context, s *sender, d *Draft) error {
	q := mailbox.OriginalQuery{Text: true, Files: true}
	if d.Whole {
		q = mailbox.OriginalQuery{Source: MaxAttachmentBytes}
	}
	o, err := b.original(ctx, s, *d.Forward, q)
	if err != nil {
		return err
	}
	d.original = o
	subject := o.Header.Text("Subject")
	if d.Subject == "" {
		d.Subject = compose.ForwardSubject(subject)
	}
	if d.As == "" {
		d.As = s.addressed(o.Header)
	}
	if !d.Whole {
		d.Quoted = forwarded(o)
		for _, f := range o.Files {
			d.Attachments = append(d.Attachments, AttachmentOf(f))
		}
		return nil
	}
	if len(o.Header.Values("Bcc")) > 0 {
		return s.invalid("The message names hidden recipients, whom its copy would tell of.", mail.AdviceForwardText, nil)
	}
	name, _ := plain.Head(plain.Line(subject), 60)
	d.Attachments = append(d.Attachments, Attachment{Name: cmp.Or(strings.TrimSpace(name), "message") + ".eml", Content: o.Source, Message: true})
	return nil
}

// AttachmentOf is an attachment of a message as it goes along with another one.
func AttachmentOf(f *mailbox.AttachmentContent) Attachment {
	return Attachment{Name: cmp.Or(f.Filename, "attachment"), Type: f.FullType, Content: f.Content, Message: f.ContentType == "message/rfc822"}
}

func (b *Outbox) original(ctx context.Context, s *sender, ref mail.Ref, q mailbox.OriginalQuery) (*mailbox.Original, error) {
	if b.o.Mailboxes == nil {
		return nil, s.Unsupported("There is no mailbox to read the original message from.", mail.AdviceSendWithoutReply)
	}
	return b.o.Mailboxes.Original(ctx, s.Op, ref, q)
}

// addressed is the one own address to which a message went, or from which where the account
// sent it itself; else it is empty, as where that is the account's first.
func (s *sender) addressed(h rfc5322.Header) string {
	var found []string
	for _, fields := range [][]string{{"From"}, {"To", "Cc"}} {
		var named []mail.Address
		for _, field := range fields {
			named = append(named, h.Addresses(field)...)
		}
		for _, own := range append([]string{s.account.Email}, s.account.OwnAddresses...) {
			key, _ := mail.NormalAddress(own)
			if slices.ContainsFunc(named, func(a mail.Address) bool { normal, ok := mail.NormalAddress(a.Addr); return ok && normal == key }) {
				found = append(found, own)
			}
		}
		if len(found) > 0 {
			break
		}
	}
	if len(found) != 1 || found[0] == s.account.Email {
		return ""
	}
	return found[0]
}

// quotation is the text of a message as an answer quotes it: who wrote it and when, and its
// lines with a mark for each depth (RFC 3676 section 4.5).
func quotation(o *mailbox.Original) string {
	var b strings.Builder
	if date, ok := o.Header.Date(); ok {
		b.WriteString("On " + date.Format("2 January 2006 at 15:04") + ", ")
	}
	b.WriteString(plain.Clip(cmp.Or(firstOf(o.Header, "From"), "somebody"), 200) + " wrote:")
	for line := range strings.SplitSeq(o.Text, "\n") {
		depth := 1
		for strings.HasPrefix(line, ">") {
			line, depth = strings.TrimPrefix(line[1:], " "), depth+1
		}
		b.WriteString("\n" + strings.TrimRight(strings.Repeat(">", depth)+" "+line, " "))
	}
	if o.Cut {
		b.WriteString("\n> [...]")
	}
	return b.String()
}

// forwarded is a message as it is handed on in a text, below the fields that a reader looks
// for. The form is the one that mail programs know again as a forwarded message.
func forwarded(o *mailbox.Original) string {
	var b strings.Builder
	b.WriteString("---------- Forwarded message ----------\n")
	for _, f := range [][2]string{{"From", joined(o.Header.Addresses("From"))}, {"Date", plain.Line(o.Header.Text("Date"))},
		{"Subject", plain.Line(o.Header.Text("Subject"))}, {"To", joined(o.Header.Addresses("To"))}, {"Cc", joined(o.Header.Addresses("Cc"))}} {
		if f[1] != "" {
			b.WriteString(f[0] + ": " + plain.Clip(f[1], 1000) + "\n")
		}
	}
	b.WriteString("\n" + o.Text)
	if o.Cut {
		b.WriteString("\n[...]")
	}
	return b.String()
}

func firstOf(h rfc5322.Header, field string) string {
	if all := h.Addresses(field); len(all) > 0 {
		return plain.Line(all[0].String())
	}
	return ""
}

// joined writes addresses on one line.
func joined(all []rfc5322.Address) string {
	var s []string
	for _, a := range all {
		s = append(s, plain.Line(a.String()))
	}
	return strings.Join(s, ", ")
}
