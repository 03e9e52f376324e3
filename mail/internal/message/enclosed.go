package message

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// Open returns what a part of a message holds where that is the message itself in another
// form: the content of S/MIME signed data (RFC 8551 section 3.5), whose signature is not
// checked, or text with files that are written into it by uuencode (POSIX). nil means that it
// is neither. raw is the whole part as it was transferred. The section numbers of its parts
// begin with that of the part, as those of an enclosed message do.
func Open(p *Part, raw []byte) *Entity {
	switch {
	case len(p.Children) > 0 || int64(len(raw)) < p.Size:
	case p.IsCMS():
		if kind, content := readCMS(DecodeBody(raw, p.Encoding)); kind == cmsSigned && len(content) > 0 {
			return within(p, content)
		}
	case p.MediaType() == "text/plain":
		return openUuencode(p, DecodeBody(raw, p.Encoding))
	}
	return nil
}

// Enclosed parses the message that a part holds, or its beginning, with section numbers that
// begin with that of the part (RFC 9051 section 6.4.5.1); nil when the part is no message.
func Enclosed(p *Part, raw []byte) *Entity {
	if !IsMessage(p) || len(p.Children) > 0 || len(raw) == 0 {
		return nil
	}
	return within(p, DecodeBody(raw, p.Encoding))
}

// Inner returns the part of a section number within what p holds, and its octets as they were
// transferred; nil when there is none. raw is the whole of p.
func Inner(p *Part, raw []byte, id string) (*Part, []byte) {
	e := cmp.Or(Open(p, raw), Enclosed(p, raw))
	if e == nil {
		return nil, nil
	}
	for q := range e.Root.Leaves() {
		if q.ID == id {
			return q, e.Raw(q)
		}
		if strings.HasPrefix(id, q.ID+".") {
			return Inner(q, e.Raw(q), id)
		}
	}
	return nil, nil
}

// IsMessage reports whether a part is a message, by its type or its name.
func IsMessage(p *Part) bool { return textKind(p) == messageText }

func within(p *Part, content []byte) *Entity {
	e := Parse(content)
	if len(e.Root.Children) == 0 {
		e.Root.ID = p.ID + ".1"
	} else {
		number(e.Root, p.ID)
	}
	return e
}

// IsCMS reports whether a part is a container of S/MIME, signed or encrypted.
func (p *Part) IsCMS() bool {
	return p.Type == "application" && (p.Subtype == "pkcs7-mime" || p.Subtype == "x-pkcs7-mime" || strings.EqualFold(path.Ext(p.Filename), ".p7m"))
}

// Encrypted names what a message is encrypted with, "" for one that is not. body is as in Read.
func Encrypted(root *Part, body func(*Part) []byte) (with string) {
	if root == nil {
		return ""
	}
	walk(root, 0, func(p *Part) {
		switch {
		case p.MediaType() == "multipart/encrypted", p.MediaType() == "application/pgp-encrypted":
			with = "OpenPGP"
		case len(p.Children) == 0 && p.IsCMS():
			kind := strings.ToLower(p.Param("smime-type"))
			if read, _ := readCMS(DecodeBody(body(p), p.Encoding)); read == cmsEncrypted || strings.Contains(kind, "enveloped") {
				with = "S/MIME"
			}
		}
	})
	return with
}

type cmsKind int

const (
	cmsUnknown cmsKind = iota
	cmsSigned
	cmsEncrypted
)

// cmsTypes are the content types of RFC 5652 and RFC 5083 in BER.
var cmsTypes = map[string]cmsKind{
	"2a864886f70d010702": cmsSigned, "2a864886f70d010703": cmsEncrypted, "2a864886f70d0109100117": cmsEncrypted,
}

// readCMS tells what a ContentInfo (RFC 5652 section 3) holds, and of signed data the content.
func readCMS(b []byte) (kind cmsKind, content []byte) {
	info, _, _ := berElement(b)
	id, rest, _ := berElement(info.content)
	if kind = cmsTypes[hex.EncodeToString(id.content)]; kind != cmsSigned {
		return kind, nil
	}
	explicit, _, _ := berElement(rest)
	signed, _, _ := berElement(explicit.content)
	_, rest, _ = berElement(signed.content) // version
	_, rest, _ = berElement(rest)           // digest algorithms
	encapsulated, _, _ := berElement(rest)
	_, rest, _ = berElement(encapsulated.content) // content type
	explicit, _, _ = berElement(rest)
	octets, _, _ := berElement(explicit.content)
	return kind, octets.octets(0)
}

// ber is an element of BER (X.690).
type ber struct {
	constructed bool
	content     []byte
}

// berElement reads the element that b begins with; ok is false where there is none. Signed
// messages are often of elements without a length, which encoding/asn1 does not read.
func berElement(b []byte) (e ber, rest []byte, ok bool) { return berWithin(b, 0) }

func berWithin(b []byte, depth int) (e ber, rest []byte, ok bool) {
	const deepest = 20
	if len(b) < 2 || b[0]&0x1f == 0x1f || depth > deepest {
		return ber{}, nil, false
	}
	e.constructed = b[0]&0x20 != 0
	n := int(b[1])
	b = b[2:]
	switch {
	case n == 0x80: // elements up to an empty one
		for left := b; len(left) >= 2; {
			if left[0] == 0 && left[1] == 0 {
				e.content = b[:len(b)-len(left)]
				return e, left[2:], e.constructed
			}
			if _, left, ok = berWithin(left, depth+1); !ok {
				break
			}
		}
		return ber{}, nil, false
	case n > 0x84 || n > 0x80 && len(b) < n-0x80:
		return ber{}, nil, false
	case n > 0x80:
		size := 0
		for _, octet := range b[:n-0x80] {
			size = size<<8 | int(octet)
		}
		b, n = b[n-0x80:], size
	}
	if n < 0 || n > len(b) {
		return ber{}, nil, false
	}
	e.content = b[:n]
	return e, b[n:], true
}

// octets joins the pieces of an octet string.
func (e ber) octets(depth int) []byte {
	if !e.constructed || depth > 3 {
		return e.content
	}
	var all []byte
	for rest := e.content; len(rest) > 0; {
		piece, left, ok := berElement(rest)
		if !ok {
			break
		}
		all, rest = append(all, piece.octets(depth+1)...), left
	}
	return all
}

// uuencoded matches a file that is written into text.
var uuencoded = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("(?m)^begin [0-7]{3,4} ([^\r\n]{1,200})\r?\n((?:[!-M][ -`]{1,84}\r?\n)*)(?:[ `]?[ \t]*\r?\n)?end[ \t]*\r?(?:\n|\\z)")
})

// openUuencode takes the files out of a text of at most 2 MiB; nil where it has none. b is decoded from its
// transfer encoding.
func openUuencode(p *Part, b []byte) *Entity {
	if len(b) > maxHTML || !bytes.Contains(b, []byte("begin ")) {
		return nil
	}
	found := uuencoded().FindAllSubmatchIndex(b, MaxParts)
	if len(found) == 0 {
		return nil
	}
	e := &Entity{Root: &Part{ID: p.ID, Type: "multipart", Subtype: "mixed"}}
	add := func(part Part, content []byte) {
		part.start = len(e.raw)
		e.raw = append(e.raw, content...)
		part.end, part.Size = len(e.raw), int64(len(content))
		part.ID = p.ID + "." + strconv.Itoa(len(e.Root.Children)+1)
		e.Root.Children = append(e.Root.Children, &part)
	}
	var text []byte
	from := 0
	for _, m := range found {
		text, from = append(text, b[from:m[0]]...), m[1]
	}
	add(Part{Type: p.Type, Subtype: p.Subtype, Params: p.Params}, append(text, b[from:]...))
	for _, m := range found {
		name := Filename(map[string]string{"filename": string(b[m[2]:m[3]])}, nil)
		add(Part{Type: "application", Subtype: "octet-stream", Filename: name, Disposition: "attachment"}, decodeUuencode(b[m[4]:m[5]]))
	}
	return e
}

// decodeUuencode decodes lines, each with its number of octets in its first character. Blanks
// that were lost at the end of a line are zero.
func decodeUuencode(b []byte) []byte {
	var out []byte
	for line := range bytes.Lines(b) {
		n := int(line[0] - ' ')
		digits := bytes.TrimRight(line[1:], " \t\r\n")
		at := func(i int) byte {
			if i >= len(digits) {
				return 0
			}
			return (digits[i] - ' ') & 0x3f
		}
		for i := 0; n > 0; i, n = i+4, n-3 {
			octets := []byte{at(i)<<2 | at(i+1)>>4, at(i+1)<<4 | at(i+2)>>2, at(i+2)<<6 | at(i+3)}
			out = append(out, octets[:min(3, n)]...)
		}
	}
	return out
}
