package reading

import (
	"context"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/message"
)

// Summary is a message as a list shows it. Text is decoded and cleaned of characters that a
// person would not see.
type Summary struct {
	Ref            mail.Ref
	Date           time.Time // zero when the message has no readable Date
	From           []mail.Address
	Subject        string
	Flags          []string
	HasAttachments bool         // something was sent besides the text, no calendar
	Invitation     bool         // a calendar is among the parts
	Verdict        mail.Verdict // on the sender; of messages fetched without Full it may be unknown in place of verified
	Snippet        string       // opening of what is new in the text, one line; only where asked for
	HiddenChars    int          // of HTML that a person would not see, left out of the text that was asked for with it; white space is not counted

	// Filled only where the query says Full.
	To, CC            []mail.Address
	InternetMessageID string
	Size              int64
	InternalDate      time.Time
}

// GetQuery bounds what Get returns of a message. The zero query means the
// defaults of 001 section 5.
type GetQuery struct {
	BodyChars       int         // 100..20000 runes, which several messages share; 0 means 2000
	FromChar        int         // the text from this rune on, where 1 is the first; 0 means from the beginning, what is new first
	Headers         HeaderScope // empty means curated
	HTML            bool        // also the sanitized HTML body
	AttachmentText  bool        // also the text of attachments, where it can be read
	AttachmentChars int         // 100..50000 runes for each; 0 means 10000
	Content         bool        // also the bytes of each attachment
}

// HeaderScope is which header fields Get returns.
type HeaderScope string

// The scopes: no header at all, the ones that matter to a reader, every field.
const (
	HeadersNone    HeaderScope = "none"
	HeadersCurated HeaderScope = "curated"
	HeadersAll     HeaderScope = "all"
)

// HeaderField is one field as it stood in the message, decoded and cleaned.
type HeaderField struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Message is the answer of Get.
type Message struct {
	Summary
	Headers       []HeaderField // as GetQuery asks, without what Summary shows
	BodyText      string
	BodyHTML      string
	BodyTruncated bool // BodyText or BodyHTML was cut at the bound
	FromChar      int  // of the query
	NextChar      int  // the FromChar that continues BodyText; 0 where nothing is missing
	Attachments   []Attachment
	Unread        int      // attachments whose text was asked for and not read, since there are too many
	Returned      mail.Ref // of a bounce, the message in the folder for sent mail that came back; zero when it is not known
	Issues        []mail.Issue
}

// Attachment describes a part of a message that is not its text.
type Attachment struct {
	PartID        string // IMAP section number, such as "2" or "1.3"
	Filename      string // decoded and cleaned; empty when the part has none
	ContentType   string // lower case, without parameters
	Size          int64  // bytes when decoded; an estimate where the part was not fetched
	Text          string // its text; only for GetQuery.AttachmentText
	TextTruncated bool
	HiddenChars   int             // of HTML in Text that a person would not see, left out
	Content       []byte          // decoded; only for GetQuery.Content, nil when it was too large
	Events        []message.Event // events of a calendar part
}

// PDFReader reads the text of a PDF, at most maxRunes characters of it, within
// bounds of time and memory of its own.
type PDFReader interface {
	Text(ctx context.Context, pdf []byte, maxRunes int) (text string, truncated bool, err error)
}
