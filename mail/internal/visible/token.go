package visible

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// tokenKind is a kind of token of CSS Syntax Level 3 section 4. White space and
// comments are not tokens: they only separate the tokens around them.
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
	tokenComment // <!-- or -->
	tokenMark
)

// token is one component value (CSS Syntax Level 3 section 5): a token and, of a
// function or an open bracket, all up to the bracket that closes it. A mark, which is a
// delimiter, a colon, a comma or a bracket, has itself as its text; other texts have
// their escapes resolved.
type token struct {
	kind   tokenKind
	text   string // a number as it is written
	unit   string // of a dimension, in lower case
	n      float64
	id     bool // of a hash: it could be an identifier
	spaced bool // there is white space before it
	args   []token
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

// closer returns the mark that closes an opening bracket, "" for other tokens.
func (t token) closer() string {
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

const (
	escaped   = `\\(?:[0-9a-fA-F]{1,6}[ \t\n]?|[^0-9a-fA-F\n])`
	nameStart = `[a-zA-Z_\x80-\x{10FFFF}]|` + escaped
)

var (
	cssNewlines  = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\f", "\n", "\x00", "\uFFFD")
	identPattern = regexp.MustCompile(`\A(?:-(?:-|` + nameStart + `)|` + nameStart + `)(?:[-0-9]|` + nameStart + `)*`)
	namePattern  = regexp.MustCompile(`\A(?:[-0-9]|` + nameStart + `)+`)
	quotes       = map[byte]*regexp.Regexp{
		'"':  regexp.MustCompile(`\A"((?:[^"\\\n]|\\\n|` + escaped + `)*)("?)`),
		'\'': regexp.MustCompile(`\A'((?:[^'\\\n]|\\\n|` + escaped + `)*)('?)`),
	}
	urlPattern    = regexp.MustCompile(`\A[ \t\n]*((?:[^"'()\\\x00-\x20\x7F]|` + escaped + `)*)[ \t\n]*(?:\)|\z)`)
	badURLPattern = regexp.MustCompile(`\A(?:[^)\\]|(?s:\\.))*\)?`)
	numberPattern = regexp.MustCompile(`\A[+-]?(?:\d+\.\d+|\.\d+|\d+)(?:[eE][+-]?\d+)?`)
	escapePattern = regexp.MustCompile(escaped + `|\\\n`)
)

// lexer reads CSS.
type lexer struct {
	s     string
	pos   int
	depth int // of open brackets
	deep  bool
}

// tokensOf returns a piece of CSS as component values. A bracket that nothing closes
// reaches to the end. ok is false where brackets are nested deeper than any mail
// needs; the rest is then not read.
func tokensOf(css string) (toks []token, ok bool) {
	if strings.ContainsAny(css, "\r\f\x00") {
		css = cssNewlines.Replace(css)
	}
	if strings.HasSuffix(css, `\`) {
		css += "\uFFFD" // the meaning of an escape at the end
	}
	z := &lexer{s: css}
	toks = z.list("")
	return toks, !z.deep
}

// list reads tokens up to a closing bracket, or the end.
func (z *lexer) list(end string) []token {
	const deepest = 200
	if z.depth++; z.depth > deepest {
		z.deep, z.pos = true, len(z.s)
	}
	var all []token
	for {
		t := z.next()
		if t.kind == tokenEnd || t.kind == tokenMark && t.text == end {
			z.depth--
			return all
		}
		if closer := t.closer(); closer != "" {
			t.args = z.list(closer)
		}
		all = append(all, t)
	}
}

// next returns the next token, without args.
func (z *lexer) next() token {
	var t token
	for z.pos < len(z.s) {
		if isSpaceCSS(z.s[z.pos]) {
			z.pos++
			t.spaced = true
		} else if rest, ok := strings.CutPrefix(z.s[z.pos:], "/*"); ok {
			_, rest, _ = strings.Cut(rest, "*/")
			z.pos = len(z.s) - len(rest)
		} else {
			break
		}
	}
	rest := z.s[z.pos:]
	if rest == "" {
		return t
	}
	c := rest[0]
	switch {
	case quotes[c] != nil:
		m := quotes[c].FindStringSubmatch(rest)
		z.pos += len(m[0])
		t.kind, t.text = tokenString, unescape(m[1])
		if m[2] == "" && z.pos < len(z.s) {
			t.kind = tokenBad // the line end is not part of it
		}
	case z.take(&t, tokenNumber, numberPattern):
		n, _ := strconv.ParseFloat(t.text, 64) // out of range is infinite
		t.n = min(max(n, -1e9), 1e9)
		if strings.HasPrefix(z.s[z.pos:], "%") {
			t.kind, t.text = tokenPercent, t.text+"%"
			z.pos++
		} else if unit := find(identPattern, z.s[z.pos:]); unit != "" {
			z.pos += len(unit)
			t.kind, t.text, t.unit = tokenDimension, t.text+unit, strings.ToLower(unescape(unit))
		}
	case strings.HasPrefix(rest, "-->"):
		z.pos += len("-->")
		t.kind = tokenComment
	case strings.HasPrefix(rest, "<!--"):
		z.pos += len("<!--")
		t.kind = tokenComment
	case z.take(&t, tokenIdent, identPattern):
		if strings.HasPrefix(z.s[z.pos:], "(") {
			z.pos++
			t.kind = tokenFunction
			z.url(&t)
		}
	case c == '#' && find(namePattern, rest[1:]) != "":
		z.pos++
		t.id = find(identPattern, rest[1:]) != ""
		z.take(&t, tokenHash, namePattern)
	case c == '@' && find(identPattern, rest[1:]) != "":
		z.pos++
		z.take(&t, tokenAt, identPattern)
		t.text = strings.ToLower(t.text)
	default:
		_, n := utf8.DecodeRuneInString(rest)
		z.pos += n
		t.kind, t.text = tokenMark, rest[:n]
	}
	return t
}

func isSpaceCSS(c byte) bool { return c == ' ' || c == '\t' || c == '\n' }

// take reads a token that matches a pattern, and reports whether there is one.
func (z *lexer) take(t *token, kind tokenKind, pattern *regexp.Regexp) bool {
	raw := find(pattern, z.s[z.pos:])
	if raw == "" {
		return false
	}
	z.pos += len(raw)
	t.kind, t.text = kind, unescape(raw)
	return true
}

// find returns what a pattern matches at the beginning of a text. Most texts have no
// escape, and for those no pattern is needed.
func find(pattern *regexp.Regexp, s string) string {
	if pattern == numberPattern {
		if digit := strings.TrimLeft(s[:min(len(s), 3)], "+-."); digit == "" || digit[0] < '0' || digit[0] > '9' {
			return ""
		}
		return pattern.FindString(s)
	}
	plain := strings.IndexFunc(s, func(c rune) bool { return !isNameRune(c) && c != '-' && (c < '0' || c > '9') })
	if plain < 0 {
		plain = len(s)
	} else if s[plain] == '\\' {
		return pattern.FindString(s)
	}
	if rest := strings.TrimPrefix(s[:plain], "-"); pattern == identPattern && (rest == "" || rest[0] >= '0' && rest[0] <= '9') {
		return ""
	}
	return s[:plain]
}

func isNameRune(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= 0x80
}

// url reads an address without quotation marks behind "url(".
func (z *lexer) url(t *token) {
	rest := z.s[z.pos:]
	if first := strings.TrimLeft(rest, " \t\n"); !strings.EqualFold(t.text, "url") || first != "" && quotes[first[0]] != nil {
		return
	}
	if m := urlPattern.FindStringSubmatch(rest); m != nil {
		z.pos += len(m[0])
		t.kind, t.text = tokenURL, unescape(m[1])
		return
	}
	z.pos += len(badURLPattern.FindString(rest))
	t.kind = tokenBad
}

// unescape resolves escapes.
func unescape(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	return escapePattern.ReplaceAllStringFunc(s, func(e string) string {
		if e == "\\\n" {
			return ""
		}
		code, err := strconv.ParseUint(strings.TrimRight(e[1:], " \t\n"), 16, 32)
		switch {
		case err != nil:
			return e[1:]
		case code == 0 || code > utf8.MaxRune:
			return string(utf8.RuneError)
		}
		return string(rune(code)) // of half a pair too, that is U+FFFD
	})
}

// cut splits tokens at the first of some marks outside brackets; found has kind
// tokenEnd where there is none.
func cut(toks []token, marks string) (before []token, found token, rest []token) {
	for i, t := range toks {
		if t.kind == tokenMark && strings.Contains(marks, t.text) {
			return toks[:i], t, toks[i+1:]
		}
	}
	return toks, token{}, nil
}

// splitTokens splits tokens at commas outside brackets.
func splitTokens(toks []token) [][]token {
	for all := [][]token(nil); ; {
		one, comma, rest := cut(toks, ",")
		all = append(all, one)
		if comma.kind == tokenEnd {
			return all
		}
		toks = rest
	}
}
