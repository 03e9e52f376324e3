package commands

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
)

// messageArgs name one message, by id or by folder and UID, and its account.
type messageArgs struct {
	ID     string `json:"id,omitempty" acli:"positional,form=id,needed" jsonschema:"minLength=1,maxLength=600" jsonschema_description:"Message id as a list shows it, such as 50 or Sent/5"`
	Folder string `json:"folder,omitempty" acli:"form=folder,rare" jsonschema_description:"Folder, with --uid in place of an id; INBOX if left out"`
	UID    uint32 `json:"uid,omitempty" acli:"rare" jsonschema:"minimum=1,maximum=4294967295" jsonschema_description:"UID, with --folder in place of an id"`
	argument.AccountOption

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

func (a *messageArgs) which() *messagesArgs { return &a.named }

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
	IDs    []string `json:"id,omitempty" acli:"positional,form=id,needed" jsonschema:"maxItems=100,minLength=1,maxLength=600" jsonschema_description:"Message ids as a list shows them, such as 50 or Sent/5, all of one folder"`
	Folder string   `json:"folder,omitempty" acli:"form=folder,rare" jsonschema_description:"Folder, with --uid in place of ids; INBOX if left out"`
	UIDs   []uint32 `json:"uid,omitempty" acli:"rare" jsonschema:"maxItems=100,minimum=1,maximum=4294967295" jsonschema_description:"UIDs, with --folder in place of ids"`
	argument.AccountOption

	anyFolder bool       // the messages may be of several folders
	refs      []mail.Ref // of the ids, since Validate
}

var noMessage = &discovery.Fault{Code: discovery.ValidationError, Message: "No message is named.",
	Hint: "Give a message id as 'mail list' shows it, or --folder and --uid."}

// Validate refuses what names no messages or those of several folders, and reads the
// ids.
func (a *messagesArgs) Validate() error {
	switch {
	case len(a.IDs) > 0 && (a.Folder != "" || len(a.UIDs) > 0):
		return &discovery.Fault{Code: discovery.ValidationError, Message: "A message is named twice: by its id and by --folder or --uid."}
	case len(a.IDs) == 0 && len(a.UIDs) == 0:
		return noMessage
	}
	a.refs = make([]mail.Ref, len(a.IDs))
	for i, id := range a.IDs {
		ref, err := argument.ParseID(id)
		if err != nil {
			return argument.MalformedID("The message id", err)
		}
		a.refs[i] = ref
		switch first := a.refs[0]; {
		case ref.Account != "" && first.Account != "" && ref.Account != first.Account || ref.Protocol != first.Protocol:
			return a.errApart()
		case !a.anyFolder && !sameFolder(ref.Folder, first.Folder):
			return a.errApart()
		}
	}
	return nil
}

// errApart refuses messages that one command cannot work on together.
func (a *messagesArgs) errApart() error {
	if a.anyFolder {
		return &discovery.Fault{Code: discovery.ValidationError, Message: "The messages are not all of one account.", Hint: "Use one command for each account."}
	}
	return &discovery.Fault{Code: discovery.ValidationError, Message: "The messages are not all of one account and one folder.", Hint: "Use one command for each folder."}
}

// OnAccount is the account that the ids name, else that of the option.
func (a *messagesArgs) OnAccount() string {
	for _, r := range a.refs {
		if r.Account != "" {
			return r.Account
		}
	}
	return a.Account
}

func (a *messagesArgs) which() *messagesArgs { return a }

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
	} else {
		call.Account, call.Target = a.OnAccount(), targetOf(refs)
		var err error
		if refs, err = d.resolve(ctx, call, a.Account, refs); err != nil {
			return nil, err
		}
		if slices.ContainsFunc(refs, func(r mail.Ref) bool { return r.Account != refs[0].Account }) {
			return nil, a.errApart()
		}
	}
	call.Account, call.Target = refs[0].Account, targetOf(refs)
	return refs, nil
}

// targetOf names messages in the audit entry: by the long id of the first, and behind commas
// the UIDs of others of its folder and the long ids of those elsewhere. Where the command names a folder and UIDs there is
// no UIDVALIDITY.
func targetOf(refs []mail.Ref) string {
	target, names := refs[0].String(), []string{}
	if refs[0].Protocol == mail.IMAP && refs[0].UIDValidity == 0 {
		target = fmt.Sprintf("%s UID %d", refs[0].Folder, refs[0].UID)
	}
	for _, r := range refs {
		name := strconv.FormatUint(uint64(r.UID), 10)
		if r.Protocol == mail.POP3 {
			name = r.UIDL
		} else if r.Folder != refs[0].Folder {
			name = r.String()
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(append([]string{target}, names[1:]...), ",")
}
