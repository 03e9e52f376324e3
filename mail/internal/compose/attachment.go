package compose

import (
	"bytes"
	"maps"
	"mime"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/postern-mail/postern/mail/internal/message"
	"github.com/postern-mail/postern/mail/internal/rfc5322"
)

// Attachment is a file to send. Content is not changed.
type Attachment struct {
	Name    string // as the recipient sees it; directories, controls and invisible characters are taken out
	Type    string // media type, may have parameters; empty means by the name's extension
	Content []byte
	// Message says that Content is a whole message. It is sent as message/rfc822 if its bytes
	// can travel unchanged without an encoding, which that type forbids, else as any file.
	Message bool
}

const (
	anyType  = "application/octet-stream"
	maxType  = 200 // bytes of a media type with its parameters
	nameless = "attachment"
	maxPlain = 60 // bytes of a file name in a plain parameter, which must fit one line
)

// part is an attachment with the fields that describe it.
type part struct {
	Attachment
	header []byte
	bare   bool // without an encoding
}

func prepare(attachments []Attachment) ([]part, error) {
	if len(attachments) > maxAttachments {
		return nil, fault("Attachment", "there are over %d", maxAttachments)
	}
	parts := make([]part, 0, len(attachments))
	for i, a := range attachments {
		p := part{Attachment: Attachment{Name: cleanName(a.Name), Content: a.Content}}
		var params map[string]string
		var ok bool
		if p.Type, params, ok = mediaType(a.Type, p.Name, a.Content); !ok {
			return nil, fault("Attachment", "the media type of number %d is not a type such as text/csv", i+1)
		}
		if p.bare = a.Message && travels(a.Content); p.bare {
			p.Type = "message/rfc822"
		}
		p.header = partHeader(p.Type, params, p.Name, p.bare)
		parts = append(parts, p)
	}
	return parts, nil
}

// partHeader writes the fields of an attachment. A name that not every reader
// accepts is written in RFC 2231's form, with an ASCII name in the type for
// readers that do not know that form. Both in one field would repeat the
// parameter, and some readers take the first.
func partHeader(mediaType string, params map[string]string, name string, bare bool) []byte {
	var h header
	written := []string{mediaType}
	for _, key := range slices.Sorted(maps.Keys(params)) {
		written = append(written, key+"="+quoted(params[key]))
	}
	fallback := asciiName(name)
	if fallback != name {
		written = append(written, `name="`+fallback+`"`)
	}
	h.params("Content-Type", written)
	if !bare {
		h.field("Content-Transfer-Encoding", "base64")
	}
	if fallback == name {
		h.params("Content-Disposition", []string{"attachment", `filename="` + name + `"`})
	} else {
		h.params("Content-Disposition", []string{"attachment", "filename*=utf-8''" + percentEncode(name)})
	}
	return h.b
}

// travels reports whether every server leaves these bytes as they are (RFC 5322 section 2.1,
// RFC 2046 section 5.2.1): ASCII in lines of CRLF, none too long and none that a mailbox file
// would change.
func travels(content []byte) bool {
	ends := bytes.Count(content, []byte("\r\n"))
	return bytes.Count(content, []byte("\r")) == ends && bytes.Count(content, []byte("\n")) == ends &&
		!bytes.Contains(content, []byte{0}) && is7bit(content)
}

// params writes a field of a value with its parameters.
func (h *header) params(name string, words []string) {
	last := len(words) - 1
	for i := range last {
		words[i] += ";"
	}
	h.field(name, words...)
}

// quoted writes a parameter's value of printable ASCII.
func quoted(s string) string {
	if rfc5322.IsToken(s) {
		return s
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// percentEncode writes text as the extended values of RFC 2231 section 7 do.
func percentEncode(s string) string {
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if rfc5322.IsTokenChar(c) && c != '*' && c != '\'' && c != '%' {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(upperHex[c>>4])
		b.WriteByte(upperHex[c&15])
	}
	return b.String()
}

// asciiName returns a form of the name that any reader accepts between quotes:
// letters lose their accents, "_" replaces other characters outside ASCII and
// those the parser treats specially, and a long name is cut before its
// extension. A name that already has that form is unchanged.
func asciiName(name string) string {
	var b strings.Builder
	for _, r := range norm.NFKD.String(name) {
		switch {
		case unicode.Is(unicode.M, r):
		case r < ' ' || r >= 0x7f || strings.ContainsRune(`"\%/:`, r):
			b.WriteByte('_')
		default:
			b.WriteRune(r)
		}
	}
	s := b.String()
	if len(s) > maxPlain {
		ext := path.Ext(s)
		if len(ext) > maxPlain/2 {
			ext = ""
		}
		s = s[:maxPlain-len(ext)] + ext
	}
	return cleanName(s) // characters that fall apart into dots make a new name
}

// cleanName makes a valid name of one file on any system: without directories
// (those of Windows too), control and invisible characters.
func cleanName(name string) string {
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	for range 256 { // one removal at an end may expose the next; bounded by the bytes of a name
		safe := message.Filename(map[string]string{"filename": name}, nil)
		safe = strings.ReplaceAll(safe, "=?", "=_") // many readers would decode it
		if safe == name {
			break
		}
		name = safe
	}
	if name == "" {
		return nameless
	}
	return name
}

// mediaType returns the type that the recipient is told, without its parameters,
// and the parameters. ok is false when given is not a media type.
//
// A message or multipart is sent as a file of bytes: its own type would forbid
// the encoding that carries it unchanged (RFC 2046 sections 5.1 and 5.2).
func mediaType(given, name string, content []byte) (mediaType string, params map[string]string, ok bool) {
	if given == "" {
		given = typeByName(name)
	}
	if len(given) > maxType || strings.ContainsFunc(given, unicode.IsControl) {
		return "", nil, false
	}
	mediaType, params, err := mime.ParseMediaType(given)
	kind, sub, slash := strings.Cut(mediaType, "/")
	if err != nil || !slash || !rfc5322.IsToken(kind) || !rfc5322.IsToken(sub) {
		return "", nil, false
	}
	if kind == "message" || kind == "multipart" {
		return anyType, nil, true
	}
	delete(params, "name") // the disposition says it
	for key, value := range params {
		if !rfc5322.IsToken(key) || strings.ContainsAny(key, "*'%") || strings.IndexFunc(value, func(r rune) bool { return r < ' ' || r >= 0x7f }) >= 0 {
			return "", nil, false
		}
	}
	if _, said := params["charset"]; kind == "text" && !said && utf8.Valid(content) {
		params["charset"] = "utf-8"
	}
	return mediaType, params, true
}
