package mailbox

import (
	"cmp"
	"context"
	"slices"
	"unicode/utf8"

	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/imap"
	"github.com/postern-mail/postern/mail/internal/message"
	"github.com/postern-mail/postern/mail/internal/rfc5322"
	"github.com/postern-mail/postern/mail/mailbox/internal/fetch"
)

// The bounds of messages and attachments fetched whole.
const (
	chunkBytes    = 4 << 20  // of one message or part in one fetch
	maxWholeBytes = 64 << 20 // of one message or attachment altogether, as transferred
)

// Raw returns the source of a message, byte for byte, from its beginning.
// maxBytes is brought into 1024..1,000,000, 0 means 200,000 (001 section 6).
func (m *Client) Raw(ctx context.Context, ref mail.Ref, maxBytes int64) (*RawMessage, error) {
	b, err := m.open(ctx, "mail raw", ref.Account)
	if err != nil {
		return nil, err
	}
	raw, err := b.raw(ctx, ref, int64(RawBytes.of(int(maxBytes))))
	if err == nil && raw.masked.Any() {
		return nil, b.base().Withheld("its source is not shown")
	}
	return raw, err
}

func (x *imapBox) raw(ctx context.Context, ref mail.Ref, limit int64) (out *RawMessage, err error) {
	// What is masked is told by more than a small piece.
	items := imap.Items{Size: true, Date: true, Sections: []imap.Section{{Size: max(limit, int64(RawBytes.Default))}}}
	err = x.readOne(ctx, ref, items, func(_ *imap.Session, g *fetch.Message) error {
		raw := g.Source
		if raw == nil {
			return x.NoMessage("")
		}
		shown := raw[:min(int64(len(raw)), limit)]
		g.Header = rfc5322.ParseHeader(message.HeaderOf(raw))
		out = &RawMessage{Ref: g.Ref, Size: max(g.Size, int64(len(raw))), Source: shown, masked: x.MaskedIn(g, raw)}
		out.Truncated = out.Size > int64(len(shown))
		return nil
	})
	return out, err
}

// readOne lends a session with one message that the policy shows, whose folder is open.
func (x *imapBox) readOne(ctx context.Context, ref mail.Ref, items imap.Items, fn func(s *imap.Session, g *fetch.Message) error) error {
	ref, err := x.named(ref)
	if err != nil {
		return err
	}
	return x.lend(ctx, ref.Folder, func(s *imap.Session) error {
		g, err := x.one(s, ref, items)
		if err != nil {
			return err
		}
		return fn(s, g)
	})
}

// one fetches data of one message that the policy shows, in one round trip.
func (x *imapBox) one(s *imap.Session, ref mail.Ref, items imap.Items) (*fetch.Message, error) {
	if !x.Policy.ShowsAll() && !slices.Contains(items.Sections, fetch.WholeHeader) {
		items.Sections = append(items.Sections, fetch.WholeHeader)
	}
	box, data, err, fetchErr := fetch.Now(s, ref.Folder, func() *imap.Fetching { return s.Fetch(imap.UIDs(ref.UID), items) })
	if err != nil {
		return nil, err
	}
	if ref.UIDValidity != 0 && ref.UIDValidity != box.UIDValidity {
		return nil, x.MadeAnew(mail.AdviceListAgain)
	}
	if imap.Refused(fetchErr) && !x.Policy.ShowsAll() {
		return nil, x.NoMessage("filtered")
	}
	if fetchErr != nil {
		return nil, fetchErr
	}
	d := fetch.DataOf(data, ref.UID)
	if d == nil || len(d.Sections) == 0 && d.Structure == nil && d.Size == 0 {
		return nil, x.NoMessage("")
	}
	ref.UIDValidity = box.UIDValidity
	g := fetch.Read(ref, d)
	if !x.Policy.Sees(&g) {
		return nil, x.NoMessage("filtered")
	}
	return &g, nil
}

// chunks fetches all of a message, or of a part of it by its section number. size is the
// server's figure; if it is wrong, the bytes that the server sends count.
func (x *imapBox) chunks(s *imap.Session, uid uint32, part string, size int64) ([]byte, error) {
	if size > maxWholeBytes {
		return nil, x.tooLarge()
	}
	var all []byte
	for {
		s.Renew()
		section := imap.Section{Part: part, Offset: int64(len(all)), Size: chunkBytes}
		data, err := s.Fetch(imap.UIDs(uid), imap.Items{Sections: []imap.Section{section}}).Wait()
		if err != nil {
			return nil, err
		}
		d := fetch.DataOf(data, uid)
		if d == nil {
			return nil, x.NoMessage("") // it vanished in between
		}
		b, ok := d.Section(section)
		if !ok {
			return nil, x.NoMessage("")
		}
		all = append(all, b...)
		x.Tell(float64(len(all)), float64(max(size, int64(len(all)))), "bytes read")
		if len(b) < chunkBytes {
			return all, nil
		}
		if len(all) > maxWholeBytes {
			return nil, x.tooLarge()
		}
	}
}

func (x *access) tooLarge() error {
	return x.Failure(mail.KindLimit, imap.StageFetch, "It is larger than 64 MiB.", mail.AdviceMailProgram)
}

// Attachment returns one attachment with its content, up to 64 MiB as transferred. part is
// its PartID; empty means the message's only attachment. An unknown part is KindNotFound.
func (m *Client) Attachment(ctx context.Context, ref mail.Ref, part string) (*AttachmentContent, error) {
	b, err := m.open(ctx, "mail attachment", ref.Account)
	if err != nil {
		return nil, err
	}
	return b.attachment(ctx, ref, part)
}

// AttachmentQuery bounds AttachmentText.
type AttachmentQuery struct {
	Part     string // PartID; empty means the message's only attachment
	Chars    int    // 100..50000 runes; 0 means 10000
	FromChar int    // the text from this rune on, where 1 is the first; 0 means from the beginning
}

// AttachmentText is Attachment with the attachment's text in place of its content, read as
// Get reads it. KindUnsupported means that it holds no text that can be read.
func (m *Client) AttachmentText(ctx context.Context, ref mail.Ref, q AttachmentQuery) (*AttachmentContent, error) {
	b, err := m.open(ctx, "mail attachment", ref.Account)
	if err != nil {
		return nil, err
	}
	a, err := b.attachment(ctx, ref, q.Part)
	if err != nil {
		return nil, err
	}
	q.Chars = AttachmentChars.of(q.Chars)
	from := max(FromChar.of(q.FromChar), 1)
	text, cut, err := b.base().TextOf(ctx, m.o.PDFText, a, from-1+q.Chars)
	if err != nil {
		return nil, err
	}
	for n := 1; n < from && text != ""; n++ {
		_, size := utf8.DecodeRuneInString(text)
		text = text[size:]
	}
	a.Content = nil
	if a.Text, a.TextTruncated = plain.Head(text, q.Chars); a.Text != "" && (cut || a.TextTruncated) {
		a.TextTruncated, a.NextChar = true, from+utf8.RuneCountInString(a.Text)
	}
	return a, nil
}

func (x *imapBox) attachment(ctx context.Context, ref mail.Ref, part string) (out *AttachmentContent, err error) {
	err = fetch.WithStructure(ctx, func(structure bool) error {
		items := fetch.Wanted{Structure: structure, Dates: true, Full: true, Text: structure && x.Policy.MasksCodes()}.Items()
		return x.readOne(ctx, ref, items, func(s *imap.Session, g *fetch.Message) (err error) {
			if x.MayMask(g) {
				texts, err := x.ReadTexts(s, []*fetch.Message{g}, structure)
				if err != nil {
					return err
				}
				if r := texts[0]; r.Err != nil || r.Masked.Any() {
					return cmp.Or(r.Err, x.Withheld("its attachments are not shown"))
				}
			}
			out, err = x.readAttachment(s, g, part)
			return err
		})
	})
	return out, err
}

func (x *imapBox) readAttachment(s *imap.Session, g *fetch.Message, part string) (*AttachmentContent, error) {
	root := g.Root
	var entity *message.Entity
	if message.Hollow(root) {
		raw, err := x.chunks(s, g.Ref.UID, "", g.Size)
		if err != nil {
			return nil, err
		}
		entity = message.Parse(raw)
		root = entity.Root
	}
	p, err := x.Choose(root, part)
	if err != nil {
		return nil, err
	}
	var raw []byte
	if entity != nil {
		raw = entity.Raw(p)
	} else if raw, err = x.chunks(s, g.Ref.UID, p.ID, p.Size); err != nil {
		return nil, err
	}
	return x.AttachmentOf(g, root, p, raw, part)
}

func (x *imapBox) header(ctx context.Context, ref mail.Ref) (out *fetch.Message, err error) {
	items := imap.Items{Size: true, Date: true, Sections: []imap.Section{fetch.WholeHeader}}
	err = x.readOne(ctx, ref, items, func(_ *imap.Session, g *fetch.Message) error {
		if !g.Readable {
			return x.NoMessage("")
		}
		out = g
		return nil
	})
	return out, err
}
