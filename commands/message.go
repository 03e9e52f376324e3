package commands

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
)

// messageArgs name one message, by id or by folder and UID, and its account.
type messageArgs struct {
	ID     string `json:"id,omitempty" acli:"positional" jsonschema:"minLength=1,maxLength=600" jsonschema_description:"Message id as a list gave it; or use --folder and --uid"`
	Folder string `json:"folder,omitempty" acli:"form=folder" jsonschema_description:"Folder, with --uid in place of an id; INBOX if left out"`
	UID    uint32 `json:"uid,omitempty" jsonschema:"minimum=1,maximum=4294967295" jsonschema_description:"UID, with --folder in place of an id"`
	AccountOption

	named messagesArgs // the same, since Validate
}

// Validate checks how the message is named.
func (a *messageArgs) Validate() error {
	a.named = messagesArgs{Folder: a.Folder, AccountOption: a.AccountOption}
	if a.ID != "" {
		a.named.IDs = []string{a.ID}
	}
	if a.UID != 0 {
		a.named.UIDs = []uint32{a.UID}
	}
	return a.named.Validate()
}

func (a *messageArgs) onAccount() string { return a.named.onAccount() }

// message resolves the one message that a command works on.
func (d *Deps) message(ctx context.Context, call *discovery.Call, a *messageArgs) (mail.Ref, error) {
	refs, err := d.messages(ctx, call, &a.named)
	if err != nil {
		return mail.Ref{}, err
	}
	return refs[0], nil
}

// messagesArgs name messages of one folder, by ids or by folder and UIDs, and their
// account.
type messagesArgs struct {
	IDs    []string `json:"id,omitempty" acli:"positional" jsonschema:"maxItems=100,minLength=1,maxLength=600" jsonschema_description:"Message ids as a list gave them, all of one folder; or use --folder and --uid"`
	Folder string   `json:"folder,omitempty" acli:"form=folder" jsonschema_description:"Folder, with --uid in place of ids; INBOX if left out"`
	UIDs   []uint32 `json:"uid,omitempty" jsonschema:"maxItems=100,minimum=1,maximum=4294967295" jsonschema_description:"UIDs, with --folder in place of ids"`
	AccountOption

	refs []mail.Ref // of the ids, since Validate
}

// Validate refuses what names no messages or those of several folders, and reads the
// ids.
func (a *messagesArgs) Validate() error {
	switch {
	case len(a.IDs) > 0 && (a.Folder != "" || len(a.UIDs) > 0):
		return &discovery.Fault{Code: discovery.ValidationError, Message: "A message is named twice: by its id and by --folder or --uid."}
	case len(a.IDs) == 0 && len(a.UIDs) == 0:
		return &discovery.Fault{Code: discovery.ValidationError, Message: "No message is named.",
			Hint: "Give a message id as 'mail list' shows it, or --folder and --uid."}
	}
	a.refs = make([]mail.Ref, len(a.IDs))
	for i, id := range a.IDs {
		ref, err := mail.ParseRef(id)
		if err != nil {
			return &discovery.Fault{Code: discovery.ValidationError, Message: "The message id is malformed: " + err.Error() + ".",
				Hint: "Copy message_id as 'mail list' shows it."}
		}
		a.refs[i] = ref
		if first := a.refs[0]; ref.Account != first.Account || ref.Protocol != first.Protocol || !sameFolder(ref.Folder, first.Folder) {
			return &discovery.Fault{Code: discovery.ValidationError, Message: "The messages are not all of one account and one folder.",
				Hint: "Use one command for each folder."}
		}
	}
	return nil
}

// onAccount is the account that ids name, else that of the option.
func (a *messagesArgs) onAccount() string {
	if len(a.refs) > 0 {
		return a.refs[0].Account
	}
	return a.Account
}

// sameFolder compares names; that of the inbox is the only one without regard to
// case (RFC 9051 section 5.1).
func sameFolder(a, b string) bool { return a == b || isInbox(a) && isInbox(b) }

func isInbox(name string) bool { return strings.EqualFold(name, "INBOX") }

// messages resolves the messages that a command works on, one at least, all of one
// account, and notes both for the audit entry.
func (d *Deps) messages(ctx context.Context, call *discovery.Call, a *messagesArgs) ([]mail.Ref, error) {
	refs := a.refs
	if len(refs) == 0 {
		name, err := d.account(ctx, call, a.AccountOption)
		if err != nil {
			return nil, err
		}
		for _, u := range a.UIDs {
			refs = append(refs, mail.Ref{Protocol: mail.IMAP, Account: name, Folder: cmp.Or(a.Folder, "INBOX"), UID: u})
		}
	} else if a.Account != "" && a.Account != refs[0].Account {
		return nil, &discovery.Fault{Code: discovery.ValidationError, Message: "The message id belongs to another account than --account.",
			Hint: "Leave --account out: the id names its account."}
	}
	call.Account, call.Target = refs[0].Account, targetOf(refs)
	return refs, nil
}

// targetOf names messages in the audit entry.
func targetOf(refs []mail.Ref) string {
	var names []string
	for _, r := range refs {
		name := strconv.FormatUint(uint64(r.UID), 10)
		if r.Protocol == mail.POP3 {
			name = r.UIDL
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if refs[0].Protocol == mail.POP3 {
		return "UIDL " + strings.Join(names, ",")
	}
	return fmt.Sprintf("%s UID %s", refs[0].Folder, strings.Join(names, ","))
}

// people are addresses as a person writes them.
func people(list []mail.Address) string { return strings.Join(written(list), ", ") }

// written is each address as a person writes it, never nil.
func written(list []mail.Address) []string {
	text := make([]string, len(list))
	for i, a := range list {
		text[i] = a.String()
	}
	return text
}

// timestamp is RFC 3339 in the message's own zone; empty for none.
func timestamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339)
}
