package outbox

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/compose"
	"github.com/postern-mail/postern/mail/mailbox"
)

// maxStored bounds a draft that is read back, in bytes: attachments within their bound and
// encoded, and its text.
const maxStored = MaxAttachmentBytes*3/2 + MaxBodyBytes

// storedDraft is a draft of the account's mailbox, written here or in a mail program.
type storedDraft struct {
	*content
	*mailbox.StoredDraft
	from       mail.Address
	lists      [3][]mail.Address // To, Cc and Bcc
	parent     string
	references []string
}

// storedDraft reads a draft and refuses one that programs may read in different ways, or whose
// answers would go elsewhere.
func (b *Outbox) storedDraft(ctx context.Context, s *sender, ref mail.Ref) (*storedDraft, error) {
	if b.o.Mailboxes == nil {
		return nil, s.Unsupported("There is no mailbox to read the draft from.", mail.AdviceSendNow)
	}
	stored, err := b.o.Mailboxes.Draft(ctx, s.Op, ref)
	if err != nil {
		return nil, err
	}
	d := &storedDraft{StoredDraft: stored}
	if len(d.Source) > maxStored {
		return nil, s.invalid(fmt.Sprintf("The draft has more than %d bytes.", maxStored), mail.AdviceSmallerFiles, nil)
	}
	d.content = contentOf(d.Source)
	h := d.Header
	d.from = h.Addresses("From")[0]
	var answers []mail.Address
	for i, name := range []string{"To", "Cc", "Bcc", "Reply-To"} {
		values := strings.TrimSpace(strings.Join(h.Values(name), ""))
		if values == "" || values == "undisclosed-recipients:;" {
			continue
		}
		strict, ok := h.StrictAddresses(name)
		var list []mail.Address
		for _, a := range h.Addresses(name) {
			plain, err := compose.ParseAddress(a.Addr)
			ok = ok && err == nil
			list = append(list, mail.Address{Name: a.Name, Addr: plain.Addr})
		}
		if !ok || !h.Certain(name) || len(strict) != len(list) {
			return nil, s.invalid(name+" of the draft is not a list of plain addresses.", mail.AdviceFileDraft, nil)
		}
		if i < len(d.lists) {
			d.lists[i] = list
		} else {
			answers = list
		}
	}
	for _, a := range answers {
		if !s.policy.Owns(a.Addr) {
			return nil, s.invalid("Answers to the draft would go to another address than its sender's: it has a Reply-To.", mail.AdviceFileDraft, nil)
		}
	}
	if parents := h.MsgIDs("In-Reply-To"); len(parents) > 0 {
		d.parent = parents[0]
	}
	d.references = h.MsgIDs("References")
	return d, nil
}

// draft is what is written of a stored draft anew.
func (d *storedDraft) draft() *Draft {
	return &Draft{To: d.lists[0], CC: d.lists[1], BCC: d.lists[2], Subject: d.Header.Text("Subject"), As: d.from.Addr, stored: d}
}

// AppendToDraft adds text and files at the end of a draft of the account's mailbox: the draft
// with them is filed, and then the one before is put into the trash. Only Body and Attachments
// of more count. The same call after one that was cut off files no second draft. A draft whose
// text is not all of what its readers would see is KindUnsupported, and one that is not the
// caller's own KindReadOnly.
func (b *Outbox) AppendToDraft(ctx context.Context, ref mail.Ref, more Draft) (*SavedDraft, error) {
	s, err := b.drafter(ctx, ref.Account)
	if err != nil {
		return nil, err
	}
	old, err := b.storedDraft(ctx, s, ref)
	switch {
	case err != nil:
		return nil, err
	case !old.Own:
		return nil, s.others("An agent goes on with the drafts that it wrote, and no others.")
	case old.Incomplete || old.html != "" || len(old.texts) != 1:
		return nil, s.Unsupported("The draft is not one text, or has HTML that was not made of it here, so nothing can be added to it.", mail.AdviceFileDraft)
	case old.quoted > 0:
		return nil, s.Unsupported("The draft ends with what it quotes, so nothing can be added behind that.", mail.AdviceFileDraft)
	}
	if err := s.noCode(old.secrets()); err != nil {
		return nil, err
	}
	d := old.draft()
	d.stored, d.Markdown = nil, old.markdown
	if d.Body = old.texts[0]; d.Body != "" && !strings.HasSuffix(d.Body, "\n") {
		d.Body += "\n"
	}
	d.Body += more.Body
	name := sha256.New() // of the draft that there was and what is added
	_, _ = fmt.Fprintf(name, "%s %q", old.Ref, more.Body)
	for _, f := range old.files {
		d.Attachments = append(d.Attachments, Attachment{Name: f.Name, Type: f.Type, Content: f.Content, Message: f.Type == "message/rfc822"})
	}
	for _, f := range more.Attachments {
		d.Attachments = append(d.Attachments, f)
		_, _ = fmt.Fprintf(name, " %q %x", f.Name, sha256.Sum256(f.Content))
	}
	l, err := s.read(d)
	if err != nil {
		return nil, err
	}
	if err := s.policy.CheckDraft(l.recipients); err != nil {
		return nil, err
	}
	m, err := b.message(ctx, s, l, mail.IDAlphabet.EncodeToString(name.Sum(nil)[:20]))
	if err != nil {
		return nil, err
	}
	m.From.Name, m.InReplyTo, m.References = old.from.Name, old.parent, old.references
	saved, err := b.saveDraft(ctx, s, m, "<"+m.MessageID+">", more.DryRun)
	if err == nil && !more.DryRun {
		saved.Left = b.o.Mailboxes.ReplaceDraft(ctx, s.Op, old.Ref, saved.Change)
	}
	return saved, err
}

// removeDraft removes the draft of a message that was sent and whose copy needs nothing more.
// It returns the draft that a later try may still remove, empty for none, and why this one did
// not.
func (b *Outbox) removeDraft(ctx context.Context, op string, e *mail.Outgoing) (again string, left *mail.Issue) {
	ref, err := mail.ParseRef(e.Draft)
	if err != nil || b.o.Mailboxes == nil || outstanding(e.Sent) {
		return e.Draft, nil
	}
	if left = b.o.Mailboxes.RemoveDraft(ctx, op, ref); left == nil {
		return "", nil
	}
	left.Message = "The message was sent, and its draft may still be in the folder for drafts: " + left.Message
	switch left.Kind {
	case mail.KindConnection, mail.KindTimeout, mail.KindAuth, mail.KindStopped:
		return e.Draft, left
	}
	return "", left // another try would end alike
}
