// Package fetch says what is asked of messages and folders, and reads what a server gave of
// them. Wanted selects the data of a message, Message is what came of it; Visits search several
// folders and fetch from them in one write, on a session that the caller was lent. It knows no
// account: whether a message may be seen is decided above.
package fetch

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/imap"
	"github.com/postern-mail/postern/mail/internal/message"
	"github.com/postern-mail/postern/mail/internal/rfc5322"
)

// Message is one message as fetched by IMAP or POP3.
type Message struct {
	Ref      mail.Ref
	Flags    []string
	Header   rfc5322.Header
	Readable bool // the server gave the header
	Whole    bool // and all of it
	Internal time.Time
	Size     int64
	Headed   int           // length of the header that came, in bytes
	Root     *message.Part // nil when the server did not tell

	// What IMAP brought, nil where it was not asked for or did not come: the header, or fields of
	// it; the beginning of the text; the beginning of the whole message.
	Head, Text, Source []byte
	Number             uint32 // the sequence number, with IMAP
}

// Read reads what a server gave of a message.
func Read(ref mail.Ref, d *imap.Fetched) Message {
	g := Message{Ref: ref, Flags: Flags(d.Flags), Internal: d.Date, Size: d.Size, Root: d.Structure, Number: d.Number}
	if g.Head, g.Readable = d.Section(WholeHeader); !g.Readable {
		g.Head, g.Readable = d.Section(imap.Section{Only: imap.Header, Fields: "any"})
	} else {
		g.Whole = len(g.Head) < HeaderBytes
	}
	g.Text, _ = d.Section(imap.Section{Only: imap.Text})
	g.Source, _ = d.Section(imap.Section{})
	g.Header, g.Headed = rfc5322.ParseHeader(g.Head), len(g.Head)
	if g.Root != nil {
		g.Root.Forward = message.IsForward(g.Header.Text("Subject"))
	}
	return g
}

// InTime reports whether a message is dated within the bounds of a query. The server's
// search knows only days. A message without any date is outside all bounds.
func (g *Message) InTime(since, until time.Time) bool {
	if since.IsZero() && until.IsZero() {
		return true
	}
	t := g.DateOrArrival()
	return !t.IsZero() && !t.Before(since) && (until.IsZero() || t.Before(until))
}

// Unreadable is the Issue of a message whose header the server did not give.
func (g *Message) Unreadable() mail.Issue {
	return mail.Issue{Kind: mail.KindRefused, Stage: "parse", UID: g.Ref.UID, MessageID: g.Ref.String(), Retryable: true,
		Message: "The server did not give the message's header."}
}

// The system flags that have a meaning here (RFC 9051 section 2.3.2).
const (
	FlagSeen    = `\Seen`
	FlagDeleted = `\Deleted`
	FlagDraft   = `\Draft`
)

// Flags keeps valid flags and leaves out \Recent, which belongs to the session.
func Flags(flags []string) []string {
	out := make([]string, 0, len(flags))
	for _, f := range flags {
		if s := plain.Line(f); s != "" && !strings.EqualFold(s, `\Recent`) && len(out) < 100 {
			out = append(out, CanonicalFlag(s))
		}
	}
	return out
}

// CanonicalFlag gives the system flags, whose case does not matter, one spelling.
func CanonicalFlag(s string) string {
	for _, f := range []string{FlagSeen, `\Answered`, `\Flagged`, FlagDeleted, FlagDraft} {
		if strings.EqualFold(s, f) {
			return f
		}
	}
	return s
}

// HasFlag reports whether a flag is among others, whose case does not matter.
func HasFlag(flags []string, flag string) bool {
	return slices.ContainsFunc(flags, func(f string) bool { return strings.EqualFold(f, flag) })
}

// HasAttachments is what lists, searches and single messages mean by it. Images inside the
// text, signatures and calendars do not count: people do not call the first two attachments,
// and the third is an invitation. Where the server did not send the structure, it estimates
// from the header.
func (g *Message) HasAttachments() bool {
	if g.Root != nil {
		return slices.ContainsFunc(message.Attachments(g.Root), func(p *message.Part) bool { return !p.Incidental() && !message.IsCalendar(p) })
	}
	return g.mediaType() == "multipart/mixed"
}

// Doubtful reports whether the header leaves open what the message has besides its text: a
// message that is one text has nothing.
func (g *Message) Doubtful() bool {
	switch t := g.mediaType(); t {
	case "", "text/plain", "text/html":
		return strings.Contains(strings.ToLower(g.Header.Get("Content-Disposition")), "attachment")
	}
	return true
}

func (g *Message) mediaType() string {
	t, _, _ := strings.Cut(g.Header.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(t))
}

// People returns the addresses to show of a field.
func People(h rfc5322.Header, field string) []mail.Address {
	list := h.Addresses(field)
	return list[:min(len(list), maxPeople)]
}

// MessageID returns the Message-ID without its angle brackets.
func MessageID(h rfc5322.Header) string {
	if ids := h.MsgIDs("Message-ID"); len(ids) > 0 {
		return ids[0]
	}
	return ""
}

// Date is when the message says it was sent; ok is false when it does not say.
func (g *Message) Date() (t time.Time, ok bool) { return g.Header.Date() }

// DateOrArrival is when the message says it was sent, or came where it does not say. It is zero
// where neither is known, as with POP3.
func (g *Message) DateOrArrival() time.Time {
	if t, ok := g.Date(); ok {
		return t
	}
	return g.Internal
}

// Links are the ids a message names, the root first.
func (g *Message) Links() []string {
	ids := g.Header.MsgIDs("References")
	if reply := g.Header.MsgIDs("In-Reply-To"); len(reply) > 0 && !slices.Contains(ids, reply[0]) {
		ids = append(ids, reply[0])
	}
	return ids
}

// Earliest is when a message was sent or came, whichever is said to be first.
func (g *Message) Earliest() time.Time {
	if sent, ok := g.Date(); ok && sent.Before(g.Internal) {
		return sent
	}
	return g.Internal
}

// Replace puts what was fetched of messages in place of what is there, and returns those of
// which something came.
func Replace(messages []*Message, got []Message) (replaced []*Message) {
	for _, old := range messages {
		for _, g := range got {
			if g.Ref == old.Ref && g.Readable {
				*old = g
				replaced = append(replaced, old)
			}
		}
	}
	return replaced
}

// DataOf is what was fetched of a message; nil when nothing was.
func DataOf(data []*imap.Fetched, uid uint32) *imap.Fetched {
	for _, d := range data {
		if d.UID == uid {
			return d
		}
	}
	return nil
}

// maxPartFacts bounds the messages of one account to remember.
const maxPartFacts = 100_000

// Parts is what a list says of the parts of a message.
type Parts struct {
	Attachments bool
	Invitation  bool
}

// PartFacts remembers the parts of messages: a message never changes under its UID. It is
// safe for concurrent use; its zero value is empty.
type PartFacts struct {
	mu  sync.Mutex
	has map[mail.Ref]Parts // a Ref with only a folder says that some message of it is known
}

// Begun reports whether any message of a folder is known.
func (f *PartFacts) Begun(folder string) bool {
	_, known := f.Known(mail.Ref{Folder: folder})
	return known
}

// Known returns the parts of a message, where they are known.
func (f *PartFacts) Known(ref mail.Ref) (has Parts, known bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	has, known = f.has[ref]
	return has, known
}

// Note remembers one message. When there are too many, it forgets all: learning them again
// costs a list a few bytes.
func (f *PartFacts) Note(ref mail.Ref, has Parts) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.has == nil || len(f.has) >= maxPartFacts {
		f.has = make(map[mail.Ref]Parts)
	}
	f.has[ref], f.has[mail.Ref{Folder: ref.Folder}] = has, Parts{}
}

// Wanted selects the data to fetch of each message besides its flags and fields.
type Wanted struct {
	Header    bool // all of the header, for the policy to judge: the server may leave out a field that another reader would see
	Structure bool
	Dates     bool // INTERNALDATE
	Full      bool // every field of a Summary
	Text      bool // the beginning of the text
	Thread    bool // the fields that link conversations
	Copies    bool // what tells a copy from another message
	Trace     bool // the fields that the sender is judged by
	Read      bool // the fields that Get shows
	Bulk      bool // the fields that bulk mail has
}

const (
	// HeaderBytes bounds a header that is fetched whole. A sender can make it longer: a
	// policy that hides messages does not show one whose header is cut.
	HeaderBytes = 64 << 10
	// shownBytes is how much is fetched of the fields in shownFields.
	shownBytes = 16 << 10
	// maxPeople bounds the addresses shown of one field.
	maxPeople = 100
)

// The fields that a list shows, and those that a full one shows besides.
var (
	shownFields = []string{"FROM", "REPLY-TO", "TO", "SUBJECT", "DATE", "CONTENT-TYPE"}
	fullFields  = append(slices.Clone(shownFields), "CC", "MESSAGE-ID")
)

// BulkFields are fields of lists and of bulk mail.
var BulkFields = []string{"List-Unsubscribe", "List-Id", "Precedence"}

// mimeFields say how the text is encoded, for snippets.
var mimeFields = []string{"MIME-VERSION", "CONTENT-TRANSFER-ENCODING"}

// traceFields are what a sender is judged by besides From.
var traceFields = strings.Fields(strings.ToUpper(strings.Join(mail.VerdictFields()[1:], " ")))

// threadFields are the fields that link conversations.
var threadFields = []string{"MESSAGE-ID", "REFERENCES", "IN-REPLY-TO"}

// TextBytes is how much of the body is fetched at once: the text of most messages is no longer.
const TextBytes = 5 << 10

// Curated are the header fields that matter to a reader and for which Message has no field.
var Curated = []string{"sender", "reply-to", "bcc", "in-reply-to", "references", "list-id", "list-unsubscribe", "auto-submitted"}

// readFields are the fields to fetch when neither the caller nor the policy needs the whole
// header.
var readFields = strings.Fields(strings.ToUpper("From To Cc Subject Date Message-ID " + strings.Join(Curated, " ") +
	" MIME-Version Content-Type Content-Transfer-Encoding Content-Disposition Content-ID"))

// WholeHeader is a header that is fetched whole, within its bound.
var WholeHeader = imap.Section{Only: imap.Header, Size: HeaderBytes}

// head is the section of the header that is fetched. From may stand below any number of
// trace fields, which are therefore bounded as a whole header is.
func (w Wanted) head() imap.Section {
	fields, size := shownFields, int64(shownBytes)
	switch {
	case w.Header:
		return WholeHeader
	case w.Read:
		fields, size = readFields, HeaderBytes
	case w.Full:
		fields = fullFields
	}
	if w.Text && !w.Read {
		fields = slices.Concat(fields, mimeFields)
	}
	if w.Thread {
		fields = slices.Concat(fields, threadFields)
	} else if w.Copies && !w.Full {
		fields = slices.Concat(fields, []string{"MESSAGE-ID"})
	}
	if w.Bulk {
		fields = slices.Concat(fields, BulkFields)
	}
	if w.Trace {
		fields, size = slices.Concat(fields, traceFields), HeaderBytes
	}
	return imap.Section{Only: imap.Header, Fields: strings.Join(fields, " "), Size: size}
}

// Items is what a FETCH asks for. The fields come from the header itself and not from ENVELOPE,
// so that lists and the policy read them the same way.
func (w Wanted) Items() imap.Items {
	items := imap.Items{Flags: true, Date: w.Dates, Size: w.Full || w.Thread || w.Copies, Structure: w.Structure, Sections: []imap.Section{w.head()}}
	if w.Text {
		items.Sections = append(items.Sections, imap.Section{Only: imap.Text, Size: TextBytes})
	}
	return items
}
