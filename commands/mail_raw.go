package commands

import (
	"context"
	"fmt"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
)

type mailRawArgs struct {
	messageArgs
	MaxBytes int64 `json:"max-bytes,omitempty" acli:"form=raw_bytes,rare" jsonschema_description:"At most this many bytes, from the beginning"`
}

// MailRawResult answers mail raw (001 section 6).
type MailRawResult struct {
	answer.Outcome
	Account   string `json:"account_id"`
	ID        string `json:"message_id"`
	Size      int64  `json:"size_bytes"`
	Truncated bool   `json:"truncated,omitempty"`
	Encoding  string `json:"raw_source_encoding" jsonschema:"enum=base64"`
	Source    []byte `json:"raw_source_base64" acli:"untrusted"`

	id string // as the compact answer has it
}

// mailRawBrief is the compact answer of mail raw.
type mailRawBrief struct {
	ID     string `json:"id"`
	Size   int64  `json:"size_bytes"`
	Source []byte `json:"raw_source_base64" acli:"untrusted"`
	answer.Rest
}

// Brief is the compact answer.
func (r *MailRawResult) Brief() mailRawBrief {
	return mailRawBrief{r.id, r.Size, r.Source, r.Rest(r.NextAction)}
}

const maxRawBytes = 1_000_000 // of --max-bytes

func mailRaw(d *Deps) *discovery.Command {
	return argument.Command(discovery.Spec{
		Path:     "mail raw",
		Also:     []string{"source", "eml"},
		Forms:    bounds,
		Summary:  "Its source",
		Details:  "Every byte as it came. size_bytes is the size of the whole message. Nothing is removed from the source, so it may hold text that a person would not see.",
		Effect:   discovery.Read,
		Examples: []string{"mail raw 50", "mail raw Sent/1 --max-bytes 20000"},
	}, func(ctx context.Context, call *discovery.Call, args *mailRawArgs) (*MailRawResult, error) {
		call.Bytes = true
		ref, err := d.message(ctx, call, &args.messageArgs)
		if err != nil {
			return nil, err
		}
		m, err := d.Mailboxes.Raw(ctx, ref, args.MaxBytes)
		if err != nil {
			return nil, err
		}
		r := &MailRawResult{Outcome: answer.OutcomeOf(nil, true), Account: ref.Account, ID: m.Ref.String(), Size: m.Size, Truncated: m.Truncated,
			Encoding: "base64", Source: m.Source}
		if r.id = d.shown(ctx, call, m.Ref).Of(m.Ref); call.Full {
			r.id = r.ID
		}
		if r.Source == nil {
			r.Source = []byte{}
		}
		if m.Truncated && args.MaxBytes < maxRawBytes {
			r.NextAction = moreSource(call, args, r.id)
		}
		return r, nil
	})
}

func moreSource(call *discovery.Call, args *mailRawArgs, id string) *answer.NextAction {
	following := *args
	following.messageArgs, following.MaxBytes = messageArgs{ID: id}, maxRawBytes
	return answer.NextLine("The source was cut: show more of it", call.Again(&following))
}

// Summary implements discovery.Summarizer.
func (r *MailRawResult) Summary() string {
	if r.Truncated {
		return fmt.Sprintf("The first %d of %d bytes", len(r.Source), r.Size)
	}
	return answer.Count(len(r.Source), "byte", "bytes")
}
