package imap

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/postern-mail/postern/mail/internal/wire"
)

// scanner follows the grammar of a server's responses just far enough to bound them: lines,
// literals, quoted strings and the depth of parentheses outside both. It must never be more
// lenient than the parser behind it about where a string or a literal ends, or a server
// could hide nesting from it; where the two could differ it refuses. It keeps only a line's
// first words.
type scanner struct {
	limits Limits

	state    scanState
	line     int64 // bytes of the response outside literals
	str      int64 // bytes of the quoted string
	depth    int
	literal  int64 // bytes left of the literal, or the size being read
	digits   int
	section  bool   // the last word was BODY[...] or BINARY[...]: a literal here is content
	bracket  int    // depth of [ ] outside strings
	word     []byte // start of the current word, for section
	gap      bool   // the word has ended; the next character begins another
	head     []byte // first words of the line, until it is classified
	sorted   bool   // head is classified
	complete int64  // whole responses seen

	tagged func(tag string) error // called for the tag of each tagged response; an error ends the connection
	bye    func(text string)
	warned func() // called for an untagged NO or BAD
	isBye  bool
	mend   *mender // gets the same bytes, after they have passed the bounds; nil while a dialog reads
}

type scanState uint8

const (
	atStructure scanState = iota
	atText                // free text up to the end of the line
	atQuoted
	atEscape
	atSize    // after {
	atSizeEnd // after }
	atLiteral
)

const (
	maxHead   = 512
	maxString = 8 << 10 // a quoted string, or a literal that is not a body section
)

// feed follows p and reports the first bound it breaks.
func (s *scanner) feed(p []byte) error {
	for i := 0; i < len(p); i++ {
		if s.state == atLiteral {
			n := min(int64(len(p)-i), s.literal)
			if s.mend != nil {
				if err := s.mend.literal(p[i:i+int(n)], s.section); err != nil {
					return err
				}
			}
			s.literal -= n
			i += int(n) - 1
			if s.literal == 0 {
				s.state = atStructure
			}
			continue
		}
		if s.line++; s.line > s.limits.Line {
			return tooMuch("line")
		}
		was, before := s.state, s.complete
		if err := s.step(p[i]); err != nil {
			return err
		}
		if s.mend == nil {
			continue
		}
		err := s.mend.text(p[i])
		if err == nil && was == atSizeEnd && s.state != was {
			s.mend.open(s.section, s.literal)
		}
		if err == nil && s.complete != before {
			err = s.mend.end()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *scanner) step(b byte) error {
	if !s.sorted || s.isBye {
		if err := s.classify(b); err != nil {
			return err
		}
	}
	switch s.state {
	case atText:
		if b == '\n' {
			s.endLine()
		}
	case atQuoted:
		switch b {
		case '"':
			s.state = atStructure
			if s.bracket == 0 {
				s.endWord()
			}
			return nil
		case '\\':
			s.state = atEscape
		case '\r', '\n':
			// The parser would read on into the next line.
			return fmt.Errorf("%w: line break in a quoted string", errNotIMAP)
		}
		return s.countString()
	case atEscape:
		if b == '\r' || b == '\n' {
			return fmt.Errorf("%w: line break in a quoted string", errNotIMAP)
		}
		s.state = atQuoted
		return s.countString()
	case atSize:
		switch {
		case b >= '0' && b <= '9':
			if s.digits++; s.digits > 18 {
				return tooMuch("literal")
			}
			s.literal = s.literal*10 + int64(b-'0')
		case b == '}' && s.digits > 0:
			limit, what := s.limits.Literal, "literal"
			if !s.section {
				limit, what = min(limit, maxString), "string"
			}
			if s.literal > limit {
				return tooMuch(what)
			}
			s.state = atSizeEnd
		default:
			return fmt.Errorf("%w: broken literal", errNotIMAP)
		}
	case atSizeEnd:
		switch b {
		case ' ', '\r':
		case '\n':
			s.state = atLiteral
			if s.literal == 0 {
				s.state = atStructure
			}
			s.endWord()
		default:
			return fmt.Errorf("%w: broken literal", errNotIMAP)
		}
	default:
		return s.structure(b)
	}
	return nil
}

func (s *scanner) structure(b byte) error {
	switch b {
	case '"':
		s.state, s.str = atQuoted, 0
	case '{':
		s.state, s.literal, s.digits = atSize, 0, 0
		s.section = s.bracket == 0 && isSection(s.word)
	case '(':
		if s.depth++; s.depth > s.limits.Depth {
			return tooMuch("nesting")
		}
		if s.bracket == 0 {
			s.endWord()
		}
	case ')':
		if s.depth > 0 {
			s.depth--
		}
		if s.bracket == 0 {
			s.endWord()
		}
	case '\n':
		s.endLine()
	case '\r':
	case ' ', '~':
		// The word stays until the next one begins, so that a literal after
		// "BODY[TEXT] " is known as content.
		s.gap = s.bracket == 0
	default:
		if s.gap {
			s.endWord()
		}
		switch {
		case b == '[':
			s.bracket++
		case b == ']' && s.bracket > 0:
			s.bracket--
		}
		if len(s.word) < 16 {
			s.word = append(s.word, b)
		}
	}
	return nil
}

func (s *scanner) endWord() { s.word, s.gap = s.word[:0], false }

// isSection reports whether the word before a literal is a body section.
func isSection(word []byte) bool {
	w := bytes.ToUpper(word)
	return bytes.HasPrefix(w, []byte("BODY[")) || bytes.HasPrefix(w, []byte("BINARY["))
}

func (s *scanner) countString() error {
	limit := int64(maxString)
	if s.bracket == 0 && isSection(s.word) {
		limit = s.limits.Literal
	}
	if s.str++; s.str > limit {
		return tooMuch("string")
	}
	return nil
}

func (s *scanner) endLine() {
	if s.isBye && s.bye != nil {
		_, text, _ := strings.Cut(string(s.head), " ")
		_, text, _ = strings.Cut(text, " ")
		s.bye(wire.Clean(text))
	}
	s.state, s.line, s.depth, s.bracket = atStructure, 0, 0, 0
	s.endWord()
	s.head, s.sorted, s.isBye = s.head[:0], false, false
	s.complete++
}

// classify looks at the first words of a line: what follows OK, NO, BAD, BYE and
// PREAUTH, or a leading +, is free text, in which quotes and parentheses mean
// nothing. Everything else is structure.
func (s *scanner) classify(b byte) error {
	if len(s.head) < maxHead {
		s.head = append(s.head, b)
	}
	if s.sorted {
		return nil
	}
	if len(s.head) == 1 && b == '+' {
		s.state, s.sorted = atText, true
		return nil
	}
	if b != ' ' && b != '\r' && b != '\n' {
		s.sorted = len(s.head) >= 128
		return nil
	}
	words := strings.Split(strings.TrimRight(string(s.head), " \r\n"), " ")
	last := strings.ToUpper(words[len(words)-1])
	switch {
	case len(words) == 1:
		return nil // the tag
	case len(words) == 2 && words[0] == "*" && last != "" && last[0] >= '0' && last[0] <= '9':
		return nil // a number; the type comes next
	}
	s.sorted = true
	switch last {
	case "OK", "NO", "BAD":
		s.state = atText
		switch {
		case words[0] != "*" && s.tagged != nil:
			return s.tagged(words[0])
		case words[0] == "*" && last != "OK" && s.warned != nil:
			s.warned()
		}
	case "BYE":
		s.state, s.isBye = atText, words[0] == "*"
	case "PREAUTH":
		s.state = atText
	}
	return nil
}
