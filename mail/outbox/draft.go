package outbox

import (
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
)

// Draft is a message to write. Nothing of it is trusted.
type Draft struct {
	To, CC, BCC []mail.Address // as ParseAddress reads them
	Subject     string         // empty with ReplyTo: the subject of what is answered, with Re: before it
	Body        string         // plain text; any line ends
	Quoted      string         // text of others below it, after an empty line
	Attachments []Attachment
	ReplyTo     *mail.Ref // the message this answers, in the same account; nil for none
	As          string    // the sender, one of the account's own addresses; empty for its first

	original  *mailbox.Original // that of ReplyTo, where it was read already
	elsewhere bool              // it goes elsewhere than to the sender of ReplyTo, as that one asks
}

// Attachment is a file to send. Content is not changed.
type Attachment struct {
	Name    string // as the recipient sees it, without directories
	Type    string // media type; empty means by the name's extension, else application/octet-stream
	Content []byte
	Message bool // it is a message (RFC 5322), and is sent as one where its bytes can travel unchanged
}

// SavedDraft is a draft that is in the account's folder for drafts.
type SavedDraft struct {
	Account   string
	Folder    string
	Ref       mail.Ref // zero when the server did not tell (RFC 4315)
	MessageID string   // without angle brackets
	Subject   string   // as it was written
	Size      int64    // bytes
	Hidden    bool     // the account's subject pattern hides it from agents, who cannot read it
}
