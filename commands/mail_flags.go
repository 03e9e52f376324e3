package commands

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
)

type mailFlagsArgs struct {
	messagesArgs
	Add    []string `json:"add,omitempty" jsonschema:"maxItems=20,minLength=1,maxLength=64,example='\\Flagged'" jsonschema_description:"Flags to set; quote a system flag, such as '\\Flagged'"`
	Remove []string `json:"remove,omitempty" jsonschema:"maxItems=20,minLength=1,maxLength=64,example='\\Seen'" jsonschema_description:"Flags to remove; quote a system flag, such as '\\Seen'"`
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
	for _, f := range a.Add {
		if err := checkFlag(f); err != nil {
			return err
		}
		if strings.EqualFold(f, `\Deleted`) {
			return &discovery.Fault{Code: discovery.ValidationError, Message: `--add does not take \Deleted.`,
				Hint: "To delete a message use 'mail delete' with --confirm."}
		}
		if slices.ContainsFunc(a.Remove, func(r string) bool { return strings.EqualFold(r, f) }) {
			return &discovery.Fault{Code: discovery.ValidationError, Message: fmt.Sprintf("The flag %s is in both --add and --remove.", f),
				Hint: "Name it once."}
		}
	}
	for _, f := range a.Remove {
		if err := checkFlag(f); err != nil {
			return err
		}
	}
	return nil
}

var systemFlags = []string{"Seen", "Answered", "Flagged", "Deleted", "Draft", "Recent"}

// checkFlag takes keywords and system flags. The bare name of a system flag is
// what remains of one whose backslash was not quoted, and would quietly become a
// keyword.
func checkFlag(f string) error {
	name, system := strings.CutPrefix(f, `\`)
	known := slices.ContainsFunc(systemFlags, func(s string) bool { return strings.EqualFold(s, name) })
	switch {
	case !system && known:
		return &discovery.Fault{Code: discovery.ValidationError, Message: fmt.Sprintf("A system flag begins with a backslash, and %s has none.", name),
			Hint: fmt.Sprintf(`Put it in quotes: '\%s'. Outside quotes a backslash is dropped.`, name)}
	case strings.EqualFold(f, `\Recent`):
		return &discovery.Fault{Code: discovery.ValidationError, Message: `The flag \Recent belongs to the server.`, Hint: "Name another flag."}
	case name == "" || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`(){%*"\]`, r) }):
		return &discovery.Fault{Code: discovery.ValidationError, Message: "A flag is a word of ASCII characters without spaces, quotes, brackets, % or *.",
			Hint: `Name flags such as '\Seen', '\Flagged' or project-x.`}
	}
	return nil
}

// MailFlagsResult answers mail flags (001 section 7).
type MailFlagsResult struct {
	batchResult
	RequestedAdd    []string  `json:"requested_add_flags"`
	RequestedRemove []string  `json:"requested_remove_flags"`
	Messages        []Flagged `json:"messages"`
}

// Flagged is a message whose flags were changed; without Flags where the server
// did not tell.
type Flagged struct {
	ID            string   `json:"message_id"`
	Flags         []string `json:"flags,omitzero"`
	AppliedAdd    bool     `json:"applied_add_flags"`
	AppliedRemove bool     `json:"applied_remove_flags"`
}

func mailFlags(d *Deps) *discovery.Command {
	return newCommand(discovery.Spec{
		Path:    "mail flags",
		Summary: "Set and remove flags of messages",
		Details: `System flags such as '\Flagged' are written in quotes; other words are keywords. \Deleted is not set this way: see 'mail delete'.`,
		Effect:  discovery.Write,
		Examples: []string{`mail flags --folder INBOX --uid 3 --add '\Flagged'`,
			`mail flags imap:default:INBOX:1700000000:3 --add project-x --remove '\Seen'`},
	}, func(ctx context.Context, call *discovery.Call, args *mailFlagsArgs) (*MailFlagsResult, error) {
		c, result, err := d.batch(ctx, call, &args.messagesArgs, func(ctx context.Context, account string, refs []mail.Ref) (*mailbox.Changed, error) {
			return d.Mailboxes.SetFlags(ctx, account, refs, args.Add, args.Remove)
		})
		if err != nil {
			return nil, err
		}
		r := &MailFlagsResult{result, append([]string{}, args.Add...), append([]string{}, args.Remove...), []Flagged{}}
		for _, m := range c.Messages {
			r.Messages = append(r.Messages, Flagged{m.Ref.String(), shownFlags(m.Flags), m.Added, m.Removed})
		}
		return r, nil
	})
}

// Summary implements discovery.Summarizer.
func (r *MailFlagsResult) Summary() string {
	return done("Changed the flags of #", len(r.Messages), r.Issues)
}
