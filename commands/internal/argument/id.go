package argument

import (
	"strings"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
)

// ParseID reads a message id in its long or its short form. A short one has the UIDVALIDITY
// 0, and no account unless it names one.
func ParseID(id string) (mail.Ref, error) {
	if strings.HasPrefix(id, "imap:") || strings.HasPrefix(id, "pop3:") {
		if ref, err := mail.ParseRef(id); err == nil || strings.Count(id, ":") > 1 {
			return ref, err
		}
	}
	return mail.ParseShortRef(id)
}

// MalformedID is the fault of an argument that is no message id.
func MalformedID(what string, err error) *discovery.Fault {
	return &discovery.Fault{Code: discovery.ValidationError, Message: what + " is malformed: " + err.Error() + ".",
		Hint: "Copy the id as 'mail list' shows it: 50 is a message of INBOX, Sent/5 one of the folder Sent."}
}
