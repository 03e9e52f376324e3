package clientconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/postern-mail/postern/internal/plain"
)

// jsonNode is a value and where it stands in the text.
type jsonNode struct {
	kind       byte // { [ " or 0 for the rest
	start, end int
	members    []jsonMember // of an object, in order
}

type jsonMember struct {
	key   string
	start int // of the key
	value jsonNode
	comma int // behind the value; -1 when there is none
}

// find returns a member, or nil; also of no object at all.
func (n *jsonNode) find(name string) *jsonMember {
	if n == nil {
		return nil
	}
	for i := range n.members {
		if n.members[i].key == name {
			return &n.members[i]
		}
	}
	return nil
}

const maxJSONDepth = 200

var errJSONDepth = errors.New("it is nested too deeply")

// parse reads a whole file, whose value must be an object.
func (f jsonFormat) parse(text []byte) (*jsonNode, error) {
	if !utf8.Valid(text) {
		return nil, errors.New("it is not in UTF-8")
	}
	if bare := bytes.TrimPrefix(text, []byte(byteOrderMark)); !f.comments && !json.Valid(bare) {
		var v any
		return nil, fmt.Errorf("it is no valid JSON: %w", json.Unmarshal(bare, &v))
	}
	p := &jsonParser{text: text, comments: f.comments}
	if bytes.HasPrefix(text, []byte(byteOrderMark)) {
		p.pos = len(byteOrderMark)
	}
	if err := p.skip(); err != nil {
		return nil, err
	}
	root, err := p.value(0)
	if err == nil {
		err = p.skip()
	}
	switch {
	case err != nil:
		return nil, err
	case p.pos != len(text):
		return nil, p.unexpected()
	case root.kind != '{':
		return nil, errNotObject
	}
	return &root, nil
}

// jsonParser reads JSON, with comments and trailing commas where they are allowed.
type jsonParser struct {
	text     []byte
	pos      int
	comments bool
}

func (p *jsonParser) unexpected() error {
	line := 1 + bytes.Count(p.text[:p.pos], []byte("\n"))
	if p.pos >= len(p.text) {
		return errors.New("it ends too early")
	}
	return fmt.Errorf("it cannot be read from line %d on", line)
}

func (p *jsonParser) peek() byte {
	if p.pos < len(p.text) {
		return p.text[p.pos]
	}
	return 0
}

// skip passes white space and comments.
func (p *jsonParser) skip() error {
	for p.pos < len(p.text) {
		rest := p.text[p.pos:]
		switch {
		case strings.IndexByte(" \t\r\n", rest[0]) >= 0:
			p.pos++
		case p.comments && bytes.HasPrefix(rest, []byte("//")):
			n := bytes.IndexByte(rest, '\n')
			if n < 0 {
				n = len(rest)
			}
			p.pos += n
		case p.comments && bytes.HasPrefix(rest, []byte("/*")):
			n := bytes.Index(rest[2:], []byte("*/"))
			if n < 0 {
				return errors.New("a comment in it does not end")
			}
			p.pos += n + 4
		default:
			return nil
		}
	}
	return nil
}

func (p *jsonParser) value(depth int) (n jsonNode, err error) {
	if depth > maxJSONDepth {
		return n, errJSONDepth
	}
	n.start = p.pos
	switch c := p.peek(); c {
	case '{', '[':
		n.kind = c
		p.pos++
		if c == '{' {
			n.members, err = p.object(depth)
		} else {
			err = p.array(depth)
		}
	case '"':
		n.kind = '"'
		_, err = p.str()
	default:
		for p.pos < len(p.text) && strings.IndexByte(" \t\r\n,:]}/", p.text[p.pos]) < 0 {
			p.pos++
		}
		if !json.Valid(p.text[n.start:p.pos]) {
			p.pos = n.start
			err = p.unexpected()
		}
	}
	n.end = p.pos
	return n, err
}

// str reads a string.
func (p *jsonParser) str() (string, error) {
	start := p.pos
	for p.pos++; p.pos < len(p.text); p.pos++ {
		switch p.text[p.pos] {
		case '\\':
			p.pos++
		case '"':
			p.pos++
			var s string
			if json.Unmarshal(p.text[start:p.pos], &s) != nil {
				p.pos = start
				return "", p.unexpected()
			}
			return s, nil
		}
	}
	p.pos = len(p.text)
	return "", p.unexpected()
}

func (p *jsonParser) object(depth int) (members []jsonMember, err error) {
	seen := make(map[string]bool)
	for {
		if err := p.skip(); err != nil {
			return nil, err
		}
		if p.peek() == '}' && (len(members) == 0 || p.comments) {
			p.pos++
			return members, nil
		}
		if p.peek() != '"' {
			return nil, p.unexpected()
		}
		m := jsonMember{start: p.pos, comma: -1}
		if m.key, err = p.str(); err != nil {
			return nil, err
		}
		// Which of two counts is the client's secret: a change might be of no effect.
		if depth < 4 && seen[m.key] {
			return nil, fmt.Errorf("%q is in it twice", plain.Line(m.key))
		}
		seen[m.key] = true
		if err := p.skip(); err != nil {
			return nil, err
		}
		if p.peek() != ':' {
			return nil, p.unexpected()
		}
		p.pos++
		if err := p.skip(); err != nil {
			return nil, err
		}
		if m.value, err = p.value(depth + 1); err != nil {
			return nil, err
		}
		if err := p.skip(); err != nil {
			return nil, err
		}
		more := p.peek() == ','
		if more {
			m.comma = p.pos
			p.pos++
		}
		members = append(members, m)
		if !more {
			if p.peek() != '}' {
				return nil, p.unexpected()
			}
			p.pos++
			return members, nil
		}
	}
}

func (p *jsonParser) array(depth int) error {
	for first := true; ; first = false {
		if err := p.skip(); err != nil {
			return err
		}
		if p.peek() == ']' && (first || p.comments) {
			p.pos++
			return nil
		}
		if _, err := p.value(depth + 1); err != nil {
			return err
		}
		if err := p.skip(); err != nil {
			return err
		}
		switch p.peek() {
		case ',':
			p.pos++
		case ']':
			p.pos++
			return nil
		default:
			return p.unexpected()
		}
	}
}
