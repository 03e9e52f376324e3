package commands

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/postern-mail/postern/mail"
)

// Every advice that mail can give has words, and words for nothing else are kept.
func TestEveryAdviceHasWords(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "mail", "advice.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	given := map[mail.Advice]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok {
			given[mail.Advice(strings.Trim(v.Values[0].(*ast.BasicLit).Value, `"`))] = true
		}
		return true
	})
	for a := range given {
		if advices[a].words == "" {
			t.Errorf("the advice %s has no words", a)
		}
	}
	for a := range advices {
		if !given[a] {
			t.Errorf("the advice %s is never given", a)
		}
	}
}

// An untyped string would pass for an Advice: no sentence stands where one is expected.
func TestErrorsOfMailCarryNoSentenceAsAdvice(t *testing.T) {
	for _, dir := range []string{"", "login", "mailbox", "outbox"} {
		files, err := filepath.Glob(filepath.Join("..", "mail", dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatal(dir, err)
		}
		for _, name := range files {
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok || len(call.Args) < 2 {
					return true
				}
				name := ""
				switch f := call.Fun.(type) {
				case *ast.Ident:
					name = f.Name
				case *ast.SelectorExpr:
					name = f.Sel.Name
				}
				at, takes := map[string]int{"Invalid": 1, "Conflict": 1, "Unsupported": 1, "invalid": 1, "cannot": 1, "notPOP3": 1, "credentialError": 3}[name]
				if _, literal := call.Args[min(at, len(call.Args)-1)].(*ast.BasicLit); takes && literal {
					t.Errorf("%s in mail/%s is given a string as its advice", name, dir)
				}
				return true
			})
		}
	}
}

func TestAHintSendsNobodyToACommandThatDoesNotExist(t *testing.T) {
	none := func(string) bool { return false }
	for a, as := range advices {
		e := &mail.Error{Account: "work", Detail: "m1", Advice: a}
		if as.needs != "" && strings.Contains(hint(e, none), "'"+as.needs) {
			t.Errorf("%s: %s", a, hint(e, none))
		}
		if h := FaultsWhere(none)(e).Hint; !strings.HasSuffix(h, ".") || strings.ContainsAny(h, "{}") {
			t.Errorf("%s: %s", a, h)
		}
	}
	e := &mail.Error{Account: "work", Advice: mail.AdviceVerify}
	if h := hint(e, none); h != "Try again." {
		t.Error(h)
	}
}
