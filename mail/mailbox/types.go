package mailbox

import (
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/codes"
	"github.com/postern-mail/postern/mail/internal/message"
	"github.com/postern-mail/postern/mail/mailbox/internal/folders"
	"github.com/postern-mail/postern/mail/mailbox/internal/reading"
	"github.com/postern-mail/postern/mail/mailbox/internal/search"
	"github.com/postern-mail/postern/mail/mailbox/internal/thread"
)

// FolderQuery selects folders. The zero query lists every one without counts.
type FolderQuery struct {
	Pattern string // LIST pattern with * and %; empty means *
	Counts  bool   // ask for message counts too
	After   string // only folders behind this one in the list; empty means all
	Limit   int    // at most this many; 0 means 200
}

// FolderList is the answer to a FolderQuery.
type FolderList struct {
	Folders   []Folder
	Truncated bool // there were more than the limit
	Issues    []mail.Issue
}

// ListQuery selects messages of one folder by UID order, or with POP3 in the order
// in which the server numbers them. The zero query means the newest 50 of INBOX.
//
// Before and After name a message to begin behind, whichever messages come or go meanwhile;
// if it is gone, the error is KindConflict.
type ListQuery struct {
	Folder      string // empty means INBOX
	Unread      bool
	Before      mail.Ref  // only messages that came before this one; zero means no bound
	After       mail.Ref  // only messages that came after this one; zero means no bound
	New         bool      // only messages above the floor that were not acknowledged (000 section 6)
	Since       time.Time // only messages dated at or after; zero means no bound
	Until       time.Time // only messages dated before; zero means no bound
	Limit       int       // 1..500; 0 means 50
	OldestFirst bool
	Snippet     int  // fill Snippet with at most so many runes, 50..500; 0 leaves it empty
	Full        bool // fill every field of Summary, not only the compact ones
}

// Page is a run of summaries in the order asked for.
type Page struct {
	Folder      string
	UIDValidity uint32 // 0 with POP3
	UIDNext     uint32 // 0 when the server did not say
	Messages    []Summary
	HasMore     bool     // the query matches more than these
	Next        mail.Ref // the message to continue a list behind, shown or not; zero when none can be named, and with POP3 without HasMore
	Issues      []mail.Issue
}

// SearchPage is a run of matches, newest first by the time they were received. Folder and
// UIDValidity are empty unless one folder was searched.
//
// Each folder is gone through by UID, from the newest on, and a page takes from each what
// is newest. A message that stands in several folders of an account (same Message-ID, date
// and size) is on a page once, from the first of them: INBOX comes before the others.
type SearchPage struct {
	Page
	Searched   []string // the folders that were searched, with the account and a colon before where there are several
	LeftOut    []string // the folders for junk and deleted messages, where they were not
	Total      int      // matches that the policy shows, whatever the limit; where there are more than the page has, copies count, and without criteria those beyond the page need not
	Attempted  int      // messages this page tried to read
	Failed     int      // of these, the ones that could not be read
	NextCursor string   // continues behind this page; empty at the end

	Unread, Attachments, Invitations bool // what it asked for; of a page behind a cursor, what the cursor carries
}

// Messages is the answer of GetEach.
type Messages struct {
	Messages []*Message // in the order in which they were named, without those that failed
	Issues   []mail.Issue
}

// RawMessage is the source of a message, byte for byte.
type RawMessage struct {
	Ref       mail.Ref
	Size      int64 // of the whole message, in bytes
	Source    []byte
	Truncated bool // Source is only the beginning

	masked codes.Found // what of it is not shown
}

// Changed is the outcome of a change to a batch of messages. Messages are in the order they
// were named; those that failed are in Issues instead. A message that Move copied but could
// not remove is in both.
type Changed struct {
	Account, Folder string // of the messages, where they were
	To              string // the folder that Trash moved them to, or that is the archive
	Change          string // what takes it back, see mail.Journal; empty where nothing was recorded
	Messages        []ChangedMessage
	Attempted       int // steps on the server: one STORE, COPY, MOVE, EXPUNGE or APPEND for a message
	Succeeded       int
	Issues          []mail.Issue
}

// ChangedMessage is one message that a change was applied to.
type ChangedMessage struct {
	Ref            mail.Ref
	New            mail.Ref // its reference in the new folder; zero when the server did not say
	Flags          []string // current flags; nil when the server did not send them
	Added, Removed bool     // the flags asked for were applied
	Already        bool     // it was acknowledged before (Ack)
}

// What is shown of messages, conversations and folders is defined where it is made.
type (
	// Folder is one mailbox in the sense of RFC 9051.
	Folder = folders.Folder
	// Counts are the numbers of messages of a folder that the policy shows.
	Counts = folders.Counts
	// Summary is a message as a list shows it. Text is decoded and cleaned of characters that a
	// person would not see.
	Summary = reading.Summary
	// Mark is a word for what is worth knowing of a message at a glance.
	Mark = reading.Mark
	// GetQuery bounds what Get returns of a message. The zero query means the defaults of 001
	// section 5.
	GetQuery = reading.GetQuery
	// Message is the answer of Get.
	Message = reading.Message
	// HeaderScope is which header fields Get returns.
	HeaderScope = reading.HeaderScope
	// HeaderField is one field as it stood in the message, decoded and cleaned.
	HeaderField = reading.HeaderField
	// Attachment describes a part of a message that is not its text.
	Attachment = reading.Attachment
	// AttachmentContent is one attachment with its decoded bytes.
	AttachmentContent = reading.AttachmentContent
	// SearchQuery selects messages of one folder, several or all.
	SearchQuery = search.Query
	// CalendarEvent is one event of an iCalendar part (RFC 5545). Text is cleaned.
	CalendarEvent = message.Event
	// ThreadQuery bounds Thread.
	ThreadQuery = thread.Query
	// Thread is a conversation, oldest first (004 section 5).
	Thread = thread.Thread
	// ThreadMessage is a message and the one it answers.
	ThreadMessage = thread.Message
	// PDFReader reads the text of a PDF within bounds of time and memory of its own.
	PDFReader = reading.PDFReader
)

// The scopes: no header at all, the ones that matter to a reader, every field.
const HeadersNone, HeadersCurated, HeadersAll = reading.HeadersNone, reading.HeadersCurated, reading.HeadersAll

// The marks, in the order in which they are told.
const (
	Unread, Answered, Flagged, Draft, ByAgent  = reading.Unread, reading.Answered, reading.Flagged, reading.Draft, reading.ByAgent
	HasAttachments, Invitation                 = reading.HasAttachments, reading.Invitation
	FailedSender, PosingName, AnswersElsewhere = reading.FailedSender, reading.PosingName, reading.AnswersElsewhere
)
