package commands

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
)

// MessageEntry is a message in the full answer of a list.
type MessageEntry struct {
	ID             string       `json:"message_id"`
	Date           string       `json:"date,omitempty" jsonschema:"format=date-time"`
	From           string       `json:"from,omitempty" acli:"untrusted"`
	Sender         mail.Verdict `json:"sender,omitempty" jsonschema:"enum=verified,enum=failed" jsonschema_description:"What the account's own server says of From"`
	Own            bool         `json:"own,omitempty" jsonschema_description:"The account itself wrote it"`
	ByAgent        bool         `json:"by_agent,omitempty" jsonschema_description:"An agent wrote this draft"`
	PosingAs       string       `json:"posing_as,omitempty" acli:"untrusted" jsonschema_description:"Another address that the sender's name shows"`
	AnswersTo      string       `json:"answers_to,omitempty" acli:"untrusted" jsonschema_description:"Addresses that answers go to, where they go elsewhere than to From"`
	Subject        string       `json:"subject,omitempty" acli:"untrusted"`
	Flags          []string     `json:"flags,omitempty" acli:"untrusted"`
	HasAttachments bool         `json:"has_attachments"`
	Invitation     bool         `json:"invitation,omitempty"` // a calendar is among the parts
	Snippet        string       `json:"snippet,omitempty" acli:"untrusted"`
	HiddenChars    int          `json:"hidden_chars,omitempty" jsonschema_description:"Characters of HTML that a person would not see, left out"`

	Folder            string `json:"folder,omitempty" acli:"untrusted"`
	UIDValidity       uint32 `json:"uidvalidity,omitempty"`
	UID               uint32 `json:"uid,omitempty"`
	To                string `json:"to,omitempty" acli:"untrusted"`
	CC                string `json:"cc,omitempty" acli:"untrusted"`
	InternetMessageID string `json:"internet_message_id,omitempty" acli:"untrusted"`
	Size              int64  `json:"size_bytes,omitempty"`
	Received          string `json:"received,omitempty" jsonschema:"format=date-time"`

	summary *mailbox.Summary
}

// messageRow is a message in the table of a compact answer.
type messageRow struct {
	ID      string `json:"id"`
	Date    string `json:"date"`
	From    string `json:"from" acli:"untrusted"`
	To      string `json:"to" acli:"untrusted"` // in place of From, of a message that the account itself wrote
	Subject string `json:"subject" acli:"untrusted"`
	Marks   string `json:"marks"`
	Snippet string `json:"snippet" acli:"untrusted"`
	Hidden  int    `json:"hidden_chars"`
}

// Bounds of what a list shows of each message.
const (
	maxShownSenders = 5 // in a compact answer
	maxShownFlags   = 50
	maxFlagChars    = 64
)

// Summary is what the entry was made of.
func (e *MessageEntry) Summary() *mailbox.Summary { return e.summary }

// entriesOf makes the entries of a page.
func entriesOf(list []mailbox.Summary) []MessageEntry {
	entries := make([]MessageEntry, len(list))
	for i := range list {
		entries[i] = entryOf(&list[i])
	}
	return entries
}

// rowsOf makes the rows of the entries. implied are the marks that the command implies,
// which are left out.
func rowsOf(entries []MessageEntry, ids *answer.IDs, implied ...mailbox.Mark) []messageRow {
	rows := make([]messageRow, len(entries))
	for i := range entries {
		e, s := &entries[i], entries[i].summary
		rows[i] = messageRow{ID: ids.Of(s.Ref), Date: answer.Minute(s.Date), From: sendersWithin(s.From, e.From), Subject: plain.Clip(e.Subject, answer.MaxShownChars), Marks: marksOf(s, implied...), Snippet: e.Snippet, Hidden: e.HiddenChars}
		if s.Own && len(s.To) > 0 {
			rows[i].From, rows[i].To = "", sendersWithin(s.To, e.To)
		}
	}
	return rows
}

// senders are addresses with their names cut. No address is: it says who it is.
func senders(list []mail.Address) string {
	shown := make([]mail.Address, min(len(list), maxShownSenders))
	for i := range shown {
		shown[i] = mail.Address{Name: plain.Clip(list[i].Name, answer.MaxShownChars), Addr: list[i].Addr}
	}
	if len(list) > len(shown) {
		return answer.People(shown) + fmt.Sprintf(", and %d more", len(list)-len(shown))
	}
	return answer.People(shown)
}

// sendersWithin is senders as far as the text of the full answer was cut for its size.
func sendersWithin(list []mail.Address, full string) string {
	return plain.Clip(senders(list), utf8.RuneCountInString(full))
}

func entryOf(s *mailbox.Summary) MessageEntry {
	e := MessageEntry{summary: s, PosingAs: s.PosingAs(), ID: s.Ref.String(), Date: answer.Timestamp(s.Date), From: answer.People(s.From), Subject: s.Subject,
		Flags: shownFlags(s.Flags), HasAttachments: s.HasAttachments, Invitation: s.Invitation, Snippet: s.Snippet, HiddenChars: s.HiddenChars,
		Folder: s.Ref.Folder, UIDValidity: s.Ref.UIDValidity, UID: s.Ref.UID, To: answer.People(s.To), CC: answer.People(s.CC),
		InternetMessageID: s.InternetMessageID, Size: s.Size, Received: answer.Timestamp(s.InternalDate)}
	e.Own, e.ByAgent, e.AnswersTo = s.Own, s.ByAgent, answersTo(s)
	if s.Verdict != mail.Unknown {
		e.Sender = s.Verdict
	}
	return e
}

// answersTo are the addresses that answers go to where that is elsewhere than to the sender.
func answersTo(s *mailbox.Summary) string {
	return senders(answer.Each(s.Answers, func(a *string) mail.Address { return mail.Address{Addr: *a} }))
}

// shownFlags bounds the flags that a server gave. nil stays nil: they are not known.
func shownFlags(flags []string) []string {
	if flags == nil {
		return nil
	}
	shown := []string{}
	for _, f := range flags {
		if len(shown) < maxShownFlags && len(f) <= maxFlagChars {
			shown = append(shown, f)
		}
	}
	return shown
}

// minShownChars is the least that texts are cut to for an answer: less could not be
// recognised.
const minShownChars = 16

// clipEntries is clipTexts of n entries.
func clipEntries(n int, entry func(i int) *MessageEntry, fraction float64) bool {
	var texts []*string
	for i := range n {
		e := entry(i)
		texts = append(texts, &e.From, &e.To, &e.CC, &e.Subject, &e.Snippet, &e.InternetMessageID)
	}
	return clipTexts(texts, fraction, func(int) {})
}

// clipTexts cuts the longest of some texts, to about a fraction of what they are
// together, for an answer that must lose nothing else, and calls cut with the index of
// each that it cut. It reports whether that helped.
func clipTexts(texts []*string, fraction float64, cut func(i int)) bool {
	lengths, total := make([]int, len(texts)), 0
	for i, t := range texts {
		lengths[i] = utf8.RuneCountInString(*t)
		total += lengths[i]
	}
	room := int(float64(total) * min(fraction, 0.9))
	bound := sort.Search(total, func(n int) bool { // the longest that leaves room for all
		sum := 0
		for _, l := range lengths {
			sum += min(l, n+1)
		}
		return sum > room
	})
	if bound < minShownChars {
		return false
	}
	for i, t := range texts {
		if lengths[i] > bound {
			*t = plain.Clip(*t, bound)
			cut(i)
		}
	}
	return true
}

// marksOf are the marks of a message in words, without those that the command implies.
func marksOf(s *mailbox.Summary, implied ...mailbox.Mark) string {
	var words []string
	for _, m := range s.Marks() {
		if !slices.Contains(implied, m) {
			words = append(words, string(m))
		}
	}
	return strings.Join(words, " ")
}
