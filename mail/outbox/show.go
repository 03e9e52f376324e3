package outbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/message"
	"github.com/postern-mail/postern/mail/internal/rfc5322"
)

// Shown is an entry of the outbox with what a person has to see before saying yes.
// HeaderFrom, To, CC, Subject, Body and Files are read from the bytes that leave, and not
// from the request. Recipients are the envelope's, whatever the header says.
type Shown struct {
	mail.Outgoing
	// Here tells whether the bytes are still there: those of a message that ended
	// are forgotten, and then Body and Files are empty.
	Here       bool
	HeaderFrom mail.Address // as the recipients see it
	Body       string       // the whole text
	Files      []ShownFile
}

// ShownFile is an attachment as it leaves.
type ShownFile struct {
	mail.FileName
	SHA256 string // of the decoded bytes, in hexadecimal
}

// Show returns an entry with its content. The error matches ErrNoOutgoing when the entry
// does not exist, and is KindConflict when its bytes do not match Digest.
func (b *Outbox) Show(ctx context.Context, id string) (*Shown, error) {
	const op = "outbox show"
	e, err := b.o.Store.Outgoing(ctx, id)
	if err != nil {
		return nil, wrapStore(ctx, op, err)
	}
	shown := &Shown{Outgoing: present(e, b.now())}
	if e.Kind == mail.OutboxDelete {
		shown.Here = true
		return shown, unchanged(op, &e)
	}
	raw, err := b.bytes(ctx, op, &e)
	if errors.Is(err, mail.ErrNoOutgoing) {
		return shown, nil
	}
	if err != nil {
		return nil, err
	}
	shown.Here = true
	shown.read(raw)
	return shown, nil
}

// read takes apart a message that compose has built: a text, or a text and the
// files that follow it.
func (s *Shown) read(raw []byte) {
	entity := message.Parse(raw)
	h := entity.Header
	s.To, s.CC = h.Addresses("To"), h.Addresses("Cc")
	if from := h.Addresses("From"); len(from) == 1 {
		s.HeaderFrom = from[0]
	}
	s.Subject = h.Text("Subject")
	root := entity.Root
	parts := []*message.Part{root}
	if root.Type == "multipart" {
		parts = root.Children
	}
	for i, p := range parts {
		content := message.DecodeBody(entity.Raw(p), p.Encoding)
		if i == 0 {
			s.Body = rfc5322.DecodeText(content, p.Param("charset"))
			if p.Param("format") == "flowed" {
				s.Body = message.Flowed(s.Body, p.Param("delsp") == "yes")
			}
			continue
		}
		sum := sha256.Sum256(content)
		s.Files = append(s.Files, ShownFile{FileName: mail.FileName{Name: p.Filename, Type: p.MediaType(), Size: int64(len(content))},
			SHA256: hex.EncodeToString(sum[:])})
	}
}
