package pop3

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// verbs are the words in capital letters that the text constants of a source begin
// with, pieces that are added up put together.
func verbs(t *testing.T, name, source string) (words []string) {
	t.Helper()
	var src any
	if source != "" {
		src = source
	}
	f, err := parser.ParseFile(token.NewFileSet(), name, src, 0)
	must(t, err)
	var text func(e ast.Expr) string
	text = func(e ast.Expr) string {
		switch e := e.(type) {
		case *ast.BasicLit:
			s, _ := strconv.Unquote(e.Value)
			return s
		case *ast.BinaryExpr:
			return text(e.X) + text(e.Y)
		case *ast.ParenExpr:
			return text(e.X)
		}
		return ""
	}
	word := regexp.MustCompile(`^[A-Z]{3,}`)
	ast.Inspect(f, func(n ast.Node) bool {
		if e, ok := n.(ast.Expr); ok {
			if w := word.FindString(strings.ToUpper(text(e))); w != "" && w == word.FindString(text(e)) || strings.Contains(strings.ToUpper(text(e)), "DELE") {
				words = append(words, w)
			}
		}
		return true
	})
	slices.Sort(words)
	return slices.Compact(words)
}

// known is every such word that the client has: commands, capabilities and response
// codes.
var known = []string{"AUTH", "CAPA", "IN", "LIST", "LOGIN", "NOOP", "PASS", "PIPELINING", "PLAIN", "QUIT", "RETR", "SASL", "STLS", "SYS", "TOP", "UIDL", "USER"}

// The client cannot delete: there is no DELE in its source, whole or in pieces, and
// no word that nobody has thought about.
func Test004_INV_GLOBAL_01_TheClientHasNoDELE(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 4 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		for _, w := range verbs(t, name, "") {
			if !slices.Contains(known, w) {
				t.Errorf("%s has %q", name, w)
			}
		}
	}
	for _, source := range []string{`"DELE 1"`, `"DE" + "LE"`, `"dele %d"`, `"RSET"`, `("D" + ("ELE"))`, `"x\r\nDELE 1"`} {
		found := verbs(t, "x.go", "package x\n\nvar x = "+source+"\n")
		if !slices.ContainsFunc(found, func(w string) bool { return !slices.Contains(known, w) }) {
			t.Errorf("%s is not noticed: %q", source, found)
		}
	}
}

// Everything a Session can do says nothing but what reads.
func Test004_INV_GLOBAL_01_TheSessionSaysNoDELE(t *testing.T) {
	srv := serve(t, "+OK\r\n", usual(func(command string) (string, bool) {
		if command == "UIDL" || command == "LIST" {
			return "+OK\r\n1 1\r\n2 2\r\n.\r\n", false
		}
		return "+OK\r\nSubject: x\r\n.\r\n", false
	}))
	s, err := Dial(t.Context(), srv.cfg)
	must(t, err)
	none := func(int, []byte, error) {}
	_, _, err = s.Messages(t.Context())
	for _, do := range []func() error{
		func() error { return err },
		func() error { return s.Top(t.Context(), []int{1, 2}, -1, 10, none) },
		func() error { return s.Retrieve(context.Background(), []int{2, 1}, 10, none) },
		func() error { return s.Check(t.Context()) },
		s.Close,
	} {
		if err := do(); err != nil {
			t.Error(err)
		}
	}
	said := srv.commands()
	reads := regexp.MustCompile(`^(CAPA|AUTH PLAIN \S+|UIDL|LIST|TOP \d+ 0|RETR \d+|NOOP|QUIT)$`)
	for _, c := range said {
		if !reads.MatchString(c) {
			t.Errorf("it said %q", c)
		}
	}
	if len(said) < 9 {
		t.Errorf("it said only %q", said)
	}
}
