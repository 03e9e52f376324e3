package faulty

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What a command string may hold (002 section 4.2.2).
const (
	maxLength    = 10_000 // characters
	maxArguments = 100
)

// word is an argument and whether any of it was quoted or escaped.
type word struct {
	text   string
	quoted bool
}

// tokenize reads a command string (002 section 4.1) in one pass. Each fault changes the
// code at its place in that pass.
func (s *Server) tokenize(line string) ([]string, *problem) {
	if s.is(LineEndsCommand) {
		line, _, _ = strings.Cut(line, "\n")
	}
	if s.is(StripsNUL) {
		line = strings.ReplaceAll(line, "\x00", "")
	}
	if p := s.checkLength(line); p != nil {
		return nil, p
	}
	words, p := s.split([]rune(s.substitute(line)))
	if p != nil {
		return nil, p
	}
	words = s.likeShell(words)
	var list []string
	for _, w := range words {
		if w.text == "" && s.is(DropsEmptyArguments) {
			continue
		}
		list = append(list, w.text)
	}
	most := maxArguments
	switch {
	case s.is(ArgumentsOneLow):
		most--
	case s.is(ArgumentsTwoHigh):
		most += 2
	case s.is(ArgumentsUnchecked):
		most = maxLength
	}
	if len(list) > most {
		return nil, s.unreadable("it has more than %d arguments", maxArguments)
	}
	return list, nil
}

func (s *Server) checkLength(line string) *problem {
	if !utf8.ValidString(line) {
		return s.unreadable("it is not valid UTF-8")
	}
	length, most := utf8.RuneCountInString(line), maxLength
	switch {
	case s.is(LengthInBytes):
		length = len(line)
	case s.is(LengthOneLow):
		most--
	case s.is(LengthOneHigh):
		most++
	case s.is(LengthUnchecked):
		length = 0
	}
	if length > most {
		return s.unreadable("it has more than %d characters", maxLength)
	}
	return nil
}

func (s *Server) split(in []rune) ([]word, *problem) {
	var words []word
	var now strings.Builder
	quoted, open := false, false // open: a word has begun, be it empty
	end := func() {
		if open {
			words = append(words, word{now.String(), quoted})
		}
		now.Reset()
		quoted, open = false, false
	}
	for i := 0; i < len(in); i++ {
		r := in[i]
		switch {
		case r == 0 && !s.is(AcceptsNUL):
			return nil, s.unreadable("character %d is NUL", i+1)
		case s.separates(r):
			end()
		case r == '#' && !open && s.is(HashComments):
			return words, nil
		case r == '\'' && !s.is(SingleQuotesLiteral), r == '"':
			if s.is(QuoteSplits) {
				end()
			}
			text, next, p := s.quoted(in, i)
			if p != nil {
				return nil, p
			}
			now.WriteString(text)
			quoted, open, i = true, true, next
			if s.is(QuoteSplits) {
				end()
			}
		case r == '\\':
			if i++; i == len(in) {
				if s.is(AcceptsEndingBackslash) {
					break
				}
				return nil, s.unreadable("character %d is a backslash with nothing behind it", i)
			}
			if in[i] == 0 && !s.is(AcceptsNUL) {
				return nil, s.unreadable("character %d is NUL", i+1)
			}
			if s.is(KeepsBackslash) {
				now.WriteByte('\\')
			}
			now.WriteRune(in[i])
			quoted, open = true, true
		default:
			now.WriteRune(r)
			open = true
		}
	}
	end()
	return words, nil
}

func (s *Server) separates(r rune) bool {
	switch r {
	case ' ':
		return true
	case '\t', '\r', '\n':
		return !s.is(SplitsOnSpaceAlone)
	}
	return s.is(SplitsOnUnicodeSpace) && unicode.IsSpace(r)
}

// quoted reads a quoted text from its opening quote on, and returns where the closing one
// is.
func (s *Server) quoted(in []rune, from int) (string, int, *problem) {
	var b strings.Builder
	quote := in[from]
	for i := from + 1; i < len(in); i++ {
		r := in[i]
		switch {
		case r == 0 && !s.is(AcceptsNUL):
			return "", 0, s.unreadable("character %d is NUL", i+1)
		case r == quote:
			return b.String(), i, nil
		case r == '\\' && i+1 < len(in) && (quote == '"' && !s.is(NoEscapesInDouble) || quote == '\'' && s.is(EscapesInSingleQuotes)):
			next := in[i+1]
			switch {
			case next == '\\' && s.is(KeepsDoubledBackslash):
				b.WriteString(`\\`)
			case next == '\\', next == '"':
				b.WriteRune(next)
			case next == 'n' && !s.is(NoNewlineEscape):
				b.WriteByte('\n')
			case next == 't' && !s.is(NoTabEscape):
				b.WriteByte('\t')
			case next == 0:
				continue // seen in the next turn
			case s.is(LosesOtherBackslash):
				b.WriteRune(next)
			default:
				b.WriteString(`\` + string(next))
			}
			i++
		default:
			b.WriteRune(r)
		}
	}
	if s.is(AcceptsOpenQuote) || s.is(AcceptsOpenDoubleQuote) && quote == '"' {
		return b.String(), len(in), nil
	}
	return "", 0, s.unreadable("the quote at character %d is not closed", from+1)
}

func (s *Server) unreadable(format string, a ...any) *problem {
	return &problem{code: "PARSE_ERROR", message: "The command string cannot be read: " + fmt.Sprintf(format, a...) + ".",
		hint: "Check the quotes and the length of the command.", examples: []string{"help"}}
}

// likeShell does to the words what a shell would do. A correct server does nothing
// here.
func (s *Server) likeShell(words []word) []word {
	var out []word
	for i, w := range words {
		switch {
		case w.quoted:
		case s.is(ExpandsVariables):
			w.text = os.Expand(w.text, func(name string) string {
				if name == "HOME" || name == "PATH" || name == "USER" {
					return "/home/user"
				}
				return ""
			})
		case s.is(ExpandsGlobs) && strings.ContainsAny(w.text, "*?["):
			if names, err := filepath.Glob(w.text); err == nil && len(names) > 0 {
				for _, name := range names {
					out = append(out, word{text: name})
				}
				continue
			}
		case s.is(ExpandsTilde) && strings.HasPrefix(w.text, "~"):
			w.text = "/home/user" + w.text[1:]
		case s.is(ExpandsBraces):
			if before, rest, ok := strings.Cut(w.text, "{"); ok {
				if inside, after, ok := strings.Cut(rest, "}"); ok && strings.Contains(inside, ",") {
					for part := range strings.SplitSeq(inside, ",") {
						out = append(out, word{text: before + part + after})
					}
					continue
				}
			}
		case s.is(SemicolonSplits) && strings.Contains(w.text, ";"):
			before, after, _ := strings.Cut(w.text, ";")
			return s.following(out, before, after, words[i+1:])
		case s.is(AndSplits) && strings.Contains(w.text, "&&"):
			before, after, _ := strings.Cut(w.text, "&&")
			return s.following(out, before, after, words[i+1:])
		case s.is(PipeSplits) && strings.Contains(w.text, "|"):
			before, _, _ := strings.Cut(w.text, "|")
			return s.following(out, before, "", nil)
		case s.is(Redirects) && strings.Contains(w.text, ">"):
			before, _, _ := strings.Cut(w.text, ">")
			return s.following(out, before, "", nil)
		case s.is(BackgroundDropped) && i == len(words)-1 && strings.HasSuffix(w.text, "&"):
			return s.following(out, strings.TrimSuffix(w.text, "&"), "", nil)
		case s.is(AssignmentDropped) && len(out) == 0 && assignment.MatchString(w.text):
			continue
		}
		out = append(out, w)
	}
	return out
}

var assignment = regexp.MustCompile(`\A[A-Za-z_]+=`)

// following returns the words to run of a divided line: those before the divider, or those
// after it if they are a command.
func (s *Server) following(out []word, before, after string, rest []word) []word {
	if before != "" {
		out = append(out, word{text: before})
	}
	if after != "" {
		rest = append([]word{{text: after}}, rest...)
	}
	if len(rest) > 0 && s.find(nil, rest[0].text) != nil {
		return rest
	}
	return out
}

var (
	dollar   = regexp.MustCompile(`\$\(([^()]*)\)`)
	backtick = regexp.MustCompile("`([^`]*)`")
	// harmless matches the only commands that a substitution runs.
	harmless = regexp.MustCompile(`\A(echo|printf|id|whoami|uname|hostname|pwd|date|true)( [A-Za-z0-9_-]+)*\z`)
)

// substitute replaces command substitutions by what sh makes of them.
func (s *Server) substitute(line string) string {
	form := dollar
	switch {
	case s.is(BacktickSubstitutes):
		form = backtick
	case !s.is(CommandSubstitution):
		return line
	}
	return form.ReplaceAllStringFunc(line, func(m string) string {
		inside := form.FindStringSubmatch(m)[1]
		if !harmless.MatchString(inside) {
			return ""
		}
		out, _ := exec.Command("sh", "-c", inside).Output()
		return strings.TrimSpace(string(out))
	})
}
