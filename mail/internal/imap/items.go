package imap

import (
	"strconv"
	"strings"
	"time"

	goimap "github.com/emersion/go-imap/v2"

	"github.com/postern-mail/postern/mail/internal/message"
)

// Items is what a FETCH asks for of each message, besides its UID.
type Items struct {
	Flags, Date, Size bool // Date is INTERNALDATE
	Structure         bool
	Sections          []Section
}

// Section names bytes of a message (RFC 9051 section 6.4.5). The zero Section is all of it.
type Section struct {
	Part   string // section number, such as "2.1"; empty means the message
	Only   string // Header or Text of it; empty means both
	Fields string // only these fields of a header, in upper case with a space between; empty means all
	Offset int64  // with Size: only the bytes from here on
	Size   int64  // at most so many bytes; 0 means all
}

// What a Section is of a message.
const (
	Header = "HEADER"
	Text   = "TEXT"
)

// Fetched is what a server sent of one message.
type Fetched struct {
	UID       uint32
	Number    uint32   // its sequence number
	Flags     []string // nil when it sent none, and not when the message has none
	Date      time.Time
	Size      int64
	Structure *message.Part
	Sections  []SectionBytes

	structure goimap.BodyStructure // nil when it sent none
	order     uint32               // of two about one message, that of the higher came later
}

// SectionBytes is a section as a server sent it, without Size. Bytes is nil when it has none.
type SectionBytes struct {
	Section
	Bytes []byte
}

// Section returns the bytes of a section, whatever their offset; with Fields those of a header
// of which only fields were asked for, whichever they are.
func (f *Fetched) Section(of Section) ([]byte, bool) {
	for _, s := range f.Sections {
		if s.Only == of.Only && s.Part == of.Part && (s.Fields == "") == (of.Fields == "") && s.Bytes != nil {
			return s.Bytes, true
		}
	}
	return nil, false
}

// wire is the items as the library has them. Sections are fetched with PEEK.
func (w *Items) wire() *goimap.FetchOptions {
	opts := &goimap.FetchOptions{UID: true, Flags: w.Flags, InternalDate: w.Date, RFC822Size: w.Size}
	if w.Structure {
		opts.BodyStructure = &goimap.FetchItemBodyStructure{Extended: true}
	}
	for _, s := range w.Sections {
		section := &goimap.FetchItemBodySection{Peek: true, Specifier: goimap.PartSpecifier(s.Only), HeaderFields: strings.Fields(s.Fields)}
		for n := range strings.SplitSeq(s.Part, ".") {
			if number, err := strconv.Atoi(n); err == nil {
				section.Part = append(section.Part, number)
			}
		}
		if s.Size > 0 {
			section.Partial = &goimap.SectionPartial{Offset: s.Offset, Size: s.Size}
		}
		opts.BodySection = append(opts.BodySection, section)
	}
	return opts
}

// sectionOf is a section as the server named it.
func sectionOf(b *goimap.FetchItemBodySection) Section {
	s := Section{Only: string(b.Specifier), Part: partID(b.Part), Fields: strings.ToUpper(strings.Join(b.HeaderFields, " "))}
	if b.Partial != nil {
		s.Offset = b.Partial.Offset
	}
	return s
}

func partID(part []int) string {
	s := make([]string, len(part))
	for i, n := range part {
		s[i] = strconv.Itoa(n)
	}
	return strings.Join(s, ".")
}

// structureOf makes a tree of a BODYSTRUCTURE, with its section numbers (RFC 9051 section
// 6.4.5.1), within the bounds of a tree that is parsed here.
func structureOf(b goimap.BodyStructure) *message.Part {
	left := message.MaxParts
	root := partOf(b, "", message.MaxDepth, &left)
	if root != nil && len(root.Children) == 0 && root.Type != "multipart" {
		root.ID = "1"
	}
	return root
}

func partOf(b goimap.BodyStructure, id string, depth int, left *int) *message.Part {
	if *left--; *left < 0 || depth < 0 {
		return nil
	}
	var disposition string
	var params map[string]string
	if d := b.Disposition(); d != nil {
		disposition, params = d.Value, d.Params
	}
	switch b := b.(type) {
	case *goimap.BodyStructureSinglePart:
		if b.Type == "" { // the server could not read it (RFC 2045 section 5.2)
			b.Type, b.Subtype = "text", "plain"
		}
		return message.NewPart(message.Part{ID: id, Type: b.Type, Subtype: b.Subtype, Params: b.Params, Disposition: disposition,
			Encoding: b.Encoding, Size: int64(b.Size), ContentID: b.ID}, params)
	case *goimap.BodyStructureMultiPart:
		p := message.Part{ID: id, Type: "multipart", Subtype: b.Subtype, Disposition: disposition}
		if b.Extended != nil {
			p.Params = b.Extended.Params
		}
		if id != "" {
			id += "."
		}
		for i, c := range b.Children {
			if child := partOf(c, id+strconv.Itoa(i+1), depth-1, left); child != nil {
				p.Children = append(p.Children, child)
			}
		}
		return message.NewPart(p, params)
	}
	return nil
}
