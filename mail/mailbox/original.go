package mailbox

import (
	"context"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/codes"
	"github.com/postern-mail/postern/mail/internal/imap"
	"github.com/postern-mail/postern/mail/internal/message"
	"github.com/postern-mail/postern/mail/internal/rfc5322"
	"github.com/postern-mail/postern/mail/mailbox/internal/fetch"
	"github.com/postern-mail/postern/mail/mailbox/internal/reading"
)

// Original is a message that a letter answers or hands on.
type Original struct {
	Ref    mail.Ref
	Header rfc5322.Header // at least who wrote it and to whom, its subject, date and thread
	Text   string         // as Get shows it
	New    string         // what of Text is no older message that it quotes
	Cut    bool           // there is more text
	Names  []string       // of its attachments, with Text
	Files  []*AttachmentContent
	Source []byte
	Masked codes.Found // one-time codes and links that log in, which agents are not shown
}

// OriginalQuery is what a letter needs besides the header. Each costs what it fetches.
type OriginalQuery struct {
	Text, Files bool
	Header      bool  // all of it, with Text or Files
	Source      int64 // with at most so many bytes; 0 for no source
}

// maxOriginalText bounds the text of an Original, in characters.
const maxOriginalText = 100_000

// Original reads a message that the policy shows, in one round trip where the server gives its
// structure and it is small. A hidden message and one that does not exist give the same error.
// A file that is too large to be fetched with the others is an error of KindLimit, and so is a
// source over the bound.
func (m *Client) Original(ctx context.Context, op string, ref mail.Ref, q OriginalQuery) (*Original, error) {
	b, err := m.open(ctx, op, ref.Account)
	if err != nil {
		return nil, err
	}
	x := b.base()
	switch {
	case q.Source > 0:
		raw, err := b.raw(ctx, ref, q.Source+1)
		if err != nil {
			return nil, err
		}
		if raw.Size > q.Source {
			return nil, x.Failure(mail.KindLimit, imap.StageFetch, "The message is too large to be handed on.", mail.AdviceMailProgram)
		}
		return &Original{Ref: raw.Ref, Header: rfc5322.ParseHeader(message.HeaderOf(raw.Source)), Source: raw.Source, Masked: raw.masked}, nil
	case !q.Text && !q.Files:
		g, err := b.header(ctx, ref)
		if err != nil {
			return nil, err
		}
		if !x.Suspected(g).Any() { // else the text says whether what goes on of the header has a code
			return &Original{Ref: ref, Header: g.Header}, nil
		}
	}
	r := &reading.Reading{Viewer: &x.Viewer, Ref: ref, Bare: true, Query: GetQuery{BodyChars: maxOriginalText, Headers: HeadersNone, Content: q.Files}}
	if q.Header {
		r.Query.Headers = HeadersAll
	}
	if err := b.get(ctx, []*reading.Reading{r}); err != nil {
		return nil, err
	}
	if r.Err != nil {
		return nil, r.Err
	}
	r.Show(maxOriginalText)
	o := &Original{Ref: r.Got.Ref, Header: r.Got.Header, Text: r.Message.BodyText, New: r.Text.New(), Cut: r.Message.BodyTruncated, Masked: r.Masked}
	for _, a := range r.Message.Attachments {
		o.Names = append(o.Names, a.Filename)
	}
	if !q.Files {
		return o, nil
	}
	if len(r.Message.Issues) > 0 {
		return nil, x.Failure(mail.KindLimit, imap.StageFetch, "Not all of the message can be read here, so it is not handed on.", mail.AdviceMailProgram)
	}
	for i, p := range message.Attachments(r.Got.Root) {
		a := r.Message.Attachments[i]
		if a.Content == nil && p.Size > 0 {
			return nil, x.Failure(mail.KindLimit, imap.StageFetch, "Its attachments are too many or too large to be handed on together.", mail.AdviceMailProgram)
		}
		o.Files = append(o.Files, &AttachmentContent{Ref: o.Ref, Attachment: a, FullType: reading.FullType(p)})
	}
	return o, nil
}

// Named returns the newest message with a Message-ID, given without its brackets, in INBOX, else in
// the archive, that the policy shows; the zero Ref where there is none or it cannot be told. It
// costs a search of each folder.
func (m *Client) Named(ctx context.Context, op, account, id string) mail.Ref {
	b, err := m.open(ctx, op, account)
	if x, ok := b.(searcher); ok && err == nil {
		return x.withID(ctx, id)
	}
	return mail.Ref{}
}

func (x *imapBox) withID(ctx context.Context, id string) (found mail.Ref) {
	for _, role := range []string{"", "archive"} {
		var refs []mail.Ref
		_ = x.lend(ctx, "", func(s *imap.Session) (err error) {
			refs = nil
			folder := inbox
			if role != "" {
				folder, err = x.knownFor(s, role)
			}
			if err != nil || folder == "" || x.Policy.HidesFolder(folder) {
				return err
			}
			search := fetch.Visit{Folder: folder, Criteria: []imap.Criteria{imap.HeaderHolds("Message-ID", "<"+id+">")}}
			if err = (fetch.Visits{&search}).Start(s, nil); err != nil || search.Err != nil {
				return err
			}
			for _, uid := range search.Found[0].Newest(maxReturned).Numbers() {
				refs = append(refs, x.RefTo(search.Box.Name, search.Box.UIDValidity, uid))
			}
			return nil
		})
		for _, ref := range refs {
			if g, err := x.header(ctx, ref); err == nil && fetch.MessageID(g.Header) == id && ref.UID > found.UID {
				found = ref
			}
		}
		if found.UID != 0 {
			return found
		}
	}
	return mail.Ref{}
}
