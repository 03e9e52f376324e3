package commands

import (
	"strings"
	"time"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
)

// MessageOption names one message: by id, or by folder and UID.
type MessageOption struct {
	ID     string `json:"id,omitempty" acli:"positional" jsonschema:"minLength=1,maxLength=600" jsonschema_description:"Message id as a list gave it; or use --folder and --uid"`
	Folder string `json:"folder,omitempty" jsonschema:"minLength=1,maxLength=256,pattern=^[^\\x00-\\x1f\\x7f]*$" jsonschema_description:"Folder, with --uid in place of an id"`
	UID    uint32 `json:"uid,omitempty" jsonschema:"minimum=1,maximum=4294967295" jsonschema_description:"UID, with --folder in place of an id"`
}

func (o *MessageOption) check() error {
	switch {
	case o.ID != "" && (o.Folder != "" || o.UID != 0):
		return &discovery.Fault{Code: discovery.ValidationError, Message: "A message is named twice: by its id and by --folder or --uid."}
	case o.ID == "" && o.UID == 0:
		return &discovery.Fault{Code: discovery.ValidationError, Message: "No message is named.",
			Hint: "Give a message id as 'mail list' shows it, or --folder and --uid."}
	case o.ID == "":
		return nil
	}
	if _, err := mail.ParseRef(o.ID); err != nil {
		return &discovery.Fault{Code: discovery.ValidationError, Message: "The message id is malformed: " + err.Error() + ".",
			Hint: "Copy message_id as 'mail list' shows it."}
	}
	return nil
}

// ref makes the reference. account is that of --account, empty when not given;
// fallback resolves the default account.
func (o *MessageOption) ref(account string, fallback func() (string, error)) (mail.Ref, error) {
	if o.ID != "" {
		ref, err := mail.ParseRef(o.ID)
		if err != nil {
			return mail.Ref{}, err
		}
		if account != "" && account != ref.Account {
			return mail.Ref{}, &discovery.Fault{Code: discovery.ValidationError, Message: "The message id belongs to another account than --account.",
				Hint: "Leave --account out: the id names its account."}
		}
		return ref, nil
	}
	name, err := fallback()
	if err != nil {
		return mail.Ref{}, err
	}
	folder := o.Folder
	if folder == "" {
		folder = "INBOX"
	}
	return mail.Ref{Protocol: mail.IMAP, Account: name, Folder: folder, UID: o.UID}, nil
}

func people(list []string) string { return strings.Join(list, ", ") }

// timestamp is RFC 3339 in the message's own zone; empty for none.
func timestamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339)
}
