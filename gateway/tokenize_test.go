package gateway

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/postern-mail/postern/discovery"
)

type tokenizerCase struct {
	Name        string   `json:"name"`
	Input       string   `json:"input"`
	InputBytes  []byte   `json:"input_base64"`
	InputTimes  int      `json:"input_times"`
	Tokens      []string `json:"tokens"`
	TokensTimes int      `json:"tokens_times"`
	TokenTimes  int      `json:"token_times"`
	Error       *struct {
		Kind     SyntaxKind `json:"kind"`
		Position int        `json:"position"`
	} `json:"error"`
}

func (c *tokenizerCase) input() string {
	return strings.Repeat(c.Input+string(c.InputBytes), max(1, c.InputTimes))
}

func (c *tokenizerCase) want() []string {
	tokens := slices.Repeat(c.Tokens, max(1, c.TokensTimes))
	for i := range tokens {
		tokens[i] = strings.Repeat(tokens[i], max(1, c.TokenTimes))
	}
	return tokens
}

func tokenizerCases(t testing.TB) []tokenizerCase {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Cases []tokenizerCase `json:"cases"`
	}
	if err := json.Unmarshal(b, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Cases) < 80 {
		t.Fatalf("only %d cases", len(file.Cases))
	}
	return file.Cases
}

func TestTokenizeVectors(t *testing.T) {
	for _, c := range tokenizerCases(t) {
		t.Run(c.Name, func(t *testing.T) {
			if (c.Tokens == nil) == (c.Error == nil) {
				t.Fatal("a case has either tokens or an error")
			}
			for name, split := range map[string]func(string) ([]string, error){"Tokenize": Tokenize, "reference": referenceTokenize} {
				got, err := split(c.input())
				if c.Error != nil {
					var e *SyntaxError
					if !errors.As(err, &e) {
						t.Fatalf("%s: got %q, %v, want a SyntaxError", name, got, err)
					}
					if e.Kind != c.Error.Kind || e.Pos != c.Error.Position {
						t.Errorf("%s: got %s at %d, want %s at %d", name, e.Kind, e.Pos, c.Error.Kind, c.Error.Position)
					}
					if got != nil {
						t.Errorf("%s: got tokens with an error: %q", name, got)
					}
					continue
				}
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if !slices.Equal(got, c.want()) {
					t.Errorf("%s: got %.200q, want %.200q", name, got, c.want())
				}
			}
		})
	}
}

func TestSyntaxErrorNamesThePlaceAndTheWayOut(t *testing.T) {
	for line, want := range map[string]string{
		"mail list it's":               "unterminated single quote that starts at character 13; close it, or put a value that holds an apostrophe in double quotes",
		`hellooo say "hi`:              `unterminated double quote that starts at character 13; close it, or write \" for a quote that is meant as such`,
		`abc\`:                         `nothing follows the backslash at character 4; write \\ for a backslash that is meant as such`,
		"a\x00":                        "character 2 is NUL; leave it out",
		"ab\xff":                       "character 3 is not valid UTF-8; send the command as UTF-8 text",
		strings.Repeat("x", 10_001):    "it is longer than 10000 characters; shorten it from character 10001 on",
		strings.Repeat("secret ", 101): "it has more than 100 arguments; leave out what starts at character 701, or put a value that holds spaces in quotes",
	} {
		_, err := Tokenize(line)
		if err == nil || err.Error() != want {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
}

// referenceTokenize is what Tokenize promises, written down a second time without
// shlex and without looking at how Tokenize does it: a state machine over runes.
func referenceTokenize(line string) ([]string, error) {
	runes := []rune(line) // each invalid byte becomes one U+FFFD
	if len(runes) > MaxCommandChars {
		return nil, &SyntaxError{CommandTooLong, MaxCommandChars}
	}
	const (
		between = iota
		bare
		bareEscape
		single
		double
		doubleEscape
	)
	var (
		tokens = []string{}
		token  []rune
		state  = between
		quote  int
		rest   = line
	)
	for i, r := range runes {
		got, size := utf8.DecodeRuneInString(rest)
		rest = rest[size:]
		if got == utf8.RuneError && size == 1 {
			return nil, &SyntaxError{InvalidUTF8, i}
		}
		if r == 0 {
			return nil, &SyntaxError{NULCharacter, i}
		}
		separates := r == ' ' || r == '\t' || r == '\r' || r == '\n'
		if state == between {
			if separates {
				continue
			}
			if len(tokens) == MaxArguments {
				return nil, &SyntaxError{TooManyArguments, i}
			}
			state = bare
		}
		switch state {
		case bare:
			switch {
			case separates:
				tokens, token, state = append(tokens, string(token)), nil, between
			case r == '\'':
				state, quote = single, i
			case r == '"':
				state, quote = double, i
			case r == '\\':
				state = bareEscape
			default:
				token = append(token, r)
			}
		case bareEscape:
			token, state = append(token, r), bare
		case single:
			if r == '\'' {
				state = bare
			} else {
				token = append(token, r)
			}
		case double:
			switch r {
			case '"':
				state = bare
			case '\\':
				state = doubleEscape
			default:
				token = append(token, r)
			}
		case doubleEscape:
			switch r {
			case '"', '\\':
				token = append(token, r)
			case 'n':
				token = append(token, '\n')
			case 't':
				token = append(token, '\t')
			default:
				token = append(token, '\\', r)
			}
			state = double
		}
	}
	switch state {
	case single:
		return nil, &SyntaxError{UnterminatedSingleQuote, quote}
	case double, doubleEscape:
		return nil, &SyntaxError{UnterminatedDoubleQuote, quote}
	case bareEscape:
		return nil, &SyntaxError{TrailingBackslash, len(runes) - 1}
	case bare:
		tokens = append(tokens, string(token))
	}
	return tokens, nil
}

func FuzzTokenize(f *testing.F) {
	for _, c := range tokenizerCases(f) {
		f.Add(c.input())
	}
	f.Fuzz(func(t *testing.T, line string) {
		got, err := Tokenize(line)
		want, wantErr := referenceTokenize(line)
		if err != nil || wantErr != nil {
			var e, w *SyntaxError
			if !errors.As(err, &e) || !errors.As(wantErr, &w) || *e != *w {
				t.Fatalf("got error %v, want %v", err, wantErr)
			}
			if got != nil {
				t.Fatalf("got tokens with an error: %q", got)
			}
			if e.Pos < 0 || e.Pos > utf8.RuneCountInString(line) {
				t.Fatalf("position %d is outside the string", e.Pos)
			}
			return
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %q, want %q", got, want)
		}
		if len(got) > MaxArguments {
			t.Fatalf("%d arguments", len(got))
		}
		quoted := make([]string, len(got))
		for i, token := range got {
			if utf8.RuneCountInString(token) > MaxArgumentChars || !utf8.ValidString(token) || strings.ContainsRune(token, 0) {
				t.Fatalf("token %d is out of bounds: %q", i, token)
			}
			quoted[i] = discovery.Quote(token)
		}
		joined := strings.Join(quoted, " ")
		if utf8.RuneCountInString(joined) > MaxCommandChars {
			return // quotes may lengthen what was at the bound
		}
		again, err := Tokenize(joined)
		if err != nil || !slices.Equal(again, got) {
			t.Fatalf("quoted form %q gives %q, %v; want %q", joined, again, err, got)
		}
	})
}
