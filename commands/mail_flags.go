package commands

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
)

type mailFlagsArgs struct {
	messagesArgs
	Add    []string `json:"add,omitempty" jsonschema:"maxItems=20,minLength=1,maxLength=64,example=flagged" jsonschema_description:"Flags to set: flagged, seen, answered or a keyword"`
	Remove []string `json:"remove,omitempty" jsonschema:"maxItems=20,minLength=1,maxLength=64,example=seen" jsonschema_description:"Flags to remove"`
}

func (a *mailFlagsArgs) action() mail.Action {
	return mail.Action{Do: mail.DoFlags, Add: a.Add, Remove: a.Remove}
}

// Validate checks how the messages are named and what is a flag (RFC 9051 section
// 2.3.2).
func (a *mailFlagsArgs) Validate() error {
	if err := a.messagesArgs.Validate(); err != nil {
		return err
	}
	if len(a.Add)+len(a.Remove) == 0 {
		return &discovery.Fault{Code: discovery.ValidationError, Message: "No flag is named: --add and --remove are both missing."}
	}
	for i := range a.Add {
		if err := readFlag(&a.Add[i]); err != nil {
			return err
		}
	}
	for i := range a.Remove {
		if err := readFlag(&a.Remove[i]); err != nil {
			return err
		}
	}
	if err := checkAdded(a.Add); err != nil {
		return err
	}
	for _, f := range a.Add {
		if slices.ContainsFunc(a.Remove, func(r string) bool { return strings.EqualFold(r, f) }) {
			return &discovery.Fault{Code: discovery.ValidationError, Message: fmt.Sprintf("The flag %s is in both --add and --remove.", f),
				Hint: "Name it once."}
		}
	}
	return nil
}

// checkAdded refuses the flag that deletes.
func checkAdded(flags []string) error {
	if !slices.Contains(flags, `\Deleted`) {
		return nil
	}
	return &discovery.Fault{Code: discovery.ValidationError, Message: `The flag \Deleted is not set.`,
		Hint: "'mail trash' puts messages into the trash; 'mail delete' with --confirm removes them for good."}
}

var systemFlags = []string{"Seen", "Answered", "Flagged", "Deleted", "Draft", "Recent"}

// readFlag takes keywords, and system flags with or without their backslash, which it
// completes.
func readFlag(f *string) error {
	name := strings.TrimPrefix(*f, `\`)
	for _, s := range systemFlags {
		if strings.EqualFold(s, name) {
			*f = `\` + s
		}
	}
	switch {
	case *f == `\Recent`:
		return &discovery.Fault{Code: discovery.ValidationError, Message: `The flag \Recent belongs to the server.`, Hint: "Name another flag."}
	case name == "" || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`(){%*"\]`, r) }):
		return &discovery.Fault{Code: discovery.ValidationError, Message: "A flag is a word of ASCII characters without spaces, quotes, brackets, % or *.",
			Hint: "Name flags such as seen, flagged or project-x."}
	}
	return nil
}

// MailFlagsResult answers mail flags (001 section 7).
type MailFlagsResult struct {
	batchResult
	RequestedAdd    []string  `json:"requested_add_flags"`
	RequestedRemove []string  `json:"requested_remove_flags"`
	Messages        []Flagged `json:"messages"`
	Undo            string    `json:"undo,omitempty" jsonschema_description:"The command that takes it back"`
}

// Flagged is a message whose flags were changed; without Flags where the server
// did not tell.
type Flagged struct {
	ID            string   `json:"message_id"`
	Flags         []string `json:"flags,omitzero" acli:"untrusted"`
	AppliedAdd    bool     `json:"applied_add_flags"`
	AppliedRemove bool     `json:"applied_remove_flags"`
}

func mailFlags(d *Deps) *discovery.Command {
	return argument.Command(discovery.Spec{
		Path:    "mail flags",
		Also:    []string{"star", "tag", "label", "mark", "mark-unread", "unseen"},
		Summary: "flagged, seen, …",
		Details: "The system flags are seen, answered and flagged; other words are keywords. 'mail trash' removes messages.",
		Effect:  discovery.Write,
		Does:    "flags",
		Examples: []string{"mail flags 50 49 --add flagged",
			"mail flags Sent/1 --add project-x --remove seen"},
	}, func(ctx context.Context, call *discovery.Call, args *mailFlagsArgs) (*MailFlagsResult, error) {
		c, result, err := d.change(ctx, call, args)
		if err != nil {
			return nil, err
		}
		return &MailFlagsResult{result, append([]string{}, args.Add...), append([]string{}, args.Remove...), answer.Each(c.Messages, func(m *mailbox.ChangedMessage) Flagged {
			return Flagged{m.Ref.String(), shownFlags(m.Flags), m.Added, m.Removed}
		}), result.undo}, nil
	})
}

type mailFlagsBrief struct {
	Changed []string `json:"changed"`
	Undo    string   `json:"undo,omitempty"`
	answer.Rest
}

// Brief is the ids of the messages.
func (r *MailFlagsResult) Brief() mailFlagsBrief {
	return mailFlagsBrief{r.changed, r.Undo, r.Rest(nil)}
}

// Summary implements discovery.Summarizer.
func (r *MailFlagsResult) Summary() string {
	return done("Changed the flags of #", len(r.Messages), r.Issues)
}
