package commands

import (
	"sort"
	"unicode/utf8"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
)

// MessageEntry is a message in a list. The fields after Snippet come with --full
// only.
type MessageEntry struct {
	ID             string   `json:"message_id"`
	Date           string   `json:"date,omitempty" jsonschema:"format=date-time"`
	From           string   `json:"from,omitempty" acli:"untrusted"`
	Subject        string   `json:"subject,omitempty" acli:"untrusted"`
	Flags          []string `json:"flags,omitempty"`
	HasAttachments *bool    `json:"has_attachments,omitempty"`
	Snippet        string   `json:"snippet,omitempty" acli:"untrusted"`

	Folder            string `json:"folder,omitempty"`
	UIDValidity       uint32 `json:"uidvalidity,omitempty"`
	UID               uint32 `json:"uid,omitempty"`
	To                string `json:"to,omitempty" acli:"untrusted"`
	CC                string `json:"cc,omitempty" acli:"untrusted"`
	InternetMessageID string `json:"internet_message_id,omitempty" acli:"untrusted"`
	Size              int64  `json:"size_bytes,omitempty"`
	Received          string `json:"received,omitempty" jsonschema:"format=date-time"`

	ref mail.Ref
}

// compactDetails says in help what a list without --full leaves out.
const compactDetails = "Subjects and senders' names of over 120 characters are cut with '…'; --full shows them whole."

// Bounds of what a list shows of each message.
const (
	maxShownChars   = 120 // of a subject or a sender's name, without --full
	maxShownSenders = 5   // without --full
	maxShownFlags   = 50
	maxFlagChars    = 64
)

// entriesOf makes the entries of a page. Subjects and names stay whole where the caller
// wants everything, or these fields.
func entriesOf(list []mailbox.Summary, full bool, call *discovery.Call) []MessageEntry {
	entries := make([]MessageEntry, len(list))
	for i := range list {
		entries[i] = entryOf(&list[i], full)
		if !full && len(call.Fields) == 0 {
			entries[i].From, entries[i].Subject = senders(list[i].From), plain.Clip(list[i].Subject, maxShownChars)
		}
	}
	return entries
}

// senders are addresses with their names cut. No address is: it says who wrote.
func senders(list []mail.Address) string {
	shown := make([]mail.Address, min(len(list), maxShownSenders))
	for i := range shown {
		shown[i] = mail.Address{Name: plain.Clip(list[i].Name, maxShownChars), Addr: list[i].Addr}
	}
	if len(list) > len(shown) {
		return people(shown) + ", …"
	}
	return people(shown)
}

func entryOf(s *mailbox.Summary, full bool) MessageEntry {
	e := MessageEntry{ref: s.Ref, ID: s.Ref.String(), Date: timestamp(s.Date.UTC()), From: people(s.From), Subject: s.Subject,
		Flags: shownFlags(s.Flags), Snippet: s.Snippet}
	if s.HasAttachments || full {
		e.HasAttachments = &s.HasAttachments
	}
	if full {
		e.Date = timestamp(s.Date)
		e.Folder, e.UIDValidity, e.UID = s.Ref.Folder, s.Ref.UIDValidity, s.Ref.UID
		e.To, e.CC, e.InternetMessageID = people(s.To), people(s.CC), s.InternetMessageID
		e.Size, e.Received = s.Size, timestamp(s.InternalDate)
	}
	return e
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
