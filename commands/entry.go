package commands

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/postern-mail/postern/internal/plain"
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

	of *mailbox.Summary // what the entry shows
}

// FullOption is the option of every command that shows a list of messages.
type FullOption struct {
	Full bool `json:"full,omitempty" jsonschema_description:"Every field of each message, nothing cut short"`
}

// omitted are the fields that entries have with --full only, below a prefix.
func (o FullOption) omitted(prefix string) []string {
	if o.Full {
		return nil
	}
	names := []string{"folder", "uidvalidity", "uid", "to", "cc", "internet_message_id", "size_bytes", "received"}
	for i := range names {
		names[i] = prefix + names[i]
	}
	return names
}

// compactDetails says in help what a list without --full leaves out.
const compactDetails = "Where there are many, long senders and subjects are cut with '…'; fewer at once or --full shows them whole."

// Bounds of what a list keeps of each message.
const (
	maxShownFlags = 50
	maxFlagChars  = 64
)

func entryOf(s *mailbox.Summary, full bool) MessageEntry {
	e := MessageEntry{of: s, ID: s.Ref.String(), From: people(s.From), Subject: s.Subject, Flags: shownFlags(s.Flags),
		Snippet: s.Snippet}
	if s.HasAttachments || full {
		e.HasAttachments = &s.HasAttachments
	}
	if !full {
		e.Date = timestamp(s.Date.UTC())
		return e
	}
	e.Date = timestamp(s.Date)
	e.Folder, e.UIDValidity, e.UID = s.Ref.Folder, s.Ref.UIDValidity, s.Ref.UID
	e.To, e.CC, e.InternetMessageID = people(s.To), people(s.CC), s.InternetMessageID
	e.Size, e.Received = s.Size, timestamp(s.InternalDate)
	return e
}

// shownFlags bounds what a server makes of flags. It keeps nil, which says that
// they are not known.
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

// A compact page of up to 50 messages fits 8,192 bytes, and a longer one has as
// much for each; what does not fit is cut from the senders and subjects, the
// longest first. Ids that are long by themselves can still exceed it: with less
// than minRoom, or a shorter address, nothing could be recognised.
const (
	compactBytes   = 8192 // of an answer, snippets aside
	compactEntries = 50
	envelopeBytes  = 220 // of these around the data
	maxRoom        = 240 // characters of sender and subject of one message
	minRoom        = 32
	minSubject     = 16
	maxAddress     = 32 // of an address that is shown whole however little room there is
)

// compactPage cuts the entries of a page to size; rest is the answer without them.
func compactPage(entries []MessageEntry, rest any) {
	budget := compactBytes - envelopeBytes
	if n := len(entries); n > compactEntries {
		budget = budget * n / compactEntries
	}
	budget -= encodedSize(rest)
	for i := range entries {
		bare := entries[i]
		bare.From, bare.Subject, bare.Snippet = "", "", ""
		budget -= encodedSize(bare) + len(`,"from":,"subject":,`)
	}
	size := func(room int) (n int) {
		for i := range entries {
			from, subject := entries[i].shortened(room)
			n += quotedSize(from) + quotedSize(subject)
		}
		return n
	}
	low, high := minRoom, maxRoom // the most room that fits is in between
	for low < high {
		if mid := (low + high + 1) / 2; size(mid) <= budget {
			low = mid
		} else {
			high = mid - 1
		}
	}
	for i := range entries {
		entries[i].From, entries[i].Subject = entries[i].shortened(low)
	}
}

// encodedSize is how many bytes v takes in an answer, which leaves <, > and & as
// they are and escapes what nobody sees.
func encodedSize(v any) int {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return 0 // the answer itself will fail the same way
	}
	return b.Len() - 1 + unseenSize(b.String())
}

// quotedSize is encodedSize of a string, for those that are tried often.
func quotedSize(s string) int {
	n := len(s) + 2
	for _, r := range s {
		switch {
		case r == '"' || r == '\\' || r == '\n' || r == '\t':
			n++
		case r < ' ':
			n += 5
		}
	}
	return n + unseenSize(s)
}

// unseenSize is how many bytes more the characters of s take that an answer
// escapes: those that are plain.Unclear.
func unseenSize(s string) (n int) {
	for _, r := range s {
		if r >= 0x7f && plain.Unclear(r) {
			n += len(`\u0000`) - utf8.RuneLen(r)
			if r > 0xffff {
				n += len(`\u0000`)
			}
		}
	}
	return n
}

// shortened cuts sender and subject of a whole entry to room characters together.
// The address of the sender comes first and stays whole as long as it is one a
// person could read: a name is only what the sender says of themselves. The subject
// gets what the address leaves, and the name what the subject leaves. A name that
// looks like an address is left out: cut short it could be taken for one.
func (e *MessageEntry) shortened(room int) (sender, short string) {
	address, name, more := "", "", ""
	if len(e.of.From) > 0 {
		first := e.of.From[0]
		address = cmp.Or(first.Addr, first.String())
		if first.Addr != "" && !strings.ContainsAny(first.Name, "@<>") {
			name = first.Name
		}
		address = clipAddress(address, max(room-minSubject, maxAddress))
	}
	if len(e.of.From) > 1 {
		more = ", …"
	}
	short = plain.Clip(e.Subject, max(room-utf8.RuneCountInString(address+more), minSubject))
	left := room - utf8.RuneCountInString(short)
	if utf8.RuneCountInString(e.From) <= left {
		return e.From, short
	}
	spare := left - utf8.RuneCountInString(address+more) - len(" <>")
	if name == "" || spare < 6 {
		return address + more, short
	}
	return plain.Clip(name, spare) + " <" + address + ">" + more, short
}

// clipAddress cuts an address that is longer than a sender needs. What remains of
// a domain is its end, which tells whose it is.
func clipAddress(address string, runes int) string {
	if utf8.RuneCountInString(address) <= runes {
		return address
	}
	at := strings.LastIndexByte(address, '@')
	if at < 0 {
		return plain.Clip(address, runes)
	}
	local, domain := address[:at], address[at+1:]
	if room := runes - 1 - utf8.RuneCountInString(domain); room >= 4 {
		return plain.Clip(local, room) + "@" + domain
	}
	r := []rune(domain)
	return "…" + string(r[max(len(r)-runes+1, 0):])
}

// clipEntries cuts the texts of entries to about a fraction of what they are, for
// an answer that must not lose an entry. It reports whether that helped.
func clipEntries(entries []MessageEntry, fraction float64) bool {
	longest := 0
	texts := func(e *MessageEntry) []*string {
		return []*string{&e.From, &e.To, &e.CC, &e.Subject, &e.Snippet, &e.InternetMessageID}
	}
	for i := range entries {
		for _, t := range texts(&entries[i]) {
			longest = max(longest, utf8.RuneCountInString(*t))
		}
	}
	bound := int(float64(longest) * min(fraction, 0.9))
	if bound < minSubject {
		return false
	}
	for i := range entries {
		for _, t := range texts(&entries[i]) {
			*t = plain.Clip(*t, bound)
		}
	}
	return true
}
