// Package reading shows what a server gave of messages, as an account's policy lets it: who may
// be seen, the summary of a message, its text and attachments, without one-time codes.
//
// A Viewer is the account; Viewer.Summary needs only what was fetched. A Reading is one message
// of which more is read: it says which parts it needs (missing), takes them (accept) and makes
// the message (compose). Queue reads those that wait for a session together; Rest fetches what
// several still need on a session that the caller was lent. Nothing here opens an account.
package reading

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/codes"
	"github.com/postern-mail/postern/mail/internal/compose"
	"github.com/postern-mail/postern/mail/internal/imap"
	"github.com/postern-mail/postern/mail/internal/message"
	"github.com/postern-mail/postern/mail/internal/rfc5322"
	"github.com/postern-mail/postern/mail/internal/visible"
	"github.com/postern-mail/postern/mail/mailbox/internal/fetch"
)

// Viewer is an account during one operation, as far as it decides what is shown of messages
// that were fetched.
type Viewer struct {
	mail.Operation
	Policy Judge
	Now    func() time.Time
	Memory *Memory                                // of the process; nil for none
	Tell   func(done, total float64, what string) // how far the operation is; see mail.WithProgress
	Work   *visible.Work                          // what the operation may spend on HTML; nil bounds each document by itself
}

// Judge is the policy of an account, with the folders in which the account's own messages
// are visible.
type Judge struct {
	*mail.Policy
	OwnFolder func(folder string) bool // nil: there are none, as with POP3
}

// shows applies the policy to a message of a folder by its whole header.
func (j Judge) shows(folder string, h rfc5322.Header) bool {
	if j.OwnFolder != nil && j.OwnFolder(folder) {
		return j.VisibleAsOwn(h)
	}
	return j.Visible(h)
}

// Sees applies the policy. An incomplete header proves nothing and passes only where the
// policy hides nothing.
func (j Judge) Sees(g *fetch.Message) bool {
	return j.ShowsAll() || g.Whole && j.shows(g.Ref.Folder, g.Header)
}

// VerdictOn is what the policy thinks of the sender, unknown where the header was cut. A server
// that gives some fields can put them in another order and leave out a second From: they
// prove nothing in the sender's favour.
func (j Judge) VerdictOn(g *fetch.Message) mail.Verdict {
	if !j.Judges() || g.Headed >= fetch.HeaderBytes {
		return mail.Unknown
	}
	v := j.Verdict(g.Header)
	if v == mail.Verified && !g.Whole {
		return mail.Unknown
	}
	return v
}

// Headers selects what a list fetches of the headers: where the policy hides messages, or
// all is to be told of senders that it judges, all of them.
func (j Judge) Headers(full bool) fetch.Wanted {
	return fetch.Wanted{Header: !j.ShowsAll() || full && j.Judges(), Trace: j.Judges(), Full: full}
}

// NoMessage is the one answer for a message that does not exist and for one that the
// inbound policy hides (000 section 9). reason is only for the audit.
func (x *Viewer) NoMessage(reason string) *mail.Error {
	e := x.Failure(mail.KindNotFound, imap.StageFetch, "There is no such message.", mail.AdviceList)
	e.Reason = reason
	return e
}

// MadeAnew refuses references to a folder that has another UIDVALIDITY now.
func (x *Viewer) MadeAnew(advice mail.Advice) *mail.Error {
	return x.Failure(mail.KindConflict, imap.StageExamine, "The folder was replaced since then: its messages have other ids now.", advice)
}

// Summary is the message as a list shows it; with full, with the fields of a full list.
func (x *Viewer) Summary(g *fetch.Message, full bool) Summary {
	s := x.summary(g)
	s.Mask(x.Listed(g))
	if !full {
		Compact(&s)
	}
	return s
}

func (x *Viewer) summary(g *fetch.Message) Summary {
	s := Summary{Ref: g.Ref, Flags: g.Flags, Size: g.Size, InternalDate: g.Internal, Subject: g.Header.Text("Subject"),
		From: fetch.People(g.Header, "From"), To: fetch.People(g.Header, "To"), CC: fetch.People(g.Header, "Cc"), InternetMessageID: fetch.MessageID(g.Header), Verdict: x.Policy.VerdictOn(g), Own: x.Policy.Wrote(g.Header)}
	if r := compose.ReplyRecipients(g.Header, x.Policy.Owns, false); r.Elsewhere {
		for _, a := range r.To {
			s.Answers = append(s.Answers, a.Addr)
		}
	}
	s.Mask(x.Masked(g, ""))
	s.Date = g.DateOrArrival()
	s.HasAttachments, s.Invitation = g.HasAttachments(), message.HasCalendar(g.Root)
	return s
}

// Compact removes the fields that only a full list shows. Of an own message To is shown in
// place of From.
func Compact(s *Summary) {
	if !s.Own {
		s.To = nil
	}
	s.CC, s.InternetMessageID, s.Size = nil, "", 0
	if !s.Date.IsZero() {
		s.InternalDate = time.Time{}
	}
}

// Masked finds the one-time codes and links of a message that agents are not shown (see
// codes.Find): none of an older one, or where the account shows them. text is what was read
// of it; the files' names may say one, too.
func (x *Viewer) Masked(g *fetch.Message, text string, files ...*message.Part) codes.Found {
	if !x.MayMask(g) {
		return codes.Found{}
	}
	subject := g.Header.Text("Subject")
	found := codes.Find(subject, text, names(g)...)
	for _, f := range files {
		found.Add(subject, f.Filename)
	}
	return found
}

// Listed is Masked for a list, which does not read the text: what was found when it was read,
// or else codes.Listed.
func (x *Viewer) Listed(g *fetch.Message) codes.Found {
	if !x.MayMask(g) {
		return codes.Found{}
	}
	if found, read := x.Memory.found(g.Ref); read {
		return found
	}
	var sender []string
	for _, a := range g.Header.Addresses("From") {
		sender = append(sender, a.Addr)
	}
	return codes.Listed(g.Header.Text("Subject"), strings.Join(sender, " "), names(g)...)
}

// Suspected is what the rest of a message, which was not read, may say is a code: in what a list
// shows, and in more that is shown besides.
func (x *Viewer) Suspected(g *fetch.Message, more ...string) codes.Found {
	if !x.MayMask(g) {
		return codes.Found{}
	}
	return codes.Suspected(g.Header.Text("Subject"), append(names(g), more...)...)
}

// Memory holds what Masked found in messages whose text was read as a whole, so that lists hide
// the same and no more. It is bounded, safe for concurrent use, and empty as nil.
type Memory struct {
	mu  sync.Mutex
	all map[mail.Ref]codes.Found
}

const maxRemembered = 4096 // messages

func (m *Memory) keep(ref mail.Ref, found codes.Found) {
	if m == nil || ref == (mail.Ref{}) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all == nil || len(m.all) >= maxRemembered {
		m.all = map[mail.Ref]codes.Found{}
	}
	m.all[ref] = found
}

func (m *Memory) found(ref mail.Ref) (found codes.Found, read bool) {
	if m == nil {
		return found, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	found, read = m.all[ref]
	return found, read
}

// names are those that stand beside addresses.
func names(g *fetch.Message) (names []string) {
	for _, field := range []string{"From", "Sender", "Reply-To", "To", "Cc", "Bcc"} {
		for _, a := range g.Header.Addresses(field) {
			if a.Name != "" {
				names = append(names, a.Name)
			}
		}
	}
	return names
}

// Mask hides what was found where a summary says it: in the subject, and in names.
func (s *Summary) Mask(found codes.Found) {
	s.Subject = found.Mask(s.Subject)
	for _, people := range [][]mail.Address{s.From, s.To, s.CC} {
		for i := range people {
			people[i].Name = found.Mask(people[i].Name)
		}
	}
}

// Unjudged is an issue where HTML was shown plainly, for want of time or work.
func (x *Viewer) Unjudged() []mail.Issue {
	n := x.Work.Plainly()
	if n == 0 {
		return nil
	}
	return []mail.Issue{{Kind: mail.KindLimit, Stage: "parse", Message: fmt.Sprintf("HTML takes too much work here: of %d of the texts it was not judged what a person would see, and they are shown without their markup.", n)}}
}

// MayMask reports whether a message is so new that something of it may be masked.
func (x *Viewer) MayMask(g *fetch.Message) bool {
	date, _ := g.Date()
	return x.Policy.MasksCodes() && codes.Recent(date, g.Internal, x.Now())
}

// MaskedIn is Masked for the source of a message, or its beginning: what Get masks of it, and
// each part by itself, for words of one part would hide the code of another from Find.
func (x *Viewer) MaskedIn(g *fetch.Message, raw []byte) codes.Found {
	return x.ExcerptOf(Excerpt{Chars: MaxBodyChars, Lines: true, whole: true}, g, raw).Masked
}

// MaskedPart is Masked for another form of a message's text than the one that is read, and for
// a message or a text within it.
func (x *Viewer) MaskedPart(g *fetch.Message, p *message.Part, raw []byte) codes.Found {
	if !says(p) {
		return codes.Found{}
	}
	text, _, _, _ := message.PartText(x.Work, p, raw, MaxFromChar)
	return x.Masked(g, text)
}

// says reports whether a part is text of a message, or a message.
func says(p *message.Part) bool { return p.Type == "message" || p.Type == "text" }

// Withheld refuses what would show more of a message than its masked text.
func (x *Viewer) Withheld(what string) error {
	e := x.Failure(mail.KindReadOnly, "", "The message has a one-time code or a link that logs in, so "+what+".", mail.AdviceMailProgram)
	e.Reason = "codes"
	return e
}

// Summary is a message as a list shows it. Text is decoded and cleaned of characters that a
// person would not see.
type Summary struct {
	Ref            mail.Ref
	Date           time.Time // when the message arrived where it has no readable Date; zero when neither is known
	From           []mail.Address
	Subject        string
	Flags          []string
	HasAttachments bool         // something was sent besides the text, no calendar
	Invitation     bool         // a calendar is among the parts
	Verdict        mail.Verdict // on the sender; of messages fetched without Full it may be unknown in place of verified
	Snippet        string       // opening of what is new in the text, one line; only where asked for
	HiddenChars    int          // of HTML that a person would not see, left out of the text that was asked for with it; white space is not counted
	Own            bool         // own addresses of the account alone are in From
	Answers        []string     // addresses to which answers go, where they go elsewhere than to From
	ByAgent        bool         // a draft that an agent wrote; only in List and Get

	// Filled only where the query says Full; To of an own message always.
	To, CC            []mail.Address
	InternetMessageID string
	Size              int64
	InternalDate      time.Time
}

// GetQuery bounds what Get returns of a message. The zero query means the
// defaults of 001 section 5.
type GetQuery struct {
	BodyChars       int         // 100..20000 runes, which several messages share; 0 means 2000
	FromChar        int         // the text from this rune on, where 1 is the first; 0 means from the beginning, what is new first. With HTML, the HTML from this rune on, without the text
	Headers         HeaderScope // empty means curated
	HTML            bool        // also the sanitized HTML body
	AttachmentText  bool        // also the text of attachments, where it can be read
	AttachmentChars int         // 100..50000 runes for each; 0 means 10000
	Content         bool        // also the bytes of each attachment
	ContentBytes    int64       // at most so many of all attachments of a message, as transferred; 0 means 24 MiB
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
	NextChar      int  // the FromChar that continues BodyHTML, where that was asked for and there is more of it, else BodyText; 0 where nothing is missing
	Attachments   []Attachment
	Unread        int      // attachments whose text was asked for and not read, since there are too many
	Returned      mail.Ref // of a bounce, the message in the folder for sent mail that came back; zero when it is not known
	Notes         []string // what a reader has to know of how the text came about, or why it is missing
	Issues        []mail.Issue
}

// Attachment describes a part of a message that is not its text.
type Attachment struct {
	PartID        string // IMAP section number, such as "2" or "1.3"
	Filename      string // decoded and cleaned; empty when the part has none
	ContentType   string // lower case, without parameters
	Size          int64  // bytes when decoded; of a message that is not read as a whole up to 2 too many
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
