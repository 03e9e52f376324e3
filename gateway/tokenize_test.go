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
			got, err := Tokenize(c.input())
			reference, ok := referenceTokenize(c.input())
			if c.Error != nil {
				var e *SyntaxError
				if !errors.As(err, &e) || e.Kind != c.Error.Kind || e.Pos != c.Error.Position || got != nil || ok {
					t.Errorf("got %q, %v, want %+v; reference %v", got, err, c.Error, ok)
				}
			} else if err != nil || !slices.Equal(got, c.want()) || !ok || !slices.Equal(reference, got) {
				t.Errorf("got %.200q, %v, want %.200q; reference %.200q", got, err, c.want(), reference)
			}
		})
	}
}

func TestSyntaxErrorNamesThePlaceAndTheWayOut(t *testing.T) {
	for line, want := range map[string]string{
		"mail list it's":               "unterminated single quote that starts at character 13; close it, or put a value that holds an apostrophe in double quotes",
		`hellooo say "hi`:              `unterminated double quote that starts at character 13; close it, or write \" for a literal quote`,
		`abc\`:                         `nothing follows the backslash at character 4; write \\ for a literal backslash`,
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

// referenceTokenize is what Tokenize promises, written down a second time without shlex
// and without saying what is wrong.
func referenceTokenize(line string) (tokens []string, ok bool) {
	runes := []rune(line)
	if !utf8.ValidString(line) || strings.ContainsRune(line, 0) || len(runes) > MaxCommandChars {
		return nil, false
	}
	escapes := map[rune]rune{'"': '"', '\\': '\\', 'n': '\n', 't': '\t'}
	var token []rune
	var quote rune
	inWord := false
	for i := 0; i < len(runes); i++ {
		r, next := runes[i], rune(0)
		if i+1 < len(runes) {
			next = runes[i+1]
		}
		switch {
		case quote == 0 && strings.ContainsRune(" \t\r\n", r):
			if inWord {
				tokens, token, inWord = append(tokens, string(token)), nil, false
			}
			continue
		case quote == 0 && (r == '\'' || r == '"'):
			quote = r
		case r == quote:
			quote = 0
		case r == '\\' && quote == '"' && escapes[next] != 0:
			token = append(token, escapes[next])
			i++
		case r == '\\' && quote == 0 && next == 0:
			return nil, false
		case r == '\\' && quote == 0:
			token = append(token, next)
			i++
		default:
			token = append(token, r)
		}
		inWord = true
	}
	if inWord {
		tokens = append(tokens, string(token))
	}
	return tokens, quote == 0 && len(tokens) <= MaxArguments
}

func FuzzTokenize(f *testing.F) {
	for _, c := range tokenizerCases(f) {
		f.Add(c.input())
	}
	f.Fuzz(func(t *testing.T, line string) {
		got, err := Tokenize(line)
		want, ok := referenceTokenize(line)
		if ok != (err == nil) || ok && !slices.Equal(got, want) || !ok && got != nil {
			t.Fatalf("got %q, %v, want %q, %v", got, err, want, ok)
		}
		if err != nil {
			var e *SyntaxError
			if !errors.As(err, &e) || e.Pos < 0 || e.Pos > utf8.RuneCountInString(line) {
				t.Fatalf("%v is outside the string", err)
			}
			return
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
