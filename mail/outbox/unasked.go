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

// judge sets how a new entry begins: queued, or waiting for a person. What the policy asks about is
// judged by the very bytes that leave. The store has the last word about how many went unasked; a
// dry run foresees it.
func (b *Outbox) judge(ctx context.Context, s *sender, l *letter, e *mail.Outgoing, leaves func() *content, dry bool) error {
	found := s.secretsOf(l.Draft, leaves)
	if e.Coded = found.Any(); e.Coded {
		e.To, e.CC = nameless(e.To), nameless(e.CC)
	}
	switch {
	case l.Forward != nil || l.stored != nil:
		mask(e, found)
	case l.Subject == "": // else an agent would be told which of its own numbers is the code
		e.Subject = found.Mask(e.Subject)
	}
	f := mail.SendFacts{Coded: e.Coded, OthersDraft: l.stored != nil && !l.stored.Own}
	f.Recipients = e.Recipients
	if s.policy.RepliesUnasked() && l.ReplyTo != nil && l.ToSender && l.original != nil && l.Forward == nil && l.stored == nil {
		c := leaves()
		f.Reply, f.Answered, f.Attachments = true, l.original.Header, len(c.files)
		f.Verified = s.policy.Verdict(f.Answered) == mail.Verified
		f.FromFile = l.FromFile
		f.ForeignLink, f.ForeignNumber = s.foreign(c, l.original)
		f.CarriesCode = l.original.Masked.Any() || c.secrets().Any()
		f.NewSubject = c.Header.Text("Subject") != compose.ReplySubject(l.original.Header.Text("Subject"))
	}
	if dry && f.Reply {
		since := e.Created.Add(-mail.UnaskedWithin)
		recent, _, err := b.o.Store.ListOutgoing(ctx, mail.OutboxQuery{Account: e.Account, Limit: mail.MaxUnasked,
			Only: func(o *mail.Outgoing) bool { return o.Unasked != "" && o.Created.After(since) }})
		if err != nil {
			return err
		}
		f.Unasked = len(recent)
	}
	waits, asks := s.policy.Waits(&f)
	switch e.State = mail.OutboxQueued; {
	case waits:
		e.Wait(asks...)
	case s.policy.RepliesUnasked():
		e.Unasked = e.Digest
	}
	return nil
}

// waitsStill judges an entry anew, by the policy as it is now, about which no person decided.
func (s *sender) waitsStill(e *mail.Outgoing) (waits bool, asks []mail.Ask) {
	f := mail.SendFacts{Coded: e.Coded, Passed: e.Unasked != "" && e.Unasked == e.Digest}
	f.Recipients = e.Recipients
	return s.policy.Waits(&f)
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
