// Package fetch says what is asked of messages and folders, and reads what a server gave of
// them. Wanted selects the data of a message, Message is what came of it; Visits search several
// folders and fetch from them in one write, on a session that the caller was lent. It knows no
// account: whether a message may be seen is decided above.
package fetch

import (
	"slices"
	"strings"

	goimap "github.com/emersion/go-imap/v2"

	"github.com/postern-mail/postern/mail"
)

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
	shownFields = []string{"FROM", "SUBJECT", "DATE", "CONTENT-TYPE"}
	fullFields  = append(slices.Clone(shownFields), "TO", "CC", "MESSAGE-ID")
)

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

// head is the section of the header that is fetched. From may stand below any number of
// trace fields, which are therefore bounded as a whole header is.
func (w Wanted) head() *goimap.FetchItemBodySection {
	fields, size := shownFields, int64(shownBytes)
	switch {
	case w.Header:
		return HeaderSection()
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
	if w.Trace {
		fields, size = slices.Concat(fields, traceFields), HeaderBytes
	}
	return &goimap.FetchItemBodySection{Specifier: goimap.PartSpecifierHeader, HeaderFields: fields, Partial: &goimap.SectionPartial{Size: size}}
}

func HeaderSection() *goimap.FetchItemBodySection {
	return &goimap.FetchItemBodySection{Specifier: goimap.PartSpecifierHeader, Partial: &goimap.SectionPartial{Size: HeaderBytes}}
}

func (w Wanted) Options() goimap.FetchOptions {
	// The fields come from the header itself and not from ENVELOPE, so that lists and the
	// policy read them the same way.
	opts := goimap.FetchOptions{Flags: true, InternalDate: w.Dates, RFC822Size: w.Full || w.Thread || w.Copies, BodySection: []*goimap.FetchItemBodySection{w.head()}}
	if w.Text {
		opts.BodySection = append(opts.BodySection,
			&goimap.FetchItemBodySection{Specifier: goimap.PartSpecifierText, Partial: &goimap.SectionPartial{Size: TextBytes}})
	}
	if w.Structure {
		opts.BodyStructure = &goimap.FetchItemBodyStructure{Extended: true}
	}
	return opts
}
