package compose

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/postern-mail/postern/mail/internal/markdown"
	"github.com/postern-mail/postern/mail/internal/message"
	"github.com/postern-mail/postern/mail/internal/rfc5322"
)

// Address is one mailbox with its display name; Name is "" when it has none.
type Address = rfc5322.Address

// Message is a message to write. Addresses are in the form that
// ParseAddress returns.
type Message struct {
	From        Address
	To, CC, BCC []Address // may all be empty, as in a draft
	Subject     string    // "" for no subject; spaces at its ends are removed
	Date        time.Time // to the second, in the zone it carries
	MessageID   string    // without angle brackets
	InReplyTo   string    // without angle brackets; "" when the message is not a reply
	References  []string  // without angle brackets, oldest first
	Body        string    // plain text with any line ends; "" is a message without text
	Quoted      string    // text of others that follows Body after an empty line; never Markdown
	Markdown    bool      // HTML made of the text goes beside it, see markdown.HTML
	// Source is a whole message whose content is sent as it stands, in place of Body, Quoted
	// and Attachments; of its header only the form of its content counts. nil for none.
	Source      []byte
	Attachments []Attachment
}

// NoRecipients is the To field of a message with only blind recipients.
const NoRecipients = "undisclosed-recipients:;"

// Built is a finished message. Lines end with CRLF.
type Built struct {
	Wire []byte // the message as sent over SMTP, without a Bcc field
	Copy []byte // Wire with the Bcc field before it, for Sent and Drafts; without BCC the same slice
	// SMTPUTF8 says that an address of header or envelope needs RFC 6531. Only
	// then does Wire hold bytes outside ASCII, and only in address fields.
	SMTPUTF8 bool
	// Attachments are the given ones with the names and media types that the
	// recipient is told. Their Content is shared.
	Attachments []Attachment
}

// The bounds of a message. The caller bounds the sizes of bodies and
// attachments.
const (
	maxHeader      = 64 << 10 // bytes of the message's header; servers cut longer ones
	maxSubject     = 4 << 10  // bytes of the text
	maxName        = 500      // bytes of a display name
	maxAttachments = 100
)

// FieldError says which part of a message cannot be written and why. It does not
// repeat the value.
type FieldError struct {
	Field   string // as in a header, "Subject", or "Body" or "Attachment"
	Problem string // the reason, in lower case
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Problem }

func fault(field, format string, arguments ...any) error {
	return &FieldError{Field: field, Problem: fmt.Sprintf(format, arguments...)}
}

// Build writes a message (RFC 5322, RFC 2045). The same Message gives the same
// bytes. A nil Message is an empty one, which is refused. The error is a
// *FieldError.
//
// The body becomes text/plain in UTF-8. Its lines and their spaces stay
// unchanged, except that spaces and tabs at line ends are removed unless the
// line is the signature separator "-- ". A line of more than 78 columns is
// wrapped between words so that a reader of format=flowed (RFC 3676) joins it
// again; where no line needs that, the text is not declared as flowed. Text
// ends with a line end. Attachments arrive byte for byte. HTML is made of the text as it
// reads back, so that a reader of the message can tell by markdown.Made.
//
// A message with only blind recipients says "To: undisclosed-recipients:;",
// since a server might otherwise add a field that names them.
func Build(m *Message) (*Built, error) {
	if m == nil {
		m = &Message{}
	}
	var h header
	if err := m.writeHeader(&h); err != nil {
		return nil, err
	}
	text, err := m.text()
	if err != nil {
		return nil, err
	}
	parts, err := prepare(m.Attachments)
	if err != nil {
		return nil, err
	}
	wire := assemble(h.b, text, parts, m.MessageID)
	built := &Built{Wire: wire, SMTPUTF8: m.needsUTF8()}
	for _, p := range parts {
		built.Attachments = append(built.Attachments, p.Attachment)
	}
	if built.Copy, err = AddBCC(wire, m.BCC); err != nil {
		return nil, err
	}
	return built, nil
}

// writeHeader writes the fields of the message as a whole.
func (m *Message) writeHeader(h *header) error {
	date, err := formatDate(m.Date)
	if err != nil {
		return err
	}
	h.field("Date", date)
	if err := h.addresses("From", []Address{m.From}); err != nil {
		return err
	}
	if err := h.addresses("To", m.To); err != nil {
		return err
	}
	if err := h.addresses("Cc", m.CC); err != nil {
		return err
	}
	if len(m.To)+len(m.CC) == 0 && len(m.BCC) > 0 {
		h.field("To", NoRecipients)
	}
	if err := h.subject(m.Subject); err != nil {
		return err
	}
	if !validMessageID(m.MessageID) {
		return fault("Message-ID", "it is not an id such as 1234@example.org")
	}
	h.field("Message-ID", "<"+m.MessageID+">")
	if m.InReplyTo != "" {
		if err := h.ids("In-Reply-To", []string{m.InReplyTo}); err != nil {
			return err
		}
	}
	if err := h.ids("References", m.References); err != nil {
		return err
	}
	h.field("MIME-Version", "1.0")
	if len(h.b) > maxHeader {
		return fault(h.longest, "the header is over %d bytes long", maxHeader)
	}
	return nil
}

// needsUTF8 reports whether an address has a form only RFC 6531 can carry.
func (m *Message) needsUTF8() bool {
	all := slices.Concat([]Address{m.From}, m.To, m.CC, m.BCC)
	return slices.ContainsFunc(all, func(a Address) bool { return !isASCII(a.Addr) })
}

// text is the body of the message, without its attachments.
func (m *Message) text() (textPart, error) {
	if m.Source != nil {
		return contentOf(m.Source)
	}
	all, quoted := m.Body, 0
	if m.Quoted != "" {
		all = strings.TrimRight(all, "\r\n")
		if all != "" {
			all += "\n\n"
		}
		all += m.Quoted
		quoted = 1 + strings.Count(strings.TrimSuffix(unixLines.Replace(m.Quoted), "\n"), "\n")
	}
	body, flowed, err := layout(all)
	if err != nil {
		return textPart{}, err
	}
	text := encodeText(body, "plain", flowed)
	if !m.Markdown {
		return text, nil
	}
	read := strings.ReplaceAll(string(body), "\r\n", "\n")
	if flowed {
		read = message.Flowed(read, false)
	}
	document, err := markdown.HTML(read, quoted)
	if err != nil {
		return textPart{}, fault("Body", "%s", err)
	}
	document = strings.ReplaceAll(document, "\n", "\r\n")
	return alternative(m.MessageID, text, encodeText([]byte(document), "html", false)), nil
}

// contentOf is the content of a message, byte for byte, with the fields that describe it. It
// is refused when a server or a reader might change it or take it for something else.
func contentOf(source []byte) (textPart, error) {
	e := message.Parse(source)
	root := e.Root
	switch {
	case e.Incomplete:
		return textPart{}, fault("Body", "it has more parts than can be looked at")
	case root.Disposition == "attachment" || root.Filename != "":
		return textPart{}, fault("Body", "it is a file and no text")
	case !slices.Contains([]string{"", "7bit", "8bit", "quoted-printable", "base64"}, root.Encoding):
		return textPart{}, fault("Content-Transfer-Encoding", "it is none that mail is sent in")
	}
	written := []string{root.MediaType()}
	for _, key := range slices.Sorted(maps.Keys(root.Params)) {
		value := root.Params[key]
		if !rfc5322.IsToken(key) || strings.IndexFunc(value, func(r rune) bool { return r < ' ' || r >= 0x7f }) >= 0 {
			return textPart{}, fault("Content-Type", "it holds a character outside ASCII")
		}
		written = append(written, key+"="+quoted(value))
	}
	var h header
	h.params("Content-Type", written)
	if root.Encoding != "" {
		h.field("Content-Transfer-Encoding", root.Encoding)
	}
	body := e.Raw(root)
	if len(body) > 0 && !bytes.HasSuffix(body, []byte("\r\n")) {
		body = append(body, "\r\n"...)
	}
	for line := range bytes.Lines(body) {
		line, ended := bytes.CutSuffix(line, []byte("\r\n"))
		if !ended || len(line) > maxTextLine || bytes.ContainsAny(line, "\r\x00") {
			return textPart{}, fault("Body", "a line of it is too long, or holds a character that no server keeps")
		}
	}
	return textPart{header: h.b, body: body}, nil
}

// alternative joins a text with its HTML, which a reader that can show it prefers (RFC 2046
// section 5.1.4).
func alternative(messageID string, text, html textPart) textPart {
	var h header
	content := slices.Concat(text.body, html.body)
	boundary := newBoundary(boundarySeed(messageID, content), content)
	h.params("Content-Type", []string{"multipart/alternative", `boundary="` + boundary + `"`})
	var b []byte
	for _, p := range []textPart{text, html} {
		b = fmt.Appendf(b, "--%s\r\n%s\r\n%s\r\n", boundary, p.header, p.body)
	}
	return textPart{header: h.b, body: fmt.Appendf(b, "--%s--\r\n", boundary)}
}

// assemble joins a message in one buffer of the right size. header holds
// complete fields; text and parts bring their own.
func assemble(header []byte, text textPart, parts []part, messageID string) []byte {
	const around = 256 // octets of a delimiter, or of the container's field
	size := len(header) + len(text.header) + len(text.body) + 2*around
	for _, p := range parts {
		size += len(p.header) + base64Size(len(p.Content)) + around
	}
	wire := append(make([]byte, 0, size), header...)
	boundary := ""
	if len(parts) > 0 {
		plain := [][]byte{text.body}
		for _, p := range parts {
			if p.bare {
				plain = append(plain, p.Content)
			}
		}
		boundary = newBoundary(boundarySeed(messageID, text.body), plain...)
		wire = fmt.Appendf(wire, "Content-Type: multipart/mixed;\r\n boundary=\"%s\"\r\n\r\n--%s\r\n", boundary, boundary)
	}
	wire = append(append(append(wire, text.header...), "\r\n"...), text.body...)
	for _, p := range parts {
		wire = fmt.Appendf(wire, "\r\n--%s\r\n%s\r\n", boundary, p.header)
		if p.bare {
			wire = append(wire, p.Content...)
			continue
		}
		wire = appendBase64(wire, p.Content)
	}
	if len(parts) > 0 {
		return fmt.Appendf(wire, "\r\n--%s--\r\n", boundary)
	}
	if !bytes.HasSuffix(wire, []byte("\r\n")) {
		wire = append(wire, "\r\n"...)
	}
	return wire
}

// boundarySeed returns the seed of a message's boundaries.
func boundarySeed(messageID string, text []byte) []byte {
	sum := sha256.New()
	writeSized(sum, []byte(messageID))
	writeSized(sum, text)
	return sum.Sum(nil)
}

// newBoundary returns a boundary that does not occur in the parts. Neither
// base64 nor quoted-printable can hold "=_" (RFC 2045 section 6.7), so only the
// text, which may be sent unencoded, is searched.
func newBoundary(seed []byte, plain ...[]byte) string {
	for {
		boundary := "=_" + hex.EncodeToString(seed[:16])
		if !slices.ContainsFunc(plain, func(text []byte) bool { return bytes.Contains(text, []byte(boundary)) }) {
			return boundary
		}
		next := sha256.Sum256(seed)
		seed = next[:]
	}
}

// AddBCC returns the message as its sender keeps it: wire, made by Build, with
// a Bcc field before it. Without recipients it returns wire itself. The error
// is a *FieldError.
func AddBCC(wire []byte, bcc []Address) ([]byte, error) {
	if len(bcc) == 0 {
		return wire, nil
	}
	var h header
	if err := h.addresses("Bcc", bcc); err != nil {
		return nil, err
	}
	if len(h.b) > maxHeader {
		return nil, fault("Bcc", "the field is over %d bytes long", maxHeader)
	}
	out := make([]byte, 0, len(h.b)+len(wire))
	return append(append(out, h.b...), wire...), nil
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}
