package gateway

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/google/shlex"
)

// Bounds of a command string (002 section 4.2.2). Characters are Unicode code
// points. A value at the bound passes.
const (
	MaxCommandChars  = 10_000
	MaxArguments     = 100
	MaxArgumentChars = 10_000
)

// No argument is longer than the string it is cut from, since every escape
// shrinks. So the bound of the string enforces that of an argument, and this must
// not compile once that changes.
const _ = uint(MaxArgumentChars - MaxCommandChars)

// SyntaxKind is what is wrong with a command string.
type SyntaxKind string

// The ways in which a command string can be unreadable.
const (
	UnterminatedSingleQuote SyntaxKind = "unterminated_single_quote"
	UnterminatedDoubleQuote SyntaxKind = "unterminated_double_quote"
	TrailingBackslash       SyntaxKind = "trailing_backslash"
	NULCharacter            SyntaxKind = "nul"
	InvalidUTF8             SyntaxKind = "invalid_utf8"
	CommandTooLong          SyntaxKind = "command_too_long"
	TooManyArguments        SyntaxKind = "too_many_arguments"
)

// advice is what each of them says, with the number of a character.
var advice = map[SyntaxKind]string{
	UnterminatedSingleQuote: "unterminated single quote that starts at character %d; close it, or put a value that holds an apostrophe in double quotes",
	UnterminatedDoubleQuote: `unterminated double quote that starts at character %d; close it, or write \" for a literal quote`,
	TrailingBackslash:       `nothing follows the backslash at character %d; write \\ for a literal backslash`,
	NULCharacter:            "character %d is NUL; leave it out",
	InvalidUTF8:             "character %d is not valid UTF-8; send the command as UTF-8 text",
	CommandTooLong:          fmt.Sprintf("it is longer than %d characters; shorten it from character %%d on", MaxCommandChars),
	TooManyArguments:        fmt.Sprintf("it has more than %d arguments; leave out what starts at character %%d, or put a value that holds spaces in quotes", MaxArguments),
}

// SyntaxError is a command string that has no tokens. Its text says where and what
// to do, and repeats nothing of the string.
type SyntaxError struct {
	Kind SyntaxKind

	// Pos counts characters from 0: the quote that never closes, the lone
	// backslash, the bad character, the first character beyond the bound, or the
	// start of the first argument beyond it. A byte that is not UTF-8 counts as
	// one character.
	Pos int
}

// Error implements error. Positions in it count from 1.
func (e *SyntaxError) Error() string { return fmt.Sprintf(advice[e.Kind], e.Pos+1) }

// Tokenize splits a command string into arguments by the rules of 002 section 4.1
// and appendix A. Nothing is expanded and nothing is a comment.
//
//   - Space, tab, CR and LF separate; no other character does.
//   - Between single quotes every character stands for itself.
//   - Between double quotes \" \\ \n \t mean quote, backslash, newline and tab;
//     a backslash before any other character stands for itself.
//   - Outside quotes a backslash makes the next character literal.
//   - Quoted and unquoted pieces that touch are one argument, which may be empty.
//
// A blank line has no tokens and is not an error. Every error is a *SyntaxError.
func Tokenize(line string) ([]string, error) {
	if len(line) > MaxCommandChars && utf8.RuneCountInString(line) > MaxCommandChars {
		return nil, &SyntaxError{Kind: CommandTooLong, Pos: MaxCommandChars}
	}
	n := normalizer{}
	n.out.Grow(len(line) + len(line)/8)
	if err := n.run(line); err != nil {
		return nil, err
	}
	tokens, err := shlex.Split(n.out.String())
	if err != nil {
		// The pass before left no open quote and no lone backslash.
		return nil, fmt.Errorf("gateway: normalized command string does not split: %w", err)
	}
	return tokens, nil
}

// A normalizer checks a command string and rewrites it so that shlex, which knows
// comments and neither \n nor \t, splits it as Tokenize promises. All it writes is
// in shlex's own language: a '#' becomes an escaped '#', and what double quotes
// mean becomes what shlex takes them to mean. No character is borrowed as a
// stand-in, so there is none that a string must not hold.
type normalizer struct {
	out     strings.Builder
	state   quoteState
	opened  int // position of the quote or backslash that set state
	inWord  bool
	words   int
	escaped bool // the last character was an active backslash
}

type quoteState byte

const (
	unquoted quoteState = iota
	singleQuoted
	doubleQuoted
)

func (n *normalizer) run(line string) error {
	pos := -1
	for i, r := range line {
		pos++
		switch {
		case r == 0:
			return &SyntaxError{Kind: NULCharacter, Pos: pos}
		case r == utf8.RuneError && !strings.HasPrefix(line[i:], "\ufffd"):
			return &SyntaxError{Kind: InvalidUTF8, Pos: pos}
		case n.state == singleQuoted:
			n.out.WriteRune(r)
			if r == '\'' {
				n.state = unquoted
			}
		case n.state == doubleQuoted:
			n.doubleQuoted(r)
		default:
			if err := n.unquoted(r, pos); err != nil {
				return err
			}
		}
	}
	switch {
	case n.state == singleQuoted:
		return &SyntaxError{Kind: UnterminatedSingleQuote, Pos: n.opened}
	case n.state == doubleQuoted:
		return &SyntaxError{Kind: UnterminatedDoubleQuote, Pos: n.opened}
	case n.escaped:
		return &SyntaxError{Kind: TrailingBackslash, Pos: pos}
	}
	return nil
}

func (n *normalizer) unquoted(r rune, pos int) error {
	if n.escaped {
		n.escaped = false
		n.out.WriteRune(r)
		return nil
	}
	switch r {
	case ' ', '\t', '\r', '\n':
		n.inWord = false
		n.out.WriteRune(r)
		return nil
	}
	if !n.inWord {
		n.inWord = true
		if n.words++; n.words > MaxArguments {
			return &SyntaxError{Kind: TooManyArguments, Pos: pos}
		}
	}
	switch r {
	case '\'':
		n.state, n.opened = singleQuoted, pos
	case '"':
		n.state, n.opened = doubleQuoted, pos
	case '\\':
		n.escaped = true
	case '#':
		n.out.WriteByte('\\')
	}
	n.out.WriteRune(r)
	return nil
}

func (n *normalizer) doubleQuoted(r rune) {
	if n.escaped {
		n.escaped = false
		switch r {
		case '"', '\\':
			n.out.WriteByte('\\')
			n.out.WriteRune(r)
		case 'n':
			n.out.WriteByte('\n')
		case 't':
			n.out.WriteByte('\t')
		default:
			n.out.WriteString(`\\`)
			n.out.WriteRune(r)
		}
		return
	}
	switch r {
	case '\\':
		n.escaped = true
		return
	case '"':
		n.state = unquoted
	}
	n.out.WriteRune(r)
}
