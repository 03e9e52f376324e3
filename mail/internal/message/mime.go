package message

import (
	"bytes"
	"cmp"
	"iter"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/mail/internal/rfc5322"
)

// Bounds of a MIME tree. Parts beyond them stay reachable in the raw message;
// Entity.Incomplete reports a tree that was cut.
const (
	MaxDepth = 50  // containers inside one another
	MaxParts = 500 // parts of one message, containers included
)

// Part is one node of a message's MIME tree. A caller that knows the tree from
// elsewhere, such as an IMAP BODYSTRUCTURE, builds the same with NewPart.
type Part struct {
	ID          string            // section number of RFC 9051 section 6.4.5.1: "1", "1.2"; "" for a multipart root
	Type        string            // lower case: "text"
	Subtype     string            // lower case: "plain"
	Params      map[string]string // of Content-Type: lower-case names, values as they stood, continuations not joined
	Disposition string            // lower case; "" when absent
	Filename    string            // decoded, and safe as the name of one file; "" when absent
	Encoding    string            // of the transfer, lower case; "" when absent
	Size        int64             // octets as transferred
	ContentID   string            // without angle brackets
	Children    []*Part           // of a multipart; nil for a leaf, and message/rfc822 is a leaf

	// Forward is set on a root whose message forwards another one, so that text below
	// a header block in it is not history. Parse takes it from the Subject; other
	// builders of a tree set it by IsForward.
	Forward bool

	start, end int // the body within the raw message, for a local parse
}

// NewPart returns a copy of p with its words in lower case and its Filename
// taken from the parameters of its disposition and type. Children are shared.
func NewPart(p Part, dispositionParams map[string]string) *Part {
	p.Type = strings.ToLower(p.Type)
	p.Subtype = strings.ToLower(p.Subtype)
	p.Disposition = strings.ToLower(strings.TrimSpace(p.Disposition))
	p.Encoding = strings.ToLower(strings.TrimSpace(p.Encoding))
	p.ContentID = strings.Trim(p.ContentID, " \t<>")
	p.Params = lowerKeys(p.Params)
	p.Filename = Filename(lowerKeys(dispositionParams), p.Params)
	return &p
}

// MediaType returns "type/subtype".
func (p *Part) MediaType() string { return p.Type + "/" + p.Subtype }

// Param returns the parameter of Content-Type with the given lower-case name,
// its RFC 2231 continuations joined and its charset decoded; "" when absent.
func (p *Part) Param(name string) string { return param(p.Params, name) }

// Leaves yields p or, in their order, the parts below it that have no parts themselves.
func (p *Part) Leaves() iter.Seq[*Part] {
	return func(yield func(*Part) bool) {
		var walk func(p *Part) bool
		walk = func(p *Part) bool {
			for _, c := range p.Children {
				if !walk(c) {
					return false
				}
			}
			return len(p.Children) > 0 || yield(p)
		}
		walk(p)
	}
}

// Entity is a message that was parsed here.
type Entity struct {
	Header     rfc5322.Header
	Root       *Part // never nil
	Incomplete bool  // the tree was cut at MaxDepth or MaxParts

	raw []byte
}

// Raw returns the octets of p's body as they were transferred, without its
// header. They alias the message. p is a part of this entity.
func (e *Entity) Raw(p *Part) []byte {
	if p == nil || p.start < 0 || p.end > len(e.raw) || p.start > p.end {
		return nil
	}
	return e.raw[p.start:p.end:p.end]
}

// Parse reads a whole message. It never fails: content that is not MIME becomes text, and a
// multipart without a usable boundary is a text part of its whole body. A message whose
// boundary is not the one that its header names, or that is base64 as a whole, is read all
// the same. Time grows linearly with the message. The entity aliases raw where it is not
// base64 as a whole.
func Parse(raw []byte) *Entity {
	headerEnd, bodyStart := messageHeader(raw)
	root := newLeaf(raw[:headerEnd], "text", "plain")
	if root.Type == "multipart" {
		raw = root.findBoundary(raw, bodyStart)
	}
	s := &scanner{raw: raw, delimiters: map[string]int{}, parts: 1}
	s.begin(root, bodyStart)
	s.run(bodyStart)
	number(root, "")
	header := rfc5322.ParseHeader(raw[:headerEnd])
	root.Forward = IsForward(header.Text("Subject"))
	walk(root, 0, func(p *Part) { nameMessage(p, raw) })
	return &Entity{Header: header, Root: root, Incomplete: s.incomplete, raw: raw}
}

// findBoundary sees to it that the boundary of a multipart stands in its body, which begins
// at an offset: it undoes a transfer encoding that no multipart may have, and takes the
// first line that looks like a boundary where the one that is named never comes.
func (p *Part) findBoundary(raw []byte, at int) []byte {
	there := func(body []byte) bool {
		boundary := strings.TrimRight(p.Param("boundary"), " \t")
		return boundary != "" && bytes.Contains(body, []byte("--"+boundary))
	}
	if there(raw[at:]) {
		return raw
	}
	if encodingName(p.Encoding) == "base64" {
		if body := decodeBase64(raw[at:]); there(body) {
			p.Encoding = ""
			return append(raw[:at:at], body...)
		}
	}
	if m := boundaryLine().FindSubmatch(raw[at:]); m != nil {
		p.Params["boundary"] = string(m[1])
	}
	return raw
}

// boundaryLine matches a boundary and the field behind it.
var boundaryLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(?:\A|\n)--([0-9a-z'()+_,./:=? -]{0,69}[0-9a-z'()+_,./:=?-])[ \t]{0,8}\r?\ncontent-[a-z-]{1,40}:`)
})

// HeaderOf returns the header of a whole message or of its beginning, without the empty
// line behind it; empty where raw does not begin with a header. It aliases raw.
func HeaderOf(raw []byte) []byte {
	end, _ := messageHeader(raw)
	return raw[:end:end]
}

// nameMessage names an attached message without a name after its subject, where
// that can be read without decoding a transfer.
func nameMessage(p *Part, raw []byte) {
	if p.MediaType() != "message/rfc822" || p.Filename != "" {
		return
	}
	switch encodingName(p.Encoding) {
	case "", "7bit", "8bit", "binary":
	default:
		return
	}
	body := raw[p.start:p.end]
	end, _ := messageHeader(body)
	if subject := rfc5322.ParseHeader(body[:end]).Text("Subject"); plain.Line(subject) != "" {
		p.Filename = Filename(map[string]string{"filename": subject + ".eml"}, nil)
	}
}

// number gives p and its descendants their section numbers and sizes.
func number(p *Part, id string) {
	p.ID = id
	p.Size = int64(p.end - p.start)
	if id == "" && len(p.Children) == 0 {
		p.ID = "1"
	}
	if id != "" {
		id += "."
	}
	for i, c := range p.Children {
		number(c, id+strconv.Itoa(i+1))
	}
}

// scanner reads the lines of a message once, knowing every open boundary; a
// reader per level would look at each line once per level.
type scanner struct {
	raw        []byte
	open       []level        // containers, outermost first
	leaf       *Part          // the part whose body is being read; nil in a preamble or epilogue
	delimiters map[string]int // boundary to index in open; of equal boundaries the outermost
	parts      int
	incomplete bool
}

type level struct {
	part      *Part
	boundary  string
	delimited bool // its boundary was seen
}

// begin starts the body of p at an offset, as a container when it can be one.
func (s *scanner) begin(p *Part, at int) {
	p.start, p.end = at, len(s.raw)
	s.leaf = p
	if p.Type != "multipart" {
		return
	}
	if len(s.open) >= MaxDepth {
		s.incomplete = true
		return
	}
	boundary := strings.TrimRight(p.Param("boundary"), " \t")
	if boundary == "" {
		p.Type, p.Subtype = "text", "plain"
		return
	}
	s.leaf = nil
	if _, taken := s.delimiters[boundary]; !taken {
		s.delimiters[boundary] = len(s.open)
	}
	s.open = append(s.open, level{part: p, boundary: boundary})
}

// closeAbove ends, at an offset, the leaf and every container from index i on.
func (s *scanner) closeAbove(i, end int) {
	if s.leaf != nil {
		s.leaf.end = max(s.leaf.start, end)
		s.leaf = nil
	}
	for n := len(s.open) - 1; n >= i; n-- {
		l := s.open[n]
		l.part.end = max(l.part.start, end)
		s.forget(n)
		if !l.delimited { // no part in it: its content is shown as text
			l.part.Type, l.part.Subtype = "text", "plain"
		}
	}
	s.open = s.open[:i]
}

// forget stops treating the boundary of level n as a boundary.
func (s *scanner) forget(n int) {
	if i, ok := s.delimiters[s.open[n].boundary]; ok && i == n {
		delete(s.delimiters, s.open[n].boundary)
	}
}

// match returns the open boundary that a line delimits, and whether the line
// is the closing delimiter. Only white space may follow a boundary.
func (s *scanner) match(line []byte) (at int, closing, ok bool) {
	if len(line) < 3 || line[0] != '-' || line[1] != '-' || len(s.delimiters) == 0 {
		return 0, false, false
	}
	b := bytes.TrimRight(line[2:], " \t\r")
	if at, ok = s.delimiters[string(b)]; ok {
		return at, false, true
	}
	if b, cut := bytes.CutSuffix(b, []byte("--")); cut {
		at, ok = s.delimiters[string(bytes.TrimRight(b, " \t"))]
		return at, true, ok
	}
	return 0, false, false
}

func (s *scanner) run(pos int) {
	for pos < len(s.raw) && len(s.open) > 0 {
		line, next := nextLine(s.raw, pos)
		at, closing, ok := s.match(line)
		if !ok {
			pos = next
			continue
		}
		s.open[at].delimited = true
		if !closing && s.parts >= MaxParts {
			s.incomplete = true
			s.closeAbove(0, beforeNewline(s.raw, pos))
			return
		}
		s.closeAbove(at+1, beforeNewline(s.raw, pos))
		if closing {
			// The level stays open for its epilogue, which belongs to its
			// body, but a later line like its boundary means nothing.
			s.forget(at)
			pos = next
			continue
		}
		pos = s.part(s.open[at].part, next)
	}
	s.closeAbove(0, len(s.raw))
}

// part reads a header at an offset, adds the part to its parent and returns
// where its body begins.
func (s *scanner) part(parent *Part, at int) int {
	headerEnd, bodyStart := s.partHeader(at)
	typ, subtype := "text", "plain"
	if parent.Subtype == "digest" {
		typ, subtype = "message", "rfc822"
	}
	p := newLeaf(s.raw[at:headerEnd], typ, subtype)
	parent.Children = append(parent.Children, p)
	s.parts++
	s.begin(p, bodyStart)
	return bodyStart
}

// partHeader returns where the header at an offset ends and its body begins.
// The blank line between them is often missing in broken mail: a delimiter, or
// a line that is not a field, ends the header too.
func (s *scanner) partHeader(at int) (headerEnd, bodyStart int) {
	for pos := at; pos < len(s.raw); {
		line, next := nextLine(s.raw, pos)
		if len(line) == 0 {
			return pos, next
		}
		if _, _, ok := s.match(line); ok || !(looksLikeField(line) || pos > at && isBlank(line[0])) {
			if !ok && len(bytes.TrimSpace(line)) == 0 {
				return pos, next
			}
			return pos, pos
		}
		pos = next
	}
	return len(s.raw), len(s.raw)
}

// messageHeader returns where the header of a message ends and its body
// begins. Lines that are not fields are left to the header parser, unless there
// is not one field: then everything is body.
func messageHeader(raw []byte) (headerEnd, bodyStart int) {
	fields, lines := 0, 0
	for pos := 0; pos < len(raw); {
		line, next := nextLine(raw, pos)
		switch {
		case len(line) > 0:
			lines++
			if looksLikeField(line) {
				fields++
			}
		case fields > 0:
			return pos, next
		case lines > 0:
			return 0, 0
		}
		pos = next
	}
	if fields == 0 {
		return 0, 0
	}
	return len(raw), len(raw)
}

// nextLine returns the line at an offset without its end, which may be CRLF or
// LF alone, and the offset of the next line.
func nextLine(b []byte, at int) (line []byte, next int) {
	end := len(b)
	next = end
	if i := bytes.IndexByte(b[at:], '\n'); i >= 0 {
		end, next = at+i, at+i+1
	}
	return bytes.TrimSuffix(b[at:end], []byte("\r")), next
}

// beforeNewline returns the offset of the line end right before an offset: it
// belongs to the delimiter that follows (RFC 2046 section 5.1.1).
func beforeNewline(b []byte, at int) int {
	if at > 0 && b[at-1] == '\n' {
		at--
		if at > 0 && b[at-1] == '\r' {
			at--
		}
	}
	return at
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// looksLikeField reports whether a line begins a header field: a name of printable
// ASCII without spaces before a colon.
func looksLikeField(line []byte) bool {
	for i, c := range line {
		switch {
		case c == ':':
			return i > 0
		case isBlank(c): // obsolete: white space before the colon
			rest := bytes.TrimLeft(line[i:], " \t")
			return i > 0 && len(rest) > 0 && rest[0] == ':'
		case c <= ' ' || c >= 0x7f:
			return false
		}
	}
	return false
}

// newLeaf makes a part of its header. The first non-empty field of a name counts; typ
// and subtype replace a type that is absent or unreadable.
func newLeaf(header []byte, typ, subtype string) *Part {
	h := rfc5322.ParseHeader(bytes.TrimLeft(header, "\r\n"))
	field := func(name string) (value string, params map[string]string) {
		return splitParams(cmp.Or(h.Values(name)...))
	}
	p := Part{Type: typ, Subtype: subtype, ContentID: cmp.Or(h.Values("Content-ID")...)}
	var value string
	value, p.Params = field("Content-Type")
	if t, sub, ok := strings.Cut(value, "/"); ok && rfc5322.IsToken(strings.TrimSpace(t)) && rfc5322.IsToken(strings.TrimSpace(sub)) {
		p.Type, p.Subtype = strings.TrimSpace(t), strings.TrimSpace(sub)
	}
	p.Encoding, _ = field("Content-Transfer-Encoding")
	var dispositionParams map[string]string
	p.Disposition, dispositionParams = field("Content-Disposition")
	return NewPart(p, dispositionParams)
}
