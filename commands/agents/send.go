package agents

import (
	"context"
	"fmt"

	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/vault/agentmail"
)

type sendArgs struct {
	From    string  `json:"from" acli:"form=identity" jsonschema:"example=my-repo:main" jsonschema_description:"Your identity, project:name"`
	To      string  `json:"to" acli:"value=P:NAME" jsonschema:"pattern=^([*]|[a-z0-9][a-z0-9-]*:[a-z0-9][a-z0-9-]*)$,example=my-repo:reviewer,example=*" form:"must be project:name, both of lower-case letters, digits and dashes, or *" jsonschema_description:"Identity of the recipient, or * for every agent"`
	Subject string  `json:"subject" acli:"form=text" jsonschema:"maxLength=10000" jsonschema_description:"Subject, in one line"`
	Body    *string `json:"body,omitempty" acli:"sensitive,form=text,value=TEXT" jsonschema:"maxLength=10000" jsonschema_description:"The text; or use --body-file"`
	Refs    *string `json:"refs,omitempty" acli:"rare" jsonschema:"maxLength=10000,example=[\"notes/plan.md\"]" jsonschema_description:"JSON array of paths of files that the message is about; nobody opens them"`
	ReplyTo string  `json:"reply-to,omitempty" acli:"form=agent_message,rare" jsonschema:"example=1b4e28ba-2fa1-4d3b-a3f5-ef19b5a7633b" jsonschema_description:"Id of the message that this answers, which makes a thread"`

	BodyFile *string `json:"body-file,omitempty" acli:"path=attachment directory,rare" jsonschema:"minLength=1,maxLength=4096,example=note.md" jsonschema_description:"A text file in UTF-8, in place of --body"`

	refs string // canonical, since Validate
}

// Validate checks what one field alone cannot.
func (a *sendArgs) Validate() (err error) {
	if a.Body != nil && a.BodyFile != nil {
		return &discovery.Fault{Code: discovery.ValidationError, Message: "The text is given twice.", Hint: "Give either --body or --body-file."}
	}
	if a.Refs != nil {
		a.refs, err = canonicalRefs(*a.Refs)
	}
	return err
}

// Sent answers agent send (003, command contract of send).
type Sent struct {
	ID        string `json:"id" jsonschema:"format=uuid"`
	Sender    string `json:"sender"`
	Recipient string `json:"recipient"`
	Subject   string `json:"subject"`
	Type      string `json:"type" jsonschema:"enum=direct,enum=broadcast"`
	Created   string `json:"created" jsonschema:"format=date-time"`
	TTLHours  int    `json:"ttl_hours"`
}

func send(d *Deps) *discovery.Command {
	return argument.Command(discovery.Spec{
		Path:    "agent send",
		Also:    []string{"send"},
		Summary: "To one, or all",
		Details: fmt.Sprintf("The recipient need not exist yet. The message lives 24 hours. A body file keeps every byte, up to %d KiB; keep longer text, and text that is to stay, in a file and name it with --refs.", maxBody>>10),
		Effect:  discovery.State,
		Examples: []string{
			`agent send --from my-repo:main --to my-repo:reviewer --subject 'Please look at the parser' --body 'It is on branch x.' --refs '["src/parser.go"]'`,
			`agent send --from my-repo:main --to '*' --subject 'The build is red'`,
			`agent send --from my-repo:reviewer --to my-repo:main --subject Done --reply-to 1b4e28ba-2fa1-4d3b-a3f5-ef19b5a7633b`,
		},
		HostPaths: d.HostFile != nil,
	}, func(ctx context.Context, call *discovery.Call, args *sendArgs) (*Sent, error) {
		if err := d.asAgent(ctx, call, args.From); err != nil {
			return nil, err
		}
		call.Target = fmt.Sprintf("as %s to %s", args.From, args.To)
		m := agentmail.Message{Sender: args.From, Recipient: args.To, Subject: args.Subject, Refs: args.refs, ReplyTo: args.ReplyTo, Principal: call.Principal}
		switch {
		case args.Body != nil:
			m.Body = *args.Body
		case args.BodyFile != nil:
			var err error
			if m.Body, err = d.body(ctx, *args.BodyFile); err != nil {
				return nil, err
			}
		}
		// The id and the times, which it does not have yet, have room besides.
		if room := roomFor(nil); room.Size(&m) > room.Room {
			return nil, &discovery.Fault{Code: discovery.ValidationError, Message: "The message does not fit into one answer.",
				Hint: "Keep the text in a file, and name its path with --refs."}
		}
		sent, err := d.Mailbox.Send(ctx, m)
		if err != nil {
			return nil, err
		}
		return &Sent{ID: sent.ID, Sender: sent.Sender, Recipient: sent.Recipient, Subject: sent.Subject, Type: typeOf(&sent),
			Created: timestamp(sent.Created), TTLHours: ttlHours}, nil
	})
}

// Summary implements discovery.Summarizer.
func (r *Sent) Summary() string {
	if r.Type == broadcast {
		return "Left for every agent"
	}
	return "Left for " + r.Recipient
}
