package mailbox

import (
	"context"
	"strings"

	"github.com/postern-mail/postern/mail"
)

// The bounds of Get.
const (
	defaultBodyChars = 2000 // 001 section 5
	minBodyChars     = 100
	maxBodyChars     = 20_000

	defaultAttachmentChars = 10_000 // 001 section 5
	minAttachmentChars     = 100
	maxAttachmentChars     = 50_000

	textBytes     = 5 << 10   // of the body, fetched at once: the text of most messages is no longer
	smallText     = 64 << 10  // a text part up to here is fetched whole
	maxPartBytes  = 512 << 10 // of one part of plain text
	maxHTMLBytes  = 2 << 20   // of one part of HTML, whose style sheet can stand anywhere
	maxPDFBytes   = 5 << 20   // 001 section 5, decoded
	maxCalendar   = 64 << 10
	maxContent    = 24 << 20 // of all attachments of a message together, as transferred
	maxExtracted  = 20       // attachments whose text is read
	maxRounds     = 4        // fetches after the first
	maxSections   = 60       // of one message in one fetch
	maxHeaderText = 4000     // characters of one header field
)

// curated are the header fields that matter to a reader and for which Message has no field.
var curated = []string{"sender", "reply-to", "bcc", "in-reply-to", "references", "list-id", "list-unsubscribe", "auto-submitted"}

// readFields are the fields to fetch when neither the caller nor the policy needs the whole
// header.
var readFields = strings.Fields(strings.ToUpper("From To Cc Subject Date Message-ID " + strings.Join(curated, " ") +
	" MIME-Version Content-Type Content-Transfer-Encoding Content-Disposition Content-ID"))

// Get returns one message. A Ref without UIDVALIDITY means the folder as it is now; one
// whose UIDVALIDITY is gone is KindConflict, and never the content of another message. A
// message that the inbound policy hides is answered exactly as one that does not exist.
// Numbers are brought into their bounds. Get fetches only the data it shows: of plain text
// as much as BodyChars needs, 512 KiB of each part at most, of HTML 2 MiB, and of an
// attachment nothing unless its text or content was asked for (the text of a PDF of up to 5
// MB, and 24 MiB of content). An attachment that cannot be read is an Issue. Calls at the
// same time share round trips.
func (m *Client) Get(ctx context.Context, ref mail.Ref, q GetQuery) (*Message, error) {
	b, err := m.open(ctx, "mail get", ref.Account)
	if err != nil {
		return nil, err
	}
	q.BodyChars = within(q.BodyChars, defaultBodyChars, minBodyChars, maxBodyChars)
	q.AttachmentChars = within(q.AttachmentChars, defaultAttachmentChars, minAttachmentChars, maxAttachmentChars)
	if q.Headers == "" {
		q.Headers = HeadersCurated
	}
	return b.get(ctx, ref, q)
}

func (x *imapBox) get(ctx context.Context, ref mail.Ref, q GetQuery) (*Message, error) {
	ref, err := x.named(ref)
	if err != nil {
		return nil, err
	}
	r := &reading{access: x.access, ref: ref, q: q}
	if err := x.pool.read(ctx, r); err != nil {
		return nil, x.wrap(ctx, err)
	}
	r.readPDFs(ctx, x.m.o.PDFText)
	return r.message, nil
}

// within brings a number into its bounds; 0 means the default.
func within(n, def, low, high int) int {
	if n == 0 {
		n = def
	}
	return min(max(n, low), high)
}

// named checks that a reference can name a message of this account.
func (x *imapBox) named(ref mail.Ref) (mail.Ref, error) {
	if ref.Protocol != mail.IMAP || ref.UID == 0 {
		return ref, x.noMessage("")
	}
	var err error
	ref.Folder, err = x.folderName(ref.Folder)
	return ref, err
}
