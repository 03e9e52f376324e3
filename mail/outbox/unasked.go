package outbox

import (
	"context"
	"html"
	"slices"
	"strings"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/compose"
	"github.com/postern-mail/postern/mail/internal/links"
	"github.com/postern-mail/postern/mail/mailbox"
)

// judge sets how a new entry begins: queued, or waiting for a person. What carries a code, and a draft
// that is not the caller's own, waits in every mode. In mode reply it is
// judged by the very bytes that its digest names. The store has the last word about how many
// went unasked; a dry run foresees it.
func (b *Outbox) judge(ctx context.Context, s *sender, l *letter, e *mail.Outgoing, message []byte, dry bool) error {
	found := s.secretsOf(l.Draft, message)
	if e.Coded = found.Any(); e.Coded {
		e.To, e.CC = nameless(e.To), nameless(e.CC)
	}
	switch {
	case l.Forward != nil || l.stored != nil:
		mask(e, found)
	case l.Subject == "": // else an agent would be told which of its own numbers is the code
		e.Subject = found.Mask(e.Subject)
	}
	switch e.State = mail.OutboxQueued; {
	case !s.policy.NeedsApproval() && found.Any():
		e.Wait(mail.AskCode)
		return nil
	case !s.policy.NeedsApproval() && l.stored != nil && !l.stored.Own:
		e.Wait(mail.AskDraft)
		return nil
	case !s.policy.NeedsApproval():
		return nil
	case !s.policy.RepliesUnasked():
		e.Wait()
		return nil
	}
	f := mail.ReplyFacts{Recipients: e.Recipients}
	if l.ReplyTo != nil && l.ToSender && l.original != nil && l.Forward == nil && l.stored == nil {
		c := contentOf(message)
		f.Reply, f.Answered, f.Attachments = true, l.original.Header, len(c.files)
		f.Verified = s.policy.Verdict(f.Answered) == mail.Verified
		f.FromFile = l.FromFile
		f.ForeignLink, f.ForeignNumber = s.foreign(c, l.original)
		f.CarriesCode = l.original.Masked.Any() || c.secrets().Any()
		f.NewSubject = c.Header.Text("Subject") != compose.ReplySubject(l.original.Header.Text("Subject"))
	}
	if dry {
		since := e.Created.Add(-mail.UnaskedWithin)
		recent, _, err := b.o.Store.ListOutgoing(ctx, mail.OutboxQuery{Account: e.Account, Limit: mail.MaxUnasked,
			Only: func(o *mail.Outgoing) bool { return o.Unasked != "" && o.Created.After(since) }})
		if err != nil {
			return err
		}
		f.Unasked = len(recent)
	}
	if asks := s.policy.Asks(&f); len(asks) > 0 {
		e.Wait(asks...)
	} else {
		e.Unasked = e.Digest
	}
	return nil
}

// foreign reports whether what leaves has a link or an address that neither the sender of the
// message that it answers wrote, nor the account is, and whether it has such a number. Names
// beside addresses are read like the text. What that message quotes was written by others, whom
// nobody judged; it may be in what is quoted alone.
func (s *sender) foreign(c *content, o *mailbox.Original) (link, number bool) {
	known := append(slices.Clone(o.Names), o.New, s.account.Email)
	known = append(known, s.account.OwnAddresses...)
	for _, field := range []string{"From", "To", "Cc"} {
		for _, a := range o.Header.Addresses(field) {
			if known = append(known, a.Addr); field == "From" {
				known = append(known, a.Name)
			}
		}
	}
	subject := o.Header.Text("Subject")
	if compose.ReplySubject(subject) != subject { // else it is that of a message before
		known = append(known, subject)
	}
	var written, quoted []string
	for _, text := range c.texts {
		var own strings.Builder
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, ">") {
				quoted = append(quoted, line)
				line = "\n"
			}
			own.WriteString(line)
		}
		written = append(written, own.String())
	}
	for _, document := range c.documents { // its text stands beside it
		quoted = append(quoted, html.UnescapeString(document))
	}
	for _, field := range []string{"To", "Cc"} {
		for _, a := range c.Header.Addresses(field) {
			written = append(written, a.Name, a.Addr)
		}
	}
	judge := func(texts, known []string) {
		linked := links.In(known...)
		for _, text := range texts {
			link = link || linked.Foreign(text) != ""
			number = number || links.ForeignNumber(text, known...)
		}
	}
	judge(written, known)
	judge(quoted, append(known, o.Text, subject))
	return link, number
}

// leaves reports whether a queued entry about which no person decided may leave now.
func (s *sender) leaves(e *mail.Outgoing) bool {
	return !s.policy.NeedsApproval() || s.policy.RepliesUnasked() && e.Unasked != "" && e.Unasked == e.Digest && s.policy.Knows(e.Recipients)
}

// asksNow is why an entry waits that went unasked before; nil where the mode asks about each.
func (s *sender) asksNow(e *mail.Outgoing) []mail.Ask {
	if s.policy.RepliesUnasked() && !s.policy.Knows(e.Recipients) {
		return []mail.Ask{mail.AskRecipient}
	}
	return nil
}
