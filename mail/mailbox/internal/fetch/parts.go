package fetch

import (
	goimap "github.com/emersion/go-imap/v2"

	"strconv"
	"strings"
	"sync"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/message"
)

// PartsOf makes our tree of a BODYSTRUCTURE, with its section numbers (RFC 9051
// section 6.4.5.1), within the bounds of a tree parsed here.
func PartsOf(b goimap.BodyStructure) *message.Part {
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

// PartID writes a section number as a Part has it.
func PartID(part []int) string {
	s := make([]string, len(part))
	for i, n := range part {
		s[i] = strconv.Itoa(n)
	}
	return strings.Join(s, ".")
}

// PartNumbers reads what PartID writes.
func PartNumbers(id string) []int {
	var part []int
	for s := range strings.SplitSeq(id, ".") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return nil
		}
		part = append(part, n)
	}
	return part
}

// maxPartFacts bounds the messages of one account to remember.
const maxPartFacts = 100_000

// Parts is what a list says of the parts of a message.
type Parts struct {
	Attachments bool
	Invitation  bool
}

// PartFacts remembers the parts of messages: a message never changes under its UID. It is
// safe for concurrent use; its zero value is empty.
type PartFacts struct {
	mu  sync.Mutex
	has map[mail.Ref]Parts // a Ref of a folder alone stands for any message of it
}

// Begun reports whether any message of a folder is known.
func (f *PartFacts) Begun(folder string) bool {
	_, known := f.Known(mail.Ref{Folder: folder})
	return known
}

func (f *PartFacts) Known(ref mail.Ref) (has Parts, known bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	has, known = f.has[ref]
	return has, known
}

// Note remembers one message. When there are too many, it forgets all: learning them again
// costs a list a few bytes.
func (f *PartFacts) Note(ref mail.Ref, has Parts) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.has == nil || len(f.has) >= maxPartFacts {
		f.has = make(map[mail.Ref]Parts)
	}
	f.has[ref], f.has[mail.Ref{Folder: ref.Folder}] = has, Parts{}
}
