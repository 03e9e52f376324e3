package reading

import (
	"context"
	"fmt"
	"mime"
	"strings"

	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/message"
	"github.com/postern-mail/postern/mail/mailbox/internal/fetch"
)

// AttachmentContent is one attachment with its decoded bytes.
type AttachmentContent struct {
	Ref mail.Ref
	Attachment
	FullType string // ContentType with the parameters that its content needs, as outbox.Attachment takes it
	NextChar int    // AttachmentText: the FromChar that goes on; 0 at the end

	part *message.Part
}

// AttachmentOf is the attachment that was named, from the octets of the part it is or is in.
func (x *Viewer) AttachmentOf(g *fetch.Message, root, p *message.Part, raw []byte, part string) (*AttachmentContent, error) {
	if x.MaskedPart(g, p, raw).Any() {
		return nil, x.Withheld("this part of it is not shown")
	}
	if part != "" && p.ID != part {
		if p, raw = message.Inner(p, raw, part); p == nil {
			return nil, x.noPart(message.Attachments(root), part)
		}
		if x.MaskedPart(g, p, raw).Any() {
			return nil, x.Withheld("this part of it is not shown")
		}
	}
	content := message.DecodeBody(raw, p.Encoding)
	return &AttachmentContent{Ref: g.Ref, part: p, FullType: FullType(p), Attachment: Attachment{PartID: p.ID, Filename: p.Filename,
		ContentType: plain.Line(p.MediaType()), Size: int64(len(content)), Content: content}}, nil
}

// Choose finds the named attachment, or the named part of the text, or the part that it is in.
func (x *Viewer) Choose(root *message.Part, part string) (*message.Part, error) {
	if part != "" {
		for p := range root.Leaves() {
			if p.ID == part || strings.HasPrefix(part, p.ID+".") {
				return p, nil
			}
		}
	}
	all := message.Attachments(root)
	if part == "" && len(all) == 1 {
		return all[0], nil
	}
	return nil, x.noPart(all, part)
}

func (x *Viewer) noPart(all []*message.Part, part string) error {
	var ids []string
	for _, p := range all {
		ids = append(ids, p.ID)
	}
	const most = 20
	if len(ids) > most {
		ids = append(ids[:most], "…")
	}
	switch {
	case len(all) == 0:
		return x.Failure(mail.KindNotFound, "parse", "The message has no attachment.", mail.AdviceGet)
	case part == "":
		return x.Invalid(fmt.Sprintf("The message has %d attachments.", len(all)), mail.AdviceNamePart).About(strings.Join(ids, ", "))
	}
	return x.Failure(mail.KindNotFound, "parse", "The message has no such attachment.", mail.AdviceNamePart).About(strings.Join(ids, ", "))
}

// TextOf reads the text of an attachment, from its beginning. Without a reader a PDF has none.
func (x *Viewer) TextOf(ctx context.Context, pdfs PDFReader, a *AttachmentContent, chars int) (text string, cut bool, err error) {
	p := *a.part
	p.Encoding, p.Size = "", a.Size // its content is decoded
	if !isPDF(&p) {
		text, hidden, cut, ok := message.PartText(x.Work, &p, a.Content, chars)
		a.HiddenChars = hidden
		if !ok {
			return "", false, x.Unsupported("The attachment is neither text nor a PDF.", mail.AdviceContent)
		}
		return text, cut, nil
	}
	if pdfs == nil {
		return "", false, x.Unsupported("PDF text is not available here.", mail.AdviceContent)
	}
	text, cut, err = pdfs.Text(ctx, a.Content, chars)
	if err != nil && ctx.Err() == nil {
		err = x.Unsupported("The text of the PDF could not be read: "+plain.Line(err.Error())+".", mail.AdviceContent)
	}
	return plain.Text(text), cut, err
}

// FullType is the type of an attachment as it can be told on: with the charset of a text and
// the method of an invitation, application/octet-stream where it is not a type.
func FullType(p *message.Part) string {
	params := make(map[string]string)
	for _, name := range []string{"charset", "method"} {
		if v := p.Param(name); v != "" && p.Type == "text" && len(v) < 64 && strings.IndexFunc(v, func(r rune) bool { return r <= ' ' || r > '~' }) < 0 {
			params[name] = v
		}
	}
	if t := mime.FormatMediaType(p.MediaType(), params); t != "" && len(t) < 200 {
		return t
	}
	return "application/octet-stream"
}
