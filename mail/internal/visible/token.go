package visible

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// tokenKind is a kind of token of CSS Syntax Level 3 section 4. Comments are no
// tokens: they only keep apart what stands before and behind them.
type tokenKind uint8

const (
	tokenEnd tokenKind = iota
	tokenIdent
	tokenFunction // with the parenthesis behind it
	tokenAt
	tokenHash
	tokenString
	tokenURL
	tokenBad // a broken string or address
	tokenNumber
	tokenPercent
	tokenDimension
	tokenSpace
	tokenCDO // <!--
	tokenCDC // -->
	tokenMark
)

// token is one token. A mark, which is a delimiter, a colon, a comma or a
// bracket, has itself as its text; other texts have their escapes resolved.
type token struct {
	kind tokenKind
	text string // a unit in lower case for dimensions, a number as it is written
	n    float64
	name bool // of a hash: it could be an identifier, so it is an id
	span int  // of a bracket: how many tokens ahead the one is that closes it
}

// is reports whether a token is a mark.
func (t token) is(mark string) bool { return t.kind == tokenMark && t.text == mark }

// word returns an identifier in lower case, "" for any other token.
func (t token) word() string {
	if t.kind != tokenIdent {
		return ""
	}
	return strings.ToLower(t.text)
}

// calls returns the name of a function in lower case, "" for any other token.
func (t token) calls() string {
	if t.kind != tokenFunction {
		return ""
	}
	return strings.ToLower(t.text)
}

// opens and closes know the brackets, among which is that of a function.
func (t token) opens() string {
	switch {
	case t.kind == tokenFunction || t.is("("):
		return ")"
	case t.is("["):
		return "]"
	case t.is("{"):
		return "}"
	}
	return ""
}

func (t token) closes() bool { return t.is(")") || t.is("]") || t.is("}") }

// lexer reads CSS from an offset that may be set back.
type lexer struct {
	s   string
	pos int
}

var cssNewlines = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\f", "\n", "\x00", "\uFFFD")

func newLexer(css string) lexer {
	if strings.ContainsAny(css, "\r\f\x00") {
		css = cssNewlines.Replace(css)
	}
	return lexer{s: css}
}

func (z *lexer) at(i int) byte {
	if z.pos+i < len(z.s) {
		return z.s[z.pos+i]
	}
	return 0
}

func (z *lexer) next() token {
	for strings.HasPrefix(z.s[z.pos:], "/*") {
		end := strings.Index(z.s[z.pos+2:], "*/")
		if end < 0 {
			z.pos = len(z.s)
			break
		}
		z.pos += end + 4
	}
	if z.pos >= len(z.s) {
		return token{}
	}
	switch c := z.s[z.pos]; {
	case isSpaceCSS(c):
		for isSpaceCSS(z.at(0)) {
			z.pos++
		}
		return token{kind: tokenSpace, text: " "}
	case c == '"' || c == '\'':
		return z.quoted(c)
	case c == '#' && (isNameByte(z.at(1)) || z.escapes(1)):
		z.pos++
		id := z.startsName()
		return token{kind: tokenHash, text: z.name(), name: id}
	case c >= '0' && c <= '9', c == '+' || c == '-' || c == '.':
		if text := numbers.FindString(z.s[z.pos:]); text != "" {
			return z.number(text)
		}
		if strings.HasPrefix(z.s[z.pos:], "-->") {
			z.pos += 3
			return token{kind: tokenCDC}
		}
		if z.startsName() {
			return z.word()
		}
	case c == '<' && strings.HasPrefix(z.s[z.pos:], "<!--"):
		z.pos += 4
		return token{kind: tokenCDO}
	case c == '@':
		z.pos++
		if z.startsName() {
			return token{kind: tokenAt, text: strings.ToLower(z.name())}
		}
		return token{kind: tokenMark, text: "@"}
	case z.startsName():
		return z.word()
	}
	_, n := utf8.DecodeRuneInString(z.s[z.pos:])
	z.pos += n
	return token{kind: tokenMark, text: z.s[z.pos-n : z.pos]}
}

func isSpaceCSS(c byte) bool { return c == ' ' || c == '\t' || c == '\n' }

func isNameStart(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= 0x80
}

func isNameByte(c byte) bool { return isNameStart(c) || c >= '0' && c <= '9' || c == '-' }

// escapes reports whether a valid escape begins i bytes ahead.
func (z *lexer) escapes(i int) bool {
	return z.at(i) == '\\' && z.at(i+1) != '\n' && z.pos+i+1 < len(z.s)
}

// startsName reports whether an identifier begins here.
func (z *lexer) startsName() bool {
	if z.at(0) == '-' {
		return isNameStart(z.at(1)) || z.at(1) == '-' || z.escapes(1)
	}
	return isNameStart(z.at(0)) || z.escapes(0)
}

// name reads the characters of a name.
func (z *lexer) name() string {
	var out strings.Builder
	for {
		switch {
		case isNameByte(z.at(0)):
			out.WriteByte(z.s[z.pos])
			z.pos++
		case z.escapes(0):
			z.pos++
			out.WriteRune(z.escape())
		default:
			return out.String()
		}
	}
}

// escape reads what stands behind a backslash.
func (z *lexer) escape() rune {
	const mostDigits = 6
	end := z.pos
	for end < len(z.s) && end < z.pos+mostDigits && strings.IndexByte("0123456789abcdefABCDEF", z.s[end]) >= 0 {
		end++
	}
	if end == z.pos {
		c, n := utf8.DecodeRuneInString(z.s[z.pos:])
		z.pos += n
		return c
	}
	code, err := strconv.ParseUint(z.s[z.pos:end], 16, 32)
	z.pos = end
	if isSpaceCSS(z.at(0)) {
		z.pos++
	}
	if err != nil || code == 0 || code > utf8.MaxRune || code >= 0xD800 && code < 0xE000 {
		return utf8.RuneError
	}
	return rune(code)
}

// word reads an identifier, a function or an address.
func (z *lexer) word() token {
	text := z.name()
	if z.at(0) != '(' {
		return token{kind: tokenIdent, text: text}
	}
	z.pos++
	if !strings.EqualFold(text, "url") {
		return token{kind: tokenFunction, text: text}
	}
	here := z.pos
	for isSpaceCSS(z.at(0)) {
		z.pos++
	}
	if c := z.at(0); c == '"' || c == '\'' {
		z.pos = here
		return token{kind: tokenFunction, text: text}
	}
	return z.url()
}

// url reads an address without quotes, behind its parenthesis and spaces, up to
// the next parenthesis that no backslash stands before.
func (z *lexer) url() token {
	var out strings.Builder
	kind := tokenURL
	for z.pos < len(z.s) && z.s[z.pos] != ')' {
		c := z.s[z.pos]
		switch {
		case z.escapes(0):
			z.pos++
			out.WriteRune(z.escape())
			continue
		case isSpaceCSS(c):
			for isSpaceCSS(z.at(0)) {
				z.pos++
			}
			if z.pos < len(z.s) && z.s[z.pos] != ')' {
				kind = tokenBad
			}
			continue
		case c == '"' || c == '\'' || c == '(' || c < ' ' || c == 0x7F || c == '\\':
			kind = tokenBad
		}
		out.WriteByte(c)
		z.pos++
	}
	z.pos = min(z.pos+1, len(z.s))
	return token{kind: kind, text: out.String()}
}

func (z *lexer) quoted(quote byte) token {
	z.pos++
	var out strings.Builder
	for z.pos < len(z.s) {
		c := z.s[z.pos]
		switch {
		case c == quote:
			z.pos++
			return token{kind: tokenString, text: out.String()}
		case c == '\n':
			return token{kind: tokenBad} // the line end is not part of it
		case c == '\\' && z.at(1) == '\n':
			z.pos += 2
		case c == '\\':
			z.pos++
			if z.pos < len(z.s) {
				out.WriteRune(z.escape())
			}
		default:
			out.WriteByte(c)
			z.pos++
		}
	}
	return token{kind: tokenString, text: out.String()}
}

var numbers = regexp.MustCompile(`\A[+-]?(?:\d+\.\d+|\.\d+|\d+)(?:[eE][+-]?\d+)?`)

func (z *lexer) number(text string) token {
	z.pos += len(text)
	n, _ := strconv.ParseFloat(text, 64) // out of range is infinite
	n = min(max(n, -1e9), 1e9)
	switch {
	case z.at(0) == '%':
		z.pos++
		return token{kind: tokenPercent, n: n}
	case z.startsName():
		return token{kind: tokenDimension, n: n, text: strings.ToLower(z.name())}
	}
	return token{kind: tokenNumber, n: n, text: text}
}

// tokensOf returns all tokens of a piece of CSS. A bracket that nothing closes
// reaches to the end.
func tokensOf(css string) []token {
	z := newLexer(css)
	var all []token
	var open []int // brackets that are
	for {
		t := z.next()
		last := len(open) - 1
		switch {
		case t.kind == tokenEnd:
			for _, i := range open {
				all[i].span = len(all) - i
			}
			return all
		case t.opens() != "":
			open = append(open, len(all))
		case last >= 0 && t.is(all[open[last]].opens()):
			all[open[last]].span = len(all) - open[last]
			open = open[:last]
		}
		all = append(all, t)
	}
}

// trimTokens removes the white space around tokens.
func trimTokens(toks []token) []token {
	for len(toks) > 0 && toks[0].kind == tokenSpace {
		toks = toks[1:]
	}
	for len(toks) > 0 && toks[len(toks)-1].kind == tokenSpace {
		toks = toks[:len(toks)-1]
	}
	return toks
}

// cut splits tokens at the first of some marks outside brackets; mark is "" where
// there is none. A brace among the marks is itself such a bracket.
func cut(toks []token, marks ...string) (before []token, mark string, rest []token) {
	for i := 0; i < len(toks); i++ {
		for _, m := range marks {
			if toks[i].is(m) {
				return toks[:i], m, toks[i+1:]
			}
		}
		i += toks[i].span
	}
	return toks, "", nil
}

// inside splits tokens behind an open bracket at the one that closes it, for its
// span.
func inside(toks []token, span int) (in, rest []token) {
	return toks[:min(span-1, len(toks))], toks[min(span, len(toks)):]
}

// component is a part of a value: a token and, of a function or a block, what is
// in it.
type component struct {
	token
	args []token
}

// componentsOf splits tokens into components, without the white space between them.
func componentsOf(toks []token) []component {
	parts := make([]component, 0, 4)
	for i := 0; i < len(toks); i++ {
		switch t := toks[i]; {
		case t.kind == tokenSpace:
		case t.span > 0:
			args, _ := inside(toks[i+1:], t.span)
			parts = append(parts, component{token: t, args: args})
			i += t.span
		default:
			parts = append(parts, component{token: t})
		}
	}
	return parts
}

// splitTokens splits tokens at commas outside brackets.
func splitTokens(toks []token) [][]token {
	var all [][]token
	for mark := ","; mark != ""; {
		var one []token
		one, mark, toks = cut(toks, ",")
		all = append(all, one)
	}
	return all
}
