package mailbox

import "github.com/postern-mail/postern/mail"

// Batch is messages of one folder of an account, and what is done to them.
type Batch struct {
	Op, Account string
	Refs        []mail.Ref
	mail.Action
	Of       string // what the change is a piece of, see mail.Change; empty for none
	Approved bool   // a person decided about it
}
